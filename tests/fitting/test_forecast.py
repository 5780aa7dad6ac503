"""Forecasts against fits with the truth drawn from the prior, and against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from cloakgp import DPGPRegressor
from cloakgp.fitting.bands import DEFAULT_STAGES, ONE_STAGE
from cloakgp.fitting.defaults import choose_query
from cloakgp.fitting.forecast import forecast_release
from cloakgp.models import ExactPrior
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.accounting import exact_noise_multiplier

BOUNDS = OutputBounds(-6.0, 6.0)
X = np.linspace(0.0, 8.0, 60)[:, None]
PRIOR = ExactPrior(kernel=RBF(2.0), noise_variance=0.25, mean=0.0)
SETTINGS = {"prior": PRIOR, "bounds": BOUNDS, "query": choose_query(X), "delta": 1e-3}


def test_one_row_in_one_stage_is_a_closed_form():
    """One question about one output: the posterior variance of a normal with more noise."""
    alone = np.zeros((1, 1))
    [forecast] = forecast_release(
        alone,
        **{**SETTINGS, "query": choose_query(alone)},
        epsilons=[1.0],
        stages=ONE_STAGE,
    )
    noise = 0.25 + (BOUNDS.width * exact_noise_multiplier(1.0, 1e-3)) ** 2
    assert forecast.error**2 == pytest.approx(1.0 - 1.0 / (1.0 + noise), rel=1e-9)
    assert forecast.output_error**2 == pytest.approx(forecast.error**2 + 0.25, rel=1e-9)
    assert (forecast.prior_error, forecast.stages, forecast.questions) == (1.0, 1, 1)


@pytest.mark.parametrize("stages", [ONE_STAGE, DEFAULT_STAGES], ids=["one stage", "three stages"])
def test_it_is_what_fits_reach_where_the_prior_is_true(stages, rng):
    """Mean squared errors over tables drawn from the prior: to a seventh, and three of their ses.

    In stages outputs are taken for normal given the answers, which they nearly are.
    """
    epsilon = 3.0
    [forecast] = forecast_release(X, **SETTINGS, epsilons=[epsilon], stages=stages)
    root = np.linalg.cholesky(PRIOR.kernel(X) + 1e-9 * np.eye(len(X)))
    model = DPGPRegressor(
        PRIOR.kernel,
        PRIOR.noise_variance,
        mean=0.0,
        bounds=(BOUNDS.lo, BOUNDS.hi),
        epsilon=epsilon,
        delta=1e-3,
        learn=None,
        gap=1e-2,
        stages=None if len(stages) == 1 else "auto",
    )
    squares = []
    for draw in range(40):
        curve = root @ rng.normal(size=len(X))
        outputs = curve + 0.5 * rng.normal(size=len(X))
        fitted = model.set_params(insecure_seed=10 * draw).fit(X, outputs)
        squares.append(np.mean(np.square(fitted.predict(X) - curve)))
    spread = np.std(squares, ddof=1) / np.sqrt(len(squares))
    assert abs(np.mean(squares) - forecast.error**2) < 3 * spread + forecast.error**2 / 7
    assert forecast.stages == len(stages)
    if len(stages) == 1:
        assert forecast.questions == len(model.release_.measurements[0].answers.values)


def test_more_budget_and_more_stages_are_worth_more():
    weak, strong = forecast_release(X, **SETTINGS, epsilons=[0.3, 3.0], stages=DEFAULT_STAGES)
    assert strong.error < weak.error < weak.prior_error
    [once] = forecast_release(X, **SETTINGS, epsilons=[3.0], stages=ONE_STAGE)
    assert strong.error < once.error
    assert strong.seconds > once.seconds


def test_the_estimators_forecast_is_of_its_own_fit():
    model = DPGPRegressor(bounds=(-6, 6), epsilon=3.0, delta=1e-3)
    [forecast] = model.forecast(X)
    assert not hasattr(model, "n_features_in_")
    release = model.fit(X, np.sin(X[:, 0])).release_
    assert (forecast.epsilon, forecast.delta) == (3.0, 1e-3)
    # The spread of outputs is a question, too.
    assert forecast.stages == 3
    assert len(release.measurements) == 4
    several = model.forecast(X, X[::10], np.ones(6), epsilons=[0.5, 1.0])
    assert [one.epsilon for one in several] == [0.5, 1.0]
    with pytest.raises(ValueError, match="epsilon must be positive"):
        model.forecast(X, epsilons=[-1.0])
