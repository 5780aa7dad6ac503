"""
Inputs that are private, too
============================

Where whole rows must be protected, noisy counts of every column are published, and noisy sums over
features that these chose. The promise is stronger, and costs accuracy.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from cloakgp import DPGPRegressor, DPGPRegressorPrivateInputs

table = load_diabetes(as_frame=True, scaled=False)
X, y = table.data[["bmi"]].to_numpy(), table.target.to_numpy()
budget = {"bounds": (0, 350), "epsilon": 1.0, "delta": 1e-3}

# %%
# The box is declared, as bounds are: a body mass index is between 15 and 45.
models = {
    "outputs are protected": DPGPRegressor(**budget).fit(X, y),
    "whole rows are": DPGPRegressorPrivateInputs(input_bounds=[(15, 45)], **budget).fit(X, y),
}

grid = np.linspace(18, 42, 100)[:, None]
figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    mean, sd = model.predict(grid, return_std=True)
    ax.fill_between(grid[:, 0], mean - 1.96 * sd, mean + 1.96 * sd, alpha=0.3)
    ax.plot(grid[:, 0], mean)
    ax.set(title=name, xlabel="body mass index", ylabel="progression", ylim=(0, 350))

# %%
models["whole rows are"].release_
