"""Forecasts against fits with the truth drawn from the prior, and against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from cloakgp import DPGPRegressor
from cloakgp.fitting.bands import DEFAULT_STAGES, ONE_STAGE, default_stages
from cloakgp.fitting.defaults import choose_query
from cloakgp.fitting.forecast import (
    FewRows,
    forecast_release,
)
from cloakgp.fitting.strategies import Budget
from cloakgp.models import ExactPrior
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.accounting import exact_noise_multiplier
from cloakgp.privacy.noise import LAPLACE, NOISES
from cloakgp.privacy.noise_choice import LEAD, choose_noise

BOUNDS = OutputBounds(-6.0, 6.0)
X = np.linspace(0.0, 8.0, 60)[:, None]
PRIOR = ExactPrior(kernel=RBF(2.0), noise_variance=0.25, mean=0.0)
SETTINGS = {"prior": PRIOR, "bounds": BOUNDS, "query": choose_query(X)}


def test_one_row_in_one_stage_is_a_closed_form():
    """One question about one output: the posterior variance of a normal with more noise."""
    alone = np.zeros((1, 1))
    forecast = forecast_release(
        alone,
        **{**SETTINGS, "query": choose_query(alone)},
        budget=Budget(1.0, 1e-3),
        stages=ONE_STAGE,
    )
    noise = 0.25 + (BOUNDS.width * exact_noise_multiplier(1.0, 1e-3)) ** 2
    assert forecast.error**2 == pytest.approx(1.0 - 1.0 / (1.0 + noise), rel=1e-9)
    assert forecast.output_error**2 == pytest.approx(forecast.error**2 + 0.25, rel=1e-9)
    assert (forecast.prior_error, forecast.stages, forecast.questions) == (1.0, 1, 1)


@pytest.mark.parametrize(
    ("stages", "noise", "delta"),
    [
        (ONE_STAGE, "gaussian", 1e-3),
        (DEFAULT_STAGES, "gaussian", 1e-3),
        (ONE_STAGE, "laplace", 0.0),
        (default_stages(LAPLACE), "laplace", 0.0),
    ],
    ids=["one stage", "three stages", "one stage, Laplace", "two stages, Laplace"],
)
def test_it_is_what_fits_reach_where_the_prior_is_true(stages, noise, delta, rng):
    """Mean squared errors over tables drawn from the prior: to a seventh, and three of their ses.

    In stages outputs are taken for normal given the answers, which they nearly are.
    """
    epsilon = 3.0
    forecast = forecast_release(X, **SETTINGS, budget=Budget(epsilon, delta, noise), stages=stages)
    root = np.linalg.cholesky(PRIOR.kernel(X) + 1e-9 * np.eye(len(X)))
    model = DPGPRegressor(
        PRIOR.kernel,
        PRIOR.noise_variance,
        mean=0.0,
        bounds=(BOUNDS.lo, BOUNDS.hi),
        epsilon=epsilon,
        delta=delta,
        noise=noise,
        learn=None,
        gap=1e-2,
        stages=None if len(stages) == 1 else "auto",
        interval=False,
    )
    squares = []
    for draw in range(24):
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
    weak, strong = (
        forecast_release(X, **SETTINGS, budget=Budget(epsilon, 1e-3), stages=DEFAULT_STAGES)
        for epsilon in (0.3, 3.0)
    )
    assert strong.error < weak.error < weak.prior_error
    once = forecast_release(X, **SETTINGS, budget=Budget(3.0, 1e-3), stages=ONE_STAGE)
    assert strong.error < once.error
    assert strong.seconds > once.seconds


def test_the_estimators_forecast_is_of_its_own_fit():
    model = DPGPRegressor(bounds=(-6, 6), epsilon=3.0, delta=1e-3, noise="gaussian")
    [forecast] = model.forecast(X)
    assert not hasattr(model, "n_features_in_")
    release = model.fit(X, np.sin(X[:, 0])).release_
    assert (forecast.epsilon, forecast.delta) == (3.0, 1e-3)
    # The spread of outputs is a question, too, and rounds of counts.
    assert forecast.stages == 3
    assert len(release.measurements) >= 5
    several = model.forecast(X, X[::10], np.ones(6), epsilons=[0.5, 1.0])
    assert [one.epsilon for one in several] == [0.5, 1.0]
    with pytest.raises(ValueError, match="epsilon must be positive"):
        model.forecast(X, epsilons=[-1.0])


# --- which noise ---


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-6, 1e-3, 0.01])
def test_the_noise_that_is_taken_is_the_better_one(epsilon, delta):
    model = DPGPRegressor(PRIOR.kernel, 0.25, bounds=(-6, 6), epsilon=epsilon, delta=delta)
    [chosen] = model.forecast(X)
    errors = {
        noise: model.set_params(noise=noise).forecast(X)[0].error
        for noise in ("gaussian", "laplace")
    }
    clearly = errors["gaussian"] < LEAD * errors["laplace"]
    assert chosen.noise == ("gaussian" if clearly else "laplace")
    assert chosen.error == errors[chosen.noise]


@pytest.mark.parametrize(
    ("epsilon", "delta", "law"), [(0.2, 2e-2, "gaussian"), (5.0, 1e-8, "laplace")]
)
def test_few_rows_choose_as_all_of_them_do(epsilon, delta, law):
    """By how much one noise is better is about the same, too."""
    many = np.random.default_rng(0).uniform(0, 8, size=(1000, 2))
    model = DPGPRegressor(
        PRIOR.kernel, 0.25, bounds=(-6, 6), epsilon=epsilon, delta=delta, inducing=12, stages=None
    )
    model.n_features_in_ = many.shape[1]
    prior, query = model._prior(many, BOUNDS, inducing=12), choose_query(many[:50])
    few = FewRows.of(many, prior)
    assert len(few.X) == 500

    def lead(X, *, known, spend=lambda budget: budget):
        errors = {
            noise: model._forecast(
                X,
                prior=known,
                query=query,
                epsilon=spend(Budget(epsilon, delta, noise=noise)).epsilon,
                noise=noise,
            ).error
            for noise in NOISES
        }
        return np.log(errors["laplace"] / errors["gaussian"])

    by_all, by_few = lead(many, known=prior), lead(few.X, known=few.prior, spend=few.budget)
    assert (by_all > 0) == (law == "gaussian")
    assert by_few == pytest.approx(by_all, abs=0.05)
    assert model._noise(many, prior=prior, query=query) == law


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_few_rows_have_less_noise_by_their_share(noise):
    many = np.linspace(0.0, 8.0, 2000)[:, None]
    few, budget = FewRows.of(many, PRIOR), Budget(1.0, 1e-4, noise=noise)
    assert few.share == 4.0
    assert few.prior.noise_variance == PRIOR.noise_variance / 4
    assert few.budget(budget).unit_sd() == pytest.approx(budget.unit_sd() / 4, rel=1e-6)
    # Of few rows all are taken, as they are.
    all_of_them = FewRows.of(X, PRIOR)
    assert all_of_them.X is X
    assert all_of_them.prior is PRIOR
    assert all_of_them.budget(budget) == budget


def test_a_choice_reads_no_output_and_forecasts_only_where_it_may_matter():
    def never(_):
        raise AssertionError("no forecast is needed")

    assert choose_noise("auto", epsilon=1.0, delta=0.0, expected_error=never) == "laplace"
    assert choose_noise("gaussian", epsilon=1.0, delta=1e-3, expected_error=never) == "gaussian"
    assert choose_noise("laplace", epsilon=1.0, delta=1e-3, expected_error=never) == "laplace"
    # There Gaussian noise has the smaller sd on one question, and asks more at once.
    assert choose_noise("auto", epsilon=1.0, delta=0.4, expected_error=never) == "gaussian"
    better = {"laplace": 1.0, "gaussian": 2.0}.__getitem__
    assert choose_noise("auto", epsilon=1.0, delta=1e-6, expected_error=better) == "laplace"
    with pytest.raises(ValueError, match="needs a delta"):
        choose_noise("gaussian", epsilon=1.0, delta=0.0, expected_error=never)
    with pytest.raises(ValueError, match="noise must be one of auto, gaussian, laplace"):
        choose_noise("cauchy", epsilon=1.0, delta=1e-3, expected_error=never)
