"""The estimator: scikit-learn's contract, its errors, what it keeps, and how well it predicts."""

from __future__ import annotations

import pickle
import traceback

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, CompoundKernel, ConstantKernel
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from cloakgp import DPGPClassifier
from cloakgp.data import ArrayRows
from cloakgp.privacy.questions.classes import Classes
from cloakgp.release import StreamedStrategy

# Budgets here are as large, or tables as small, as each test needs.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

BUDGET = {"epsilon": 1.0, "delta": 1e-3}
KERNEL = ConstantKernel(4.0) * RBF(1.5)


def model(**changes):
    """The plain model, without learning; change what matters."""
    return DPGPClassifier(**{"classes": [0, 1], "learn": None, **BUDGET, **changes})


@pytest.fixture
def table(rng):
    X = rng.uniform(0, 10, size=(40, 2))
    return X, (np.sin(X[:, 0]) > 0).astype(int)


# --- scikit-learn's contract ---

ONE_DECLARATION = {
    "check_classifiers_train": "has tables of two and of three classes, and wants classes_ to be "
    "those in the table",
    "check_classifiers_classes": "has labels of several types, and wants classes_ to be those in "
    "the table",
}
FOUR_LABELS = {"check_dtype_object": "has four labels"}
COMPARE_TWO_FITS = dict.fromkeys(
    ("check_fit_idempotent", "check_classifier_data_not_an_array", "check_supervised_y_2d"),
    "compares two fits, whose noise differs as it must",
)


class ToldTheLabels(DPGPClassifier):
    """Declares, for each of scikit-learn's checks, the classes that its table happens to have.

    For tests only: whoever did this with private labels would publish which classes occur.
    """

    def fit(self, X, y, X_query=None, query_weight=None):
        declared = self.classes
        labels = [] if y is None else np.unique(np.asarray(y)).tolist()
        # Numbers that are not whole are no labels, and one class is no choice.
        if len(labels) > 1 and not any(
            isinstance(label, float) and not label.is_integer() for label in labels
        ):
            self.classes = labels
        try:
            return super().fit(X, y, X_query, query_weight)
        finally:
            self.classes = declared


def failures(estimator):
    results = check_estimator(estimator, on_skip=None, on_fail=None)
    assert sum(result["status"] == "passed" for result in results) > 40
    return {result["check_name"] for result in results if result["status"] == "failed"}


@pytest.mark.slow
def test_scikit_learns_own_checks_pass_for_the_classes_of_their_tables():
    told = ToldTheLabels(classes=[0, 1, 2], learn=None, gap=0.3, insecure_seed=0, **BUDGET)
    assert failures(told) == set()


@pytest.mark.slow
def test_the_checks_that_compare_two_fits_need_seeded_noise():
    told = ToldTheLabels(classes=[0, 1, 2], learn=None, gap=0.3, **BUDGET)
    # Noise may happen to change no prediction.
    assert failures(told) <= set(COMPARE_TWO_FITS)


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        pytest.param([0, 1, 2], {**ONE_DECLARATION, **FOUR_LABELS}, marks=pytest.mark.slow),
        ([0, 1, 2, 3], {**ONE_DECLARATION}),
    ],
)
def test_scikit_learns_own_checks_for_one_declaration(classes, expected):
    estimator = model(classes=classes, gap=0.3, insecure_seed=0)
    assert failures(estimator) == set(expected)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_latent"])
def test_unfitted_models_say_so(method):
    with pytest.raises(NotFittedError):
        getattr(model(), method)([[0.0]])


def test_unfitted_models_have_no_guarantee():
    with pytest.raises(NotFittedError):
        _ = model().guarantee_


def test_clones_keep_every_parameter():
    parameters = {
        "kernel": RBF(3.0),
        "classes": ["a", "b"],
        "epsilon": 0.7,
        "delta": 1e-4,
        "criterion": "newton",
        "link": "logit",
        "class_rates": [0.2, 0.8],
        "inducing": 4,
        "approximation": "dtc",
        "learn": None,
        "step_criterion": "trace",
        "steps": 3,
        "gap": 0.01,
        "random_state": 3,
        "insecure_seed": 9,
    }
    copied = clone(DPGPClassifier(**parameters))
    assert copied.get_params() == {
        **copied.get_params(),
        **{name: parameters[name] for name in parameters if name != "kernel"},
    }
    assert set(parameters) <= set(copied.get_params())
    assert copied.set_params(epsilon=2.0).epsilon == 2.0


def test_classes_and_the_budget_have_no_default():
    for missing in ("classes", "epsilon"):
        given = {"classes": [0, 1], **BUDGET}
        del given[missing]
        with pytest.raises(TypeError, match=missing):
            DPGPClassifier(**given)


@pytest.mark.filterwarnings("ignore::cloakgp.RepeatedSpendingWarning")
def test_in_a_pipeline_and_in_a_search(table):
    X, y = table
    pipeline = make_pipeline(StandardScaler(), model(insecure_seed=0)).fit(X, y)
    assert pipeline.predict(X).shape == (40,)
    # A search fits often, and each fit spends anew: possible, and in the user's hands.
    search = GridSearchCV(
        model(insecure_seed=0, criterion="trace"), {"link": ["probit", "logit"]}, cv=2
    ).fit(X, y)
    assert search.predict(X).shape == (40,)
    folds = cross_val_predict(model(insecure_seed=0), X, y, cv=2, method="predict_proba")
    assert folds.shape == (40, 2)


def test_folds_without_one_of_the_classes_keep_its_column(table):
    X, y = table
    fitted = model(classes=[0, 1, 2]).fit(X, y)
    assert fitted.predict_proba(X).shape == (40, 3)
    np.testing.assert_array_equal(fitted.classes_, [0, 1, 2])
    alone = model(insecure_seed=0, epsilon=50.0).fit(X, np.ones(40))
    assert (alone.predict(X) == 1).mean() > 0.9


def test_fit_leaves_arguments_alone(table):
    X, y = table
    before, kernel, classes = (X.copy(), y.copy()), RBF(2.0), [1, 0]
    fitted = model(kernel=kernel, classes=classes).fit(X, y)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])
    assert fitted.kernel is kernel
    assert fitted.classes is classes
    assert classes == [1, 0]
    assert fitted.release_.prior.kernel is not kernel


def test_column_names_are_kept(table):
    X, y = table
    frame = pd.DataFrame(X, columns=["age", "weight"], index=np.arange(40)[::-1])
    fitted = model(insecure_seed=0).fit(frame, pd.Series(y, index=np.arange(40) + 7))
    assert fitted.release_.input_names == ("age", "weight")
    assert list(fitted.feature_names_in_) == ["age", "weight"]
    # Rows go by position.
    plain = model(insecure_seed=0).fit(X, y)
    np.testing.assert_array_equal(fitted.predict_proba(frame), plain.predict_proba(X))
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(frame[["weight", "age"]])


# --- classes ---

TYPES = {
    "words": ["ill", "well"],
    "truth values": [False, True],
    "ints": [3, 7],
    "floats": [0.5, 1.5],
    "mixed": ["a", 1],
    "numpy": np.array([2, 5]),
}


@pytest.mark.parametrize("name", TYPES)
def test_predictions_are_declared_classes_of_their_own_type(name, table):
    X, bits = table
    classes = TYPES[name]
    y = np.empty(40, dtype=object)
    y[:] = [classes[bit] for bit in bits]
    fitted = model(classes=classes, epsilon=20.0, insecure_seed=0, kernel=KERNEL).fit(X, y)
    assert list(fitted.classes_) == list(classes)
    predicted = fitted.predict(X)
    assert predicted.dtype == fitted.classes_.dtype
    assert (predicted == y).mean() > 0.7
    assert fitted.release_.predict(X) == list(fitted.classes_[fitted.predict_proba(X).argmax(1)])


def test_huge_integers_are_classes_too(table):
    X, bits = table
    fitted = model(classes=[0, 2**70], kernel=KERNEL).fit(X, np.array([0, 2**70])[bits])
    assert list(fitted.classes_) == [0, 2**70]


def test_the_order_of_declaration_does_not_matter(table):
    X, bits = table
    y = np.array(["b", "a", "c"])[bits]
    rates = {"a": 0.2, "b": 0.3, "c": 0.5}
    fits = [
        model(
            classes=list(order),
            class_rates=[rates[one] for one in order],
            kernel=KERNEL,
            insecure_seed=1,
        ).fit(X, y)
        for order in ("abc", "cab")
    ]
    np.testing.assert_array_equal(fits[0].classes_, ["a", "b", "c"])
    np.testing.assert_array_equal(fits[0].classes_, fits[1].classes_)
    np.testing.assert_array_equal(fits[0].predict_proba(X), fits[1].predict_proba(X))
    np.testing.assert_allclose(fits[0].predict_proba([[1e4, 1e4]]), [[0.2, 0.3, 0.5]], atol=1e-6)


def test_the_second_class_is_where_the_latent_function_is_high(table):
    X, bits = table
    fitted = model(classes=["z", "a"], epsilon=50.0, insecure_seed=0, kernel=KERNEL).fit(
        X, np.array(["a", "z"])[bits]
    )
    latent = fitted.predict_latent(X)
    np.testing.assert_array_equal(latent.mean > 0, fitted.predict(X) == "z")


@pytest.mark.parametrize("count", [2, 3])
def test_ties_go_to_the_first_class(count, table, monkeypatch):
    """Answers of exactly nothing leave classes as probable as each other."""
    X, y = table
    monkeypatch.setattr(
        "cloakgp.privacy.noise.gaussian.add_discrete_gaussian",
        lambda integers, **_: np.zeros_like(integers),
    )
    fitted = model(classes=range(count), noise="gaussian").fit(X, y)
    probabilities = fitted.predict_proba(X)
    tied = np.ptp(probabilities, axis=1) == 0
    assert tied.any()
    assert (fitted.predict(X)[tied] == 0).all()


# --- predictions ---


def test_huge_budgets_give_the_ordinary_classifier(rng):
    X = np.linspace(0, 10, 60)[:, None]
    y = (np.sin(X[:, 0]) + 0.4 * rng.normal(size=60) > 0).astype(int)
    oracle = GaussianProcessClassifier(KERNEL, optimizer=None).fit(X, y)
    fitted = model(kernel=KERNEL, link="logit", epsilon=1e6, insecure_seed=0).fit(X, y)
    # Laplace's approximation and posterior linearisation are two approximations of one posterior.
    ours, theirs = fitted.predict_proba(X)[:, 1], oracle.predict_proba(X)[:, 1]
    assert np.abs(ours - theirs).mean() < 0.06
    assert (fitted.predict(X) == oracle.predict(X)).mean() > 0.93


def test_query_points_and_their_weights_reach_the_design(table):
    X, y = table
    plain, moved = (
        model(criterion="trace").fit(X, y, X[:6], query_weight=weight).release_
        for weight in (None, [1e4, 1, 1, 1, 1, 1])
    )
    first, second = (one.measurements[0].strategy.reconstruction for one in (plain, moved))
    assert np.square(second[0]).sum() < np.square(first[0]).sum()
    assert model().fit(X, y, X[:6], query_weight=[1.0] * 6).predict(X).shape == (40,)


def test_seeded_noise_repeats_and_is_admitted(table):
    X, y = table
    first, second = (model(insecure_seed=4).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    assert first.release_.insecure
    assert not model().fit(X, y).release_.insecure


def test_the_guarantee_is_what_was_asked_for(table):
    X, y = table
    guarantee = model().fit(X, y).guarantee_
    assert (guarantee.epsilon, guarantee.delta) == (1.0, 1e-3)
    assert guarantee.delta_at(1.0) <= 1e-3


# --- errors: helpful, and silent about y ---

SECRET = "quinsy-7123456"


def everything_said(error):
    """All that a log or a terminal could show of an error, causes and contexts too."""
    parts, seen = [], set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        parts += [str(error), repr(error), *traceback.format_exception(error)]
        error = error.__cause__ or error.__context__
    return "\n".join(parts)


@pytest.fixture
def plain(rng):
    y = np.array(["a", "b"] * 6, dtype=object)
    y[3] = SECRET
    return rng.uniform(size=(12, 1)), y


BAD_PARAMETERS = {
    "no classes": ({"classes": None}, "classes are missing"),
    "one class": ({"classes": ["a"]}, "two are needed"),
    "a class twice": ({"classes": ["a", "b", "a"]}, "declared twice"),
    "undeclared": ({}, "not among the declared"),
    "unknown learning": ({"learn": "mcmc"}, "learn must be 'map', 'average' or None, got 'mcmc'"),
    "unknown link": ({"link": "cloglog"}, "link must be one of probit, logit"),
    "unknown criterion": ({"criterion": "volume"}, "must be one of .*, got 'volume'"),
    "unknown approximation": ({"approximation": "vfe"}, "approximation must be one of"),
    "epsilon of zero": ({"epsilon": 0.0}, "epsilon must be positive"),
    "delta of one": ({"delta": 1.0}, "delta must be at least 0 and below 1"),
    "epsilon as text": ({"epsilon": "1"}, "epsilon must be a number"),
    "gap of zero": ({"gap": 0.0}, "gap must be positive"),
    "kernel as text": ({"kernel": "rbf"}, "kernel must be one of scikit-learn's kernels"),
    "compound kernel": ({"kernel": CompoundKernel([RBF()])}, "must be one of scikit-learn's"),
    "no inducing inputs": ({"inducing": 0}, "centres must be at least 1"),
    "inducing elsewhere": ({"inducing": [[0.0, 1.0]]}, "inducing has 2 columns, expected 1"),
    "a rate too many": ({"class_rates": [0.2, 0.3, 0.5]}, "class_rates must be one per class"),
    "a rate alone": ({"class_rates": 0.5}, "class_rates must be one per class"),
    "rates by class": ({"class_rates": {"a": 0.5, "b": 0.5}}, "numbers in the order of classes"),
    "rates as text": ({"class_rates": ["few", "many"]}, "numbers in the order of classes"),
    "rates beyond one": ({"class_rates": [0.5, 0.6]}, "class_rates must add up to 1"),
    "a rate of zero": ({"class_rates": [0.0, 1.0]}, "strictly between 0 and 1"),
    "a rate of NaN": ({"class_rates": [np.nan, 0.5]}, "strictly between 0 and 1"),
    "steps of zero": ({"criterion": "newton", "steps": 0}, "steps must be at least 1"),
    "the probit for laplace": ({"criterion": "newton", "link": "probit"}, "use link='logit'"),
    "steps for bayes": ({"steps": 2}, "go with criterion='newton'"),
    "a criterion for trace": (
        {"criterion": "trace", "step_criterion": "trace"},
        "go with criterion='newton'",
    ),
    "three classes for laplace": (
        {"criterion": "newton", "classes": ["a", "b", "c"]},
        "for two classes",
    ),
    "laplace, undeclared": ({"criterion": "newton", "steps": 2}, "not among the declared"),
}


@pytest.mark.parametrize("name", BAD_PARAMETERS)
def test_bad_parameters_are_named_and_y_is_not(name, plain):
    changes, message = BAD_PARAMETERS[name]
    estimator = model(**{"classes": ["a", "b"], **changes})
    with pytest.raises(ValueError, match=message) as caught:
        estimator.fit(*plain)
    assert SECRET not in everything_said(caught.value)
    assert not hasattr(estimator, "release_")
    assert SECRET.encode() not in pickle.dumps(estimator)


BAD_TABLES = {
    "NaN in X": (lambda X, y: (np.where(np.arange(12)[:, None] == 2, np.nan, X), y), "NaN"),
    "X as a vector": (lambda X, y: (X.ravel(), y), "Expected 2D array"),
    "X without rows": (lambda X, y: (X[:0], y[:0]), "0 sample"),
    "one row": (lambda X, y: (X[:1], y[:1]), "1 sample|minimum of 2"),
    "fewer rows in y": (lambda X, y: (X, y[:11]), "X has 12 rows and y has 11"),
    "two columns in y": (lambda X, y: (X, np.column_stack([y, y])), r"got 2 dimensions"),
    "no y": (lambda X, _: (X, None), "y is None"),
    "NaN in y": (lambda X, y: (X, np.where(y == "a", np.nan, y)), "y holds NaN"),
    "None in y": (lambda X, y: (X, np.where(y == "a", None, y)), "y holds NaN"),
    "numbers in y": (lambda X, _: (X, np.arange(12.0) + 0.123), "Unknown label type"),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_bad_tables_are_named_and_y_is_not(name, plain):
    change, message = BAD_TABLES[name]
    X, y = change(*plain)
    with pytest.raises(ValueError, match=message) as caught:
        model(classes=["a", "b"]).fit(X, y)
    said = everything_said(caught.value)
    assert SECRET not in said
    assert ".123" not in said


BAD_CALLS = {
    "query of another dimension": ({}, {"X_query": np.zeros((3, 2))}, "2 columns"),
    "query of NaN": ({}, {"X_query": [[np.nan]]}, "NaN"),
    "weights without query": ({}, {"query_weight": [1.0]}, "query_weight goes with X_query"),
    "weights for logdet": (
        {"criterion": "logdet", "noise": "gaussian"},
        {"X_query": [[0.0]], "query_weight": [1.0]},
        "query_weight applies to criteria",
    ),
    "query for laplace": ({"criterion": "newton"}, {"X_query": [[0.0]]}, "X_query is for the"),
    "too few weights": (
        {},
        {"X_query": [[0.0], [1.0]], "query_weight": [1.0]},
        "weights must be positive and finite, one per query point",
    ),
    "weights of zero": (
        {},
        {"X_query": [[0.0], [1.0]], "query_weight": [1.0, 0.0]},
        "weights must be positive",
    ),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_calls_are_named_and_y_is_not(name, plain):
    changes, arguments, message = BAD_CALLS[name]
    X, y = plain
    with pytest.raises(ValueError, match=message) as caught:
        model(classes=["a", "b", SECRET[:3]] if not changes else ["a", "b"], **changes).fit(
            X, y, **arguments
        )
    assert SECRET not in everything_said(caught.value)


def test_a_column_of_labels_warns_without_quoting_it(plain):
    X, y = plain
    with pytest.warns(DataConversionWarning, match="column-vector y") as said:
        model(classes=["a", "b", SECRET]).fit(X, y[:, None])
    assert len(said) == 1
    assert said[0].filename == __file__
    assert SECRET not in str(said[0].message)


# --- what is kept ---


@pytest.mark.parametrize("seed", [None, 0])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"criterion": "logdet", "noise": "gaussian"},
        {"inducing": 4},
        {"learn": "map"},
        {"criterion": "newton", "link": "logit", "steps": 2},
        {"count": 3},
    ],
)
def test_no_label_is_kept(changes, seed, rng):
    changes = dict(changes)
    classes = ["goitre", "croup", "gout"][: changes.pop("count", 2)]
    X = rng.uniform(size=(30, 1))
    y = np.array(classes)[rng.integers(0, len(classes), size=30)]
    fitted = model(classes=classes, insecure_seed=seed, **changes).fit(X, y)
    fitted.predict(X)
    dump = pickle.dumps(fitted.release_)
    for one in fitted.release_.measurements:
        encoded = one.question.encode(one.question.read(y, rows=30))
        for number in (one.strategy.matrix @ encoded).ravel():
            assert np.float64(number).tobytes() not in dump
        assert encoded.tobytes() not in dump
        assert one.answers.values.tobytes() in dump
    kept = {name for name in vars(fitted) if name not in fitted.get_params()}
    assert kept == {"n_features_in_", "release_", "classes_"}
    # Classes are what was declared, not what was found.
    few = model(classes=classes, **changes).fit(X, np.full(30, classes[0]))
    np.testing.assert_array_equal(few.classes_, sorted(classes))


@pytest.mark.parametrize(
    "changes",
    [
        {"criterion": "bayes"},
        {"criterion": "trace"},
        {"criterion": "logdet", "inducing": 5},
        {"learn": "map"},
        {"criterion": "newton", "link": "logit", "steps": 2},
        {"classes": [0, 1, 2]},
    ],
)
def test_every_published_double_is_a_function_of_the_answers(changes, table, monkeypatch):
    """The same answers for neighbours: identical doubles in all that can be had."""
    X, y = table
    neighbour = y.copy()
    neighbour[7] = 1 - y[7]
    monkeypatch.setattr(
        "cloakgp.privacy.noise.gaussian.add_discrete_gaussian",
        lambda integers, **_: np.arange(len(integers)) * 2**37,
    )
    first, second = (model(noise="gaussian", **changes).fit(X, labels) for labels in (y, neighbour))
    assert first.predict_proba(X).tobytes() == second.predict_proba(X).tobytes()
    one, other = first.predict_latent(X), second.predict_latent(X)
    for part in ("mean", "sd", "privacy_sd"):
        assert getattr(one, part).tobytes() == getattr(other, part).tobytes()
    assert repr(first.release_) == repr(second.release_)
    assert first.guarantee_ == second.guarantee_


def test_y_goes_through_the_one_door_only(table, check_door):
    """`ask` gets the very object given to fit; nothing else reads it."""
    X, y = table
    check_door(model(), X, y)


def test_declared_classes_may_come_as_classes(table):
    X, y = table
    assert list(model(classes=Classes((0, 1))).fit(X, y).classes_) == [0, 1]


@pytest.mark.parametrize("people", [None, 40])
def test_many_rows_with_inducing_inputs_go_by_passes(people, monkeypatch, rng):
    """They were designed and kept all at once: minutes, and megabytes."""
    monkeypatch.setattr("cloakgp.fitting.planning.MANY_ROWS", 50)
    X = rng.uniform(0, 4, size=(120, 2))
    y = np.where(np.sin(X[:, 0]) > 0.3, "b", "a")
    groups = None if people is None else rng.integers(0, people, size=120).tolist()
    settings = {"classes": ["a", "b"], "epsilon": 2.0, "delta": 1e-3, "inducing": 5}
    model = DPGPClassifier(**settings, insecure_seed=4)
    assert model.plan_fit(X.shape).by_passes
    fitted = model.fit(X, y, groups=groups)
    [measurement] = fitted.release_.measurements
    assert isinstance(measurement.strategy, StreamedStrategy)
    assert measurement.strategy.grouped == (people is not None)
    assert fitted.release_.n_rows == 120
    rows = ArrayRows(X, y, groups=groups)
    again = DPGPClassifier(**settings, insecure_seed=4).fit_rows(rows)
    np.testing.assert_array_equal(fitted.predict_proba(X), again.predict_proba(X))
    # Without them, or by Newton steps, all at once.
    assert not DPGPClassifier(**settings | {"inducing": None}).plan_fit(X.shape).by_passes
    assert not DPGPClassifier(**settings, criterion="newton").plan_fit(X.shape).by_passes


def test_many_rows_of_persons_keep_their_columns_and_names(monkeypatch, rng):
    monkeypatch.setattr("cloakgp.fitting.planning.MANY_ROWS", 50)
    table = pd.DataFrame({"age": rng.uniform(0, 90, 80), "job": rng.choice(["x", "y"], 80)})
    ill = pd.Series(np.where(table["age"] > 40, "yes", "no"), name="ill")
    model = DPGPClassifier(classes=["no", "yes"], epsilon=2.0, delta=1e-3, inducing=4)
    release = model.fit(table, ill, groups=[f"p{row % 30}" for row in range(80)]).release_
    assert release.output_name == "ill"
    assert release.schema is not None
    assert model.predict(table).shape == (80,)
