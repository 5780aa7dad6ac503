"""Values outside of an interval: what is left open of them, against tables from the prior."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp import DPGPRegressor
from cloakgp.release.accuracy import LIKELY
from cloakgp.release.error_range import ErrorRange
from cloakgp.release.outside import (
    MOST_OUTSIDE,
    NONE_OUTSIDE,
    Counts,
    OutsideValues,
    weighted_quantiles,
)
from cloakgp.report.facts import as_text
from cloakgp.report.summary import summarise
from cloakgp.report.worth import accuracy_section

ROWS = 1000
INTERVAL, BOUNDS, MIDDLE = (-5.0, 5.0), (-50.0, 150.0), 1.0
EDGES = (
    np.linspace(*BOUNDS, 17),
    np.concatenate([[BOUNDS[0]], np.linspace(-8.0, 8.0, 17), [BOUNDS[1]]]),
)
LEVELS = np.array([0.5 - LIKELY / 2, 0.5 + LIKELY / 2])


def table(rng):
    """Outputs, and the mean square of their distances, of the prior that is meant."""
    share, side = 0.0, rng.choice(2)
    if rng.random() > NONE_OUTSIDE:
        share = np.expm1(rng.random() * np.log1p(MOST_OUTSIDE * ROWS)) / ROWS
    ends = [(6.0, 51.0), (4.0, 149.0)]
    lengths = np.array([np.log(far / near) for near, far in ends])
    side = int(rng.random() < lengths[1] / lengths.sum())
    near, far = ends[side]
    place = MIDDLE + (2 * side - 1) * near * (far / near) ** rng.random()
    number = round(share * ROWS)
    within = MIDDLE + rng.uniform(-1.0, 1.0, size=ROWS - number)
    outputs = np.concatenate([within, np.full(number, place)])
    return outputs, share * (place - MIDDLE) ** 2 + (1.0 - share) / 3


def rounds_of(outputs, *, noise, rng):
    return [
        Counts(
            edges, np.histogram(outputs, edges)[0] + noise * rng.normal(size=len(edges) - 1), noise
        )
        for edges in EDGES
    ]


def known_of(outputs, *, noise, rng, asked=()):
    return OutsideValues.given(
        rounds_of(outputs, noise=noise, rng=rng),
        interval=INTERVAL,
        rows=ROWS,
        middle=MIDDLE,
        asked=asked,
    )


def ends_of(known):
    """Between what the error lies, where that within is known to be a third."""
    distances = np.square(known.places - MIDDLE)
    return np.sqrt(weighted_quantiles(*known.with_them(np.array([1 / 3]), distances), LEVELS))


@pytest.mark.parametrize("noise", [1.0, 30.0, 100.0])
def test_tables_from_the_prior_lie_between_the_ends_as_often_as_they_say(noise):
    held, draws = [], 400
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        outputs, square = table(rng)
        low, high = ends_of(known_of(outputs, noise=noise, rng=rng))
        # On a grid of places and shares; where there are none, the lower end is exact.
        held.append(0.97 * low <= np.sqrt(square) <= 1.03 * high)
    assert np.mean(held) > LIKELY - 4 * np.sqrt(LIKELY * (1 - LIKELY) / draws)


def test_precise_counts_tell_how_many_there_are_and_where(rng):
    outputs = np.concatenate([np.zeros(950), np.full(50, 70.0)])
    known = known_of(outputs, noise=0.5, rng=rng)
    assert known.weights.sum() == pytest.approx(1.0)
    assert known.weights.sum(axis=0) @ known.shares == pytest.approx(0.05, abs=0.01)
    low, high = ends_of(known)
    # The bin of 70 ends at 75, and its neighbours are empty.
    assert np.sqrt(0.05) * 60 < low < np.sqrt(0.05) * 69 < high < np.sqrt(0.05) * 80


def test_a_number_that_was_asked_tells_more():
    outputs = np.concatenate([np.zeros(950), np.full(50, 70.0)])
    [bare, asked] = [
        known_of(outputs, noise=60.0, rng=np.random.default_rng(1), asked=one)
        for one in ((), [(50.0, 9.0)])
    ]
    assert asked.weights[:, 0].sum() < 1e-6 < bare.weights[:, 0].sum()


def test_nothing_is_outside_of_the_declared_bounds(rng):
    X = rng.uniform(size=(60, 1))
    model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, gap=0.1, interval=False, insecure_seed=0)
    release = model.fit(X, X[:, 0]).release_
    assert OutsideValues.counted(release.measurements, middle=0.5) is None
    assert release.accuracy().with_clipped is None


@pytest.mark.parametrize(("epsilon", "sure"), [(1.0, False), (8.0, True)])
def test_the_error_has_clipped_values_or_is_told_beside_that_with_them(epsilon, sure):
    """One value in twenty lies far outside of the interval that counts find."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, size=(700, 2))

    def outputs(X):
        far = rng.uniform(20.0, 40.0, size=len(X)) * (rng.random(len(X)) < 0.05)
        return np.sin(X[:, 0]) + 0.7 * rng.normal(size=len(X)) + far

    model = DPGPRegressor(bounds=(-50, 200), epsilon=epsilon, inducing=15, gap=0.1, insecure_seed=0)
    release = model.fit(X, outputs(X)).release_
    new = rng.uniform(0, 10, size=(4000, 2))
    error = np.sqrt(np.mean(np.square(release.predict(new) - outputs(new))))
    told = release.accuracy()
    low, high = told.with_clipped
    assert low < error < high
    assert told.counts_clipped == sure
    text = as_text([accuracy_section(release)], width=10_000)
    if sure:
        assert told.between == told.with_clipped
        assert f"and may well be anything from {low:.3g} to {high:.3g}." in text
    else:
        assert told.between[1] < error
        assert f"the error may well be anything from {low:.3g} to {high:.3g}" in text
    [summary] = summarise(release)["accuracy"]
    assert summary["typical_error_between_with_clipped_values"] == [low, high]


def test_values_spread_thinly_over_wide_bounds_may_be_worse_than_what_is_told():
    """So the sentence must say that it may be more."""
    rng = np.random.default_rng(2)
    X = rng.uniform(20, 80, size=(600, 1))
    pay = 30_000 + 300 * X[:, 0] + 4_000 * rng.normal(size=600)
    far = rng.random(600) < 0.04
    pay[far] = rng.uniform(200_000, 900_000, far.sum())
    model = DPGPRegressor(bounds=(0, 1_000_000), epsilon=3.0, inducing=15, insecure_seed=1)
    release = model.fit(X, pay).release_
    error = np.sqrt(np.mean(np.square(release.predict(X) - pay)))
    assert release.accuracy().with_clipped[1] < error
    text = as_text([accuracy_section(release)], width=10_000)
    assert "and more where they are spread thinly over wide bounds, which no count sees." in text


@pytest.mark.parametrize("end", [0.5, 0.1, 0.009, 1e-3, 1e-6])
def test_values_in_every_bin_are_seen_however_narrow_the_interval(end):
    """Two in ten at the bound, in counts without noise that are known to have some."""
    counts = np.zeros(16)
    counts[0], counts[-1] = 800.0, 200.0
    found = OutsideValues.given(
        [Counts(np.linspace(0.0, 1.0, 17), counts, 30.0)],
        interval=(0.0, end),
        rows=1000.0,
        middle=end / 3,
    )
    square = np.sum(found.weights * found.shares * np.square(found.places)[:, None])
    assert np.sum(found.weights @ found.shares) == pytest.approx(0.2, abs=0.01)
    assert np.sqrt(square) == pytest.approx(np.sqrt(0.2), rel=0.05)
    assert found.are_certain


def test_the_first_figure_has_clipped_values_that_counts_are_sure_of():
    """Three in twenty have a one, all others nothing: around nothing, predictions look perfect."""
    rng = np.random.default_rng(4)
    X = rng.uniform(size=(400, 1))
    y = (rng.random(400) < 0.15).astype(np.float64)
    model = DPGPRegressor(bounds=(0, 1), epsilon=3.0, learn=None, stages=None, insecure_seed=1)
    release = model.fit(X, y).release_
    claimed = release.accuracy()
    counted = claimed.with_range(
        ErrorRange(within=(0.01, 0.02), with_outside=(0.2, 0.5), middle=0.36)
    )
    assert (counted.new_error, counted.between, counted.counts_clipped) == (0.36, (0.2, 0.5), True)
    explained = claimed.share * claimed.nothing**2
    assert counted.nothing**2 == pytest.approx(0.36**2 + explained)
    assert counted.share == pytest.approx(explained / counted.nothing**2)
    unsure = claimed.with_range(ErrorRange(within=(0.01, 0.02), with_outside=(0.02, 0.5)))
    assert (unsure.new_error, unsure.counts_clipped) == (claimed.new_error, False)
