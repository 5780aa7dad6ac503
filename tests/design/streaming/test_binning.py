"""Cells against dense membership, and what a smaller problem says of the whole one."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.gaussian_process.kernels import Matern

from cloakgp.design.streaming.binning import CellsOfAnswers, CellSums, Partition, cell_sums
from cloakgp.models import SparsePrior
from cloakgp.models.covariance import LowRankCovariance

tables = importlib.import_module("chunks")
Chunks = tables.Chunks


@st.composite
def tasks(draw):
    """A table in any chunks, cells of which some may be empty, and a model."""
    rows, count = draw(st.integers(1, 25)), draw(st.integers(1, 10))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(rows, 2))
    cells = Partition(centres=2 * rng.normal(size=(count, 2)), units=np.exp(rng.normal(size=2)))
    model = SparsePrior(
        kernel=Matern(0.7, nu=1.5), noise_variance=0.3, mean=0.0, inducing=rng.normal(size=(5, 2))
    )
    return Chunks(X, cuts=draw(tables.cuts(rows))), cells, model


def belonging(cells, X):
    """The nearest centre of every row, as a matrix of shape (cells, rows)."""
    apart = (X - cells.centres[:, None]) / cells.units
    nearest = np.square(apart).sum(axis=2).argmin(axis=0)
    return (np.arange(len(cells.centres))[:, None] == nearest).astype(float)


@given(task=tasks())
def test_sums_are_those_of_the_rows_nearest(task):
    table, cells, model = task
    belongs = belonging(cells, table.X)
    np.testing.assert_array_equal(cells.membership(table.X).toarray(), belongs)
    sums = cell_sums(table, model=model, cells=cells)
    features, noise = model.features_and_noise(table.X)
    occupied = belongs.any(axis=1)
    np.testing.assert_allclose(sums.features, (features @ belongs.T)[:, occupied], atol=1e-9)
    np.testing.assert_allclose(sums.noise, (belongs @ noise)[occupied], rtol=1e-9)
    assert len(table.passes) == 1


@given(task=tasks(), answers=st.integers(1, 4), seed=st.integers(0, 99))
def test_a_strategy_of_cells_explains_as_much_of_the_rows(task, answers, seed):
    """tr FᵀRᵀ (s² I + R K_y Rᵀ)⁻¹ R F is the same over cells and over their rows."""
    table, cells, model = task
    rng = np.random.default_rng(seed)
    belongs = belonging(cells, table.X)
    belongs = belongs[belongs.any(axis=1)]
    of_cells = rng.normal(size=(answers, len(belongs)))
    queries = model.features(rng.normal(size=(3, 2)))

    def explained(strategy, covariance, features):
        answered = strategy @ features.T @ queries
        spread = strategy @ covariance.times(strategy.T) + 0.7**2 * np.eye(answers)
        return np.vdot(answered, np.linalg.solve(spread, answered))

    sums = cell_sums(table, model=model, cells=cells)
    gathered = LowRankCovariance(features=sums.features, noise=sums.noise)
    features, _ = model.features_and_noise(table.X)
    np.testing.assert_allclose(
        explained(of_cells, gathered, sums.features),
        explained(of_cells @ belongs, model.output_covariance(table.X), features),
        rtol=1e-8,
    )


@pytest.mark.parametrize("cells", [5, 7, 8, 30])
def test_few_cells_and_many_have_the_covariance_of_features_and_noise(cells, rng):
    """Of fewer than twice as many as features, the products of these are formed first."""
    sums = CellSums(features=rng.normal(size=(4, cells)), noise=rng.uniform(1, 2, size=cells))
    covariance = sums.features.T @ sums.features + np.diag(sums.noise)
    columns = rng.normal(size=(cells, 3))
    np.testing.assert_allclose(sums.times(columns), covariance @ columns, rtol=1e-12, atol=1e-12)


def test_units_decide_what_is_near():
    rows = np.array([[0.4, 1.0]])
    centres = np.array([[0.0, 1.0], [0.4, 0.0]])
    near = {
        units: int(
            Partition(centres=centres, units=np.array(units)).membership(rows).indptr.argmax()
        )
        for units in ((1.0, 1.0), (0.1, 10.0))
    }
    assert near == {(1.0, 1.0): 1, (0.1, 10.0): 2}


@pytest.mark.parametrize("rows", [3, 400])
def test_cells_within_answers_hold_rows_of_one_answer(rows, rng):
    """Oracle: the nearest of an answer's own centres, answer by answer."""
    X, units = rng.normal(size=(rows, 2)) * [1.0, 50.0], np.array([1.0, 50.0])
    answers = rng.integers(3, size=rows)
    signs = rng.choice([-1.0, 1.0], size=rows)
    columns = sparse.csr_array((signs, (answers, np.arange(rows))), shape=(3, rows))
    found = CellsOfAnswers.of(X, columns, units=units, most=30)
    centres, of_answer = found.cells.centres[:, :2], found.cells.centres[:, 2]
    assert len(centres) == min(rows, 30)
    belongs = found.membership(X, columns).toarray()
    np.testing.assert_array_equal(belongs.sum(axis=0), 1.0)
    for row, answer, inside in zip(X, answers, belongs.T, strict=True):
        [cell] = np.flatnonzero(inside)
        distances = np.linalg.norm((centres - row) / units, axis=1)
        distances[of_answer != answer] = np.inf
        assert cell == distances.argmin()
    again = CellsOfAnswers.of(X, columns, units=units, most=30)
    np.testing.assert_array_equal(again.cells.centres, found.cells.centres)


def test_cells_within_answers_are_two_at_least(rng):
    X = rng.normal(size=(40, 1))
    columns = sparse.csr_array((np.ones(40), (np.arange(40) % 4, np.arange(40))), shape=(4, 40))
    found = CellsOfAnswers.of(X, columns, units=np.ones(1), most=3)
    assert len(found.cells.centres) == 8


def test_cells_are_joined_within_answers(rng):
    """Near ones of the same answer, as many as are allowed, or one for each answer."""
    X = rng.normal(size=(400, 2))
    columns = sparse.csr_array(
        (np.ones(400), (rng.integers(4, size=400), np.arange(400))), shape=(4, 400)
    )
    cells = CellsOfAnswers.of(X, columns, units=np.ones(2), most=80)
    answers = cells.cells.centres[:, 2]
    for most, count in ((20, 20), (3, 4), (1_000, len(answers))):
        places = cells.joined(most=most)
        assert sorted(set(places)) == list(range(count))
        for place in range(count):
            assert len(set(answers[places == place])) == 1


def test_cells_are_joined_with_those_near_them():
    centres = np.array([[0.0, 0.0], [1.0, 9.0], [0.1, 0.0], [1.1, 9.0]])
    cells = Partition(centres=centres, units=np.array([1.0, 100.0]))
    places = cells.joined(most=2)
    assert places[0] == places[2] != places[1] == places[3]
