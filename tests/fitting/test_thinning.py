"""Places that stand for many rows: forecasts at once, beside those of all rows."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp import DPGPRegressor
from cloakgp.fitting.thinning import PLACES, WITHIN, WITHIN_OF_PERSONS, middle_rows, some_persons

BOUNDS = (40, 200)


def tables():
    rng = np.random.default_rng(0)
    return {
        "two inputs": np.column_stack([rng.uniform(0, 90, 400), rng.normal(70, 15, 400)]),
        "one input": rng.uniform(0, 10, (800, 1)),
        "a long tail": rng.exponential(1, (800, 1)),
        "five inputs": rng.normal(size=(400, 5)),
        "three kinds": np.column_stack([rng.uniform(0, 1, 500), rng.integers(0, 3, 500)]),
    }


ALL_BUDGETS = {"two inputs", "a long tail"}


def errors(X, *, epsilon, delta, groups=None, **parameters):
    """Return the approximate error, and that of the full plan."""
    model = DPGPRegressor(bounds=BOUNDS, epsilon=epsilon, delta=delta, **parameters)
    plans = [
        model.plan(X, groups=groups, epsilons=[], approximate=approximate).forecast
        for approximate in (True, False)
    ]
    assert plans[0].within > 0
    assert plans[1].within == 0
    assert plans[0].prior_error == pytest.approx(plans[1].prior_error, rel=0.1)
    # Of guarantees nothing is approximate.
    assert plans[0].guarantee == plans[1].guarantee
    return plans[0].error, plans[1].error, plans[0].within


# All budgets of two tables, and of the others those between.
@pytest.mark.parametrize(
    ("name", "epsilon", "delta"),
    [
        pytest.param(name, *budget, marks=[pytest.mark.slow] * (seldom and name not in ALL_BUDGETS))
        for name in tables()
        for budget, seldom in (
            ((0.1, 0.0), True),
            ((1.0, 0.0), False),
            ((1.0, 1e-5), False),
            ((8.0, 1e-5), True),
        )
    ],
)
def test_errors_are_within_what_is_said(name, epsilon, delta):
    noise = "gaussian" if delta else "laplace"
    rough, exact, within = errors(tables()[name], epsilon=epsilon, delta=delta, noise=noise)
    assert within == WITHIN
    assert abs(rough / exact - 1.0) < WITHIN


@pytest.mark.filterwarnings("ignore::cloakgp.design.DesignGapWarning")
@pytest.mark.parametrize(
    ("persons", "rows"), [(100, 4), pytest.param(200, 2, marks=pytest.mark.slow), (20, 20)]
)
def test_errors_of_persons_are_within_what_is_said(persons, rows):
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(persons), rows)
    ages = rng.uniform(0, 90, persons)[groups] + rng.normal(0, 5, len(groups))
    X = np.column_stack([ages, rng.normal(70, 15, len(groups))])
    rough, exact, within = errors(
        X, epsilon=1.0, delta=1e-5, noise="gaussian", groups=groups.tolist()
    )
    assert within == WITHIN_OF_PERSONS
    assert abs(rough / exact - 1.0) < WITHIN_OF_PERSONS


def test_bands_as_narrow_as_means_would_promise_too_much(monkeypatch):
    """Each output is clipped by itself: else later stages would seem to have little noise."""
    from cloakgp.fitting import thinning

    X = tables()["one input"]
    monkeypatch.setattr(thinning.ThinnedTable, "_spread_of_one", lambda _, variance, **__: variance)
    rough, exact, _ = errors(X, epsilon=1.0, delta=1e-5, noise="gaussian")
    assert rough / exact < 1.0 - WITHIN


def test_a_plan_is_approximate_unless_exact_errors_are_asked_for():
    model = DPGPRegressor(bounds=BOUNDS, epsilon=1.0, delta=1e-5, noise="laplace")
    X = tables()["one input"]
    plan = model.plan(X, epsilons=[])
    assert plan.within == WITHIN
    assert "≈" in str(plan)
    exact = model.plan(X, epsilons=[], approximate=False)
    assert exact.within == 0.0
    assert plan.forecast.error == pytest.approx(exact.forecast.error, rel=WITHIN)
    # Places stand for no counts.
    counted = DPGPRegressor(bounds=(0, 40), epsilon=1.0, likelihood="counts", stages=None)
    assert counted.plan(X[:160], epsilons=[]).within == 0.0


def test_few_rows_are_forecast_exactly_at_once():
    X = np.linspace(0, 10, PLACES)[:, None]
    model = DPGPRegressor(bounds=BOUNDS, epsilon=1.0, delta=1e-5)
    [plan] = model.plans(X, epsilons=[])
    assert plan.within == 0.0
    assert plan.forecast.error == model.plan(X, epsilons=[]).forecast.error


def test_cells_have_equally_many_rows():
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.exponential(1, 1000), rng.integers(0, 2, 1000), np.ones(1000)])
    middles, cells = middle_rows(X, 64)
    sizes = np.bincount(cells)
    assert len(middles) == 64
    assert set(sizes) <= {15, 16}
    assert (cells[middles] == np.arange(64)).all()
    # Of equal rows too.
    assert len(middle_rows(np.ones((10, 2)), 4)[0]) == 4


def test_persons_keep_their_share_of_rows():
    groups = np.repeat(np.arange(400), 5)
    rows, units = some_persons(np.random.default_rng(3).normal(size=(2000, 2)), groups)
    persons, sizes = np.unique(groups[rows], return_counts=True)
    assert units * len(persons) == 400
    assert len(rows) <= PLACES
    assert sizes.mean() == pytest.approx(len(rows) / len(persons))
    assert (sizes >= 1).all()


def test_plans_come_one_after_the_other():
    X = tables()["one input"]
    seen = [
        [(each.epsilon, each.within > 0) for each in plan.forecasts]
        for plan in DPGPRegressor(bounds=BOUNDS, epsilon=1.0).plans(X, epsilons=[0.5, 2.0])
    ]
    assert seen == [
        [(1.0, True)],
        [(1.0, False)],
        [(0.5, False), (1.0, False)],
        [(0.5, False), (1.0, False), (2.0, False)],
    ]


def test_other_budgets_stay_approximate_where_exact_ones_take_long(monkeypatch):
    from cloakgp.fitting import release_plan

    monkeypatch.setattr(release_plan, "PATIENCE", 0.0)
    X = tables()["one input"]
    *_, plan = DPGPRegressor(bounds=BOUNDS, epsilon=1.0).plans(X)
    assert [each.epsilon for each in plan.forecasts if each.within] == [0.25, 0.5, 2.0, 4.0]
    assert plan.forecast.within == 0.0
    told = [line[2] for line in plan.budgets()[1:]]
    assert [text.startswith("≈") for text in told] == [True, True, False, True, True]


def test_a_noise_that_places_do_not_decide_is_left_open(monkeypatch):
    """The guess of an attacker is then that of any noise."""
    from cloakgp.privacy.guesses import right_guess_of_any

    X = tables()["one input"]
    model = DPGPRegressor(bounds=BOUNDS, epsilon=1.0, delta=1e-5)
    decided = model.plan(X, epsilons=[], approximate=True)
    assert decided.noise == "laplace"
    monkeypatch.setattr("cloakgp.estimators.planning.CLOSE", 10.0)
    left_open = model.plan(X, epsilons=[], approximate=True)
    assert (left_open.noise, left_open.guarantee) == (None, None)
    assert left_open.guess == right_guess_of_any(1.0, 1e-5) >= decided.guess
    [line] = left_open.to_dict()["forecasts"]
    assert (line["noise"], line["delta"], line["guess"]) == (None, 1e-5, left_open.guess)


def test_it_says_that_it_is_approximate():
    plan = DPGPRegressor(bounds=BOUNDS, epsilon=1.0).plan(
        tables()["one input"], epsilons=[], approximate=True
    )
    facts = dict(plan.facts())
    assert "≈" in facts["expected error"]
    assert "approximate" in facts["expected error"]
    assert "within 20 %" in facts["expected error"]
    assert "at most" not in facts["questions"]
    assert plan.to_dict()["forecasts"][0]["within"] == WITHIN


def test_counts_are_forecast_in_full_alone():
    X = tables()["one input"][:200]
    model = DPGPRegressor(bounds=(0, 20), epsilon=1.0, likelihood="counts")
    first, full = model.plans(X, epsilons=[])
    assert first.forecasts == ()
    assert "comes with the full plan" in dict(first.facts())["expected error"]
    assert full.forecast.within == 0.0
