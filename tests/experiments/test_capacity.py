"""More inducing inputs, beside boosted trees: the small version of its command."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import experiments.__main__ as command_line
from experiments import capacity
from experiments.tournament.tables import CLASSES, NUMBERS, WHOLE


def test_errors_are_of_rows_that_were_held_out():
    """Oracle: a straight line through rows that lie on one, and through noise alone."""
    X = np.linspace(0.0, 1.0, 200)[:, None]
    held_out = {"draw": 0, "held_out": 50, "options": {}}
    straight = capacity.cost_of(
        capacity.fit_line, capacity.Rows(X, 2 * X[:, 0], (0.0, 2.0)), **held_out
    )
    noise = np.random.default_rng(0).normal(size=200)
    noisy = capacity.cost_of(capacity.fit_line, capacity.Rows(X, noise, (-9.0, 9.0)), **held_out)
    assert straight.error < 1e-12
    assert 0.9 < noisy.error < 1.2
    assert straight.megabytes > 10


def test_friedmans_function_is_what_it_says():
    table = capacity.friedman(20_000)
    X, rest = table.X, table.y - 10 * np.sin(np.pi * table.X[:, 0] * table.X[:, 1])
    rest -= 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    assert rest.std() == pytest.approx(1.0, abs=0.02)
    assert table.bounds[0] < table.y.min()
    assert table.y.max() < table.bounds[1]


@pytest.mark.parametrize("name", capacity.SOURCES)
def test_tables_of_packages_are_numbers_within_bounds(name):
    table = capacity.of_package(capacity.SOURCES[name])
    assert len(table.X) == len(table.y) > 14_000
    assert table.X.shape[1] == len(capacity.SOURCES[name].inputs) >= 5
    assert np.isfinite(table.X).all()
    lo, hi = table.bounds
    # Of bounds from general knowledge, not of the table.
    assert lo <= table.y.min() < table.y.max() <= hi
    assert np.mean((table.y > lo) & (table.y < hi)) > 0.25


def test_none_of_them_is_in_the_tournament():
    judged = {source for one in (*NUMBERS, *CLASSES, *WHOLE) for source in one.sources}
    assert judged.isdisjoint(source for one in capacity.SOURCES.values() for source in one.sources)


def test_words_count_in_the_order_of_grades():
    table = capacity.of_package(capacity.SOURCES["diamonds"])
    worst, best = (table.y[table.X[:, 3] == grade].mean() for grade in (0.0, 7.0))
    sizes = [table.X[table.X[:, 3] == grade, 0].mean() for grade in (0.0, 7.0)]
    # Clear stones are small ones.
    assert sizes[0] > sizes[1]
    assert worst > best


@pytest.mark.slow
def test_the_small_version_lays_out_every_way(tmp_path):
    done = CliRunner().invoke(
        command_line.app, ["capacity", "--fast", "--output-dir", str(tmp_path)]
    )
    assert done.exit_code == 0, done.output
    for way in ("boosted trees", "straight line", "ours, 200", "ours, auto"):
        assert way in done.output
    assert capacity.NOT_THERE not in done.output
