"""More inducing inputs, beside boosted trees: the small version of its command."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from typer.testing import CliRunner

import experiments.__main__ as command_line
from experiments import capacity
from experiments.pages import Kept
from experiments.tournament.tables import CLASSES, NUMBERS, WHOLE

# Of the kept tables.
EPSILONS = ("0.3", "1", "3")


def test_errors_are_of_rows_that_were_held_out():
    """Oracle: a straight line through rows that lie on one, and through noise alone."""
    X = np.linspace(0.0, 1.0, 200)[:, None]
    held_out = {"draw": 0, "held_out": 50, "options": {"model": LinearRegression()}}
    straight = capacity.cost_of(
        capacity.fit_without_privacy, capacity.Rows(X, 2 * X[:, 0], (0.0, 2.0)), **held_out
    )
    noise = np.random.default_rng(0).normal(size=200)
    noisy = capacity.cost_of(
        capacity.fit_without_privacy, capacity.Rows(X, noise, (-9.0, 9.0)), **held_out
    )
    assert straight.error < 1e-12
    assert 0.9 < noisy.error < 1.2
    assert straight.megabytes > 10


def test_of_several_tunings_the_least_error_and_the_mean_time_count():
    X, y = np.linspace(0.0, 1.0, 40)[:, None], np.linspace(0.0, 1.0, 40)

    def fit(_, asked):
        return capacity.Fitted({"bad": asked[:, 0] + 1.0, "good": asked[:, 0]})

    cost = capacity.cost_of(fit, capacity.Rows(X, y, (0.0, 1.0)), draw=0, held_out=10, options={})
    assert cost.error < 1e-12


def test_the_known_kernel_is_that_of_the_outputs_and_stays_fixed():
    """Oracle: rows of a curve with noise of sd .5 that one of two inputs alone moves."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, size=(400, 2))
    y = 3.0 * np.sin(2.0 * X[:, 0]) + 0.5 * rng.normal(size=400)
    kernel, noise = capacity.learn_without_privacy(capacity.Rows(X, y, (-5.0, 5.0)))
    assert noise == pytest.approx(0.25, rel=0.2)
    first, second = kernel.k2.k2.length_scale
    assert second > 10 * first
    assert kernel.n_dims == 0


def test_tables_say_how_errors_compare():
    """Oracle: errors that were made up."""
    errors = {
        ("t", capacity.TREES, None): [0.10],
        ("t", capacity.LINE, None): [0.40],
        ("t", "ours, auto", 1.0): [0.11, 0.13],
        ("t", capacity.KNOWN, 1.0): [0.10],
        ("t", capacity.TOLD, 1.0): [0.24],
    }
    found = {
        place: [capacity.Cost(error=error, seconds=1.0, megabytes=2.0) for error in each]
        for place, each in errors.items()
    }
    shown, compared, _ = capacity.lay_out(found)
    assert [cell for column in shown.columns for cell in column.cells] == [
        "t",
        "1",
        "0.1200 (0.1100 to 0.1300)",
        *("0.1000", "0.2400", "0.1000", "0.4000"),
    ]
    ratios = [cell for column in compared.columns[3:] for cell in column.cells]
    assert ratios == ["1.200", "1.000", "1.200", "0.500"]


def test_what_docs_say_of_the_kept_tables_is_what_they_show():
    """Sentences below the tables of docs/default-prior.md."""
    errors, compared, _ = Kept.read("capacity").tables
    ratios = [dict(zip(compared.columns, row, strict=True)) for row in compared.rows]

    def where(column, *, beyond):
        return {(row["table"], row["ε"]) for row in ratios if float(row[column]) > beyond}

    assert where("over the best rival", beyond=1) == {("health expenses", "3")}
    assert not where("over the best rival", beyond=1.0035)
    assert where("over known kernel", beyond=1.05) == {
        ("friedman", "0.3"),
        ("weather", "0.3"),
        ("weather", "1"),
        ("diamonds", "1"),
    }
    [sixth] = [
        float(row["over known kernel"])
        for row in ratios
        if (row["table"], row["ε"]) == ("weather", "3")
    ]
    assert 1 - sixth == pytest.approx(1 / 6, abs=0.03)
    everywhere = {(row["table"], row["ε"]) for row in ratios}
    reached = {("friedman", "1"), ("friedman", "3")}
    reached |= {("weeks of work", epsilon) for epsilon in EPSILONS}
    assert where("over boosted trees", beyond=1.0) == everywhere - reached
    assert not {table for table, eps in where("over boosted trees", beyond=1.1) if eps == "3"}
    beyond = {table for table, eps in where("over boosted trees", beyond=1.15) if eps == "1"}
    assert beyond == {"weather", "household expenses", "diamonds"}
    known = where("known kernel over boosted trees", beyond=1.15)
    assert {table for table in beyond if (table, "1") in known} == beyond - {"diamonds"}

    def at_budgets(table, column):
        place = errors.columns.index(column)
        by_budget = {tuple(row[:2]): float(row[place]) for row in errors.rows}
        return [by_budget[table, epsilon] for epsilon in EPSILONS]

    # Where nothing is won, a thousandth more is what one draw leaves open.
    better = [(row["table"], "ours, auto") for row in ratios]
    better += [(table, "known kernel") for table in ("diamonds", "weather")]
    for table, way in better:
        few, more, much = at_budgets(table, way)
        assert much < 1.001 * more < 1.001**2 * few
    few, more, much = at_budgets("friedman", "known kernel")
    assert few < more < much


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
    for way in ("boosted trees", "straight line", "ours, 200", "ours, auto", "known kernel"):
        assert way in done.output
    assert capacity.NOT_THERE not in done.output
