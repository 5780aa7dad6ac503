"""GPy's posterior of the latent function."""

from __future__ import annotations

from functools import reduce
from operator import add

import GPy
import numpy as np
import protocol

KERNELS = {
    "rbf": GPy.kern.RBF,
    "matern 1/2": GPy.kern.Exponential,
    "matern 3/2": GPy.kern.Matern32,
    "matern 5/2": GPy.kern.Matern52,
}
# What it adds to covariances of inducing inputs; its default, 1e-6, would be most of what differs.
JITTER = 1e-12


def kernel_of(part, dimensions):
    """Return one kernel of the sum."""
    if part["kind"] == "constant":
        return GPy.kern.Bias(dimensions, variance=part["variance"])
    if part["kind"] == "linear":
        return GPy.kern.Linear(dimensions, variances=part["variance"])
    return KERNELS[part["kind"]](
        dimensions, variance=part["variance"], lengthscale=part["lengthscales"], ARD=True
    )


def answer(arrays, options):
    """Return mean and variance at the query points."""
    X, y = arrays["X"], arrays["y"][:, None]
    kernel = reduce(add, (kernel_of(part, X.shape[1]) for part in options["kernel"]))
    noise = options["noise_variance"]
    if options["model"] == "exact":
        model = GPy.models.GPRegression(X, y, kernel, noise_var=noise)
    else:
        inferences = GPy.inference.latent_function_inference
        inference = inferences.FITC() if options["model"] == "fitc" else inferences.VarDTC()
        inference.const_jitter = JITTER
        model = GPy.core.SparseGP(
            X,
            y,
            arrays["inducing"],
            kernel,
            GPy.likelihoods.Gaussian(variance=noise),
            inference_method=inference,
        )
    mean, variance = model.predict_noiseless(arrays["X_query"])
    found = {"mean": np.ravel(mean), "variance": np.ravel(variance)}
    return found, {"version": GPy.__version__}


if __name__ == "__main__":
    protocol.main(answer)
