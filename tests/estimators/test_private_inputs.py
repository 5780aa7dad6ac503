"""The estimator for private inputs: scikit-learn's contract, what it says and what it does not."""

from __future__ import annotations

import pickle
import traceback
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, CompoundKernel
from sklearn.metrics import get_scorer
from sklearn.utils.estimator_checks import check_estimator

from cloakgp import PrivacyParameterWarning
from cloakgp.columns import Boolean, Category, Date, Number, Schema
from cloakgp.estimators.private_inputs import (
    DPGPClassifierPrivateInputs,
    DPGPRegressorPrivateInputs,
)
from cloakgp.models.simplex import simplex_corners
from cloakgp.privacy.questions.classes import Classes
from cloakgp.release import ReleaseFileError
from cloakgp.release.io.bundle import bundle_bytes
from cloakgp.release.io.codec import to_tree
from cloakgp.release.points import NoPredictionWarning, UnseenLevelWarning
from cloakgp.release.statistics import StatisticsRelease
from cloakgp.report.describe import describe
from cloakgp.report.facts import as_text

# Budgets here are as large, or tables as small, as each test needs.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

SECRET = 7654.321


def model(**changes):
    plain = {"input_bounds": [(0, 10), (0, 5)], "bounds": (-1, 1), "epsilon": 1.0, "delta": 1e-3}
    return DPGPRegressorPrivateInputs(**{**plain, **changes})


@pytest.fixture
def table(rng):
    X = rng.uniform(0, 5, size=(60, 2))
    return X, 0.8 * np.sin(X[:, 0]) + 0.05 * rng.normal(size=60)


def test_scikit_learns_own_checks():
    estimator = DPGPRegressorPrivateInputs(
        input_bounds=(-10, 10),
        bounds=(-100, 100),
        epsilon=1,
        delta=1e-3,
        n_features=12,
        insecure_seed=0,
    )
    results = check_estimator(estimator, on_skip=None, on_fail="raise")
    assert sum(result["status"] == "passed" for result in results) > 40
    assert not any(result["status"] == "xfail" for result in results)


def test_clones_keep_every_parameter():
    parameters = {
        "kernel": RBF(3.0),
        "noise_variance": 0.3,
        "input_bounds": [(0.0, 1.0)],
        "bounds": (-2.0, 5.0),
        "epsilon": 0.7,
        "delta": 1e-4,
        "neighbours": "add-remove",
        "n_features": 4,
        "schema": None,
        "insecure_seed": 9,
    }
    assert clone(DPGPRegressorPrivateInputs(**parameters)).get_params(deep=False) == parameters


def test_budgets_and_ranges_have_no_default():
    for missing in ("bounds", "epsilon", "delta"):
        given = {"input_bounds": [(0, 1)], "bounds": (0, 1), "epsilon": 1.0, "delta": 0.1}
        del given[missing]
        with pytest.raises(TypeError, match=missing):
            DPGPRegressorPrivateInputs(**given)


def test_it_fits_predicts_and_states_its_cost(table, tmp_path):
    X, y = table
    fitted = model(epsilon=50.0).fit(X, y)
    mean, sd = fitted.predict(X, return_std=True)
    also, cov = fitted.predict(X, return_cov=True)
    np.testing.assert_array_equal(mean, fitted.predict(X))
    np.testing.assert_array_equal(mean, also)
    np.testing.assert_allclose(np.sqrt(np.maximum(np.diag(cov), 0)), sd, atol=1e-4)
    # Parts are rounded, so that the whole is never above what was asked for.
    assert 49.99 < fitted.guarantee_.epsilon <= 50.0
    assert fitted.guarantee_.delta == 1e-3
    assert 0.99e-3 < fitted.guarantee_.delta_at(50.0) <= 1e-3
    fitted.release_.save(tmp_path / "one.cloak")
    loaded = StatisticsRelease.load(tmp_path / "one.cloak")
    np.testing.assert_array_equal(loaded.predict(X), mean)
    with pytest.raises(ValueError, match="not both"):
        fitted.predict(X, return_std=True, return_cov=True)
    with pytest.raises(NotFittedError):
        model().predict(X)
    with pytest.raises(NotFittedError):
        _ = model().guarantee_


KERNELS = {"in rounds": None, "a declared kernel": RBF(3.0)}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_nothing_public_depends_on_the_inputs(table, kernel):
    """Weighting, noise and guarantee are the same for every table; so is a declared basis."""
    X, y = table
    kept = []
    for inputs, outputs in ((X, y), (X[:7] * 0 + 4.0, y[:7]), (100 + X, 50 * y)):
        one = model(kernel=kernel, neighbours="add-remove").fit(inputs, outputs).release_
        kept.append(one)
        assert one.statistics.rows is None
    for one in kept[1:]:
        assert one.guarantee == kept[0].guarantee
        assert one.statistics.gram_sd == kept[0].statistics.gram_sd
        assert one.statistics.weighting == kept[0].statistics.weighting
        assert [part.guarantee for part in one.parts] == [part.guarantee for part in kept[0].parts]
        if kernel is None:
            assert one.basis.count == kept[0].basis.count
            continue
        np.testing.assert_array_equal(
            one.basis.features(one.basis.box.reference),
            kept[0].basis.features(kept[0].basis.box.reference),
        )


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_what_is_kept_holds_no_row(kernel):
    """No float of the table is anywhere in the fitted estimator."""
    X, y = np.full((5, 2), 1.2345678), np.full(5, 0.7654321)
    fitted = model(kernel=kernel).fit(X, y)
    dump = pickle.dumps(fitted)
    for private in (1.2345678, 0.7654321):
        assert np.float64(private).tobytes() not in dump
        assert np.float64(private).tobytes()[::-1] not in dump
    assert fitted.release_.guarantee is not None


def test_the_same_labels_in_another_order_are_refused(table):
    X, y = (pd.DataFrame(table[0], columns=["age", "dose"]), pd.Series(table[1]))
    for fitted, outputs in (
        (model(), y),
        (classifier(), y.gt(0).map({True: "ill", False: "well"})),
    ):
        with pytest.raises(ValueError, match="in another order"):
            fitted.fit(X, outputs[::-1])
        fitted.fit(X, outputs[::-1].to_numpy())


def test_column_names_are_kept(table):
    X, y = table
    frame = pd.DataFrame(X, columns=["age", "weight"])
    fitted = model(insecure_seed=0).fit(frame, y)
    assert fitted.feature_names_in_.tolist() == ["age", "weight"]
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(frame[["weight", "age"]])


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[SECRET, "old"]] * 4, [0.0] * 4),
        ([[SECRET, np.nan]] * 4, [0.0] * 4),
        ([[SECRET, np.inf]] * 4, [0.0] * 4),
        ([SECRET] * 4, [0.0] * 4),
        ([[SECRET]] * 4, [0.0] * 4),
        ([[SECRET, SECRET * 1j]] * 4, [0.0] * 4),
        ([[SECRET, 1.0], [SECRET]], [0.0] * 2),
        (np.array([[SECRET, {"a": 1}]], dtype=object), [0.0]),
        ([[SECRET, 1.0]] * 4, [0.0] * 3),
        ([[SECRET, 1.0]] * 4, [SECRET, "x", 1, 2]),
        ([[SECRET, 1.0]] * 4, [SECRET, np.nan, 1, 2]),
        (pd.DataFrame({"a": [SECRET], "b": ["x"]}), [0.0]),
        (pd.DataFrame({"a": [SECRET], "b": pd.Timestamp("1976-05-04")}), [0.0]),
    ],
)
def test_no_complaint_quotes_an_input(X, y):
    with pytest.raises((ValueError, TypeError)) as caught:
        model().fit(X, y)
    error = caught.value
    while error is not None:
        said = "".join(traceback.format_exception_only(error))
        assert "7654" not in said
        assert "1976" not in said
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 1}, "delta"),
        ({"bounds": (1, 0)}, "bound"),
        ({"input_bounds": None}, "input_bounds"),
        ({"input_bounds": [(0, 1)]}, "pairs"),
        ({"noise_variance": -1.0}, "noise_variance"),
        ({"kernel": "rbf"}, "kernel"),
        ({"kernel": CompoundKernel([RBF(), RBF()])}, "kernel"),
        ({"n_features": 0}, "n_features"),
        ({"n_features": 1025}, "at most 1,024"),
        ({"n_features": 2.5}, "n_features"),
        ({"n_features": True}, "n_features"),
        ({"neighbours": "friends"}, "neighbours"),
    ],
)
def test_bad_settings(change, complaint, table):
    with pytest.raises(ValueError, match=complaint):
        model(**change).fit(*table)


def test_inputs_are_clipped_silently(table, recwarn):
    X, y = table
    far = X.copy()
    far[0] = [SECRET, -SECRET]
    near = X.copy()
    near[0] = [10.0, 0.0]
    one, two = (model(insecure_seed=1).fit(inputs, y) for inputs in (far, near))
    np.testing.assert_array_equal(one.release_.statistics.gram, two.release_.statistics.gram)
    np.testing.assert_array_equal(one.predict(far), one.predict(near))
    assert len(recwarn) == 0


def test_more_budget_predicts_better():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, size=(500, 1))
    f = np.sin(0.6 * X[:, 0])
    errors = []
    for epsilon in (0.05, 1.0, 20.0):
        fits = [
            model(input_bounds=[(0, 10)], epsilon=epsilon, insecure_seed=seed).fit(X, f)
            for seed in range(3)
        ]
        errors.append(np.mean([np.sqrt(np.mean((fit.predict(X) - f) ** 2)) for fit in fits]))
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.15


# --- classes ---


def classifier(**changes):
    plain = {
        "classes": ["ill", "well"],
        "input_bounds": [(0, 10), (0, 5)],
        "epsilon": 2.0,
        "delta": 1e-5,
    }
    return DPGPClassifierPrivateInputs(**{**plain, **changes})


def labelled(rng, rows=2000):
    X = rng.uniform(0, 5, size=(rows, 2))
    chance = 1 / (1 + np.exp(-3 * np.sin(X[:, 0]) - X[:, 1] + 2.5))
    return X, np.where(rng.uniform(size=rows) < chance, "well", "ill"), chance


def test_scikit_learns_own_checks_of_the_classifier():
    estimator = DPGPClassifierPrivateInputs(
        classes=[0, 1], input_bounds=(-10, 10), epsilon=1, delta=1e-3, n_features=6, insecure_seed=0
    )
    tried = {"check_estimator_repr", "check_no_attributes_set_in_init", "check_parameters_default"}
    results = check_estimator(estimator, on_skip=None, on_fail=None)
    passed = {one["check_name"] for one in results if one["status"] == "passed"}
    assert "check_fit2d_1sample" in passed or len(passed) > 20
    assert tried & passed


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_probabilities_come_near_the_truth(neighbours):
    rng = np.random.default_rng(0)
    errors, shares = [], []
    for seed in range(2):
        X, y, chance = labelled(rng)
        fitted = classifier(neighbours=neighbours, insecure_seed=seed).fit(X[:1500], y[:1500])
        probabilities = fitted.predict_proba(X[1500:])
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        errors.append(np.mean((probabilities[:, 1] - chance[1500:]) ** 2))
        shares.append(np.mean(fitted.predict(X[1500:]) == y[1500:]))
        assert fitted.classes_.tolist() == ["ill", "well"]
    # Of knowing the share of classes alone the first is 0.09.
    assert np.mean(errors) < 0.03
    assert np.mean(shares) > 0.7


def test_a_rare_class_keeps_its_share():
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 5, size=(4000, 2))
    y = np.where(rng.uniform(size=4000) < 0.03, "well", "ill")
    fitted = classifier(insecure_seed=1).fit(X, y)
    assert fitted.predict_proba(X)[:, 1].mean() == pytest.approx(0.03, abs=0.02)
    assert set(fitted.predict(X)) == {"ill"}


def test_a_release_of_classes_is_kept_shown_and_predicts(tmp_path):
    X, y, _ = labelled(np.random.default_rng(2))
    fitted = classifier(insecure_seed=1).fit(pd.DataFrame(X, columns=["age", "dose"]), y)
    release = fitted.release_
    release.save(tmp_path / "a.cloak")
    again = StatisticsRelease.load(tmp_path / "a.cloak")
    np.testing.assert_array_equal(again.predict_proba(X), release.predict_proba(X))
    frame = again.predict_frame(pd.DataFrame(X[:3], columns=["age", "dose"], index=[4, 5, 6]))
    assert frame.columns.tolist() == ["predicted", "p_ill", "p_well"]
    assert frame.index.tolist() == [4, 5, 6]
    words = as_text(describe(again), width=10_000)
    assert "ill and well" in words
    with pytest.raises(ValueError, match="classes"):
        again.predict_interval(X, 0.9)
    with pytest.raises(ValueError, match="no intervals"):
        again.predict_frame(X, interval=0.9)
    with pytest.raises(ValueError, match="numbers"):
        model().fit(X, np.zeros(len(X))).release_.predict_proba(X)
    with pytest.raises(ValueError, match="predict_proba"):
        again.predict(X, return_std=True)
    labels = again.predict(X)
    assert labels == fitted.predict(pd.DataFrame(X, columns=["age", "dose"])).tolist()
    assert labels == again.predict_frame(X).predicted.tolist()
    corners = simplex_corners(3)
    for number, forged in enumerate(
        (
            {"classes": Classes(("a", "b", "c"))},
            {"classes": None},
            {"points": None},
            {"classes": Classes(("a", "b", "c")), "points": corners},
            {"points": np.ones((2, 1))},
            {"points": np.array([[np.nan], [1.0]])},
            {"classes": None, "points": None},
        )
    ):
        written = bundle_bytes(
            kind=release.kind,
            tree=lambda stored, forged=forged: to_tree(replace(release, **forged), stored=stored),
        )
        (tmp_path / f"{number}.cloak").write_bytes(written)
        with pytest.raises(ReleaseFileError, match=r"its|not of finite"):
            StatisticsRelease.load(tmp_path / f"{number}.cloak")


def three_kinds(rng, rows=2000):
    """Labels of three classes, and the probabilities that they were drawn by."""
    X = rng.uniform(0, 5, size=(rows, 2))
    scores = np.column_stack([2 * np.sin(X[:, 0]), X[:, 1] - 2.0, np.full(rows, 0.3)])
    chance = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    places = (rng.uniform(size=(rows, 1)) > np.cumsum(chance, axis=1)).sum(axis=1)
    return X, np.array(["a", "b", "c"])[places], chance


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_probabilities_of_three_classes_come_near_the_truth(neighbours):
    rng, errors, even = np.random.default_rng(0), [], []
    for seed in range(2):
        X, y, chance = three_kinds(rng)
        fitted = classifier(classes=["a", "b", "c"], neighbours=neighbours, insecure_seed=seed)
        probabilities = fitted.fit(X[:1500], y[:1500]).predict_proba(X[1500:])
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        assert probabilities.min() >= 0.01 - 1e-12
        labels = np.array(["a", "b", "c"])[probabilities.argmax(axis=1)]
        assert fitted.predict(X[1500:]).tolist() == labels.tolist()
        errors.append(np.mean((probabilities - chance[1500:]) ** 2))
        even.append(np.mean((chance[:1500].mean(axis=0) - chance[1500:]) ** 2))
    assert np.mean(errors) < 0.4 * np.mean(even)


def test_the_order_of_classes_changes_their_columns_alone():
    """Without noise to speak of: corners are turned, and probabilities are not."""
    X, y, _ = three_kinds(np.random.default_rng(1), rows=400)
    orders = (["a", "b", "c"], Classes(("c", "a", "b")))
    found = [
        classifier(classes=order, epsilon=1e6, delta=0.1, n_features=8)
        .fit(X, y)
        .release_.predict_frame(X)[["p_a", "p_b", "p_c"]]
        for order in orders
    ]
    np.testing.assert_allclose(*found, atol=2e-3)


@pytest.mark.parametrize("declared", [["well", "ill", "dead"], ["dead", "well", "ill"]])
def test_scorers_of_scikit_learn_find_each_class_in_its_column(declared, tmp_path):
    """They take the columns of `predict_proba` to be those of the sorted classes."""
    X = np.random.default_rng(4).uniform(0, 6, size=(400, 1))
    y = np.array(["well", "ill", "dead"])[(X[:, 0] // 2).astype(int)]
    fitted = classifier(classes=declared, input_bounds=(0, 6), epsilon=1e4).fit(X, y)
    assert fitted.classes_.tolist() == ["dead", "ill", "well"]
    assert fitted.score(X, y) > 0.9
    assert get_scorer("roc_auc_ovr")(fitted, X, y) > 0.95
    assert get_scorer("neg_log_loss")(fitted, X, y) > -0.6
    fitted.release_.save(tmp_path / "a.cloak")
    again = StatisticsRelease.load(tmp_path / "a.cloak")
    assert again.class_labels == ("dead", "ill", "well")
    assert again.predict(X) == fitted.predict(X).tolist()
    columns = again.predict_frame(X)[[f"p_{label}" for label in fitted.classes_]]
    np.testing.assert_array_equal(columns, fitted.predict_proba(X))


def test_declared_classes_keep_their_order_as_such():
    X, y, _ = labelled(np.random.default_rng(5), rows=200)
    fitted = classifier(classes=Classes(("well", "ill")), epsilon=1e4).fit(X, y)
    assert fitted.classes_.tolist() == ["well", "ill"]
    assert np.mean(fitted.predict(X) == y) > 0.7


@pytest.mark.parametrize("classes", [[1, "a"], [0.5, 2**60 + 1], [True, "x"], ["a\x00", "b"]])
def test_labels_are_predicted_as_they_were_declared(classes):
    X = np.random.default_rng(6).uniform(0, 10, size=(300, 1))
    y = [classes[int(x > 5)] for x in X[:, 0]]
    fitted = classifier(classes=classes, input_bounds=(0, 10), epsilon=1e4).fit(X, y)
    found = fitted.predict(X).tolist()
    assert {(type(label), label) for label in found} == {(type(one), one) for one in classes}
    assert np.mean([one == label for one, label in zip(found, y, strict=True)]) > 0.9


def test_many_classes_are_kept_and_shown(tmp_path):
    rng = np.random.default_rng(3)
    X, names = rng.uniform(0, 5, size=(500, 2)), list("abcdefghijklmnopqrst")
    fitted = classifier(classes=names, insecure_seed=1).fit(X, rng.choice(names, size=500))
    fitted.release_.save(tmp_path / "a.cloak")
    again = StatisticsRelease.load(tmp_path / "a.cloak")
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_allclose(again.predict_proba(X).sum(axis=1), 1)
    assert "a, b, c" in as_text(describe(again), width=10_000)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"classes": ["a"]}, "two are needed"),
        ({"epsilon": 0}, "epsilon"),
        ({"n_features": 0}, "n_features"),
        ({"neighbours": "friends"}, "neighbours"),
    ],
)
def test_bad_settings_of_the_classifier(change, complaint):
    with pytest.raises(ValueError, match=complaint):
        classifier(**change).fit(np.ones((4, 2)), ["ill", "well"] * 2)


@pytest.mark.parametrize("y", [["ill", "7654"], ["ill", None], ["ill"], ["ill"] * 7654])
def test_no_complaint_quotes_a_label_or_says_how_many(y):
    with pytest.raises(ValueError, match=r"class|rows|missing|masked") as caught:
        classifier().fit(np.ones((2, 2)), y)
    assert "7654" not in str(caught.value)


# --- columns by a declared schema ---

SCHEMA = Schema(
    (
        Number("age", ranges=((0.0, 100.0),)),
        Category("job", levels=("clerk", "cook", "smith")),
        Date("when", linear=False, cycles=("year",)),
        Boolean("smoker", true_values=("yes",), false_values=("no",), missing="impute"),
    )
)
EFFECTS = {"clerk": 0.5, "cook": -0.3, "smith": 0.0, "other": -0.6}


def people(rng, rows=1500):
    """A table of mixed columns, and the average of people like each."""
    days = rng.integers(0, 1500, rows)
    frame = pd.DataFrame(
        {
            "smoker": pd.Series(rng.choice(["yes", "no"], rows), dtype=object),
            "age": rng.uniform(20, 80, rows),
            "when": pd.Timestamp("2018-01-01") + pd.to_timedelta(days, "D"),
            "job": rng.choice(["clerk", "cook", "smith", "baker"], rows, p=[0.5, 0.25, 0.2, 0.05]),
            "note": "4711",
        }
    )
    season = np.cos(2 * np.pi * days / 365.2425)
    levels = frame.job.replace({"baker": "other"}).map(EFFECTS).to_numpy()
    average = levels + 0.2 * season + 0.1 * (frame.smoker == "yes") + (frame.age - 50) / 200
    frame.loc[::50, "smoker"] = None
    return frame, average.to_numpy()


def with_schema(**changes):
    asked = {"input_bounds": None, "schema": SCHEMA, "delta": 1e-5, **changes}
    return model(**asked)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_columns_of_a_schema_are_learned(neighbours, tmp_path):
    frame, average = people(np.random.default_rng(0))
    y = average + 0.1 * np.random.default_rng(1).normal(size=len(average))
    fitted = with_schema(epsilon=3.0, neighbours=neighbours, insecure_seed=0).fit(frame, y)
    with pytest.warns(UnseenLevelWarning, match="baker"):
        mean, sd = fitted.predict(frame, return_std=True)
    assert np.sqrt(np.mean((mean - average) ** 2)) < 0.4 * average.std()
    assert (sd > 0).all()
    assert fitted.n_features_in_ == 5
    assert fitted.release_.schema.names[0] == "age"
    fitted.release_.save(tmp_path / "one.cloak")
    again = StatisticsRelease.load(tmp_path / "one.cloak")
    with pytest.warns(UnseenLevelWarning):
        np.testing.assert_array_equal(again.predict(frame[["job", "smoker", "when", "age"]]), mean)
    words = as_text(describe(again), width=10_000)
    for told in (
        "the inputs (age, job, when, smoker)",
        "declared to be 3 categories (clerk, cook, smith), or another",
        "declared to be numbers, in 0 to 100",
        "and of levels: 8 of age",
        "4 of job",
    ):
        assert told in words


def test_effects_of_levels_are_told_apart_by_as_much_as_they_differ():
    frame, average = people(np.random.default_rng(2))
    fitted = with_schema(epsilon=20.0, insecure_seed=1).fit(frame, average)
    rows = frame.head(1).drop(columns="note").loc[[0] * 3].assign(job=["clerk", "cook", "smith"])
    found = fitted.predict(rows)
    wanted = np.array([EFFECTS[job] for job in rows.job])
    np.testing.assert_allclose(found - found.mean(), wanted - wanted.mean(), atol=0.1)


def test_classes_of_columns_of_a_schema():
    frame, average = people(np.random.default_rng(3), rows=2500)
    y = np.where(average > 0, "ill", "well")
    fitted = classifier(input_bounds=None, schema=SCHEMA, insecure_seed=0).fit(frame, y)
    with pytest.warns(UnseenLevelWarning):
        assert np.mean(fitted.predict(frame) == y) > 0.8
    with pytest.warns(UnseenLevelWarning):
        assert fitted.predict(frame).tolist() == fitted.release_.predict(frame)


def test_rows_that_lack_an_input_have_no_prediction():
    frame, average = people(np.random.default_rng(4), rows=300)
    fitted = with_schema(insecure_seed=0).fit(frame, average)
    rows = frame.head(4).copy()
    rows["job"] = ["clerk", "cook", "smith", "clerk"]
    rows.loc[2, "age"] = None
    with pytest.warns(NoPredictionWarning, match="1 row lacks age"):
        mean, sd = fitted.predict(rows, return_std=True)
    assert np.isnan([mean[2], sd[2]]).all()
    with pytest.warns(NoPredictionWarning):
        _, cov = fitted.predict(rows, return_cov=True)
    assert cov.shape == (4, 4)
    np.testing.assert_array_equal(np.isnan(cov).any(axis=0), [True] * 4)
    with pytest.warns(NoPredictionWarning):
        told = fitted.release_.predict_frame(rows, interval=0.9)
    assert told.iloc[2].isna().all()
    assert told.drop(index=2).notna().all(axis=None)
    sorted_ones = classifier(input_bounds=None, schema=SCHEMA, insecure_seed=0)
    sorted_ones.fit(frame, np.where(average > 0, "ill", "well"))
    with pytest.warns(NoPredictionWarning):
        labels = sorted_ones.release_.predict(rows)
    assert labels[2] is None
    assert None not in labels[:2] + labels[3:]


def test_a_schema_and_the_table_decide_and_no_message_tells_a_cell():
    frame, average = people(np.random.default_rng(5), rows=60)
    for changes, complaint in (
        ({"input_bounds": [(0, 1)]}, "both given"),
        ({"kernel": RBF(1.0)}, "takes numbers"),
        ({"schema": Schema((Number("age"),))}, "needs a range"),
        ({"schema": None}, "input_bounds are missing"),
    ):
        table = frame[["age"]] if changes.get("schema", 0) is None else frame
        with pytest.raises(ValueError, match=complaint):
            with_schema(**changes).fit(table, average)
    with pytest.raises(ValueError, match="columns have names"):
        with_schema().fit(frame.to_numpy(), average)
    frame.loc[11, "age"] = 7654.0
    frame["age"] = frame.age.astype(object)
    frame.loc[12, "age"] = "7654 years"
    with pytest.raises(ValueError, match="is not a number") as caught:
        with_schema().fit(frame, average)
    error = caught.value
    while error is not None:
        assert not any(told in str(error) for told in ("7654", "12", "60"))
        error = error.__cause__ or error.__context__


@pytest.mark.filterwarnings("default::cloakgp.PrivacyParameterWarning")
def test_days_are_no_numbers_that_look_computed_and_ranges_may_be():
    frame, average = people(np.random.default_rng(8), rows=60)
    days = Date("when", ranges=((18262.0, 20089.0),))
    asked = {"delta": 1e-4, "bounds": (-1, 1)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with_schema(schema=Schema((days,)), **asked).fit(frame, average)
    ages = Number("age", ranges=((20.137, 79.512),))
    with pytest.warns(PrivacyParameterWarning, match="look computed"):
        with_schema(schema=Schema((days, ages)), **asked).fit(frame, average)


def test_a_plan_of_a_schema_counts_its_levels():
    plan = with_schema().plan(1000)
    assert plan.inputs == 4
    # Of age and the season 8 bins each, 4 levels, twice 2 for the truth value, and the output.
    assert plan.questions[0].numbers == 8 + 4 + 8 + 2 + 2 + 16
    assert "of 4 inputs" in str(plan)
    release = with_schema().fit(*people(np.random.default_rng(6), rows=200)).release_
    assert sum(map(len, release.counts.counts)) == plan.questions[0].numbers
    assert release.basis.count == plan.features


def test_forged_schemas_are_refused(tmp_path):
    frame, average = people(np.random.default_rng(7), rows=100)
    release = with_schema().fit(frame, average).release_
    other = replace(release.schema, columns=release.schema.columns[:-1])
    levels = replace(release.schema.columns[1], levels=("clerk", "cook"))
    fewer = replace(release.schema, columns=(release.schema.columns[0], levels))
    wider = replace(release.schema.columns[0], ranges=((0.0, 50.0),))
    narrow = replace(release.schema, columns=(wider, *release.schema.columns[1:]))
    for number, forged in enumerate((other, fewer, narrow)):
        replace(release, schema=forged).save(tmp_path / f"{number}.cloak")
        with pytest.raises(ReleaseFileError, match="its schema does not fit"):
            StatisticsRelease.load(tmp_path / f"{number}.cloak")
