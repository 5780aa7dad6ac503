"""
Any other linear method
=======================

Any method that predicts by C y, with a matrix C of public inputs alone, can be published
with the least noise: kernel ridge regression, for one.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.metrics.pairwise import rbf_kernel

from cloakgp import cloak

table = load_diabetes(as_frame=True, scaled=False)
x, y = table.data[["bmi"]].to_numpy(), table.target.to_numpy()

# %%
# The smoother, from the middle of the bounds, at 25 places:
places = np.linspace(18, 40, 25)[:, None]
gamma, ridge, middle = 1 / (2 * 6.0**2), 20.0, 175.0
C = np.linalg.solve(
    rbf_kernel(x, gamma=gamma) + ridge * np.eye(len(x)), rbf_kernel(x, places, gamma=gamma)
).T

published = cloak(C, y - middle, bounds=(-middle, middle), epsilon=1.0, delta=1e-3)
sd = np.sqrt(np.diag(published.noise_cov))

figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
ax.plot(places, middle + C @ (y - middle), "k:", label="without privacy (not published)")
ax.errorbar(
    places[:, 0], middle + published.values, yerr=sd, fmt="o", capsize=2, label="± sd of the noise"
)
ax.set(xlabel="body mass index", ylabel="progression")
_ = ax.legend(frameon=False)

# %%
published.guarantee
