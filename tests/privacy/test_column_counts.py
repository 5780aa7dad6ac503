"""Noisy counts of columns: brute force over changed rows, and what is published."""

import importlib
import math
from dataclasses import replace

import numpy as np
import pytest
from whole_row_neighbours import BOUNDS, BOX, neighbours_of, spent, table

from cloakgp.models.axes import Circle, Levels
from cloakgp.models.features import InputBox
from cloakgp.privacy.column_counts import measure_column_counts
from cloakgp.privacy.statistics import NEIGHBOURS

door = importlib.import_module("cloakgp.privacy.column_counts")


def measured(X, y, *, neighbours="replace", epsilon=1.0, weights=(0.6, 0.3, 1.0), **changes):
    return measure_column_counts(
        X,
        y,
        box=BOX,
        bounds=BOUNDS,
        bins=(8, 3, 16),
        weights=weights,
        epsilon=epsilon,
        delta=1e-5,
        neighbours=neighbours,
        **changes,
    )


@pytest.mark.parametrize("weights", [(0.6, 0.3, 1.0), (1.0, 1.0, 1.0), (1e-3, 0.1, 1 / 3)])
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_no_changed_row_spends_more_than_claimed_and_some_all_of_it(neighbours, weights):
    rng = np.random.default_rng(0)
    X, y = table(rng)
    X[0], y[0] = BOX.lo, BOUNDS[0]
    tables = [(X, y), *neighbours_of(X, y, neighbours=neighbours, rng=rng)]
    most, claimed = spent(
        lambda X, y: measured(X, y, neighbours=neighbours, weights=weights), tables
    )
    assert 0.999999 * claimed <= most <= claimed


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_a_broken_sensitivity_is_caught(neighbours, monkeypatch):
    """Mutation: a hundredth short, and the brute force above must object."""
    whole = door.integer_sensitivity
    monkeypatch.setattr(door, "integer_sensitivity", lambda *a, **kw: int(0.99 * whole(*a, **kw)))
    rng = np.random.default_rng(0)
    X, y = table(rng)
    X[0], y[0] = BOX.lo, BOUNDS[0]
    tables = [(X, y), *neighbours_of(X, y, neighbours=neighbours, rng=rng)]
    most, claimed = spent(lambda X, y: measured(X, y, neighbours=neighbours), tables)
    assert most > claimed


def test_counts_are_unbiased_with_the_stated_noise():
    X, y = table(np.random.default_rng(1), rows=40)
    exact = measured(X, y, epsilon=1e7)
    draws = [measured(X, y) for _ in range(60)]
    for column, counts in enumerate(exact.counts):
        assert counts.sum() == pytest.approx(40, abs=1e-2)
        off = np.array([draw.counts[column] for draw in draws]) - counts.round()
        off /= draws[0].sd_of(column)
        assert abs(off.mean()) < 5.5 / math.sqrt(off.size)
        assert off.std() == pytest.approx(1, abs=5.5 / math.sqrt(2 * off.size))


def test_the_variance_of_outputs_is_told_without_bias_by_the_stated_noise():
    rng = np.random.default_rng(1)
    X, y = table(rng, 400)
    lo, hi = BOUNDS
    width = (hi - lo) / 16
    middles = lo + width * (np.clip((y - lo) // width, 0, 15) + 0.5)
    draws = [measured(X, y, insecure_seed=seed).output_variance() for seed in range(300)]
    told, noise = np.array(draws).T
    assert told.std() == pytest.approx(noise.mean(), rel=0.15)
    assert told.mean() == pytest.approx(middles.var(), abs=4 * noise.mean() / np.sqrt(300))


def test_rows_are_counted_where_they_lie_and_beyond_the_ends_in_the_last_bins():
    X = np.array([[-1.0, 10.0], [2.99, 19.9], [99.0, -99.0], [3.0, 20.0]])
    found = measured(X, np.array([100.0, 180.0, 500.0, -5.0]), epsilon=1e6).counts
    assert found[0].round().tolist() == [1, 0, 0, 0, 0, 0, 0, 3]
    assert found[1].round().tolist() == [2, 0, 2]
    assert found[2][[0, -1]].round().tolist() == [2, 2]


def test_the_number_of_rows_is_public_or_estimated():
    X, y = table(np.random.default_rng(2), rows=500)
    assert measured(X, y).expected_rows == 500
    private = measured(X, y, neighbours="add-remove", epsilon=50.0)
    assert private.rows is None
    assert private.expected_rows == pytest.approx(500, abs=20)


@pytest.mark.parametrize(
    "forged",
    [
        {"noise_sd": 0.01},
        {"noise_sd": math.nan},
        {"weights": (2.0, 0.3, 1.0)},
        {"rows": None},
        {"rows": 0},
        {"weights": (1.0,)},
    ],
)
def test_forged_counts_are_refused(forged):
    X, y = table(np.random.default_rng(3))
    found = measured(X, y)
    found.validate()
    with pytest.raises(ValueError, match="its"):
        replace(found, **forged).validate()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"neighbours": "friends"}, "neighbours"),
        ({"weights": (0.0, 1.0, 1.0)}, "weights"),
        ({"weights": (1.0, 1.0)}, "columns"),
    ],
)
def test_bad_settings(change, complaint):
    X, y = table(np.random.default_rng(4))
    with pytest.raises(ValueError, match=complaint):
        measured(X, y, **change)


# --- levels and circles ---

MIXED = InputBox((0.0, 0.0, 0.0, -1.0, -1.0, 0.0), (1.0, 1.0, 1.0, 1.0, 1.0, 1.0))
AXES = (Levels((0, 1, 2)), Circle(3, 4), Levels((5,)))


def mixed_rows(rng, rows):
    """Rows of levels, of angles and of marks, with some that no level fits."""
    levels = np.eye(3)[rng.integers(0, 3, rows)]
    angles = rng.uniform(0, 2 * np.pi, rows)
    marks = rng.integers(0, 2, rows)
    return np.column_stack([levels, np.cos(angles), np.sin(angles), marks]).astype(float)


def of_axes(X, y, *, neighbours="replace", epsilon=1.0):
    return measure_column_counts(
        X,
        y,
        box=MIXED,
        axes=AXES,
        bounds=BOUNDS,
        bins=(3, 8, 2, 16),
        weights=(0.6, 0.3, 0.2, 1.0),
        epsilon=epsilon,
        delta=1e-5,
        neighbours=neighbours,
    )


def mixed_neighbours(X, y, *, neighbours, rng):
    strange = [[0.0] * 6, [9e9] * 6, [-9e9] * 6, [1, 1, 1, 0, 0, 0.5]]
    rows = [*mixed_rows(rng, 40), *map(np.array, strange)]
    ends = (*BOUNDS, -1e300, 140.0)
    if neighbours == "replace":
        return [
            (np.vstack([row, X[1:]]), np.concatenate([[end], y[1:]]))
            for row in rows
            for end in ends
        ]
    return [(np.vstack([row, X]), np.concatenate([[end], y])) for row in rows for end in ends]


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_no_row_of_levels_and_angles_spends_more_than_claimed_and_some_all_of_it(neighbours):
    rng = np.random.default_rng(5)
    X, y = mixed_rows(rng, 12), rng.uniform(60.0, 220.0, size=12)
    y[0] = BOUNDS[0]
    tables = [(X, y), *mixed_neighbours(X, y, neighbours=neighbours, rng=rng)]
    most, claimed = spent(lambda X, y: of_axes(X, y, neighbours=neighbours), tables)
    assert 0.999999 * claimed <= most <= claimed


def test_an_axis_that_counts_a_row_twice_is_caught(monkeypatch):
    """Mutation: a mark that is counted among levels as well, and the brute force must object."""
    whole = door.integer_counts

    def twice(places, *, bins, weights):
        counts = whole(places, bins=bins, weights=weights)
        return counts + np.concatenate([counts[:3], np.zeros(len(counts) - 3, dtype=np.int64)])

    monkeypatch.setattr(door, "integer_counts", twice)
    rng = np.random.default_rng(5)
    X, y = mixed_rows(rng, 12), rng.uniform(60.0, 220.0, size=12)
    y[0] = BOUNDS[0]
    tables = [(X, y), *mixed_neighbours(X, y, neighbours="replace", rng=rng)]
    most, claimed = spent(of_axes, tables)
    assert most > claimed


def test_levels_and_angles_are_counted_where_they_are():
    X = np.array([[1, 0, 0, 1, 0.1, 0], [0, 0, 1, -1, 0.1, 1], [0, 0, 1, 1, -0.1, 1]], dtype=float)
    found = of_axes(X, np.full(3, 140.0), epsilon=1e6).counts
    assert found[0].round().tolist() == [1, 0, 2]
    assert found[1].round().tolist() == [1, 0, 0, 1, 0, 0, 0, 1]
    assert found[2].round().tolist() == [1, 2]
