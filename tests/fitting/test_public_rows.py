"""Public rows: the process given them, against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor

from cloakgp.fitting.public_rows import condition_on_public_rows
from cloakgp.privacy import OutputBounds
from cloakgp.release.public_rows import PublicRows

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 10, size=(60, 2))
Y = 50 + 20 * np.sin(X[:, 0]) + RNG.normal(0, 3, size=60)
NEW = RNG.uniform(0, 10, size=(40, 2))


def known(outputs: np.ndarray = Y) -> PublicRows:
    return condition_on_public_rows(X, outputs, bounds=OutputBounds(0.0, 100.0))


def test_the_mean_is_that_of_scikit_learn_with_the_same_hyperparameters() -> None:
    found = known()
    prior = found.prior
    oracle = GaussianProcessRegressor(prior.kernel, alpha=prior.noise_variance, optimizer=None)
    oracle.fit(X, Y - prior.mean)
    np.testing.assert_allclose(found.predict(NEW), prior.mean + oracle.predict(NEW), rtol=1e-6)


def test_hyperparameters_are_fitted_to_the_rows() -> None:
    """Noise of sd 3, where 10 is declared; rows are more probable than under the declared ones."""
    prior = known().prior
    assert 2.0 < np.sqrt(prior.noise_variance) < 6.0
    error = np.sqrt(np.mean((known().predict(NEW) - 50 - 20 * np.sin(NEW[:, 0])) ** 2))
    assert error < 6.0


def test_outputs_beyond_the_bounds_count_as_at_them() -> None:
    high = Y.copy()
    high[:5] = [1e6, 101.0, 1e300, 200.0, 100.0]
    clipped = np.minimum(high, 100.0)
    np.testing.assert_array_equal(known(high).predict(NEW), known(clipped).predict(NEW))


def test_damaged_rows_are_refused() -> None:
    found = known()
    for X, weights in ((found.X, found.weights[1:]), (found.X[:0], found.weights[:0])):
        with pytest.raises(ValueError, match="public rows are damaged"):
            PublicRows(prior=found.prior, X=X, weights=weights).validate()
