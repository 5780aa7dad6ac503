"""Fan charts show the quantiles that the release tells."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from cloakgp import DPGPClassifier, DPGPRegressor
from cloakgp.plots import FanDisplay, display_of, plot
from cloakgp.plots.fan import QUANTILES

NAMES = ["q_5", "q_10", "q_25", "q_50", "q_75", "q_90", "q_95"]
BUDGET = {"epsilon": 1.0, "delta": 1e-3}


def _legend(figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def _edges(collection):
    """Return the lowest and the highest ordinate of a filled band."""
    ordinates = collection.get_paths()[0].vertices[:, 1]
    return ordinates.min(), ordinates.max()


def test_quantiles_are_those_of_the_release_and_bands_lie_between_them(calibrated):
    display = FanDisplay.of(calibrated, unit="m")
    frame = display.to_frame()
    X = frame[["x1"]].to_numpy()
    quantiles = calibrated.predict_quantile(X, QUANTILES)
    np.testing.assert_array_equal(frame[NAMES], quantiles)
    interval = np.column_stack(calibrated.predict_interval(X, 0.9))
    np.testing.assert_allclose(quantiles[:, [0, -1]], interval)
    figure = display.draw(line_kw={"color": "red"})
    [axes] = figure.axes
    [median] = [line for line in axes.get_lines() if line.get_label() == "median"]
    np.testing.assert_array_equal(median.get_ydata(), quantiles[:, 3])
    assert median.get_color() == "red"
    # Bands do not overlap: one in the middle, and two of each share around it.
    drawn = sorted(_edges(each) for each in axes.collections)
    between = [(2, 4), (1, 2), (4, 5), (0, 1), (5, 6)]
    expected = sorted((quantiles[:, low].min(), quantiles[:, high].max()) for low, high in between)
    np.testing.assert_allclose(drawn, expected)
    assert _legend(figure) == [
        "median",
        "50 % of new outputs",
        "80 % of new outputs",
        "90 % of new outputs",
        "rows (inputs only)",
    ]
    assert axes.get_ylabel() == "y (m)"
    assert "Quantiles of y from x1, calibrated\nINSECURE" in figure.get_suptitle()


def test_every_input_has_a_panel_and_levels_have_bars(rng):
    table = pd.DataFrame(
        {
            "age": rng.uniform(20, 80, 40),
            "job": ["cook", "clerk"] * 20,
            "size": rng.uniform(size=40),
        }
    )
    model = DPGPRegressor(bounds=(0, 1), learn=None, **BUDGET)
    release = model.fit(table, pd.Series(table["size"], name="height")).release_
    display = FanDisplay.from_estimator(model, ax=Figure().subplots(1, 3))
    assert [axes.get_xlabel() for axes in display.axes_] == ["age", "job", "size"]
    assert len({axes.get_ylim() for axes in display.axes_}) == 1
    assert "calibrated" not in display.title
    figure = FanDisplay.of(release, vary=["job"]).draw()
    [axes] = figure.axes
    assert len(axes.patches) == 5 * len(axes.get_xticks())
    lowest = min(bar.get_y() for bar in axes.patches)
    assert axes.get_ylim()[0] < lowest
    # Levels have no marks along the edge.
    assert "rows (inputs only)" not in _legend(figure)


def test_of_counts_quantiles_are_whole_numbers():
    X, y = np.arange(40.0)[:, None], np.arange(40) % 4
    model = DPGPRegressor(bounds=(0, 9), epsilon=1.0, likelihood="counts", gap=0.1)
    frame = FanDisplay.of(model.fit(X, y).release_).to_frame()
    np.testing.assert_array_equal(frame[NAMES], frame[NAMES].round())


def test_it_is_found_by_its_kind(calibrated):
    assert isinstance(display_of(calibrated, kind="fan"), FanDisplay)
    assert isinstance(plot(calibrated, kind="fan", ax=Figure().add_subplot()), FanDisplay)
    with pytest.raises(ValueError, match="kind must be one of prediction, fan, calibration"):
        display_of(calibrated, kind="pie")
    with pytest.raises(TypeError, match="no picture of a Guarantee"):
        display_of(calibrated.guarantee, kind="fan")


def test_classes_have_none():
    model = DPGPClassifier(classes=[0, 1], learn=None, **BUDGET).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="classes have probabilities"):
        FanDisplay.of(model.release_)
