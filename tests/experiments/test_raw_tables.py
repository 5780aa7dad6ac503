"""Raw tables beside encodings by hand: the encodings, and the small comparison."""

import contextlib

import numpy as np
import pandas as pd
import pytest

from experiments.raw_tables import (
    WAYS,
    RawTables,
    encoded_by_hand,
    error_of,
    numbers_alone,
    raw_tables,
)


@contextlib.contextmanager
def progress(what, *, steps):
    del what, steps
    yield lambda: None


@pytest.fixture
def people():
    return pd.DataFrame({"age": [20.0, np.nan, 40.0, 60.0], "job": ["a", "b", None, "a"]})


def test_levels_and_medians_are_those_of_the_rows_that_are_fitted(people):
    train, test = encoded_by_hand(people.head(3), people.tail(1).assign(job="new"))
    np.testing.assert_array_equal(train, [[20, 0, 1, 0], [30, 1, 0, 1], [40, 0, 0, 0]])
    np.testing.assert_array_equal(test, [[60, 0, 0, 0]])


def test_numbers_alone_have_neither_text_nor_gaps(people):
    train, _ = numbers_alone(people, people)
    np.testing.assert_array_equal(train, [[20], [40], [40], [60]])


@pytest.mark.slow
def test_much_is_learned_from_a_raw_table_at_a_large_epsilon():
    table = raw_tables()["tips"]()
    assert error_of(table, "as it comes", epsilon=100.0, rows=180, draw=0) < 0.9
    assert error_of(table, "one number", epsilon=100.0, rows=180, draw=0) == pytest.approx(
        1, abs=0.1
    )


def test_the_small_version_lays_out_every_way():
    experiment = RawTables(**RawTables.small)
    found = experiment.compute(progress)
    assert {way for *_, way in found.errors} == set(WAYS)
    [table] = experiment.tables(found)
    assert table.row_count == 1
