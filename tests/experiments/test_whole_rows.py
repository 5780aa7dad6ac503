"""Rivals of whole rows by their formulas, and that the comparison compares."""

import numpy as np
import pytest
from scipy import linalg

from experiments.framework import quietly
from experiments.rivals import whole_rows as rivals
from experiments.rivals.whole_rows import Promise, Table, ada_ridge, linear_features, methods
from experiments.whole_rows import CHOSEN_ON, JUDGED, OURS, WholeRows, scaled, split_rows


class Silent:
    """No noise at all."""

    def normal(self, size=None):
        return 0.0 if size is None else np.zeros(size)


def table(rng, rows=2000):
    X = rng.uniform(size=(rows, 3))
    outputs = 0.4 * X[:, 0] - 0.3 * X[:, 2] + 0.05 * rng.normal(size=rows)
    return Table(X, outputs, rng.uniform(size=(50, 3)))


STRONG = Promise(1e8, 1e-5, "replace")


def test_without_noise_adassp_is_least_squares():
    one = table(np.random.default_rng(0))
    found = rivals.adassp(one, STRONG, Silent(), features=linear_features)
    np.testing.assert_allclose(found, 0.4 * one.X_query[:, 0] - 0.3 * one.X_query[:, 2], atol=0.01)


def test_adassp_is_its_papers_formula():
    """A ridge that the noise asks for, less the least eigenvalue, on XᵀX and Xᵀy of unit rows."""
    one, promise = table(np.random.default_rng(1), rows=100), Promise(1.0, 1e-5, "add-remove")
    rows = linear_features(one.X)
    noise_sd = promise.noise_sd(1.0, share=1 / 3)
    least = linalg.eigvalsh(rows.T @ rows)[0] - noise_sd * np.sqrt(2 * np.log(1 / rivals.FAILURE))
    ridge = np.sqrt(4 * np.log(2 * 4**2 / rivals.FAILURE)) * noise_sd - max(least, 0)
    assert ridge > 0
    expected = linalg.solve(rows.T @ rows + ridge * np.eye(4), rows.T @ one.outputs)
    found = rivals.adassp(one, promise, Silent(), features=linear_features)
    np.testing.assert_allclose(found, linear_features(one.X_query) @ expected)
    assert ada_ridge(1e9, noise_sd=1.0, features=4) == 0.0


def test_many_unclipped_rounds_of_the_boosted_one_undo_the_ridge():
    one, promise = table(np.random.default_rng(2), rows=300), Promise(1.0, 1e-5, "add-remove")
    ways = {"features": linear_features, "clip": 2.0}
    first, many = (
        rivals.boosted_adassp(one, promise, Silent(), rounds=rounds, **ways) for rounds in (1, 400)
    )
    np.testing.assert_allclose(
        first, rivals.adassp(one, promise, Silent(), features=linear_features)
    )
    plain = linalg.lstsq(linear_features(one.X), one.outputs)[0]
    np.testing.assert_allclose(many, linear_features(one.X_query) @ plain, atol=1e-3)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_no_row_moves_sums_further_than_is_claimed(neighbours):
    """The reaches that rivals' noise is for, against rows at corners."""
    promise = Promise(1.0, 1e-5, neighbours)
    corners = np.array([[a, b] for a in (0.0, 0.5, 1.0) for b in (0.0, 0.5, 1.0)])
    for features in (
        linear_features,
        lambda X: rivals.random_features(X, count=10, frequency=2.0),
    ):
        rows = features(corners)
        assert np.linalg.norm(rows, axis=1).max() <= 1 + 1e-12
        products = [np.outer(row, row) for row in rows]
        moments = [sign * row for row in rows for sign in (-1, 1)]
        alone = neighbours == "add-remove"
        for found, reach in (
            (products, promise.products_reach),
            (moments, promise.moments_reach),
        ):
            others = [np.zeros_like(found[0])] if alone else found
            most = max(np.linalg.norm(one - other) for one in found for other in others)
            assert most <= reach + 1e-12


def test_random_features_are_public_and_alike_for_all():
    X = np.random.default_rng(3).uniform(size=(5, 2))
    one, two = (rivals.random_features(X, count=7, frequency=1.0) for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_no_table_is_both_chosen_on_and_judged():
    assert not {one.item for one in CHOSEN_ON} & {one.item for one in JUDGED}
    assert min(len(CHOSEN_ON), len(JUDGED)) >= 8


def test_splits_share_no_row_and_are_within_ranges():
    rng = np.random.default_rng(4)
    rows = scaled(rng.normal(size=(100, 2)), rng.normal(size=100))
    assert rows.X.min() >= 0
    assert rows.X.max() <= 1
    assert np.abs(rows.outputs).max() <= 1
    fitted, truth = split_rows(rows, seed=0, most_rows=60)
    assert len(fitted.X) == 60
    assert len(truth) == len(fitted.X_query) == 25
    assert not set(map(tuple, fitted.X)) & set(map(tuple, fitted.X_query))


@pytest.mark.slow
def test_the_small_version_measures_every_method_and_keeps_it(tmp_path):
    small = WholeRows(splits=2, epsilons=(2.0,), drawn=True, measurements=tmp_path / "errors.jsonl")
    found = small.compute(quietly)
    assert set(found.errors) == {(2.0, "replace"), (2.0, "add-remove")}
    wanted = {OURS, *methods()}
    for errors in found.errors.values():
        assert wanted <= set(errors)
        assert all(len(cell) == 3 and np.isfinite(cell).all() for cell in errors.values())
    assert len(list(small.tables(found))) >= 6
    before = (tmp_path / "errors.jsonl").read_text()
    again = small.compute(quietly)
    assert (tmp_path / "errors.jsonl").read_text() == before
    for promise, errors in found.errors.items():
        np.testing.assert_array_equal(errors[OURS], again.errors[promise][OURS])
    held = np.concatenate(list(found.held.values()))
    assert 0.8 < held.mean() <= 1
