"""A published function: one function, unbiased, with the noise it states."""

from __future__ import annotations

import math

import numpy as np
import pytest
from conditioning import dense
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, Matern

from cloakgp.design import Certificate
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.rkhs import function_span, rkhs_sensitivity
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.accounting import exact_noise_multiplier
from cloakgp.privacy.function import measure_function
from cloakgp.release import DenseStrategy, Measurement, Release
from cloakgp.release.functional import ReleasedFunction

BUDGET = {"bounds": (-2.0, 2.0), "epsilon": 1.0, "delta": 0.01}
EXACT = ExactPrior(kernel=2.0 * RBF(1.0), noise_variance=0.5, mean=0.3)
ROUGH = ExactPrior(kernel=2.0 * Matern(1.0, nu=0.5), noise_variance=0.5, mean=0.3)
SPARSE = SparsePrior(
    kernel=2.0 * RBF(1.0), noise_variance=0.5, mean=0.3, inducing=np.array([[1.0], [2.5], [4.0]])
)
PRIORS = {"exact": EXACT, "rough": ROUGH, "sparse": SPARSE}


@pytest.fixture(params=PRIORS)
def prior(request):
    return PRIORS[request.param]


@pytest.fixture
def table(rng):
    X = rng.uniform(0, 5, size=(40, 1))
    return X, np.sin(X).ravel()


def released(prior, X, y, **settings):
    return ReleasedFunction.given(prior, measure_function(X, y, prior=prior, **BUDGET, **settings))


def test_one_function_however_it_is_asked(prior, table, rng):
    """Alone, together, repeated or in another order: the differences are rounding, not noise."""
    function = released(prior, *table)
    points = rng.uniform(-3, 8, size=(60, 1))
    together = function(points)
    noise = function.noise_sd(points).max()
    alone = np.array([function(point[None, :])[0] for point in points])
    order = rng.permutation(60)
    again = function(np.vstack([points[order], points]))
    for other in (alone, again[60:], again[:60][np.argsort(order)]):
        assert np.abs(other - together).max() < 1e-6 * noise


def test_another_release_is_another_function(prior, table):
    """The check above can fail: two draws differ by their noise."""
    first, second = (released(prior, *table) for _ in range(2))
    points = table[0][:5]
    assert np.abs(first(points) - second(points)).max() > 1e-3 * first.noise_sd(points).max()


def test_unbiased_with_the_stated_noise(table):
    X, y = table
    points = np.array([[0.5], [2.0], [4.5], [7.0]])
    draws = np.array([released(EXACT, X, y)(points) for _ in range(200)])
    expected = EXACT.mean + EXACT.cloaking_matrix(points, X) @ (y - EXACT.mean)
    root = np.linalg.cholesky(released(EXACT, X, y).noise_cov(points))
    whitened = np.linalg.solve(root, (draws - expected).T)
    assert np.abs(whitened.mean(axis=1)).max() < 5 / math.sqrt(200)
    assert np.abs(np.cov(whitened) - np.eye(4)).max() < 5 * math.sqrt(2 / 200)


def test_noise_is_the_papers_less_what_the_rows_do_not_span(prior, table):
    """c² k(x, x') = the published covariance plus what a public draw could add."""
    X, y = table
    points = np.linspace(-6, 12, 50)[:, None]
    function = released(prior, X, y)
    scale = 4.0 * rkhs_sensitivity(prior, X) * exact_noise_multiplier(1.0, 0.01)
    kernel = prior.cross_covariance(points, points.copy())
    unspanned = function_span(prior, X).unspanned_covariance(points)
    assert function.noise_cov(points) + scale**2 * unspanned == pytest.approx(
        scale**2 * kernel, rel=1e-6, abs=1e-9 * scale**2
    )
    assert np.linalg.eigvalsh(unspanned).min() > -1e-7
    full = scale * np.sqrt(np.diag(kernel))
    assert (function.noise_sd(points) <= full * (1 + 1e-6) + 1e-9).all()


def test_noise_is_the_papers_near_the_rows_and_gone_far_from_them(table):
    function = released(EXACT, *table)
    scale = 4.0 * rkhs_sensitivity(EXACT, table[0]) * exact_noise_multiplier(1.0, 0.01)
    assert function.noise_sd(table[0]) == pytest.approx(scale * math.sqrt(2.0), rel=1e-6)
    assert function.noise_sd([[60.0]]) == pytest.approx(0.0, abs=1e-9)
    assert function([[60.0]]) == pytest.approx([EXACT.mean])


@given(st.floats(-1e3, 1e3), st.floats(0.01, 100.0))
def test_shifted_and_scaled_outputs_give_the_shifted_and_scaled_function(shift, factor):
    X, y = np.linspace(0, 5, 12)[:, None], np.linspace(-2, 2, 12)
    points = np.linspace(-1, 6, 9)[:, None]
    plain = released(EXACT, X, y, insecure_seed=3)
    prior = ExactPrior(
        kernel=2.0 * factor**2 * RBF(1.0),
        noise_variance=0.5 * factor**2,
        mean=shift + factor * EXACT.mean,
    )
    measured = measure_function(
        X,
        shift + factor * y,
        prior=prior,
        bounds=(shift - 2 * factor, shift + 2 * factor),
        epsilon=1.0,
        delta=0.01,
        insecure_seed=3,
    )
    moved = ReleasedFunction.given(prior, measured)
    # A basis is determined up to signs, and so the values only up to the noise's law.
    assert moved.noise_sd(points) == pytest.approx(factor * plain.noise_sd(points), rel=1e-4)


def test_the_answers_serve_an_ordinary_release(prior, table):
    """Posterior given the coordinates: closer to the mean without privacy than the raw function."""
    X, y = table
    errors = {"raw": [], "posterior": []}
    truth = prior.mean + prior.cloaking_matrix(X, X) @ (y - prior.mean)
    for _ in range(30):
        measured = measure_function(X, y, prior=prior, **BUDGET)
        strategy = DenseStrategy(
            X=X,
            matrix=measured.questions.strategy,
            X_query=X,
            reconstruction=prior.cross_covariance(X, X.copy()) @ measured.questions.representers,
            certificate=Certificate(criterion="trace", gap=0.0),
        )
        measurement = Measurement(
            strategy=strategy, question=OutputBounds(-2.0, 2.0), answers=measured.answers
        )
        release = Release(prior=prior, measurements=(measurement,))
        raw = ReleasedFunction.given(prior, measured)
        assert release.published().values == pytest.approx(raw(X), abs=1e-6)
        errors["raw"].append(np.square(raw(X) - truth).mean())
        errors["posterior"].append(np.square(release.predict(X) - truth).mean())
    assert np.mean(errors["posterior"]) < 0.6 * np.mean(errors["raw"])


def test_inputs_of_another_width_are_refused(table):
    with pytest.raises(ValueError, match="2 columns, expected 1"):
        released(EXACT, *table)([[1.0, 2.0]])


def test_other_answers_are_no_function(table):
    measured = measure_function(*table, prior=EXACT, **BUDGET)
    strategy = dense(measured.X, measured.questions.strategy)
    with pytest.raises(ValueError, match="only criterion='functional'"):
        ReleasedFunction.of_measurement(
            EXACT,
            Measurement(
                strategy=strategy,
                question=OutputBounds(-2.0, 2.0),
                answers=measured.answers,
            ),
        )
