"""Grids, and how far integers can move on them, for every shape of private numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakgp.privacy.accounting import exact_noise_multiplier
from cloakgp.privacy.grid import (
    GRID_BITS,
    Grid,
    Sensitivity,
    calibrate,
    integer_sensitivity,
    noisy,
)
from cloakgp.privacy.noise import GAUSSIAN
from cloakgp.privacy.questions.bounds import OutputBounds


def exact_square(column):
    return sum((Fraction(float(entry)) ** 2 for entry in column), Fraction(0))


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_the_longest_column_is_rounded_up(seed):
    rng = np.random.default_rng(seed)
    strategy = rng.normal(size=(rng.integers(1, 20), rng.integers(1, 9)))
    strategy *= 10.0 ** rng.uniform(-8, 8, size=strategy.shape[1])
    longest = max(exact_square(column) for column in strategy.T)
    found = Fraction(float(GAUSSIAN.lengths(strategy).max()))
    assert longest <= found**2 <= longest * (1 + Fraction(1, 10**12))


@given(seed=st.integers(0, 2**32 - 1))
def test_one_outputs_movement_covers_both_ends(seed):
    rng = np.random.default_rng(seed)
    strategy = rng.normal(size=(3, 5))
    ends = np.sort(rng.normal(size=2) * 10.0 ** rng.uniform(-3, 6))
    bounds = OutputBounds(float(ends[0]), float(ends[1]))
    sensitivity = Sensitivity.of_strategy(strategy, question=bounds)
    width = Fraction(bounds.hi - bounds.middle) - Fraction(bounds.lo - bounds.middle)
    longest = max(exact_square(column) for column in strategy.T)
    assert Fraction(sensitivity.distance) ** 2 >= longest * width**2
    assert sensitivity.distance == pytest.approx(bounds.width * math.sqrt(longest), rel=1e-9)
    assert sensitivity.largest >= max(
        abs(bounds.lo - bounds.middle), abs(bounds.hi - bounds.middle)
    )
    assert sensitivity.columns == 1


@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.sampled_from([3, 400, 3000]),
    columns=st.sampled_from([1, 2, 3, 10]),
)
@settings(max_examples=25)
def test_rounding_of_long_sums_with_wild_weights_is_covered(seed, rows, columns):
    """Move one row of V by a known distance: the integers move within the sensitivity."""
    rng = np.random.default_rng(seed)
    strategy = rng.normal(size=(2, rows)) * 10.0 ** rng.uniform(-8, 8, size=rows)
    V = rng.uniform(-1, 1, size=(rows, columns))
    heaviest = int(np.square(strategy).sum(axis=0).argmax())
    moved = V.copy()
    moved[heaviest] = -V[heaviest]
    distance = (
        2 * np.linalg.norm(V[heaviest]) * float(GAUSSIAN.lengths(strategy).max()) * (1 + 1e-12)
    )
    sensitivity = Sensitivity(distance=distance, largest=1.0, columns=columns)
    grid, guarantee = calibrate(strategy, sensitivity=sensitivity, epsilon=1, delta=1e-6)
    integers = [np.rint(strategy @ one / grid.step).astype(np.int64) for one in (V, moved)]
    squared = sum(
        (int(a) - int(b)) ** 2
        for a, b in zip(*(integer.ravel() for integer in integers), strict=True)
    )
    assert squared <= grid.sensitivity**2
    assert squared >= (0.999 * grid.sensitivity) ** 2
    assert guarantee.answers == 2 * columns


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_every_column_counts_in_the_rounding(columns):
    """On a grid as coarse as the answers, √(kC) roundings are most of the sensitivity."""
    strategy = np.ones((4, 1))
    sensitivity = Sensitivity(distance=1e-9, largest=1.0, columns=columns)
    found = integer_sensitivity(strategy, sensitivity=sensitivity, step=1.0)
    assert found == math.ceil(1e-9 + math.sqrt(4 * columns))


def test_rounding_can_move_that_far():
    """The √(kC) is attained: answers just below and just above half a step, in every entry."""
    strategy, step = np.eye(3), 1.0
    below, above = np.full((3, 2), 0.4999999), np.full((3, 2), 0.5000001)
    integers = [np.rint(strategy @ one / step) for one in (below, above)]
    moved = float(np.linalg.norm(integers[0] - integers[1]))
    distance = float(np.linalg.norm(above - below))
    bound = integer_sensitivity(
        strategy, sensitivity=Sensitivity(distance=distance, largest=1.0, columns=2), step=step
    )
    assert math.sqrt(6) == pytest.approx(moved)
    assert moved <= bound


@given(epsilon=st.floats(0.05, 20), delta=st.floats(1e-9, 0.4), columns=st.integers(1, 12))
def test_a_calibration_keeps_its_guarantee_and_wastes_little(epsilon, delta, columns):
    strategy = np.random.default_rng(columns).normal(size=(3, 7))
    sensitivity = Sensitivity(
        distance=3 * float(GAUSSIAN.lengths(strategy).max()), largest=1.5, columns=columns
    )
    grid, guarantee = calibrate(strategy, sensitivity=sensitivity, epsilon=epsilon, delta=delta)
    assert guarantee.delta_at(epsilon) <= delta
    assert guarantee.mu >= grid.sensitivity / grid.scale
    assert grid.noise_sd == pytest.approx(
        sensitivity.distance * exact_noise_multiplier(epsilon, delta), rel=1e-6
    )
    assert math.log2(grid.step) % 1 == 0
    assert grid.step <= grid.noise_sd * 2.0 ** (1 - GRID_BITS)
    assert guarantee.answers == 3 * columns
    assert guarantee.coarseness >= 3 * columns / grid.scale**2


def test_noise_keeps_the_shape_and_stands_on_the_grid(monkeypatch):
    grid = Grid(step=0.25, sensitivity=4, scale=10.0)
    seen = []

    def record(integers, *, scale, sensitivity):
        seen.append((scale, sensitivity))
        return integers + np.arange(len(integers))

    monkeypatch.setattr("cloakgp.privacy.noise.gaussian.add_discrete_gaussian", record)
    found = noisy(np.array([[0.3, 1.0], [-0.6, 2.2]]), grid=grid, insecure_seed=None)
    np.testing.assert_array_equal(found, [[0.25, 1.25], [0.0, 3.0]])
    assert seen == [(10.0, 4)]
    assert noisy(np.array([0.3]), grid=grid, insecure_seed=None).shape == (1,)


def test_noise_of_every_entry_is_its_own():
    grid = Grid(step=1.0, sensitivity=1, scale=5.0)
    drawn = noisy(np.zeros((4000, 2)), grid=grid, insecure_seed=None)
    assert drawn.std() == pytest.approx(5.0, rel=5.5 / math.sqrt(16000))
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 5.5 / math.sqrt(4000)


@pytest.mark.parametrize("calibration", ["wishful", None])
def test_unknown_calibrations_are_refused(calibration):
    sensitivity = Sensitivity(distance=1.0, largest=1.0)
    with pytest.raises(ValueError, match="calibration must be"):
        calibrate(
            np.eye(2), sensitivity=sensitivity, epsilon=1.0, delta=0.1, calibration=calibration
        )
