"""
A budget over years
===================

A ledger counts the spending about each population, and refuses charges beyond a limit before any
noise is drawn. Here a clinic publishes about the same patients year after year.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from cloakgp import DPGPRegressor
from cloakgp.ledger import Ledger, LimitError

table = load_diabetes(as_frame=True, scaled=False)
X, y = table.data[["bmi"]], table.target.rename("progression")

ledger = Ledger.create(Path(tempfile.mkdtemp()) / "patients.db")
ledger.open_account("patients", epsilon=1.5, delta=1e-4)

# %%
# Every year the same release, at (0.5, 0.00001). With Gaussian noise three of them cost less than
# three times as much, so that there is room for far more than three.
used, refused = [], ""
for year in range(2026, 2036):
    model = DPGPRegressor(bounds=(0, 350), epsilon=0.5, delta=1e-5, noise="gaussian", stages=None)
    try:
        with ledger.account("patients", purpose=f"report of {year}"):
            model.fit(X, y)
    except LimitError as error:
        refused = f"{year}: {error}"
        break
    used.append(100 * ledger.account("patients").standing.used)

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.step(range(2026, 2026 + len(used)), used, where="mid", marker="o", label="used")
ax.axhline(100, color="black", linestyle="--", label="limit: ε = 1.5, δ = 0.0001")
ax.set(xlabel="year", ylabel="per cent of the limit", ylim=(0, None))
_ = ax.legend(frameon=False)

# %%
# The year that was refused spent nothing:
print(refused)

# %%
# Anyone who has the chain of entries can check it.
ledger.verify()
