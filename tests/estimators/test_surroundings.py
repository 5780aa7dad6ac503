"""Surroundings of a fit: what is refused before it is asked, and what is warned of."""

from __future__ import annotations

import inspect
import subprocess
import sys
import warnings
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import pytest
from counting_keeper import Counting
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_transformer
from sklearn.cross_decomposition import PLSRegression
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingRegressor,
    GradientBoostingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_selection import (
    SelectFromModel,
    SelectKBest,
    VarianceThreshold,
    f_regression,
)
from sklearn.frozen import FrozenEstimator
from sklearn.impute import IterativeImputer
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    TunedThresholdClassifierCV,
    cross_val_score,
)
from sklearn.multioutput import MultiOutputRegressor, RegressorChain
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    PolynomialFeatures,
    StandardScaler,
    TargetEncoder,
)
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils import all_estimators

from cloakgp import (
    DPGPClassifier,
    DPGPMultiOutputRegressor,
    DPGPQuantileRegressor,
    DPGPRegressor,
    DPGPRegressorPrivateInputs,
    DPGridSearchCV,
    RepeatedSpendingWarning,
    baselines,
)
from cloakgp.estimators import surroundings
from cloakgp.estimators.surroundings import AGAIN, BARE, WITHIN, supervised_parts
from cloakgp.privacy.spending import counted_by

QUICK = {"epsilon": 1.0, "learn": None, "noise": "laplace", "inducing": 4}
NUMBERS = {**QUICK, "bounds": (0, 1), "stages": None, "interval": False}

X = np.random.default_rng(0).uniform(size=(24, 3))
Y = np.linspace(0, 1, 24)
LABELS = np.arange(24) % 2


@pytest.fixture(autouse=True)
def nothing_was_told_before(monkeypatch):
    """Lines of this file go through several cases."""
    monkeypatch.setattr(surroundings, "_warned", WeakKeyDictionary())


def numbers():
    return DPGPRegressor(**NUMBERS)


def classes():
    return DPGPClassifier(**QUICK, classes=[0, 1])


class Resampler(BaseEstimator):
    """Of the kind that imbalanced-learn's pipelines have."""

    def fit(self, *_):
        return self

    def fit_resample(self, X, y):
        return X, y


class Means(TransformerMixin, BaseEstimator):
    """Says by its signature alone that it takes outputs."""

    def fit(self, X, y):
        self.n_features_in_, self.level_ = np.shape(X)[1], np.mean(y)
        return self

    def transform(self, X):
        return X + self.level_


class Target(Means):
    """Gives outputs another name."""

    def fit(self, X, target):
        return super().fit(X, target)


class Fitted(Means):
    """Has a method of pipelines that requires outputs, beside one that does not."""

    def fit(self, X, y=None):  # noqa: ARG002
        return super().fit(X, 0.0)

    def fit_transform(self, X, y):
        return super().fit(X, y).transform(X)


class AtOnce:
    """Cannot be fitted without transforming."""

    def fit_transform(self, X, y):
        return X + np.mean(y)

    def transform(self, X):
        return X


class Lags(TransformerMixin, BaseEstimator):
    """Calls by the names of what holds others' parts what are none."""

    def __init__(self, steps=3, transformers="ab", transformer_list=None):
        self.steps = steps
        self.transformers = transformers
        self.transformer_list = transformer_list

    def fit(self, X, y=None):  # noqa: ARG002
        self.n_features_in_ = np.shape(X)[1]
        return self

    def transform(self, X):
        return X


class Looks(Means):
    """Learns from outputs, whatever stands in attributes that others have for their parts."""

    def __init__(self, steps=None, transformers=None):
        self.steps = steps
        self.transformers = transformers


def encoder():
    return TargetEncoder(target_type="continuous", cv=2)


SUPERVISED = {
    "selectkbest": SelectKBest(f_regression, k=1),
    "plsregression": PLSRegression(1),
    "targetencoder": encoder(),
    "selectfrommodel": SelectFromModel(Lasso(1e-3)),
    "means": Means(),
    "target": Target(),
    "fitted": Fitted(),
    "looks": Looks(steps=("ab", "cd"), transformers=[("a", "drop")]),
    "columntransformer__targetencoder": make_column_transformer(
        (encoder(), [0]), ("passthrough", [1])
    ),
    "columntransformer__remainder": make_column_transformer(
        ("drop", [1]), remainder=SelectKBest(f_regression, k=1)
    ),
    "featureunion__selectkbest": make_union(MinMaxScaler(), SelectKBest(f_regression, k=1)),
    "pipeline__featureunion__means": make_pipeline(MinMaxScaler(), make_union(Means())),
}


@pytest.mark.parametrize("name", SUPERVISED)
def test_a_step_that_learns_from_outputs_is_refused_before_anything_is_spent(name):
    keeper = Counting()
    with counted_by(keeper), pytest.raises(ValueError, match=f"step '{name}' .* learns from y"):
        make_pipeline(clone(SUPERVISED[name]), numbers()).fit(X, Y)
    assert keeper.costs == []


def test_nothing_before_a_private_fit_hides_it():
    """Neither other steps, nor pipelines around it, nor what stands between."""
    first = SelectKBest(f_regression, k=1)
    for model in (
        make_pipeline(MinMaxScaler(), first, StandardScaler(), numbers()),
        make_pipeline(first, make_pipeline(MinMaxScaler(), numbers())),
        make_pipeline(first, TransformedTargetRegressor(numbers(), func=abs, inverse_func=abs)),
        make_pipeline(first, GridSearchCV(numbers(), {"mean": [0.4]}, cv=2)),
        GridSearchCV(make_pipeline(first, numbers()), {}, cv=2, error_score="raise"),
    ):
        with pytest.raises(ValueError, match="'selectkbest' of the pipeline"):
            model.fit(X, Y)


@pytest.mark.parametrize(
    ("step", "part"),
    [
        (ColumnTransformer([], remainder=encoder()), ["step__remainder"]),
        (AtOnce(), ["step"]),
        (make_union(AtOnce(), MinMaxScaler()), ["step__atonce"]),
        (make_union("passthrough", "drop"), []),
        (make_pipeline("passthrough", None), []),
        (ColumnTransformer([("one", "drop", [0])]), []),
        (Looks(steps=7), ["step"]),
        (Lags(steps=("ab", "cd")), []),
    ],
)
def test_parts_are_looked_for_in_what_holds_parts_alone(step, part):
    assert supervised_parts("step", step) == part


def test_methods_whose_signature_cannot_be_read_are_not_known():
    class Compiled:
        fit = dict

    with pytest.raises(ValueError, match="no signature"):
        inspect.signature(Compiled().fit)
    assert supervised_parts("step", Compiled()) == []


def test_every_estimator_refuses_it():
    gaussian = {"epsilon": 1.0, "delta": 1e-3}
    several = [(0, 1), (0, 1)]
    for model, outputs in (
        (classes(), LABELS),
        (DPGPQuantileRegressor(bounds=(0, 1), epsilon=1.0), Y),
        (DPGPMultiOutputRegressor(bounds=several, epsilon=1.0), np.column_stack([Y, Y])),
        (DPGPRegressorPrivateInputs(input_bounds=(0, 1), bounds=(0, 1), **gaussian), Y),
        (
            DPGridSearchCV(
                DPGPRegressor(bounds=(0, 1), **gaussian), {"mean": [0.4]}, selection_epsilon=1.0
            ),
            Y,
        ),
        (baselines.DPHistogramRegressor(bounds=(0, 1), epsilon=1.0), Y),
        (baselines.DPMeanRegressor(bounds=(0, 1), **gaussian), Y),
    ):
        keeper = Counting()
        with counted_by(keeper), pytest.raises(ValueError, match="step 'means'"):
            make_pipeline(Means(), model).fit(X, outputs)
        assert keeper.costs == []


def test_steps_that_see_inputs_alone_stay():
    frozen = FrozenEstimator(SelectKBest(f_regression, k=2).fit(X[::-1], Y))
    prefit = SelectFromModel(Ridge().fit(X[::-1], Y), prefit=True)
    for step in (
        "passthrough",
        FunctionTransformer(np.sqrt),
        IterativeImputer(Lasso(0.1)),
        VarianceThreshold(),
        Lags(),
        frozen,
        prefit,
        make_column_transformer((PolynomialFeatures(), [0]), ("drop", [1])),
        make_union(StandardScaler(), make_pipeline(MinMaxScaler(), FunctionTransformer())),
    ):
        pipeline = make_pipeline(step, numbers()).fit(X, Y)
        assert np.isfinite(pipeline.predict(X)).all()


def test_what_comes_after_a_private_fit_may_learn_from_outputs():
    class Predicted(TransformerMixin, BaseEstimator):
        def fit(self, X, y=None):
            self.model_ = numbers().fit(X, y)
            return self

        def transform(self, X):
            return self.model_.predict(X)[:, None]

    pipeline = make_pipeline(MinMaxScaler(), Predicted(), SelectKBest(f_regression, k=1), Ridge())
    assert np.isfinite(pipeline.fit(X, Y).predict(X)).all()


def changed_by_outputs(step):
    """Whether what a step makes of inputs is another for other outputs."""

    def made(outputs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            transformed = clone(step).fit(X, outputs).transform(X)
        return np.asarray(transformed.todense() if hasattr(transformed, "todense") else transformed)

    one, other = made((X[:, 0] > 0.5).astype(int)), made((X[:, 2] > 0.4).astype(int))
    return one.shape != other.shape or not np.array_equal(one, other)


def test_scikit_learns_own_steps_that_use_outputs_are_known_and_no_others():
    """By trying all that can be tried with their defaults, or about some estimator.

    Encoders of labels (`LabelEncoder`) cannot be: outputs are all that they are fitted to, and
    they are no steps.
    """
    tried, needless = set(), set()
    for name, kind in all_estimators():
        wanted = [
            each.name
            for each in inspect.signature(kind).parameters.values()
            if each.default is inspect.Parameter.empty and each.kind is each.POSITIONAL_OR_KEYWORD
        ]
        if not hasattr(kind, "transform") or wanted not in ([], ["estimator"]):
            continue
        step = kind(LogisticRegression()) if wanted else kind()
        given = step.get_params(deep=False)
        few = {
            "random_state": 0,
            "k": 1,
            "n_components": 1,
            "eps": 0.9,
            "min_features_to_select": 1,
        }
        step.set_params(**{each: few[each] for each in few.keys() & given.keys()})
        try:
            changed = changed_by_outputs(step)
        except (ValueError, TypeError, AttributeError):
            # Made for other inputs: texts, kernels, labels.
            continue
        tried.add(name)
        known = supervised_parts("step", step)
        assert known in ([], ["step"])
        if changed:
            assert known, name
        elif known:
            needless.add(name)
    # Whatever else belongs here would be an exception to be named, with its reason.
    assert needless == set()
    assert "RandomTreesEmbedding" in tried
    assert len(tried) > 40
    assert {"SelectKBest", "SelectPercentile", "TargetEncoder", "PLSRegression"} <= tried
    assert supervised_parts("step", Resampler()) == ["step"]


def test_a_chain_puts_outputs_among_inputs_and_is_refused():
    keeper = Counting()
    with counted_by(keeper), pytest.raises(ValueError, match="RegressorChain puts outputs among"):
        RegressorChain(numbers()).fit(X, np.column_stack([Y, Y]))
    assert keeper.costs == []


def neighbour():
    return KNeighborsRegressor(1).fit(X, Y)


@pytest.mark.parametrize(
    "model",
    [
        StackingRegressor([("knn", neighbour())], numbers(), cv="prefit"),
        StackingRegressor([("knn", neighbour())], numbers(), cv=3, passthrough=True),
        StackingRegressor([("knn", neighbour())], make_pipeline(MinMaxScaler(), numbers()), cv=3),
        StackingRegressor([("knn", neighbour())], VotingRegressor([("one", numbers())]), cv=3),
        StackingRegressor([("private", numbers())], make_pipeline(MinMaxScaler(), numbers()), cv=3),
        make_pipeline(MinMaxScaler(), StackingRegressor([("knn", neighbour())], numbers(), cv=3)),
        GridSearchCV(
            StackingRegressor([("knn", neighbour())], numbers()), {"cv": [2]}, error_score="raise"
        ),
        StackingClassifier([("knn", KNeighborsClassifier(1))], classes(), cv=3),
    ],
)
def test_a_final_estimator_would_publish_predictions_that_hold_outputs_and_is_refused(model):
    """One nearest neighbour predicts, at rows that it was fitted to, their outputs."""
    outputs = LABELS if isinstance(model, StackingClassifier) else Y
    keeper = Counting()
    with counted_by(keeper), pytest.raises(ValueError, match="the final estimator of Stacking"):
        model.fit(X, outputs)
    assert keeper.costs == []


@pytest.mark.parametrize("final", [None, Ridge(), FrozenEstimator(numbers().fit(X[:, :1], Y))])
def test_members_of_stacking_stay_whatever_public_estimator_is_the_last(final):
    with pytest.warns(RepeatedSpendingWarning):
        stacked = StackingRegressor([("private", numbers())], final, cv=2).fit(X, Y)
    assert np.isfinite(stacked.predict(X)).all()


def warned_of(fit):
    with pytest.warns(RepeatedSpendingWarning) as found:
        fit()
    return [str(each.message) for each in found if each.category is RepeatedSpendingWarning]


@pytest.mark.parametrize(
    "model",
    [
        StackingRegressor([("one", numbers())], cv=2),
        GradientBoostingRegressor(init=numbers(), n_estimators=2),
        AdaBoostRegressor(numbers(), n_estimators=2),
        SelfTrainingClassifier(classes(), max_iter=1),
        CalibratedClassifierCV(classes(), cv=2),
        TunedThresholdClassifierCV(classes(), cv=2),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_uses_outputs_without_noise_is_said_to(model):
    outputs = LABELS if hasattr(model, "predict_proba") or "Class" in type(model).__name__ else Y
    if isinstance(model, SelfTrainingClassifier):
        outputs = np.where(np.arange(24) < 4, -1, outputs)
    (told,) = warned_of(lambda: model.fit(X, outputs))
    assert AGAIN in told
    assert told.endswith(BARE)


@pytest.mark.parametrize(
    "model", [BaggingRegressor(numbers(), n_estimators=2), VotingRegressor([("one", numbers())])]
)
def test_of_other_ensembles_it_is_not_said(model):
    (told,) = warned_of(lambda: model.fit(X, Y))
    assert AGAIN in told
    assert told.endswith(f"in stacking and boosting, {BARE}")


def test_predictions_of_a_fitted_model_that_outputs_are_set_beside_are_warned_of():
    fitted = classes().fit(X, LABELS)
    whole = DPGPRegressorPrivateInputs(
        input_bounds=(0, 1), bounds=(0, 1), epsilon=1.0, delta=1e-3
    ).fit(X, Y)
    for model, outputs in (
        (CalibratedClassifierCV(FrozenEstimator(fitted)), LABELS),
        (TunedThresholdClassifierCV(fitted, cv="prefit", refit=False), LABELS),
        (StackingRegressor([("one", numbers().fit(X, Y))], cv="prefit"), Y),
        (StackingRegressor([("one", whole)], cv="prefit"), Y),
    ):
        surroundings._warned.clear()
        (told,) = warned_of(lambda model=model, outputs=outputs: model.fit(X, outputs))
        assert told.startswith("these predictions are used by a fit within sklearn.")
        assert told.endswith(BARE)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.predict(X)


def test_a_threshold_that_is_given_fits_once_and_is_not_warned_of():
    fixed = FixedThresholdClassifier(classes(), threshold=0.4)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RepeatedSpendingWarning)
        fixed.fit(X, LABELS)
        FixedThresholdClassifier(FrozenEstimator(fixed.estimator_)).fit(X, LABELS).predict(X)
    (told,) = warned_of(lambda: GridSearchCV(fixed, {"threshold": [0.3]}, cv=2).fit(X, LABELS))
    assert told.startswith("this fit runs within sklearn.model_selection,")
    (told,) = warned_of(lambda: CalibratedClassifierCV(fixed, cv=2).fit(X, LABELS))
    assert told.startswith("this fit runs within sklearn.calibration,")


def test_parts_of_scikit_learn_are_where_they_are_said_to_be():
    for part in WITHIN:
        __import__(part)


def test_every_calling_line_is_warned_of_once_by_pythons_own_rules(recwarn):
    """Python shows one text once for each line, and took a line of scikit-learn's for that."""
    warnings.simplefilter("default")
    for _ in range(2):
        cross_val_score(numbers(), X, Y, cv=2)
    cross_val_score(numbers(), X, Y, cv=2)
    MultiOutputRegressor(numbers()).fit(X, np.column_stack([Y, Y]))
    found = [each for each in recwarn if each.category is RepeatedSpendingWarning]
    assert len({each.lineno for each in found}) == len(found) == 3
    assert {each.filename for each in found} == {__file__}


def test_at_a_prompt_everything_that_is_typed_is_warned_of():
    typed = """\
import numpy as np
from sklearn.model_selection import cross_val_score
from cloakgp import DPGPRegressor
model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, learn=None, stages=None)
X, y = np.arange(8.0)[:, None], np.linspace(0, 1, 8)
scores = cross_val_score(model, X, y, cv=2)
scores = cross_val_score(model, X, y, cv=4)
"""
    done = subprocess.run(
        [sys.executable, "-i", "-q"], input=typed, capture_output=True, text=True, check=True
    )
    assert done.stderr.count("RepeatedSpendingWarning") == 2


def test_tables_with_names_are_refused_in_the_same_words():
    people = pd.DataFrame({"village": ["a", "b"] * 12, "age": X[:, 0]})
    columns = make_column_transformer((encoder(), ["village"]), remainder="passthrough")
    with pytest.raises(ValueError, match="columntransformer__targetencoder"):
        make_pipeline(columns, numbers()).fit(people, Y)
