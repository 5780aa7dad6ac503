"""GPflow's posterior of the latent function."""

from __future__ import annotations

from functools import reduce
from operator import add

import gpflow
import numpy as np
import protocol

KERNELS = {
    "rbf": gpflow.kernels.SquaredExponential,
    "matern 1/2": gpflow.kernels.Matern12,
    "matern 3/2": gpflow.kernels.Matern32,
    "matern 5/2": gpflow.kernels.Matern52,
}
# What it adds to covariances of inducing inputs; its default, 1e-6, would be most of what differs.
JITTER = 1e-12


def kernel_of(part):
    """Return one kernel of the sum."""
    if part["kind"] == "constant":
        return gpflow.kernels.Constant(variance=part["variance"])
    if part["kind"] == "linear":
        return gpflow.kernels.Linear(variance=part["variance"])
    return KERNELS[part["kind"]](variance=part["variance"], lengthscales=part["lengthscales"])


def answer(arrays, options):
    """Return mean and variance at the query points."""
    gpflow.config.set_default_jitter(JITTER)
    data = arrays["X"], arrays["y"][:, None]
    kernel = reduce(add, map(kernel_of, options["kernel"]))
    noise = {"noise_variance": options["noise_variance"]}
    if options["model"] == "exact":
        model = gpflow.models.GPR(data, kernel, **noise)
    else:
        kind = gpflow.models.GPRFITC if options["model"] == "fitc" else gpflow.models.SGPR
        model = kind(data, kernel, inducing_variable=arrays["inducing"], **noise)
    mean, variance = model.predict_f(arrays["X_query"])
    found = {"mean": np.ravel(mean), "variance": np.ravel(variance)}
    return found, {"version": gpflow.__version__}


if __name__ == "__main__":
    protocol.main(answer)
