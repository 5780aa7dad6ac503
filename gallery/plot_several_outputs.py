"""
Several private columns together
================================

Disease progression and blood sugar of the same patients, under one guarantee for both values of a
person.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from cloakgp import DPGPMultiOutputRegressor

table = load_diabetes(as_frame=True, scaled=False)
X = table.data[["bmi"]].to_numpy()
outputs = np.column_stack([table.target, table.data["s6"]])

# %%
# Each column has bounds of its own: the score as before, and sugar from 40 to 160 mg/dl.
model = DPGPMultiOutputRegressor(bounds=[(0, 350), (40, 160)], epsilon=1.0, delta=1e-3, stages=None)
model.fit(X, outputs)

grid = np.linspace(18, 42, 100)[:, None]
mean, sd = model.predict(grid, return_std=True)
figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
for ax, name, middle, spread in zip(
    axes, ("progression", "blood sugar (mg/dl)"), mean.T, sd.T, strict=True
):
    ax.fill_between(grid[:, 0], middle - 1.96 * spread, middle + 1.96 * spread, alpha=0.3)
    ax.plot(grid[:, 0], middle)
    ax.set(xlabel="body mass index", ylabel=name)

# %%
# The release, and its one guarantee:
model.release_
