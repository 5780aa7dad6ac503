"""Sums over rows against the matrices that are never formed."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, Matern

from cloakgp.design.streaming.binning import Partition
from cloakgp.design.streaming.rules import BallRule, LinearRule
from cloakgp.design.streaming.sums import sum_strategy, sums_over_cells
from cloakgp.models import SparsePrior

tables = importlib.import_module("chunks")
Chunks = tables.Chunks


def prior_on(inducing, *, length=0.7, approximation="fitc"):
    return SparsePrior(
        kernel=Matern(length, nu=1.5),
        noise_variance=0.3,
        mean=0.0,
        inducing=inducing,
        approximation=approximation,
    )


@st.composite
def tasks(draw):
    """A table in any chunks, a model of it, and a rule of either kind."""
    rows = draw(st.integers(1, 25))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(rows, 2))
    model = prior_on(rng.normal(size=(5, 2)))
    matrix = rng.normal(size=(draw(st.integers(0, 4)), 5))
    rule = (
        LinearRule(matrix=matrix)
        if draw(st.booleans())
        else BallRule(matrix=matrix, curvatures=np.exp(rng.normal(size=len(matrix))))
    )
    return Chunks(X, cuts=draw(tables.cuts(rows))), model, rule


def dense(table, model, rule):
    """R, V and Λ of all rows."""
    features, noise = model.features_and_noise(table.X)
    return rule.columns(features, noise), features, np.diag(noise)


def assert_sums(sums, strategy, features, noise):
    np.testing.assert_allclose(sums.features, strategy @ features.T, atol=1e-9)
    np.testing.assert_allclose(sums.noise, strategy @ noise @ strategy.T, atol=1e-9)
    np.testing.assert_allclose(sums.totals, strategy @ np.ones(strategy.shape[1]), atol=1e-9)
    assert sums.count == strategy.shape[1]
    longest = np.linalg.norm(strategy, axis=0).max()
    np.testing.assert_allclose(sums.longest, longest, rtol=1e-9, atol=1e-300)


@given(task=tasks())
def test_sums_are_those_of_the_whole_matrices(task):
    table, model, rule = task
    sums = sum_strategy(table, model=model, rule=rule)
    assert_sums(sums, *dense(table, model, rule))
    assert sums.chunk_rows == np.diff(table.edges).max()
    assert len(table.passes) == 1


@given(task=tasks(), count=st.integers(1, 6))
def test_sums_over_cells_are_those_over_nearest_rows(task, count):
    table, model, rule = task
    centres = np.random.default_rng(count).normal(size=(count, 2))
    cells = Partition(centres=centres, units=np.array([1.0, 3.0]))
    strategy, *_ = dense(table, model, rule)

    def of_chunk(chunk):
        columns = rule.columns(*model.features_and_noise(chunk.X))
        return sums_over_cells(columns, cells.membership(chunk.X))

    sums = table.over_inputs(of_chunk, what="summing")
    apart = (table.X[:, None] - centres) / [1.0, 3.0]
    belongs = np.square(apart).sum(axis=2).argmin(axis=1)[:, None] == np.arange(count)
    np.testing.assert_allclose(sums.questions, strategy @ belongs, atol=1e-9)
    np.testing.assert_allclose(sums.totals, strategy.sum(axis=1), atol=1e-9)
    np.testing.assert_allclose(sums.squares, np.square(strategy).sum(axis=0) @ belongs, atol=1e-9)


@pytest.mark.parametrize("place", range(7))
def test_the_longest_column_is_found_wherever_it_stands(place):
    X = np.zeros((7, 1))
    X[place] = 1.0
    model = SparsePrior(
        kernel=RBF(0.1), noise_variance=0.5, mean=0.0, inducing=np.ones((1, 1)), approximation="dtc"
    )
    sums = sum_strategy(Chunks.of(X, rows=3), model=model, rule=LinearRule(matrix=np.eye(1)))
    assert sums.longest == pytest.approx(2.0, rel=1e-5)


def test_answers_have_the_covariance_that_the_sums_say(rng):
    """A Aᵀ + B is R K_y Rᵀ, by the covariance of `SparsePrior`."""
    X = rng.normal(size=(12, 2))
    model = prior_on(rng.normal(size=(5, 2)))
    rule = LinearRule(matrix=rng.normal(size=(3, 5)))
    sums = sum_strategy(Chunks.of(X, rows=5), model=model, rule=rule)
    strategy = rule.columns(*model.features_and_noise(X))
    rows = model.row_covariance(X, X) + np.diag(model.row_noise(X))
    np.testing.assert_allclose(
        sums.features @ sums.features.T + sums.noise, strategy @ rows @ strategy.T, rtol=1e-9
    )
