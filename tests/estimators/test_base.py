"""What estimators share, on every one of them."""

from __future__ import annotations

import inspect
import traceback

import numpy as np
import pandas as pd
import pytest
from counting_keeper import Counting
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, r2_score

import cloakgp
from cloakgp import DPGPClassifier, DPGPRegressor, DPGridSearchCV, baselines
from cloakgp.columns import infer_schema
from cloakgp.data import ArrayRows
from cloakgp.estimators.base import (
    DesignMixin,
    DistributionMixin,
    PosteriorMixin,
    ReleaseMixin,
    check_inputs,
    read_inputs,
    tag_noisy,
)
from cloakgp.fitting.request import check_learning, choose_hyperprior
from cloakgp.privacy.spending import counted_by
from cloakgp.release import Hyperprior

BUDGET = {"epsilon": 1.0, "delta": 1e-3}
LOOSE = {"learn": None, "gap": 0.1}
MODELS = {
    "DPGPRegressor": {"bounds": (-1, 1), **BUDGET, **LOOSE},
    "DPGPClassifier": {"classes": [0, 1], **BUDGET, **LOOSE},
    "DPGPMultiOutputRegressor": {"bounds": [(-1, 1), (-2, 2)], **BUDGET, **LOOSE},
    "DPGPQuantileRegressor": {"quantiles": (0.1, 0.5, 0.9), "bounds": (-1, 1), **BUDGET, **LOOSE},
    "DPGPClassifierPrivateInputs": {"classes": [0, 1], "input_bounds": (0, 10), **BUDGET},
    "DPGPRegressorPrivateInputs": {"input_bounds": (0, 10), "bounds": (-1, 1), **BUDGET},
    "DPHistogramRegressor": {"bounds": (-1, 1), **BUDGET},
    "DPIntegralHistogramRegressor": {"bounds": (-1, 1), **BUDGET, "learn": None},
    "DPMeanRegressor": {"bounds": (-1, 1), **BUDGET},
    "DPRowNoiseRegressor": {"bounds": (-1, 1), **BUDGET, "learn": None},
}
CLASSES = {name: getattr(cloakgp, name, None) or getattr(baselines, name) for name in MODELS}


def names_where(kind):
    return [name for name, one in CLASSES.items() if issubclass(one, kind)]


def model(name, **settings):
    return CLASSES[name](**MODELS[name] | settings)


def table(name, rows=30):
    X = np.linspace(0, 10, rows)[:, None]
    if "classes" in MODELS[name]:
        return X, (np.sin(X).ravel() > 0).astype(int)
    if name == "DPGPMultiOutputRegressor":
        return X, np.column_stack([np.sin(X), np.cos(X)])
    return X, np.sin(X).ravel()


def test_every_estimator_is_here():
    """But for the grid search, which has its estimator's methods."""
    exported = {
        one
        for package in (cloakgp, baselines)
        for one in (getattr(package, name) for name in package.__all__)
        if inspect.isclass(one) and issubclass(one, BaseEstimator)
    }
    assert exported - {cloakgp.DPGridSearchCV} == set(CLASSES.values())
    assert all(issubclass(estimator, ReleaseMixin) for estimator in CLASSES.values())


@pytest.mark.parametrize("name", MODELS)
def test_it_is_as_random_as_its_noise_and_scores_poorly(name):
    for seed in (None, 0, 7):
        tags = model(name, insecure_seed=seed).__sklearn_tags__()
        assert tags.non_deterministic is (seed is None)
        of_task = tags.classifier_tags if is_classifier(model(name)) else tags.regressor_tags
        assert of_task.poor_score


@pytest.mark.parametrize("name", MODELS)
def test_what_it_costs_is_what_its_release_says(name):
    unfitted = model(name, insecure_seed=1)
    with pytest.raises(NotFittedError):
        _ = unfitted.guarantee_
    with pytest.raises(NotFittedError):
        unfitted.predict([[1.0]])
    fitted = clone(unfitted).fit(*table(name))
    assert fitted.guarantee_ == fitted.release_.guarantee
    assert fitted.guarantee_.delta == 1e-3
    # Stages together spend a millionth less, which rounding could otherwise add, and with Laplace
    # noise up to a hundredth, which δ could win back.
    assert 0.99 < fitted.guarantee_.epsilon <= 1.0


@pytest.mark.parametrize("name", names_where(PosteriorMixin))
def test_it_predicts_what_its_release_predicts(name):
    X, y = table(name)
    fitted = model(name, insecure_seed=1).fit(X, y)
    points = np.array([[2.0], [5.0], [9.5]])
    boxed = np.hstack([points, points]) if "Integral" in name else points
    assert np.array_equal(fitted.predict(points), fitted.release_.predict(boxed))
    for also in ("return_std", "return_cov"):
        found = fitted.predict(points, **{also: True})
        expected = fitted.release_.predict(boxed, **{also: True})
        assert all(map(np.array_equal, found, expected))
    with pytest.raises(ValueError, match="not both"):
        fitted.predict(points, return_std=True, return_cov=True)
    with pytest.raises(ValueError, match="features"):
        fitted.predict(np.zeros((3, 2)))


@pytest.mark.parametrize("name", ["DPGPRegressor", *names_where(DistributionMixin)])
@pytest.mark.parametrize(
    ("method", "argument"),
    [("predict_interval", 0.8), ("predict_quantile", [0.2, 0.6]), ("probability_above", 0.1)],
)
def test_it_tells_the_distributions_that_its_release_tells(name, method, argument):
    points = [[2.0], [5.0], [9.5]]
    with pytest.raises(NotFittedError):
        getattr(model(name), method)(points, argument)
    fitted = model(name, insecure_seed=1).fit(*table(name))
    expected = getattr(fitted.release_, method)(points, argument)
    assert np.array_equal(getattr(fitted, method)(points, argument), expected)
    with pytest.raises(ValueError, match="features"):
        getattr(fitted, method)(np.zeros((3, 2)), argument)


@pytest.mark.parametrize("name", [name for name in MODELS if hasattr(model(name), "criterion")])
def test_query_points_and_their_weights(name):
    X, y = table(name)
    with pytest.raises(ValueError, match="give both"):
        model(name).fit(X, y, query_weight=np.ones(2))
    points = np.array([[2.0], [8.0]])
    with pytest.raises(ValueError, match="'bayes' and 'trace'"):
        model(name, criterion="logdet").fit(X, y, points, np.ones(2))
    with pytest.raises(ValueError, match="X_query has 3 columns, expected 1"):
        model(name).fit(X, y, np.zeros((2, 3)))
    for criterion in ("bayes", "trace"):
        fitted = model(name, criterion=criterion).fit(X, y, points, np.array([1.0, 3.0]))
        query = fitted._query(X, points, [1, 3])
        assert np.array_equal(query.X, points)
        assert query.weights.tolist() == [1.0, 3.0]
        if name == "DPGPRegressor":
            for asked in fitted.release_.measurements:
                assert np.array_equal(asked.strategy.X_query, points)
                assert asked.strategy.query_weights.tolist() == [1.0, 3.0]


BAD_WEIGHTS = {
    "negative": [1.0, -1.0],
    "nothing": [1.0, 0.0],
    "NaN": [1.0, np.nan],
    "too few": [1.0],
    "a cube": np.ones((2, 1, 1)),
    "too large": [1e300, 1e-300],
}


@pytest.mark.parametrize("weight", BAD_WEIGHTS)
@pytest.mark.parametrize("name", names_where(DesignMixin))
def test_weights_that_are_none_are_refused_before_counts_are_drawn(name, weight):
    """An error after a draw has a note of what it cost."""
    X, y = table(name, rows=300)
    estimator = model(name, delta=0.0, noise="laplace")
    with pytest.raises(ValueError, match=r"query.weights? must") as caught:
        estimator.fit(X, y, X[:2], BAD_WEIGHTS[weight])
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize("name", ["DPGPRegressor", "DPGPQuantileRegressor"])
def test_a_progress_that_cannot_be_called_is_refused_before_counts_are_drawn(name):
    with pytest.raises(TypeError, match="progress must be callable with a gap") as caught:
        model(name, delta=0.0, noise="laplace").fit(*table(name, rows=300), progress=3)
    assert not hasattr(caught.value, "__notes__")


def test_weights_as_far_apart_as_they_may_be_have_a_design():
    X, y = table("DPGPRegressor", rows=300)
    estimator = model("DPGPRegressor", bounds=(-4e49, 4e49), delta=0.0, noise="laplace")
    fitted = estimator.fit(X, 4e49 * y, X[:2], [1e50, 1e-50])
    assert np.isfinite(fitted.predict(X)).all()


@pytest.mark.parametrize("name", [name for name in MODELS if "learn" in MODELS[name]])
def test_wrong_ways_to_learn(name):
    with pytest.raises(ValueError, match="learn must be"):
        model(name, learn="all").fit(*table(name))


def test_ways_to_learn():
    for learn in ("map", "average", None):
        check_learning(learn)
    with pytest.raises(ValueError, match="learn must be"):
        check_learning("all")


def test_tags_of_neither_regressor_nor_classifier():
    tags = tag_noisy(BaseEstimator().__sklearn_tags__(), seeded=True)
    assert not tags.non_deterministic


@pytest.mark.parametrize("learn", ["map", "average"])
def test_what_is_given_is_not_learned(learn):
    assert choose_hyperprior(learn, noise_variance=None, mean=None) == Hyperprior()
    assert choose_hyperprior(learn, noise_variance=0.0, mean=0.0) == Hyperprior(
        noise_variance=False, mean=False
    )


def test_nothing_or_nonsense():
    assert choose_hyperprior(None, noise_variance=None, mean=None) is None
    with pytest.raises(ValueError, match="learn"):
        choose_hyperprior("all", noise_variance=None, mean=None)


def masked(values):
    """The same values, one of which is masked."""
    hidden = np.zeros(np.shape(values), dtype=bool)
    hidden[7] = True
    return np.ma.array(values, mask=hidden)


@pytest.mark.parametrize("name", MODELS)
def test_masked_inputs_and_outputs_are_refused_without_telling_which(name):
    X, y = table(name)
    fitted = model(name, insecure_seed=0).fit(X, y)
    for use in (
        lambda: model(name).fit(masked(X), y),
        lambda: model(name).fit(list(masked(X)), y),
        lambda: model(name).fit(X, masked(y)),
        lambda: fitted.predict(masked(X)),
    ):
        with pytest.raises(ValueError, match="masked") as refusal:
            use()
        assert not any(digit in str(refusal.value).replace("[0, 1]", "") for digit in "0123456789")
    fitted.fit(np.ma.array(X), np.ma.array(y))


def test_a_grid_search_refuses_masked_entries():
    X, y = table("DPGPRegressor")
    search = cloakgp.DPGridSearchCV(
        model("DPGPRegressor"), {"noise_variance": [0.1, 0.2]}, selection_epsilon=1.0, cv=2
    )
    for given in ((masked(X), y), (X, masked(y))):
        with pytest.raises(ValueError, match="masked"):
            search.fit(*given)


def test_columns_keep_their_names(rng):
    """A pandas column's name is what the release calls the output, whoever fits it."""
    X = pd.DataFrame(rng.uniform(size=(20, 1)), columns=["age"])
    y = pd.Series(rng.uniform(size=20), name="height")
    fitted = DPGPRegressor(bounds=(0, 1), epsilon=1.0, delta=1e-3, gap=0.1).fit(X, y)
    assert (fitted.release_.input_names, fitted.release_.output_name) == (("age",), "height")
    labels = pd.Series((y > 0.5).astype(int), name="ill")
    fitted = DPGPClassifier(classes=[0, 1], epsilon=1.0, delta=1e-3, gap=0.1).fit(X, labels)
    assert (fitted.release_.input_names, fitted.release_.output_name) == (("age",), "ill")
    fitted = DPGPRegressor(bounds=(0, 1), epsilon=1.0, delta=1e-3, gap=0.1).fit(X, y.to_numpy())
    assert fitted.release_.output_name == "y"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("Int64", 1),
        ("boolean", True),
        ("Float64", 1.5),
        ("int64[pyarrow]", 1),
        ("bool[pyarrow]", True),
        ("double[pyarrow]", 1.5),
    ],
)
def test_nullable_columns_may_have_gaps_where_all_are_numbers(kind, value):
    if "pyarrow" in kind:
        pytest.importorskip("pyarrow")
    X, y = table("DPGPRegressor")
    people = pd.DataFrame({"x": X[:, 0], "seen": pd.Series([value, None] * 15, dtype=kind)})
    fitted = model("DPGPRegressor").fit(people, y)
    assert fitted.schema_.sources == ("x", "seen")
    assert np.isfinite(fitted.predict(people)).all()


def test_columns_by_name_are_a_table():
    """They were handed to numpy, which made one object of them."""
    X, y = table("DPGPRegressor")
    people = {"x": X[:, 0], "job": ["cook", "clerk"] * 15}
    fitted = model("DPGPRegressor").fit(people, y)
    assert fitted.feature_names_in_.tolist() == ["x", "job"]
    assert np.isfinite(fitted.predict({"job": ["cook"], "x": [1.0]})).all()
    numbers = DPGridSearchCV(model("DPGPRegressor"), {"mean": [0.0]}, selection_epsilon=1.0)
    with pytest.raises(ValueError, match="no numbers"):
        numbers.fit(people, y)


def numbers_held_by(library):
    """Return the same numbers in a table of some library."""
    people = pd.DataFrame({"age": np.arange(9) ** 0.5, "seen": np.arange(9) > 4, "id": range(9)})
    if library == "arrow":
        return pytest.importorskip("pyarrow").Table.from_pandas(people, preserve_index=False)
    if library == "dask":
        return pytest.importorskip("dask.dataframe").from_pandas(people, npartitions=2)
    if library == "polars":
        return pytest.importorskip("polars").from_pandas(people)
    if library == "objects":
        return people.astype(object)
    if library == "columns":
        return {name: people[name].to_list() for name in people}
    return people.convert_dtypes() if library == "nullable" else people


@pytest.mark.parametrize(
    "library", ["pandas", "nullable", "objects", "columns", "arrow", "polars", "dask"]
)
def test_numbers_alone_have_no_schema_whichever_library_holds_them(library):
    """Those of some had one, with other predictions, and Dask's were no table."""
    held, read = numbers_held_by(library), BaseEstimator()
    found = read_inputs(read, held, schema=None)
    assert (found.schema, found.kept) == (None, None)
    assert read.feature_names_in_.tolist() == ["age", "seen", "id"]
    # Bit for bit: rounding is magnified.
    assert found.X.flags.c_contiguous
    np.testing.assert_array_equal(found.X, check_inputs(BaseEstimator(), numbers_held_by("pandas")))
    np.testing.assert_array_equal(check_inputs(read, held, fitting=False), found.X)


def test_new_columns_by_name_are_those_of_the_fit():
    X, y = table("DPGPRegressor")
    people = {"age": X[:, 0], "years": X[:, 0] ** 2}
    fitted = model("DPGPRegressor", insecure_seed=1).fit(people, y)
    as_frame = model("DPGPRegressor", insecure_seed=1).fit(pd.DataFrame(people), y)
    assert fitted.release_.schema is None
    np.testing.assert_array_equal(fitted.predict(people), as_frame.predict(pd.DataFrame(people)))
    turned = {"years": people["years"], "age": people["age"]}
    with pytest.raises(ValueError, match="in their order: age, years"):
        fitted.predict(turned)
    # A release finds columns by their names.
    np.testing.assert_array_equal(fitted.release_.predict(turned), fitted.predict(people))
    without = model("DPGPRegressor").fit(X, y)
    with pytest.raises(TypeError, match="a matrix of numbers is needed"):
        without.predict({"age": X[:, 0]})


def test_columns_may_have_the_names_of_methods():
    """Of the type it is asked what a table can do: pandas has columns as attributes, too."""
    people = pd.DataFrame({"compute": [1.0, 2.0], "collect": [3.0, 4.0], "lazy": [5.0, 7.0]})
    found = read_inputs(BaseEstimator(), people, schema=None)
    np.testing.assert_array_equal(found.X, people.to_numpy())


class Query:
    """What polars has of a table that is not there yet."""

    columns = ("age",)

    def lazy(self):
        return self

    def collect(self):
        raise AssertionError("it is for the caller to do")


def test_a_lazy_table_is_to_be_collected_first():
    X, y = table("DPGPRegressor")
    keeper = Counting()
    with counted_by(keeper), pytest.raises(TypeError, match=r"collect\(\) it first"):
        model("DPGPRegressor").fit(Query(), y)
    assert not keeper.charges
    fitted = model("DPGPRegressor").fit(X, y)
    with pytest.raises(TypeError, match=r"collect\(\) it first"):
        fitted.release_.predict(Query())


def with_durations(rows=60):
    waits = pd.to_timedelta(np.arange(rows), unit="s")
    return pd.DataFrame({"wait": waits, "none": [None] * rows, "job": ["a", "b"] * (rows // 2)})


@pytest.mark.parametrize(
    ("name", "doing"),
    [(name, "fit") for name in names_where(DesignMixin)] + [("DPGPRegressor", "plan")],
)
def test_columns_that_are_left_out_are_named_once(name, doing):
    """A duration that told y was taken for an id, and nobody said so."""
    frame = with_durations()
    _, y = table(name, rows=len(frame))
    asked, given = model(name), (frame, y) if doing == "fit" else (frame,)
    with pytest.warns(cloakgp.UnusedColumnWarning, match="from wait, none: they are ids") as told:
        getattr(asked, doing)(*given)
    [warned] = [one for one in told if issubclass(one.category, cloakgp.UnusedColumnWarning)]
    assert warned.filename == __file__


@pytest.mark.filterwarnings("error::cloakgp.UnusedColumnWarning")
def test_what_a_schema_says_is_not_warned_of():
    frame = with_durations()
    schema = infer_schema(frame, list(frame))
    asked = model("DPGPRegressor", schema=schema).fit(frame, np.zeros(len(frame)))
    assert asked.release_.input_names == ("job: a", "job: b", "job: (other)")


@pytest.mark.parametrize("cells", [1.0, np.nan, "cook"])
def test_two_columns_of_one_name_are_refused_by_name(cells):
    X, y = table("DPGPRegressor")
    people = pd.DataFrame({"x": X[:, 0], "other": [cells] * 30})
    people.columns = ["x", "x"]
    with pytest.raises(ValueError, match=r"more than one column x$"):
        model("DPGPRegressor").fit(people, y)


IN_PASSES = [name for name, one in CLASSES.items() if hasattr(one, "fit_rows")]


@pytest.mark.parametrize("name", IN_PASSES)
def test_one_row_is_refused_in_passes_as_it_is_at_once(name):
    X, y = table(name, rows=1)
    keeper = Counting()
    for fit in (lambda: model(name).fit(X, y), lambda: model(name).fit_rows(ArrayRows(X, y))):
        with counted_by(keeper), pytest.raises(ValueError, match="minimum of 2 is required"):
            fit()
    assert keeper.costs == []


@pytest.mark.parametrize("name", IN_PASSES)
def test_what_is_read_in_passes_comes_in_chunks(name):
    X, _ = table(name)
    for given in (X, pd.DataFrame(X), X.tolist()):
        with pytest.raises(TypeError, match="takes rows in chunks"):
            model(name).fit_rows(given)


def test_one_row_of_counts_is_refused_in_passes():
    counts = DPGPRegressor(bounds=(0, 9), likelihood="counts", **BUDGET)
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        counts.fit_rows(ArrayRows([[1.0]], [7.0]))


SECRET = "secret77"


@pytest.mark.parametrize("name", MODELS)
def test_scores_are_scikit_learns_and_quote_no_output(name):
    X, y = table(name)
    fitted = model(name).fit(X, y)
    predicted = fitted.predict(X)
    if is_classifier(fitted):
        assert fitted.score(X, y) == accuracy_score(y, predicted)
    elif predicted.shape == y.shape:
        assert fitted.score(X, y.tolist()) == r2_score(y, predicted)
    secrets = y.astype(object)
    secrets[3] = SECRET
    with pytest.raises(ValueError, match=r"numeric|not among the declared classes") as caught:
        fitted.score(X, secrets)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    frames = [frame for frame, _ in traceback.walk_tb(caught.value.__traceback__)][1:]
    assert not any(SECRET in str(frame.f_locals) for frame in frames)


@pytest.mark.parametrize("name", MODELS)
def test_names_that_files_cannot_hold_are_refused_before_anything_is_spent(name):
    """They were fitted, and paid for, and no page could be made of the release."""
    X, y = table(name)
    half = pd.Index(["\ud800"], dtype=object)
    named = pd.Series(y, name="\ud800") if y.ndim == 1 else pd.DataFrame(y, columns=["a", "b"])
    if y.ndim == 2:
        named.columns = pd.Index(["\ud800", "b"], dtype=object)
    for given in ((pd.DataFrame(X, columns=half), y), (X, named)):
        keeper = Counting()
        with counted_by(keeper), pytest.raises(ValueError, match="half of a character"):
            model(name).fit(*given)
        assert keeper.costs == []


@pytest.mark.parametrize("name", names_where(DesignMixin))
def test_query_points_need_no_names_and_are_found_by_them(name, rng):
    """Plain arrays were warned of where rows had names."""
    _, y = table(name)
    X = pd.DataFrame(rng.uniform(size=(len(y), 2)), columns=["age", "weight"])
    points = X[:3].to_numpy()
    fitted = model(name).fit(X, y, points)
    for given in (points, X[:3], X.loc[:2, ["weight", "age"]].assign(id="p1")):
        np.testing.assert_array_equal(fitted._query(X, given, None).X, points)
    with pytest.raises(ValueError, match="X_query has no column age"):
        fitted._query(X, X[["weight"]], None)
    if hasattr(fitted, "fit_rows"):
        fitted.set_params(inducing=5).fit_rows(ArrayRows(X, y), points)
        assert fitted.feature_names_in_.tolist() == ["age", "weight"]


def test_whoever_waits_is_told_what_begins(rng):
    X, y = rng.uniform(size=(20, 1)), rng.uniform(size=20)
    usual = {"epsilon": 1.0, "delta": 1e-3, "noise": "gaussian", "gap": 0.1}
    regressor = DPGPRegressor(bounds=(0, 1), **usual)
    for model, column, asked in (
        (regressor, y, "asking the outputs"),
        (DPGPClassifier(classes=[0, 1], **usual), y > 0.5, "asking the outputs"),
    ):
        told, gaps = [], []
        model.fit(X, column, progress=gaps.append, on_step=told.append)
        assert told[:5] == [
            "choosing the prior",
            "choosing the query points",
            "preparing the design",
            asked,
            "learning from the noisy answers",
        ]
        later = [
            said
            for stage in (2, 3)
            for said in (
                f"asking again, in bands ({stage} of 3)",
                "learning from the noisy answers",
            )
        ]
        assert told[5:] == later * (model is regressor)
        assert gaps[-1] <= 0.1


@pytest.mark.parametrize(
    "names", [[0, 1], pd.MultiIndex.from_tuples([("a", 0), ("a", 1)])], ids=["numbers", "levels"]
)
def test_words_in_columns_without_names_are_refused_without_one(names):
    X = pd.DataFrame([[1.0, SECRET_WORD], [2.0, "b"]], columns=names)
    model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, delta=1e-3)
    with pytest.raises(ValueError, match="X has entries that are no numbers") as caught:
        model.fit(X, [0.5, 0.5])
    assert SECRET_WORD not in str(caught.value)
    X.columns = X.columns.map(str)
    assert model.fit(X, [0.5, 0.5]).release_.schema is not None


SECRET_WORD = "a private word"
