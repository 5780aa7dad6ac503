"""Tables in chunks: the guarantee over all neighbours and chunkings, and what errors may tell."""

from __future__ import annotations

import importlib
import math
import pickle
from contextlib import contextmanager
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neighbours import ACHIEVED_SHARE, door, spent_over_neighbours
from private_chunks import Picked, PrivateChunks, Unread, all_cuts, bound_of
from row_fits import release_rows
from scipy import linalg
from sklearn.gaussian_process.kernels import RBF
from spying_backend import holds

from cloakgp.data import ArrayRows
from cloakgp.fitting import row_learning
from cloakgp.fitting.strategies import Query
from cloakgp.privacy.ask import StrategyBound, ask, ask_chunks
from cloakgp.privacy.entries import INFINITE, MISSING
from cloakgp.privacy.grid import Grid, Magnitudes, Sensitivity, calibrate
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.privacy.rounding import gamma
from cloakgp.utils.passes import Chunk

# The package's functions have the names of their modules.
room = importlib.import_module("cloakgp.privacy.ask")

BUDGET = {"epsilon": 1.0, "delta": 1e-5}
UNIT = OutputBounds(0.0, 1.0)


def answers_of(strategy, outputs, *, bounds=UNIT, cuts=(), order=None, columns=None, **rest):
    settings_ = {"bound": bound_of(strategy, cuts)} | BUDGET | rest
    rows = PrivateChunks(np.asarray(outputs, dtype=np.float64), tuple(cuts), order)
    return ask_chunks(rows, columns or Picked(strategy), question=bounds, **settings_)


def spent_by(strategy, outputs, *, bounds=UNIT, **rest):
    """Return (largest μ over all neighbours, claimed μ)."""
    return spent_over_neighbours(
        lambda moved: answers_of(strategy, moved, bounds=bounds, **rest).guarantee.mu,
        outputs,
        bounds=(bounds.lo, bounds.hi),
    )


@contextmanager
def recorded():
    """Record what would get noise, and return it without."""
    seen = []

    def record(integers, *, scale, sensitivity):
        seen.append((integers.copy(), scale, sensitivity))
        return integers

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cloakgp.privacy.noise.gaussian.add_discrete_gaussian", record)
        yield seen


@pytest.fixture
def noiseless():
    with recorded() as seen:
        yield seen


# The guarantee, on the very integers that get the noise.


@pytest.mark.parametrize("cuts", all_cuts(5))
@pytest.mark.parametrize("ends", [(0.0, 1.0), (1e8 - 1, 1e8 + 1), (-1e9, -1e9 + 0.25)])
def test_no_neighbour_spends_more_than_claimed_in_any_chunking(cuts, ends):
    rng = np.random.default_rng(len(cuts))
    strategy = rng.normal(size=(3, 5)) * np.array([1.0, 1e-3, 1.0, 7.0, 1e-8])
    bounds = OutputBounds(*ends)
    outputs = rng.uniform(*ends, size=5)
    outputs[3] = ends[0]
    spent, claimed = spent_by(strategy, outputs, bounds=bounds, cuts=cuts)
    assert ACHIEVED_SHARE * claimed <= spent <= claimed


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    answers, rows = draw(st.integers(1, 6)), draw(st.integers(2, 10))
    strategy = rng.standard_t(2, size=(answers, rows)) * 10.0 ** draw(st.integers(-6, 6))
    offset = draw(st.sampled_from([0.0, -3.0, 1e6, -1e9]))
    width = 10.0 ** draw(st.integers(-2, 5))
    outputs = rng.uniform(offset - width / 2, offset + 1.5 * width, size=rows)
    outputs[np.square(strategy).sum(axis=0).argmax()] = offset
    cuts = tuple(sorted(draw(st.sets(st.integers(1, rows - 1)))))
    budget = {
        "epsilon": 10.0 ** draw(st.integers(-3, 3)),
        "delta": 10.0 ** draw(st.integers(-12, -1)),
    }
    return strategy, outputs, OutputBounds(offset, offset + width), cuts, budget


@given(problems())
@settings(max_examples=40)
def test_whatever_the_scales_and_the_budget(problem):
    strategy, outputs, bounds, cuts, budget = problem
    spent, claimed = spent_by(strategy, outputs, bounds=bounds, cuts=cuts, **budget)
    assert ACHIEVED_SHARE * claimed <= spent <= claimed


@given(seed=st.integers(0, 2**32 - 1), rows=st.sampled_from([40, 3000]))
@settings(max_examples=10)
def test_rounding_of_long_sums_far_from_zero_is_covered(seed, rows):
    """The chunk's own rounding, of sums in float64 and to integers, stays in the sensitivity."""
    rng = np.random.default_rng(seed)
    strategy = rng.normal(size=(4, 3 * rows)) * 10.0 ** rng.uniform(-8, 8, size=3 * rows)
    bounds = OutputBounds(1e8 - 1, 1e8 + 1)
    outputs = rng.uniform(bounds.lo, bounds.hi, size=3 * rows)
    cuts = (rows, 2 * rows)
    heaviest = int(np.square(strategy).sum(axis=0).argmax())
    with recorded() as seen:
        for end in (bounds.lo, bounds.hi):
            outputs[heaviest] = end
            answers_of(strategy, outputs, bounds=bounds, cuts=cuts)
    (one, _, sensitivity), (other, _, _) = seen
    squared = sum((int(a) - int(b)) ** 2 for a, b in zip(one, other, strict=True))
    assert (ACHIEVED_SHARE * sensitivity) ** 2 <= squared <= sensitivity**2


def test_rounding_to_integers_can_move_every_answer_of_a_chunk():
    """√k steps are counted, and needed: on a coarse grid every answer crosses a half at once."""
    strategy, bounds, apart = np.ones((9, 1)), OutputBounds(-1.0, 1.0), 2e-6
    bound = bound_of(strategy)
    sensitivity = door.integer_sensitivity(
        Magnitudes.of_columns(answers=9, longest=3.0, rows=1, count=1),
        sensitivity=Sensitivity(distance=3 * apart, largest=1.0),
        step=1.0,
    )
    grid = Grid(step=1.0, sensitivity=sensitivity, scale=10.0)
    work = room._Answering(columns=Picked(strategy), bound=bound, question=bounds, grid=grid)
    one, other = (
        work(Chunk(0, np.zeros((1, 1))), np.array([0.5 + side * apart / 2])).integers
        for side in (-1, 1)
    )
    assert np.linalg.norm(other - one) == 3
    assert 3 <= sensitivity <= 4


@given(seed=st.integers(0, 2**32 - 1), rows=st.sampled_from([1, 5, 200]))
def test_magnitudes_from_lengths_bound_every_strategy_of_such_columns(seed, rows):
    rng = np.random.default_rng(seed)
    strategy = rng.normal(size=(4, 3 * rows)) * 10.0 ** rng.uniform(-9, 9, size=3 * rows)
    if seed % 2:
        # Columns all alike: nothing is lost in the bound then.
        strategy = np.repeat(strategy[:, :1], 3 * rows, axis=1)
    lengths = np.sqrt(np.square(strategy).sum(axis=0))
    found = Magnitudes.of_columns(
        answers=4, longest=float(lengths.max()) * (1 + 1e-12), rows=rows, count=3 * rows
    )
    whole = Magnitudes.of(strategy)
    chunks = [Magnitudes.of(part) for part in np.split(strategy, 3, axis=1)]
    assert (found.answers, found.rows) == (4, rows)
    assert found.entry >= whole.entry
    assert found.answer >= whole.answer
    assert found.summed >= max(part.summed for part in chunks) * (1 - 1e-12)
    if seed % 2:
        assert found.summed == pytest.approx(chunks[0].summed, rel=1e-9)
        assert found.answer <= 2.01 * whole.answer * np.sqrt(4)


# Integers: they fit, and add up the same in every way.


@given(
    count=st.sampled_from([1, 10**3, 10**6, 10**9, 10**12, 10**15, 2**52]),
    chunk_rows=st.sampled_from([1, 2**15, 2**20, 2**30]),
    longest=st.sampled_from([1e-90, 1e-9, 1.0, 1e9, 1e90]),
    middle=st.sampled_from([0.0, 1e8, -1e12]),
    width=st.sampled_from([1e-90, 1e-3, 1.0, 2.0, 1e6, 1e90]),
    epsilon=st.sampled_from([1e-9, 1e-3, 1.0, 30.0, 1e4, 1e8]),
    delta=st.sampled_from([1e-25, 1e-14, 1e-6, 0.5, 1 - 1e-9]),
    answers=st.sampled_from([1, 40, 3000]),
)
@settings(max_examples=150)
def test_no_sum_of_integers_can_overflow(
    count, chunk_rows, longest, middle, width, epsilon, delta, answers
):
    """Every partial sum, and ten sds of noise on top of it, fit; or the budget is refused."""
    lo, hi = middle - width / 2, middle + width / 2
    if not lo < hi:
        return
    bounds = OutputBounds.checked((lo, hi))
    bound = StrategyBound(answers=answers, longest=longest, chunk_rows=chunk_rows, count=count)
    sensitivity = Sensitivity.of_one_row(bound.limit, question=bounds)
    magnitudes = Magnitudes.of_columns(
        answers=answers, longest=bound.limit, rows=chunk_rows, count=count
    )
    try:
        grid, guarantee = calibrate(
            magnitudes, sensitivity=sensitivity, epsilon=epsilon, delta=delta
        )
    except ValueError as error:
        refusal = str(error)
    else:
        refusal = ""
    if refusal:
        assert "too small" in refusal
        return
    # The computed sum of a chunk, its rounding, and as many chunks as there are rows.
    one = Fraction(bound.limit) * Fraction(sensitivity.largest)
    total = count * one * (1 + Fraction(gamma(chunk_rows + 2))) / Fraction(grid.step)
    assert total + Fraction(count, 2) + 10 * Fraction(grid.scale) < 2**63
    assert grid.sensitivity * Fraction(grid.step) >= Fraction(bounds.width) * Fraction(longest)
    assert guarantee.delta_at(epsilon) <= delta


@pytest.mark.parametrize("chunk_rows", [2**50 + 1, 2**53 - 2, 2**53, 2**54, 2**60])
def test_chunks_too_long_for_any_proof_are_not_read(chunk_rows):
    """γ_n is infinite at 2⁵³ roundings and negative beyond: so would be the sensitivity."""
    bound = bound_of(np.eye(2), chunk_rows=chunk_rows)
    with pytest.raises(ValueError, match="too many"):
        ask_chunks(Unread(), Picked(np.eye(2)), bound=bound, question=UNIT, **BUDGET)


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_integers_do_not_depend_on_the_order_of_chunks(order, noiseless):
    rng = np.random.default_rng(5)
    strategy = rng.normal(size=(6, 11))
    outputs = rng.uniform(size=11)
    for one in (None, order):
        answers_of(strategy, outputs, cuts=(2, 3, 8), order=one)
    assert np.array_equal(noiseless[0][0], noiseless[1][0])


def test_parts_merge_in_every_way(noiseless):
    rng = np.random.default_rng(6)
    strategy, outputs = rng.normal(size=(3, 7)), rng.uniform(size=7)

    class Tree(PrivateChunks):
        def over_rows(self, work, *, what, labels=None):  # noqa: ARG002
            parts = [
                work(Chunk(row, np.full((1, 1), float(row))), self.entries[[row]])
                for row in range(7)
            ]
            first = parts[0].merge(parts[1]).merge(parts[2].merge(parts[3]))
            return parts[6].merge(parts[4]).merge(first.merge(parts[5]))

    bound = bound_of(strategy, cuts=range(1, 7))
    for rows in (Tree(outputs), PrivateChunks(outputs, tuple(range(1, 7)))):
        ask_chunks(rows, Picked(strategy), bound=bound, question=UNIT, **BUDGET)
    assert np.array_equal(noiseless[0][0], noiseless[1][0])


@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([1e-6, 1.0, 1e6]))
@settings(max_examples=30)
def test_it_answers_what_measure_answers(seed, scale):
    """Without noise both give R (clip(y) − c), apart by their counted roundings; with it, alike."""
    rng = np.random.default_rng(seed)
    strategy = rng.normal(size=(4, 30)) * scale
    outputs = rng.uniform(-2, 3, size=30)
    cuts = tuple(sorted(set(rng.integers(1, 30, size=4).tolist())))
    bounds = OutputBounds(-1.0, 2.5)
    with recorded() as seen:
        chunked = answers_of(strategy, outputs, bounds=bounds, cuts=cuts)
        whole = ask(strategy, outputs, question=OutputBounds.checked((-1.0, 2.5)), **BUDGET)
    steps = [chunked.noise_sd / seen[0][1], whole.noise_sd / seen[1][1]]
    roundings = (len(cuts) + 1) * steps[0] / 2 + steps[1] / 2
    arithmetic = 2 * gamma(40) * np.abs(strategy).sum(axis=1) * 1.75
    assert (np.abs(chunked.values - whole.values)[:, 0] <= roundings + arithmetic).all()
    exact = strategy @ (np.clip(outputs, -1.0, 2.5) - 0.75)
    assert (np.abs(chunked.values[:, 0] - exact) <= roundings + arithmetic).all()
    assert chunked.noise_sd == pytest.approx(whole.noise_sd, rel=2e-9)
    assert chunked.noise_sd >= whole.noise_sd
    for name in ("insecure", "noise"):
        assert getattr(chunked, name) == getattr(whole, name)
    assert chunked.guarantee.answers == whole.guarantee.answers
    assert chunked.guarantee.mu == pytest.approx(whole.guarantee.mu, rel=1e-9)


def test_answers_are_unbiased_with_the_stated_noise():
    strategy = np.random.default_rng(1).normal(size=(2000, 3))
    answers = answers_of(strategy, [0.2, 0.9, 5.0], cuts=(1,))
    noise = answers.values[:, 0] - strategy @ (np.array([0.2, 0.9, 1.0]) - 0.5)
    standardised = noise / answers.noise_sd
    assert abs(standardised.mean()) < 5.5 / math.sqrt(2000)
    assert standardised.std() == pytest.approx(1, abs=5.5 / math.sqrt(4000))


# Mutations: each must be caught by a test above, or refused.


def lopsided():
    """The first chunk's columns are short, the last one's are long."""
    strategy = np.random.default_rng(0).normal(size=(3, 9))
    strategy[:, 6:] *= 5
    return strategy, np.zeros(9), (3, 6)


def unverified(monkeypatch):
    monkeypatch.setattr(
        "cloakgp.privacy.noise.balls.column_lengths", lambda columns: np.zeros(columns.shape[1])
    )


@pytest.mark.parametrize("seen", [slice(0, 3), slice(3, 6), slice(0, 9, 4)])
def test_the_sensitivity_of_some_columns_is_refused_and_would_be_caught(seen, monkeypatch):
    """Mutation: L from another chunk, or from a sample of columns, and nobody verifies it."""
    strategy, outputs, cuts = lopsided()
    longest = float(np.sqrt(np.square(strategy[:, seen]).sum(axis=0).max()))
    bound = bound_of(strategy, cuts, longest=longest)
    if longest >= bound_of(strategy, cuts).longest:
        pytest.skip("the sample has the longest column")
    with pytest.raises(ValueError, match="nothing was released"):
        answers_of(strategy, outputs, cuts=cuts, bound=bound)
    unverified(monkeypatch)
    spent, claimed = spent_by(strategy, outputs, cuts=cuts, bound=bound)
    assert spent > claimed


def test_a_sensitivity_one_percent_short_is_caught(monkeypatch):
    whole = door.integer_sensitivity
    monkeypatch.setattr(
        door, "integer_sensitivity", lambda *args, **kw: int(0.99 * whole(*args, **kw))
    )
    strategy, outputs, cuts = lopsided()
    spent, claimed = spent_by(strategy, outputs, cuts=cuts)
    assert spent > claimed


def test_sums_of_chunks_that_broadcast_are_refused_and_would_be_caught(monkeypatch):
    """A chunk with one answer instead of k would be added to all k: √k times its columns."""
    strategy = np.full((16, 4), 0.25)

    def one_answer_for_all(X):
        rows = X[:, 0].astype(int)
        return strategy[:, rows] if rows[0] == 0 else np.ones((1, len(rows)))

    with pytest.raises(TypeError, match="one question per row"):
        answers_of(strategy, np.zeros(4), cuts=(2,), columns=one_answer_for_all)

    class Trusting(room._Answering):
        def __call__(self, chunk, outputs):
            columns = self.columns(chunk.X)
            integers = door.rounded(columns @ (outputs - 0.5)[:, None], grid=self.grid)
            longest = float(self.bound.noise.lengths(columns).max())
            return room._Answered(
                integers, len(chunk.X), longest <= self.bound.limit, faults=(False, False)
            )

    monkeypatch.setattr(room, "_Answering", Trusting)
    spent, claimed = spent_by(strategy, np.zeros(4), cuts=(2,), columns=one_answer_for_all)
    assert spent > 3 * claimed


def test_one_draw_of_noise_on_the_sum_of_all_chunks(noiseless, monkeypatch):
    strategy, outputs, cuts = lopsided()
    answers = answers_of(strategy, outputs, cuts=cuts)
    ((integers, scale, _),) = noiseless
    assert answers.noise_sd == pytest.approx(scale * answers.values[0, 0] / integers[0], rel=1e-12)
    # Mutation: noise on every chunk is seen as more draws than one.
    noiseless.clear()
    monkeypatch.setattr(
        room,
        "rounded",
        lambda values, *, grid: door.with_noise(
            door.rounded(values, grid=grid), grid=grid, insecure_seed=None
        ).astype(np.int64),
    )
    answers_of(strategy, outputs, cuts=cuts)
    assert len(noiseless) == 4


# What is verified in the pass that asks.


def changed(strategy, row, factor):
    longer = strategy.copy()
    longer[:, row] *= factor
    return longer


@pytest.mark.parametrize("row", range(9))
@pytest.mark.parametrize("factor", [1 + 3e-9, 2.0, 1e60, np.inf, np.nan])
def test_a_column_that_became_longer_is_refused_wherever_it_is(row, factor, monkeypatch):
    """NaN, too, and in every chunk; without a warning that could depend on outputs."""
    strategy = np.random.default_rng(2).choice([-1.0, 1.0], size=(3, 9))
    monkeypatch.setattr(door, "with_noise", None)
    told = set()
    for outputs in (np.zeros(9), np.full(9, 0.5), np.full(9, np.nan), np.linspace(0, 1, 9)):
        with pytest.raises(ValueError, match="nothing was released") as caught:
            answers_of(
                strategy, outputs, cuts=(3, 6), columns=Picked(changed(strategy, row, factor))
            )
        told.add(str(caught.value))
    assert len(told) == 1


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_column_as_long_within_bound_but_for_rounding_is_asked_and_counted(share):
    """The slack that is let through is part of the sensitivity."""
    strategy = np.array([[1.0, 0.3, -0.7]])
    columns = Picked(strategy * (1 + share * room.LENGTH_SLACK))
    spent, claimed = spent_by(strategy, np.zeros(3), cuts=(1,), columns=columns)
    assert spent <= claimed
    assert spent == pytest.approx(claimed, rel=2e-9)


@pytest.mark.parametrize("change", [{"chunk_rows": 2}, {"count": 8}, {"count": 10}])
def test_other_rows_than_were_promised_are_refused(change, noiseless):
    strategy = np.random.default_rng(2).normal(size=(3, 9))
    with pytest.raises(ValueError, match="inputs changed"):
        answers_of(strategy, np.zeros(9), cuts=(3, 6), bound=bound_of(strategy, (3, 6), **change))
    assert noiseless == []


@pytest.mark.parametrize(
    "columns",
    [
        lambda X: np.ones((2, len(X))),
        lambda X: np.ones((1, len(X))),
        lambda X: np.ones((3, 1)),  # noqa: ARG005
        lambda X: np.ones((3, len(X) + 1)),
        lambda X: np.ones(3),  # noqa: ARG005
        lambda X: np.ones((3, len(X)), dtype=np.float32),
        lambda X: np.ones((3, len(X)), dtype=np.longdouble),
        lambda X: np.ones((3, len(X)), dtype=complex),
        lambda X: np.ones((3, len(X)), dtype=object),
    ],
)
def test_columns_of_another_shape_or_precision_are_refused(columns, noiseless):
    strategy = np.ones((3, 6))
    with pytest.raises(TypeError, match="columns must be float64"):
        answers_of(strategy, np.zeros(6), cuts=(2, 4), columns=columns)
    assert noiseless == []


@pytest.mark.parametrize(
    "convert",
    [
        lambda part: part[:1],
        lambda part: np.append(part, 0.0),
        lambda part: part[:, None],
        lambda part: part[0],
        lambda part: part.astype(np.float32),
        lambda part: part.astype(np.longdouble),
        lambda part: part.astype(int),
        lambda part: part.astype(object),
    ],
)
def test_outputs_of_another_shape_or_precision_are_refused(convert, noiseless):
    """In 32 bits the bounds themselves would round, and outputs move by more than their width."""
    strategy = np.ones((3, 6))

    class Odd(PrivateChunks):
        def over_rows(self, work, *, what, labels=None):
            def odd(chunk, part):
                return work(chunk, convert(part))

            return super().over_rows(odd, what=what, labels=labels)

    rows = Odd(np.linspace(0.1, 0.9, 6), (2, 4))
    with pytest.raises(TypeError, match="one float64 entry") as caught:
        ask_chunks(
            rows, Picked(strategy), bound=bound_of(strategy, (2, 4)), question=UNIT, **BUDGET
        )
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert noiseless == []


@pytest.mark.parametrize("longest", [-1.0, np.nan, np.inf, 1e-200, 1e200])
def test_promises_that_cannot_be_kept_are_refused_before_anything_is_read(longest):
    strategy = np.ones((3, 6))
    with pytest.raises(ValueError, match="rescale"):
        ask_chunks(
            Unread(),
            Picked(strategy),
            bound=bound_of(strategy, longest=longest),
            question=UNIT,
            **BUDGET,
        )


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": np.nan}, "epsilon"),
        ({"delta": 1}, "delta"),
        ({"delta": 1e-30}, "too small"),
        ({"question": OutputBounds(1.0, 0.0)}, "below the upper"),
        ({"question": OutputBounds(0.0, np.inf)}, "finite"),
        ({"question": OutputBounds(np.nan, 1.0)}, "finite"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_read(change, complaint):
    strategy = np.eye(2)
    arguments = {"bound": bound_of(strategy), "question": UNIT} | BUDGET | change
    with pytest.raises(ValueError, match=complaint):
        ask_chunks(Unread(), Picked(strategy), **arguments)


def test_bounds_and_lengths_of_low_precision_are_taken_at_their_exact_value():
    """In 32 bits, widths and middles would be rounded before anything is counted."""
    lo, hi = np.float32(0.1), np.float32(16777.3)
    strategy = np.full((1, 2), 0.1)
    bound = bound_of(strategy, longest=np.float32(0.1))
    rounded, exact = OutputBounds(lo, hi), OutputBounds(float(lo), float(hi))
    # As text: numpy compares a float32 with a float64 in 32 bits.
    for name in ("distance", "middle", "width", "largest"):
        assert repr(getattr(rounded, name)) == repr(getattr(exact, name))
    outputs = np.array([float(lo), 1.0])
    spent, claimed = spent_by(strategy, outputs, bounds=OutputBounds(lo, hi), bound=bound)
    assert spent <= claimed


@pytest.mark.parametrize("precision", [np.float16, np.float32])
def test_budgets_of_low_precision_are_taken_at_their_exact_value(precision):
    epsilon, delta = precision(0.1), precision(0.1)
    guarantee = answers_of(np.eye(2), [0.0, 1.0], epsilon=epsilon, delta=delta).guarantee
    assert guarantee.delta_at(float(epsilon)) <= float(delta)


@pytest.mark.parametrize(("answers", "longest"), [(0, 0.0), (0, 1.0), (3, 0.0)])
def test_questions_that_ask_nothing_read_nothing_and_cost_nothing(answers, longest):
    bound = StrategyBound(answers=answers, longest=longest, chunk_rows=2, count=4)
    found = ask_chunks(
        Unread(), Picked(np.ones((answers, 4))), bound=bound, question=UNIT, **BUDGET
    )
    assert found.values.tolist() == [[0.0]] * answers
    assert found.noise_sd == found.guarantee.mu == 0


def test_seeded_noise_repeats_and_says_so():
    strategy, outputs, cuts = lopsided()
    first, second = (answers_of(strategy, outputs, cuts=cuts, insecure_seed=0) for _ in range(2))
    assert np.array_equal(first.values, second.values)
    assert first.insecure
    assert not np.array_equal(
        first.values, answers_of(strategy, outputs, cuts=cuts, insecure_seed=1).values
    )
    unseeded = [answers_of(strategy, outputs, cuts=cuts) for _ in range(2)]
    assert not unseeded[0].insecure
    assert not np.array_equal(unseeded[0].values, unseeded[1].values)


# What may be told of outputs: that some are missing or infinite, and nothing else.

SECRET = 0.7310585786300049


@pytest.mark.parametrize("number", range(9))
@pytest.mark.parametrize("fault", [np.nan, np.inf, -np.inf])
def test_faults_do_not_tell_where_they_are(number, fault, noiseless):
    strategy = np.ones((2, 9))
    outputs = np.full(9, SECRET)
    outputs[number] = fault
    with pytest.raises(ValueError, match="y contains") as caught:
        answers_of(strategy, outputs, cuts=(3, 6))
    assert str(caught.value) == (MISSING if np.isnan(fault) else INFINITE)
    assert "7310" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert noiseless == []


@pytest.mark.parametrize("places", list(permutations([0, 4, 8], 2)))
@pytest.mark.parametrize("order", [None, (2, 1, 0), (1, 2, 0)])
def test_two_faults_do_not_tell_which_came_first(places, order):
    """Missing and infinite, in the same chunk or in others, in any order: one message."""
    outputs = np.full(9, SECRET)
    outputs[places[0]], outputs[places[1]] = np.nan, np.inf
    for cuts in ((3, 6), (1, 5)):
        with pytest.raises(ValueError, match="y contains") as caught:
            answers_of(np.ones((2, 9)), outputs, cuts=cuts, order=order)
        assert str(caught.value) == MISSING


def test_changed_inputs_are_told_before_any_fault_of_outputs():
    strategy = np.ones((2, 9))
    outputs = np.full(9, np.nan)
    for columns in (Picked(changed(strategy, 8, 2.0)), Picked(changed(strategy, 0, 2.0))):
        with pytest.raises(ValueError, match="inputs changed"):
            answers_of(strategy, outputs, cuts=(3, 6), columns=columns)


def test_nothing_is_drawn_before_all_is_well_and_one_may_try_again(noiseless):
    """What fails has published nothing, so the next attempt costs what a first one does."""
    strategy, outputs, cuts = lopsided()
    for bad in (changed(strategy, 0, 100.0), None):
        with pytest.raises(ValueError, match=r"nothing was released|y contains"):
            answers_of(
                strategy,
                outputs if bad is not None else np.full(9, np.nan),
                cuts=cuts,
                columns=Picked(strategy if bad is None else bad),
            )
    assert noiseless == []
    assert answers_of(strategy, outputs, cuts=cuts).guarantee.answers == 3
    assert len(noiseless) == 1


def test_one_output_does_not_change_how_others_are_read(noiseless):
    """Every other chunk's integers, and every other row's share, are the same for neighbours."""
    rng = np.random.default_rng(3)
    strategy, outputs = np.eye(9), rng.uniform(size=9)
    answers_of(strategy, outputs, cuts=(3, 6))
    for extreme in (1e308, -1e308, 5e-324, 0.0, -0.0):
        moved = outputs.copy()
        moved[4] = extreme
        answers_of(strategy, moved, cuts=(3, 6))
        same = np.delete(noiseless[-1][0] == noiseless[0][0], 4)
        assert same.all()


def test_what_travels_to_the_rows_holds_no_output_and_what_comes_back_shows_none():
    """The work is public; its result, which is not, does not show itself."""
    sent, back = [], []

    class Spied(PrivateChunks):
        def over_rows(self, work, *, what, labels=None):
            sent.extend([pickle.dumps(work), repr(work).encode()])

            def watched(chunk, outputs):
                back.append(pickle.loads(sent[0])(chunk, outputs))
                return back[-1]

            found = super().over_rows(watched, what=what, labels=labels)
            back.append(found)
            return found

    strategy = np.array([[1.0, 0.5, -0.25], [0.5, 1.0, 2.0]])
    outputs = np.array([SECRET, 0.123456789, 0.987654321])
    ask_chunks(
        Spied(outputs, (1,)),
        Picked(strategy),
        bound=bound_of(strategy, (1,)),
        question=UNIT,
        **BUDGET,
    )
    assert not any(holds(one, [*outputs, *(strategy @ (outputs - 0.5))]) for one in sent)
    for one in back:
        shown = f"{one} {one!r}"
        assert not any(str(abs(int(integer))) in shown for integer in one.integers.ravel())


def test_who_watches_is_told_the_same_of_neighbours():
    strategy = np.random.default_rng(4).normal(size=(3, 10))
    X = np.arange(10.0)[:, None]
    told = {}
    for name, end in (("one", 0.0), ("other", 1.0), ("faulty", np.nan)):
        heard = told.setdefault(name, [])
        outputs = np.full(10, 0.5)
        outputs[7] = end
        rows = ArrayRows(X, outputs, chunk_rows=4, jobs=1).report_to(
            lambda *words, heard=heard: heard.append(words)
        )
        try:
            ask_chunks(
                rows, Picked(strategy), bound=bound_of(strategy, (4, 8)), question=UNIT, **BUDGET
            )
        except ValueError as error:
            heard_error = str(error)
    assert heard_error == MISSING
    assert told["one"] == told["other"] == told["faulty"]
    assert [done for _, done, _ in told["one"]] == [4, 8, 10]


def test_every_number_is_a_function_of_what_the_sampler_returned(monkeypatch):
    """The same draw for neighbours: identical answers, to the last bit."""
    monkeypatch.setattr(
        "cloakgp.privacy.noise.gaussian.add_discrete_gaussian",
        lambda integers, **_: np.arange(len(integers)) * 2**38,
    )
    strategy, outputs, cuts = lopsided()
    moved = outputs.copy()
    moved[8] = 1.0
    one, other = (answers_of(strategy, each, cuts=cuts) for each in (outputs, moved))
    assert one.values.tobytes() == other.values.tobytes()
    assert (one.noise_sd, one.guarantee) == (other.noise_sd, other.guarantee)


# The sensitivity at scale: over every column, had again in another way.


def columns_again(release, X):
    """The columns of rows from the rule's definition: explicit kernels, ν by bisection."""
    prior, rule = release.prior, release.measurements[0].strategy.rule

    def kernel(one, other):
        scaled = (one[:, None] - other[None]) / prior.kernel.length_scale
        return np.exp(-0.5 * np.square(scaled).sum(axis=-1))

    among = kernel(prior.inducing, prior.inducing)
    root = linalg.cholesky(among + 1e-8 * np.eye(len(among)), lower=True)
    features = linalg.inv(root) @ kernel(prior.inducing, X)
    noise = prior.noise_variance + np.maximum(1.0 - np.square(features).sum(axis=0), 0.0)
    wanted = rule.matrix @ features
    low = np.zeros(len(X))
    high = np.linalg.norm(wanted, axis=0)
    curved = rule.curvatures[:, None] * noise
    for _ in range(70):
        middle = (low + high) / 2
        too_long = np.square(wanted / (middle + curved)).sum(axis=0) > 1
        low, high = np.where(too_long, middle, low), np.where(too_long, high, middle)
    return features, noise, wanted / (high + curved)


def check_every_column(count, chunk_rows):
    rng = np.random.default_rng(11)
    X = rng.uniform(0, 10, size=(count, 2))
    outputs = np.sin(X[:, 0]) + rng.normal(size=count)
    bounds = OutputBounds(-3.0, 4.0)
    release = release_rows(
        ArrayRows(X, outputs, chunk_rows=chunk_rows, jobs=1),
        bounds=bounds,
        query=Query(X=rng.uniform(0, 10, size=(30, 2))),
        kernel=RBF(4.0),
        noise_variance=1.0,
        inducing=rng.uniform(0, 10, size=(8, 2)),
        gap=1e-2,
        **BUDGET,
    )
    [measurement] = release.measurements
    strategy = measurement.strategy
    answers = strategy.n_answers
    crossed, noises, totals = (
        np.zeros((answers, 8)),
        np.zeros((answers, answers)),
        np.zeros(answers),
    )
    longest, seen = 0.0, 0
    for start in range(0, count, 20_000):
        features, noise, columns = columns_again(release, X[start : start + 20_000])
        lengths = np.sqrt(np.square(columns).sum(axis=0))
        longest, seen = max(longest, float(lengths.max())), seen + len(lengths)
        crossed += columns @ features.T
        noises += columns @ (noise[:, None] * columns.T)
        totals += columns @ np.ones(len(lengths))
    assert seen == count == release.n_rows
    # No column of any row moves answers by more than the noise was made for.
    sensitivity = release.guarantee.mu * measurement.answers.noise_sd
    assert longest <= strategy.longest * (1 + 1e-9)
    assert bounds.width * longest <= sensitivity * (1 + 1e-8)
    assert bounds.width * longest >= sensitivity * (1 - 1e-6)
    assert release.guarantee.delta_at(1.0) <= 1e-5
    for found, again in (
        (strategy.sums[0].channels[0].features, crossed),
        (strategy.sums[0].channels[0].noise, noises),
        (strategy.totals, totals),
    ):
        np.testing.assert_allclose(found, again, rtol=1e-6, atol=1e-6 * np.abs(again).max())


def test_the_longest_of_fifty_thousand_columns(monkeypatch):
    monkeypatch.setattr("cloakgp.criteria.bayes.DESIGN_CELLS", 60)
    monkeypatch.setattr(row_learning, "LEARNING_CELLS", 20)
    check_every_column(50_000, 9_000)


@pytest.mark.slow
def test_the_longest_of_a_million_columns():
    check_every_column(1_000_000, 2**15)
