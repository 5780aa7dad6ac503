"""Public predictions: columns, models and releases; whom they help, and whom they cannot harm."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import special
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LinearRegression

from cloakgp import DPGPRegressor, DPGridSearchCV, Release, extend, refine
from cloakgp.columns import Category, Number, Schema
from cloakgp.data import ArrayRows
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.likelihoods.numbers import NUMBERS
from cloakgp.pages.prediction import prediction_html
from cloakgp.release.hyperparameters.learning import weigh
from cloakgp.release.posterior.clipped import log_evidence
from cloakgp.release.posterior.mixture import WeightedPrior
from cloakgp.report.describe import describe
from cloakgp.report.facts import as_text
from cloakgp.report.prediction import weight_of
from cloakgp.utils.names import PUBLIC_PREDICTION

RNG = np.random.default_rng(7)
X = RNG.uniform(0, 10, size=(120, 2))
NEW = RNG.uniform(0, 10, size=(300, 2))
SETTINGS = {"bounds": (0.0, 200.0), "epsilon": 1.0, "gap": 0.05, "insecure_seed": 3}


def truth(X):
    return 100.0 + 40.0 * np.sin(X[:, 0]) + 3.0 * X[:, 1]


Y = truth(X) + RNG.normal(0, 5, size=120)


def with_column(X, column):
    return np.column_stack([X, column])


def fitted(column, y=Y, **changes):
    model = DPGPRegressor(**{**SETTINGS, "public_prediction": 2, **changes})
    return model.fit(with_column(X, column), y)


def error(model, column):
    return float(np.sqrt(np.mean((model.predict(with_column(NEW, column)) - truth(NEW)) ** 2)))


@cache
def error_alone(epsilon=1.0):
    model = DPGPRegressor(**{**SETTINGS, "epsilon": epsilon}).fit(X, Y)
    return float(np.sqrt(np.mean((model.predict(NEW) - truth(NEW)) ** 2)))


def said(release):
    return as_text(describe(release), width=10_000)


# What they are worth.


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_a_right_prediction_helps_at_once(epsilon):
    model = fitted(truth(X), epsilon=epsilon)
    assert error(model, truth(NEW)) < 0.5 * error_alone(epsilon)
    assert model.release_.fitted_prior.trend is not None


def test_outputs_that_contradict_a_prediction_take_its_weight():
    wild = np.random.default_rng(1).normal(100, 60, size=120)
    model = fitted(wild, epsilon=3.0)
    weight = weight_of(model.release_)
    assert weight < 0.2
    at_new = np.random.default_rng(2).normal(100, 60, size=300)
    low = with_column(NEW, np.zeros(300))
    moved = np.abs(model.predict(with_column(NEW, at_new)) - model.predict(low))
    # Of some 260, which the new values span; processors differ in last digits, and designs follow.
    assert moved.max() < 5.0
    assert error(model, at_new) < 1.3 * error_alone(3.0)
    assert f"predictions are an average: {weight:.0%} go by x3" in said(model.release_)


@pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")
def test_answers_that_leave_no_doubt_leave_a_prediction_out():
    wild = np.random.default_rng(1).normal(100, 60, size=120)
    model = fitted(wild, epsilon=1000.0)
    assert weight_of(model.release_) == 0.0
    assert "far more probable without x3, and predictions do not go by it" in said(model.release_)
    low = with_column(NEW, np.zeros(300))
    np.testing.assert_allclose(model.predict(low), model.predict(with_column(NEW, truth(NEW))))


def test_priors_weigh_as_much_as_they_make_the_answers_probable():
    """Beside evidences that are computed one by one."""
    release = fitted(RNG.permutation(truth(X)), epsilon=2.0).release_
    answered = [one for one in release.measurements if one.noise_sd > 0]
    evidence = [log_evidence(one.prior, answered, sweeps=3) for one in release.learned]
    assert len(evidence) > 1
    weights = [one.weight for one in release.learned]
    np.testing.assert_allclose(weights, special.softmax(evidence), rtol=1e-6)


def test_alternatives_without_an_evidence_have_no_weight():
    one, other = (
        (WeightedPrior(prior=prior, likelihood=NUMBERS, weight=1.0),)
        for prior in (ExactPrior(kernel=RBF(), noise_variance=1.0, mean=m) for m in (0.0, 1.0))
    )

    def impossible(_):
        raise np.linalg.LinAlgError

    def only_the_second(prior):
        return 0.0 if prior.mean else impossible(prior)

    assert weigh([one, other], log_evidence=impossible) == one
    assert weigh([one, other], log_evidence=only_the_second)[0].prior is other[0].prior
    assert weigh([one, other], log_evidence=lambda _: np.nan) == one


def test_with_much_privacy_budget_the_sign_and_scale_of_a_prediction_are_found():
    model = fitted(300.0 - 2.0 * truth(X), epsilon=10.0)
    assert error(model, 300.0 - 2.0 * truth(NEW)) < 0.7 * error_alone(10.0)
    assert "For each 1 that it is higher, they are -0.5" in said(model.release_)


@pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")
def test_units_are_of_no_matter():
    predicted = truth(X) + RNG.normal(0, 20, size=120)
    # Without noise to speak of, which is drawn on a grid of its own in each unit.
    exact = {"epsilon": 1e6, "delta": 0.0, "learn": None, "interval": False, "gap": 1e-3}
    one = fitted(predicted, **exact)
    other = fitted(7.0 * predicted - 300.0, 7.0 * Y - 300.0, bounds=(-300.0, 1100.0), **exact)
    at_new = with_column(NEW, truth(NEW))
    scaled = with_column(NEW, 7.0 * truth(NEW) - 300.0)
    np.testing.assert_allclose(
        other.predict(scaled), 7.0 * one.predict(at_new) - 300.0, rtol=0, atol=7.0
    )


def test_the_answers_are_at_least_as_probable_as_without_it():
    """Whatever the prediction, under the prior of most weight."""
    from cloakgp.models.prediction import alternatives
    from cloakgp.release.hyperparameters.learning import _learn_one

    for column in (truth(X), RNG.permutation(truth(X)), 200.0 - truth(X), 50.0 * truth(X)):
        release = fitted(column).release_
        answered = [one for one in release.measurements if one.noise_sd > 0]
        [without] = _learn_one(
            alternatives(release.prior)[2],
            release.likelihood,
            release.measurements,
            hyperprior=release.hyperprior,
            average=False,
            inference=release.inference,
        )
        ours, theirs = (
            log_evidence(prior, answered, sweeps=3)
            for prior in (release.fitted_prior, without.prior)
        )
        assert ours >= theirs - 1e-6


# The ways to give one.


def test_columns_are_given_by_name_or_place_and_models_are_asked():
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = LinearRegression().fit(frame, truth(X))
    predicted = model.predict(frame)
    by_name = DPGPRegressor(**SETTINGS, public_prediction="p").fit(frame.assign(p=predicted), Y)
    by_model = DPGPRegressor(**SETTINGS, public_prediction=model).fit(frame, Y)
    by_place = fitted(predicted)
    new = pd.DataFrame(NEW, columns=["a", "b"])
    expected = by_name.predict(new.assign(p=model.predict(new)))
    np.testing.assert_array_equal(by_model.predict(new), expected)
    np.testing.assert_array_equal(by_place.predict(with_column(NEW, model.predict(new))), expected)
    assert by_model.release_.input_names == ("a", "b", PUBLIC_PREDICTION)


def test_a_file_takes_the_predictions_of_a_model_as_a_column(tmp_path):
    frame, new = (pd.DataFrame(each, columns=["a", "b"]) for each in (X, NEW))
    predicted = LinearRegression().fit(frame, truth(X))
    model = DPGPRegressor(**SETTINGS, public_prediction=predicted).fit(frame, Y)
    model.release_.save(tmp_path / "x.cloak")
    known = Release.load(tmp_path / "x.cloak")
    with pytest.raises(ValueError, match="lacks its public predictions, by a model that is no"):
        known.predict(new)
    there = new.assign(**{PUBLIC_PREDICTION: predicted.predict(new)})
    np.testing.assert_array_equal(known.predict(there), model.predict(new))


def test_a_release_about_others_is_kept_in_the_file(tmp_path):
    others = RNG.uniform(0, 10, size=(400, 2))
    first = DPGPRegressor(**{**SETTINGS, "epsilon": 5.0}).fit(others, truth(others)).release_
    model = DPGPRegressor(**SETTINGS, public_prediction=first).fit(X, Y)
    model.release_.save(tmp_path / "x.cloak")
    known = Release.load(tmp_path / "x.cloak")
    np.testing.assert_array_equal(known.predict(NEW), model.predict(NEW))
    given = with_column(NEW, first.predict(NEW))
    np.testing.assert_array_equal(known.predict(given), model.predict(NEW))
    assert known.predictor.guarantee.epsilon == first.guarantee.epsilon
    assert known.guarantee.epsilon == pytest.approx(1.0)
    told = said(known)
    assert f"with a guarantee of its own: {first.guarantee}" in told
    assert "Of people whose values are in both, the two add up" in told
    with pytest.raises(ValueError, match="a page cannot predict by a release or public rows"):
        prediction_html(known)
    later = extend(known, NEW[:50], truth(NEW[:50]), epsilon=1.0, delta=0.0, insecure_seed=8)
    assert later.predict(NEW).shape == (300,)


def test_releases_with_other_predictions_are_not_combined():
    alone = {**SETTINGS, "learn": None, "interval": False}
    first, second = (
        DPGPRegressor(**{**alone, "insecure_seed": seed}).fit(X[:40], Y[:40]).release_
        for seed in (1, 2)
    )
    one, other = (
        DPGPRegressor(**alone, public_prediction=each).fit(X, Y).release_ for each in (first, first)
    )
    with pytest.raises(ValueError, match="different public predictions cannot be combined"):
        one.combine(replace(other, predictor=second))


def test_tables_with_categories_and_gaps_have_one_too():
    frame = pd.DataFrame({"a": X[:, 0], "job": np.where(X[:, 1] > 5, "cook", "clerk")})
    schema = Schema(columns=(Number(name="a"), Category(name="job", levels=("clerk", "cook"))))

    class Census:
        def predict(self, table):
            return 100.0 + 40.0 * np.sin(np.asarray(table["a"]))

    for declared in (None, schema):
        model = DPGPRegressor(**SETTINGS, schema=declared, public_prediction=Census())
        release = model.fit(frame, Y).release_
        assert release.schema.sources == ("a", "job", PUBLIC_PREDICTION)
        assert release.prior.trend.column == len(release.input_names) - 1
        np.testing.assert_array_equal(
            model.predict(frame[:5]),
            release.predict(frame[:5].assign(**{PUBLIC_PREDICTION: Census().predict(frame[:5])})),
        )
    by_name = DPGPRegressor(**SETTINGS, public_prediction="job")
    with pytest.raises(ValueError, match="public_prediction='job' is no input of numbers"):
        by_name.fit(frame, Y)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("q", "is no input of numbers: they are 3 without names"),
        (3, "is no place of an input: there are 3"),
        (-1, "is no place of an input"),
        (True, "must be a public column"),
        ("", "must be a public column"),
        (object(), "must be a public column"),
    ],
)
def test_what_predicts_nothing_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        fitted(truth(X), public_prediction=given)


def test_a_prediction_goes_with_other_inputs_and_is_one_number_a_row():
    with pytest.raises(ValueError, match="beside a public prediction there must be another input"):
        DPGPRegressor(**SETTINGS, public_prediction=0).fit(X[:, :1], Y)
    for missing, complaint in (("x", "is no input of numbers"), (7, "is no place of an input")):
        with pytest.raises(ValueError, match=complaint):
            DPGPRegressor(**SETTINGS, public_prediction=missing).fit(X[:, :1], Y)
    several = LinearRegression().fit(X, np.column_stack([Y, Y]))
    with pytest.raises(ValueError, match="one number for each row"):
        DPGPRegressor(**SETTINGS, public_prediction=several).fit(X, Y)


class Tells:
    """A public model of any answer to an array or a table."""

    def __init__(self, answer):
        self.answer = answer

    def predict(self, X):
        return self.answer(np.asarray(X))


def once(value):
    """Return the truth, but for one value."""

    def told(X):
        predicted = truth(X)
        predicted[3] = value
        return predicted

    return told


@pytest.mark.parametrize("inputs", [X, pd.DataFrame(X, columns=["a", "b"])], ids=["array", "table"])
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (once(np.inf), "predicts NaN or infinity for 1 of 120 rows"),
        (lambda X: truth(X)[:-1], "one number for each row, got 119 of 120 rows"),
        (lambda X: ["high"] * len(X), "one number for each row, got others"),
        (lambda X: 1e12 * X[:, 1], "beyond the bounds .0, 200.: give them in the units"),
        (lambda X: -1e12 * X[:, 1], "beyond the bounds"),
    ],
)
def test_models_that_predict_no_outputs_are_refused_before_a_draw(answer, message, inputs):
    with pytest.raises(ValueError, match=message) as caught:
        DPGPRegressor(**SETTINGS, public_prediction=Tells(answer)).fit(inputs, Y)
    assert not hasattr(caught.value, "__notes__")


def test_predictions_of_a_model_may_have_gaps_in_a_table_and_not_in_an_array():
    model = DPGPRegressor(**SETTINGS, public_prediction=Tells(once(np.nan)))
    with pytest.raises(ValueError, match="predicts NaN or infinity for 1 of 120 rows"):
        model.fit(X, Y)
    release = model.fit(pd.DataFrame(X, columns=["a", "b"]), Y).release_
    assert f"{PUBLIC_PREDICTION}: missing" in release.input_names


def test_predictions_far_away_are_refused_at_query_points_and_in_passes():
    near, far = Tells(lambda X: 1e6 * X[:, 1]), 1e12 * X[:, 1]
    model = DPGPRegressor(**SETTINGS, public_prediction=near)
    with pytest.raises(ValueError, match="beyond the bounds"):
        model.fit(X, Y, 1e6 * X[:4])
    rows = ArrayRows(with_column(X, far), Y)
    with pytest.raises(ValueError, match="beyond the bounds"):
        DPGPRegressor(**SETTINGS, public_prediction=2, inducing=10).fit_rows(rows)
    # As far as they may be, designs work.
    assert np.isfinite(model.fit(X, Y).predict(X)).all()


@pytest.mark.parametrize("other", [{"output_transform": "log"}, {"likelihood": "counts"}])
def test_transformed_outputs_are_refused(other):
    with pytest.raises(ValueError, match="is the mean of numbers as they are"):
        fitted(truth(X), **{"bounds": (1.0, 200.0), **other})


def test_models_in_passes_and_candidates_are_refused():
    model = DPGPRegressor(**SETTINGS, public_prediction=LinearRegression().fit(X, Y))
    with pytest.raises(ValueError, match="have their public prediction as a column"):
        model.fit_rows(ArrayRows(X, Y))
    search = DPGridSearchCV(
        DPGPRegressor(**SETTINGS, delta=1e-3, public_prediction=1, learn=None, stages=None),
        {"mean": [50.0, 100.0]},
        selection_epsilon=0.5,
        cv=2,
    )
    with pytest.raises(ValueError, match="without a mean function"):
        search.fit(X, Y)


# Where it goes on.


def test_it_is_planned_from_public_inputs():
    model = DPGPRegressor(**SETTINGS, public_prediction=2)
    with_help = model.forecast(with_column(X, truth(X)))[0]
    without = DPGPRegressor(**SETTINGS).forecast(X)[0]
    assert with_help.error < without.error
    of_model = DPGPRegressor(
        **SETTINGS,
        public_prediction=FrozenEstimator(HistGradientBoostingRegressor().fit(X, truth(X))),
    )
    assert of_model.plan(X).table.columns == ()
    assert of_model.forecast(X)[0].error < without.error


def test_many_rows_in_arrays_are_read_in_passes_with_a_model(monkeypatch):
    monkeypatch.setattr("cloakgp.fitting.planning.MANY_ROWS", 500)
    frame = pd.DataFrame(RNG.uniform(0, 10, size=(520, 2)), columns=["a", "b"])
    y = truth(frame.to_numpy())
    model = DPGPRegressor(
        **SETTINGS, inducing=20, stages=None, public_prediction=LinearRegression().fit(frame, y)
    )
    with_help = model.fit(frame, y)
    assert isinstance(with_help.release_.prior, SparsePrior)
    assert with_help.release_.prior.trend.column == 2
    assert with_help.predict(frame[:10]).shape == (10,)


def test_refining_keeps_the_prediction():
    release = fitted(truth(X)).release_
    later = refine(release, Y, with_column(NEW[:20], truth(NEW[:20])), epsilon=1.0, delta=0.0)
    assert later.prior.trend == release.prior.trend
    assert np.abs(later.predict(with_column(NEW, truth(NEW))) - truth(NEW)).mean() < 10


def test_later_visits_of_an_estimator_ask_its_model():
    public = LinearRegression().fit(NEW, truth(NEW))
    model = DPGPRegressor(**SETTINGS, public_prediction=public).fit(X, Y)
    first, later = model.release_, {"epsilon": 1.0, "insecure_seed": 5}
    points, others = NEW[:20], X + 0.01
    expected = refine(first, Y, with_column(points, public.predict(points)), **later)
    model.refine(Y, points, **later)
    np.testing.assert_array_equal(
        model.predict(NEW), expected.predict(with_column(NEW, public.predict(NEW)))
    )
    given = with_column(others, public.predict(others))
    expected = extend(expected, given, Y, **later)
    model.extend(others, Y, **later)
    np.testing.assert_array_equal(
        model.predict(NEW), expected.predict(with_column(NEW, public.predict(NEW)))
    )


def test_public_rows_are_kept_in_the_file_and_help(tmp_path):
    others = RNG.uniform(0, 10, size=(150, 2))
    outputs = truth(others) + RNG.normal(0, 5, size=150)
    model = DPGPRegressor(**SETTINGS, public_prediction=(others, outputs)).fit(X, Y)
    found = model.predict(NEW)
    assert np.sqrt(np.mean((found - truth(NEW)) ** 2)) < 0.5 * error_alone()
    model.release_.save(tmp_path / "x.cloak")
    known = Release.load(tmp_path / "x.cloak")
    np.testing.assert_array_equal(known.predict(NEW), found)
    given = fitted(model.public_rows_.predict(X))
    expected = given.predict(with_column(NEW, model.public_rows_.predict(NEW)))
    np.testing.assert_array_equal(found, expected)
    assert "from 150 rows with outputs that were declared to be public" in said(known)
    assert model.plan(X).table.n_inputs == 3


def test_public_rows_of_tables_with_categories_have_a_schema_of_their_own(tmp_path):
    frame = pd.DataFrame({"a": X[:, 0], "job": np.where(X[:, 1] > 5, "cook", "clerk")})
    model = DPGPRegressor(**SETTINGS, public_prediction=(frame[:50], Y[:50]))
    model.fit(frame[50:], Y[50:]).release_.save(tmp_path / "x.cloak")
    known = Release.load(tmp_path / "x.cloak")
    np.testing.assert_array_equal(known.predict(frame), model.predict(frame))
    assert known.public_rows.schema.sources == ("a", "job")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((X, Y[:-1]), "must agree|one finite output each"),
        ((X, np.full(120, np.nan)), "one finite output each"),
        ((np.zeros((2001, 2)), np.zeros(2001)), "2,000 public rows at most"),
        ((X, Y, Y), "or public rows"),
        ((X[:1], Y[:1]), "there is 1 public row: two are needed"),
        ((np.full((2, 2), np.nan), Y[:2]), "X of public rows contains NaN"),
        ((pd.DataFrame(X), pd.Series(Y)[::-1]), "in another order"),
    ],
)
def test_rows_that_are_none_are_refused(rows, message):
    with pytest.raises(ValueError, match=message):
        DPGPRegressor(**SETTINGS, public_prediction=rows).fit(X, Y)


@pytest.mark.parametrize("learn", ["average", None])
def test_it_goes_with_averages_and_without_learning(learn):
    model = fitted(truth(X), learn=learn)
    # Averages over hyperparameters leave more weight to what the answers can hardly tell.
    assert error(model, truth(NEW)) < (0.5 if learn is None else 0.7) * error_alone()
    mean, covariance = model.predict(with_column(NEW, truth(NEW))[:4], return_cov=True)
    np.testing.assert_allclose(mean, model.predict(with_column(NEW, truth(NEW))[:4]))
    assert covariance.shape == (4, 4)
    if learn is None:
        assert model.release_.fitted_prior is model.release_.prior


def test_persons_with_several_rows_and_margins_have_one_too():
    people = np.arange(120) // 3
    grouped = fitted(truth(X)).fit(with_column(X, truth(X)), Y, groups=people)
    assert error(grouped, truth(NEW)) < 25.0
    margins = fitted(truth(X), calibrate=0.45, epsilon=3.0)
    lower, upper = margins.predict_interval(with_column(NEW, truth(NEW)), 0.8)
    assert np.mean((lower <= truth(NEW)) & (truth(NEW) <= upper)) > 0.8


@pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")
@pytest.mark.parametrize("criterion", ["trace", "functional"])
@pytest.mark.parametrize("inducing", [None, 10])
def test_raw_predictions_are_the_posterior_mean_about_the_prediction(criterion, inducing):
    settings = {"criterion": criterion, "inducing": inducing, "learn": None, "gap": 0.1}
    model = fitted(truth(X), **settings, epsilon=1e7, delta=1e-6, noise="gaussian")
    release = model.release_
    prior, rows, points = release.prior, with_column(X, truth(X)), with_column(NEW, truth(NEW))
    if criterion == "functional":
        found = release.function()(points)
    else:
        found, points = release.published().values, release.published().X
    C = prior.cloaking_matrix(points, rows)
    expected = prior.means(points) + C @ (Y - prior.means(rows))
    np.testing.assert_allclose(found, expected, atol=0.1)
