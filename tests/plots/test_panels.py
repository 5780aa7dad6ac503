"""Panels show each public column of a table in its own terms."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd

from cloakgp import DPGPClassifier, DPGPRegressor
from cloakgp.columns import Category, Schema
from cloakgp.plots import display_of
from cloakgp.plots.slices import CURVE_POINTS, MOST_PANELS

ROWS = 40
BUDGET = {"epsilon": 1.0, "delta": 1e-3}
DAYS = pd.Timestamp("2019-01-01") + pd.to_timedelta(np.arange(ROWS) * 23, "D")
TABLE = pd.DataFrame(
    {
        "age": np.linspace(20, 80, ROWS),
        "job": ["cook $x_1$", "clerk"] * (ROWS // 2),
        "when": DAYS,
        "size": np.arange(ROWS) % 7,
    }
)


def plot_panels(release):
    return display_of(release, apart=True).draw_apart()


def labels(figures):
    return [figure.axes[0].get_xlabel() for figure in figures]


def test_numbers_levels_and_dates_have_a_panel_each():
    model = DPGPRegressor(bounds=(0, 1), learn=None, **BUDGET)
    release = model.fit(TABLE, pd.Series(np.linspace(0, 1, ROWS), name="height")).release_
    figures = plot_panels(release)
    assert labels(figures) == ["age", "job", "when", "size"]
    assert {figure.axes[0].get_ylabel() for figure in figures} == {"height"}
    ticks = [tick.get_text() for tick in figures[1].axes[0].get_xticklabels()]
    assert ticks == ["clerk", "cook $x_1$", "(any other)"]
    [line] = [each for each in figures[0].axes[0].get_lines() if each.get_label() == "prediction"]
    held = TABLE.assign(job="clerk", when=DAYS[ROWS // 2 - 1], size=3)
    assert len(line.get_xdata()) == CURVE_POINTS
    assert np.ptp(release.predict(held)) > 0
    for figure in figures:
        figure.savefig(io.BytesIO(), dpi=20)


def test_of_many_levels_the_first_fill_the_panel_and_it_says_so():
    towns = pd.DataFrame({"town": [f"town {number:02d}" for number in range(ROWS // 2)] * 2})
    schema = Schema((Category("town", levels=tuple(sorted(set(towns["town"])))),))
    model = DPGPRegressor(bounds=(0, 1), learn=None, stages=None, schema=schema, **BUDGET)
    [figure] = plot_panels(model.fit(towns, np.linspace(0, 1, ROWS)).release_)
    [axes] = figure.axes
    assert axes.get_xlabel() == "town: the first 10 of 21"
    low, high = axes.get_xlim()
    ticks = axes.get_xticks()
    assert len(ticks) == 10
    assert (ticks[-1] - ticks[0]) / (high - low) > 0.8


def test_classes_have_a_curve_each():
    model = DPGPClassifier(classes=["a", "b", "c$"], learn=None, **BUDGET)
    names = np.array(["a", "b", "c$"])[np.arange(ROWS) % 3]
    [figure] = plot_panels(model.fit(TABLE[["age"]], names).release_)
    legend = figure.axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b", "c$"]
    figure.savefig(io.BytesIO(), dpi=20)


def test_no_more_than_some_are_drawn():
    X = np.random.default_rng(1).uniform(size=(30, MOST_PANELS + 2))
    model = DPGPRegressor(bounds=(0, 1), learn=None, stages=None, **BUDGET)
    assert len(plot_panels(model.fit(X, X[:, 0]).release_)) == MOST_PANELS
