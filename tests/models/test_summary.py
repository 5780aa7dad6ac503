"""Summaries against numpy on the whole table."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.models.summary import summarise

tables = importlib.import_module("chunks")
Chunks = tables.Chunks


@st.composite
def cut_tables(draw):
    rows = draw(st.integers(1, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return Chunks(rng.normal(size=(rows, 2)), cuts=draw(tables.cuts(rows)))


@given(table=cut_tables(), size=st.integers(1, 70))
def test_counts_and_extremes_are_numpys(table, size):
    summary = summarise(table, size=size)
    assert summary.count == len(table.X)
    np.testing.assert_array_equal(summary.ranges, [table.X.min(axis=0), table.X.max(axis=0)])
    assert len(table.passes) == 1


@given(table=cut_tables(), size=st.integers(1, 70))
def test_the_sample_is_rows_of_the_table_each_once_and_always_the_same(table, size):
    summary = summarise(table, size=size)
    assert summary.sample.shape == (min(size, len(table.X)), 2)
    where = (table.X[:, None] == summary.sample).all(axis=2)
    assert (where.sum(axis=0) == 1).all()
    assert where.sum(axis=1).max() == 1
    again = summarise(Chunks(table.X, cuts=table.edges[1:-1]), size=size)
    np.testing.assert_array_equal(again.sample, summary.sample)


@given(table=cut_tables(), sizes=st.tuples(st.integers(1, 30), st.integers(1, 30)))
def test_a_smaller_sample_is_the_beginning_of_a_larger_one(table, sizes):
    """So a part of the sample is spread as the whole one is."""
    small, large = (summarise(table, size=size).sample for size in sorted(sizes))
    np.testing.assert_array_equal(large[: len(small)], small)


@pytest.mark.parametrize("chunk", [100, 997, 4096, 20_000])
@pytest.mark.parametrize("period", [1, 2, 10, 1000])
def test_the_sample_is_spread_over_the_table(chunk, period):
    """Of a table in order of time, or that repeats itself, every part gets its share."""
    rows, size = 20_000, 1000
    X = np.arange(rows, dtype=float)[:, None]
    sample = summarise(Chunks.of(X, rows=chunk), size=size).sample.ravel()
    tenths = np.histogram(sample, bins=10, range=(0, rows))[0]
    # A random sample would have 100 ± 10 in each.
    assert tenths.min() >= 75
    kinds = min(period, 10)
    shares = np.bincount((sample % period * kinds // period).astype(int)) / size * kinds
    assert len(shares) == kinds
    assert shares.min() >= 0.6


def test_units_are_those_of_the_default_kernel_or_one():
    X = np.array([[1.0, 5.0, 0.0], [4.0, 5.0, 1.0], [1.0, 5.0, 5.0]])
    np.testing.assert_allclose(summarise(Chunks(X)).units, [1.5, 1.0, X[:, 2].std()])


def test_one_extreme_row_does_not_bring_all_others_together():
    """In units of the range, all but one of a thousand rows would share a few of ten cells."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(size=1000), rng.uniform(size=1000)])
    X[0, 0] = 1000.0
    centres, _ = summarise(Chunks(X)).centres(50)
    assert len(np.unique(centres[:, 0].round(1))) > 2


@given(table=cut_tables(), count=st.integers(1, 10))
def test_centres_stand_for_all_rows(table, count):
    summary = summarise(table, size=30)
    centres, sizes = summary.centres(count)
    assert len(centres) == len(sizes) <= count
    if len(summary.sample) <= count:
        np.testing.assert_array_equal(centres, np.unique(summary.sample, axis=0))
    assert (sizes > 0).all()
    np.testing.assert_allclose(sizes.sum(), summary.count, rtol=1e-12)
    # Means of rows lie within the table.
    assert (centres >= summary.lowest - 1e-9).all()
    assert (centres <= summary.highest + 1e-9).all()


def test_few_distinct_rows_are_their_own_centres():
    rows = np.array([[0.0, 1.0], [2.0, 3.0], [0.0, 1.0], [5.0, 0.0], [0.0, 1.0]])
    summary = summarise(Chunks.of(np.tile(rows, (20, 1)), rows=7), size=1000)
    for count in (3, 4, 50):
        centres, sizes = summary.centres(count)
        np.testing.assert_array_equal(centres, [[0.0, 1.0], [2.0, 3.0], [5.0, 0.0]])
        np.testing.assert_allclose(sizes, [60, 20, 20])
    centres, sizes = summary.centres(2)
    assert len(centres) == 2
    np.testing.assert_allclose(sizes.sum(), 100)


def test_centres_find_clusters_whatever_the_units(rng):
    """Of two inputs in very different units both count."""
    places = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    units = np.array([1.0, 1e6])
    X = np.repeat(places, 50, axis=0) + 0.01 * rng.normal(size=(200, 2))
    centres, sizes = summarise(Chunks.of(X * units, rows=30)).centres(4)
    order = np.lexsort((centres[:, 1], centres[:, 0].round(1)))
    np.testing.assert_allclose((centres / units)[order], places, atol=0.02)
    np.testing.assert_allclose(sizes, 50, rtol=1e-12)


def test_centres_far_from_zero_are_those_near_it(rng):
    """A minute of Unix time: without its middle taken off, 12 of 40 centres were left."""
    near = rng.uniform(0, 60, size=(600, 1))
    found, sizes = summarise(Chunks(near + 1.7e9, cuts=[])).centres(40)
    assert len(found) == 40
    assert sizes.sum() == 600
    gaps = np.diff(np.sort(found[:, 0]))
    assert gaps.max() < 6.0
    assert (found >= 1.7e9).all()


def test_no_centres_are_refused():
    with pytest.raises(ValueError, match="at least 1, got 0"):
        summarise(Chunks(np.zeros((3, 1)))).centres(0)
