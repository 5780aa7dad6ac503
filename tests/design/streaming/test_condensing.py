"""Questions kept cell by cell, against the columns of all rows."""

from __future__ import annotations

import importlib
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import Matern

from cloakgp.design.streaming.binning import Partition
from cloakgp.design.streaming.condensing import CellQuestions, condense
from cloakgp.design.streaming.rules import BallRule, LinearRule
from cloakgp.models import SparsePrior

tables = importlib.import_module("chunks")
Chunks = tables.Chunks
UNITS = np.array([1.0, 3.0])


def model_on(inducing):
    return SparsePrior(kernel=Matern(0.7, nu=1.5), noise_variance=0.3, mean=0.0, inducing=inducing)


@st.composite
def tasks(draw):
    """A table in any chunks, a rule of either kind, and cells, some of which may be empty."""
    rows = draw(st.integers(1, 25))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(rows, 2))
    matrix = rng.normal(size=(draw(st.integers(0, 4)), 5))
    rule = (
        LinearRule(matrix=matrix)
        if draw(st.booleans())
        else BallRule(matrix=matrix, curvatures=np.exp(rng.normal(size=len(matrix))))
    )
    centres = rng.normal(size=(draw(st.integers(1, 8)), 2))
    cells = Partition(centres=centres, units=UNITS)
    return Chunks(X, cuts=draw(tables.cuts(rows))), model_on(rng.normal(size=(5, 2))), rule, cells


def belonging(X, cells):
    apart = (X[:, None] - cells.centres) / UNITS
    nearest = np.square(apart).sum(axis=2).argmin(axis=1)
    occupied = np.unique(nearest)
    return (nearest[:, None] == occupied).astype(float)


@given(task=tasks())
def test_sums_are_those_over_the_rows_of_each_cell(task):
    table, model, rule, cells = task
    found = condense(table, model=model, rule=rule, cells=cells)
    strategy, belongs = rule.columns(*model.features_and_noise(table.X)), belonging(table.X, cells)
    counts = belongs.sum(axis=0)
    np.testing.assert_array_equal(found.counts, counts)
    np.testing.assert_allclose(found.centres, (belongs.T @ table.X) / counts[:, None], atol=1e-12)
    np.testing.assert_allclose(found.questions, strategy @ belongs, atol=1e-9)
    np.testing.assert_allclose(found.squares, np.square(strategy).sum(axis=0) @ belongs, atol=1e-9)
    np.testing.assert_allclose(found.gram, strategy @ strategy.T, atol=1e-9)
    np.testing.assert_allclose(found.totals, strategy.sum(axis=1), atol=1e-9)
    assert found.count == len(table.X)
    longest = np.linalg.norm(strategy, axis=0).max()
    assert found.longest == pytest.approx(longest, rel=1e-9)
    assert len(table.passes) == 1


@given(task=tasks(), seed=st.integers(0, 9))
def test_products_are_exact_where_rows_of_a_cell_are_asked_alike(task, seed):
    table, model, rule, cells = task
    columns = rule.columns(*model.features_and_noise(cells.centres))
    belongs = belonging(table.X, cells)
    # The same column for all of a cell, of those that have rows.
    kept = np.unique(np.square((table.X[:, None] - cells.centres) / UNITS).sum(2).argmin(axis=1))
    strategy = columns[:, kept] @ belongs.T
    found = CellQuestions(
        centres=cells.centres[kept],
        counts=belongs.sum(axis=0),
        questions=strategy @ belongs,
        squares=np.square(strategy).sum(axis=0) @ belongs,
        gram=strategy @ strategy.T,
        longest=1.0,
    )
    variances = np.random.default_rng(seed).uniform(size=len(kept))
    exact = (strategy * (belongs @ variances)) @ strategy.T
    np.testing.assert_allclose(found.row_products(variances), exact, atol=1e-9)


@given(task=tasks(), seed=st.integers(0, 9))
def test_products_are_positive_with_the_share_of_every_cell(task, seed):
    table, model, rule, cells = task
    found = condense(table, model=model, rule=rule, cells=cells)
    strategy, belongs = rule.columns(*model.features_and_noise(table.X)), belonging(table.X, cells)
    variances = np.random.default_rng(seed).uniform(size=len(found.counts))
    product = found.row_products(variances)
    np.testing.assert_allclose(product, product.T, atol=1e-12)
    scale = max(float(np.square(strategy).sum()), 1e-12)
    assert np.linalg.eigvalsh(product + np.eye(len(product)) * 1e-9 * scale).min(initial=1) >= 0
    # The trace, and everything where all rows have one variance.
    shares = np.square(strategy).sum(axis=0) @ belongs @ variances
    assert np.trace(product) == pytest.approx(shares, abs=1e-9 * scale)
    np.testing.assert_allclose(
        found.row_products(np.full(len(variances), 0.7)),
        0.7 * strategy @ strategy.T,
        atol=1e-9 * scale,
    )


@given(task=tasks(), seed=st.integers(0, 9))
def test_forms_are_the_adjoint_of_products(task, seed):
    table, model, rule, cells = task
    found = condense(table, model=model, rule=rule, cells=cells)
    rng = np.random.default_rng(seed)
    variances, matrix = rng.normal(size=len(found.counts)), rng.normal(size=found.gram.shape)
    matrix = matrix + matrix.T
    one = float(np.vdot(found.row_products(variances), matrix))
    other = float(variances @ found.row_forms(matrix))
    scale = max(float(np.abs(matrix).sum() * np.square(found.squares).sum()), 1.0)
    assert one == pytest.approx(other, abs=1e-9 * scale)


def test_rows_as_cells_of_their_own_lose_nothing(rng):
    X, strategy, variances = rng.normal(size=(9, 2)), rng.normal(size=(4, 9)), rng.uniform(size=9)
    found = CellQuestions.of_rows(X, strategy)
    np.testing.assert_allclose(
        found.row_products(variances), (strategy * variances) @ strategy.T, rtol=1e-12
    )
    matrix = np.diag([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(
        found.row_forms(matrix), np.einsum("kj,kl,lj->j", strategy, matrix, strategy), rtol=1e-12
    )
    assert not found.within.any()
    assert found.longest == np.linalg.norm(strategy, axis=0).max()


def test_cells_are_gathered_as_their_rows_would_be(rng):
    X = rng.normal(size=(40, 2))
    model, rule = model_on(rng.normal(size=(5, 2))), LinearRule(matrix=rng.normal(size=(3, 5)))
    cells = Partition(centres=rng.normal(size=(7, 2)), units=UNITS)
    strategy = rule.columns(*model.features_and_noise(X))
    direct = condense(Chunks(X), model=model, rule=rule, cells=cells)
    positions = belonging(X, cells).argmax(axis=1)
    gathered = CellQuestions.of_rows(X, strategy).gathered(positions)
    for name in ("centres", "counts", "questions", "squares", "gram", "longest"):
        np.testing.assert_allclose(getattr(gathered, name), getattr(direct, name), atol=1e-12)


@given(task=tasks())
def test_a_sample_corrects_what_cells_are_off_and_of_all_rows_leaves_nothing(task):
    table, model, rule, cells = task
    found = condense(table, model=model, rule=rule, cells=cells, sample=table.X).scaled(0.5)
    strategy = 0.5 * rule.columns(*model.features_and_noise(table.X))
    rng = np.random.default_rng(0)
    at_cells, at_rows = rng.normal(size=len(found.counts)), rng.normal(size=len(table.X))
    weights = np.concatenate([at_cells, at_rows])
    np.testing.assert_allclose(found.estimating @ weights, strategy @ at_rows, atol=1e-9)
    belongs = belonging(table.X, cells)
    beyond = (strategy * (at_rows - belongs @ at_cells)) @ strategy.T
    np.testing.assert_allclose(
        found.estimated_products(weights), found.row_products(at_cells) + beyond, atol=1e-9
    )


def test_samples_say_on_average_what_all_rows_say(rng):
    X = rng.normal(size=(6, 2))
    rule, model = LinearRule(matrix=rng.normal(size=(2, 3))), model_on(rng.normal(size=(3, 2)))
    cells = Partition(centres=X[:2], units=UNITS)
    at_cells, at_rows = rng.normal(size=2), rng.normal(size=6)
    estimates = []
    for row in range(6):
        found = condense(
            Chunks.of(X, rows=4), model=model, rule=rule, cells=cells, sample=X[row : row + 1]
        )
        estimates.append(found.estimating @ np.append(at_cells, at_rows[row]))
    expected = rule.columns(*model.features_and_noise(X)) @ at_rows
    np.testing.assert_allclose(np.mean(estimates, axis=0), expected, atol=1e-9)


def test_gathered_cells_keep_their_sample(rng):
    X = rng.normal(size=(8, 2))
    rule, model = LinearRule(matrix=rng.normal(size=(2, 3))), model_on(rng.normal(size=(3, 2)))
    cells = Partition(centres=X[:4], units=UNITS)
    found = condense(Chunks.of(X, rows=3), model=model, rule=rule, cells=cells, sample=X)
    assert found.gathered(np.array([0, 1, 1, 0])).sample.cells.max() == 1


def test_other_units(rng):
    found = CellQuestions.of_rows(rng.normal(size=(5, 1)), rng.normal(size=(2, 5)))
    found = found.gathered(np.array([0, 0, 1, 1, 1]))
    scaled, variances = found.scaled(3.0), np.array([0.5, 2.0])
    np.testing.assert_allclose(scaled.row_products(variances), 9 * found.row_products(variances))
    np.testing.assert_allclose(scaled.totals, 3 * found.totals)
    assert scaled.longest == 3 * found.longest
    np.testing.assert_array_equal(scaled.counts, found.counts)


@pytest.mark.parametrize("place", range(7))
@pytest.mark.parametrize("length", [3.0, np.nan])
def test_the_longest_column_is_found_wherever_it_stands(place, length):
    class AtZero:
        def features_and_noise(self, X):
            return X.T, np.ones(len(X))

    class Long:
        answers = 1

        def columns(self, features, noise):  # noqa: ARG002
            return np.where(features == place, length, 0.5)

    found = condense(
        Chunks.of(np.arange(7.0)[:, None], rows=3),
        model=AtZero(),
        rule=Long(),
        cells=Partition(centres=np.array([[0.0], [6.0]]), units=np.ones(1)),
    )
    np.testing.assert_equal(found.longest, length)


def test_the_work_can_be_sent(rng):
    sent = []

    class Spied(Chunks):
        def over_inputs(self, work, *, what):
            sent.append(what)
            return super().over_inputs(pickle.loads(pickle.dumps(work)), what=what)

    model, rule = model_on(rng.normal(size=(5, 2))), LinearRule(matrix=rng.normal(size=(3, 5)))
    cells = Partition(centres=np.zeros((1, 2)), units=UNITS)
    X = rng.normal(size=(8, 2))
    one = condense(Spied(X), model=model, rule=rule, cells=cells, what="again")
    other = condense(Chunks(X), model=model, rule=rule, cells=cells)
    assert sent == ["again"]
    np.testing.assert_array_equal(one.questions, other.questions)
