"""Stages: their schedules, their budgets, their bands, and fits that follow them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp import DPGPRegressor, Release, refine
from cloakgp.fitting.bands import (
    DEFAULT_STAGES,
    ONE_STAGE,
    Stage,
    checked_stages,
    schedule_by_spread,
    schedule_stages,
    whole_of,
)
from cloakgp.fitting.strategies import Budget
from cloakgp.privacy import Guarantee, OutputBounds
from cloakgp.privacy.accounting import exact_noise_multiplier
from cloakgp.privacy.noise import LAPLACE
from cloakgp.privacy.questions.bands import UNIT_INTERVAL, Bands
from cloakgp.privacy.questions.calibration import CalibrationQuestion
from cloakgp.privacy.questions.scatter import ScatterQuestion
from cloakgp.privacy.questions.spread import SpreadQuestion
from cloakgp.release.bands import NARROWEST, account_in_bands, choose_bands

BOUNDS = OutputBounds(-3.0, 7.0)
KERNEL = ConstantKernel(2.0) * RBF(1.1)

# --- schedules ---


def test_words_stand_for_schedules():
    assert checked_stages(None) == ONE_STAGE == (Stage(1.0, None),)
    assert checked_stages("auto") == DEFAULT_STAGES
    assert checked_stages([(1, None)]) == ONE_STAGE
    assert checked_stages(np.array([[0.5, None], [0.5, 2]])) == (Stage(0.5), Stage(0.5, 2.0))
    assert math.fsum(one.share for one in DEFAULT_STAGES) == pytest.approx(1.0)
    assert DEFAULT_STAGES[0].width is None


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ("soon", "'auto', 'one' or None, or pairs"),
        ([], "first stage has no band"),
        ([(1.0, 1.0)], "first stage has no band"),
        ([(0.5, None), (0.4, 1.0)], "add up to 1"),
        ([(1.5, None), (-0.5, 1.0)], "must be positive"),
        ([(np.nan, None), (1.0, 1.0)], "must be positive"),
        ([(0.5, None), (0.5, 0.0)], "widths of bands must be positive"),
        ([(0.5, None), (0.5, np.inf)], "widths of bands must be positive"),
        ([(0.5, None), (0.5, np.nan)], "widths of bands must be positive"),
        ([(0.5, None), 0.5], "must be pairs"),
        ([0.5, 0.5], "must be pairs"),
        ([(0.5, None, 1), (0.5, 1.0, 1)], "must be pairs"),
        ([("half", None), (0.5, 1.0)], "must be pairs"),
        ([(0.5, None), (0.5, "wide")], "must be pairs"),
        (3, "must be pairs"),
    ],
)
def test_schedules_that_are_none_are_named(stages, message):
    with pytest.raises(ValueError, match=message):
        checked_stages(stages)


@given(
    epsilon=st.floats(0.5, 5.0),
    rows=st.integers(20_000, 10**7),
    spent=st.floats(0.0, 0.3),
    calibration=st.sampled_from([0.0, 0.02]),
    outputs=st.integers(1, 3),
    noise=st.sampled_from(["gaussian", "laplace"]),
)
def test_whatever_the_noise_turns_out_to_be_the_whole_is_spent(
    epsilon, rows, spent, calibration, outputs, noise
):
    """With bands and without, parts add up to what is left, and the larger sum is held."""
    delta = 0.0 if noise == "laplace" else 1e-8
    budget = Budget(epsilon, delta, noise=noise)
    steps = schedule_by_spread(
        budget=budget, rows=rows, spent=spent, calibration=calibration, outputs=outputs
    )
    free = (*steps[:2], *steps[1].if_free)
    cost = {
        "gaussian": lambda part: 1.0 / exact_noise_multiplier(*part.pair) ** 2,
        "laplace": lambda part: part.epsilon,
    }[noise]
    for path in (steps, free):
        assert [step.stage is None for step in path[:2]] == [False, True]
        assert sum(step.calibrates for step in path) == (outputs if calibration else 0)
        total = math.fsum(cost(step.budget) for step in path)
        assert total == pytest.approx((1.0 - spent) * cost(budget), rel=1e-5)
    if noise == "laplace":
        held = whole_of(budget, steps=steps).epsilon
        assert all(math.fsum(step.budget.epsilon for step in one) <= held for one in (steps, free))


def test_it_goes_by_the_noise_of_outputs_where_that_is_cheap_to_ask():
    """Both times together for no more than what it costs where it is asked once."""
    for rows, cheap in ((300, False), (3_000, False), (100_000, True)):
        steps = schedule_by_spread(budget=Budget(0.3, 0.0, noise="laplace"), rows=rows)
        assert (steps is not None) == cheap
        if steps is not None:
            spread = [step.budget.epsilon for step in steps if step.stage is None]
            assert math.fsum(spread) <= 0.3 * LAPLACE.shares.spread
    assert schedule_by_spread(budget=Budget(1e-3, 1e-12), rows=1_000) is None


# --- budgets ---


@given(
    epsilon=st.floats(0.05, 60.0),
    delta=st.sampled_from([1e-12, 1e-8, 1e-5, 1e-3, 1e-2]),
    rows=st.integers(1, 10_000),
    ask_spread=st.booleans(),
    several=st.booleans(),
)
def test_budgets_add_up_to_the_whole(epsilon, delta, rows, ask_spread, several):
    """Oracle: the mu of every part, from its own (ε, δ); squares add up."""
    steps = schedule_stages(
        DEFAULT_STAGES if several else ONE_STAGE,
        budget=Budget(epsilon, delta),
        rows=rows,
        ask_spread=ask_spread,
    )
    budgets = [step.budget for step in steps]
    asks_spread = steps[-1].stage is None
    assert not asks_spread or (several and ask_spread)
    squares = [exact_noise_multiplier(one.epsilon, one.delta) ** -2 for one in budgets]
    whole = exact_noise_multiplier(epsilon, delta) ** -2
    assert math.fsum(squares) <= whole
    assert math.fsum(squares) == pytest.approx(whole, rel=1e-5)
    together = Guarantee(epsilon=epsilon, delta=delta, mu=math.sqrt(math.fsum(squares)))
    # Rounding of a root of squares, not of the budgets.
    assert together.delta_at(epsilon) <= delta * (1 + 1e-12)
    if len(steps) > 1:
        assert [step.stage for step in steps] == [*DEFAULT_STAGES, *[None] * asks_spread]
        kept = 0.95 if asks_spread else 1.0
        shares = [square / whole / kept for square in squares[: len(DEFAULT_STAGES)]]
        assert shares == pytest.approx([stage.share for stage in DEFAULT_STAGES], rel=1e-4)


def test_the_spread_is_asked_where_its_answer_is_worth_having():
    """Noise of a tenth of the rows, at most."""
    found = [
        schedule_stages(DEFAULT_STAGES, budget=Budget(1.0, 1e-5), rows=rows, ask_spread=True)[-1]
        for rows in (20, 100, 170, 300, 3000)
    ]
    assert [step.stage is None for step in found] == [False, False, True, True, True]
    for rows, step in zip((170, 300, 3000), found[2:], strict=True):
        assert exact_noise_multiplier(step.budget.epsilon, step.budget.delta) / rows <= 0.1
    never = schedule_stages(DEFAULT_STAGES, budget=Budget(1.0, 1e-5), rows=3000, ask_spread=False)
    assert [step.stage for step in never] == list(DEFAULT_STAGES)


def test_budgets_too_small_for_stages_are_spent_at_once():
    """Where every part would have ε = 0 at this δ."""
    [step] = schedule_stages(
        DEFAULT_STAGES, budget=Budget(0.001, 0.2), rows=10_000, ask_spread=True
    )
    assert step.stage == ONE_STAGE[0]
    assert (step.budget.epsilon, step.budget.delta) == (0.001, 0.2)


# --- bands ---


@given(
    mean=st.floats(-100, 100),
    sd=st.floats(1e-9, 1e3),
    width=st.floats(0.1, 5.0),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
)
def test_bands_are_around_what_is_predicted_and_within_the_bounds(mean, sd, width, scale):
    bounds = OutputBounds(scale * -3.0, scale * 7.0)
    mean, sd = scale * mean, scale * sd
    bands = choose_bands(np.array([mean]), np.array([sd**2]), width=width, bounds=bounds)
    bands.validate()
    [lower], [upper] = bands.lower, bands.upper
    assert bounds.lo <= lower < upper <= bounds.hi
    # Never narrower than a thousandth, at the edge half of which is outside.
    assert upper - lower >= 0.999 * NARROWEST * bounds.width
    reach = max(width * sd, NARROWEST * bounds.width)
    if bounds.lo + reach < mean < bounds.hi - reach:
        assert (lower, upper) == pytest.approx((mean - reach, mean + reach), abs=1e-9 * scale)
    elif mean <= bounds.lo:
        assert (lower, upper) == pytest.approx((bounds.lo, min(bounds.lo + reach, bounds.hi)))
    elif mean >= bounds.hi:
        assert (lower, upper) == pytest.approx((max(bounds.hi - reach, bounds.lo), bounds.hi))
    elif reach > bounds.width:
        assert (lower, upper) == (bounds.lo, bounds.hi)


def test_the_account_is_that_of_where_outputs_lie_in_their_bands():
    """Oracle: draws, placed by the very encoding that is asked about."""
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(size=5), rng.uniform(0.3, 3.0, size=5)
    bands = Bands(
        lower=mean - np.array([0.5, 1, 2, 0.1, 3]), upper=mean + np.array([0.5, 2, 1, 4, 3])
    )
    account = account_in_bands(mean, variance, bands=bands)
    y = mean + np.sqrt(variance) * rng.normal(size=(200_000, 5))
    of_all = Bands(lower=np.tile(bands.lower, len(y)), upper=np.tile(bands.upper, len(y)))
    placed = of_all.encode(y.ravel())[:, 0].reshape(y.shape)
    slope = ((placed - placed.mean(axis=0)) * (y - mean)).mean(axis=0) / variance
    residual = placed.var(axis=0) - slope**2 * variance
    np.testing.assert_allclose(account.expected, placed.mean(axis=0), atol=5e-3)
    np.testing.assert_allclose(account.slope, slope, atol=1e-2)
    np.testing.assert_allclose(account.residual, residual, atol=2e-3)


# --- fits ---


@pytest.fixture
def table(rng):
    X = rng.uniform(0, 6, size=(40, 1))
    return X, 2 + 2 * np.sin(X[:, 0]) + 0.3 * rng.normal(size=40)


def fitted(table, **changes):
    settings = {
        "noise_variance": 0.2,
        "bounds": (-3.0, 7.0),
        "epsilon": 2.0,
        "delta": 1e-3,
        "noise": "gaussian",
        "insecure_seed": 4,
    }
    return DPGPRegressor(KERNEL, **(settings | changes)).fit(*table).release_


def test_a_fit_follows_its_schedule(table):
    stages = [(0.2, None), (0.3, 2.0), (0.1, None), (0.4, 1.0)]
    release = fitted(table, learn=None, stages=stages)
    total = release.guarantee.mu**2
    shares = [one.answers.guarantee.mu**2 / total for one in release.measurements]
    assert shares == pytest.approx([0.2, 0.3, 0.1, 0.4], rel=1e-4)
    assert [isinstance(one.question, OutputBounds) for one in release.measurements] == [
        True,
        False,
        True,
        False,
    ]
    before = replace(release, measurements=release.measurements[:1])
    for number, (_, width) in list(enumerate(stages))[1:]:
        one = release.measurements[number]
        if width is not None:
            # Bands are what the answers before them say, and nothing else.
            mean, variance = before.posterior.outputs(table[0], table=0)
            expected = choose_bands(mean, variance, width=width, bounds=BOUNDS)
            np.testing.assert_allclose(one.question.lower, expected.lower, atol=1e-9)
            np.testing.assert_allclose(one.question.upper, expected.upper, atol=1e-9)
            assert one.question.distance == UNIT_INTERVAL.distance
        before = before.with_measurements(release.measurements[: number + 1])
    assert 0.999e-3 <= release.guarantee.delta_at(2.0) <= 1e-3


def test_the_default_schedule_and_perhaps_the_spread(table):
    kinds = [OutputBounds, *[Bands] * (len(DEFAULT_STAGES) - 1)]
    small = fitted(table)
    assert [type(one.question) for one in small.measurements] == kinds
    X = np.repeat(table[0], 8, axis=0)
    many = X, table[1].repeat(8)
    settings = {"noise_variance": None, "interval": False}
    more = np.repeat(table[0], 12, axis=0), table[1].repeat(12)
    generous = fitted(more, **settings, epsilon=8.0)
    every = [*kinds, ScatterQuestion, CalibrationQuestion]
    assert [type(one.question) for one in generous.measurements] == every
    large = fitted(many, **settings, calibrate=False)
    assert [type(one.question) for one in large.measurements] == [*kinds, ScatterQuestion]
    # Every row is in one stratum, and few rows, or little budget, are asked about as one.
    np.testing.assert_array_equal(large.measurements[-1].strategy.matrix.sum(axis=0), np.ones(320))
    fewer = fitted(many, **settings, calibrate=False, epsilon=0.7)
    assert [type(one.question) for one in fewer.measurements] == [*kinds, SpreadQuestion]
    np.testing.assert_array_equal(fewer.measurements[-1].strategy.matrix, np.ones((1, 320)))
    assert 0.999e-3 <= large.guarantee.delta_at(2.0) <= 1e-3
    # Noise that is given is not asked about.
    assert [
        type(one.question) for one in fitted(many, interval=False, calibrate=False).measurements
    ] == kinds


@pytest.mark.parametrize("criterion", ["trace", "logdet", "functional"])
def test_other_criteria_ask_at_once(criterion, table):
    assert len(fitted(table, criterion=criterion).measurements) == 1
    with pytest.raises(ValueError, match="several stages are for criterion='bayes'"):
        fitted(table, criterion=criterion, stages=[(0.5, None), (0.5, 1.0)])


def test_stages_have_noise_of_their_own(table):
    release = fitted((table[0], np.full(40, 2.0)), stages=[(0.5, None), (0.5, None)], learn=None)
    one, other = (part.answers.values / part.answers.noise_sd for part in release.measurements)
    short = min(len(one), len(other))
    assert not np.allclose(one[:short], other[:short], atol=1e-6)


def test_a_second_stage_in_bands_leaves_less_open(table):
    """The same budget, told by the sd that is left: bands cost less than the whole width."""
    left = [
        np.square(fitted(table, learn=None, stages=stages).predict(table[0], return_std=True)[1])
        for stages in (None, [(0.4, None), (0.6, None)], [(0.4, None), (0.6, 1.0)])
    ]
    assert left[2].sum() < 0.8 * left[0].sum()
    assert left[2].sum() < 0.8 * left[1].sum()


def test_files_keep_stages(table, tmp_path):
    release = fitted(table, noise_variance=None, epsilon=9.0)
    release.save(tmp_path / "stages.cloak")
    loaded = Release.load(tmp_path / "stages.cloak")
    points = np.linspace(-1, 7, 9)[:, None]
    for form in ({}, {"return_std": True}, {"return_cov": True, "new_output": True}):
        one, other = (part.predict(points, **form) for part in (release, loaded))
        for first, second in zip(one, other, strict=True):
            np.testing.assert_array_equal(first, second)
    assert loaded.guarantee == release.guarantee
    for one, other in zip(release.measurements, loaded.measurements, strict=True):
        assert type(one.question) is type(other.question)
    one, other = (
        refine(part, table[1], epsilon=1.0, delta=1e-3, insecure_seed=9)
        for part in (release, loaded)
    )
    np.testing.assert_array_equal(one.predict(points), other.predict(points))


@pytest.mark.parametrize("band", [0.0, -1.0, np.inf, np.nan, "wide"])
def test_bands_that_are_none_are_named(band, table):
    release = fitted(table)
    with pytest.raises(ValueError, match="band must be positive and finite, None or 'auto'"):
        refine(release, table[1], epsilon=1.0, delta=1e-3, band=band)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_beside_one_stage_spread_costs_what_a_hundredth_of_the_rows_does(noise):
    """Oracle: the noise of what is asked; where it would cost more than elsewhere, nobody asks."""
    budget = Budget(1.0, 1e-5 if noise == "gaussian" else 0.0, noise=noise)

    def steps(rows, **settings):
        return schedule_stages(ONE_STAGE, budget=budget, rows=rows, **settings)

    _, asked = steps(5_000, ask_spread=True, beside_one=True)
    assert asked.stage is None
    assert asked.budget.unit_sd() / 5_000 == pytest.approx(0.01, rel=1e-3)
    for rows, settings in [
        (5_000, {"ask_spread": True}),
        (5_000, {"ask_spread": False, "beside_one": True}),
        (200, {"ask_spread": True, "beside_one": True}),
    ]:
        [only] = steps(rows, **settings)
        assert only.budget == budget
