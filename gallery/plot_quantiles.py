"""
Quantiles for long tails
========================

Where a few values are very large, an average tells little, and no bounds are known that are worth
the name. Quantiles ask only which values lie below thresholds: how far above does not matter.

Of 569 samples of breast tissue, the area of the largest cells is private here, and the mean radius
of cells is public.
"""

from sklearn.datasets import load_breast_cancer

from cloakgp import DPGPQuantileRegressor
from cloakgp.plots import QuantileDisplay

table = load_breast_cancer(as_frame=True).data
X, y = table[["mean radius"]], table["worst area"]

model = DPGPQuantileRegressor(quantiles=(0.1, 0.5, 0.9), bounds=(10, 1e6), epsilon=4.0).fit(X, y)
display = QuantileDisplay.from_estimator(model)

# %%
# Bands hold each curve with 95 %: they are wide where no rows are. As this table is public, we may
# look at the shares of values at or below each curve, which would be 0.1, 0.5 and 0.9.
(y.to_numpy()[:, None] <= model.predict(X)).mean(axis=0).round(2)

# %%
# The numbers behind the picture:
display.to_frame().iloc[::40].round(0)
