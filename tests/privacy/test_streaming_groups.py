"""Groups of rows in chunks: the guarantee over all values of a group's rows, wherever they are."""

from __future__ import annotations

import importlib
from dataclasses import replace
from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neighbours import ACHIEVED_SHARE, door
from private_chunks import Picked, PrivateChunks, all_cuts, bound_of
from sklearn.base import clone
from unit_neighbours import spent_over_units

from cloakgp import DPGPClassifier
from cloakgp.data import ArrayRows
from cloakgp.privacy.ask import StrategyBound, ask_chunks
from cloakgp.privacy.grid import Grid, Magnitudes, Sensitivity
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.privacy.questions.classes import Classes
from cloakgp.utils.passes import GROUP_NUMBERS, Chunk, group_number

# The package's functions have the names of their modules.
room = importlib.import_module("cloakgp.privacy.ask")

pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

BUDGET = {"epsilon": 1.0, "delta": 1e-5}
UNIT = OutputBounds(0.0, 1.0)


@pytest.fixture(autouse=True)
def few_numbers(monkeypatch):
    """Arrays by the numbers of groups that are quick to add up."""
    monkeypatch.setattr(room, "GROUP_NUMBERS", 8)


def members(groups):
    return [np.flatnonzero(np.asarray(groups) == group) for group in dict.fromkeys(groups)]


def grouped_bound(strategy, groups, cuts=(), **changes):
    """What is true of a strategy whose groups all have numbers of their own."""
    lengths = np.sqrt(np.square(strategy).sum(axis=0))
    settings_ = {
        "longest": max(float(lengths[rows].sum()) for rows in members(groups)),
        "group_rows": max(len(rows) for rows in members(groups)),
        "chunks": len(cuts) + 1,
    }
    return bound_of(strategy, cuts, **(settings_ | changes))


def answers_of(strategy, outputs, groups, *, bounds=UNIT, cuts=(), order=None, **rest):
    settings_ = {"bound": grouped_bound(strategy, groups, cuts), "columns": Picked(strategy)}
    settings_ |= BUDGET | rest
    numbers = settings_.pop("numbers", groups)
    rows = PrivateChunks(np.asarray(outputs, dtype=np.float64), tuple(cuts), order, numbers)
    return ask_chunks(rows, settings_.pop("columns"), question=bounds, **settings_)


def spent_by(strategy, groups, *, bounds=UNIT, inner=2, **rest):
    """Return (largest μ over all values of one group's rows, claimed μ)."""
    count = strategy.shape[1]
    return spent_over_units(
        lambda moved: answers_of(strategy, moved, groups, bounds=bounds, **rest).guarantee.mu,
        np.full(count, bounds.lo),
        members=members(groups),
        bounds=np.tile([bounds.lo, bounds.hi], (count, 1)),
        inner=inner,
    )


def alike(groups, *, answers=3, seed=0, scales=None):
    """A strategy in which the columns of each group point the same way, or the opposite one."""
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(answers, 8))
    directions /= np.sqrt(np.square(directions).sum(axis=0))
    lengths = rng.uniform(0.1, 1.0, size=len(groups)) if scales is None else np.array(scales)
    return directions[:, list(groups)] * lengths * rng.choice([-1.0, 1.0], size=len(groups))


# The guarantee, on the very integers that get the noise.


@pytest.mark.parametrize("cuts", all_cuts(6))
@pytest.mark.parametrize("groups", [(0, 1, 1, 0, 1, 2), (0, 0, 0, 0, 0, 0), (3, 1, 2, 3, 0, 3)])
def test_no_group_spends_more_than_claimed_in_any_chunking(groups, cuts):
    strategy = alike(groups, seed=len(cuts))
    bounds = OutputBounds(1e8 - 1, 1e8 + 1) if len(cuts) % 2 else UNIT
    spent, claimed = spent_by(strategy, groups, bounds=bounds, cuts=cuts, inner=1)
    assert ACHIEVED_SHARE * claimed <= spent <= claimed


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    answers, rows = draw(st.integers(1, 5)), draw(st.integers(2, 7))
    strategy = rng.standard_t(2, size=(answers, rows)) * 10.0 ** draw(st.integers(-6, 6))
    groups = rng.integers(0, draw(st.integers(1, rows)), size=rows)
    offset, width = draw(st.sampled_from([0.0, 1e6, -1e9])), 10.0 ** draw(st.integers(-2, 5))
    cuts = tuple(sorted(draw(st.sets(st.integers(1, rows - 1)))))
    budget = {
        "epsilon": 10.0 ** draw(st.integers(-3, 3)),
        "delta": 10.0 ** draw(st.integers(-12, -1)),
    }
    return strategy, groups.tolist(), OutputBounds(offset, offset + width), cuts, budget


@given(problems())
@settings(max_examples=30)
def test_whatever_the_columns_and_the_budget(problem):
    strategy, groups, bounds, cuts, budget = problem
    spent, claimed = spent_by(strategy, groups, bounds=bounds, cuts=cuts, **budget)
    assert spent <= claimed


@pytest.mark.parametrize("cuts", [(), (2,), (1, 2, 3, 4, 5)])
def test_groups_that_share_a_number_spend_less(cuts):
    """Their rows are taken for one group's, whose columns are longer together."""
    groups = (0, 1, 1, 0, 1, 2)
    strategy = alike(groups)
    shared = [0 if one == 1 else one for one in groups]
    bound = grouped_bound(strategy, shared, cuts)
    spent, claimed = spent_by(strategy, groups, cuts=cuts, numbers=shared, bound=bound)
    assert spent < 0.9 * claimed
    # And what holds for the groups alone is not let through.
    with pytest.raises(ValueError, match="nothing was released"):
        answers_of(strategy, np.zeros(6), groups, cuts=cuts, numbers=shared)


def recorded(run):
    """Return the integers, scale and sensitivity of every draw, which adds nothing here."""
    seen = []

    def record(integers, *, scale, sensitivity):
        seen.append((integers.copy(), scale, sensitivity))
        return integers

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cloakgp.privacy.noise.gaussian.add_discrete_gaussian", record)
        return seen, run()


def furthest(draws):
    """Return how far the integers of two draws are apart at most."""
    return max(
        sum((int(a) - int(b)) ** 2 for a, b in zip(one[0], two[0], strict=True)) ** 0.5
        for one, two in combinations(draws, 2)
    )


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("cuts", [(), (2, 3), (1, 2, 3, 4)])
def test_labels_of_a_group_spend_no_more_than_claimed(cuts, count):
    """The mechanism of classes is the same, with rows of indicators in place of numbers."""
    groups, classes = [0, 1, 1, 0, 1], Classes(("a", "b", "c")[:count])
    strategy = alike(groups, seed=4)
    for rows in members(groups):
        draws = []
        # Every label of every row of the group.
        for changed in product(classes.labels, repeat=len(rows)):
            labels = np.array(["a"] * 5, dtype=object)
            labels[rows] = changed
            seen, answers = recorded(
                lambda labels=labels: ask_chunks(
                    PrivateChunks(labels, cuts, None, groups),
                    Picked(strategy),
                    bound=grouped_bound(strategy, groups, cuts),
                    question=classes,
                    **BUDGET,
                )
            )
            draws += seen
        assert len(draws) == count ** len(rows)
        assert furthest(draws) <= draws[0][2]
        assert furthest(draws) / draws[0][1] <= answers.guarantee.mu


@pytest.mark.parametrize("count", [2, 3])
def test_a_fit_of_classes_in_passes_protects_whoever_owns_several_rows(count, monkeypatch):
    """The very columns that a fit designs, over all labels of every person of a small table."""
    monkeypatch.setattr(room, "GROUP_NUMBERS", GROUP_NUMBERS)
    people = ["ann", "ann", "bob", "cy", "ann", "bob", "dee", "cy", "eve"]
    X = np.random.default_rng(1).uniform(0, 3, size=(len(people), 1))
    model = DPGPClassifier(
        classes=list(range(count)),
        epsilon=20.0,
        delta=1e-3,
        noise="gaussian",
        inducing=3,
        learn=None,
        gap=0.1,
    )
    spent = {}
    for rows in members(people):
        draws = []
        for changed in product(range(count), repeat=len(rows)):
            labels = np.arange(len(people)) % count
            labels[rows] = changed
            table = ArrayRows(X, labels, groups=people, chunk_rows=4, jobs=1)
            seen, fitted = recorded(lambda table=table: clone(model).fit_rows(table))
            draws += seen
        guarantee = fitted.release_.measurements[0].guarantee
        assert fitted.release_.measurements[0].strategy.grouped
        spent[people[rows[0]]] = furthest(draws) / draws[0][1] / guarantee.mu
    assert max(spent.values()) <= 1
    # And not by being far from it.
    assert max(spent.values()) > 0.5


def test_rounding_is_counted_once_for_every_chunk_that_a_group_is_in():
    """√k steps in each, and they are needed: on a coarse grid all answers cross a half at once."""
    strategy, bounds, apart = np.ones((9, 3)), OutputBounds(-1.0, 1.0), 2e-6
    steps = [
        door.integer_sensitivity(
            Magnitudes.of_columns(answers=9, longest=9.0, rows=1, count=3, sums=sums),
            sensitivity=Sensitivity(distance=9 * apart, largest=1.0),
            step=1.0,
        )
        for sums in (1, 3)
    ]
    bound = StrategyBound(answers=9, longest=9.0, chunk_rows=1, count=3, group_rows=3, chunks=9)
    assert bound.sums == 3
    grid = Grid(step=1.0, sensitivity=steps[1], scale=10.0)
    work = room._Answering(columns=Picked(strategy), bound=bound, question=bounds, grid=grid)
    sums = []
    for side in (-1, 1):
        parts = [
            work(
                Chunk(row, np.full((1, 1), float(row)), groups=np.array([4])),
                np.array([0.5 + side * apart / 2]),
            )
            for row in range(3)
        ]
        sums.append(parts[0].merge(parts[1]).merge(parts[2]).integers)
    moved = np.linalg.norm(sums[1] - sums[0])
    assert moved == 9
    assert steps[0] < moved <= steps[1] <= 10


def test_noise_is_calibrated_for_rounding_in_every_chunk_of_a_group(monkeypatch):
    groups, strategy, cuts = lopsided()
    seen = []

    def record(integers, *, scale, sensitivity):  # noqa: ARG001
        seen.append(sensitivity)
        return integers

    monkeypatch.setattr("cloakgp.privacy.noise.gaussian.add_discrete_gaussian", record)
    for chunks in (1, 4):
        bound = grouped_bound(strategy, groups, cuts, chunk_rows=6, chunks=chunks)
        where = cuts if chunks == 4 else ()
        answers_of(strategy, np.zeros(6), groups, cuts=where, bound=bound)
    # √k steps for each of three more chunks, rounded up.
    assert seen[1] - seen[0] >= int(3 * 2**0.5)


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_nothing_depends_on_the_order_of_chunks(order):
    groups = [0, 1, 1, 0, 1, 2, 2, 0]
    strategy, outputs = alike(groups), np.linspace(0, 1, 8)
    one, other = (
        answers_of(strategy, outputs, groups, cuts=(2, 3, 6), order=each, insecure_seed=3)
        for each in (None, order)
    )
    np.testing.assert_array_equal(one.values, other.values)


def test_rows_on_their_own_are_groups_of_one():
    strategy = np.random.default_rng(1).normal(size=(3, 6))
    alone = ask_chunks(
        PrivateChunks(np.zeros(6), (2, 4)),
        Picked(strategy),
        bound=bound_of(strategy, (2, 4)),
        question=UNIT,
        **BUDGET,
    )
    grouped = answers_of(strategy, np.zeros(6), range(6), cuts=(2, 4))
    assert grouped.noise_sd == pytest.approx(alone.noise_sd, rel=1e-9)


# What is verified in the pass that asks.


def lopsided():
    """Columns all alike, the first group's rows in every chunk."""
    return (0, 1, 0, 2, 0, 0), np.ones((2, 6)), (1, 3, 5)


@pytest.mark.parametrize(
    "change",
    [
        {"longest": 3.9 * 2**0.5},
        {"group_rows": 3},
        {"chunks": 3},
        {"longest": np.nan},
        {"chunk_rows": 1},
        {"count": 5},
        {"count": 7},
    ],
)
def test_groups_that_are_more_than_was_promised_are_refused(change, monkeypatch):
    groups, strategy, cuts = lopsided()
    monkeypatch.setattr(door, "with_noise", None)
    bound = grouped_bound(strategy, groups, cuts, **change)
    told = set()
    for outputs in (np.zeros(6), np.full(6, np.nan), np.linspace(0, 1, 6)):
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            answers_of(strategy, outputs, groups, cuts=cuts, bound=bound)
        told.add(str(caught.value))
    assert len(told) == 1


@pytest.mark.parametrize("row", range(6))
@pytest.mark.parametrize("factor", [1 + 1e-7, 2.0, np.inf, np.nan])
def test_a_column_that_became_longer_is_refused_wherever_it_is(row, factor, monkeypatch):
    groups, strategy = (0, 1, 0, 1, 0, 1), np.ones((2, 6))
    longer = strategy.copy()
    longer[:, row] *= factor
    monkeypatch.setattr(door, "with_noise", None)
    for cuts in ((), (1, 3, 5)):
        with pytest.raises(ValueError, match="nothing was released"):
            answers_of(strategy, np.zeros(6), groups, cuts=cuts, columns=Picked(longer))


def test_somebody_who_has_one_more_row_than_was_counted_is_refused(monkeypatch):
    """The table changed between the pass that counted and the one that asks."""
    groups, strategy, cuts = lopsided()
    monkeypatch.setattr(door, "with_noise", None)
    with pytest.raises(ValueError, match="nothing was released"):
        answers_of(strategy, np.zeros(6), groups, cuts=cuts, numbers=(0, 0, 0, 2, 0, 0))


@pytest.mark.parametrize(
    "numbers", [None, np.zeros(5, dtype=np.intp), np.zeros(6), np.zeros((6, 1), dtype=np.intp)]
)
def test_rows_that_do_not_say_whose_they_are_are_no_groups(numbers, monkeypatch):
    groups, strategy, _ = lopsided()
    monkeypatch.setattr(door, "with_noise", None)

    class Rows(PrivateChunks):
        def over_rows(self, work, *, what, labels=None):  # noqa: ARG002
            return work(Chunk(0, np.arange(6.0)[:, None], groups=numbers), self.entries)

    with pytest.raises(TypeError, match="number of a group for each"):
        ask_chunks(
            Rows(np.zeros(6)),
            Picked(strategy),
            bound=grouped_bound(strategy, groups),
            question=UNIT,
            **BUDGET,
        )


# Mutations: every step of the proof is needed.


def grown(strategy, groups, **rest):
    """The μ that is spent and claimed where a group has more rows than its columns allow for."""
    bound = grouped_bound(strategy, range(len(groups)), (1, 3, 5), group_rows=9, chunks=9)
    return spent_by(strategy, groups, cuts=(1, 3, 5), bound=bound, **rest)


def test_a_group_that_is_not_verified_spends_more(monkeypatch):
    groups, strategy, _ = lopsided()
    monkeypatch.setattr(room._Together, "within", lambda *_: True)
    spent, claimed = grown(strategy, groups)
    assert spent > 3.9 * claimed


def test_chunks_that_are_not_added_up_let_groups_spend_more(monkeypatch):
    groups, strategy, _ = lopsided()
    whole = room._Together.merge

    def longest(one, other):
        lengths = np.maximum(one.lengths, other.lengths)
        return replace(whole(one, other), lengths=lengths)

    monkeypatch.setattr(room._Together, "merge", longest)
    spent, claimed = grown(strategy, groups)
    assert spent > 3.9 * claimed


def test_the_longest_column_in_place_of_their_sum_lets_groups_spend_more(monkeypatch):
    groups, strategy, _ = lopsided()

    def longest_alone(numbers, weights=None, minlength=0):
        found = np.zeros(minlength)
        np.maximum.at(found, numbers, 1.0 if weights is None else weights)
        return found.astype(np.intp if weights is None else np.float64)

    class Patched:
        def __getattr__(self, name):
            return longest_alone if name == "bincount" else getattr(np, name)

    monkeypatch.setattr(room, "np", Patched())
    monkeypatch.setattr(room._Together, "merge", lambda one, _: one)
    spent, claimed = grown(strategy, groups)
    assert spent > 3.9 * claimed


# Numbers of groups.


def test_equal_groups_have_equal_numbers():
    """Ids come in the form in which they are compared: `cloakgp.privacy.person_ids`."""
    assert group_number("7") == group_number(np.str_("7")) != group_number("07")
    numbers = [group_number(str(one)) for one in range(100_000)]
    assert 0 <= min(numbers) <= max(numbers) < GROUP_NUMBERS
    # As many collisions as chance makes, and not many more.
    assert len(set(numbers)) > 95_000 * 0.99
    assert len({group_number(f"rider-{one}") for one in range(100_000)}) > 95_000 * 0.99
