"""Pictures show what the release holds, and say what it guarantees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from cloakgp import DPGPRegressor, Release
from cloakgp.plots import PredictionDisplay
from cloakgp.plots.themes import DARK
from cloakgp.utils.formatting import NORMAL_95


def _release(*, width: int, queries: int | None = None, seed: int | None = None) -> Release:
    X = np.random.default_rng(3).uniform(0, 50, size=(60, width))
    points = None if queries is None else np.linspace(0, 50, queries)[:, None]
    model = DPGPRegressor(
        bounds=(0, 100),
        epsilon=1.0,
        delta=1e-3,
        noise="gaussian",
        criterion="trace",
        inducing=6,
        insecure_seed=seed,
    )
    made = model.fit(X, 50 + 30 * np.sin(X[:, 0] / 10), X_query=points).release_
    names = ("age", "weight in $", "size of $")[:width]
    return replace(made, input_names=names, output_name="cost_$")


def plot_release(release, **chosen):
    return PredictionDisplay.of(release, **chosen).draw()


def _legend(figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_a_curve_shows_mean_and_bands():
    release = _release(width=1)
    figure = plot_release(release)
    (axes,) = figure.axes
    curve = next(line for line in axes.get_lines() if line.get_label() == "prediction")
    grid = np.asarray(curve.get_xdata())
    mean, sd = release.predict(grid[:, None], return_std=True)
    lower, upper = np.clip((mean - NORMAL_95 * sd, mean + NORMAL_95 * sd), 0.0, 100.0)
    # Noise may bring the mean beyond the bounds: it is drawn within its limits.
    np.testing.assert_allclose(curve.get_ydata(), np.clip(mean, lower, upper))
    band = next(one for one in axes.collections if one.get_label() == "95 % for the mean")
    edges = band.get_paths()[0].vertices[:, 1]
    assert edges.max() == pytest.approx(upper.max())
    assert edges.min() == pytest.approx(lower.min())
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("age", "cost_$")
    assert figure.get_suptitle() == "cost_$ from age, (1, 0.001)-differentially private"


def test_limits_of_new_outputs_are_those_that_counts_calibrate(calibrated):
    display = PredictionDisplay.of(calibrated)
    frame = display.to_frame()
    lower, upper = calibrated.predict_interval(frame[["x1"]].to_numpy(), 0.95)
    np.testing.assert_array_equal(frame[["new_lower", "new_upper"]].T, (lower, upper))
    [axes] = display.draw().axes
    band = next(one for one in axes.collections if one.get_label() == "95 % of new outputs")
    edges = band.get_paths()[0].vertices[:, 1]
    assert (edges.min(), edges.max()) == pytest.approx((lower.min(), upper.max()))


def test_few_raw_predictions_are_drawn_and_many_are_not():
    few, many = _release(width=1, queries=7), _release(width=1, queries=60)
    assert any("raw predictions" in text for text in _legend(plot_release(few)))
    assert not any("raw predictions" in text for text in _legend(plot_release(many)))
    combined = few.combine(replace(_release(width=1, queries=6), prior=few.prior))
    assert any("raw predictions" in text for text in _legend(plot_release(combined)))


def test_raw_predictions_beyond_the_frame_are_counted():
    release = _release(width=1, queries=7)
    (one,) = release.measurements
    far = replace(one, answers=replace(one.answers, values=1000 + one.answers.values))
    labels = _legend(plot_release(replace(release, measurements=(one, far))))
    assert any("beyond the frame" in text for text in labels)


def test_a_map_shows_mean_and_sd_where_rows_are():
    release = _release(width=2)
    display = PredictionDisplay.of(release, unit="£")
    figure = display.draw()
    axes, bar = figure.axes
    frame = display.to_frame()
    points = frame[["age", "weight in $"]].to_numpy()
    mean, sd = release.predict(points, return_std=True)
    np.testing.assert_allclose(frame["mean"], np.clip(mean, 0, 100))
    np.testing.assert_allclose(frame["sd"], sd)
    X = release.measurements[0].strategy.X
    width = np.ptp(points, axis=0)
    nearest = np.sqrt((((points[:, None] - X) / width) ** 2).sum(axis=2)).min(axis=1)
    assert 0 < frame["near"].mean() < 1
    assert nearest[frame["near"]].max() <= nearest[~frame["near"]].min()
    assert nearest[frame["near"]].max() < 0.15
    levels = [float(text.get_text()) for text in axes.texts]
    assert levels
    assert sd.min() <= min(levels) <= max(levels) <= sd[frame["near"]].max()
    filled = axes.collections[0]
    assert filled.get_clip_path() is not None
    assert len(axes.collections[-1].get_offsets()) == 60
    assert bar.get_ylabel() == "predicted cost_$ (£)"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("age", "weight in $")
    assert "sd of the prediction, £" in _legend(figure)


def test_more_inputs_have_a_curve_each():
    release = _release(width=3)
    figure = plot_release(release)
    assert [axes.get_xlabel() for axes in figure.axes] == ["age", "weight in $", "size of $"]
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    with pytest.raises(ValueError, match="no input sex; its inputs are: age"):
        plot_release(release, vary=["sex"])
    with pytest.raises(ValueError, match="twice"):
        plot_release(release, vary=["age", "age"])
    (axes,) = plot_release(release, vary=["age"]).axes
    assert "at the median of the rows: weight in $ = " in axes.get_title()
    assert [axes.get_xlabel() for axes in plot_release(_release(width=2), apart=True).axes] == [
        "age",
        "weight in $",
    ]


def test_others_are_held_at_their_medians():
    release = _release(width=3)
    frame = PredictionDisplay.of(release, vary=["weight in $"]).to_frame()
    held = np.median(release.measurements[0].strategy.X, axis=0)
    points = np.tile(held, (len(frame), 1))
    points[:, 1] = frame["weight in $"]
    np.testing.assert_allclose(frame["mean"], np.clip(release.predict(points), 0, 100))


def test_axes_and_styles_are_those_that_are_given():
    release = _release(width=1)
    axes = Figure().add_subplot()
    display = PredictionDisplay.from_release(release, ax=axes, line_kw={"color": "red"})
    assert display.ax_ is axes
    assert display.figure_ is axes.figure
    [curve] = [line for line in axes.get_lines() if line.get_label() == "prediction"]
    assert curve.get_color() == "red"
    with pytest.raises(ValueError, match="has 1 panels, and ax 2"):
        display.plot(Figure().subplots(1, 2))


def test_without_axes_pyplot_has_the_figure():
    # Others may have left theirs.
    plt.close("all")
    model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, learn=None, stages=None)
    model.fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    with plt.style.context("dark_background"):
        display = PredictionDisplay.from_estimator(model)
    assert plt.get_fignums() == [display.figure_.number]
    assert display.ax_.xaxis.label.get_color() == DARK.ink
    plt.close(display.figure_)


def test_seeded_noise_is_in_the_title():
    figure = plot_release(_release(width=1, seed=1))
    assert "INSECURE: seeded noise, not private" in figure.get_suptitle()


def test_a_constant_input_can_be_drawn():
    release = _release(width=1)
    (one,) = release.measurements
    moved = replace(one.strategy, X=np.full_like(one.strategy.X, 7.0))
    figure = plot_release(replace(release, measurements=(replace(one, strategy=moved),)))
    low, high = figure.axes[0].get_xlim()
    assert low < 7.0 < high
