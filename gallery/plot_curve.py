"""
A curve with honest bands
=========================

Disease progression over the body mass index of 442 patients: one private column, one public one.
"""

from sklearn.datasets import load_diabetes

from cloakgp import DPGPRegressor
from cloakgp.plots import PredictionDisplay

table = load_diabetes(as_frame=True, scaled=False)
X = table.data[["bmi"]].rename(columns={"bmi": "body mass index"})

# %%
# The score cannot be negative, and 350 is a round ceiling, decided without the data. This is the
# one visit to the private column.
model = DPGPRegressor(bounds=(0, 350), epsilon=1.0, delta=1e-3)
model.fit(X, table.target.rename("progression"))

# %%
# The dark band is for the mean of people with that body mass index, the pale one for one more
# person's own value. Both include the noise that protects all people. The marks along the lower
# edge are the public inputs; outputs are not in a release, so none can be drawn.
display = PredictionDisplay.from_estimator(model, unit="points")

# %%
# The numbers behind the picture:
display.to_frame().iloc[::40].round(1)
