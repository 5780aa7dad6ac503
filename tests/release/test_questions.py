"""What is asked, given what is known: against conditioning of the dense joint Gaussian."""

from __future__ import annotations

import numpy as np
import pytest
from conditioning import posterior_of
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from cloakgp import design
from cloakgp.criteria import criteria_for
from cloakgp.fitting.strategies import Budget, Query, choose_strategy
from cloakgp.models import APPROXIMATIONS, ExactPrior, SparsePrior
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.accounting import exact_noise_multiplier

BOUNDS, BUDGET = OutputBounds(-3.0, 3.0), Budget(epsilon=1.0, delta=1e-3)
KERNEL = ConstantKernel(2.0) * RBF(1.1) + WhiteKernel(0.05)


def prior_of(approximation):
    settings = {"kernel": KERNEL, "noise_variance": 0.2, "mean": 0.7}
    if approximation is None:
        return ExactPrior(**settings)
    grid = np.linspace(0, 4, 5)[:, None]
    return SparsePrior(**settings, inducing=grid, approximation=approximation)


@pytest.fixture(params=[None, *APPROXIMATIONS], ids=str)
def prior(request):
    return prior_of(request.param)


@pytest.fixture
def asked(monkeypatch):
    """Record what `design_bayes` is asked for."""
    seen = []

    def recording(covariance, crossed, **settings):
        seen.append((covariance, crossed, settings))
        return original(covariance, crossed, **settings)

    original = design.design_bayes
    monkeypatch.setattr(design, "design_bayes", recording)
    return seen


def joint(prior, tables, X_query):
    """Prior covariance of (outputs of all tables, f_*), each table's noise its own."""
    X = np.vstack(tables)
    noise = np.concatenate([prior.row_noise(table) for table in tables])
    crossed = prior.cross_covariance(X_query, X)
    outputs = prior.row_covariance(X, X.copy()) + np.diag(noise)
    return np.block([[outputs, crossed.T], [crossed, prior.query_covariance(X_query)]])


def conditioned(covariance, questions_, noise):
    """Covariance given answers questions @ (everything) + noise."""
    answers = questions_ @ covariance @ questions_.T + np.diag(noise)
    crossed = covariance @ questions_.T
    return covariance - crossed @ np.linalg.inv(answers) @ crossed.T


@pytest.fixture
def history(make_release, rng):
    """Two tables, the first asked twice; the second shares some inputs with the first."""

    def build(prior):
        X, Z = rng.uniform(0, 4, size=(10, 1)), rng.uniform(0, 4, size=(6, 1))
        Z[:3] = X[:3]
        parts = [
            make_release(
                prior,
                rows,
                np.zeros(len(rows)),
                strategy=rng.normal(size=(3, len(rows))),
                noise_sd=sd,
            )
            for rows, sd in ((X, 0.4), (Z, 0.9), (X, 0.6))
        ]
        return X, Z, parts[0].combine(*parts[1:]).measurements

    return build


@pytest.mark.parametrize("table", [0, 1, 2])
def test_designs_see_the_conditional_covariances(prior, table, history, asked, rng):
    X, Z, measurements = history(prior)
    points, weights = rng.uniform(-0.5, 4.5, size=(4, 1)), rng.uniform(0.5, 2.0, size=4)
    fresh = rng.uniform(0, 4, size=(7, 1))
    rows = [X, Z, fresh][table]
    choose_strategy(
        rows,
        prior=prior,
        query=Query(X=points, weights=weights),
        question=BOUNDS,
        budget=BUDGET,
        known=posterior_of(prior, measurements),
        table=table,
    )
    ((covariance, crossed, settings),) = asked
    stacked = np.zeros((9, 10 + 6 + 7 + 4))
    stacked[0:3, :10] = measurements[0].strategy.matrix
    stacked[3:6, 10:16] = measurements[1].strategy.matrix
    stacked[6:9, :10] = measurements[2].strategy.matrix
    noise = np.repeat([0.4, 0.9, 0.6], 3) ** 2
    expected = conditioned(joint(prior, [X, Z, fresh], points), stacked, noise)
    mine = [slice(0, 10), slice(10, 16), slice(16, 23)][table]
    np.testing.assert_allclose(covariance.times(np.eye(len(rows))), expected[mine, mine], atol=1e-9)
    roots = np.sqrt(weights)
    # An approximation may leave out the last rounding of K_**; the rest is exact.
    np.testing.assert_allclose(crossed, expected[mine, 23:] * roots, atol=1e-9)
    assert settings["prior_variance"] == pytest.approx(weights @ np.diag(expected)[23:], rel=1e-9)
    assert settings["noise_sd"] == pytest.approx(6.0 * exact_noise_multiplier(1.0, 1e-3))
    smallest = np.linalg.eigvalsh(expected[mine, mine])[0]
    assert 0 < covariance.least_noise <= smallest * (1 + 1e-9)


def test_without_history_designs_see_the_prior(prior, asked, rng):
    X, points = rng.uniform(0, 4, size=(10, 1)), rng.uniform(0, 4, size=(3, 1))
    chosen = choose_strategy(X, prior=prior, query=Query(X=points), question=BOUNDS, budget=BUDGET)
    ((covariance, crossed, settings),) = asked
    expected = joint(prior, [X], points)
    np.testing.assert_allclose(covariance.times(np.eye(10)), expected[:10, :10], atol=1e-9)
    np.testing.assert_allclose(crossed, expected[:10, 10:], atol=1e-9)
    assert settings["prior_variance"] == pytest.approx(np.trace(expected[10:, 10:]))
    assert chosen.table == 0
    assert chosen.reconstruction is None
    assert chosen.certificate.criterion == "bayes"
    np.testing.assert_allclose(np.square(chosen.matrix).sum(axis=0), 1.0, atol=1e-12)


@pytest.mark.parametrize("criterion", ["trace", "logdet"])
def test_the_papers_criteria_reconstruct_the_cloaking_matrix(criterion, prior, rng):
    X, points = rng.uniform(0, 4, size=(10, 1)), rng.uniform(0, 4, size=(3, 1))
    chosen = choose_strategy(
        X, prior=prior, query=Query(X=points), question=BOUNDS, budget=BUDGET, criterion=criterion
    )
    np.testing.assert_allclose(
        chosen.reconstruction @ chosen.matrix, prior.cloaking_matrix(points, X), atol=1e-9
    )
    assert chosen.certificate.criterion == criterion


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_bayes_leaves_least_variance_of_all_mechanisms(epsilon, prior, rng):
    X, points = rng.uniform(0, 4, size=(30, 1)), rng.uniform(0, 4, size=(8, 1))
    sd = 6.0 * exact_noise_multiplier(epsilon, 1e-3)
    K_y = prior.row_covariance(X, X.copy()) + np.diag(prior.row_noise(X))
    crossed = prior.cross_covariance(points, X)
    explained = {}
    for criterion in [each.name for each in criteria_for("numbers")]:
        R = choose_strategy(
            X,
            prior=prior,
            query=Query(X=points),
            question=BOUNDS,
            budget=Budget(epsilon=epsilon, delta=1e-3),
            criterion=criterion,
        ).matrix
        answers = R @ K_y @ R.T + sd**2 * np.eye(len(R))
        T = R @ crossed.T
        explained[criterion] = float(np.vdot(T, np.linalg.solve(answers, T)))
    assert explained["bayes"] > 1.01 * max(explained["trace"], explained["logdet"])


@pytest.mark.parametrize(
    "weights",
    [
        np.ones(2),
        np.zeros(3),
        np.array([1.0, -1.0, 1.0]),
        np.array([1, np.nan, 1]),
        np.ones((3, 1)),
    ],
)
def test_weights_that_are_none(weights):
    with pytest.raises(ValueError, match="query weights must be positive and finite"):
        choose_strategy(
            np.zeros((4, 1)),
            prior=prior_of(None),
            query=Query(X=np.zeros((3, 1)), weights=weights),
            question=BOUNDS,
            budget=BUDGET,
        )


def test_unknown_mechanisms_are_named():
    with pytest.raises(
        ValueError,
        match="criterion must be one of bayes, trace, logdet, functional for numbers, got 'x'",
    ):
        choose_strategy(
            np.zeros((4, 1)),
            prior=prior_of(None),
            query=Query(X=np.zeros((3, 1))),
            question=BOUNDS,
            budget=BUDGET,
            criterion="x",
        )
