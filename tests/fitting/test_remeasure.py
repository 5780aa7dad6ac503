"""Later visits: what is known afterwards, what they cost, and that they are worth it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from cloakgp import DPGPClassifier, DPGPRegressor, Release, extend, refine
from cloakgp.fitting.table import Table
from cloakgp.models import APPROXIMATIONS
from cloakgp.privacy import compose

# Budgets here are as large, or tables as small, as each test needs.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

KERNEL = ConstantKernel(2.0) * RBF(1.1) + WhiteKernel(0.05)
SPENDING = {"epsilon": 2.0, "delta": 1e-3}


def model(**changes):
    settings = {
        "bounds": (-3, 3),
        "noise_variance": 0.2,
        "stages": None,
        "interval": False,
        "noise": "gaussian",
        "insecure_seed": 0,
        **SPENDING,
    }
    return DPGPRegressor(**(settings | changes))


@pytest.fixture
def table(rng):
    X = rng.uniform(0, 6, size=(30, 1))
    return X, 2 * np.sin(X[:, 0])


def condition(prior, release, points):
    """Posterior of f_* by dense inverses over all rows of all tables."""
    rows = {
        measurement.strategy.table: measurement.strategy.X for measurement in release.measurements
    }
    starts = dict(zip(rows, np.cumsum([0, *map(len, rows.values())]), strict=False))
    X = np.vstack(list(rows.values()))
    noise = np.concatenate([prior.row_noise(inputs) for inputs in rows.values()])
    K_y = prior.row_covariance(X, X.copy()) + np.diag(noise)
    questions, values, variances = [], [], []
    for one in release.measurements:
        block = np.zeros((one.strategy.n_answers, len(X)))
        start = starts[one.strategy.table]
        block[:, start : start + one.strategy.n_rows] = one.strategy.matrix
        questions.append(block)
        values.append(one.answers.values[:, 0] + one.strategy.totals * one.question.middle)
        variances.append(np.full(one.strategy.n_answers, one.answers.noise_sd**2))
    R = np.vstack(questions)
    answers = R @ K_y @ R.T + np.diag(np.concatenate(variances))
    crossed = prior.cross_covariance(points, X) @ R.T
    gain = crossed @ np.linalg.inv(answers)
    residuals = np.concatenate(values) - R @ np.full(len(X), prior.mean)
    return prior.mean + gain @ residuals, prior.query_covariance(points) - gain @ crossed.T


@pytest.mark.usefixtures("any_evidence")
@pytest.mark.parametrize("approximation", [None, *APPROXIMATIONS])
@pytest.mark.parametrize("learn", [None, "map"])
def test_visits_are_conditioning(approximation, learn, table, rng):
    X, y = table
    inducing = {} if approximation is None else {"inducing": 6, "approximation": approximation}
    release = model(kernel=KERNEL, learn=learn, **inducing).fit(X, y).release_
    new = rng.uniform(0, 6, size=(12, 1))
    new[:4] = X[:4]
    whole = {"band": None, **SPENDING}
    visited = refine(release, y, [[1.0], [5.0]], insecure_seed=1, **whole)
    visited = extend(visited, new, np.sin(new[:, 0]), insecure_seed=2, **whole)
    visited = refine(visited, y, insecure_seed=3, **whole)
    assert [measurement.strategy.table for measurement in visited.measurements] == [0, 0, 1, 0]
    assert visited.insecure
    points = rng.uniform(-1, 7, size=(6, 1))
    mean, covariance = condition(visited.fitted_prior, visited, points)
    ours = visited.predict(points, return_cov=True)
    np.testing.assert_allclose(ours[0], mean, atol=1e-7)
    np.testing.assert_allclose(ours[1], covariance, atol=1e-7)
    assert (learn is None) == (visited.fitted_prior is visited.prior)


def left_open(release, points):
    return float(np.square(release.predict(points, return_std=True)[1]).sum())


@pytest.mark.parametrize("kernel", [KERNEL, ConstantKernel(2.0) * Matern(1.0, nu=1.5)])
def test_asking_given_what_is_known_beats_asking_afresh(kernel, table):
    """A fresh design asks once more about three places that are known well already."""
    X, y = table
    points = np.linspace(0, 6, 13)[:, None]
    known = [[1.0], [3.0], [5.0]]
    first = model(kernel=kernel, learn=None, epsilon=20.0).fit(X, y, known).release_
    afresh = model(kernel=kernel, learn=None, epsilon=5.0, insecure_seed=1).fit(X, y, points)
    informed = refine(
        first, y, points, epsilon=5.0, delta=1e-3, noise="gaussian", band=None, insecure_seed=1
    )
    combined = first.combine(afresh.release_)
    assert informed.guarantee.mu == pytest.approx(combined.guarantee.mu, rel=1e-9)
    assert left_open(informed, points) < 0.97 * left_open(combined, points)


@pytest.mark.parametrize("seed", range(4))
def test_no_other_second_visit_is_better(seed):
    """Same rows, same budget, given the first visit: within what the certificate allows."""
    rng = np.random.default_rng(seed)
    X, points = rng.uniform(0, 4, size=(8, 1)), rng.uniform(0, 4, size=(3, 1))
    first = model(kernel=KERNEL, learn=None).fit(X, np.zeros(8)).release_
    best = refine(first, np.zeros(8), points, insecure_seed=1, **SPENDING)
    last = best.measurements[-1]
    # The design knows the noise up to what discretisation adds.
    bound = left_open(best, points) / (1 + max(last.strategy.certificate.gap, 5e-3))
    for _ in range(30):
        questions = rng.normal(size=(rng.integers(1, 9), 8))
        questions /= np.sqrt(np.square(questions).sum(axis=0))
        other = _asked(best, questions)
        assert left_open(other, points) >= bound


def _asked(release, questions):
    """The same release with other last questions: what they tell does not depend on answers."""
    last = release.measurements[-1]
    answers = replace(last.answers, values=np.zeros((len(questions), 1)))
    moved = replace(last, strategy=replace(last.strategy, matrix=questions), answers=answers)
    return replace(release, measurements=(*release.measurements[:-1], moved))


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_guarantees_compose(noise, table):
    X, y = table
    first = model(kernel=KERNEL).fit(X, y).release_
    second = refine(first, y, epsilon=0.7, delta=1e-4, noise=noise)
    third = extend(second, X + 1, y, epsilon=0.3, delta=1e-5, noise=noise)
    parts = [measurement.answers.guarantee for measurement in third.measurements]
    assert [part.epsilon for part in parts] == [2.0, 0.7, 0.3]
    assert [part.delta for part in parts] == [1e-3, 1e-4, 1e-5]
    assert third.guarantee == compose(*parts)
    assert third.guarantee.mu == pytest.approx(np.sqrt(sum(part.mu**2 for part in parts)))
    assert third.guarantee.delta_at(third.guarantee.epsilon) <= third.guarantee.delta
    # The releases before are what they were.
    assert len(first.measurements) == 1
    assert first.guarantee == parts[0]


@pytest.mark.usefixtures("any_evidence")
def test_visits_teach_hyperparameters_again(table):
    X, y = table
    first = model(kernel=KERNEL).fit(X, y).release_
    second = refine(first, y, insecure_seed=1, **SPENDING)
    assert not np.array_equal(second.fitted_prior.kernel.theta, first.fitted_prior.kernel.theta)
    relearned = second.learn(second.hyperprior).fitted_prior
    np.testing.assert_array_equal(second.fitted_prior.kernel.theta, relearned.kernel.theta)
    unlearned = model(kernel=KERNEL, learn=None).fit(X, y).release_
    assert not refine(unlearned, y, insecure_seed=1, **SPENDING).learned


def test_query_points_default_to_those_of_before(table):
    X, y = table
    points = np.array([[1.0], [2.0]])
    first = model(kernel=KERNEL, learn=None).fit(X, y, points).release_
    np.testing.assert_array_equal(
        refine(first, y, **SPENDING).measurements[1].strategy.X_query, points
    )
    np.testing.assert_array_equal(
        extend(first, X[:5], y[:5], **SPENDING).measurements[1].strategy.X_query, X[:5]
    )
    np.testing.assert_array_equal(
        extend(first, X[:5], y[:5], [[3]], **SPENDING).measurements[1].strategy.X_query, [[3.0]]
    )


def test_weights_gap_and_progress_reach_the_design(table):
    X, y = table
    first = model(kernel=KERNEL, learn=None).fit(X, y).release_
    points = np.array([[0.5], [5.5]])
    seen = []
    left, right = (
        refine(
            first,
            y,
            points,
            query_weight=weights,
            gap=1e-2,
            progress=seen.append,
            band=None,
            **SPENDING,
        ).predict(points, return_std=True)[1]
        for weights in ([100.0, 1.0], [1.0, 100.0])
    )
    assert left[0] < right[0]
    assert right[1] < left[1]
    assert seen


@pytest.mark.parametrize("epsilon", [0.5, 50.0, 1e6])
def test_more_visits_never_leave_more_open(epsilon, table):
    X, y = table
    release = model(kernel=KERNEL, learn=None).fit(X, y).release_
    left = [left_open(release, X)]
    for seed in (1, 2, 3):
        release = refine(release, y, epsilon=epsilon, delta=1e-3, insecure_seed=seed)
        left.append(left_open(release, X))
    assert left == sorted(left, reverse=True)


def test_after_nothing_was_asked(table, monkeypatch):
    """A fit refuses to ask nothing; earlier files may have done so."""
    monkeypatch.setattr(Table, "check_asks", lambda *_: None)
    X, y = table
    first = model(kernel=RBF(0.1), learn=None).fit(X, y, [[100.0]]).release_
    assert first.measurements[0].strategy.n_answers == 0
    for visited in (
        refine(first, y, X, band=None, insecure_seed=1, **SPENDING),
        extend(first, X, y, band=None, insecure_seed=1, **SPENDING),
    ):
        mean, covariance = condition(visited.prior, visited, X)
        np.testing.assert_allclose(visited.predict(X), mean, atol=1e-8)
        np.testing.assert_allclose(visited.predict(X, return_cov=True)[1], covariance, atol=1e-8)


@pytest.mark.parametrize("learn", [None, "map", "average"])
@pytest.mark.parametrize("sparse", [False, True])
def test_files_keep_visits_and_what_was_learned(learn, sparse, table, tmp_path, rng):
    X, y = table
    settings = {"inducing": 5} if sparse else {}
    release = (
        model(
            kernel=ConstantKernel(2.0, "fixed") * Matern(1.1, nu=1.5),
            noise_variance=None,
            learn=learn,
            **settings,
        )
        .fit(X, y)
        .refine(y, [[1.0]], **SPENDING)
        .extend(X[:9], y[:9], **SPENDING)
        .release_
    )
    release.save(tmp_path / "visits.cloak")
    loaded = Release.load(tmp_path / "visits.cloak")
    points = rng.uniform(0, 6, size=(5, 1))
    for form in ({}, {"return_std": True}, {"return_cov": True, "new_output": True}):
        one, other = (part.predict(points, **form) for part in (release, loaded))
        for first, second in zip(one, other, strict=True):
            np.testing.assert_array_equal(first, second)
    assert len(loaded.learned) == {None: 0, "map": 1, "average": 7}[learn]
    assert loaded.guarantee == release.guarantee
    assert [weighted.weight for weighted in loaded.learned] == [
        weighted.weight for weighted in release.learned
    ]
    assert loaded.hyperprior == release.hyperprior
    assert loaded.average == release.average
    # And it goes on from there.
    one, other = (refine(part, y, insecure_seed=9, **SPENDING) for part in (release, loaded))
    np.testing.assert_array_equal(one.predict(points), other.predict(points))


SECRET = 0.7234511


@pytest.mark.parametrize(
    "y",
    [
        np.full(29, SECRET),
        np.full((30, 2), SECRET),
        np.append(np.full(29, SECRET), np.nan),
        np.append(np.full(29, SECRET), np.inf),
        [*[SECRET] * 29, "tall"],
        [*[SECRET] * 29, None],
        None,
        SECRET,
    ],
    ids=["too few", "two columns", "nan", "inf", "text", "none in it", "none", "a number"],
)
@pytest.mark.parametrize("visit", ["refine", "extend"])
def test_errors_about_outputs_never_quote_them(visit, y, table):
    release = model(kernel=KERNEL, learn=None).fit(*table).release_
    ask = partial(refine, release) if visit == "refine" else partial(extend, release, table[0])
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        ask(y, **SPENDING)
    error = caught.value
    while error is not None:
        assert "0.72345" not in str(error)
        assert "tall" not in str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be positive"),
        ({"delta": 1.0}, "delta must be at least 0 and below 1"),
        ({"X_query": [[1.0, 2.0]]}, "X_query has 2 columns, expected 1"),
        ({"X_query": np.zeros((0, 1))}, "X_query needs at least one row"),
        ({"query_weight": [1.0]}, "query weights must be positive and finite"),
        ({"gap": 0.0}, "gap must be positive"),
    ],
)
def test_other_errors_are_named(changes, message, table):
    X, y = table
    release = model(kernel=KERNEL, learn=None).fit(X, y).release_
    with pytest.raises(ValueError, match=message):
        refine(release, y, **(SPENDING | changes))


def test_a_visit_names_what_is_missing_or_of_another_kind(table):
    X, y = table
    release = model(kernel=KERNEL, learn=None).fit(X, y).release_
    for visit in (partial(refine, release, y), partial(extend, release, X, y)):
        with pytest.raises(TypeError, match="epsilon is missing"):
            visit()
        with pytest.raises(TypeError, match="no setting dleta: it may have epsilon, delta"):
            visit(epsilon=1.0, dleta=1e-3)
    for other in (None, y, model()):
        for visit in (partial(refine, other, y), partial(extend, other, X, y)):
            with pytest.raises(TypeError, match=f"not from {type(other).__name__}"):
                visit(**SPENDING)


def test_new_rows_need_the_same_inputs(table):
    X, y = table
    release = model(kernel=KERNEL, learn=None).fit(X, y).release_
    with pytest.raises(ValueError, match="X has 2 columns, expected 1"):
        extend(release, np.hstack([X, X]), y, **SPENDING)


def test_new_rows_in_another_order_are_refused(table):
    X, y = pd.DataFrame(table[0], columns=["age"]), pd.Series(table[1], name="height")
    whose, back = pd.Series(np.arange(30) // 2), slice(None, None, -1)
    fitted = model(kernel=KERNEL, learn=None).fit(X, y, groups=whose)
    release, before = fitted.release_, whose.tolist()
    for outputs, owners, ids in (
        (y[back], whose, None),
        (y, whose[back], None),
        (y, whose, [before, whose[back]]),
    ):
        with pytest.raises(ValueError, match="in another order"):
            extend(release, X, outputs, groups=owners, ids=ids, **SPENDING)
    with pytest.raises(ValueError, match="in another order"):
        fitted.extend(X, y[back], by_rows=True, **SPENDING)
    with pytest.raises(ValueError, match="in another order"):
        refine(release, y[back], groups=whose, **SPENDING)
    extend(release, X, y[back].to_numpy(), groups=whose, ids=[before, whose], **SPENDING)
    with pytest.raises(ValueError, match="'age' is among the inputs"):
        extend(release, X, y.rename("age"), groups=whose, **SPENDING)


def test_new_counts_in_the_order_of_other_exposures_are_refused(rng):
    X, years = pd.DataFrame({"age": rng.uniform(0, 6, size=60)}), pd.Series(np.linspace(1, 3, 60))
    y = pd.Series(rng.poisson(2, size=60))
    counts = model(likelihood="counts", bounds=(0, 20), noise_variance=None, interval="auto")
    release = counts.fit(X, y, exposure=years).release_
    with pytest.raises(ValueError, match="in another order"):
        extend(release, X, y, exposure=years[::-1], **SPENDING)


def test_the_weights_of_before_are_kept_too(table):
    X, y = np.repeat(table[0][:10], [50, *[1] * 9], axis=0), np.zeros(59)
    first = model(kernel=RBF(0.3), learn=None).fit(X, y).release_
    again = refine(first, y, insecure_seed=1, **SPENDING)
    points, counts = np.unique(X, axis=0, return_counts=True)
    told = refine(first, y, points, query_weight=counts, insecure_seed=1, **SPENDING)
    std, expected = (one.predict(X[:1], return_std=True)[1][0] for one in (again, told))
    assert std == pytest.approx(expected, rel=1e-6)


def test_estimators_keep_what_functions_return(table):
    X, y = table
    first = model(kernel=KERNEL, learn=None).fit(X, y)
    alone = first.release_
    assert first.refine(y, [[1.0]], insecure_seed=1, **SPENDING) is first
    again = refine(alone, y, [[1.0]], insecure_seed=1, **SPENDING)
    np.testing.assert_array_equal(first.predict(X), again.predict(X))
    assert first.guarantee_ == again.guarantee
    assert len(alone.measurements) == 1
    assert first.extend(X + 1, y, insecure_seed=2, **SPENDING) is first
    both = extend(again, X + 1, y, insecure_seed=2, **SPENDING)
    np.testing.assert_array_equal(first.predict(X), both.predict(X))


def test_tables_are_read_by_name(rng):
    X = pd.DataFrame(rng.uniform(0, 6, size=(12, 2)), columns=["age", "weight"])
    y, points = np.sin(X["age"]).rename("height"), X[:3] + 0.5
    first = model(kernel=ConstantKernel(2.0) * RBF([1.0, 4.0]), learn=None).fit(X, y).release_
    kept = [
        refine(first, y, table, insecure_seed=1, **SPENDING).measurements[1].strategy.X_query
        for table in (points, points[["weight", "age"]].assign(id="p"))
    ]
    np.testing.assert_array_equal(*kept)
    swapped = X[["weight", "age"]]
    new = extend(first, swapped, y, swapped[:3], insecure_seed=1, **SPENDING).measurements[1]
    np.testing.assert_array_equal(new.strategy.X, X)
    np.testing.assert_array_equal(new.strategy.X_query, X[:3])
    for wrong in (
        lambda: refine(first, y, points[["age"]], **SPENDING),
        lambda: extend(first, X[["age"]], y, **SPENDING),
    ):
        with pytest.raises(ValueError, match="has no column weight"):
            wrong()


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_classes_are_asked_again_and_of_new_rows(count, noise, table, tmp_path):
    """What a second visit leaves open is less, guarantees add up, and files keep both visits."""
    X, _ = table
    labels = (np.arange(30) * 7) % count
    delta = 1e-3 if noise == "gaussian" else 0.0
    spending = {"epsilon": 2.0, "delta": delta, "noise": noise}
    model = DPGPClassifier(classes=list(range(count)), learn=None, insecure_seed=0, **spending)
    first = model.fit(X, labels).release_
    again = refine(first, labels, [[1.0], [5.0]], insecure_seed=1, **spending)
    both = extend(again, X + 0.5, labels, insecure_seed=2, **spending)
    assert [one.strategy.table for one in both.measurements] == [0, 0, 1]
    assert both.guarantee == compose(*(one.answers.guarantee for one in both.measurements))
    assert all(one.question == first.measurements[0].question for one in both.measurements)
    sds = [np.square(one.predict_latent(X).sd).sum() for one in (first, again, both)]
    assert sds == sorted(sds, reverse=True)
    both.save(tmp_path / "visits.cloak")
    loaded = Release.load(tmp_path / "visits.cloak")
    np.testing.assert_array_equal(loaded.predict_proba(X), both.predict_proba(X))
    one, other = (refine(part, labels, insecure_seed=9, **spending) for part in (both, loaded))
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    assert one.visits == 4
