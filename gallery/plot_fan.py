"""
Between what a new value lies
=============================

A curve is an average; whoever decides about one case asks how far values scatter around it. A fan
chart shows quantiles of a new value: half of all new values are expected in the dark band.

Of 1,797 images of digits, the ink in the lower half is private here, and that in the upper half is
public.
"""

import pandas as pd
from sklearn.datasets import load_digits

from cloakgp import DPGPRegressor
from cloakgp.plots import FanDisplay

ink = load_digits().images.sum(axis=2)
X = pd.DataFrame({"upper ink": ink[:, :4].sum(axis=1)})
y = pd.Series(ink[:, 4:].sum(axis=1), name="lower ink")

model = DPGPRegressor(bounds=(0, 512), epsilon=4.0, inducing=20).fit(X, y)
display = FanDisplay.from_estimator(model)

# %%
# At this budget, rows are so many that noisy counts correct what the model says of the scatter:
# quantiles are calibrated. As this table is public, we may look how many values the widest band
# holds.
lower, upper = model.predict_interval(X, 0.9)
model.release_.is_calibrated, float(((lower <= y) & (y <= upper)).mean().round(2))

# %%
# The numbers behind the picture:
display.to_frame().iloc[::40].round(0)
