"""
What a guarantee means for an attacker
======================================

An attacker knows every other value, and finds one of two values of a person more likely. What is
the largest share of right guesses with the published answers?
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from cloakgp import DPGPRegressor
from cloakgp.plots import GuaranteeDisplay

table = load_diabetes(as_frame=True, scaled=False)
X, y = table.data[["bmi"]], table.target
settings = {"bounds": (0, 350), "stages": None, "inducing": 15}

private = DPGPRegressor(epsilon=1.0, delta=1e-3, noise="gaussian", **settings).fit(X, y)
GuaranteeDisplay.from_estimator(private)

# %%
# At ε = 5 the word protection says little:
loose = DPGPRegressor(epsilon=5.0, delta=1e-3, noise="gaussian", **settings).fit(X, y)
GuaranteeDisplay.from_estimator(loose)

# %%
# Without a δ, with Laplace noise:
pure = DPGPRegressor(epsilon=1.0, noise="laplace", **settings).fit(X, y)
figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
display = GuaranteeDisplay.from_release(pure.release_, ax=axes)
_ = figure.suptitle(display.title)
