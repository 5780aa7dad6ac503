"""Pictures of classes show what the release holds, and what of it is due to privacy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cloakgp import DPGPClassifier, Release
from cloakgp.plots import ClassificationDisplay, PredictionDisplay
from cloakgp.plots.classification import look_of
from cloakgp.plots.figures import figure_bytes
from cloakgp.plots.themes import DARK, LIGHT
from cloakgp.release.posterior.intervals import probability_limits


def _release(*, width: int, classes: int = 2, seed: int | None = None) -> Release:
    X = np.random.default_rng(3).uniform(0, 50, size=(60, width))
    y = (X[:, 0] * classes / 50.1).astype(int)
    model = DPGPClassifier(
        classes=range(classes),
        epsilon=2.0,
        delta=1e-3,
        noise="gaussian",
        inducing=6,
        insecure_seed=seed,
    )
    names = ("age", "weight in $", "size of $")[:width]
    return replace(model.fit(X, y).release_, input_names=names, output_name="ill_$")


@pytest.fixture(scope="module")
def line() -> Release:
    return _release(width=1)


@pytest.fixture(scope="module")
def plane() -> Release:
    return _release(width=2)


def plot_classes(release, **chosen):
    return ClassificationDisplay.of(release, **chosen).draw()


def _legend(figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def _edges(axes, label: str) -> np.ndarray:
    band = next(one for one in axes.collections if one.get_label() == label)
    return band.get_paths()[0].vertices[:, 1]


def test_a_curve_shows_the_probability_and_its_limits(line):
    figure = plot_classes(line)
    (axes,) = figure.axes
    curve = next(line for line in axes.get_lines() if line.get_label() == "predicted probability")
    points = np.asarray(curve.get_xdata())[:, None]
    np.testing.assert_allclose(curve.get_ydata(), line.predict_proba(points)[:, 1])
    lower, upper = probability_limits(line, points)
    inner_lower, inner_upper = probability_limits(line, points, privacy_noise=False)
    inner = _edges(axes, "95 % without the privacy noise")
    assert inner.max() == pytest.approx(inner_upper[:, 1].max())
    assert inner.min() == pytest.approx(inner_lower[:, 1].min())
    added = _edges(axes, "what the privacy noise adds")
    assert added.min() == pytest.approx(lower[:, 1].min())
    assert added.max() == pytest.approx(inner_lower[:, 1].max())
    assert axes.collections[2].get_paths()[0].vertices[:, 1].max() == pytest.approx(
        upper[:, 1].max()
    )
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("age", "probability of ill_$ = 1")
    assert figure.get_suptitle() == "ill_$ from age, (2, 0.001)-differentially private"
    assert "before any answer" in _legend(figure)


def test_the_class_can_be_chosen(line):
    (axes,) = plot_classes(line, only="0").axes
    assert axes.get_ylabel() == "probability of ill_$ = 0"
    curve = next(line for line in axes.get_lines() if line.get_label() == "predicted probability")
    points = np.asarray(curve.get_xdata())[:, None]
    np.testing.assert_allclose(curve.get_ydata(), line.predict_proba(points)[:, 0])
    with pytest.raises(ValueError, match="no class 2; its classes are: 0, 1"):
        plot_classes(line, only="2")


def test_a_map_shows_the_probability_and_where_it_is_open(plane):
    figure = plot_classes(plane)
    axes, bar = figure.axes
    surface = axes.collections[0]
    assert bar.get_ylabel() == "probability of ill_$ = 1"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("age", "weight in $")
    grid = np.linspace(*axes.get_xlim(), 9)[1:-1]
    points = np.column_stack([grid, np.full(7, 25.0)])
    probabilities = plane.predict_proba(points)[:, 1]
    for (x, y), probability in zip(points, probabilities, strict=True):
        inside = [
            number
            for number, path in enumerate(surface.get_paths())
            if len(path.vertices) and path.contains_point((x, y))
        ]
        assert any(abs(surface.levels[one] + 0.025 - probability) < 0.035 for one in inside)
    hatches = [one for drawn in axes.collections for one in getattr(drawn, "hatches", []) if one]
    lower, upper = probability_limits(plane, points)
    assert ((lower < 0.5) & (upper > 0.5)).any()
    assert "...." in hatches
    assert "open because of the privacy noise" in _legend(figure)
    assert len(axes.collections[-1].get_offsets()) == 60


@pytest.mark.parametrize("vary", [["age"], ["age", "weight in $"]])
def test_several_classes_have_a_panel_each(vary):
    release = _release(width=3, classes=4)
    figure = plot_classes(release, vary=vary)
    panels = figure.axes[:4]
    said = [axes.get_title().replace("\n", " ") + " " + axes.get_ylabel() for axes in panels]
    for number, text in enumerate(said):
        assert f"ill_$ = {number}" in text
        assert "at the median of the rows: " in text
        assert "size of $ = " in text
    assert len(figure.axes) == 4 + (len(vary) == 2)


def test_more_inputs_have_a_panel_each_with_a_curve_for_each_class():
    figure = plot_classes(_release(width=3, classes=4))
    assert [axes.get_xlabel() for axes in figure.axes] == ["age", "weight in $", "size of $"]
    assert _legend(figure)[:4] == ["0", "1", "2", "3"]
    release = _release(width=2)
    apart = ClassificationDisplay.of(release, apart=True)
    assert apart.n_panels == 2
    frame = apart.to_frame()
    assert set(frame["class"]) == {"1"}
    first = frame[: len(frame) // 2]
    held = np.median(release.measurements[0].strategy.X[:, 1])
    points = np.column_stack([first["age"], np.full(len(first), held)])
    np.testing.assert_allclose(first["probability"], release.predict_proba(points)[:, 1])


def test_small_pictures_name_the_classes():
    [figure] = ClassificationDisplay.of(_release(width=1, classes=3), apart=True).draw_apart()
    legend = figure.axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()][:3] == ["0", "1", "2"]


def drawn_lines(axes, names):
    return [line for line in axes.get_lines() if line.get_label() in names]


def test_thirty_classes_are_told_apart_by_colour_and_dashes_and_categories_by_marks():
    for theme in (LIGHT, DARK):
        pairs = [look_of(theme, place) for place in range(36)]
        assert len({(each.colour, each.dashes) for each in pairs}) == 36
        assert len({(each.colour, each.marker) for each in pairs}) == 36
        # The first differ in both: some people tell no colours apart.
        assert len({each.dashes for each in pairs[:6]}) == len({each.marker for each in pairs[:6]})
        assert len({each.colour for each in pairs[:6]}) == 6


def test_lines_and_marks_of_many_classes_differ_and_the_legend_shows_both():
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"age": rng.uniform(0, 50, 60), "job": rng.choice(["cook", "clerk"], 60)})
    names = [str(number) for number in range(10)]
    y = np.array(names)[(X["age"].to_numpy() // 5).astype(int)]
    model = DPGPClassifier(classes=names, epsilon=2.0, learn=None, inducing=6)
    figure = plot_classes(model.fit(X, y).release_)
    curves, marks = (drawn_lines(axes, names) for axes in figure.axes)
    assert (
        len({(line.get_color(), line.get_linestyle(), str(line._dash_pattern)) for line in curves})
        == 10
    )
    assert len({(line.get_color(), line.get_marker()) for line in marks}) == 10
    shown = figure.legends[0].get_lines()[:10]
    assert [line.get_marker() for line in shown] == [line.get_marker() for line in marks]
    assert [line.get_linestyle() for line in shown] == [line.get_linestyle() for line in curves]


def test_numbers_have_another_display(plane):
    with pytest.raises(TypeError, match="drawn by ClassificationDisplay"):
        PredictionDisplay.of(plane)


def test_seeded_noise_is_in_the_title():
    figure = plot_classes(_release(width=1, seed=1))
    assert "INSECURE: seeded noise, not private" in figure.get_suptitle()


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_figures_are_written(line, plane, suffix):
    for release in (line, plane):
        assert len(figure_bytes(plot_classes(release), suffix=f".{suffix}")) > 5000
