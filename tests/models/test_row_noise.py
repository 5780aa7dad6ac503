"""A cloaking matrix with a noise of its own for each row."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from cloakgp.models import ExactPrior, Prior, SparsePrior
from cloakgp.models.row_noise import RowNoisePrior


@pytest.fixture
def rows(rng):
    return rng.normal(size=(20, 2))


@pytest.fixture
def variance(rng):
    return rng.uniform(0.1, 3.0, size=20)


def exact():
    return ExactPrior(kernel=RBF(0.8), noise_variance=0.2, mean=1.5)


def sparse(rows):
    return SparsePrior(kernel=RBF(0.8), noise_variance=0.2, mean=1.5, inducing=rows[:5])


def test_predictions_are_scikit_learns_with_a_noise_for_each_row(rows, variance, rng):
    y, X_query = rng.normal(size=20), rng.normal(size=(6, 2))
    oracle = GaussianProcessRegressor(RBF(0.8), alpha=variance, optimizer=None).fit(rows, y)
    prior = RowNoisePrior(model=exact(), rows=rows, variance=variance)
    expected = oracle.predict(X_query)
    np.testing.assert_allclose(prior.cloaking_matrix(X_query, rows) @ y, expected, atol=1e-10)


@pytest.mark.parametrize("name", ["exact", "sparse"])
def test_with_the_model_s_own_noise_it_is_the_model(rows, rng, name):
    model: Prior = exact() if name == "exact" else sparse(rows)
    X_query = rng.normal(size=(6, 2))
    prior: Prior = RowNoisePrior(model=model, rows=rows, variance=model.row_noise(rows))
    np.testing.assert_allclose(
        prior.cloaking_matrix(X_query, rows), model.cloaking_matrix(X_query, rows), atol=1e-9
    )


def test_rows_that_are_not_believed_do_not_count(rows, variance, rng):
    X_query = rng.normal(size=(6, 2))
    variance = np.concatenate([variance[:15], np.full(5, 1e12)])
    without = RowNoisePrior(model=exact(), rows=rows[:15], variance=variance[:15])
    cloaking = RowNoisePrior(model=exact(), rows=rows, variance=variance).cloaking_matrix(
        X_query, rows
    )
    np.testing.assert_allclose(cloaking[:, 15:], 0.0, atol=1e-10)
    np.testing.assert_allclose(
        cloaking[:, :15], without.cloaking_matrix(X_query, rows[:15]), atol=1e-9
    )


def test_all_else_is_the_model_s(rows, variance, rng):
    """What the answers mean is not changed by what was asked."""
    model, X_query = exact(), rng.normal(size=(6, 2))
    prior = RowNoisePrior(model=model, rows=rows, variance=variance)
    assert prior.mean == 1.5
    for name, places in (
        ("cross_covariance", (X_query, rows)),
        ("row_covariance", (rows, X_query)),
        ("row_noise", (rows,)),
        ("query_covariance", (X_query,)),
        ("query_variance", (X_query,)),
        ("observation_noise", (X_query,)),
    ):
        found = getattr(prior, name)(*places)
        np.testing.assert_array_equal(found, getattr(model, name)(*places), err_msg=name)
    columns = rng.normal(size=(20, 3))
    np.testing.assert_array_equal(
        prior.output_covariance(rows).times(columns), model.output_covariance(rows).times(columns)
    )


def test_other_rows_are_refused(rows, variance):
    prior = RowNoisePrior(model=exact(), rows=rows, variance=variance)
    with pytest.raises(ValueError, match="other rows"):
        prior.cloaking_matrix(rows, rows[::-1])


@pytest.mark.parametrize(
    ("changed", "message"),
    [(slice(0, 3), r"shape \(20,\)"), (0.0, "positive"), (np.nan, "positive"), (np.inf, "finite")],
)
def test_variances_that_make_no_sense_are_refused(rows, variance, changed, message):
    if isinstance(changed, slice):
        variance = variance[changed]
    else:
        variance[4] = changed
    with pytest.raises(ValueError, match=message):
        RowNoisePrior(model=exact(), rows=rows, variance=variance)
