"""Smaller scales of the default prior."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp.models import ExactPrior, SparsePrior, default_kernel, matern_kernel
from cloakgp.models.scales import SCALES, smaller_scales

X = np.random.default_rng(0).normal(size=(12, 2))


@pytest.mark.parametrize("sparse", [False, True])
def test_slope_and_curve_are_smaller_and_level_and_noise_are_not(sparse):
    kernel = default_kernel(X, width=8.0)
    prior = ExactPrior(kernel=kernel, noise_variance=0.64, mean=1.0)
    if sparse:
        prior = SparsePrior(
            kernel=kernel, noise_variance=0.64, mean=1.0, inducing=X[:4], approximation="fitc"
        )
    priors = smaller_scales(prior)
    assert priors[0] is prior
    level = 2.0**2
    for other, scale in zip(priors, SCALES, strict=True):
        np.testing.assert_allclose(other.kernel(X) - level, scale**2 * (kernel(X) - level))
        assert other.noise_variance == 0.64
        assert replace(other, kernel=kernel) == prior or sparse


@pytest.mark.parametrize(
    "kernel", [matern_kernel(X, width=8.0), RBF(1.0), ConstantKernel(1.0) + RBF(1.0) + RBF(2.0)]
)
def test_any_other_kernel_has_none(kernel):
    prior = ExactPrior(kernel=kernel, noise_variance=1.0, mean=0.0)
    assert smaller_scales(prior) == (prior,)
