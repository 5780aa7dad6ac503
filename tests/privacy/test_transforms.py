"""Transformed outputs: neighbours stay neighbours, and nobody moves further than the bounds."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp.data import ArrayRows
from cloakgp.data.entries import TransformedRows
from cloakgp.models.transforms import OutputTransform
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.transforms import transform_entries, transform_outputs, transformed_bounds

LOG = OutputTransform(name="log", bounds=(0.5, 2000.0))
LOGIT = OutputTransform(name="logit", bounds=(0.02, 0.9))
ROOT = OutputTransform(name="root", bounds=(0.0, 60.0))
BOTH = pytest.mark.parametrize("transform", [LOG, LOGIT, ROOT], ids=lambda each: each.name)


def candidates(transform):
    lo, hi = transform.bounds
    inside = [lo, hi, np.nextafter(lo, hi), np.nextafter(hi, lo), (lo + hi) / 2, lo + (hi - lo) / 3]
    return [*inside, -1e300, 1e300, 0.0, -0.0, 1.0, lo - 1e-9, hi + 1e-9]


def moves(transform, applied):
    """How far every entry moves, and how many, for every neighbour of a column."""
    values = candidates(transform)
    column = np.array(values)
    before = applied(column)
    for row in range(len(column)):
        for value in values:
            neighbour = column.copy()
            neighbour[row] = value
            yield row, np.abs(applied(neighbour) - before)


@BOTH
def test_one_output_moves_one_entry_by_no_more_than_the_bounds(transform):
    width = transformed_bounds(transform).about(0.0)[0]

    def applied(y):
        return transform_outputs(y, transform=transform, rows=len(y))

    for row, moved in moves(transform, applied):
        assert (np.delete(moved, row) == 0).all()
        assert moved[row] <= width


def test_a_transform_that_looks_at_other_outputs_is_caught():
    """The mutation: outputs are standardised, as data scientists do, before they are asked."""

    def standardised(y):
        z = transform_outputs(y, transform=LOG, rows=len(y))
        return (z - z.mean()) / z.std()

    assert any((np.delete(moved, row) > 0).any() for row, moved in moves(LOG, standardised))


def test_a_transform_before_clipping_is_caught():
    """The mutation: outputs are transformed first, and move beyond the bounds."""
    width = transformed_bounds(LOG).about(0.0)[0]

    def unclipped(y):
        return LOG.forward(np.maximum(y, 1e-300))

    assert any(moved[row] > width for row, moved in moves(LOG, unclipped))


@BOTH
def test_results_lie_within_the_transformed_bounds(transform):
    limits = transformed_bounds(transform)
    z = transform_entries(np.array(candidates(transform)), transform)
    np.testing.assert_array_equal(limits.clip(z), z)


def test_what_is_missing_or_infinite_is_refused_and_never_clipped():
    entries = np.array([np.nan, np.inf, -np.inf])
    np.testing.assert_array_equal(transform_entries(entries, LOG), entries)
    for value in entries:
        with pytest.raises(ValueError, match=r"without those rows|remove those rows") as refused:
            transform_outputs([1.0, value], transform=LOG, rows=2)
        assert refused.value.__cause__ is None


class Kept:
    """A part that keeps the entries of chunks."""

    def __init__(self, entries):
        self.entries = entries

    def merge(self, other):
        return Kept(np.concatenate([self.entries, other.entries]))


def test_rows_in_chunks_give_the_same_entries():
    y = np.random.default_rng(0).lognormal(3, 2, size=100)
    rows = ArrayRows(np.arange(100.0)[:, None], y, chunk_rows=7)
    wrapped = TransformedRows.of(rows, LOG)
    found = wrapped.over_rows(lambda _, entries: Kept(entries), what="reading")
    np.testing.assert_array_equal(found.entries, transform_outputs(y, transform=LOG, rows=100))
    assert TransformedRows.of(rows, None) is rows
    assert (wrapped.output_name, wrapped.grouped, wrapped.input_names) == ("y", False, ())


def test_bounds_are_those_that_were_declared():
    assert transformed_bounds(LOG) == OutputBounds(*(float(np.log(end)) for end in LOG.bounds))
