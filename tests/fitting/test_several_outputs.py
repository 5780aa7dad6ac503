"""Private fits of several outputs: the way without a search, odd tables, and one whole budget."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fits import release_held

from cloakgp import DPGPMultiOutputRegressor
from cloakgp.fitting.bands import checked_stages
from cloakgp.fitting.forecast import forecast_release
from cloakgp.fitting.strategies import Budget, Query
from cloakgp.models.kernels.coregion import as_entries
from cloakgp.privacy.questions.counts import CountQuestion
from cloakgp.privacy.several_outputs import STANDARD_BOUNDS, OutputColumns
from cloakgp.release import Hyperprior

# Budgets here are as large, and bounds as odd, as each test needs.
pytestmark = [
    pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning"),
    pytest.mark.filterwarnings("ignore::cloakgp.design.DesignGapWarning"),
]

ROWS = 160
X = np.linspace(0.0, 10.0, ROWS)[:, None]
CURVES = np.column_stack([100 + 20 * np.sin(X[:, 0]), np.cos(X[:, 0])])
GOOD, WIDTHS = [(60.0, 140.0), (-2.5, 2.5)], np.array([80.0, 5.0])
WIDE = [(-3000.0, 5000.0), (-400.0, 100.0)]
# Each noise, and each kind of neighbours.
EACH = [("gaussian", None), ("laplace", np.arange(ROWS) // 2)]


def outputs(seed=0):
    return CURVES + np.random.default_rng(seed).normal(size=(ROWS, 2)) * [6.0, 0.4]


def fitted(y=None, *, groups=None, **changes):
    chosen = {"bounds": WIDE, "epsilon": 3.0, "delta": 1e-5, "noise": "gaussian", "stages": None}
    chosen["gap"] = 0.1
    model = DPGPMultiOutputRegressor(**(chosen | {"insecure_seed": 4} | changes))
    return model.fit(X, outputs() if y is None else y, groups=groups).release_


def counted(release):
    found = [release.counts_of(one) for one in release.entries.measurements]
    return [one for one in found if one is not None]


def errors(release, curves=CURVES, widths=WIDTHS):
    return np.sqrt(np.square((release.predict(X) - curves) / widths).mean(axis=0))


@pytest.mark.parametrize(("noise", "groups"), EACH, ids=["rows", "people"])
def test_without_a_search_entries_are_asked_as_one_column_of_groups(noise, groups):
    """To the last bit: what `release_outputs` makes of entries within the declared bounds."""
    delta = 1e-5 if noise == "gaussian" else 0.0
    settings = {"noise": noise, "delta": delta, "stages": "auto"}
    release = fitted(interval=False, groups=groups, bounds=GOOD, **settings)
    columns = OutputColumns.checked(GOOD)
    points = as_entries(X, count=2)
    by_hand = release_held(
        points,
        columns.standardised(outputs(), rows=ROWS),
        prior=release.entries.prior,
        question=STANDARD_BOUNDS,
        query=Query(points),
        epsilon=3.0,
        delta=delta,
        noise=noise,
        groups=columns.units(groups, rows=ROWS).tolist(),
        hyperprior=Hyperprior(noise_variance=True, mean=False),
        stages=checked_stages("auto", noise=noise),
        gap=0.1,
        insecure_seed=4,
    )
    assert release.intervals is None
    assert len(release.entries.measurements) == len(by_hand.measurements) == 4
    for one, other in zip(release.entries.measurements, by_hand.measurements, strict=True):
        np.testing.assert_array_equal(one.answers.values, other.answers.values)
        np.testing.assert_array_equal(one.strategy.matrix, other.strategy.matrix)
        assert one.guarantee == other.guarantee
    np.testing.assert_array_equal(release.entries.predict(points), by_hand.predict(points))


@pytest.mark.parametrize(("noise", "groups"), EACH, ids=["rows", "people"])
@pytest.mark.parametrize("bounds", [GOOD, WIDE, [GOOD[0], WIDE[1]]], ids=["good", "wide", "both"])
def test_whatever_is_found_the_whole_budget_is_spent(noise, bounds, groups):
    delta = 1e-5 if noise == "gaussian" else 0.0
    release = fitted(bounds=bounds, noise=noise, delta=delta, groups=groups)
    assert len(counted(release)) >= 2
    guarantee = release.guarantee
    if noise == "laplace":
        assert guarantee.adaptive
        assert guarantee.pure_epsilon <= 3.0
        assert guarantee.pure_epsilon == pytest.approx(3.0, rel=1e-5)
    else:
        assert guarantee.delta_at(3.0) <= 1e-5
        assert guarantee.delta_at(3.0) == pytest.approx(1e-5, rel=1e-3)


def test_wide_bounds_are_made_up_for():
    found = [
        np.mean([errors(fitted(outputs(seed), insecure_seed=seed, **way)) for seed in range(2)])
        for way in ({"bounds": GOOD}, {}, {"interval": False})
    ]
    good, wide, unsearched = found
    assert wide < 2.0 * good
    assert wide < 0.2 * unsearched


def test_one_output_may_have_good_bounds_and_the_other_wide_ones():
    for seed in range(3):
        release = fitted(bounds=[GOOD[0], WIDE[1]], insecure_seed=seed)
        assert release.intervals is not None
        assert release.intervals.widths[1] < 0.1 * release.columns.widths[1]
        # The wide one does not spoil the other.
        assert errors(release)[0] < 0.2


def test_an_output_that_never_varies_is_found():
    y = outputs()
    y[:, 1] = 7.25
    release = fitted(y, bounds=[GOOD[0], (-400.0, 100.0)])
    limits = release.units.bounds[1]
    assert limits.lo <= 7.25 <= limits.hi
    assert limits.width < 10.0
    assert np.abs(release.predict(X)[:, 1] - 7.25).max() < limits.width


@pytest.mark.parametrize("stages", [None, "auto"])
def test_an_output_all_at_a_bound_stays_within_it(stages):
    y = outputs()
    y[:, 1] = 1e9
    release = fitted(y, stages=stages)
    assert release.units.bounds[1].hi == 100.0
    # Of bounds 500 wide; more than half of the values are found to be alike, so bands do not help.
    assert np.sqrt(np.mean((release.predict(X)[:, 1] - 100.0) ** 2)) < 50.0


def test_bands_of_later_stages_may_reach_beyond_what_was_found():
    release = fitted(stages="auto", epsilon=6.0)
    bands = [one.question for one in release.entries.measurements if hasattr(one.question, "lower")]
    assert len(bands) == 2
    for one in bands:
        assert -1.5 <= one.lower.min() < one.upper.max() <= 1.5
        assert (one.width < 0.9).mean() > 0.9
    # At the declared bounds they end.
    rising = outputs()
    rising[:, 0] = 100.0 + 4.0 * X[:, 0] ** 2
    pairs = [(100.0, 4000.0), (-2.5, 2.5)]
    release = fitted(rising, bounds=pairs, stages="auto", epsilon=6.0)
    limits = release.units.bounds[0]
    for one in release.entries.measurements:
        if hasattr(one.question, "lower"):
            lower = limits.middle + limits.width * one.question.lower[::2]
            assert lower.min() >= 100.0 - 1e-6


@pytest.mark.parametrize(
    ("changes", "looks"),
    [
        ({}, True),
        ({"interval": False}, False),
        ({"noise_variance": 0.01}, False),
        ({"criterion": "trace"}, False),
        ({"epsilon": 0.05}, False),
        ({"bounds": [(1e9, 1e9 + 1e-3), (-400.0, 100.0)]}, False),
    ],
    ids=str,
)
def test_whether_anybody_looks_is_a_public_rule(changes, looks):
    y = outputs()
    if changes.get("bounds", WIDE) is not WIDE:
        y[:, 0] = 1e9 + 5e-4
    assert bool(counted(fitted(y, **changes))) == looks


def test_three_outputs_are_searched_by_themselves():
    rng = np.random.default_rng(2)
    y = np.column_stack([rng.normal(at, sd, size=ROWS) for at, sd in [(0, 1), (50, 3), (900, 20)]])
    release = fitted(y, bounds=[(-1e3, 1e3)] * 3, epsilon=12.0)
    assert {output for output, _ in counted(release)} == {0, 1, 2}
    for limits, column in zip(release.units.bounds, y.T, strict=True):
        assert limits.lo < np.quantile(column, 0.2) < np.quantile(column, 0.8) < limits.hi
        assert limits.width < 600


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_is_no_number_is_refused_as_without_a_search(wrong):
    y = outputs()
    y[3, 1] = wrong
    said = []
    for interval in ("auto", False):
        with pytest.raises(ValueError, match="Input y contains") as raised:
            fitted(y, interval=interval)
        said.append(str(raised.value))
    assert said[0] == said[1]


def test_rounds_tell_how_much_is_left():
    release = fitted()
    parts = [one.guarantee for one in release.entries.measurements]
    counts = [
        one.guarantee.mu
        for one in release.entries.measurements
        if isinstance(one.question, CountQuestion)
    ]
    assert math.fsum(one.mu**2 for one in parts) == pytest.approx(release.guarantee.mu**2, rel=1e-9)
    assert len(set(np.round(counts, 12))) == 1


@pytest.mark.parametrize(("noise", "groups"), EACH, ids=["rows", "people"])
def test_a_forecast_pays_for_one_round_of_every_output(noise, groups):
    """As a fit with good bounds, for which that is what a search costs."""
    budget = Budget(3.0, 1e-5 if noise == "gaussian" else 0.0, noise=noise)
    release = fitted(
        bounds=GOOD, groups=groups, learn=None, noise=noise, delta=budget.delta, epsilon=3.0
    )
    assert len(counted(release)) == 2
    points = as_entries(X, count=2)
    forecast = forecast_release(
        points,
        prior=release.entries.prior,
        bounds=STANDARD_BOUNDS,
        query=Query(points),
        budget=budget,
        stages=checked_stages(None),
        searched=True,
        outputs=2,
        groups=OutputColumns.checked(GOOD).units(groups, rows=ROWS),
        gap=0.1,
    )
    [expected] = forecast.release.measurements
    made = release.entries.measurements[0]

    def unit_sd(one):
        return one.answers.noise_sd / one.strategy.longest_column(one.noise)

    assert unit_sd(expected) == pytest.approx(unit_sd(made), rel=1e-5)
