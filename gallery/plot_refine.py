"""
Asking the same people again
============================

A release can be refined where it is still uncertain. What that costs is added up exactly.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from cloakgp import DPGPRegressor
from cloakgp.plots import PredictionDisplay

table = load_diabetes(as_frame=True, scaled=False)
X, y = table.data[["bmi"]], table.target.rename("progression")

model = DPGPRegressor(bounds=(0, 350), epsilon=0.5, delta=1e-4, noise="gaussian").fit(X, y)
first = model.release_

# %%
# A second visit asks for the mean at a body mass index above 32 alone.
heavy = np.linspace(32, 42, 30)[:, None]
model.refine(y, heavy, epsilon=0.7, delta=1e-4)

figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), sharey=True, layout="constrained")
for ax, release in zip(axes, (first, model.release_), strict=True):
    PredictionDisplay.from_release(release, ax=ax)
    ax.set_title(str(release.guarantee))

# %%
# The sd of the prediction before, and after:
[
    release.predict([[38.0]], return_std=True)[1].round(1).tolist()
    for release in (first, model.release_)
]
