"""
How far the model's own intervals can be trusted
================================================

A Gaussian model says how probable it is that a value lies below a number. A small part of the
budget counts how many values do, with noise. On the diagonal, the model is right. A curve that is
steep in the middle says that values scatter less than the model takes them to, and a curve that is
flat there, that they scatter more.
"""

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

from cloakgp import DPGPRegressor
from cloakgp.plots import CalibrationDisplay

ink = load_digits().images.sum(axis=2)
X = pd.DataFrame({"upper ink": ink[:, :4].sum(axis=1)})
y = pd.Series(ink[:, 4:].sum(axis=1), name="lower ink")

model = DPGPRegressor(bounds=(0, 512), epsilon=4.0, inducing=20).fit(X, y)
display = CalibrationDisplay.from_estimator(model)

# %%
# Intervals, quantiles and probabilities of new values are corrected by these curves. How many
# values lie in what the model takes for its intervals of 50 and 90 %:
frame = display.to_frame()
shares = {
    rows: np.interp([0.05, 0.25, 0.75, 0.95], curve["modelled"], curve["share"])
    for rows, curve in frame.groupby("rows")
}
pd.DataFrame({rows: [q[2] - q[1], q[3] - q[0]] for rows, q in shares.items()}, index=[0.5, 0.9])
