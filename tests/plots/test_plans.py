"""Pictures of plans show the expected errors of their forecasts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from cloakgp import DPGPClassifier, DPGPRegressor
from cloakgp.columns import infer_schema
from cloakgp.plots import PlanDisplay

X = pd.DataFrame(np.random.default_rng(1).uniform(0, 5, size=(30, 2)), columns=["age", "weight"])


def test_curves_of_all_budgets_and_maps_are_drawn():
    plan = DPGPRegressor(bounds=(0, 1), epsilon=1.0, delta=1e-3).plan(X, epsilons=[0.5])
    display = PlanDisplay.of(plan, output="height", unit="m")
    figure = display.draw()
    (axes,) = figure.axes
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["ε = 0.5", "ε = 1", "nothing asked", "rows (inputs only)"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("age", "expected error of height (m)")
    weak, strong = (line.get_ydata() for line in axes.get_lines()[:2])
    assert (strong < weak).mean() > 0.9
    frame = display.to_frame()
    np.testing.assert_array_equal(frame.loc[frame["epsilon"] == 1.0, "error"], strong)
    drawn = PlanDisplay.of(plan, vary=["age", "weight"], output="height")
    assert [each.get_ylabel() for each in drawn.draw().axes] == [
        "weight",
        "expected error of height",
    ]
    assert set(drawn.to_frame()["epsilon"]) == {1.0}
    with pytest.raises(ValueError, match="no input size"):
        PlanDisplay.of(plan, vary=["size"])


def test_an_estimator_that_is_not_fitted_has_a_picture_of_its_plan():
    estimator = DPGPRegressor(bounds=(0, 1), epsilon=1.0)
    display = PlanDisplay.from_estimator(estimator, X, ax=Figure().add_subplot())
    assert display.ax_.get_legend() is not None
    assert not hasattr(estimator, "release_")


def test_without_a_forecast_there_is_no_picture():
    plan = DPGPClassifier(classes=["a", "b"], epsilon=1.0).plan(X)
    with pytest.raises(ValueError, match="depends on the labels"):
        PlanDisplay.of(plan)


def test_a_table_s_columns_are_named_and_not_the_numbers_that_stand_for_them():
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        {
            "sex": rng.choice(["a", "b"], 30),
            "born": pd.Timestamp("1990-01-01") + pd.to_timedelta(rng.integers(0, 4000, 30), "D"),
            "age": rng.uniform(0, 5, 30),
        }
    )
    model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, schema=infer_schema(table, list(table)))
    plan = model.plan(table, epsilons=[1.0])
    for vary, label in (((), "sex"), (("born",), "born")):
        (axes,) = PlanDisplay.of(plan, vary=vary).draw().axes
        assert axes.get_xlabel() == label
        assert not [part for part in (" cos", " sin", ": a", "0.7071") if part in axes.get_title()]
    assert "names" not in plan.to_dict()


def test_pictures_for_dark_pages_are_dark():
    """Whatever matplotlib's style in force, and with words that can be read on them."""
    from matplotlib.colors import to_rgb

    from cloakgp import DPGPRegressor
    from cloakgp.plots.plans import PlanDisplay
    from cloakgp.plots.themes import DARK, DARK_BACKGROUND

    plan = DPGPRegressor(bounds=(0, 1), epsilon=1.0).plan([[0.0], [1.0], [2.0]])
    display = PlanDisplay.of(plan)
    figure = display.draw(dark=True)
    assert to_rgb(figure.get_facecolor()) == to_rgb(DARK_BACKGROUND)
    assert to_rgb(display.ax_.get_facecolor()) == to_rgb(DARK_BACKGROUND)
    assert display.ax_.yaxis.label.get_color() == DARK.ink
    assert {line.get_color() for line in display.ax_.get_yticklabels()} == {DARK.ink}
    light = display.draw()
    assert to_rgb(light.get_facecolor()) == (1.0, 1.0, 1.0)
