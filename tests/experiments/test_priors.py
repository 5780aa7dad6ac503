"""The comparison of default priors."""

from __future__ import annotations

import io

import numpy as np
import pytest
from joblib import parallel_config
from rich.console import Console
from rich.measure import Measurement
from typer.testing import CliRunner

from cloakgp.fitting.defaults import choose_prior
from cloakgp.models import matern_kernel
from cloakgp.privacy import OutputBounds
from experiments import __main__ as command_line
from experiments import priors
from experiments.datasets import DatasetUnavailableError
from experiments.framework import WIDTH
from experiments.priors import (
    DEFAULT_SHAPE,
    MATERN_SHAPE,
    SHAPES,
    PriorShape,
    Scale,
    Table,
    compare_shapes,
    tables,
)

SCALE = Scale(rows=80, draws=4, insecure_seed=1)


@pytest.fixture(scope="module")
def all_tables():
    try:
        return list(tables())
    except DatasetUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture
def wave(rng):
    X = rng.uniform(0.0, 10.0, size=(120, 1))
    return Table("wave", X=X, outputs=np.sin(2 * X).ravel(), bounds=OutputBounds(-2.0, 2.0))


@pytest.mark.parametrize(
    ("shape", "kernel"), [(DEFAULT_SHAPE, None), (MATERN_SHAPE, matern_kernel)]
)
def test_shapes_are_the_package_s_priors(shape, kernel, rng):
    X = rng.uniform(-3.0, 9.0, size=(30, 2))
    bounds = OutputBounds(-1.0, 3.0)
    split = Table("t", X=X, outputs=np.zeros(30), bounds=bounds).split(0, rows=20)
    given = None if kernel is None else kernel(split.X, width=bounds.width)
    ours = split.prior(shape)
    chosen = choose_prior(split.X, bounds=bounds, kernel=given)
    np.testing.assert_allclose(ours.kernel(X), chosen.kernel(X), rtol=1e-12)
    assert ours.noise_variance == pytest.approx(chosen.noise_variance)
    assert ours.mean == chosen.mean


def test_splits_hold_rows_out_and_are_the_same_each_time(wave):
    one, again, other = (wave.split(number, rows=50) for number in (0, 0, 1))
    assert len(one.X) == 50
    assert len(one.X_test) == 30
    assert not set(one.X.ravel()) & set(one.X_test.ravel())
    assert np.array_equal(one.X, again.X)
    assert not np.array_equal(one.X, other.X)
    np.testing.assert_allclose(one.outputs, np.sin(2 * one.X).ravel())


def test_predicting_the_mean_has_relative_error_one(wave):
    split = wave.split(0, rows=50)
    middle = np.full(len(split.X_test), split.outputs_test.mean())
    assert split.relative_error(middle) == pytest.approx(1.0)


def test_the_shape_that_suits_a_table_wins_and_a_vast_budget_finds_the_function(wave):
    shapes = (PriorShape("rbf", 0.1, noise=0.02), PriorShape("rbf", 5.0, noise=0.02))
    rich = Scale(rows=80, draws=2, epsilon=100.0, insecure_seed=1)
    errors = compare_shapes([wave], shapes=shapes, scale=rich)["wave"]
    assert errors.shape == (2, 2)
    assert errors[0].max() < 0.2
    assert errors[1].min() > 0.5


def test_tables_are_compared_apart_and_workers_change_no_figure(wave):
    other = Table("other", X=wave.X[:60], outputs=wave.outputs[60:], bounds=wave.bounds)
    shapes, scale, ticks = SHAPES[:3], Scale(rows=40, draws=2, insecure_seed=1), []
    alone = {
        table.name: compare_shapes([table], shapes=shapes, scale=scale)[table.name]
        for table in (wave, other)
    }
    with parallel_config(backend="threading", n_jobs=2):
        shared = compare_shapes(
            iter([wave, other]), shapes=shapes, scale=scale, tick=lambda: ticks.append(1)
        )
    assert list(shared) == ["wave", "other"]
    assert all(np.array_equal(shared[name], alone[name]) for name in alone)
    assert len(ticks) == 2


def test_a_trend_is_as_large_as_the_signal(rng):
    X = rng.uniform(0.0, 10.0, size=(40, 2))
    trend = PriorShape("rbf", 0.5, linear=True).kernel(X, width=4.0)
    plain = PriorShape("rbf", 0.5).kernel(X, width=4.0)
    added = np.diag(trend(X) - plain(X))
    assert 1.0 * (4.0 / 4) ** 2 <= added.max() <= 2.0 * (4.0 / 4) ** 2 + 0.02


def test_the_report_names_tables_and_shapes(wave):
    shapes = SHAPES[:2]
    found = compare_shapes([wave], shapes=shapes, scale=SCALE)
    report = priors.shapes_report(found, shapes=shapes, title="toy")
    assert list(report.columns[0].cells) == [str(shape) for shape in shapes]
    first, second = found["wave"].mean(axis=1)
    cells = [list(column.cells) for column in report.columns[1:]]
    assert [float(cell) for cell in cells[0]] == pytest.approx([first, second], abs=1e-3)
    assert cells[1] == ["", f"{second - first:+.3f}"]
    assert cells[2] == ["", f"{int(second < first)} of 1"]
    assert cells[4] == [f"{first:.3f} (wave)", f"{second:.3f} (wave)"]


def test_the_report_of_all_shapes_fits_the_console():
    found = {24 * "x": np.ones((len(SHAPES), 2))}
    report = priors.shapes_report(found, shapes=SHAPES, title="toy")
    wide = Console(file=io.StringIO(), width=1000)
    assert Measurement.get(wide, wide.options, report).maximum <= WIDTH


@pytest.mark.data
def test_tables_have_outputs_in_their_bounds(all_tables):
    assert len(all_tables) == 12
    assert len({table.name for table in all_tables}) == 12
    for table in all_tables:
        assert table.X.shape[0] == len(table.outputs) <= 800
        assert np.isfinite(table.X).all()
        assert np.ptp(table.X, axis=0).min() > 0
        assert table.bounds.lo <= table.outputs.min() < table.outputs.max() <= table.bounds.hi
        # Bounds from general knowledge are neither wild nor tight.
        assert 0.08 < table.outputs.std() / table.bounds.width < 0.3


@pytest.mark.data
@pytest.mark.usefixtures("all_tables")
def test_the_command_prints_its_tables(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    done = CliRunner().invoke(command_line.app, ["priors", "--fast"])
    assert done.exit_code == 0, done.output
    assert "Declared priors" in done.output
    assert "Learning around the default" in done.output
    assert "…" not in done.output


@pytest.mark.slow
@pytest.mark.data
def test_the_default_is_near_the_best_of_the_shapes(all_tables):
    found = compare_shapes(all_tables, scale=Scale(draws=8, insecure_seed=1))
    means = np.mean([errors.mean(axis=1) for errors in found.values()], axis=0)
    assert means[SHAPES.index(DEFAULT_SHAPE)] <= 1.03 * means.min()
