"""Whole rows of classes beside rivals: tables, splits, and that the comparison compares."""

import numpy as np
import pytest

from experiments.framework import quietly
from experiments.rivals.whole_row_classes import LabelTable, methods
from experiments.rivals.whole_rows import Promise
from experiments.whole_row_classes import (
    OURS,
    SOURCES,
    WholeRowClasses,
    classifier,
    drawn_tables,
    projected,
    split_rows,
    within_ranges,
)


def test_rows_are_within_ranges_and_labels_are_places():
    rng = np.random.default_rng(0)
    rows = within_ranges(rng.normal(size=(50, 3)), np.repeat(["c", "a", "b", "a", "c"], 10))
    assert rows.X.min() >= 0
    assert rows.X.max() <= 1
    assert rows.classes == 3
    assert rows.labels[:11].tolist() == [2] * 10 + [0]


def test_projections_are_public_and_alike_for_all():
    X = np.random.default_rng(1).normal(size=(5, 64))
    assert projected(X).shape == (5, 16)
    np.testing.assert_array_equal(projected(X)[:2], projected(X[:2]))


def test_splits_share_no_row():
    rows = drawn_tables()["drawn, 3 classes"]
    table, truth = split_rows(rows, seed=0, most_rows=100)
    assert len(table.X) == len(table.labels) == 100
    assert len(truth) == len(table.X_query) == 75
    assert not set(map(tuple, table.X)) & set(map(tuple, table.X_query))


def test_no_table_is_named_twice():
    assert len({source.item for source in SOURCES}) == len(SOURCES) >= 6


@pytest.mark.parametrize("method", [OURS, *methods()])
def test_every_method_learns_what_is_plain_but_the_commonest_class(method):
    rng = np.random.default_rng(2)
    X = rng.uniform(size=(900, 1))
    labels = np.minimum((3 * X[:, 0] ** 0.7).astype(int), 2)
    table = LabelTable(X, labels, X[:200], 3)
    tried = {OURS: {"as it is": classifier}, **methods()}[method]
    wrong = [
        np.mean(predict(table, Promise(100.0, 1e-5, "replace"), rng) != labels[:200])
        for predict in tried.values()
    ]
    commonest = method.startswith("the commonest")
    assert min(wrong) > 0.3 if commonest else min(wrong) < 0.25


def test_the_small_version_measures_every_method_and_keeps_it(tmp_path):
    small = WholeRowClasses(
        splits=2, epsilons=(2.0,), drawn=True, measurements=tmp_path / "errors.jsonl"
    )
    found = small.compute(quietly)
    assert set(found.errors) == {(2.0, "replace"), (2.0, "add-remove")}
    for errors in found.errors.values():
        assert set(errors) == {OURS, *methods()}
        assert all(cell.shape == (2, 2) for cell in errors.values())
        assert all(((cell >= 0) & (cell <= 1)).all() for cell in errors.values())
    assert len(list(small.tables(found))) >= 4
    before = (tmp_path / "errors.jsonl").read_text()
    again = small.compute(quietly)
    assert (tmp_path / "errors.jsonl").read_text() == before
    np.testing.assert_array_equal(
        again.errors[(2.0, "replace")][OURS], found.errors[(2.0, "replace")][OURS]
    )
