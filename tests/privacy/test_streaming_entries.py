"""Several outputs of a row in chunks: the guarantee over all of them together, with both noises."""

from __future__ import annotations

import importlib
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laplace_neighbours import furthest, moved
from neighbours import ACHIEVED_SHARE
from private_chunks import Picked, PrivateChunks, bound_of
from recording import recorded
from unit_neighbours import spent_over_units

from cloakgp import DPGPMultiOutputRegressor
from cloakgp.data import ArrayRows
from cloakgp.privacy.ask import ask_chunks
from cloakgp.privacy.groups import lengths_of_entries_together
from cloakgp.privacy.noise import NOISES
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.privacy.questions.counts import CountQuestion
from cloakgp.utils.passes import GROUP_NUMBERS

# The package's functions have the names of their modules.
room = importlib.import_module("cloakgp.privacy.ask")

pytestmark = [
    pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning"),
    pytest.mark.filterwarnings("ignore::cloakgp.design.DesignGapWarning"),
]

UNIT = OutputBounds(0.0, 1.0)
BUDGETS = {"gaussian": (1.0, 1e-5), "laplace": (1.0, 0.0)}
NAMES = list(BUDGETS)


@pytest.fixture(autouse=True)
def few_numbers(monkeypatch):
    """Arrays by the numbers of groups that are quick to add up."""
    monkeypatch.setattr(room, "GROUP_NUMBERS", 8)


def units_of(rows, together, groups=None):
    """The entries that change together: those of a row, or of all rows of a group."""
    owners = np.repeat(np.arange(rows) if groups is None else groups, together)
    return [np.flatnonzero(owners == owner) for owner in dict.fromkeys(owners.tolist())]


def promised(strategy, together, *, noise, groups=None, cuts=(), **changes):
    """What is true of a strategy over entries."""
    law = NOISES[noise]
    lengths = law.lengths_together(strategy, together=together)
    known = {"longest": float(lengths.max()), "noise": law, "together": together}
    if groups is not None:
        summed = np.bincount(groups, weights=lengths)
        most = int(np.bincount(groups).max())
        known |= {"longest": float(summed.max()), "group_rows": most, "chunks": len(cuts) + 1}
    return bound_of(strategy, cuts, **(known | changes))


def answers_of(strategy, entries, together, *, noise, groups=None, cuts=(), **rest):
    epsilon, delta = BUDGETS[noise]
    given_ = {
        "columns": Picked(strategy),
        "bound": promised(strategy, together, noise=noise, groups=groups, cuts=cuts),
        "question": UNIT,
        "epsilon": epsilon,
        "delta": delta,
        "numbers": None if groups is None else np.repeat(groups, together),
    }
    given_ |= rest
    rows = PrivateChunks(np.asarray(entries), tuple(cuts), None, given_.pop("numbers"))
    return ask_chunks(rows, given_.pop("columns"), **given_)


def share_spent(strategy, together, *, noise, groups=None, bounds=UNIT, **rest):
    """How much of what is claimed neighbours spend, over all values of all entries of a unit."""
    count = strategy.shape[1]
    units = units_of(count // together, together, groups)

    def run(entries):
        return answers_of(
            strategy, entries, together, noise=noise, groups=groups, question=bounds, **rest
        )

    if noise == "gaussian":
        spent, claimed = spent_over_units(
            lambda entries: run(entries).guarantee.mu,
            np.full(count, bounds.lo),
            members=units,
            bounds=np.tile([bounds.lo, bounds.hi], (count, 1)),
            inner=2,
        )
        return spent / claimed
    start = np.full(count, bounds.lo)
    near = (moved(start, unit, bounds=(bounds.lo, bounds.hi)) for unit in units)
    answers, _, spent = furthest(run, near)
    return float(spent) / answers.guarantee.epsilon


def alike(rows, together, *, answers=4, seed=0):
    """Columns of one row that point the same way, or the opposite one."""
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(answers, rows))
    signs = rng.choice([-1.0, 1.0], size=rows * together)
    return np.repeat(directions, together, axis=1) * signs * rng.uniform(0.2, 1, rows * together)


def apart(rows, together, *, seed=0):
    """Columns of one row in different questions."""
    rng = np.random.default_rng(seed)
    return np.tile(np.eye(together), rows) * rng.uniform(0.2, 1.0, rows * together)


@pytest.mark.parametrize("noise", NAMES)
@pytest.mark.parametrize("together", [1, 2, 3])
@pytest.mark.parametrize("make", [alike, apart])
@pytest.mark.parametrize("cut", [(), (1,), (1, 2, 3)])
def test_no_row_spends_more_than_claimed_and_none_much_less(noise, together, make, cut):
    strategy = make(4, together, seed=together)
    cuts = tuple(place * together for place in cut)
    bounds = OutputBounds(1e8 - 1, 1e8 + 1) if len(cut) == 1 else UNIT
    spent = share_spent(strategy, together, noise=noise, cuts=cuts, bounds=bounds)
    assert ACHIEVED_SHARE <= spent <= 1


@pytest.mark.parametrize("noise", NAMES)
@pytest.mark.parametrize("cut", [(), (2,), (1, 2, 3)])
@pytest.mark.parametrize("groups", [(0, 1, 1, 2), (0, 0, 0, 0)])
def test_no_person_of_several_rows_spends_more_than_claimed(noise, cut, groups):
    ways = np.array(groups)
    direction = np.random.default_rng(3).normal(size=(3, 4))[:, ways]
    strategy = np.repeat(direction, 2, axis=1) * np.linspace(0.3, 1.0, 8)
    cuts = tuple(place * 2 for place in cut)
    spent = share_spent(strategy, 2, noise=noise, groups=groups, cuts=cuts)
    assert ACHIEVED_SHARE <= spent <= 1


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    together, rows = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    strategy = rng.standard_t(2, size=(draw(st.integers(1, 5)), rows * together))
    strategy *= 10.0 ** draw(st.integers(-6, 6))
    groups = None
    if draw(st.booleans()):
        groups = tuple(rng.integers(0, rows, size=rows).tolist())
    cuts = tuple(together * place for place in range(1, rows) if draw(st.booleans()))
    offset, width = draw(st.sampled_from([0.0, 1e6, -1e9])), 10.0 ** draw(st.integers(-2, 5))
    return strategy, together, groups, cuts, OutputBounds(offset, offset + width)


@pytest.mark.parametrize("noise", NAMES)
@given(problems())
@settings(max_examples=20, deadline=None)
def test_whatever_the_columns(noise, problem):
    strategy, together, groups, cuts, bounds = problem
    spent = share_spent(strategy, together, noise=noise, groups=groups, cuts=cuts, bounds=bounds)
    assert spent <= 1


@pytest.mark.parametrize("noise", NAMES)
def test_several_channels_spend_no_more_than_claimed(noise):
    """Entries move in as many dimensions as there are intervals."""
    question = CountQuestion(np.array([0.0, 1.0, 2.0, 3.0]))
    for strategy in (alike(2, 2, answers=2), apart(2, 2), np.ones((1, 4))):
        draws = []
        for entries in itertools.product((0.5, 1.5, 2.5), repeat=2):
            answers, seen = recorded(
                lambda entries=entries, strategy=strategy: answers_of(
                    strategy, [0.5, 0.5, *entries], 2, noise=noise, question=question
                ),
                noise=noise,
            )
            draws += seen
        norm = 2 if noise == "gaussian" else 1
        for (one, scale), (other, _) in itertools.combinations(draws, 2):
            apart_by = np.linalg.norm(
                [float(int(a) - int(b)) for a, b in zip(one, other, strict=True)], norm
            )
            most = answers.guarantee.mu if noise == "gaussian" else answers.guarantee.epsilon
            assert apart_by / float(scale) <= most


# What is promised is verified in the pass that asks.


def shorter_by(strategy, together, noise):
    """Lengths of which one thing was forgotten."""
    law = NOISES[noise]
    single = law.lengths(strategy).reshape(-1, together)
    whole = law.lengths_together(strategy, together=together)
    return {
        "the sum over entries": single.max(),
        "the sum, divided once more": (whole / together).max(),
        "products of different entries": np.sqrt(np.square(single).sum(axis=1)).max(),
        "a little": whole.max() * (1 - 1e-6),
    }


@pytest.mark.parametrize("noise", NAMES)
@pytest.mark.parametrize("mutation", list(shorter_by(np.ones((1, 2)), 2, "gaussian")))
def test_less_than_all_entries_of_a_row_move_is_refused(noise, mutation):
    strategy = alike(3, 2)
    shorter = float(shorter_by(strategy, 2, noise)[mutation])
    bound = promised(strategy, 2, noise=noise, longest=shorter)
    with pytest.raises(ValueError, match="nothing was released"):
        answers_of(strategy, np.zeros(6), 2, noise=noise, bound=bound)


@pytest.mark.parametrize("noise", NAMES)
@pytest.mark.parametrize("mutation", list(shorter_by(np.ones((1, 2)), 2, "gaussian"))[:3])
def test_neighbours_show_it_if_less_were_counted(noise, mutation, monkeypatch):
    """The brute force above is one that would see what is refused here."""
    strategy, law = alike(3, 2), type(NOISES[noise])
    shorter = shorter_by(strategy, 2, noise)[mutation]
    whole = law.lengths_together(NOISES[noise], strategy, together=2).max()
    monkeypatch.setattr(
        law,
        "lengths_together",
        lambda _, columns, *, together: np.full(columns.shape[1] // together, shorter),
    )
    assert shorter < 0.99 * whole
    assert share_spent(strategy, 2, noise=noise) > 1


@pytest.mark.parametrize("groups", [None, (0, 1, 0)])
@pytest.mark.parametrize("cuts", [(1,), (3,), (1, 4), (2, 5)])
def test_a_chunk_that_parts_the_entries_of_a_row_is_refused(cuts, groups):
    strategy, told = alike(3, 2), set()
    for entries in (np.zeros(6), np.full(6, np.nan)):
        with pytest.raises(TypeError, match="all entries of each of its rows") as caught:
            answers_of(strategy, entries, 2, noise="gaussian", groups=groups, cuts=cuts)
        told.add(str(caught.value))
    assert len(told) == 1


def test_entries_of_one_row_in_different_groups_are_refused():
    with pytest.raises(TypeError, match="of one group"):
        answers_of(
            alike(2, 2), np.zeros(4), 2, noise="gaussian", groups=(0, 1), numbers=(0, 1, 1, 1)
        )


def test_a_person_who_has_one_more_row_than_was_counted_is_refused():
    strategy = np.ones((2, 6))
    bound = promised(strategy, 2, noise="gaussian", groups=(0, 1, 2))
    with pytest.raises(ValueError, match="nothing was released"):
        answers_of(strategy, np.zeros(6), 2, noise="gaussian", groups=(0, 1, 1), bound=bound)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 300))
@settings(max_examples=30, deadline=None)
def test_lengths_are_rounded_up(seed, together, answers):
    from fractions import Fraction

    columns = np.random.default_rng(seed).standard_t(1, size=(answers, together))
    exact = [[Fraction(float(entry)) for entry in column] for column in columns.T]
    square = sum(
        abs(sum(a * b for a, b in zip(one, other, strict=True))) for one in exact for other in exact
    )
    [length] = lengths_of_entries_together(columns, together=together)
    assert Fraction(float(length)) ** 2 >= square
    assert float(length) <= math.sqrt(float(square)) * (1 + 1e-9)


# The very columns that fits design, over all outputs of every person of a small table.


@pytest.mark.parametrize("noise", NAMES)
@pytest.mark.parametrize("people", [None, ["ann", "ann", "bob", "cy"]])
@pytest.mark.parametrize("stages", [None, [(0.4, None), (0.6, 1.0)]])
def test_a_fit_in_passes_protects_all_outputs_of_a_person(noise, people, stages, monkeypatch):
    monkeypatch.setattr(room, "GROUP_NUMBERS", GROUP_NUMBERS)
    X = np.array([[0.0], [1.0], [2.0], [3.5]])
    epsilon, delta = (20.0, 1e-3) if noise == "gaussian" else (20.0, 0.0)
    ranges = np.tile([[-1.0, 1.0], [0.0, 10.0]], (4, 1))

    def run(entries):
        model = DPGPMultiOutputRegressor(
            bounds=[(-1, 1), (0, 10)],
            epsilon=epsilon,
            delta=delta,
            noise=noise,
            inducing=3,
            learn=None,
            interval=False,
            stages=stages,
            gap=0.1,
        )
        table = ArrayRows(X, entries.reshape(4, 2), groups=people, chunk_rows=2, jobs=1)
        return model.fit_rows(table).release_

    start, published, spent = np.tile([0.3, 7.0], 4), None, []
    owners = list(range(4)) if people is None else people
    for owner in dict.fromkeys(owners):
        rows = [row for row in range(4) if owners[row] == owner]
        entries = [2 * row + output for row in rows for output in range(2)]
        tried = []
        for outputs in [start, *moved(start, entries, bounds=ranges)]:
            release, draws = recorded(
                lambda outputs=outputs: run(outputs), noise=noise, published=published
            )
            published = [integers for integers, _ in draws] if published is None else published
            tried.append(draws)
        for one, other in itertools.combinations(tried, 2):
            parts = [
                np.array([float(int(a) - int(b)) for a, b in zip(here, there, strict=True)])
                / float(scale)
                for (here, scale), (there, _) in zip(one, other, strict=True)
            ]
            if noise == "gaussian":
                spent.append(math.sqrt(sum(float(part @ part) for part in parts)))
            else:
                spent.append(sum(float(np.abs(part).sum()) for part in parts))
    assert len(published) == (1 if stages is None else 2)
    parts = [one.guarantee for one in release.entries.measurements]
    claimed = (
        math.sqrt(sum(part.mu**2 for part in parts))
        if noise == "gaussian"
        else sum(part.epsilon for part in parts)
    )
    assert 0.5 * claimed < max(spent) <= claimed
