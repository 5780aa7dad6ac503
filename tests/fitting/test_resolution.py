"""Inducing inputs for a kernel that was learned: where they lie, how many, and fits with them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.gaussian_process.kernels import RBF

from cloakgp import DPGPClassifier, DPGPRegressor, DPGridSearchCV, Release
from cloakgp.data import ArrayRows
from cloakgp.fitting import resolution
from cloakgp.fitting.passes import RowTable, design_rows, restate
from cloakgp.fitting.release_plan import PASS_STAGE_SECONDS
from cloakgp.fitting.resolution import Asked, Pivots, finer, most_inducing, resolve
from cloakgp.models import NotPositiveDefiniteError, SparsePrior
from cloakgp.release import DenseStrategy

pytestmark = [
    pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning"),
    pytest.mark.filterwarnings("ignore::cloakgp.design.strategy.DesignGapWarning"),
]

POINTS = np.array([[0.2], [1.7], [3.3]])


def prior_on(inducing, *, length=0.5, noise_variance=0.1):
    return SparsePrior(
        kernel=2.0 * RBF(length), noise_variance=noise_variance, mean=0.0, inducing=inducing
    )


@given(seed=st.integers(0, 2**32 - 1), most=st.integers(1, 12))
def test_each_row_leaves_what_a_sparse_model_on_those_so_far_leaves(seed, most):
    """Oracle: variances of a sparse model whose inducing inputs are these rows."""
    X = np.random.default_rng(seed).uniform(0, 4, size=(15, 2))
    prior = prior_on(X[:1])
    found = Pivots.of(prior, X, most=most)
    assert len(set(found.places)) == len(found.places) == most
    for count in range(1, most + 1):
        chosen = replace(prior, inducing=X[found.places[:count]])
        left = prior.query_variance(X) - np.square(chosen.features(X)).sum(axis=0)
        np.testing.assert_allclose(found.unexplained[count], left.sum() / (15 - count), atol=1e-4)


@pytest.mark.parametrize("proposed", [1, 3])
def test_rows_are_distributed_as_if_drawn_one_by_one(monkeypatch, proposed):
    """Oracle: each is drawn with the share of the variance that those before it leave, computed."""
    monkeypatch.setattr(resolution, "PROPOSED", proposed)
    X, runs = np.array([[0.0], [0.3], [0.5], [1.4]]), 3000
    prior = prior_on(X[:1])
    covariance = prior.kernel(X)
    expected = np.zeros((4, 4))
    for first in range(4):
        beside = covariance[:, first]
        left = np.diag(covariance) - np.square(beside) / covariance[first, first]
        left[first] = 0.0
        expected[first] = left / left.sum() / 4
    found = np.zeros((4, 4))
    for seed in range(runs):
        found[*Pivots.of(prior, X, most=2, random_state=seed).places] += 1
    possible = expected > 0
    assert not found[~possible].any()
    assert stats.chisquare(found[possible], runs * expected[possible]).pvalue > 0.01


def test_rows_are_drawn_where_much_is_left_and_none_where_nothing_is():
    """Of hundreds of rows that are alike one is taken, and those apart come soon."""
    X = np.vstack([np.zeros((500, 1)), np.linspace(5.0, 50.0, 10)[:, None]])
    found = Pivots.of(prior_on(X[:1]), X, most=12)
    assert len(found.places) == 11
    assert (found.places < 500).sum() == 1


def test_rows_that_are_alike_are_taken_once():
    X = np.repeat([[0.0], [9.0]], 5, axis=0)
    assert len(Pivots.of(prior_on(X[:1]), X, most=4).places) == 2


def test_the_expected_error_is_that_of_rows_asked_in_parts(rng):
    """Oracle: the posterior of a process given means of parts of the rows, which share inputs."""
    X = np.sort(rng.uniform(0, 4, size=(8, 1)), axis=0)
    prior, rows, noise_sd = prior_on(X), 400, 3.0
    pivots = Pivots.of(prior, X, most=8)
    asked = Asked(rows=rows, noise_variance=0.1, answer_variance=noise_sd**2, answers=8)
    found = asked.expected_variance(pivots.moments, pivots.unexplained[8])
    latent = prior.kernel(X)
    own = 0.1 / (rows / 8) + noise_sd**2 / (rows / 8) ** 2
    after = latent - latent @ np.linalg.solve(latent + own * np.eye(8), latent)
    assert found == pytest.approx(np.trace(after) / 8, rel=1e-6)


def test_more_are_taken_where_more_can_be_told(rng):
    X = rng.uniform(0, 4, size=(900, 2))
    counts = {}
    for name, noise_sd, length in (
        ("usual", 1.0, 0.5),
        ("noisy", 30_000.0, 0.5),
        ("smooth", 1.0, 8.0),
    ):
        prior = prior_on(X[:20], length=length)
        found = resolve(prior, X, rows=100_000, noise_sd=noise_sd, answers=300)
        counts[name] = len(found)
        assert {tuple(one) for one in found} <= {tuple(one) for one in X}
    assert counts["noisy"] == 20 < counts["usual"]
    # Fewer explain everything.
    assert counts["smooth"] <= 20
    # What is not taken would have gained less than a twentieth.
    pivots = Pivots.of(prior_on(X[:20]), X, most=800)
    asked = Asked(rows=100_000, noise_variance=0.1, answer_variance=1.0, answers=300)

    def expected(count):
        return asked.expected_variance(pivots.moments[:count, :count], pivots.unexplained[count])

    assert expected(counts["usual"]) <= 1.05**2 * min(expected(count) for count in (100, 200, 300))


def test_those_that_serve_stay(rng):
    """Chosen once for a kernel, they are not chosen again for it, nor for one nearly like it."""
    X = rng.uniform(0, 4, size=(900, 2))
    asked = {"rows": 100_000, "noise_sd": 1.0, "answers": 300}
    first = resolve(prior_on(X[:20]), X, **asked)
    for length in (0.5, 0.52):
        assert resolve(prior_on(first, length=length), X, **asked) is first
    assert len(resolve(prior_on(first, length=0.2), X, **asked)) > len(first)


def test_counts_are_limited_by_time_and_rows():
    for rows in (5_001, 60_000, 10**6, 10**8):
        most = most_inducing(rows, least=50)
        assert 50 <= most <= 1000
        assert most == 50 or (most <= rows / 10 and rows * most**2 <= 1e11)


def steep(rows=1_500):
    X = np.random.default_rng(0).uniform(0, 4, size=(rows, 1))
    return X, np.sin(6 * X[:, 0])


def model_of(**changes):
    settings = {
        "bounds": (-1.5, 1.5),
        "epsilon": 20.0,
        "delta": 1e-6,
        "gap": 0.05,
        "kernel": RBF(1.0),
        "interval": False,
        "inducing": "auto",
        "insecure_seed": 0,
    }
    return DPGPRegressor(**(settings | changes))


@pytest.fixture
def few(monkeypatch):
    """Few inducing inputs at first, so that more are needed."""
    monkeypatch.setattr("cloakgp.estimators.base.INDUCING", 8)


@pytest.mark.usefixtures("few")
def test_a_second_stage_has_inducing_inputs_for_the_learned_kernel(tmp_path, monkeypatch):
    monkeypatch.setattr("cloakgp.fitting.passes.LITTLE_OF_CURVE", np.inf)
    X, y = steep()
    release = model_of().fit_rows(ArrayRows(X, y, jobs=1), X[:40]).release_
    first, second = (one.strategy for one in release.measurements if one.question.locates)
    assert len(first.prior.inducing) == 8 < len(second.prior.inducing)
    # Once more after the last stage, if what that taught is worth others.
    assert len(second.prior.inducing) <= len(release.prior.inducing)
    # Every answer is known under the priors on these, and no others.
    for one in release.measurements:
        for sums in one.strategy.sums:
            np.testing.assert_array_equal(sums.prior.inducing, release.prior.inducing)
    # Oracle: a release that keeps every row.
    dense = [
        replace(
            one,
            strategy=DenseStrategy(
                X=X,
                matrix=one.strategy.columns(one.question)(X),
                X_query=one.strategy.X_query,
                reconstruction=None,
                certificate=one.strategy.certificate,
            ),
        )
        for one in release.measurements
        if one.question.locates
    ]
    kept = replace(release, measurements=tuple(dense), calibration=None)
    np.testing.assert_allclose(release.predict(POINTS), kept.predict(POINTS), atol=1e-6)
    # A file like all others, whose questions can be verified.
    release.save(tmp_path / "resolved.cloak")
    loaded = Release.load(tmp_path / "resolved.cloak")
    np.testing.assert_array_equal(loaded.predict(POINTS), release.predict(POINTS))
    for number in range(len(release.measurements)):
        assert loaded.verify(ArrayRows(X, y, jobs=1), measurement=number) <= 1.0 + 1e-9
    coarse = model_of(inducing=8).fit_rows(ArrayRows(X, y, jobs=1), X[:40]).release_
    truth = np.sin(6 * X[:500, 0])
    ours, theirs = (
        np.sqrt(np.mean((one.predict(X[:500]) - truth) ** 2)) for one in (release, coarse)
    )
    assert ours < 0.8 * theirs


@pytest.fixture
def stages(monkeypatch):
    """The priors that stages were designed for, and those learned before each but the first."""
    designed, learned, later = [], [], RowTable._later

    def design(*given, prior, **named):
        designed.append(prior)
        return design_rows(*given, prior=prior, **named)

    def watched(table, budget, width, model, settings, *, known):
        learned.append(known.fitted_prior)
        return later(table, budget, width, model, settings, known=known)

    monkeypatch.setattr("cloakgp.fitting.passes.design_rows", design)
    monkeypatch.setattr(RowTable, "_later", watched)
    return designed, learned


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("learn", "inducing"),
    [("map", "auto"), pytest.param("map", 8, marks=pytest.mark.slow), (None, "auto")],
)
def test_later_stages_are_designed_for_half_the_lengthscales_learned(stages, learn, inducing):
    """A stage sees the scale at which it asks: what is learned is not what it is asked by."""
    designed, learned = stages
    X, y = steep()
    model = model_of(learn=learn, inducing=inducing, stages=[(0.3, None), (0.3, 1.5), (0.4, 1.0)])
    release = model.fit_rows(ArrayRows(X, y, jobs=1), X[:40]).release_
    declared, *later_ones = designed
    assert declared.kernel.length_scale == 1.0
    assert len(later_ones) == len(learned) == 2
    share = 0.5 if learn == "map" and inducing == "auto" else 1.0
    for asked, told in zip(later_ones, learned, strict=True):
        np.testing.assert_allclose(asked.kernel.length_scale, share * told.kernel.length_scale)
        assert asked.noise_variance == told.noise_variance
    # Answers are known under what is declared and learned, and under nothing that was asked by.
    kept = {one.kernel.length_scale for one in (release.prior, release.fitted_prior)}
    for one in release.measurements:
        assert {sums.prior.kernel.length_scale for sums in one.strategy.sums} <= kept


@pytest.mark.usefixtures("few")
def test_where_finer_lengthscales_have_no_covariance_those_learned_are_kept(stages, monkeypatch):
    designed, learned = stages
    halved: list[float] = []

    def fails(passes, priors, *, measurements):
        if any(prior.kernel.length_scale in halved for prior in priors):
            raise NotPositiveDefiniteError(RBF())
        return restate(passes, priors, measurements=measurements)

    def halves(prior):
        found = finer(prior)
        halved.append(found.kernel.length_scale)
        return found

    monkeypatch.setattr("cloakgp.fitting.passes.finer", halves)
    monkeypatch.setattr("cloakgp.fitting.passes.restate", fails)
    X, y = steep()
    model = model_of(stages=[(0.4, None), (0.6, 1.5)])
    release = model.fit_rows(ArrayRows(X, y, jobs=1), X[:40]).release_
    assert halved
    [told] = learned
    assert designed[-1].kernel.length_scale == told.kernel.length_scale != 1.0
    assert np.square(release.predict(X[:300]) - y[:300]).mean() < 0.5 * y.var()


@pytest.mark.usefixtures("few")
def test_bands_and_groups_go_by_them_too():
    X, y = steep()
    people = np.arange(len(X)) // 2
    rows = ArrayRows(X, y, groups=people, jobs=1)
    model = model_of(stages=[(0.3, None), (0.7, 1.5)], learn=None, kernel=RBF(0.2))
    release = model.fit_rows(rows, X[:40]).release_
    assert len(release.prior.inducing) > 8
    assert np.square(release.predict(X[:300]) - y[:300]).mean() < 0.2 * y.var()


@pytest.mark.usefixtures("few")
def test_a_kernel_that_is_no_covariance_there_keeps_what_it_has(monkeypatch):
    def fails(*_, **__):
        raise NotPositiveDefiniteError(RBF())

    monkeypatch.setattr("cloakgp.fitting.passes.RowTable._restated", fails)
    X, y = steep()
    release = model_of().fit_rows(ArrayRows(X, y, jobs=1), X[:40]).release_
    assert len(release.prior.inducing) == 8


def test_few_rows_are_held_and_many_planned_for():
    assert model_of().plan_fit((300, 2)).inducing is None
    plan = model_of().plan_fit((50_000, 2))
    assert plan.by_passes
    assert plan.resolves
    told = model_of().plan(ArrayRows(np.zeros((50_000, 2)), np.zeros(50_000)))
    assert "as many as are worth it up to 1,000" in str(told)
    fixed = model_of(inducing=200).plan(ArrayRows(np.zeros((50_000, 2)), np.zeros(50_000)))
    assert "as are worth it" not in str(fixed)
    stages = PASS_STAGE_SECONDS * told.stages
    assert told.stages == fixed.stages == 3
    assert told.seconds - stages == pytest.approx(5 * (fixed.seconds - stages))
    assert told.questions > fixed.questions
    facts = json.loads(json.dumps(told.to_dict()))
    assert (facts["inducing"], facts["most_inducing"]) == (200, 1000)


def test_words_other_than_auto_and_other_outputs_are_refused():
    X, y = steep(rows=20)
    with pytest.raises(ValueError, match="a number, auto or inputs"):
        model_of(inducing="many").fit(X, y)
    for one_stage in ({"stages": None}, {"calibrate": 0.1}):
        with pytest.raises(ValueError, match="one stage, or rows are kept out"):
            model_of(**one_stage).fit(X, y)
    with pytest.raises(ValueError, match="in place of 'auto'"):
        DPGridSearchCV(model_of(), {"kernel": [RBF(1.0)]}, selection_epsilon=1.0).fit(X, y)
    with pytest.raises(ValueError, match="one output of numbers"):
        DPGPClassifier(classes=[0, 1], epsilon=1.0, delta=0.01, inducing="auto").fit(X, y > 0)
