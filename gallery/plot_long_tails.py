"""
Long tails
==========

How the measured area of a cell nucleus varies has a long tail: most values are small, a few are
fifty times as large. Its logarithm is asked then, and predictions come back in the units of the
column.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from cloakgp import DPGPRegressor
from cloakgp.plots import PredictionDisplay

table = load_breast_cancer(as_frame=True).data
X, y = table[["mean radius"]], table["area error"]

figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
for ax, transform in zip(axes, (None, "log"), strict=True):
    model = DPGPRegressor(bounds=(1, 1000), epsilon=1.0, delta=1e-4, output_transform=transform)
    model.fit(X, y)
    PredictionDisplay.from_estimator(model, ax=ax)
    ax.set(title=f"output_transform={transform!r}", ylim=(-30, 600))

# %%
# As this table is public, we may look: how many new values do the 95 % limits hold?
lower, upper = model.release_.predict_limits(X, new_output=True)
((lower <= y) & (y <= upper)).mean().round(3)
