"""
A budget over years
===================

A ledger remembers what was spent about whom, and refuses what goes beyond a limit before any
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
spent, refused = [], ""
for year in range(2026, 2036):
    model = DPGPRegressor(bounds=(0, 350), epsilon=0.5, delta=1e-5, noise="gaussian", stages=None)
    try:
        with ledger.account("patients", purpose=f"report of {year}"):
            model.fit(X, y)
    except LimitError as error:
        refused = f"{year}: {error}"
        break
    spent.append(ledger.account("patients").standing.epsilon)

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.step(range(2026, 2026 + len(spent)), spent, where="mid", marker="o", label="spent")
ax.axhline(1.5, color="black", linestyle="--", label="limit")
ax.set(xlabel="year", ylabel="ε at δ = 0.0001", ylim=(0, None))
_ = ax.legend(frameon=False)

# %%
# The year that was refused spent nothing:
print(refused)

# %%
# The chain of entries can be checked by anybody who has it.
ledger.verify()
