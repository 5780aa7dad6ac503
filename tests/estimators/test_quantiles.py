"""Quantiles from fit to file: what is predicted, said and refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF

from cloakgp import DPGPQuantileRegressor, extend, load, refine
from cloakgp.columns import Number, Schema
from cloakgp.report.describe import describe

# Budgets here are as large as each test needs.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

RNG = np.random.default_rng(5)
X = RNG.uniform(0, 10, size=(150, 2))
Y = np.exp(8 + X[:, 0] / 10 + 0.5 * RNG.normal(size=150))
BOUNDS = (20.0, 3e6)
POINTS = np.array([[1.0, 5.0], [5.0, 2.0], [9.0, 9.0]])
LEVELS = (0.1, 0.5, 0.9)


def fitted(**changes):
    settings = {"bounds": BOUNDS, "epsilon": 4.0, "gap": 0.1, "insecure_seed": 1} | changes
    groups, y = settings.pop("groups", None), settings.pop("y", Y)
    return DPGPQuantileRegressor(**settings).fit(X, y, groups=groups)


@pytest.fixture(scope="module")
def model():
    return fitted()


def test_with_a_large_budget_each_quantile_has_its_share_below_it():
    """Oracle: the level."""
    rich = fitted(epsilon=200.0)
    below = (Y[:, None] <= rich.predict(X)).mean(axis=0)
    # Three sds of a share of so many rows.
    np.testing.assert_allclose(below, LEVELS, atol=0.07)
    error = np.abs(np.log(rich.predict(X)[:, 1]) - 8 - X[:, 0] / 10)
    assert np.sqrt(np.mean(error**2)) < 0.2


def test_predictions_are_quantiles_in_order_within_the_bounds(model):
    predicted = model.predict(POINTS)
    assert predicted.shape == (3, 3)
    assert (np.diff(predicted, axis=1) >= 0).all()
    assert ((predicted >= BOUNDS[0]) & (predicted <= BOUNDS[1])).all()
    np.testing.assert_allclose(model.predict_quantile(POINTS, LEVELS), predicted, rtol=1e-9)
    lower, upper = model.predict_interval(POINTS, 0.8)
    np.testing.assert_allclose(np.column_stack([lower, upper]), predicted[:, [0, 2]], rtol=1e-9)
    np.testing.assert_allclose(model.predict_quantile(POINTS, 0.5), predicted[:, 1], rtol=1e-9)


def test_probabilities_are_those_of_the_quantiles(model):
    for level in (0.05, 0.3, 0.5, 0.8, 0.99):
        at = model.predict_quantile(POINTS, level)
        for point, threshold in zip(POINTS, at, strict=True):
            if BOUNDS[0] < threshold < BOUNDS[1]:
                above = model.probability_above(point[None, :], threshold)
                assert above[0] == pytest.approx(1 - level, abs=1e-6)


def test_limits_of_curves_hold_them(model):
    lower, upper = model.release_.predict_limits(POINTS)
    assert lower.shape == upper.shape == (3, 3)
    curve = np.exp(model.release_.predict_latent(POINTS).mean)
    assert ((lower <= curve) & (curve <= upper)).all()
    frame = model.release_.predict_frame(POINTS)
    assert list(frame.columns)[:4] == ["q_10", "q_10_lower", "q_10_upper", "q_50"]
    np.testing.assert_array_equal(frame["q_90"], model.predict(POINTS)[:, 2])


def test_one_quantile_is_one_column(model):
    one = fitted(quantiles=0.75)
    assert one.predict(POINTS).shape == (3,)
    [question] = {each.question.channels for each in one.release_.measurements}
    assert question == 1
    # All three cost no more than one: the noise of an indicator is larger, and less than twice.
    noise = [
        each.release_.measurements[-1].noise_sd
        / each.release_.measurements[-1].strategy.longest_column(
            each.release_.measurements[-1].noise
        )
        for each in (one, model)
    ]
    assert noise[1] == pytest.approx(2 * noise[0], rel=1e-6)


def test_files_predict_the_same(model, tmp_path):
    path = tmp_path / "pay.cloak"
    model.release_.save(path)
    loaded = load(path)
    np.testing.assert_array_equal(loaded.predict(POINTS), model.release_.predict(POINTS))
    np.testing.assert_array_equal(
        loaded.predict_quantile(POINTS, [0.2, 0.95]),
        model.release_.predict_quantile(POINTS, [0.2, 0.95]),
    )


def test_words_say_what_was_asked_and_what_it_is_worth(model):
    said = {
        section.title: " ".join(fact.text for fact in section.facts)
        for section in describe(model.release_)
    }
    assert "80 % of values" in said["Predictions"]
    assert "0.5: " in said["Predictions"]
    assert "at or below each of 3 thresholds of their row" in said["Noise"]
    assert "declared to matter from 20 to 3,000,000" in said["Data"]
    assert "common to all quantiles" in said["Prior"]


def test_raw_outputs_are_asked_where_bounds_say_nothing_of_a_scale():
    shifted = fitted(bounds=(-1e5, 1e6), epsilon=20.0)
    assert shifted.release_.transform is None
    assert any(not one.question.locates for one in shifted.release_.measurements)
    assert (np.diff(shifted.predict(POINTS), axis=1) >= 0).all()


@pytest.mark.parametrize("noise", [{"noise": "gaussian", "delta": 1e-4}, {"delta": 1e-4}])
def test_any_noise(noise):
    found = fitted(stages=[(0.4, None), (0.6, None)], **noise)
    assert len(found.release_.measurements) == 2
    assert found.guarantee_.epsilon <= 4.0 * (1 + 1e-9)


def test_inducing_inputs_and_averages(model):
    sparse = fitted(inducing=20)
    near = np.log(sparse.predict(X)) - np.log(model.predict(X))
    assert np.sqrt(np.mean(near**2)) < 0.6
    averaged = fitted(learn="average", stages=None)
    assert len(averaged.release_.learned) >= 1
    assert averaged.predict(POINTS).shape == (3, 3)
    assert fitted(learn=None).release_.learned == ()


def test_groups_of_rows_are_protected_together():
    groups = (np.arange(150) // 3).tolist()
    alone, together = fitted(stages=None), fitted(stages=None, groups=groups)
    asked = [each.release_.measurements[0] for each in (alone, together)]
    assert asked[1].strategy.grouped
    # A question that is as long for each row has more noise.
    lengths = [one.strategy.longest_column(one.noise, channels=4) for one in asked]
    assert asked[1].noise_sd / lengths[1] == pytest.approx(asked[0].noise_sd / lengths[0])


def test_later_visits_sharpen_predictions(model):
    more = refine(model.release_, Y, epsilon=8.0, delta=0.0, insecure_seed=3)
    before, after = (
        np.mean(np.square(each.predict_latent(X).sd)) for each in (model.release_, more)
    )
    assert after < before
    assert len(more.measurements) == len(model.release_.measurements) + 1
    both = extend(model.release_, X + 1.0, Y, epsilon=4.0, delta=0.0, insecure_seed=4)
    assert both.n_rows == 300
    assert both.predict(POINTS).shape == (3, 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"quantiles": (0.5, 0.1)}, "quantiles must lie"),
        ({"quantiles": ()}, "quantiles must lie"),
        ({"quantiles": ["a"]}, "quantiles must be numbers between 0 and 1"),
        ({"quantiles": (0.0, 0.5)}, "quantiles must lie"),
        ({"quantiles": 1.0}, "quantiles must lie"),
        ({"quantiles": float("nan")}, "quantiles must lie"),
        ({"quantiles": (1e-9, 0.5)}, "quantiles"),
        ({"mean": 1.0}, "mean must be within"),
        ({"mean": "high"}, "mean must be a number"),
        ({"output_transform": "log", "bounds": (0.0, 1e6)}, "logarithm needs bounds above 0"),
        ({"interval": True}, "interval must be"),
        ({"stages": [(0.5, None), (0.5, 1.0)]}, "clipped to no band"),
        ({"stages": "often"}, "stages must be"),
        ({"learn": "all"}, "learn must be"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_read(changes, message):
    class Unread:
        def __array__(self, *_, **__):
            pytest.fail("the private column was read")

        def __len__(self):
            return len(X)

    with pytest.raises(ValueError, match=message):
        fitted(y=Unread(), **changes)


def test_what_quantiles_have_no_answer_to_is_refused(model):
    release = model.release_
    for asked in ({"return_std": True}, {"return_cov": True}, {"new_output": True}):
        with pytest.raises(ValueError, match="quantiles have limits"):
            release.predict(POINTS, **asked)
    with pytest.raises(ValueError, match="quantiles of new outputs"):
        release.predict_limits(POINTS, new_output=True)
    with pytest.raises(ValueError, match="leave out new_output"):
        release.predict_frame(POINTS, new_output=True)
    with pytest.raises(ValueError, match="exposure is of counts"):
        release.predict_quantile(POINTS, 0.5, exposure=1.0)


def test_in_the_manner_of_scikit_learn():
    estimator = DPGPQuantileRegressor(kernel=RBF(2.0), bounds=BOUNDS, epsilon=1.0)
    assert clone(estimator).get_params()["quantiles"] == (0.1, 0.5, 0.9)
    rich = fitted(epsilon=100.0)
    assert 0.0 < rich.score(X, Y) < 1.0


def test_tables_of_categories():
    import pandas as pd

    frame = pd.DataFrame({"a": X[:, 0], "job": np.where(X[:, 1] > 5, "cook", "clerk")})
    estimator = DPGPQuantileRegressor(
        bounds=BOUNDS, epsilon=4.0, gap=0.1, stages=None, insecure_seed=1
    )
    predicted = estimator.fit(frame, Y).predict(frame.iloc[:4])
    assert predicted.shape == (4, 3)


def test_rows_that_lack_an_input_have_no_quantiles():
    columns = {"a": X[:, 0]}
    release = (
        DPGPQuantileRegressor(
            bounds=BOUNDS,
            epsilon=4.0,
            gap=0.1,
            stages=None,
            insecure_seed=1,
            schema=Schema((Number("a", missing="drop"),)),
        )
        .fit(columns, Y)
        .release_
    )
    gaps = {"a": [1.0, None, 9.0]}
    found = release.predict(gaps)
    assert np.isnan(found[1]).all()
    np.testing.assert_array_equal(found[[0, 2]], release.predict({"a": [1.0, 9.0]}))
    for each in (*release.predict_limits(gaps), release.predict_quantile(gaps, LEVELS)):
        assert (np.isnan(each).all(axis=1) == [False, True, False]).all()


def test_what_is_asked_of_new_outputs_stands_behind_the_quantiles(model):
    release = model.release_
    frame = release.predict_frame(POINTS, interval=0.9, quantiles=[0.5, 0.7], above=1e4)
    assert list(frame.columns)[9:] == ["lo_90", "hi_90", "q_70", "above_10000"]
    np.testing.assert_allclose(frame["q_50"], release.predict(POINTS)[:, 1], rtol=1e-9)
    np.testing.assert_array_equal(frame["q_70"], release.predict_quantile(POINTS, 0.7))
    np.testing.assert_array_equal(frame["lo_90"], release.predict_interval(POINTS, 0.9)[0])
    np.testing.assert_array_equal(frame["above_10000"], release.probability_above(POINTS, 10_000.0))
    with pytest.raises(ValueError, match="exposure is of counts"):
        release.predict_frame(POINTS, exposure=1.0)
