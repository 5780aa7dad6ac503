"""Columns of distributions: their names, and that they hold what the methods return."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from cloakgp import (
    DPGPClassifier,
    DPGPMultiOutputRegressor,
    DPGPRegressor,
    DPGPRegressorPrivateInputs,
)
from cloakgp.columns import Number, Schema
from cloakgp.release.distribution_columns import DistributionColumns

GAUSSIAN = {"epsilon": 1.0, "delta": 1e-3, "noise": "gaussian", "insecure_seed": 1}
ASKED = {"interval": 0.9, "quantiles": [0.025, 0.5], "above": [4.0, -1]}
NAMES = ["lo_90", "hi_90", "q_2.5", "q_50", "above_4", "above_-1"]


@pytest.fixture(scope="module")
def numbers():
    X = np.linspace(0, 10, 60)[:, None]
    model = DPGPRegressor(bounds=(0, 10), learn=None, stages=None, interval=False, **GAUSSIAN)
    return model.fit(X, 5 + np.sin(X[:, 0])).release_


@pytest.fixture(scope="module")
def several():
    X = np.linspace(0, 10, 60)[:, None]
    outputs = pd.DataFrame({"height": 150 + 5 * X[:, 0], "weight": 50 + 3 * np.sin(X[:, 0])})
    model = DPGPMultiOutputRegressor(bounds=[(100, 250), (0, 200)], interval=False, **GAUSSIAN)
    return model.fit(X, outputs).release_


@pytest.fixture(scope="module")
def statistics():
    X = np.linspace(0, 10, 300)[:, None]
    model = DPGPRegressorPrivateInputs(
        bounds=(0, 10), input_bounds=[(0, 10)], epsilon=3.0, delta=1e-3, insecure_seed=1
    )
    return model.fit(X, 5 + np.sin(X[:, 0])).release_


@pytest.mark.parametrize("kind", ["numbers", "statistics"])
def test_columns_are_what_the_methods_return(request, kind):
    release = request.getfixturevalue(kind)
    X = np.array([[1.0], [4.5], [9.0]])
    frame = release.predict_frame(X, **ASKED)
    assert list(frame) == ["mean", "sd", "lower", "upper", *NAMES]
    lower, upper = release.predict_interval(X, 0.9)
    quantiles = release.predict_quantile(X, [0.025, 0.5])
    above = [release.probability_above(X, threshold) for threshold in (4.0, -1.0)]
    expected = np.column_stack([lower, upper, quantiles, *above])
    np.testing.assert_array_equal(frame[NAMES], expected)
    # The oracle: the Gaussian predictive distribution, within the bounds.
    mean, sd = release.predict(X, return_std=True, new_output=True)
    law = stats.norm(mean, sd)
    np.testing.assert_allclose(upper, np.clip(law.ppf(0.95), 0, 10))
    np.testing.assert_allclose(above[0], law.sf(4.0))
    np.testing.assert_array_equal(above[1], 1.0)
    pd.testing.assert_frame_equal(frame.iloc[:, :4], release.predict_frame(X))


def test_each_of_several_outputs_is_gaussian_for_itself(several):
    X = np.array([[1.0], [4.5]])
    mean, sd = several.predict(X, return_std=True, new_output=True)
    law, within = stats.norm(mean, sd), np.array([[100, 250], [0, 200]]).T
    lower, upper = several.predict_interval(X, 0.8)
    np.testing.assert_allclose(lower, np.clip(law.ppf(0.1), *within))
    np.testing.assert_allclose(upper, np.clip(law.ppf(0.9), *within))
    assert several.predict_quantile(X, 0.5).shape == (2, 2)
    np.testing.assert_array_equal(several.predict_quantile(X, [0.1, 0.9])[..., 1], upper)
    np.testing.assert_allclose(several.probability_above(X, [160, 50]), law.sf([160, 50]))
    np.testing.assert_array_equal(
        several.probability_above(X, 50), several.probability_above(X, [50, 50])
    )
    np.testing.assert_array_equal(several.probability_above(X, [99.0, 200.0]), [[1, 0], [1, 0]])
    frame = several.predict_frame(X, interval=0.8, above={"height": 160})
    assert list(frame)[8:] == [
        "height_lo_80",
        "height_hi_80",
        "height_above_160",
        "weight_lo_80",
        "weight_hi_80",
    ]
    np.testing.assert_array_equal(frame[["height_lo_80", "weight_lo_80"]], lower)
    np.testing.assert_allclose(frame["height_above_160"], law.sf([160, 50])[:, 0])
    alike = several.predict_frame(X, above=50)
    np.testing.assert_array_equal(
        alike[["height_above_50", "weight_above_50"]], several.probability_above(X, 50)
    )


def test_rows_that_lack_an_input_have_no_distribution():
    """As many quantiles as rows are no covariance."""
    people = pd.DataFrame({"age": [20.0, 30.0, 40.0, 50.0]})
    model = DPGPRegressor(
        bounds=(0, 10), schema=Schema((Number("age", missing="drop"),)), **GAUSSIAN
    )
    release = model.fit(people, [1.0, 2.0, 3.0, 4.0]).release_
    gap = pd.DataFrame({"age": [20.0, None, 40.0]})
    found = release.predict_quantile(gap, [0.1, 0.9])
    assert found.shape == (3, 2)
    np.testing.assert_array_equal(np.isnan(found), [[False] * 2, [True] * 2, [False] * 2])
    frame = release.predict_frame(gap, interval=0.9, quantiles=[0.1, 0.9], above=3)
    np.testing.assert_array_equal(frame[["q_10", "q_90"]], found)
    assert frame.iloc[1].isna().all()


def test_of_counts_columns_are_for_an_exposure():
    X = np.arange(40.0)[:, None]
    model = DPGPRegressor(bounds=(0, 9), epsilon=1.0, likelihood="counts", gap=0.1, insecure_seed=1)
    release = model.fit(X, np.arange(40) % 4).release_
    frame = release.predict_frame(X[:3], quantiles=0.9, above=0, exposure=[1.0, 2.0, 5.0])
    np.testing.assert_array_equal(
        frame["q_90"], release.predict_quantile(X[:3], 0.9, exposure=[1.0, 2.0, 5.0])
    )
    np.testing.assert_array_equal(
        release.predict_frame(X[:3], above=0)["above_0"], release.probability_above(X[:3], 0)
    )


def test_what_makes_no_sense_is_refused(numbers, several, statistics):
    for asked, said in [
        ({"interval": 90}, "interval must lie between 0 and 1, such as 0.9 for 90 %"),
        ({"quantiles": [0.5, 1.0]}, "quantiles must lie between 0 and 1"),
        ({"above": np.nan}, "threshold must be a number"),
        ({"above": [1e12, 1e12 + 1]}, "columns are named by 12 digits"),
        ({"quantiles": [0.5, 0.5 + 1e-15]}, "columns are named by 12 digits"),
        ({"above": {"pay": 3}}, "about one output: give thresholds without a name"),
        ({"exposure": 2.0}, "exposure is of counts"),
    ]:
        with pytest.raises(ValueError, match=said):
            numbers.predict_frame([[1.0]], **asked)
    with pytest.raises(ValueError, match="above names pay, but the outputs are height, weight"):
        several.predict_frame([[1.0]], above={"pay": 3, "height": 160})
    with pytest.raises(ValueError, match="a number, or one for each of 2 outputs"):
        several.probability_above([[1.0]], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="threshold must be a number"):
        several.probability_above([[1.0]], [1.0, np.inf])
    with pytest.raises(ValueError, match="coverage must lie between 0 and 1"):
        several.predict_interval([[1.0]], 0.0)
    with pytest.raises(ValueError, match="exposure is of counts"):
        statistics.predict_interval([[1.0]], exposure=1.0)
    classes = DPGPClassifier(classes=[0, 1], epsilon=1.0).fit([[0.0], [1.0]], [0, 1]).release_
    for asked in [{"interval": 0.9}, {"quantiles": 0.5}, {"above": 0}]:
        with pytest.raises(ValueError, match="are for numbers: classes have probabilities"):
            classes.predict_frame([[0.0]], **asked)


def test_what_is_asked_twice_stands_once():
    asked = DistributionColumns.asked(interval=[0.9, 0.9], above=[1, 1.0])
    assert asked == DistributionColumns((0.9,), (), (1.0,))
    assert not DistributionColumns.asked(interval=None, quantiles=[], above=())
    assert asked.probabilities() == {"above_1"}
    assert asked.probabilities(["a", "b"]) == {"a_above_1", "b_above_1"}
