"""Later visits over all neighbours, by brute force: what each spends, and what they spend together.

Every earlier answer is held equal, as composition does: questions may depend on earlier answers and
on public inputs, and on nothing else.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace

import numpy as np
import pytest
from counting_keeper import Counting
from hypothesis import given, settings
from hypothesis import strategies as st
from neighbours import ACHIEVED_SHARE, door, spent_over_neighbours
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from cloakgp import DPGPRegressor, Release, extend, refine
from cloakgp.data import ArrayRows
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.spending import counted_by
from cloakgp.report.describe import describe

# Budgets are as large as it takes to try them all.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

KERNELS = [None, RBF(2.0), ConstantKernel(4.0) * Matern(1.0, nu=1.5) + WhiteKernel(0.1)]
BOUNDS = (-3.0, 7.0)


def outputs_at_the_ends(rng, rows):
    return np.where(rng.uniform(size=rows) < 0.5, *BOUNDS)


def first_release(rng, kernel, *, learn, sparse):
    X = rng.uniform(0, 5, size=(6, 1))
    X[1] = X[0]
    y = outputs_at_the_ends(rng, 6)
    model = DPGPRegressor(
        kernel,
        noise="gaussian",
        interval=False,
        bounds=BOUNDS,
        epsilon=1.0,
        delta=1e-4,
        learn=learn,
        stages=None,
        inducing=X[[0, 2, 4]] if sparse else None,
    )
    return model.fit(X, y).release_, y


@given(
    seed=st.integers(0, 2**32 - 1),
    kernel=st.sampled_from(KERNELS),
    learn=st.sampled_from(["map", None]),
    sparse=st.booleans(),
    epsilon=st.sampled_from([0.05, 1.0, 20.0]),
    visit=st.sampled_from(["refine", "extend"]),
)
@settings(max_examples=12)
def test_every_visit_spends_what_it_claims(seed, kernel, learn, sparse, epsilon, visit):
    rng = np.random.default_rng(seed)
    release, y = first_release(rng, kernel, learn=learn, sparse=sparse)
    if visit == "extend":
        Z = rng.uniform(0, 5, size=(5, 1))
        y = outputs_at_the_ends(rng, 5)

    def run(outputs):
        spending = {"epsilon": epsilon, "delta": 1e-4, "noise": "gaussian"}
        if visit == "refine":
            after = refine(release, outputs, [[1.0], [4.0]], **spending)
        else:
            after = extend(release, Z, outputs, **spending)
        assert after.measurements[:-1] == release.measurements
        return after.measurements[-1].answers.guarantee.mu

    spent, claimed = spent_over_neighbours(run, y, bounds=BOUNDS)
    assert ACHIEVED_SHARE * claimed <= spent <= claimed


def stage_integers(model, X, y, frozen=None):
    """Fit, recording (integers before noise, scale) of each stage; publish ``frozen`` noise on top.

    Returns the records, the integers published, and the release.
    """
    records, published = [], []

    def record(integers, *, scale, sensitivity):  # noqa: ARG001
        stage = len(records)
        records.append((integers, scale))
        answers = integers if frozen is None else frozen[stage]
        published.append(answers)
        return answers

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cloakgp.privacy.noise.gaussian.add_discrete_gaussian", record)
        release = model.fit(X, y).release_
    return records, published, release


@given(
    seed=st.integers(0, 2**32 - 1),
    learn=st.sampled_from(["map", "average", None]),
    width=st.sampled_from([None, 0.7, 1.0]),
    share=st.sampled_from([0.1, 0.5, 0.8]),
    epsilon=st.sampled_from([0.3, 1.0, 8.0]),
)
@settings(max_examples=6)
def test_both_stages_together_spend_what_the_fit_claims(seed, learn, width, share, epsilon):
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(0, 5, size=(5, 1)), outputs_at_the_ends(rng, 5)
    model = DPGPRegressor(
        noise="gaussian",
        interval=False,
        bounds=BOUNDS,
        epsilon=epsilon,
        delta=1e-4,
        learn=learn,
        stages=[(share, None), (1 - share, width)],
    )
    base, published, release = stage_integers(model, X, y)
    assert len(base) == 2
    worst = 0.0
    for row in range(5):
        for end in BOUNDS:
            if y[row] == end:
                continue
            neighbour = y.copy()
            neighbour[row] = end
            # The same answers are published: then everything public is the same, to the last bit.
            moved, _, other = stage_integers(model, X, neighbour, frozen=published)
            for one, two in zip(release.measurements, other.measurements, strict=True):
                np.testing.assert_array_equal(one.strategy.matrix, two.strategy.matrix)
                if not isinstance(one.question, OutputBounds):
                    np.testing.assert_array_equal(one.question.lower, two.question.lower)
                    np.testing.assert_array_equal(one.question.upper, two.question.upper)
            assert [scale for _, scale in moved] == [scale for _, scale in base]
            squares = sum(
                sum((int(a) - int(b)) ** 2 for a, b in zip(one, two, strict=True)) / scale**2
                for (one, scale), (two, _) in zip(base, moved, strict=True)
            )
            worst = max(worst, math.sqrt(squares))
    claimed = release.guarantee.mu
    assert worst <= claimed
    assert worst >= ACHIEVED_SHARE * claimed
    assert release.guarantee.delta_at(epsilon) <= 1e-4
    assert release.guarantee.delta_at(epsilon) >= 0.999e-4


def test_the_check_can_fail(monkeypatch):
    """Mutation: a second stage that counted half of the rows is found out."""
    whole = door.integer_sensitivity
    calls = []

    def half(strategy, **settings_):
        calls.append(strategy)
        return whole(strategy, **settings_) // 2

    rng = np.random.default_rng(0)
    release, y = first_release(rng, RBF(2.0), learn=None, sparse=False)
    monkeypatch.setattr(door, "integer_sensitivity", half)
    spent, claimed = spent_over_neighbours(
        lambda outputs: (
            refine(release, outputs, epsilon=1.0, delta=1e-4, noise="gaussian")
            .measurements[-1]
            .answers.guarantee.mu
        ),
        y,
        bounds=BOUNDS,
    )
    assert calls
    assert spent > claimed


def test_visits_compose_for_somebody_in_all_of_them():
    rng = np.random.default_rng(1)
    release, y = first_release(rng, RBF(2.0), learn="map", sparse=False)
    for _ in range(3):
        release = refine(release, y, epsilon=1.0, delta=1e-4, noise="gaussian")
    mus = [measurement.answers.guarantee.mu for measurement in release.measurements]
    assert release.guarantee.mu >= math.sqrt(math.fsum(mu**2 for mu in mus))
    assert release.guarantee.mu == pytest.approx(2 * mus[0], rel=1e-6)
    assert release.guarantee.delta_at(release.guarantee.epsilon) <= release.guarantee.delta


@functools.cache
def dense_and_passes():
    """Releases of few rows and of rows that are read in passes; and how each is asked again."""
    inputs = np.linspace(0, 10, 60)[:, None]
    outputs = np.clip(inputs[:, 0] / 10, 0, 1)
    rows = ArrayRows(inputs, outputs)
    budget = {"bounds": (0, 1), "epsilon": 0.5, "delta": 1e-6, "noise": "gaussian"}
    few = DPGPRegressor(**budget).fit(inputs, outputs).release_
    many = DPGPRegressor(inducing=6, stages=None, **budget).fit_rows(rows).release_
    return [(few, outputs), (many, rows)]


def test_stages_are_one_visit_and_later_visits_are_counted():
    for release, private in dense_and_passes():
        assert (release.visits, release.limit) == (1, None)
        again = refine(release, private, epsilon=0.3, delta=1e-6)
        assert again.visits == 2
        assert release.combine(again).visits == 3


def test_a_limit_that_was_declared_refuses_before_anything_is_drawn():
    for release, private in dense_and_passes():
        limited = release.within(1.0, 1e-5)
        refined = refine(limited, private, epsilon=0.3, delta=1e-6)
        assert (refined.visits, refined.limit) == (2, (1.0, 1e-5))
        keeper = Counting()
        with counted_by(keeper):
            for noise, epsilon in (("gaussian", 1.5), ("laplace", 0.9)):
                with pytest.raises(ValueError, match="has no room for this: nothing was drawn"):
                    refine(refined, private, epsilon=epsilon, delta=1e-6, noise=noise)
        assert keeper.costs == []
        for other in (refined, release):
            with pytest.raises(ValueError, match="not combined"):
                limited.combine(other)
        with pytest.raises(ValueError, match="declared once"):
            refined.within(2.0, 1e-5)
        # It was said that nothing was drawn, which it had been.
        with pytest.raises(ValueError, match="spent more than a limit of"):
            release.within(0.4, 1e-6)


def test_limits_and_visits_are_in_the_file_and_checked_when_it_is_read(tmp_path):
    release, private = dense_and_passes()[0]
    limited = refine(release.within(1.0, 1e-5), private, epsilon=0.3, delta=1e-6)
    limited.save(tmp_path / "limited.cloak")
    loaded = Release.load(tmp_path / "limited.cloak")
    assert (loaded.visits, loaded.limit) == (2, (1.0, 1e-5))
    for forged, told in (
        (replace(limited, limit=(0.5, 1e-6)), "no room"),
        (replace(limited, limit=(1e300, 1e-6)), "epsilon"),
        (replace(limited, visits=0), "damaged"),
    ):
        with pytest.raises(ValueError, match=told):
            forged.validate()


def test_what_is_said_of_several_visits():
    def told(release):
        facts = next(one for one in describe(release) if one.title == "Guarantee").facts
        return {fact.label: fact.text for fact in facts}

    release, private = dense_and_passes()[0]
    assert not {"visits", "limit"} & told(release).keys()
    mixed = told(refine(release, private, epsilon=0.3, delta=0.0))
    assert "fixed before any answer was read" in mixed["visits"]
    within = told(refine(release.within(1.0, 1e-5), private, epsilon=0.3, delta=0.0))
    assert "keep (ε, δ) = (1, 1e-05), however" in within["limit"]
    X = np.linspace(0, 10, 30)[:, None]
    pure = DPGPRegressor(bounds=(0, 1), epsilon=0.5).fit(X, X[:, 0] / 10).release_
    again = told(refine(pure, X[:, 0] / 10, epsilon=0.3, delta=0.0))
    assert "however the price of each visit was chosen" in again["visits"]
