"""Expected errors in closed form: those of many releases."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp.models import ExactPrior
from cloakgp.privacy import OutputBounds
from experiments.cloaking import LOGDET_NOISE, PAPERS_NOISE, TRACE_NOISE, Budget, Cloaked, noise_sd
from experiments.cross_validation import Protocol, cross_validate
from experiments.expected_errors import expected_errors

BUDGET = Budget(bounds=OutputBounds(-1.0, 1.0), epsilon=1.0, delta=0.01)
NOISES = (PAPERS_NOISE, LOGDET_NOISE, TRACE_NOISE)


def prior_for(_):
    return ExactPrior(kernel=ConstantKernel(0.5) * RBF(2.0), noise_variance=0.1, mean=0.0)


@pytest.fixture
def table(rng):
    X = rng.uniform(0.0, 10.0, size=(40, 1))
    return X, np.sin(X[:, 0]) + rng.normal(scale=0.1, size=40)


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_the_noise_is_known_before_it_is_drawn(table, noise):
    X, y = table
    cloaked = Cloaked.designed(X, X[:7] + 0.3, prior=prior_for(X), noise=noise)
    release = cloaked.released(y, budget=BUDGET, insecure_seed=3)
    np.testing.assert_allclose(cloaked.noise_sd(BUDGET), noise_sd(release), rtol=1e-6)


@pytest.mark.slow
def test_expected_squares_are_those_of_many_draws(table):
    X, y = table
    options = {"prior_for": prior_for, "noises": NOISES, "budget": BUDGET}
    drawn = cross_validate(X, y, **options, protocol=Protocol(folds=4, draws=400, insecure_seed=11))
    closed = expected_errors(X, y, **options, protocol=Protocol(folds=4))
    for noise in NOISES:
        squares = np.square(drawn.raw[noise.name].by_fold)
        expected = np.square(closed[noise.name].by_fold[:, 0])
        error = squares.std(axis=1, ddof=1) / np.sqrt(400)
        assert (np.abs(squares.mean(axis=1) - expected) < 4 * error).all()
        assert closed[noise.name].mean > drawn.raw[noise.name].mean - 2e-3
    np.testing.assert_allclose(closed["no privacy"].by_fold, drawn.no_privacy.by_fold)
