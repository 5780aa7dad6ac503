"""The streamed design in the ℓ1 ball against the design that sees every row, and dense algebra."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF

from cloakgp.design import design_l1
from cloakgp.design.streaming.binning import Partition
from cloakgp.design.streaming.l1_ball import design_streamed_l1
from cloakgp.models.summary import summarise

tables, streamed = importlib.import_module("chunks"), importlib.import_module("streamed_tasks")
Chunks, Task, TASKS = tables.Chunks, streamed.Task, streamed.TASKS


def designed(task, table=None, *, cells=40, **settings):
    table = Chunks.of(task.X, rows=70) if table is None else table
    summary = summarise(Chunks(task.X))
    return design_streamed_l1(
        table,
        task.queries,
        model=task.model,
        cells=Partition(centres=summary.centres(cells)[0], units=summary.units),
        prior_variance=task.prior_variance,
        noise_sd=task.noise_sd,
        **settings,
    )


def row_by_row(task):
    """The design that sees every row."""
    return design_l1(
        task.model.output_covariance(task.X),
        task.model.features(task.X).T @ task.queries,
        prior_variance=task.prior_variance,
        noise_sd=task.noise_sd,
    )


def assert_consistent(task, design):
    """What is said of the design holds of its very columns: each has one entry, ±1."""
    strategy = task.strategy(design.rule)
    np.testing.assert_array_equal(np.sort(np.abs(strategy), axis=0)[-1], np.ones(len(task.X)))
    np.testing.assert_array_equal(np.abs(strategy).sum(axis=0), np.ones(len(task.X)))
    assert design.sums.longest == 1.0
    features, noise = task.model.features_and_noise(task.X)
    np.testing.assert_allclose(design.sums.features, strategy @ features.T, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(design.sums.noise, strategy * noise @ strategy.T, atol=1e-7)
    unexplained = task.prior_variance - task.explained(strategy)
    assert design.unexplained == pytest.approx(unexplained, rel=1e-6)


@pytest.mark.parametrize("name", TASKS)
def test_against_the_design_that_sees_every_row(name):
    """Which may share rows between answers: that pays where rows are few and noise is weak."""
    task = Task.drawn(**TASKS[name])
    design, best = designed(task, cells=len(task.X) // 3), row_by_row(task)
    assert_consistent(task, design)
    assert design.unexplained <= 1.03 * best.unexplained
    # Both certificates hold.
    assert best.unexplained * (1 - best.certificate.gap) <= design.unexplained
    assert design.unexplained * (1 - design.certificate.gap) <= best.unexplained
    assert design.certificate.gap < 0.25


@given(seed=st.integers(0, 10**6), width=st.integers(1, 3), noise_sd=st.floats(0.3, 100.0))
def test_whatever_is_certified_no_strategy_explains_more(seed, width, noise_sd):
    """Not even one whose columns have Euclidean norm 1."""
    task = Task.drawn(seed, rows=40, width=width, inducing=5, points=3, noise_sd=noise_sd)
    design = designed(task, cells=8)
    assert_consistent(task, design)
    most = task.prior_variance - design.unexplained * (1 - design.certificate.gap)
    best = task.best(gap=1e-2)
    assert task.explained(best.strategy) <= most * (1 + 1e-9)


def test_better_than_one_answer_and_than_cells():
    task = Task.drawn(rows=600, noise_sd=30.0)
    design = designed(task, cells=60)
    summary = summarise(Chunks(task.X))
    left = []
    for parts in (1, 2, 4, 8, 16, 32):
        cells = Partition(centres=summary.centres(parts)[0], units=summary.units)
        strategy = cells.membership(task.X).toarray()
        left.append(task.prior_variance - task.explained(strategy))
    assert design.unexplained < min(left)


def test_chunks_do_not_matter():
    task = Task.drawn(rows=80)
    whole = designed(task, Chunks(task.X))
    cut = designed(task, Chunks(task.X, cuts=[1, 17, 60]))
    # Rows are assigned by a local search: between ends that are as good, last bits decide.
    assert cut.unexplained == pytest.approx(whole.unexplained, rel=1e-2)


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_few_rows(rows):
    task = Task.drawn(rows=rows)
    design = designed(task)
    assert_consistent(task, design)
    assert design.rule.answers <= rows


def test_queries_of_which_nothing_is_known_ask_nothing():
    task = Task.drawn(kernel=RBF(0.1))
    away = Task(task.X, task.model, np.full((4, 2), 1e3), np.ones(4), 3.0)
    design = designed(away)
    assert design.rule.answers == 0
    assert design.unexplained == pytest.approx(4.0)
    assert away.strategy(design.rule).shape == (0, 200)


def test_passes_are_few():
    """One for cells and a few for the partition, of which the first bounds all others."""
    task = Task.drawn()
    table = Chunks.of(task.X, rows=70)
    designed(task, table)
    assert 2 <= len(table.passes) <= 4
    assert table.passes[0] == "gathering rows"


def test_a_sample_leaves_one_pass_over_all_rows():
    task = Task.drawn(rows=2000, noise_sd=30.0)
    table = Chunks.of(task.X, rows=300)
    design = designed(task, table, cells=80, sample=task.sampled(700))
    assert table.passes == ["designing, step 1"]
    assert_consistent(task, design)
    whole = designed(task, cells=80)
    # Both go to the end of a local search.
    assert design.unexplained == pytest.approx(whole.unexplained, rel=0.05)
    best = task.best(gap=1e-3)
    assert design.unexplained * (1 - design.certificate.gap) <= best.unexplained * (1 + 1e-9)
