"""No release of a schedule publishes or spends more than is said before anything is drawn."""

import math

import numpy as np
import pytest
from fits import release_held
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF

from cloakgp.fitting.bands import DEFAULT_STAGES, ONE_STAGE, Stage
from cloakgp.fitting.strata import CHECKS, MOST
from cloakgp.fitting.strategies import Budget, Query
from cloakgp.fitting.worst_schedule import worst_of_schedule
from cloakgp.models import ExactPrior
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.composition import compose_with_selection
from cloakgp.release import Hyperprior

FIVE = (Stage(share=0.2), *(Stage(share=0.2, width=width) for width in (1.5, None, 0.5, 1.0)))


@given(
    rows=st.sampled_from([2, 3, 5, 11, 21, 41]),
    epsilon=st.floats(-2.0, 5.0).map(lambda power: 10.0**power),
    delta=st.floats(-12.0, -1.0).map(lambda power: 10.0**power),
    width=st.floats(-3.0, 6.0).map(lambda power: 10.0**power),
    stages=st.sampled_from([ONE_STAGE, DEFAULT_STAGES, FIVE]),
    searches=st.booleans(),
    learns_noise=st.booleans(),
    lengthscale=st.sampled_from([1e-3, 1.0]),
)
def test_no_release_exceeds_what_is_said_beforehand(
    rows, epsilon, delta, width, stages, searches, learns_noise, lengthscale
):
    bounds = OutputBounds(-width, width)
    worst = worst_of_schedule(
        stages,
        budget=Budget(epsilon, delta),
        rows=rows,
        search_within=bounds if searches else None,
        ask_spread=learns_noise,
    )
    assert compose_with_selection(worst, 1.0).delta == delta
    X = np.linspace(0, 10, rows)[:, None]

    def prior(within):
        variance = within.width**2 / 16
        return ExactPrior(
            kernel=variance * RBF(lengthscale), noise_variance=variance / 9, mean=within.middle
        )

    released = release_held(
        X,
        np.sin(X).ravel(),
        prior=prior(bounds),
        question=bounds,
        query=Query(X),
        epsilon=epsilon,
        delta=delta,
        gap=0.1,
        hyperprior=Hyperprior(noise_variance=True, mean=False) if learns_noise else None,
        stages=stages,
        prior_within=prior if searches else None,
    ).guarantee
    assert released.mu <= worst.mu
    assert released.answers <= worst.answers
    assert released.coarseness <= worst.coarseness


def test_strata_in_which_it_is_asked_how_noisy_outputs_are_count():
    budget = Budget(10.0, 1e-3)
    worst = worst_of_schedule(DEFAULT_STAGES, budget=budget, rows=120, ask_spread=True)
    assert worst.answers == 3 * 120 + 4
    X = np.linspace(0, 10, 120)[:, None]
    released = release_held(
        X,
        np.sin(X).ravel(),
        prior=ExactPrior(kernel=0.5 * RBF(1e-3), noise_variance=0.1, mean=0.0),
        question=OutputBounds(-1.0, 1.0),
        query=Query(X),
        epsilon=10.0,
        delta=1e-3,
        gap=0.1,
        hyperprior=Hyperprior(mean=False),
        stages=DEFAULT_STAGES,
    )
    assert released.measurements[-1].strategy.n_answers == 4
    assert released.guarantee.answers <= worst.answers


def test_what_was_forgotten_counts():
    """Two stages of as many questions as rows were all that was known of."""
    one = worst_of_schedule(ONE_STAGE, budget=Budget(20.0, 0.01), rows=21)
    five = worst_of_schedule(FIVE, budget=Budget(20.0, 0.01), rows=21, ask_spread=True)
    searched = worst_of_schedule(
        FIVE, budget=Budget(20.0, 0.01), rows=21, search_within=OutputBounds(0, 1e6)
    )
    assert (one.answers, five.answers) == (21, 5 * 21 + 1)
    assert five.answers < searched.answers <= 5 * 21 + 6 * 18 + CHECKS * MOST
    assert one.mu == five.mu == searched.mu
    labels = worst_of_schedule(ONE_STAGE, budget=Budget(1.0, 0.01), rows=21, channels=3)
    assert labels.answers == 63


@pytest.mark.parametrize("delta", [1e-25, 1e-19])
def test_a_part_that_no_grid_can_hold_is_refused_beforehand(delta):
    with pytest.raises(ValueError, match="too small"):
        worst_of_schedule(DEFAULT_STAGES, budget=Budget(1.0, delta), rows=4000)


def test_parts_that_exceed_the_whole_are_refused_beforehand(monkeypatch):
    from cloakgp.fitting import worst_schedule

    whole = worst_schedule.schedule_stages

    def careless(*args, **settings):
        return (*whole(*args, **settings), whole(*args, **settings)[0])

    monkeypatch.setattr(worst_schedule, "schedule_stages", careless)
    with pytest.raises(ValueError, match="cannot be split"):
        worst_of_schedule(DEFAULT_STAGES, budget=Budget(1.0, 0.01), rows=100)


def test_the_whole_is_no_more_than_its_budget():
    worst = worst_of_schedule(DEFAULT_STAGES, budget=Budget(1.0, 0.01), rows=100)
    assert worst.delta_at(1.0) == pytest.approx(0.01, rel=1e-9)
    assert math.isclose(worst.coarseness, worst.answers * 2.0**-78)
