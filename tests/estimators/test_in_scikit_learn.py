"""Estimators within scikit-learn: schemas of tables, pipelines, routing, and repeated spending."""

from __future__ import annotations

import traceback

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor, VotingRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.validation import has_fit_parameter

from cloakgp import (
    DPGPClassifier,
    DPGPClassifierPrivateInputs,
    DPGPMultiOutputRegressor,
    DPGPQuantileRegressor,
    DPGPRegressor,
    DPGPRegressorPrivateInputs,
    DPGridSearchCV,
    RepeatedSpendingWarning,
    baselines,
)
from cloakgp.columns import infer_schema
from cloakgp.data import ArrayRows

QUICK = {"epsilon": 1.0, "learn": None, "noise": "laplace", "inducing": 4}
NUMBERS = {**QUICK, "bounds": (0, 1), "stages": None, "interval": False}


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    return pd.DataFrame({"job": rng.choice(["cook", "clerk"], 24), "age": rng.uniform(20, 80, 24)})


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (DPGPRegressor(**NUMBERS), pd.Series(np.linspace(0, 1, 24), name="height")),
        (
            DPGPQuantileRegressor(**QUICK, bounds=(-1, 1), stages=None),
            pd.Series(np.linspace(0, 1, 24), name="pay"),
        ),
        (DPGPClassifier(**QUICK, classes=["no", "yes"]), pd.Series(["no", "yes"] * 12, name="ill")),
        (
            DPGPMultiOutputRegressor(**QUICK, bounds=[(0, 1), (0, 1)]),
            pd.DataFrame({"a": np.linspace(0, 1, 24), "b": np.linspace(1, 0, 24)}),
        ),
    ],
    ids=["numbers", "quantiles", "classes", "several"],
)
def test_the_schema_is_inferred_and_the_release_keeps_it(people, model, y):
    release = model.fit(people, y).release_
    assert release.schema == model.schema_
    assert release.schema.sources == ("job", "age")
    frame = release.predict_frame(people.iloc[::-1, ::-1])
    assert list(frame.index) == list(people.index[::-1])
    if isinstance(y, pd.Series):
        assert release.output_name == y.name
    else:
        assert release.names == ("a", "b")


def test_the_schema_is_kept_at_the_end_of_a_pipeline(people):
    scaled = ColumnTransformer(
        [("age", MinMaxScaler(), ["age"])], remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="pandas")
    pipeline = make_pipeline(scaled, DPGPRegressor(**NUMBERS))
    pipeline.fit(people, np.linspace(0, 1, 24))
    assert set(pipeline[-1].release_.schema.sources) == {"job", "age"}
    assert np.isfinite(pipeline.predict(people)).all()


def test_groups_are_routed_through_a_pipeline(people):
    with sklearn.config_context(enable_metadata_routing=True):
        model = DPGPRegressor(**NUMBERS).set_fit_request(groups=True)
        pipeline = make_pipeline(MinMaxScaler(), model)
        whose = [row // 2 for row in range(24)]
        pipeline.fit(people[["age"]], np.linspace(0, 1, 24), groups=whose)
    assert pipeline[-1].release_.measurements[0].strategy.grouped


def test_model_selection_warns_that_it_spends_again_and_again(people):
    y = np.linspace(0, 1, 24)
    with pytest.warns(RepeatedSpendingWarning, match="every fit spends") as found:
        cross_val_score(DPGPRegressor(**NUMBERS), people[["age"]], y, cv=2)
    assert len(found) == 1
    with pytest.warns(RepeatedSpendingWarning):
        GridSearchCV(DPGPRegressor(**NUMBERS), {"mean": [0.4, 0.6]}, cv=2).fit(people[["age"]], y)
    model = DPGPClassifier(**QUICK, classes=[0, 1])
    with pytest.warns(RepeatedSpendingWarning):
        cross_val_score(model, people[["age"]], np.arange(24) % 2, cv=2)


def test_members_and_what_uses_outputs_without_noise_warn(people):
    X, y = people[["age"]], np.linspace(0, 1, 24)
    member = DPGPRegressor(**NUMBERS)
    # Once for each line.
    with pytest.warns(RepeatedSpendingWarning, match="every fit spends"):
        BaggingRegressor(member, n_estimators=2, random_state=0).fit(X, y)
    with pytest.warns(RepeatedSpendingWarning, match="every fit spends"):
        VotingRegressor([("one", member), ("two", member)]).fit(X, y)
    with pytest.warns(RepeatedSpendingWarning, match="every fit spends"):
        MultiOutputRegressor(member).fit(X, np.column_stack([y, y]))
    target = TransformedTargetRegressor(member, transformer=MinMaxScaler())
    with pytest.warns(RepeatedSpendingWarning, match="the private outputs has no noise") as found:
        target.fit(X, y)
    assert "output_transform" in str(found[0].message)
    calibrated = CalibratedClassifierCV(DPGPClassifier(**QUICK, classes=[0, 1]), cv=2)
    with pytest.warns(RepeatedSpendingWarning, match="spends .* has no noise"):
        calibrated.fit(X, np.arange(24) % 2)


def test_a_private_column_among_the_inputs_is_refused_before_anything_is_spent(people):
    people["pay"] = np.linspace(0, 1, 24)
    people["paid"] = np.arange(24) % 2
    private = "'pay' is among the inputs, which are public"
    y = people["pay"]
    for table in (people, people[["age", "pay"]]):
        for model in (DPGPRegressor(**NUMBERS), DPGPQuantileRegressor(**QUICK, bounds=(-1, 1))):
            with pytest.raises(ValueError, match=private) as raised:
                model.fit(table, y)
            assert not hasattr(model, "release_")
            assert not any(f"{value:.3g}" in str(raised.value) for value in y[1:-1])
    with pytest.raises(ValueError, match="'paid' is among"):
        DPGPClassifier(**QUICK, classes=[0, 1]).fit(people[["age", "paid"]], people["paid"])
    with pytest.raises(ValueError, match=private):
        DPGPMultiOutputRegressor(**QUICK, bounds=[(0, 1), (0, 1)]).fit(
            people[["age", "pay"]], people[["pay", "paid"]]
        )
    with pytest.raises(ValueError, match=private):
        ArrayRows(people[["age", "pay"]], y)
    model = DPGPRegressor(**{**NUMBERS, "noise": "gaussian"}, delta=1e-3)
    with pytest.raises(ValueError, match=private):
        DPGridSearchCV(model, {"mean": [0.4, 0.6]}, selection_epsilon=1.0).fit(people[["pay"]], y)
    with pytest.raises(ValueError, match=private):
        baselines.DPHistogramRegressor(bounds=(0, 1), epsilon=1.0).fit(people[["pay"]], y)
    # A schema that does not read the column leaves it out.
    schema = infer_schema(people, ["job", "age"])
    release = DPGPRegressor(**NUMBERS, schema=schema).fit(people, y).release_
    assert "pay" not in release.input_names


def test_a_table_without_rows_is_said_to_have_none(people):
    model = DPGPRegressor(**NUMBERS).fit(people, np.linspace(0, 1, 24))
    with pytest.raises(ValueError, match="X has column names but no rows"):
        model.predict(people.head(0))


def test_rows_of_words_without_names_of_columns_are_told_what_is_missing(people):
    model = DPGPRegressor(**NUMBERS).fit(people, np.linspace(0, 1, 24))
    cells = people.head(2).to_numpy().tolist()
    with pytest.raises(
        ValueError, match=r"X has entries that are no numbers.* a table with their names"
    ):
        model.predict(cells)


def test_the_same_labels_in_another_order_are_refused(people):
    X, whose = people[["age"]], pd.Series(np.arange(24) // 2)
    y = pd.Series(np.linspace(0, 1, 24))
    for private, groups in ((y[::-1], whose), (y, whose[::-1])):
        with pytest.raises(ValueError, match="in another order"):
            DPGPRegressor(**NUMBERS).fit(X, private, groups=groups)
        with pytest.raises(ValueError, match="in another order"):
            ArrayRows(X, private, groups=groups)
    # Other labels, or none, say nothing of the order.
    other = y[::-1].set_axis(np.arange(100, 124))
    for outputs in (other, y[::-1].to_numpy(), y[::-1].tolist()):
        DPGPRegressor(**NUMBERS).fit(X, outputs)


def test_a_fit_of_its_own_does_not_warn(people, recwarn):
    DPGPRegressor(**NUMBERS).fit(people[["age"]], np.linspace(0, 1, 24))
    X = people[["age"]].to_numpy()
    DPGPRegressor(**{**NUMBERS, "noise": "auto"}).fit_rows(ArrayRows(X, np.linspace(0, 1, 24)))
    assert [each for each in recwarn if each.category is RepeatedSpendingWarning] == []


def fits():
    X, y = np.linspace(0, 1, 24)[:, None], np.linspace(0, 1, 24)
    yield DPGPRegressor(**NUMBERS), X, y
    yield DPGPQuantileRegressor(**QUICK, bounds=(-1, 1), stages=None), X, y
    yield DPGPClassifier(**QUICK, classes=[0, 1]), X, np.arange(24) % 2
    yield DPGPMultiOutputRegressor(**QUICK, bounds=[(0, 1), (0, 1)]), X, np.column_stack([y, y])
    yield (
        DPGPRegressorPrivateInputs(
            input_bounds=[(0, 1)], bounds=(0, 1), epsilon=1.0, delta=1e-3, neighbours="replace"
        ),
        X,
        y,
    )
    yield (
        DPGPClassifierPrivateInputs(classes=[0, 1], input_bounds=[(0, 1)], epsilon=1.0, delta=1e-3),
        X,
        np.arange(24) % 2,
    )
    model = DPGPRegressor(**{**NUMBERS, "noise": "gaussian"}, delta=1e-3)
    yield DPGridSearchCV(model, {"mean": [0.4, 0.6]}, selection_epsilon=1.0), X, y
    yield baselines.DPHistogramRegressor(bounds=(0, 1), epsilon=1.0, noise="laplace"), X, y


@pytest.mark.parametrize(("model", "X", "y"), list(fits()), ids=lambda each: type(each).__name__)
def test_weights_of_samples_are_refused_in_plain_words_before_anything_is_spent(model, X, y):
    weights = 123.5 + np.arange(24)
    with pytest.raises(TypeError, match="query_weight") as found:
        model.fit(X, y, sample_weight=weights)
    told = str(found.value)
    for word in ("X_query", "exposure", "groups", "leave out", "protected alike"):
        assert word in told
    assert "123" not in told
    assert not hasattr(model, "release_")
    assert not hasattr(model, "best_estimator_")
    # No frame below the caller's keeps an output.
    frames = [frame for frame, _ in traceback.walk_tb(found.tb)][1:]
    assert all(y is not each for frame in frames for each in frame.f_locals.values())
    assert not has_fit_parameter(model, "sample_weight")


def test_weights_are_refused_within_a_pipeline_and_none_is_none(people):
    y = np.linspace(0, 1, 24)
    pipeline = make_pipeline(MinMaxScaler(), DPGPRegressor(**NUMBERS))
    with pytest.raises(TypeError, match="fit takes no sample_weight"):
        pipeline.fit(people[["age"]], y, dpgpregressor__sample_weight=np.ones(24))
    pipeline.fit(people[["age"]], y, dpgpregressor__sample_weight=None)
    assert np.isfinite(pipeline.predict(people[["age"]])).all()


@pytest.mark.parametrize(("model", "X", "y"), list(fits()), ids=lambda each: type(each).__name__)
def test_notebooks_show_what_a_fit_spends_and_what_it_spent(model, X, y):
    if isinstance(model, DPGridSearchCV):
        # It is shown as scikit-learn's own are, around the estimator that is.
        model = model.estimator
    before = model._repr_mimebundle_()["text/html"]
    assert "Nothing has been asked yet" in before
    assert "ε = 1, with no δ" in before or "(ε, δ) = (1, 0.001)" in before
    assert type(model).__name__ in before
    model.fit(X, y)
    after = model._repr_mimebundle_()["text/html"]
    release = model.release_._repr_html_() if hasattr(model.release_, "_repr_html_") else ""
    assert after.endswith(release)
    assert model._repr_html_().endswith(release)
    assert "Nothing has been asked yet" not in after
    assert "guarantee" in after
    assert str(model.guarantee_) in after
    with sklearn.config_context(display="text"):
        assert set(model._repr_mimebundle_()) == {"text/plain"}
