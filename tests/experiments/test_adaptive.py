"""The comparison of stages with one stage, and the picture of bands."""

from __future__ import annotations

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import WhiteKernel
from typer.testing import CliRunner

from cloakgp import DPGPRegressor
from cloakgp.fitting.bands import DEFAULT_STAGES
from cloakgp.models import default_kernel, matern_kernel
from cloakgp.privacy import OutputBounds
from experiments import __main__ as command_line
from experiments import adaptive, bands
from experiments.adaptive import Adaptive, split_tables
from experiments.citibike_folds import Trips
from experiments.datasets import DatasetUnavailableError, load_kung
from experiments.framework import progress
from experiments.priors import Table
from experiments.ways import (
    DEFAULT,
    LEVELS,
    NO_PRIVACY,
    NOISY_MEAN,
    ONE_STAGE,
    Compared,
    Predicted,
    Setting,
    chosen_ways,
    compare,
    noisy_mean,
    released,
    without_privacy,
)

SETTING = Setting(epsilon=1.0, insecure_seed=1)


@pytest.fixture
def wave(rng):
    X = rng.uniform(0.0, 10.0, size=(100, 1))
    return Table("wave", X=X, outputs=np.sin(X).ravel(), bounds=OutputBounds(-2.0, 2.0))


@pytest.fixture
def split(wave):
    return wave.split(0, rows=60)


def flat(names, *, values, levels=0.0):
    """Return results of one table, whose errors are given by way and draw."""
    draws = len(values[0])
    return Compared(
        ways=tuple(names),
        tables=("t",),
        errors=np.array(values)[:, None, :],
        below=np.full((len(names), 1, draws, len(LEVELS)), levels),
        spread=np.full((1, draws), 10.0),
    )


def test_shares_below_quantiles_are_the_levels_where_predictions_are_true(rng):
    mean, sd = rng.normal(size=40_000), rng.uniform(1.0, 3.0, size=40_000)
    outputs = mean + sd * rng.normal(size=40_000)
    shares = Predicted(mean, sd).shares_below(outputs)
    np.testing.assert_allclose(shares, LEVELS, atol=0.01)
    twice = Predicted(mean, 2 * sd).shares_below(outputs)
    assert twice[1] < 0.02
    assert twice[-2] > 0.98
    assert np.isnan(Predicted(mean).shares_below(outputs)).all()


def test_without_privacy_predictions_are_scikit_learn_s(split):
    bounds = split.bounds
    kernel = default_kernel(split.X, width=bounds.width)
    kernel += WhiteKernel((bounds.width / 10) ** 2)
    theirs = GaussianProcessRegressor(kernel, optimizer=None).fit(split.X, split.outputs)
    mean, sd = theirs.predict(split.X_test, return_std=True)
    ours = without_privacy(split, SETTING)
    np.testing.assert_allclose(ours.mean, mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(ours.sd, sd, rtol=1e-6)


def test_untouched_defaults_are_the_estimator_s(split):
    model = DPGPRegressor(bounds=(-2.0, 2.0), epsilon=1.0, delta=0.01, insecure_seed=1)
    model.fit(split.X, split.outputs)
    assert len(model.release_.measurements) >= 3
    expected = model.predict(split.X_test)
    assert np.array_equal(released(split, SETTING).mean, expected)
    alone = released(split, SETTING, stages=None)
    assert not np.array_equal(alone.mean, expected)
    matern = released(split, SETTING, stages=None, kernel=matern_kernel)
    assert not np.array_equal(alone.mean, matern.mean)


def test_the_noisy_mean_is_the_mean_plus_laplace_noise_of_its_sensitivity(split):
    draws = np.array(
        [noisy_mean(split, Setting(epsilon=2.0, insecure_seed=n)).mean[0] for n in range(2000)]
    )
    # b = 4 / (60 · 2); the mean of |t| is b.
    scale = split.bounds.width / (len(split.X) * 2.0)
    errors = draws - split.outputs.mean()
    assert np.abs(errors).mean() == pytest.approx(scale, rel=0.1)
    assert np.abs(errors.mean()) < 5 * scale / np.sqrt(len(draws))


def test_draws_have_seeds_of_their_own_or_none():
    seeds = {SETTING.for_draw(draw).insecure_seed for draw in range(50)}
    # Stages add small numbers to a seed: neighbours would share noise.
    assert len(seeds) == 50
    assert np.diff(sorted(seeds)).min() > 10
    assert Setting(epsilon=1.0).for_draw(3).insecure_seed is None


def test_tables_and_ways_are_told_apart_and_workers_change_no_figure(wave):
    other = Table("other", X=wave.X, outputs=-wave.X[:, 0] / 10, bounds=wave.bounds)
    splits, ticks = split_tables([wave, other], draws=2, rows=40), []
    ways = chosen_ways(ONE_STAGE, NOISY_MEAN, NO_PRIVACY)
    with parallel_config(backend="threading", n_jobs=2):
        found = compare(splits, ways=ways, setting=SETTING, tick=lambda: ticks.append(1))
    assert len(ticks) == 4
    assert found.errors.shape == (3, 2, 2)
    for number, table in enumerate((wave, other)):
        alone = compare({table.name: splits[table.name]}, ways=ways, setting=SETTING)
        for way in ways:
            assert np.array_equal(found.errors_of(way)[number], alone.errors_of(way)[0])
            np.testing.assert_array_equal(found.coverage_of(way)[number], alone.coverage_of(way)[0])
    first = splits["other"][0]
    predicted = without_privacy(first, SETTING)
    expected = first.relative_error(predicted.mean)
    assert found.errors_of(NO_PRIVACY)[1, 0] == pytest.approx(expected)
    inside = np.abs(first.outputs_test - predicted.mean) <= 1.959964 * predicted.sd
    assert found.coverage_of(NO_PRIVACY)[1, 0] == pytest.approx(inside.mean())
    assert found.spread[1, 0] == pytest.approx(first.outputs_test.std())


def test_permuted_outputs_are_the_same_numbers_on_other_rows(wave):
    (plain,) = split_tables([wave], draws=1, rows=75)["wave"]
    first, second = split_tables([wave], draws=2, rows=75, change=adaptive.permuted)["wave"]
    assert np.array_equal(first.X, plain.X)

    def everything(one):
        return np.sort(np.concatenate([one.outputs, one.outputs_test]))

    assert np.array_equal(everything(first), everything(plain))
    assert not np.array_equal(first.outputs, plain.outputs)
    # Nothing is left of the sine.
    assert abs(np.corrcoef(np.sin(first.X[:, 0]), first.outputs)[0, 1]) < 0.4
    assert not np.array_equal(first.outputs, second.outputs)


def test_wide_bounds_leave_outputs_in_their_lowest_part(wave):
    (plain,) = split_tables([wave], draws=1, rows=75)["wave"]
    (wide,) = split_tables([wave], draws=1, rows=75, change=adaptive.widened)["wave"]
    assert np.array_equal(wide.outputs, plain.outputs)
    assert wide.bounds == OutputBounds(-2.0, 14.0)


def test_a_forecast_is_over_the_sd_of_the_outputs_held_out(wave):
    splits = split_tables([wave], draws=2, rows=40)
    found = adaptive.forecast_errors(splits, epsilon=1.0)
    model = DPGPRegressor(bounds=(-2.0, 2.0), epsilon=1.0, delta=0.01)
    for one, split in zip(found[0], splits["wave"], strict=True):
        (forecast,) = model.forecast(split.X, split.X_test)
        assert one * split.outputs_test.std() == pytest.approx(forecast.output_error)


def test_folds_of_trips_are_those_of_the_2018_paper_with_more_held_out(rng):
    trips = Trips(X=rng.uniform(size=(1200, 4)), durations=rng.uniform(0, 4000, size=1200))
    (split,) = adaptive.split_trips(trips, draws=1, training=150)["Citi Bike"]
    (fold,) = trips.folds(1, training=150)
    assert np.array_equal(split.X, fold.X)
    assert np.array_equal(split.X_test[: len(fold.X_query)], fold.X_query)
    assert np.array_equal(split.outputs_test[: len(fold.truth)], fold.truth)
    assert len(split.X_test) == 1000


def test_reports_show_differences_and_shares():
    found = {1.0: flat([ONE_STAGE, DEFAULT], values=[13 * [0.5, 0.7], 26 * [0.4]], levels=0.25)}
    report = adaptive.overall_report(found, title="toy")
    cells = [list(column.cells) for column in report.columns]
    assert cells[2] == ["0.600 (0.020)", "0.400 (0.000)"]
    assert cells[3] == ["", "-0.200 (0.020)"]
    assert cells[4] == ["", "1 of 1"]
    assert cells[5:] == [["", "t"], ["", "-0.200 (0.020)"]]
    report = adaptive.calibration_report(found, title="toy")
    assert [next(iter(column.cells)) for column in report.columns][2:] == [
        *["25.0%"] * 5,
        "0% (0% to 0%)",
    ]
    three = [ONE_STAGE, DEFAULT, NO_PRIVACY]
    found = {1.0: flat(three, values=[26 * [0.6], 26 * [0.4], 26 * [0.2]])}
    report = adaptive.won_back_report(found, title="toy")
    assert [next(iter(column.cells)) for column in report.columns] == ["1", "0.400", "0.200", "50%"]
    report = adaptive.priors_report(found[1.0], found[1.0], title="toy")
    assert list(report.columns[1].cells) == ["0.600 (0.000)", "0.400 (0.000)", "0.200 (0.000)"]
    assert list(report.columns[4].cells) == ["+0.200 (0.000)", "", "-0.200 (0.000)"]
    report = adaptive.forecast_report(found, {1.0: np.full((1, 26), 0.8)}, title="toy")
    assert [next(iter(column.cells)) for column in report.columns] == [
        "1",
        "0.50",
        "0.50 (t)",
        "0.50 (t)",
    ]
    found = {1.0: flat([DEFAULT, NOISY_MEAN], values=[13 * [1.1, 1.3], 26 * [1.0]])}
    report = adaptive.beside_the_mean_report(found, title="toy")
    assert [list(column.cells)[:2] for column in report.columns] == [
        ["1", "1"],
        [DEFAULT, NOISY_MEAN],
        ["1.200 (0.020)", "1.000 (0.000)"],
        ["+0.200 (0.020)", ""],
        ["0%", "0%"],
    ]
    report = adaptive.trips_report(
        flat([ONE_STAGE, DEFAULT], values=[13 * [0.5, 0.7], 26 * [0.4]]), title="toy"
    )
    assert list(report.columns[1].cells) == ["6.0 (0.2)", "4.0 (0.0)"]
    assert list(report.columns[2].cells) == ["", "-2.0 (0.2)"]


def test_every_stage_is_drawn_with_its_band(rng, tmp_path):
    age = rng.uniform(0.0, 90.0, size=80)
    height = np.minimum(70.0 + 6 * age, 150.0) + 6 * rng.normal(size=80)
    found = bands.released_in_stages(age, height, insecure_seed=1)
    assert len(found.bands) == len(DEFAULT_STAGES)
    assert found.bands[0].width == pytest.approx(150.0)
    widths = [one.width.mean() for one in found.bands]
    assert widths == sorted(widths, reverse=True)
    # The rest went to the question about spread, if it was asked.
    assert 0.94 < sum(found.shares) < 1.01
    figure = bands.bands_figure(found)
    titles = [axes.get_title() for axes in figure.axes]
    for stage, title in zip(DEFAULT_STAGES[1:], titles[1:], strict=False):
        assert title.endswith(f"mean ± {stage.width:g} sd")
    for axes, one in zip(figure.axes, found.bands, strict=False):
        outside = (height < one.lower) | (height > one.upper)
        inside, clipped = axes.lines[2:4]
        assert len(inside.get_xdata()) == (~outside).sum()
        assert len(clipped.get_xdata()) == outside.sum()
    figure.savefig(tmp_path / "bands.png")


@pytest.fixture
def data():
    try:
        load_kung()
    except DatasetUnavailableError as error:
        pytest.skip(str(error))


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("name", ["adaptive", "bands"])
def test_the_commands_print_their_tables(name, tmp_path):
    done = CliRunner().invoke(
        command_line.app, [name, "--fast", "--output-dir", str(tmp_path)], env={"COLUMNS": "40"}
    )
    assert done.exit_code == 0, done.output
    assert "…" not in done.output
    assert {"adaptive": "noisy mean", "bands": "mean width"}[name] in done.output


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.usefixtures("data")
def test_stages_win_and_do_no_harm_where_nothing_can_be_predicted():
    """Errors of four splits; measured with more in docs/adaptive.md."""
    found = Adaptive(draws=4, trips_draws=0, epsilons=(1.0,), insecure_seed=1).compute(progress)
    real, permuted = found.real[1.0], found.permuted[1.0]
    assert real.errors_of(DEFAULT).mean() < real.errors_of(ONE_STAGE).mean() - 0.02
    assert permuted.errors_of(DEFAULT).mean() < permuted.errors_of(NOISY_MEAN).mean() + 0.05
