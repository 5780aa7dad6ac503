"""Pictures of stages show the bands that are in the release."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp import DPGPClassifier, DPGPRegressor
from cloakgp.data import ArrayRows
from cloakgp.plots import BandsDisplay
from cloakgp.privacy.questions.bands import Bands

BUDGET = {"epsilon": 1.0, "delta": 1e-3}


@pytest.mark.parametrize("width", [1, 2])
def test_the_bands_are_those_of_the_release(width):
    X = np.random.default_rng(3).uniform(0, 10, size=(150, width))
    model = DPGPRegressor(bounds=(-5, 5), insecure_seed=0, **BUDGET)
    release = model.fit(X, np.sin(X[:, 0])).release_
    bands = [each.question for each in release.measurements if isinstance(each.question, Bands)]
    display = BandsDisplay.of(release, unit="m")
    figure = display.draw()
    assert display.n_panels == 1 + len(bands) == len(figure.axes)
    frame = display.to_frame()
    for stage, band in enumerate(bands, start=2):
        rows = frame[frame["stage"] == stage]
        np.testing.assert_array_equal(rows["x1"], X[:, 0])
        np.testing.assert_array_equal(rows["lower"], band.lower)
        np.testing.assert_array_equal(rows["upper"], band.upper)
    first, *_, last = display.stages
    assert last.mean_width < first.mean_width
    assert sum(each.share for each in display.stages) < 1
    assert figure.axes[0].get_ylabel() == "y (m)"


def test_bands_of_many_rows_are_those_at_the_query_points():
    X = np.random.default_rng(3).uniform(0, 10, size=(6000, 1))
    stages = [(0.4, None), (0.6, 1.5)]
    model = DPGPRegressor(bounds=(-5, 5), inducing=8, epsilon=1.0, delta=1e-6, stages=stages)
    release = model.fit_rows(ArrayRows(X, np.sin(X[:, 0]))).release_
    display = BandsDisplay.of(release)
    queries = release.measurements[0].strategy.X_query
    assert all(len(stage.lower) == len(queries) for stage in display.stages)
    assert display.n_panels == 2


def test_what_has_no_bands_says_so():
    model = DPGPClassifier(classes=[0, 1], learn=None, **BUDGET).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(TypeError, match="numbers alone"):
        BandsDisplay.of(model.release_)
    regressor = DPGPRegressor(bounds=(0, 1), learn=None, **BUDGET).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="no number age; it has: x1"):
        BandsDisplay.of(regressor.release_, vary="age")
