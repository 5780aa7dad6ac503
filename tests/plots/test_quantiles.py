"""Pictures of quantiles show the curves and the limits that the release predicts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from cloakgp import DPGPQuantileRegressor, DPGPRegressor, Release
from cloakgp.pages.sheet import sheet_html
from cloakgp.plots import PredictionDisplay, QuantileDisplay, display_of, plot

LEVELS = (0.1, 0.5, 0.9)


@pytest.fixture(scope="module")
def release() -> Release:
    rng = np.random.default_rng(5)
    table = pd.DataFrame({"age": rng.uniform(20, 60, 60), "job": ["cook", "clerk"] * 30})
    pay = pd.Series(np.exp(8 + table["age"] / 40 + rng.normal(size=60)), name="pay")
    model = DPGPQuantileRegressor(
        quantiles=LEVELS, bounds=(10, 1e7), epsilon=3.0, gap=0.1, insecure_seed=2
    )
    return model.fit(table, pay).release_


def test_curves_and_bands_are_those_of_the_release(release):
    display = QuantileDisplay.of(release, vary=["age"], unit="€")
    frame = display.to_frame()
    rows = pd.DataFrame({"age": frame["age"], "job": "clerk"})
    names = [f"q_{100 * level:g}" for level in LEVELS]
    np.testing.assert_array_equal(frame[names], release.predict(rows))
    lower, upper = release.predict_limits(rows)
    np.testing.assert_array_equal(frame[[f"{name}_lower" for name in names]], lower)
    np.testing.assert_array_equal(frame[[f"{name}_upper" for name in names]], upper)
    figure = display.draw(line_kw={"linewidth": 4})
    [axes] = figure.axes
    # The highest curve is the first.
    lines = [line for line in axes.get_lines() if line.get_label().startswith("quantile")]
    assert [line.get_label() for line in lines] == [f"quantile {level}" for level in LEVELS[::-1]]
    assert {line.get_linewidth() for line in lines} == {4}
    assert len({line.get_color() for line in lines}) == len(LEVELS)
    for number, (line, band) in enumerate(zip(lines[::-1], axes.collections[::-1], strict=True)):
        np.testing.assert_array_equal(line.get_ydata(), frame[names[number]])
        ordinates = band.get_paths()[0].vertices[:, 1]
        assert ordinates.min() == lower[:, number].min()
        assert ordinates.max() == upper[:, number].max()
    assert axes.get_ylabel() == "pay (€)"
    assert "Quantiles of pay from age, INSECURE" in figure.get_suptitle()
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert {"quantile 0.9", "95 % for each curve", "rows (inputs only)"} <= set(legend)


def test_every_input_has_a_panel_on_one_scale(release):
    display = QuantileDisplay.from_release(release, ax=Figure().subplots(1, 2))
    assert [axes.get_xlabel() for axes in display.axes_] == ["age", "job"]
    assert len({axes.get_ylim() for axes in display.axes_}) == 1
    # Of a logarithm: both halves of the axis can be read.
    assert {axes.get_yscale() for axes in display.axes_} == {"log"}
    assert len(display.axes_[1].patches) == len(LEVELS) * len(display.axes_[1].get_xticks())


def test_the_axis_is_plain_without_a_logarithm():
    model = DPGPQuantileRegressor(quantiles=0.5, bounds=(0, 9), epsilon=1.0, gap=0.1)
    model.fit(np.arange(20.0)[:, None], np.arange(20) % 9)
    assert QuantileDisplay.from_estimator(model, ax=Figure().add_subplot()).ax_.get_yscale() == (
        "linear"
    )


def test_it_suits_releases_about_quantiles(release):
    assert isinstance(display_of(release), QuantileDisplay)
    assert isinstance(plot(release, vary=["age"], ax=Figure().add_subplot()), QuantileDisplay)
    with pytest.raises(TypeError, match="drawn by QuantileDisplay"):
        PredictionDisplay.of(release)
    numbers = DPGPRegressor(bounds=(0, 1), epsilon=1.0).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    with pytest.raises(TypeError, match="not of quantiles"):
        QuantileDisplay.of(numbers.release_)


def test_a_sheet_has_a_panel_for_each_input(release):
    content = sheet_html(release)
    assert content.count("<img src=") == 2
    assert "Bands hold the curve of each quantile with 95 %." in content
