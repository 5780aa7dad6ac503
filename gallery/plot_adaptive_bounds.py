"""
Bounds that are far too wide
============================

If only little is certain about a column, bounds are wide, and noise is large. Where rows are many
enough, a small part of the budget finds an interval that holds most values.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from cloakgp import DPGPRegressor
from cloakgp.plots import PredictionDisplay

table = load_diabetes(as_frame=True, scaled=False)
X, y = table.data[["bmi"]], table.target.rename("progression")

figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), sharey=True, layout="constrained")
for ax, interval in zip(axes, (False, "auto"), strict=True):
    model = DPGPRegressor(bounds=(0, 10_000), epsilon=1.0, delta=1e-3, interval=interval)
    model.fit(X, y)
    PredictionDisplay.from_estimator(model, ax=ax)
    ax.set(title=f"interval={interval!r}", ylim=(-100, 1000))

# %%
# The published answers: counts first, then answers about values within the interval from them.
model.release_
