"""
Which noise
===========

Laplace noise needs no δ, Gaussian noise composes better. What each is expected to be worth is
forecast from the public columns, at no cost.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from cloakgp import DPGPRegressor

X = load_diabetes(as_frame=True, scaled=False).data[["bmi", "bp"]]
epsilons = [0.25, 0.5, 1.0, 2.0]
kinds = {
    "Laplace, no δ": {"noise": "laplace", "delta": 0.0},
    "Gaussian, δ = 0.001": {"noise": "gaussian", "delta": 1e-3},
    "Gaussian, δ = 0.00001": {"noise": "gaussian", "delta": 1e-5},
}

figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
for (name, kind), style in zip(kinds.items(), ("-", "--", ":"), strict=True):
    model = DPGPRegressor(bounds=(0, 350), epsilon=1.0, inducing=30, stages=None, **kind)
    forecasts = model.plan(X, epsilons=epsilons).forecasts
    errors = [each.error for each in forecasts]
    ax.plot([each.epsilon for each in forecasts], errors, style, marker="o", label=name)
ax.set(xlabel="ε", ylabel="expected error of progression", xscale="log", ylim=(0, None))
ax.set_xticks(epsilons, [f"{each:g}" for each in epsilons])
ax.minorticks_off()
_ = ax.legend(frameon=False)

# %%
# The least of all at each ε is what ``noise="auto"`` takes.
np.round(errors, 1)
