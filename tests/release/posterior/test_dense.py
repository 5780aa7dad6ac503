"""The posterior given noisy answers against brute force on the joint Gaussian."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conditioning import measured, posterior_of
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from cloakgp.models import APPROXIMATIONS, ExactPrior, SparsePrior
from cloakgp.privacy import Answers, Guarantee, OutputBounds
from cloakgp.release import tables as tables_module

KERNEL = 2.0 * RBF(1.1) + WhiteKernel(0.05)


def priors():
    yield ExactPrior(kernel=KERNEL, noise_variance=0.2, mean=0.7)
    for approximation in APPROXIMATIONS:
        yield SparsePrior(
            kernel=KERNEL,
            noise_variance=0.2,
            mean=0.7,
            inducing=np.linspace(-2, 2, 6)[:, None],
            approximation=approximation,
        )


@pytest.fixture(params=list(priors()), ids=["exact", *APPROXIMATIONS])
def prior(request):
    return request.param


@pytest.fixture
def tables(rng):
    X, X_query = rng.uniform(-2, 2, size=(14, 1)), rng.uniform(-2.5, 2.5, size=(5, 1))
    return X, X_query, rng.normal(size=14)


def brute_force(prior, rows, X_query, questions, noise_sds, answers):
    """Condition (f_*, answers) by dense inverses. ``rows`` is one table per group of questions.

    ``questions`` are (group, R) pairs: their answers are R y + noise, y the outputs of that group.
    """
    X = np.vstack(rows)
    starts = np.cumsum([0, *map(len, rows)])
    K_y = prior.row_covariance(X, X.copy()) + np.diag(
        np.concatenate([prior.row_noise(inputs) for inputs in rows])
    )
    stacked = np.zeros((sum(len(R) for _, R in questions), len(X)))
    noise, row = np.zeros(len(stacked)), 0
    for (group, R), sd in zip(questions, noise_sds, strict=True):
        stacked[row : row + len(R), starts[group] : starts[group + 1]] = R
        noise[row : row + len(R)] = sd**2
        row += len(R)
    answer_cov = stacked @ K_y @ stacked.T + np.diag(noise)
    gain = prior.cross_covariance(X_query, X) @ stacked.T @ np.linalg.inv(answer_cov)
    mean = prior.mean + gain @ (answers - stacked @ np.full(len(X), prior.mean))
    cov = prior.query_covariance(X_query) - gain @ stacked @ prior.cross_covariance(X_query, X).T
    return mean, cov


def raw_answers(release):
    """R y + noise, undoing the centre."""
    return np.concatenate([measurement.residuals()[:, 0] for measurement in release.measurements])


def test_one_table_against_brute_force(prior, tables, make_release, rng):
    X, X_query, y = tables
    R = rng.normal(size=(4, 14))
    release = make_release(prior, X, y, strategy=R, noise_sd=0.3, bounds=(-2.0, 5.0))
    mean, cov = brute_force(prior, [X], X_query, [(0, R)], [0.3], raw_answers(release))
    ours = posterior_of(prior, release.measurements)
    np.testing.assert_allclose(ours.mean(X_query), mean, atol=1e-9)
    np.testing.assert_allclose(ours.covariance(X_query), cov, atol=1e-9)
    np.testing.assert_allclose(ours.variance(X_query), np.diag(cov), atol=1e-9)


def test_two_measurements_of_the_same_rows_against_brute_force(prior, tables, make_release, rng):
    X, X_query, y = tables
    first, second = rng.normal(size=(4, 14)), rng.normal(size=(2, 14))
    one = make_release(prior, X, y, strategy=first, noise_sd=0.3, seed=1)
    two = make_release(prior, X, y, strategy=second, noise_sd=1.1, seed=2)
    both = one.combine(two)
    mean, cov = brute_force(
        prior, [X], X_query, [(0, first), (0, second)], [0.3, 1.1], raw_answers(both)
    )
    np.testing.assert_allclose(both.predict(X_query), mean, atol=1e-9)
    np.testing.assert_allclose(both.predict(X_query, return_cov=True)[1], cov, atol=1e-9)


def test_two_tables_against_brute_force(prior, tables, make_release, rng):
    X, X_query, y = tables
    Z, other = rng.uniform(-2, 2, size=(9, 1)), rng.normal(size=9)
    first, second, third = (rng.normal(size=(k, n)) for k, n in ((4, 14), (2, 9), (3, 14)))
    one = make_release(prior, X, y, strategy=first, noise_sd=0.3, seed=1)
    two = make_release(prior, Z, other, strategy=second, noise_sd=1.1, seed=2)
    three = make_release(prior, X, y, strategy=third, noise_sd=0.6, seed=3)
    both = one.combine(two, three)
    assert [part.strategy.table for part in both.measurements] == [0, 1, 0]
    mean, cov = brute_force(
        prior,
        [X, Z],
        X_query,
        [(0, first), (1, second), (0, third)],
        [0.3, 1.1, 0.6],
        raw_answers(both),
    )
    np.testing.assert_allclose(both.predict(X_query), mean, atol=1e-9)
    np.testing.assert_allclose(both.predict(X_query, return_cov=True)[1], cov, atol=1e-9)


@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(1, 8),
    answers=st.integers(1, 10),
    noise_sd=st.floats(1e-3, 1e3),
)
def test_any_questions_against_brute_force(seed, rows, answers, noise_sd):
    rng = np.random.default_rng(seed)
    prior = ExactPrior(kernel=Matern(1.0, nu=1.5), noise_variance=0.3, mean=-0.4)
    X, X_query = rng.normal(size=(rows, 2)), rng.normal(size=(3, 2))
    R, values = rng.normal(size=(answers, rows)), rng.normal(size=answers)
    mean, cov = brute_force(prior, [X], X_query, [(0, R)], [noise_sd], values)
    ours = posterior_of(prior, [_measurement(X, R, values, noise_sd)])
    np.testing.assert_allclose(ours.mean(X_query), mean, atol=1e-6)
    np.testing.assert_allclose(ours.covariance(X_query), cov, atol=1e-6)
    # Answers never make anything less certain.
    assert (ours.variance(X_query) <= prior.query_variance(X_query) + 1e-12).all()


def _measurement(X, R, values, noise_sd):
    answers = Answers(
        values=values[:, None],
        noise_sd=noise_sd,
        guarantee=Guarantee(epsilon=1.0, delta=0.1, mu=1.0),
    )
    return measured(X, R, answers, question=OutputBounds(-1.0, 1.0))


def test_all_outputs_without_noise_give_the_ordinary_gaussian_process(tables, make_release, rng):
    X, X_query, y = tables
    prior = ExactPrior(kernel=ConstantKernel(2.0) * RBF(1.1), noise_variance=0.2, mean=0.0)
    invertible = np.linalg.qr(rng.normal(size=(14, 14)))[0]
    release = make_release(prior, X, y, strategy=invertible, noise_sd=1e-6)
    oracle = GaussianProcessRegressor(prior.kernel, alpha=0.2, optimizer=None).fit(X, y)
    mean, cov = oracle.predict(X_query, return_cov=True)
    np.testing.assert_allclose(release.predict(X_query), mean, atol=1e-4)
    np.testing.assert_allclose(release.predict(X_query, return_cov=True)[1], cov, atol=1e-6)


def test_useless_answers_leave_the_prior(prior, tables, make_release):
    X, X_query, y = tables
    release = make_release(prior, X, y, noise_sd=1e9)
    mean, cov = release.predict(X_query, return_cov=True)
    np.testing.assert_allclose(mean, 0.7, atol=1e-6)
    np.testing.assert_allclose(cov, prior.query_covariance(X_query), atol=1e-6)


def test_turning_questions_and_answers_together_changes_nothing(prior, tables, make_release, rng):
    X, X_query, y = tables
    release = make_release(prior, X, y, strategy=rng.normal(size=(4, 14)))
    (one,) = release.measurements
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    turned = replace(
        one,
        strategy=replace(one.strategy, matrix=turn @ one.strategy.matrix),
        answers=replace(one.answers, values=turn @ one.answers.values),
    )
    first, second = (posterior_of(prior, [part]) for part in (one, turned))
    np.testing.assert_allclose(first.mean(X_query), second.mean(X_query), atol=1e-10)
    np.testing.assert_allclose(first.covariance(X_query), second.covariance(X_query), atol=1e-10)


def test_the_same_question_twice_is_one_with_less_noise(prior, tables, make_release, rng):
    X, X_query, y = tables
    R = rng.normal(size=(3, 14))
    one, two = (make_release(prior, X, y, strategy=R, noise_sd=0.8, seed=seed) for seed in (1, 2))
    both = one.combine(two)
    pooled = replace(
        one.measurements[0],
        answers=replace(
            one.measurements[0].answers,
            values=(one.measurements[0].answers.values + two.measurements[0].answers.values) / 2,
            noise_sd=0.8 / np.sqrt(2),
        ),
    )
    expected = posterior_of(prior, [pooled])
    np.testing.assert_allclose(both.predict(X_query), expected.mean(X_query), atol=1e-9)
    np.testing.assert_allclose(
        both.predict(X_query, return_cov=True)[1], expected.covariance(X_query), atol=1e-9
    )


def test_nothing_asked_is_the_prior(prior, tables, make_release):
    X, X_query, y = tables
    release = make_release(prior, X, y, strategy=np.zeros((0, 14)))
    mean, cov = release.predict(X_query, return_cov=True)
    np.testing.assert_array_equal(mean, np.full(5, 0.7))
    np.testing.assert_allclose(cov, prior.query_covariance(X_query))
    np.testing.assert_allclose(
        release.predict(X_query, return_std=True)[1] ** 2, prior.query_variance(X_query)
    )


def test_blocks_of_rows_and_of_query_points_change_nothing(
    prior, tables, make_release, rng, monkeypatch
):
    X, X_query, y = tables
    release = make_release(prior, X, y, strategy=rng.normal(size=(4, 14)))
    whole = posterior_of(prior, release.measurements)
    monkeypatch.setattr(tables_module, "BLOCK_ROWS", 3)
    parts = posterior_of(prior, release.measurements)
    np.testing.assert_allclose(parts.mean(X_query), whole.mean(X_query), atol=1e-12)
    np.testing.assert_allclose(parts.covariance(X_query), whole.covariance(X_query), atol=1e-12)


def test_more_query_points_than_a_block(make_release, rng):
    X = rng.uniform(0, 1, size=(10, 1))
    prior = ExactPrior(kernel=RBF(0.3), noise_variance=0.1, mean=0.0)
    release = make_release(prior, X, np.sin(X).ravel())
    many = np.linspace(0, 1, tables_module.BLOCK_ROWS + 5)[:, None]
    mean, std = release.predict(many, return_std=True)
    ends = [0, tables_module.BLOCK_ROWS - 1, tables_module.BLOCK_ROWS, len(many) - 1]
    few = release.predict(many[ends], return_std=True)
    np.testing.assert_allclose(mean[ends], few[0], atol=1e-12)
    np.testing.assert_allclose(std[ends], few[1], atol=1e-12)


def test_variance_is_never_below_zero(make_release, rng):
    X = rng.uniform(0, 1, size=(40, 1))
    prior = ExactPrior(kernel=1e6 * RBF(30.0), noise_variance=0.0, mean=0.0)
    release = make_release(prior, X, np.zeros(40), noise_sd=1e-4)
    _, std = release.predict(np.linspace(0, 1, 200)[:, None], return_std=True)
    assert np.isfinite(std).all()
    assert (std >= 0).all()
