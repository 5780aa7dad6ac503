"""Later measurements of tables read in passes, against releases that keep every row."""

from __future__ import annotations

import traceback
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from cloakgp import DPGPClassifier, DPGPRegressor, Release, extend, refine
from cloakgp.data import ArrayRows, FileRows
from cloakgp.design.streaming.bayes import design_streamed_bayes
from cloakgp.design.streaming.binning import Partition
from cloakgp.fitting.table import Table
from cloakgp.models import APPROXIMATIONS
from cloakgp.models.summary import summarise
from cloakgp.privacy import compose
from cloakgp.privacy.questions.counts import CountQuestion
from cloakgp.release import DenseStrategy, StreamedStrategy
from cloakgp.report.describe import describe
from cloakgp.report.facts import as_text

# Budgets here are as large, or tables as small, as each test needs.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

KERNEL = 1.5 * RBF([1.5, 4.0]) + WhiteKernel(0.05)
POINTS = np.array([[0.2, 1.0], [3.0, 3.0], [1.5, 0.1], [6.0, 2.0], [40.0, -7.0]])
SPENDING = {"epsilon": 2.0, "delta": 1e-3, "gap": 0.05}
# Of what comes later: about outputs as they are, and in bands in `test_streaming_stages`.
LATER = SPENDING | {"band": None}


def outputs_at(X, *, seed=0):
    rng = np.random.default_rng(seed)
    return np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.normal(size=len(X))


@pytest.fixture
def tables(rng):
    return [rng.uniform(low, low + 4, size=(rows, 2)) for low, rows in ((0, 70), (2, 50))]


def rows_of(X, outputs=None, **settings):
    outputs = outputs_at(X) if outputs is None else outputs
    return ArrayRows(X, outputs, **{"chunk_rows": 16, "jobs": 1, **settings})


def model_of(X, **changes):
    settings = {
        "kernel": KERNEL,
        "noise_variance": 0.2,
        "mean": 0.4,
        "bounds": (-2.0, 3.0),
        "inducing": X[:12],
        "learn": None,
        "stages": None,
        "interval": False,
        "insecure_seed": 0,
    }
    return DPGPRegressor(**(settings | SPENDING | {"noise": "gaussian"} | changes))


def first_of(X, **changes):
    return model_of(X, **changes).fit_rows(rows_of(X), X[::7]).release_


def keeping_rows(release, tables):
    """The same release, with the column of every row beside the row."""
    measurements = []
    for one in release.measurements:
        kept, X = one.strategy, tables[one.strategy.table]
        if isinstance(kept, StreamedStrategy):
            kept = DenseStrategy(
                X=X,
                matrix=kept.columns(one.question)(X),
                X_query=kept.X_query,
                reconstruction=kept.reconstruction,
                certificate=kept.certificate,
                table=kept.table,
            )
        measurements.append(replace(one, strategy=kept, question=one.question.of_rows(X)))
    return replace(release, measurements=tuple(measurements))


def assert_alike(release, other):
    np.testing.assert_allclose(release.predict(POINTS), other.predict(POINTS), atol=1e-8)
    for form in ({"return_cov": True}, {"return_std": True, "new_output": True}):
        ours, theirs = release.predict(POINTS, **form), other.predict(POINTS, **form)
        np.testing.assert_allclose(ours[1], theirs[1], atol=1e-8)


def left_open(release, points):
    return float(np.square(release.predict(points, return_std=True)[1]).sum())


# Inference.


@pytest.mark.usefixtures("any_evidence")
@pytest.mark.parametrize("approximation", APPROXIMATIONS)
@pytest.mark.parametrize("learn", [None, "map"])
@pytest.mark.parametrize("criterion", ["bayes", "trace"])
def test_it_predicts_as_one_that_keeps_every_row(approximation, learn, criterion, tables):
    first, second = tables
    release = first_of(first, approximation=approximation, learn=learn, criterion=criterion)
    release = refine(release, rows_of(first), POINTS[:2], insecure_seed=1, **LATER)
    release = extend(release, rows_of(second), X_query=POINTS, insecure_seed=2, **LATER)
    release = refine(release, rows_of(first), insecure_seed=3, **LATER)
    assert [one.strategy.table for one in release.measurements] == [0, 0, 1, 0]
    assert all(isinstance(one.strategy, StreamedStrategy) for one in release.measurements)
    assert release.n_rows == 120
    kept = keeping_rows(release, tables)
    assert_alike(release, kept)
    # The answers share the rows' own noise, which is no rounding.
    shared = release.measurements[1].strategy.sums[0].channels[0].shared[0]
    assert np.abs(shared).max() > 0.1
    assert (learn is None) == (release.fitted_prior is release.prior)


@pytest.mark.usefixtures("any_evidence")
def test_averages_are_weighed_by_the_later_answers(tables):
    first, second = tables
    release = first_of(first, learn="average", kernel=1.5 * RBF(1.5), epsilon=50.0)
    both = extend(release, rows_of(second), insecure_seed=2, **LATER | {"epsilon": 50.0})
    assert_alike(both, keeping_rows(both, tables))
    # Bayes' rule, with densities of answers as SciPy has them.
    ratios = []
    for one in release.learned:
        logs = [
            density(one.prior, keeping_rows(each, tables).measurements) for each in (release, both)
        ]
        ratios.append(logs[1] - logs[0] + np.log(one.weight))
    expected = np.exp(np.array(ratios) - max(ratios))
    weights = [one.weight for one in both.learned]
    np.testing.assert_allclose(weights, expected / expected.sum(), rtol=1e-6)
    assert sum(weights) == pytest.approx(1)
    assert not np.allclose(weights, [one.weight for one in release.learned], atol=0.01)


def density(prior, measurements):
    """The log density of noisy answers about rows that are kept, each table asked once."""
    features = [one.strategy.matrix @ prior.features(one.strategy.X).T for one in measurements]
    covariance = np.vstack(features) @ np.vstack(features).T
    start, mean, values = 0, [], []
    for one in measurements:
        R, answers = one.strategy.matrix, one.answers
        own = (R * prior.row_noise(one.strategy.X)) @ R.T + answers.noise_sd**2 * np.eye(len(R))
        covariance[start : start + len(R), start : start + len(R)] += own
        start += len(R)
        mean.append((prior.mean - one.question.middle) * R.sum(axis=1))
        values.append(answers.values[:, 0])
    law = stats.multivariate_normal(np.concatenate(mean), covariance)
    return law.logpdf(np.concatenate(values))


def test_how_rows_are_cut_and_ordered_does_not_matter(tables):
    X = tables[0]
    release = first_of(X)
    backwards = rows_of(X[::-1], outputs_at(X)[::-1], chunk_rows=9)
    one, other = (
        refine(release, rows, POINTS, insecure_seed=1, **LATER) for rows in (rows_of(X), backwards)
    )
    # Whether a question or its opposite is asked depends on the last bits, and with it what seeded
    # noise does to the answers: what these leave open does not.
    sds = [each.predict(POINTS, return_std=True)[1] for each in (one, other)]
    np.testing.assert_allclose(sds[0], sds[1], rtol=1e-5)


def test_few_rows_that_are_kept_and_many_that_are_not(tables):
    """A sparse release of a table at once goes on with rows in passes, and with either again."""
    first, second = tables
    model = model_of(first, learn="map", stages=None)
    release = model.fit(first, outputs_at(first), first[::7]).release_
    both = extend(release, rows_of(second), insecure_seed=1, **LATER)
    assert both.fitted_prior is release.fitted_prior
    again = refine(both, outputs_at(first), POINTS, insecure_seed=2, **LATER)
    for each in (both, again):
        assert_alike(each, keeping_rows(each, tables))
    # Beside counts of outputs, which found where most lie.
    asked = [one for one in again.measurements if not isinstance(one.question, CountQuestion)]
    assert [type(one.strategy) for one in asked] == [
        DenseStrategy,
        StreamedStrategy,
        DenseStrategy,
    ]


def test_releases_that_share_nothing_but_rows_cannot_be_combined(tables):
    X = tables[0]
    release = first_of(X)
    one, other = (
        refine(release, rows_of(X), POINTS[place : place + 1], insecure_seed=place, **LATER)
        for place in (1, 2)
    )
    assert_alike(release.combine(one), one)
    with pytest.raises(ValueError, match="asked different questions"):
        one.combine(other).predict(POINTS)


def test_a_rule_that_was_asked_twice_is_shared_once(tables):
    X = tables[0]
    release = first_of(X)
    twice = release.combine(first_of(X, insecure_seed=8))
    again = refine(twice, rows_of(X), POINTS, insecure_seed=1, **LATER)
    assert len(again.measurements[2].strategy.earlier) == 1
    assert_alike(again, keeping_rows(again, tables))


def test_after_nothing_was_asked(tables, monkeypatch):
    """A fit refuses to ask nothing; earlier files may have done so."""
    monkeypatch.setattr(Table, "check_asks", lambda *_: None)
    first, second = tables
    release = model_of(first, kernel=RBF(0.1)).fit_rows(rows_of(first), [[99.0, 99.0]]).release_
    assert release.measurements[0].noise_sd == 0
    for each in (
        refine(release, rows_of(first), POINTS, insecure_seed=1, **LATER),
        extend(release, rows_of(second), X_query=POINTS, insecure_seed=1, **LATER),
    ):
        assert_alike(each, keeping_rows(each, tables))


# Designs.


def test_questions_about_new_rows_are_designed_given_what_is_known(tables):
    """The certificate holds against the design of a model that was conditioned by hand."""
    first, second = tables
    release = first_of(first, epsilon=20.0)
    both = extend(
        release, rows_of(second), X_query=POINTS[:4], noise="gaussian", insecure_seed=1, **LATER
    )
    added = both.measurements[1].strategy

    class ByHand:
        """u given the first answers, from the joint covariance of both."""

        def features_and_noise(self, X):
            return root.T @ release.prior.features(X), release.prior.row_noise(X)

    kept = keeping_rows(release, tables).measurements[0]
    R = kept.strategy.matrix / kept.noise_sd
    V = release.prior.features(first)
    S = R @ (V.T @ V + np.diag(release.prior.row_noise(first))) @ R.T + np.eye(len(R))
    root = np.linalg.cholesky(np.eye(12) - V @ R.T @ np.linalg.solve(S, R @ V.T))
    by_hand = design_streamed_bayes(
        rows_of(second),
        root.T @ release.prior.features(POINTS[:4]),
        model=ByHand(),
        cells=Partition(centres=np.unique(second, axis=0), units=summarise(rows_of(second)).units),
        prior_variance=left_open(release, POINTS[:4]),
        noise_sd=both.measurements[1].noise_sd,
        gap=0.05,
    )
    assert left_open(both, POINTS[:4]) == pytest.approx(by_hand.unexplained, rel=1e-3)
    assert added.certificate.gap == pytest.approx(by_hand.certificate.gap, rel=0.05, abs=1e-3)


@pytest.mark.parametrize("visit", ["refine", "extend"])
def test_asking_given_what_is_known_beats_asking_afresh(visit, tables):
    """A fresh design asks once more about places that are known well already."""
    X = tables[0]
    known, points = POINTS[:1], POINTS[:3]
    first = model_of(X, epsilon=30.0).fit_rows(rows_of(X), known).release_
    ask = refine if visit == "refine" else extend
    informed = ask(
        first, rows_of(X), X_query=points, epsilon=3.0, delta=1e-3, band=None, insecure_seed=1
    )
    afresh = model_of(X, epsilon=3.0).fit_rows(rows_of(X), points).release_
    last = informed.measurements[-1]
    strategy = replace(afresh.measurements[0].strategy, table=last.strategy.table)
    other = replace(afresh.measurements[0], strategy=strategy)
    plain = replace(first, measurements=(first.measurements[0], other))
    kept = keeping_rows(plain, [X, X])
    assert left_open(informed, points) < 0.97 * left_open(kept, points)


def test_more_visits_never_leave_more_open(tables):
    X = tables[0]
    release = first_of(X)
    left = [left_open(release, X)]
    for seed in (1, 2):
        release = refine(release, rows_of(X), insecure_seed=seed, **LATER)
        left.append(left_open(release, X))
        release = extend(release, rows_of(X), insecure_seed=seed + 5, **LATER)
        left.append(left_open(release, X))
    assert left == sorted(left, reverse=True)


# What is kept, and what reaches it.


def test_guarantees_compose_and_every_table_verifies(tables):
    first, second = tables
    release = first_of(first)
    release = refine(release, rows_of(first), epsilon=0.7, delta=1e-4)
    release = extend(release, rows_of(second), epsilon=0.3, delta=1e-5)
    parts = [one.answers.guarantee for one in release.measurements]
    assert [part.epsilon for part in parts] == [2.0, 0.7, 0.3]
    assert release.guarantee == compose(*parts)
    for number, X in enumerate((first, first, second)):
        longest = release.verify(rows_of(X, np.zeros(len(X)), chunk_rows=11), measurement=number)
        assert longest == pytest.approx(1.0, abs=1e-6)


@pytest.mark.usefixtures("any_evidence")
@pytest.mark.parametrize("learn", [None, "average"])
def test_files_keep_later_measurements(learn, tables, tmp_path):
    first, second = tables
    release = first_of(first, learn=learn)
    release = refine(release, rows_of(first), POINTS, insecure_seed=1, **LATER)
    release = extend(release, rows_of(second), insecure_seed=2, **LATER)
    release.save(tmp_path / "visits.cloak")
    loaded = Release.load(tmp_path / "visits.cloak")
    for form in ({"return_std": True}, {"return_cov": True, "new_output": True}):
        one, other = (part.predict(POINTS, **form) for part in (release, loaded))
        for ours, theirs in zip(one, other, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert loaded.guarantee == release.guarantee
    # And it goes on from there.
    one, other = (
        refine(part, rows_of(first), insecure_seed=9, **LATER) for part in (release, loaded)
    )
    np.testing.assert_array_equal(one.predict(POINTS), other.predict(POINTS))


def test_shared_noise_that_does_not_fit_is_refused(tables):
    X = tables[0]
    strategy = refine(first_of(X), rows_of(X), **LATER).measurements[1].strategy
    strategy.validate()
    [digest] = strategy.earlier
    for wrong in ((), (digest, digest)):
        with pytest.raises(ValueError, match="do not fit each other"):
            replace(strategy, earlier=wrong).validate()
    [kept], [shared] = strategy.sums, strategy.sums[0].channels[0].shared
    for wrong in (shared[:-1], shared[0], shared[:, :, None]):
        channel = replace(kept.channels[0], shared=(wrong,))
        with pytest.raises(ValueError, match="do not fit each other"):
            replace(strategy, sums=(replace(kept, channels=(channel,)),)).validate()


def test_it_says_that_the_design_is_that_of_new_rows(tables):
    X = tables[0]
    release = first_of(X)
    for visited, times in (
        (extend(release, rows_of(X), **LATER), 0),
        (refine(release, rows_of(X), **LATER), 1),
    ):
        said = as_text(describe(visited), width=10_000)
        assert said.count("Both hold for new rows at the places of these") == times


def test_query_points_default_to_those_of_before(tables):
    first, second = tables
    release = first_of(first)
    again = refine(release, rows_of(first), **LATER).measurements[1].strategy
    np.testing.assert_array_equal(again.X_query, first[::7])
    added = extend(release, rows_of(second), **LATER).measurements[1].strategy
    np.testing.assert_array_equal(added.X_query, np.unique(second, axis=0))
    np.testing.assert_array_equal(added.ranges, [second.min(axis=0), second.max(axis=0)])
    weights = [1.0, 5.0]
    given = refine(release, rows_of(first), POINTS[:2], query_weight=weights, **LATER)
    np.testing.assert_array_equal(given.measurements[1].strategy.query_weights, weights)


def test_estimators_and_arrays_do_what_functions_of_rows_do(tables, tmp_path):
    first, second = tables
    frame = pd.DataFrame(second, columns=["a", "b"])
    named = rows_of(first, input_names=("a", "b"), output_name="height")
    model = model_of(first).fit_rows(named, first[::7])
    frame.assign(height=outputs_at(second)).to_csv(tmp_path / "new.csv", index=False)
    files = FileRows(
        tmp_path / "new.csv", inputs=["a", "b"], output="height", chunk_rows=16, jobs=1
    )
    alone = model.release_
    expected = extend(alone, files, X_query=POINTS, insecure_seed=1, **LATER)
    swapped = frame[["b", "a"]].assign(id="p")
    by_arrays = extend(alone, swapped, outputs_at(second), POINTS, insecure_seed=1, **LATER)
    for release in (by_arrays, model.extend(files, X_query=POINTS, insecure_seed=1, **LATER)):
        found = release if isinstance(release, Release) else release.release_
        np.testing.assert_allclose(found.predict(POINTS), expected.predict(POINTS), atol=1e-9)
        assert isinstance(found.measurements[1].strategy, StreamedStrategy)
    assert (expected.input_names, expected.output_name) == (("a", "b"), "height")
    refined = refine(expected, named, POINTS, insecure_seed=2, **LATER)
    model.refine(named, POINTS, insecure_seed=2, **LATER)
    np.testing.assert_allclose(model.release_.predict(POINTS), refined.predict(POINTS), atol=1e-9)


# What does not make sense.


class Unread(ArrayRows):
    """Rows whose outputs nobody may see."""

    def over_rows(self, work, *, what, labels=None):  # noqa: ARG002
        pytest.fail("the private column was read")


@pytest.mark.parametrize("wrong", ["fewer", "moved", "others"])
def test_other_rows_are_not_refined(wrong, tables):
    X = tables[0]
    release = first_of(X, criterion="trace")
    others = {"fewer": X[:-1], "moved": X * 1.5, "others": np.vstack([X[:-1], X[:1]])}[wrong]
    with pytest.raises(ValueError, match=r"the release is about|the guarantee allows"):
        refine(release, Unread(others, np.zeros(len(others)), jobs=1), **LATER)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"epsilon": 0.0}, "epsilon must be positive"),
        ({"delta": 1.0}, "delta must be at least 0 and below 1"),
        ({"X_query": [[1.0]]}, "X_query has 1 columns, expected 2"),
        ({"X_query": POINTS, "query_weight": [1.0]}, "query weights"),
        ({"query_weight": [1.0]}, "query_weight goes with X_query"),
        ({"gap": 0.0}, "gap must be positive"),
        ({"groups": [0] * 70}, "go with the rows"),
    ],
)
@pytest.mark.parametrize("ask", [refine, extend])
def test_nonsense_is_refused_before_outputs_are_read(ask, changes, complaint, tables):
    X = tables[0]
    with pytest.raises(ValueError, match=complaint):
        ask(first_of(X), Unread(X, np.zeros(70), jobs=1), **(LATER | changes))


def test_rows_must_have_the_columns_of_the_release(tables):
    X = tables[0]
    named = rows_of(X, input_names=("a", "b"))
    release = model_of(X).fit_rows(named, X[::7]).release_
    for ask in (refine, extend):
        with pytest.raises(ValueError, match="1 inputs, expected 2"):
            ask(release, Unread(X[:, :1], np.zeros(70)), **LATER)
        with pytest.raises(
            ValueError, match="inputs are b, a: name them as the release does, a, b"
        ):
            ask(release, Unread(X, np.zeros(70), input_names=("b", "a")), **LATER)


def test_what_is_missing_is_asked_for(tables):
    X, y = tables[0], outputs_at(tables[0])
    many, rows = first_of(X), rows_of(X)
    few = model_of(X).fit(X, y).release_
    in_bands = model_of(X, stages="auto").fit(X, y).release_
    exact = model_of(X, inducing=None).fit(X, y).release_
    with pytest.raises(TypeError, match="keeps no row: to ask them again, give the rows"):
        refine(many, y, **LATER)
    with pytest.raises(TypeError, match="give their outputs alone"):
        refine(few, rows, **LATER)
    with pytest.raises(TypeError, match="need inducing inputs"):
        extend(exact, rows, **LATER)
    with pytest.raises(TypeError, match="asked outputs in bands"):
        extend(in_bands, rows, **LATER)
    for release in (many, few):
        with pytest.raises(ValueError, match="y is missing"):
            extend(release, X, **LATER)
        with pytest.raises(ValueError, match="leave out y"):
            extend(release, rows, y, **LATER)


def test_classes_say_why_they_cannot_be_asked_again(tables):
    X = tables[0]
    labels = X[:, 0] > 2
    model = DPGPClassifier(classes=[False, True], epsilon=2.0, delta=1e-3, inducing=5, learn=None)
    release = model.fit_rows(ArrayRows(X, labels, jobs=1)).release_
    for ask in (refine, extend):
        with pytest.raises(TypeError, match="linearised at the latent"):
            ask(release, Unread(X, labels, jobs=1), **LATER)


@pytest.mark.parametrize("ask", [refine, extend])
def test_errors_about_outputs_quote_none(ask, tables):
    X = tables[0]
    release = first_of(X)
    outputs = [*map(float, outputs_at(X))]
    outputs[41] = "s3cret-cell"
    with pytest.raises(ValueError, match="y contains") as caught:
        ask(release, rows_of(X, outputs), **LATER)
    told = "".join(traceback.format_exception(caught.value))
    assert "s3cret" not in told
    assert "41" not in str(caught.value)


@pytest.mark.parametrize("band", [None, 1.0])
def test_what_was_asked_of_rows_is_not_kept_in_memory(band, tables):
    """A design remembers it for the passes after it, and the release does not."""
    X = tables[0]
    pure = {"epsilon": 20.0, "delta": 0.0, "noise": "laplace", "band": band, "gap": 0.05}
    release = refine(first_of(X), rows_of(X), **pure, insecure_seed=1)
    last = release.measurements[-1]
    columns = last.strategy.columns(last.question)
    assert columns(X[:16]).any()
    assert columns.rule.remembered.of(X[:16]) is None
