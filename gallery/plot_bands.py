"""
Stages, and bands that get narrower
===================================

The budget is spent in stages. After the first, every value is known to lie near a prediction, and
later questions clip it to a band around that: narrower bands need less noise.
"""

from sklearn.datasets import load_diabetes

from cloakgp import DPGPRegressor
from cloakgp.plots import BandsDisplay

table = load_diabetes(as_frame=True, scaled=False)
X, y = table.data[["bmi"]], table.target.rename("progression")

model = DPGPRegressor(bounds=(0, 350), epsilon=1.0, delta=1e-3, interval=False).fit(X, y)
display = BandsDisplay.from_estimator(model)

# %%
# How wide bands are, and what share of the budget each stage spent:
frame = display.to_frame()
frame.assign(width=frame["upper"] - frame["lower"]).groupby("stage")[["share", "width"]].mean()
