"""Sliders over public inputs show what `predict_frame` says there."""

from __future__ import annotations

import datetime as dt
import re

import ipywidgets as widgets
import numpy as np
import pandas as pd
import pytest

from cloakgp import DPGPClassifier, DPGPMultiOutputRegressor, DPGPQuantileRegressor, DPGPRegressor
from cloakgp.data.example import example_care, example_people
from cloakgp.notebook import explore

QUICK = {"epsilon": 4.0, "learn": None, "noise": "laplace", "inducing": 8, "stages": None}
CELL = re.compile(r'<th scope="row"[^>]*>(.*?)</th><td[^>]*>(.*?)</td>')


def told(box):
    return dict(CELL.findall(box.children[-1].value))


@pytest.fixture(scope="module")
def people():
    table = example_people(60)
    public = table[["age", "sex", "born"]]
    model = DPGPRegressor(bounds=(40, 220), interval=False, **QUICK)
    return public, model.fit(public, table["height"]).release_


def test_each_public_column_has_its_control_within_the_range_of_the_rows(people):
    table, release = people
    age, sex, born, interval, _ = explore(release).children
    assert isinstance(age, widgets.IntSlider)
    assert (age.min, age.max) == (table["age"].min(), table["age"].max())
    assert isinstance(sex, widgets.Dropdown)
    assert [label for label, _ in sex.options] == ["man", "woman", "(any other)"]
    assert isinstance(born, widgets.DatePicker)
    assert (born.min, born.max) == (table["born"].min(), table["born"].max())
    assert interval.value == 0.9


def test_moving_one_shows_the_prediction_there(people):
    _, release = people
    box = explore(release, coverage=0.8)
    age, sex, born, interval, _ = box.children
    age.value, sex.value, born.value = 30, 1, dt.date(1996, 1, 5)
    row = {"age": [30.0], "sex": ["woman"], "born": pd.to_datetime(["1996-01-05"])}
    [expected] = release.predict_frame(row, interval=0.8).to_dict(orient="records")
    assert told(box) == {name: f"{value:.4g}" for name, value in expected.items()}
    interval.value = 0.5
    assert set(told(box)) == {"mean", "sd", "lower", "upper", "lo_50", "hi_50"}
    # A date that was cleared stands for a typical one.
    born.value = None
    assert float(told(box)["mean"]) > 0


def test_classes_quantiles_and_counts_show_their_own():
    people, care = example_people(60), example_care(60)
    classes = DPGPClassifier(classes=["no", "yes"], **QUICK).fit(people[["age"]], people["ill"])
    box = explore(classes.release_)
    assert len(box.children) == 2
    assert set(told(box)) == {"predicted", "p_no", "p_yes"}
    quantiles = DPGPQuantileRegressor(quantiles=(0.1, 0.5), bounds=(100, 1e7), **QUICK)
    box = explore(quantiles.fit(care[["age"]], care["pay"]).release_)
    assert {"q_10", "q_50", "lo_90", "hi_90"} <= set(told(box))
    counts = DPGPRegressor(bounds=(0, 50), likelihood="counts", epsilon=4.0, inducing=8)
    box = explore(counts.fit(care[["age"]], care["visits"]).release_)
    assert {"median", "lo_90", "hi_90"} <= set(told(box))


def test_times_have_a_picker_with_hours_and_numbers_a_slider():
    hours = pd.to_datetime("2026-01-01") + pd.to_timedelta(np.arange(40), "h")
    table = pd.DataFrame({"when": hours, "size": np.linspace(0.0, 1.0, 40)})
    model = DPGPRegressor(bounds=(0, 1), interval=False, **QUICK)
    release = model.fit(table, np.linspace(0, 1, 40)).release_
    when, size, *_ = explore(release).children
    assert isinstance(when, widgets.NaiveDatetimePicker)
    assert isinstance(size, widgets.FloatSlider)
    size.value = 0.5


def test_digits_tell_ends_of_intervals_and_places_of_sliders_apart():
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.uniform(1e-4, 9e-4, 300), 1e6 + rng.uniform(size=300)])
    y = 123_456 + 5000 * X[:, 0] + rng.normal(0, 0.5, 300)
    release = DPGPRegressor(bounds=(123_400, 123_500), epsilon=10.0).fit(X, y).release_
    box = explore(release)
    assert [slider.readout_format for slider in box.children[:2]] == [".5g", ".9g"]
    row = [[slider.value for slider in box.children[:2]]]
    [expected] = release.predict_frame(row, interval=0.9).to_dict(orient="records")
    width = expected["upper"] - expected["lower"]
    assert width < 5
    for name, shown in told(box).items():
        assert float(shown.replace(",", "")) == pytest.approx(expected[name], abs=width / 50)
    assert len(told(box)["sd"]) <= len("0.01234")


def test_names_from_files_are_no_markup_and_a_seed_is_told():
    table = pd.DataFrame({"<b>age": np.arange(12.0)})
    model = DPGPRegressor(bounds=(0, 1), interval=False, insecure_seed=1, **QUICK)
    release = model.fit(table, pd.Series(np.linspace(0, 1, 12), name="<i>pay")).release_
    box = explore(release)
    assert "<i>" not in box.children[-1].value
    assert "NOT PRIVATE" in box.children[-1].value


def test_other_objects_and_coverages_are_refused(people):
    outputs = np.random.default_rng(0).uniform(size=(12, 2))
    several = DPGPMultiOutputRegressor(bounds=[(0, 1), (0, 1)], epsilon=1.0, learn=None)
    release = several.fit(np.arange(12.0)[:, None], outputs).release_
    for given in (release, release.entries):
        with pytest.raises(TypeError, match=r"one output.* use `release\.predict_frame`"):
            explore(given)
    with pytest.raises(ValueError, match=r"between 0\.5 and 0\.99"):
        explore(people[1], coverage=1.0)
