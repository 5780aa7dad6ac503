"""Remembered columns: those that were found, for the same inputs and no others."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

from cloakgp.design.streaming import remembering, row_model
from cloakgp.design.streaming.remembering import BLOCK_ROWS, RememberedColumns, RememberedRows
from cloakgp.design.streaming.rules import PartitionRule


def columns_of_one_entry(*, answers, rows, seed=0):
    rng = np.random.default_rng(seed)
    parts, signs = rng.integers(answers, size=rows), rng.choice([-1.0, 1.0], size=rows)
    # The last answer is among them: its number is the largest that is kept.
    parts[-1] = answers - 1
    return sparse.csr_array((signs, (parts, np.arange(rows))), shape=(answers, rows))


@pytest.mark.parametrize("answers", [1, 127, 128, 129, 40_000])
def test_columns_come_back_as_they_were(answers):
    X = np.random.default_rng(1).normal(size=(50, 2))
    asked = columns_of_one_entry(answers=answers, rows=50)
    remembered = RememberedColumns()
    remembered.keep(X, asked)
    found = remembered.of(X.copy())
    assert found.shape == asked.shape
    assert found.has_canonical_format == asked.has_canonical_format
    np.testing.assert_array_equal(found.toarray(), asked.toarray())


def test_a_row_that_changed_is_not_taken_for_what_it_was():
    X = np.random.default_rng(1).normal(size=(50, 2))
    remembered = RememberedColumns()
    remembered.keep(X, columns_of_one_entry(answers=3, rows=50))
    X[7, 1] = np.nextafter(X[7, 1], np.inf)
    assert remembered.of(X) is None
    assert remembered.of(X[:20]) is None


def test_columns_of_more_entries_are_not_kept():
    X = np.zeros((2, 1))
    remembered = RememberedColumns()
    remembered.keep(X, sparse.csr_array(np.array([[1.0, 0.5], [0.0, 0.5]])))
    assert remembered.of(X) is None


def test_no_more_is_kept_than_there_is_room_for(monkeypatch):
    monkeypatch.setattr(remembering, "MOST_BYTES", 25)
    remembered = RememberedColumns()
    tables = [np.full((10, 1), float(number)) for number in range(4)]
    for X in tables:
        remembered.keep(X, columns_of_one_entry(answers=3, rows=10))
    assert [remembered.of(X) is None for X in tables] == [False, False, True, True]
    remembered.forget()
    assert remembered.of(tables[0]) is None
    remembered.keep(tables[3], columns_of_one_entry(answers=3, rows=10))
    assert remembered.of(tables[3]) is not None


def test_several_threads_may_keep():
    remembered = RememberedColumns()
    tables = [np.full((10, 1), float(number)) for number in range(200)]
    asked = [columns_of_one_entry(answers=5, rows=10, seed=seed) for seed in range(200)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(remembered.keep, tables, asked))
    for X, one in zip(tables, asked, strict=True):
        np.testing.assert_array_equal(remembered.of(X).toarray(), one.toarray())


def test_a_rule_that_travels_remembers_nothing():
    rule = PartitionRule(matrix=np.eye(2), curvatures=np.zeros(2))
    X = np.zeros((3, 1))
    rule.remembered.keep(X, columns_of_one_entry(answers=2, rows=3))
    assert pickle.loads(pickle.dumps(rule)).remembered.of(X) is None
    assert rule.remembered.of(X) is not None


def test_rows_are_known_again_in_whole_blocks(monkeypatch):
    monkeypatch.setattr(remembering, "BLOCK_ROWS", 4)
    X = np.arange(10.0)[:, None]
    lower, upper = X[:, 0] - 1.0, X[:, 0] + 1.0
    remembered = RememberedRows()
    remembered.keep(X, lower, upper)
    for rows in (slice(None), slice(4), slice(4, 10), slice(8, None)):
        found = remembered.of(X[rows])
        np.testing.assert_array_equal(found, (lower[rows], upper[rows]))
    for rows in (slice(2, 6), slice(6), slice(1, None)):
        assert remembered.of(X[rows]) is None
    assert pickle.loads(pickle.dumps(remembered)).of(X) is None


def test_what_is_kept_twice_takes_no_more_room(monkeypatch):
    monkeypatch.setattr(remembering, "MOST_BYTES", 200)
    remembered, X = RememberedRows(), np.zeros((10, 1))
    for _ in range(9):
        remembered.keep(X, np.ones(10))
    remembered.keep(X + 1.0, np.ones(10))
    assert remembered.of(X + 1.0) is not None
    remembered.keep(X + 2.0, np.ones(10))
    assert remembered.of(X + 2.0) is None


def test_there_is_room_for_as_many_rows_as_docs_say(monkeypatch):
    """Of two bytes in columns of hundreds of answers, of sixteen in bands: docs/many-rows.md."""
    room = remembering.MOST_BYTES
    assert room / 2**20 == 128
    assert room / 2 == pytest.approx(67e6, rel=0.01)
    assert room / 16 == pytest.approx(8e6, rel=0.06)
    monkeypatch.setattr(remembering, "MOST_BYTES", 160)
    for rows, kept in ((80, True), (81, False)):
        columns, X = RememberedColumns(), np.arange(float(rows))[:, None]
        columns.keep(X, columns_of_one_entry(answers=300, rows=rows))
        assert (columns.of(X) is not None) == kept
    for rows, kept in ((10, True), (11, False)):
        bands, X = RememberedRows(), np.arange(float(rows))[:, None]
        bands.keep(X, X[:, 0], X[:, 0] + 1.0)
        assert (bands.of(X) is not None) == kept


class Counted:
    """A model that counts what it computed."""

    def __init__(self, order):
        self.order, self.rows = order, 0

    def features_and_noise(self, X):
        self.rows += len(X)
        return np.array([X[:, 0], X[:, 0] ** 2], order=self.order), np.abs(X[:, 0])


@pytest.mark.parametrize("order", ["C", "F"])
def test_features_come_back_as_they_were_by_chunks_and_by_their_blocks(order):
    X = np.random.default_rng(0).normal(size=(2 * BLOCK_ROWS + 7, 1))
    model, remembered = Counted(order), row_model.RememberedFeatures(len(X))
    features, noise = remembered.features_and_noise(model, X)
    again, noise_again = remembered.features_and_noise(model, X)
    np.testing.assert_array_equal(again, features)
    np.testing.assert_array_equal(noise_again, noise)
    assert (again.flags.c_contiguous, again.flags.f_contiguous) == (order == "C", order == "F")
    one = slice(BLOCK_ROWS, 2 * BLOCK_ROWS)
    np.testing.assert_array_equal(remembered.features_and_noise(model, X[one])[0], features[:, one])
    assert model.rows == len(X)
    # Of another model, and of other rows, nothing is known.
    remembered.features_and_noise(Counted(order), X)
    remembered.features_and_noise(model, X + 1.0)
    assert model.rows == 2 * len(X)


def test_no_more_features_are_kept_than_there_is_room_for(monkeypatch):
    model, X = Counted("C"), np.ones((10, 1))
    remembered = row_model.RememberedFeatures(10)
    for part in (X, X + 1.0, X, X + 1.0):
        remembered.features_and_noise(model, part)
    # Others than those that are gone through again are not kept.
    assert model.rows == 30
    monkeypatch.setattr(row_model, "MOST_BYTES", 2 * 8 * 10 - 1)
    # Nor is anything, if not all have room.
    remembered = row_model.RememberedFeatures(10)
    for part in (X, X):
        remembered.features_and_noise(model, part)
    assert model.rows == 50


def test_features_stay_on_their_machine():
    model, X = Counted("C"), np.ones((10, 1))
    remembered = row_model.RememberedFeatures(10)
    remembered.features_and_noise(model, X)
    again = pickle.loads(pickle.dumps(remembered))
    again.features_and_noise(model, X)
    assert model.rows == 20
