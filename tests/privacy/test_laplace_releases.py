"""Releases with Laplace noise over all neighbours: stages, groups, outputs, labels, chunks."""

from __future__ import annotations

import functools
import importlib
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from counting_keeper import Counting
from hypothesis import given, settings
from hypothesis import strategies as st
from laplace_neighbours import furthest, moved
from neighbours import ACHIEVED_SHARE
from sklearn.gaussian_process.kernels import Matern

from cloakgp import DPGPClassifier, DPGPMultiOutputRegressor, DPGPRegressor, refine
from cloakgp.data import ArrayRows
from cloakgp.design.streaming.remembering import RememberedColumns, RememberedRows
from cloakgp.privacy.ask import StrategyBound, ask, ask_chunks
from cloakgp.privacy.noise import LAPLACE
from cloakgp.privacy.questions.bands import Bands
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.privacy.questions.classes import Classes
from cloakgp.privacy.spending import counted_by

# The package's functions have the names of their modules.
room = importlib.import_module("cloakgp.privacy.ask")

# Tables are as small as it takes to try all neighbours.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

BOUNDS = (-3.0, 7.0)
PURE = {"epsilon": 1.3, "delta": 0.0}
KERNEL = 4.0 * Matern(1.0, nu=1.5)
TWO_STAGES = [(0.4, None), (0.6, 1.0)]
THREE_STAGES = [(0.3, None), (0.3, 1.5), (0.4, 1.0)]
CLASSES = ["a", "b", "c"]
GROUPS = [[0, 2, 4], [1], [3, 5]]


def inputs(seed=0, rows=6):
    X = np.random.default_rng(seed).uniform(0, 5, size=(rows, 1))
    X[1] = X[0]
    return X


def outputs(seed=0, rows=6):
    return np.where(np.random.default_rng(seed + 100).uniform(size=rows) < 0.5, *BOUNDS)


def group_of(row):
    return next(number for number, rows in enumerate(GROUPS) if row in rows)


def rows_alone(y):
    return [moved(y, [row], bounds=BOUNDS) for row in range(len(y))]


def rows_of_groups(y):
    return [moved(y, rows, bounds=BOUNDS) for rows in GROUPS]


def other_labels(y, classes):
    return [[[*y[:row], one, *y[row + 1 :]] for one in classes] for row in range(len(y))]


def assert_spent(guarantee, alone, together, *, least=ACHIEVED_SHARE):
    """Every draw spends what its part says, nearly; all of them together no more than is stated."""
    assert guarantee.mu == 0
    assert len(guarantee.laplace) == len(alone)
    for part, spent in zip(guarantee.laplace, alone, strict=True):
        assert least * part <= spent <= Fraction(part)
    assert together <= Fraction(guarantee.pure_epsilon)
    assert guarantee.delta_at(guarantee.epsilon) <= guarantee.delta


def regression(y, *, X, **changes):
    # Searches for an interval: tests/privacy/test_interval.py.
    settings_ = {"noise": "laplace", "learn": None, "noise_variance": 1.0, "interval": False}
    settings_ |= {**PURE, **changes}
    groups = settings_.pop("groups", None)
    return DPGPRegressor(KERNEL, bounds=BOUNDS, **settings_).fit(X, y, groups=groups).release_


def shown(release):
    """All but when it was made."""
    dated = hasattr(release, "provenance")
    return (replace(release, provenance=None) if dated else release).to_bytes()


# Stages and groups.


@given(
    seed=st.integers(0, 2**32 - 1),
    stages=st.sampled_from([None, TWO_STAGES, THREE_STAGES]),
    criterion=st.sampled_from(["bayes", "trace"]),
    epsilon=st.sampled_from([0.1, 1.0, 30.0]),
)
@settings(max_examples=15)
def test_no_neighbour_spends_more_in_all_stages_together(seed, stages, criterion, epsilon):
    run = functools.partial(
        regression,
        X=inputs(seed),
        stages=stages if criterion == "bayes" else None,
        criterion=criterion,
        epsilon=epsilon,
    )
    release, alone, together = furthest(run, rows_alone(outputs(seed)), public=shown)
    # A later band need not be narrow enough for an output to cross it.
    least = ACHIEVED_SHARE if len(alone) == 1 else 0.0
    assert_spent(release.guarantee, alone, together, least=least)
    assert release.guarantee.epsilon <= epsilon
    assert alone[0] >= ACHIEVED_SHARE * release.guarantee.laplace[0]


@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_stages_spend_the_budget_and_no_more(delta):
    run = functools.partial(regression, X=inputs(), stages=TWO_STAGES, delta=delta)
    release, alone, together = furthest(run, rows_alone(outputs()), public=shown)
    assert_spent(release.guarantee, alone, together)
    assert together >= (1 - 1e-5) * release.guarantee.pure_epsilon
    # With a δ, too, parts add up to ε: what is asked for, held and spent are one number.
    assert release.guarantee.pure_epsilon <= PURE["epsilon"]
    assert release.guarantee.pure_epsilon == pytest.approx(PURE["epsilon"], rel=1e-5)


@pytest.mark.parametrize(
    ("stages", "criterion"), [(None, "bayes"), (TWO_STAGES, "bayes"), (None, "trace")]
)
def test_groups_spend_no_more_than_is_stated(stages, criterion):
    run = functools.partial(
        regression,
        X=inputs(),
        stages=stages,
        criterion=criterion,
        groups=[group_of(row) for row in range(6)],
    )
    release, alone, together = furthest(run, rows_of_groups(outputs()), public=shown)
    # Columns of one person need not point the same way.
    assert_spent(release.guarantee, alone, together, least=0.0)


def test_a_group_that_is_alike_spends_all_of_it():
    strategy = np.abs(np.random.default_rng(0).normal(size=(3, 6)))
    found, alone, together = furthest(
        lambda y: ask(
            strategy,
            y,
            question=OutputBounds.checked(BOUNDS),
            groups=[group_of(row) for row in range(6)],
            noise="laplace",
            **PURE,
        ),
        rows_of_groups(outputs()),
    )
    assert_spent(found.guarantee, alone, together)


def test_without_groups_a_group_spends_more():
    release, _, together = furthest(
        functools.partial(regression, X=inputs(), stages=None), rows_of_groups(outputs())
    )
    assert together > 1.1 * release.guarantee.epsilon


@pytest.mark.parametrize("seed", range(3))
def test_bands_of_any_width_spend_what_is_stated(seed):
    rng = np.random.default_rng(seed)
    lower = rng.normal(size=6)
    bands = Bands(lower=lower, upper=lower + 10.0 ** rng.uniform(-6, 6, size=6))
    strategy = rng.standard_t(2, size=(3, 6))
    y = rng.normal(size=6)
    values = [[*moved(y, [row], bounds=(-1e9, 1e9)), y] for row in range(6)]
    found, alone, together = furthest(
        lambda outputs: ask(strategy, outputs, question=bands, noise="laplace", **PURE),
        values,
    )
    assert_spent(found.guarantee, alone, together)


def test_later_visits_add_up():
    X = inputs()

    def run(y):
        first = regression(y, X=X, stages=None)
        return refine(first, y, [[2.0]], epsilon=0.5, delta=0.0, noise="laplace")

    release, alone, together = furthest(run, rows_alone(outputs()), public=shown)
    assert_spent(release.guarantee, alone, together, least=0.0)
    assert release.guarantee.laplace[-1] == 0.5
    assert release.guarantee.epsilon == pytest.approx(PURE["epsilon"] + 0.5)


# Several outputs.


@pytest.mark.parametrize("criterion", ["bayes", "trace"])
def test_all_outputs_of_a_person_together(criterion):
    bounds = [BOUNDS, (100.0, 1e4)]
    X = inputs(rows=4)
    flat = np.tile([BOUNDS[0], 1e4], 4)
    limits = np.tile(bounds, (4, 1))
    people = [moved(flat, [2 * one, 2 * one + 1], bounds=limits) for one in range(4)]

    def run(entries):
        model = DPGPMultiOutputRegressor(
            KERNEL, bounds=bounds, noise="laplace", learn=None, criterion=criterion, **PURE
        )
        return model.fit(X, entries.reshape(4, 2)).release_

    release, alone, together = furthest(run, people, public=shown)
    assert_spent(release.guarantee, alone, together, least=0.5)


# Labels.


@pytest.mark.parametrize("count", [2, 3])
def test_no_label_spends_more_than_is_stated(count):
    y = [CLASSES[row % count] for row in range(6)]
    strategy = np.random.default_rng(count).standard_t(2, size=(4, 6))
    found, alone, together = furthest(
        lambda labels: ask(
            strategy, labels, question=Classes(tuple(CLASSES[:count])), noise="laplace", **PURE
        ),
        other_labels(y, CLASSES[:count]),
    )
    assert_spent(found.guarantee, alone, together)


@pytest.mark.parametrize("count", [2, 3])
def test_a_classifier_spends_what_is_stated(count):
    y = [CLASSES[row % count] for row in range(6)]

    def run(labels):
        model = DPGPClassifier(KERNEL, classes=CLASSES[:count], noise="laplace", learn=None, **PURE)
        return model.fit(inputs(), labels).release_

    release, alone, together = furthest(run, other_labels(y, CLASSES[:count]), public=shown)
    assert_spent(release.guarantee, alone, together)


# Chunks.


def columns_of(strategy):
    return lambda X: np.ascontiguousarray(strategy[:, X[:, 0].astype(int)])


def bound_of(strategy, *, groups=None):
    lengths = np.abs(strategy).sum(axis=0)
    if groups is None:
        together = {}
    else:
        sums = np.bincount(groups, weights=lengths)
        together = {"group_rows": int(np.bincount(groups).max()), "chunks": 3}
        lengths = sums
    return StrategyBound(
        answers=len(strategy),
        longest=float(lengths.max()),
        chunk_rows=2,
        count=strategy.shape[1],
        noise=LAPLACE,
        **together,
    )


def in_chunks(strategy, *, bound=None, groups=None, classes=None):
    X = np.arange(strategy.shape[1], dtype=float)[:, None]
    promised = bound_of(strategy, groups=groups) if bound is None else bound

    def run(entries):
        named = {} if groups is None else {"groups": groups}
        rows = ArrayRows(X, entries, chunk_rows=2, jobs=1, **named)
        if classes is not None:
            return ask_chunks(rows, columns_of(strategy), bound=promised, question=classes, **PURE)
        return ask_chunks(
            rows, columns_of(strategy), bound=promised, question=OutputBounds(*BOUNDS), **PURE
        )

    return run


def wild(seed, *, positive=False):
    strategy = np.random.default_rng(seed).standard_t(2, size=(3, 6))
    return np.abs(strategy) if positive else strategy


@pytest.mark.parametrize("seed", range(5))
def test_chunks_spend_what_is_stated(seed):
    found, alone, together = furthest(in_chunks(wild(seed)), rows_alone(outputs()))
    assert_spent(found.guarantee, alone, together)


def test_groups_in_chunks_spend_what_is_stated():
    whose = [group_of(row) for row in range(6)]
    run = in_chunks(wild(0, positive=True), groups=whose)
    found, alone, together = furthest(run, rows_of_groups(outputs()))
    assert_spent(found.guarantee, alone, together)


@pytest.mark.parametrize("count", [2, 3])
def test_labels_in_chunks_spend_what_is_stated(count):
    y = [CLASSES[row % count] for row in range(6)]
    run = in_chunks(wild(count), classes=Classes(tuple(CLASSES[:count])))
    found, alone, together = furthest(run, other_labels(y, CLASSES[:count]))
    assert_spent(found.guarantee, alone, together)


def test_columns_longer_than_was_promised_in_this_norm_are_refused():
    """Euclidean lengths are shorter: a promise of them is not enough."""
    strategy = wild(0)
    promised = StrategyBound(
        answers=3,
        longest=float(np.linalg.norm(strategy, axis=0).max()),
        chunk_rows=2,
        count=6,
        noise=LAPLACE,
    )
    with pytest.raises(ValueError, match="nothing was released"):
        in_chunks(strategy, bound=promised)(outputs())


# Mutations: each must be caught by a test above.


def euclidean(_, columns):
    return np.sqrt(np.square(columns).sum(axis=0))


@pytest.mark.parametrize("kind", ["measure", "labels", "chunks"])
def test_lengths_of_gaussian_noise_are_caught(kind, monkeypatch):
    monkeypatch.setattr(type(LAPLACE), "lengths", euclidean)
    strategy = wild(0)
    bound = StrategyBound(
        answers=3,
        longest=float(np.linalg.norm(strategy, axis=0).max()),
        chunk_rows=2,
        count=6,
        noise=LAPLACE,
    )
    labels = [CLASSES[row % 3] for row in range(6)]
    run, neighbours = {
        "measure": (
            lambda y: ask(
                strategy, y, question=OutputBounds.checked(BOUNDS), noise="laplace", **PURE
            ),
            rows_alone(outputs()),
        ),
        "labels": (
            lambda y: ask(strategy, y, question=Classes(tuple(CLASSES)), noise="laplace", **PURE),
            other_labels(labels, CLASSES),
        ),
        "chunks": (in_chunks(strategy, bound=bound), rows_alone(outputs())),
    }[kind]
    found, _, together = furthest(run, neighbours)
    assert together > 1.05 * found.guarantee.pure_epsilon


@pytest.mark.parametrize("chunks", [False, True])
@pytest.mark.parametrize("short", [1.0, math.sqrt(2)])
def test_one_indicator_instead_of_two_is_caught(chunks, short, monkeypatch):
    """One-hot labels: a change moves two entries, and in ℓ1 norm by two."""
    monkeypatch.setattr(Classes, "absolute_distance", property(lambda _: short))
    y, classes = [CLASSES[row % 3] for row in range(6)], Classes(tuple(CLASSES))
    run = (
        in_chunks(wild(0), classes=classes)
        if chunks
        else lambda labels: ask(wild(0), labels, question=classes, noise="laplace", **PURE)
    )
    found, _, together = furthest(run, other_labels(y, CLASSES))
    assert together > 1.3 * found.guarantee.pure_epsilon


@pytest.mark.parametrize("stages", [TWO_STAGES, THREE_STAGES])
def test_a_forgotten_stage_is_caught(stages):
    """Mutation: the last part of the guarantee is left out."""
    run = functools.partial(regression, X=inputs(), stages=stages)
    release, _, together = furthest(run, rows_alone(outputs()))
    assert len(release.guarantee.laplace) == len(stages)
    assert together > Fraction(math.fsum(release.guarantee.laplace[:-1]))


def test_a_schedule_that_spends_every_stage_whole_is_caught(monkeypatch):
    """Mutation: a budget that is split into parts as large as itself."""
    monkeypatch.setattr(
        "cloakgp.fitting.bands.split_budget", lambda budget, shares: (budget,) * len(shares)
    )
    run = functools.partial(regression, X=inputs(), stages=TWO_STAGES)
    release, _, together = furthest(run, rows_alone(outputs()))
    assert together > 1.9 * PURE["epsilon"]
    assert release.guarantee.epsilon > 1.9 * PURE["epsilon"]


@pytest.mark.parametrize("chunks", [False, True])
def test_the_greatest_row_of_a_group_is_caught(chunks, monkeypatch):
    strategy, whose = wild(0, positive=True), [group_of(row) for row in range(6)]
    greatest_row = float(np.abs(strategy).sum(axis=0).max())
    if chunks:
        bound = StrategyBound(
            answers=3,
            longest=greatest_row,
            chunk_rows=2,
            count=6,
            group_rows=3,
            chunks=3,
            noise=LAPLACE,
        )
        with pytest.raises(ValueError, match="nothing was released"):
            in_chunks(strategy, bound=bound, groups=whose)(outputs())
        monkeypatch.setattr(
            importlib.import_module("cloakgp.privacy.ask")._Together, "within", lambda *_: True
        )
        run = in_chunks(strategy, bound=bound, groups=whose)
    else:
        monkeypatch.setattr(type(LAPLACE), "gauge", lambda *_, **__: greatest_row)

        def run(y):
            return ask(
                strategy,
                y,
                question=OutputBounds.checked(BOUNDS),
                groups=whose,
                noise="laplace",
                **PURE,
            )

    found, _, together = furthest(run, rows_of_groups(outputs()))
    assert together > 1.05 * found.guarantee.pure_epsilon


# --- columns that are remembered between passes ---


def fitted_with_memory(monkeypatch, spoil, *, keeper):
    """Fit rows with a memory that gives back something else."""
    kept, asked = RememberedColumns.of, []

    def spoiled(self, X):
        found = kept(self, X)
        return None if found is None else asked.append(len(X)) or spoil(found)

    monkeypatch.setattr(RememberedColumns, "of", spoiled)
    X = inputs(rows=60)
    model = DPGPRegressor(
        bounds=BOUNDS, **PURE, inducing=4, noise="laplace", interval=False, stages=None, learn=None
    )
    with counted_by(keeper):
        try:
            return model.fit_rows(ArrayRows(X, outputs(rows=60))).release_
        finally:
            assert asked


def test_privacy_does_not_rest_on_the_memory_of_passes(monkeypatch):
    """The columns that are asked are measured where they are asked, wherever they come from."""
    keeper = Counting()
    with monkeypatch.context() as patch, pytest.raises(ValueError, match="nothing was released"):
        fitted_with_memory(patch, lambda columns: columns * 1.01, keeper=keeper)
    assert keeper.costs == []
    with monkeypatch.context() as patch:
        # As long as they may be, but of other rows: worse questions, and no less private.
        release = fitted_with_memory(patch, lambda columns: columns[:, ::-1].tocsr(), keeper=keeper)
    assert release.guarantee.pure_epsilon <= PURE["epsilon"]
    assert keeper.pure <= PURE["epsilon"] * (1 + 1e-9)


def test_nor_on_the_memory_of_bands(monkeypatch):
    """Places in a band are at most half a width off its middle, wherever a band lies."""
    kept, asked = RememberedRows.of, []

    def spoiled(self, X):
        found = kept(self, X)
        if found is None or len(found) == 1:
            return found
        asked.append(len(X))
        lower, upper = found
        return lower - 3.0, upper - 2.0

    monkeypatch.setattr(RememberedRows, "of", spoiled)
    keeper, X = Counting(), inputs(rows=60)
    stages = [(0.4, None), (0.6, 1.0)]
    model = DPGPRegressor(
        bounds=BOUNDS,
        **PURE,
        inducing=4,
        noise="laplace",
        interval=False,
        stages=stages,
        learn=None,
    )
    with counted_by(keeper):
        release = model.fit_rows(ArrayRows(X, outputs(rows=60))).release_
    assert asked
    [_, last] = release.measurements
    # In units of the bands, one output moves one answer by 1 at most.
    assert last.answers.noise_sd == pytest.approx(np.sqrt(2.0) / (0.6 * PURE["epsilon"]), rel=1e-3)
    assert keeper.pure <= PURE["epsilon"] * (1 + 1e-9)
