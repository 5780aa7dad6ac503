"""Private fits of classes in chunks, end to end."""

from __future__ import annotations

import importlib
import pickle
import traceback

import numpy as np
import pandas as pd
import pytest
from fits import release_label_rows
from scipy import stats
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern

from cloakgp import DPGPClassifier
from cloakgp.data import ArrayRows, FileRows
from cloakgp.fitting.strategies import Query
from cloakgp.models.likelihoods.classes import link
from cloakgp.privacy.questions.classes import Classes
from cloakgp.release import Release

# Budgets here are as large, or tables as small, as each test needs.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

door = importlib.import_module("cloakgp.privacy.grid")

CRITERIA = ["bayes", "trace", "logdet"]
# In the order of probabilities.
NAMES = ("ill", "well", "worse")


def chances(X, *, count):
    strength = np.stack([2 * np.sin(X[:, 0] + 2 * one) + X[:, 1] * one for one in range(count)])
    return (np.exp(strength) / np.exp(strength).sum(axis=0)).T


def drawn(rows, *, count, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 4, size=(rows, 2)) * [1.0, 0.25]
    places = rng.uniform(size=(rows, 1)) > np.cumsum(chances(X, count=count), axis=1)
    return X, np.array(NAMES)[places.sum(axis=1)]


@pytest.fixture
def fit():
    def make(
        rows, labels=None, *, count=2, epsilon=2.0, delta=1e-4, query=None, seed=3, **settings
    ):
        if labels is not None:
            rows = ArrayRows(rows, labels, chunk_rows=40, jobs=1)
        return release_label_rows(
            rows,
            classes=NAMES[:count],
            epsilon=epsilon,
            delta=delta,
            noise="gaussian",
            query=query,
            insecure_seed=seed,
            **{"inducing": 12, "gap": 1e-2} | settings,
        )

    return make


def asked_of(release):
    """The strategy and the answers of the only measurement."""
    [measurement] = release.measurements
    return measurement.strategy, measurement.answers


class Unread(ArrayRows):
    """Rows whose labels nobody may see."""

    def over_rows(self, work, *, what, labels=None):  # noqa: ARG002
        pytest.fail("the private column was read")


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("count", [2, 3])
def test_each_mechanism_gives_what_it_promises(criterion, count, fit):
    X, labels = drawn(150, count=count, seed=1)
    release = fit(X, labels, count=count, criterion=criterion, seed=None)
    strategy, answers = asked_of(release)
    question = release.measurements[0].question
    assert answers.guarantee.epsilon == 2.0
    assert answers.guarantee.delta_at(2.0) <= 1e-4
    assert not answers.insecure
    moved = question.distance * strategy.longest / answers.noise_sd
    assert moved <= answers.guarantee.mu * (1 + 1e-9)
    assert moved >= answers.guarantee.mu * (1 - 1e-6)
    assert strategy.rows == 150
    assert answers.values.shape == (strategy.rule.answers, question.channels)
    found = release.predict_proba(X[:20])
    assert found.shape == (20, count)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert (strategy.reconstruction is None) == (criterion == "bayes")


@pytest.mark.parametrize("count", [2, 3])
def test_it_agrees_with_a_fit_that_keeps_every_row(count, fit):
    """The same inducing inputs and hyperparameters, at no noise to speak of."""
    X, labels = drawn(800, count=count, seed=2)
    kernel = ConstantKernel(4.0) * Matern([1.5, 1.0], nu=1.5)
    asked = fit(X, labels, count=count, epsilon=1e3, kernel=kernel, inducing=X[:60])
    dense = DPGPClassifier(
        kernel,
        classes=Classes(NAMES[:count]),
        epsilon=1e3,
        delta=1e-4,
        noise="gaussian",
        inducing=X[:60],
        learn=None,
        gap=1e-2,
        insecure_seed=3,
    ).fit(X, labels)
    points, _ = drawn(500, count=count, seed=3)
    np.testing.assert_allclose(asked.predict_proba(points), dense.predict_proba(points), atol=0.02)


@pytest.mark.parametrize(
    ("count", "learning"), [pytest.param(2, "map", marks=pytest.mark.slow), (3, None)]
)
def test_as_good_as_the_dense_way_under_the_same_budget(count, learning, fit):
    X, labels = drawn(6000, count=count, seed=4)
    points, truth = drawn(4000, count=count, seed=5)
    known = chances(points, count=count)
    asked = fit(X, labels, count=count, epsilon=1.0, delta=1e-5, inducing=40, learn=learning)
    dense = DPGPClassifier(
        classes=Classes(NAMES[:count]),
        epsilon=1.0,
        delta=1e-5,
        inducing=40,
        learn=learning,
        gap=1e-2,
        insecure_seed=8,
    ).fit(X[:600], labels[:600])
    places = np.array([NAMES.index(one) for one in truth])
    scores = {}
    for name, found in (
        ("asked", asked.predict_proba(points)),
        ("dense", dense.predict_proba(points)),
        ("truth", known),
    ):
        scores[name] = (
            np.mean(found.argmax(axis=1) == places),
            -np.log(found[np.arange(4000), places]).mean(),
            np.sqrt(np.square(found - known).mean()),
        )
    assert scores["asked"][0] > scores["truth"][0] - 0.02
    assert scores["asked"][1] < min(scores["dense"][1], scores["truth"][1] + 0.02) + 0.01
    assert scores["asked"][2] < 0.06


def test_what_is_known_of_latent_functions_covers_as_often_as_it_says():
    """Functions drawn from the prior itself: 90 % limits hold 90 % of them, over many fits."""
    rng = np.random.default_rng(77)
    places, points = np.linspace(0, 10, 50)[:, None], np.linspace(0.5, 9.5, 10)[:, None]
    at = rng.integers(50, size=3000)
    kernel = ConstantKernel(2.0) * RBF(2.0)
    root = np.linalg.cholesky(kernel(np.vstack([places, points])) + 1e-9 * np.eye(60))
    standardised = []
    for draw in range(20):
        latent = root @ rng.normal(size=60)
        labels = rng.uniform(size=3000) < stats.norm.cdf(latent[at])
        asked = release_label_rows(
            ArrayRows(places[at], labels, chunk_rows=1000, jobs=1),
            classes=(False, True),
            epsilon=1.0,
            delta=1e-4,
            query=Query(X=points),
            kernel=kernel,
            inducing=places[::4],
            gap=0.05,
            insecure_seed=draw,
        )
        found = asked.predict_latent(points)
        mean, variance, share = (
            found.mean,
            found.sd**2,
            found.privacy_sd**2,
        )
        standardised.append((latent[50:] - mean) / np.sqrt(variance))
        # The answers did say something, and noise is a part of what they left.
        assert (variance < 0.5 * 2.0).all()
        assert (share < variance).all()
    inside = np.abs(standardised) < stats.norm.ppf(0.95)
    shares = inside.mean(axis=1)
    assert abs(shares.mean() - 0.9) < 4 * shares.std() / np.sqrt(20)
    assert np.std(standardised) == pytest.approx(1, abs=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3])
def test_twenty_thousand_rows(count, fit):
    X, labels = drawn(20_000, count=count, seed=6)
    points, truth = drawn(20_000, count=count, seed=7)
    rows = ArrayRows(X, labels, chunk_rows=4096, jobs=1)
    places = np.array([NAMES.index(one) for one in truth])
    known = chances(points, count=count)
    for learning in (None, "map"):
        asked = fit(rows, count=count, epsilon=1.0, delta=1e-5, inducing=100, learn=learning)
        found = asked.predict_proba(points)
        best = np.mean(known.argmax(axis=1) == places)
        assert np.mean(found.argmax(axis=1) == places) > best - 0.005
        assert np.sqrt(np.square(found - known).mean()) < 0.03
        # Of those who are told that they are probably of a class, so many are.
        sure = found.max(axis=1)
        for low in np.linspace(0.4, 0.9, 6):
            told = (sure >= low) & (sure < low + 0.1)
            if told.sum() > 500:
                hit = np.mean(found[told].argmax(axis=1) == places[told])
                assert hit == pytest.approx(sure[told].mean(), abs=0.04)


@pytest.mark.parametrize("count", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_the_estimator_takes_rows(count, tmp_path):
    X, labels = drawn(400, count=count, seed=9)
    model = DPGPClassifier(
        classes=list(NAMES[:count]), epsilon=3.0, delta=1e-4, inducing=15, gap=1e-2, insecure_seed=1
    ).fit_rows(ArrayRows(X, labels, chunk_rows=150, jobs=1), X[:9])
    # scikit-learn's order, as after `fit`.
    assert model.classes_.tolist() == sorted(NAMES[:count])
    [measurement] = model.release_.measurements
    np.testing.assert_array_equal(measurement.strategy.X_query, X[:9])
    found = model.predict_proba(X[:50])
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    model.release_.save(tmp_path / "health.cloak")
    loaded = Release.load(tmp_path / "health.cloak")
    np.testing.assert_array_equal(loaded.predict_proba(X[:50]), found)
    assert loaded.n_rows == 400
    assert loaded.guarantee == model.guarantee_


# The same whatever the rows are, and however they are cut.


def test_arrays_and_files_give_the_same(tmp_path, fit):
    X, labels = drawn(120, count=3, seed=1)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "health": labels})
    frame.to_csv(tmp_path / "people.csv", index=False)
    frame.to_parquet(tmp_path / "people.parquet", index=False, row_group_size=50)
    first = fit(X, labels, count=3)
    for name in ("people.csv", "people.parquet"):
        rows = FileRows(tmp_path / name, inputs=["a", "b"], output="health", chunk_rows=40, jobs=1)
        asked = fit(rows, count=3)
        np.testing.assert_array_equal(asked_of(asked)[1].values, asked_of(first)[1].values)
        assert (asked.input_names, asked.output_name) == (("a", "b"), "health")
    assert (first.input_names, first.output_name) == ((), "y")


def test_settings_are_kept(fit):
    X, labels = drawn(150, count=3, seed=1)
    kernel = ConstantKernel(3.0) * RBF(2.0)
    asked = fit(
        X,
        labels,
        count=3,
        kernel=kernel,
        inducing=X[:7],
        approximation="dtc",
        link="logit",
        class_rates=[0.2, 0.3, 0.5],
        learn="map",
        query=Query(X=X[:4], weights=np.array([1.0, 2.0, 3.0, 4.0])),
    )
    assert asked.likelihood.link_name == "logit"
    assert asked.prior.approximation == "dtc"
    assert asked.prior.kernel == kernel
    np.testing.assert_array_equal(asked.prior.inducing, X[:7])
    np.testing.assert_array_equal(asked_of(asked)[0].query_weights, [1, 2, 3, 4])
    np.testing.assert_allclose(
        link("logit").moments(np.array(asked.likelihood.latent_means), np.full(3, 3.0))[0],
        [0.2, 0.3, 0.5],
        atol=1e-5,
    )
    # Declared rates stay as they are, whatever kernel is learned.
    learned = asked.learned[0]
    assert learned.prior.kernel != kernel
    np.testing.assert_allclose(
        learned.likelihood.prior_rates(learned.prior, X[:4]), [0.2, 0.3, 0.5], atol=0.01
    )


@pytest.mark.parametrize("learning", ["map", "average"])
def test_what_is_learned_predicts(learning, fit):
    X, labels = drawn(300, count=2, seed=1)
    asked = fit(X, labels, learn=learning, epsilon=20.0)
    sums = asked_of(asked)[0].sums
    assert len(asked.learned) == len(sums)
    assert (len(asked.learned) > 1) == (learning == "average")
    assert sum(weighted.weight for weighted in asked.learned) == pytest.approx(1.0)
    for under, one in zip(sums, asked.learned, strict=True):
        assert under.prior is one.prior
        assert under.likelihood == one.likelihood
    np.testing.assert_allclose(asked.predict_proba(X[:5]).sum(axis=1), 1.0)


# Verification.


def test_whoever_has_the_inputs_can_verify(fit):
    X, labels = drawn(150, count=2, seed=1)
    asked = fit(X, labels)
    # In other chunks, by somebody who has no labels.
    rows = Unread(X, np.zeros(150), chunk_rows=17, jobs=1)
    assert asked.verify(rows) == pytest.approx(asked_of(asked)[0].longest, rel=1e-9)


@pytest.mark.parametrize("count", [2, 3])
def test_questions_about_persons_can_be_verified_and_predict(count, fit):
    X, labels = drawn(600, count=count, seed=1)
    people = [f"p{row % 250}" for row in range(600)]
    asked = fit(ArrayRows(X, labels, groups=people, chunk_rows=40, jobs=1), count=count)
    assert asked_of(asked)[0].grouped
    assert asked.guarantee.epsilon <= 2.0
    rows = Unread(X, np.zeros(600), groups=people, chunk_rows=17, jobs=1)
    assert asked.verify(rows) == pytest.approx(asked_of(asked)[0].longest, rel=1e-9)
    better = (np.array(NAMES)[chances(X, count=count).argmax(axis=1)] == asked.predict(X)).mean()
    assert better > 1 / count


def test_other_rows_are_not_verified(fit):
    X, labels = drawn(150, count=2, seed=1)
    asked = fit(X, labels, criterion="trace", kernel=DotProduct())
    for wrong, complaint in (
        (X[:149], "150 rows, not 149"),
        (X * 1.5, "the guarantee allows"),
        (np.vstack([X[:149], X[148:149]]), "add up to something else"),
    ):
        with pytest.raises(ValueError, match=complaint):
            asked.verify(ArrayRows(wrong, np.zeros(len(wrong)), jobs=1))


# What may be told of labels.


@pytest.mark.parametrize("secret", ["quinsy-7123456", None, 3.5, np.nan])
def test_errors_about_labels_quote_none(secret, fit):
    X, labels = drawn(90, count=2, seed=1)
    cells = list(labels)
    cells[41] = secret
    with pytest.raises(ValueError, match="not among the declared classes") as caught:
        fit(ArrayRows(X, cells, chunk_rows=20, jobs=1))
    told = "".join(traceback.format_exception(caught.value))
    assert "quinsy" not in told
    assert "41" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_what_travels_is_public(fit):
    sent = []

    class Spied(ArrayRows):
        def over_rows(self, work, *, what, labels=None):
            sent.append(pickle.dumps((work, labels)))
            return super().over_rows(work, what=what, labels=labels)

    X, labels = drawn(90, count=3, seed=1)
    for label in NAMES:
        moved = labels.copy()
        moved[5] = label
        fit(Spied(X, moved, chunk_rows=20, jobs=1), count=3)
    assert sent[0] == sent[1] == sent[2]


def test_labels_are_read_once(fit):
    passes = []

    class Counted(ArrayRows):
        def over_rows(self, work, *, what, labels=None):
            passes.append(what)
            return super().over_rows(work, what=what, labels=labels)

    X, labels = drawn(90, count=2, seed=1)
    fit(Counted(X, labels, chunk_rows=20, jobs=1), learn="average")
    assert passes == ["asking the private column"]


def test_nothing_is_read_before_all_else_is_well(fit):
    X, _ = drawn(90, count=2, seed=1)
    rows = Unread(X, np.zeros(90), chunk_rows=20, jobs=1)
    for change, complaint in (
        ({"epsilon": -1.0}, "epsilon"),
        ({"delta": 2.0}, "delta"),
        ({"criterion": "newton"}, "many rows"),
        ({"criterion": "functional"}, "classes"),
        ({"class_rates": [0.5, 0.2]}, "class_rates"),
        ({"inducing": 0}, "at least 1"),
        ({"link": "cauchit"}, "link"),
        ({"query": Query(X=np.zeros((3, 1)))}, "X_query"),
        ({"query": Query(X=np.zeros((2, 2)), weights=np.array([1.0, -1.0]))}, "weights"),
    ):
        with pytest.raises(ValueError, match=complaint):
            fit(rows, **change)


def test_inputs_that_change_between_passes_release_nothing(fit, monkeypatch):
    X, labels = drawn(90, count=2, seed=1)

    class Changing(ArrayRows):
        def over_rows(self, work, *, what, labels=None):
            X[:] = X.mean(axis=0) + np.linspace(0, 1, 90)[:, None] * 100
            return super().over_rows(work, what=what, labels=labels)

    monkeypatch.setattr(door, "with_noise", None)
    with pytest.raises(ValueError, match="nothing was released"):
        fit(Changing(X, labels, chunk_rows=20, jobs=1), criterion="trace", kernel=DotProduct())


# Tables at the edge.


def test_rows_that_are_all_the_same(fit):
    rows = ArrayRows(np.full((50, 1), 2.0), ["well"] * 50, chunk_rows=20, jobs=1)
    asked = fit(rows, kernel=ConstantKernel(4.0) * RBF(2.0), epsilon=30.0)
    assert asked_of(asked)[0].rule.answers == 1
    assert asked.predict_proba(np.array([[2.0]]))[0, 1] > 0.9


def test_as_few_rows_as_may_be(fit):
    rows = ArrayRows([[1.0], [1.0]], ["well", "well"], jobs=1)
    asked = fit(rows, kernel=ConstantKernel(4.0) * RBF(2.0))
    assert asked_of(asked)[0].rows == 2
    assert np.isfinite(asked.predict_proba(np.array([[1.0]]))).all()


def test_a_release_does_not_grow_with_rows(fit, tmp_path):
    sizes = []
    for count in (300, 900):
        X, labels = drawn(count, count=2, seed=1)
        release = fit(X, labels, inducing=X[:9], query=Query(X=X[:20]))
        release.save(tmp_path / f"{count}.cloak")
        sizes.append((tmp_path / f"{count}.cloak").stat().st_size)
    assert sizes[1] < 1.1 * sizes[0]
