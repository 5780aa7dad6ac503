"""Labels in chunks: the guarantee over all neighbours and chunkings, and what errors may tell."""

from __future__ import annotations

import importlib
import math
import pickle
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from label_neighbours import encoded_of, spent_over_labels
from neighbours import ACHIEVED_SHARE, door
from private_chunks import Picked, PrivateChunks, Unread, all_cuts, bound_of
from spying_backend import holds

from cloakgp.privacy.ask import StrategyBound, ask, ask_chunks
from cloakgp.privacy.grid import Grid, Magnitudes, Sensitivity
from cloakgp.privacy.questions.classes import Classes
from cloakgp.utils.passes import Chunk

# The package's functions have the names of their modules.
room = importlib.import_module("cloakgp.privacy.ask")

BUDGET = {"epsilon": 1.0, "delta": 1e-5}
NAMES = ("ant", "bee", "cat", "dog", "eel")
SECRET = "quinsy-7123456"


def answers_of(strategy, labels, *, count, cuts=(), order=None, columns=None, **rest):
    settings_ = {"bound": bound_of(strategy, cuts)} | BUDGET | rest
    rows = PrivateChunks(np.array(labels, dtype=object), tuple(cuts), order)
    return ask_chunks(
        rows, columns or Picked(strategy), question=Classes(NAMES[:count]), **settings_
    )


def spent_by(strategy, labels, *, count, **rest):
    """Return (largest μ over all neighbours, claimed μ)."""
    return spent_over_labels(
        lambda moved: answers_of(strategy, moved, count=count, **rest).guarantee.mu,
        labels,
        classes=NAMES[:count],
    )


@pytest.fixture
def drawn(monkeypatch):
    """What would get noise; it is returned without."""
    seen = []

    def record(integers, *, scale, sensitivity):
        seen.append((integers.copy(), scale, sensitivity))
        return integers

    monkeypatch.setattr("cloakgp.privacy.noise.gaussian.add_discrete_gaussian", record)
    return seen


# The guarantee, on the very integers that get the noise.


@pytest.mark.parametrize("cuts", all_cuts(4))
@pytest.mark.parametrize("count", [2, 3, 5])
def test_no_neighbour_spends_more_than_claimed_in_any_chunking(cuts, count):
    rng = np.random.default_rng(len(cuts))
    strategy = rng.normal(size=(3, 4)) * np.array([1.0, 1e-3, 7.0, 1e-8])
    labels = [NAMES[number % count] for number in range(4)]
    spent, claimed = spent_by(strategy, labels, count=count, cuts=cuts)
    assert ACHIEVED_SHARE * claimed <= spent <= claimed


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    answers, rows, count = (draw(st.integers(*ends)) for ends in ((1, 5), (2, 8), (2, 5)))
    strategy = rng.standard_t(2, size=(answers, rows)) * 10.0 ** draw(st.integers(-6, 6))
    strategy *= 10.0 ** rng.uniform(-6, 6, size=rows)
    labels = [NAMES[place] for place in rng.integers(0, count, size=rows)]
    cuts = tuple(sorted(draw(st.sets(st.integers(1, rows - 1)))))
    budget = {
        "epsilon": 10.0 ** draw(st.integers(-3, 3)),
        "delta": 10.0 ** draw(st.integers(-12, -1)),
    }
    return strategy, labels, count, cuts, budget


@given(problems())
@settings(max_examples=30)
def test_whatever_the_scales_and_the_budget(problem):
    strategy, labels, count, cuts, budget = problem
    spent, claimed = spent_by(strategy, labels, count=count, cuts=cuts, **budget)
    assert ACHIEVED_SHARE * claimed <= spent <= claimed


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("rows", [40, 3000])
def test_rounding_of_long_sums_is_covered(count, rows, drawn):
    rng = np.random.default_rng(rows + count)
    strategy = rng.normal(size=(4, 3 * rows)) * 10.0 ** rng.uniform(-8, 8, size=3 * rows)
    labels = np.array(NAMES)[rng.integers(0, count, size=3 * rows)].astype(object)
    heaviest = int(np.square(strategy).sum(axis=0).argmax())
    for label in (NAMES[0], NAMES[count - 1]):
        labels[heaviest] = label
        answers_of(strategy, labels, count=count, cuts=(rows, 2 * rows))
    (one, _, sensitivity), (other, _, _) = drawn
    squared = sum((int(a) - int(b)) ** 2 for a, b in zip(one, other, strict=True))
    assert (ACHIEVED_SHARE * sensitivity) ** 2 <= squared <= sensitivity**2


@pytest.mark.parametrize(("count", "channels"), [(2, 1), (3, 3), (5, 5)])
def test_rounding_to_integers_is_counted_for_every_channel(count, channels):
    """√(kC) steps, of which those of the two channels that move are needed on a coarse grid."""
    classes = Classes(NAMES[:count])
    strategy = np.full((9, 1), 0.5)
    sensitivity = door.integer_sensitivity(
        Magnitudes.of_columns(answers=9, longest=1.5, rows=1, count=1),
        sensitivity=Sensitivity.of_one_row(1.5, question=classes),
        step=1.0,
    )
    grid = Grid(step=1.0, sensitivity=sensitivity, scale=10.0)
    work = room._Answering(
        columns=Picked(strategy), bound=bound_of(strategy), question=classes, grid=grid
    )
    found = [
        work(Chunk(0, np.zeros((1, 1))), np.array([place])).integers
        for place in np.arange(count, dtype=np.float64)
    ]
    moved = max(np.linalg.norm(one - other) for one, other in permutations(found, 2))
    assert found[0].shape == (9, channels)
    distance = 1.5 * classes.distance
    assert moved <= distance + math.sqrt(9 * channels) <= sensitivity
    assert sensitivity == math.ceil(distance + math.sqrt(9 * channels))


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_integers_do_not_depend_on_the_order_of_chunks(count, order, drawn):
    rng = np.random.default_rng(5)
    strategy = rng.normal(size=(6, 11))
    labels = [NAMES[place] for place in rng.integers(0, count, size=11)]
    for one in (None, order):
        answers_of(strategy, labels, count=count, cuts=(2, 3, 8), order=one)
    assert np.array_equal(drawn[0][0], drawn[1][0])


@pytest.mark.parametrize("count", [2, 3, 5])
def test_it_answers_what_the_door_for_labels_in_memory_answers(count, drawn):
    rng = np.random.default_rng(count)
    strategy = rng.normal(size=(4, 30))
    labels = [NAMES[place] for place in rng.integers(0, count, size=30)]
    classes = Classes(NAMES[:count])
    chunked = answers_of(strategy, labels, count=count, cuts=(7, 19))
    whole = ask(strategy, labels, question=classes, **BUDGET)
    steps = [
        one.noise_sd / scale for one, (_, scale, _) in zip((chunked, whole), drawn, strict=True)
    ]
    allowed = 3 * steps[0] / 2 + steps[1] / 2 + 1e-13
    assert chunked.values.shape == whole.values.shape == (4, classes.channels)
    assert np.abs(chunked.values - whole.values).max() <= allowed
    assert np.abs(chunked.values - strategy @ encoded_of(classes, labels)).max() <= allowed
    assert chunked.noise_sd == pytest.approx(whole.noise_sd, rel=2e-9)
    assert chunked.noise_sd >= whole.noise_sd
    assert (chunked.noise, chunked.insecure) == (whole.noise, whole.insecure)
    assert chunked.guarantee.answers == whole.guarantee.answers == 4 * classes.channels
    assert chunked.guarantee.mu == pytest.approx(whole.guarantee.mu, rel=1e-9)


# Mutations: each must be caught by a test above, or refused.


def lopsided(count):
    """The first chunk's columns are short, the last one's are long."""
    strategy = np.random.default_rng(0).normal(size=(3, 9))
    strategy[:, 6:] *= 5
    return strategy, [NAMES[number % count] for number in range(9)], (3, 6)


@pytest.mark.parametrize("count", [2, 3])
def test_the_sensitivity_of_one_chunk_is_refused_and_would_be_caught(count, monkeypatch):
    strategy, labels, cuts = lopsided(count)
    first = float(np.sqrt(np.square(strategy[:, :3]).sum(axis=0).max()))
    bound = bound_of(strategy, cuts, longest=first)
    with pytest.raises(ValueError, match="nothing was released"):
        answers_of(strategy, labels, count=count, cuts=cuts, bound=bound)
    monkeypatch.setattr(
        "cloakgp.privacy.noise.balls.column_lengths", lambda columns: np.zeros(columns.shape[1])
    )
    spent, claimed = spent_by(strategy, labels, count=count, cuts=cuts, bound=bound)
    assert spent > claimed


@pytest.mark.parametrize(("count", "short"), [(2, math.sqrt(2)), (3, 1.0), (5, 1.4)])
def test_a_distance_of_another_encoding_is_caught(count, short, monkeypatch):
    """One-hot labels move less than signs, and one indicator less than two."""
    monkeypatch.setattr(Classes, "distance", property(lambda _: short))
    strategy, labels, cuts = lopsided(count)
    spent, claimed = spent_by(strategy, labels, count=count, cuts=cuts)
    assert spent > claimed


@pytest.mark.parametrize("count", [2, 3])
def test_a_sensitivity_one_percent_short_is_caught(count, monkeypatch):
    whole = door.integer_sensitivity
    monkeypatch.setattr(
        door, "integer_sensitivity", lambda *args, **kw: int(0.99 * whole(*args, **kw))
    )
    strategy, labels, cuts = lopsided(count)
    spent, claimed = spent_by(strategy, labels, count=count, cuts=cuts)
    assert spent > claimed


def test_an_encoding_that_looks_at_other_rows_is_caught(monkeypatch):
    """Labels less their mean: all rows move when one does."""
    encoded = Classes.encode
    monkeypatch.setattr(
        Classes, "encode", lambda self, one: encoded(self, one) - encoded(self, one).mean(axis=0)
    )
    strategy = np.array([[1.0, -1.0, -1.0]])
    spent, claimed = spent_by(strategy, ["ant", "bee", "ant"], count=2)
    assert spent > claimed


def test_one_draw_of_noise_for_all_chunks_and_channels(drawn):
    strategy, labels, cuts = lopsided(3)
    answers = answers_of(strategy, labels, count=3, cuts=cuts)
    ((integers, scale, _),) = drawn
    assert integers.shape == (9,)
    assert answers.noise_sd == pytest.approx(scale * answers.values[0, 0] / integers[0], rel=1e-12)


def test_noise_is_that_which_is_stated():
    strategy = np.random.default_rng(1).normal(size=(2000, 3))
    answers = answers_of(strategy, ["ant", "cat", "bee"], count=3, cuts=(1,))
    truth = strategy @ encoded_of(Classes(NAMES[:3]), ["ant", "cat", "bee"])
    standardised = (answers.values - truth) / answers.noise_sd
    assert abs(standardised.mean()) < 5.5 / math.sqrt(6000)
    assert standardised.std() == pytest.approx(1, abs=5.5 / math.sqrt(12000))


# What is verified in the pass that asks.


@pytest.mark.parametrize("row", range(9))
@pytest.mark.parametrize("factor", [1 + 3e-9, 1e60, np.inf, np.nan])
def test_a_column_that_became_longer_is_refused_wherever_it_is(row, factor, monkeypatch):
    strategy = np.random.default_rng(2).choice([-1.0, 1.0], size=(3, 9))
    longer = strategy.copy()
    longer[:, row] *= factor
    monkeypatch.setattr(door, "with_noise", None)
    told = set()
    for labels in (["ant"] * 9, ["bee"] * 9, [SECRET] * 9):
        with pytest.raises(ValueError, match="nothing was released") as caught:
            answers_of(strategy, labels, count=2, cuts=(3, 6), columns=Picked(longer))
        told.add(str(caught.value))
    assert len(told) == 1


@pytest.mark.parametrize("change", [{"chunk_rows": 2}, {"count": 8}, {"count": 10}])
def test_other_rows_than_were_promised_are_refused(change, drawn):
    strategy, labels, cuts = lopsided(2)
    with pytest.raises(ValueError, match="inputs changed"):
        answers_of(strategy, labels, count=2, cuts=cuts, bound=bound_of(strategy, cuts, **change))
    assert drawn == []


@pytest.mark.parametrize("bad", [-1.0, 2.0, 0.5, np.nan, np.inf, -np.inf])
def test_places_that_are_none_are_refused_whoever_read_them(bad, drawn):
    """A place outside would wrap round to another class, or be cut off to one."""
    strategy = np.ones((3, 6))

    class Odd(PrivateChunks):
        def over_rows(self, work, *, what, labels=None):
            def odd(chunk, places):
                places[-1] = bad
                return work(chunk, places)

            return super().over_rows(odd, what=what, labels=labels)

    rows = Odd(np.array(["ant", "bee"] * 3, dtype=object), (2, 4))
    with pytest.raises(ValueError, match="not among the declared classes"):
        ask_chunks(
            rows,
            Picked(strategy),
            bound=bound_of(strategy, (2, 4)),
            question=Classes(NAMES[:2]),
            **BUDGET,
        )
    assert drawn == []


@pytest.mark.parametrize("convert", [np.float32, int, object])
def test_places_of_another_type_are_refused(convert, drawn):
    strategy = np.ones((3, 4))

    class Odd(PrivateChunks):
        def over_rows(self, work, *, what, labels=None):
            def odd(chunk, places):
                return work(chunk, places.astype(convert))

            return super().over_rows(odd, what=what, labels=labels)

    rows = Odd(np.array(["ant", "bee"] * 2, dtype=object), (2,))
    with pytest.raises(TypeError, match="one float64 entry"):
        ask_chunks(
            rows,
            Picked(strategy),
            bound=bound_of(strategy, (2,)),
            question=Classes(NAMES[:2]),
            **BUDGET,
        )
    assert drawn == []


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 1}, "delta"),
        ({"delta": 1e-30}, "too small"),
        ({"question": Classes(("ant",))}, "two are needed"),
        ({"question": Classes(("ant", "bee", "ant"))}, "declared twice"),
        ({"question": Classes(("ant", math.nan))}, "finite"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_read(change, complaint):
    strategy = np.eye(2)
    arguments = {"bound": bound_of(strategy), "question": Classes(NAMES[:2])} | BUDGET | change
    with pytest.raises(ValueError, match=complaint):
        ask_chunks(Unread(), Picked(strategy), **arguments)


@pytest.mark.parametrize(("answers", "longest"), [(0, 0.0), (0, 1.0), (3, 0.0)])
@pytest.mark.parametrize("count", [2, 3])
def test_questions_that_ask_nothing_read_nothing_and_cost_nothing(answers, longest, count):
    classes = Classes(NAMES[:count])
    found = ask_chunks(
        Unread(),
        Picked(np.ones((answers, 4))),
        bound=StrategyBound(answers=answers, longest=longest, chunk_rows=2, count=4),
        question=classes,
        **BUDGET,
    )
    assert found.values.shape == (answers, classes.channels)
    assert not found.values.any()
    assert found.noise_sd == found.guarantee.mu == 0


def test_seeded_noise_repeats_and_says_so():
    strategy, labels, cuts = lopsided(3)
    first, second = (
        answers_of(strategy, labels, count=3, cuts=cuts, insecure_seed=0) for _ in range(2)
    )
    assert np.array_equal(first.values, second.values)
    assert first.insecure
    assert not answers_of(strategy, labels, count=3, cuts=cuts).insecure


# What may be told of labels: that some were not declared, and nothing else.


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("bad", [SECRET, None, math.nan, {"no": "hash"}, "Ant"])
def test_faults_do_not_tell_where_they_are_nor_what(number, bad, drawn):
    labels = ["ant", "bee", "bee"] * 2
    labels[number] = bad
    told = set()
    for cuts, order in product(((), (2, 4), (3,)), (None, "last first")):
        chunks = range(len(cuts) + 1)
        with pytest.raises(ValueError, match="not among the declared classes") as caught:
            answers_of(
                np.ones((2, 6)),
                labels,
                count=2,
                cuts=cuts,
                order=None if order is None else tuple(reversed(chunks)),
            )
        told.add(str(caught.value))
        assert caught.value.__cause__ is caught.value.__context__ is None
    assert told == set(Classes(NAMES[:2]).complaints)
    assert not any(SECRET in one for one in told)
    assert drawn == []


def test_one_label_does_not_change_how_others_are_read(drawn):
    labels = [NAMES[number % 3] for number in range(9)]
    answers_of(np.eye(9), labels, count=3, cuts=(3, 6))
    for other in NAMES[:3]:
        moved = list(labels)
        moved[4] = other
        answers_of(np.eye(9), moved, count=3, cuts=(3, 6))
        same = (drawn[-1][0] == drawn[0][0]).reshape(9, 3)
        assert np.delete(same, 4, axis=0).all()


def test_what_travels_to_the_rows_holds_no_label_and_what_comes_back_shows_none():
    sent, back = [], []

    class Spied(PrivateChunks):
        def over_rows(self, work, *, what, labels=None):
            sent.extend([pickle.dumps(work), repr(work).encode()])

            def watched(chunk, places):
                back.append(pickle.loads(sent[0])(chunk, places))
                return back[-1]

            found = super().over_rows(watched, what=what, labels=labels)
            back.append(found)
            return found

    strategy = np.array([[1.0, 0.5, -0.25], [0.5, 1.0, 1.7]])
    labels = np.array(["cat", "ant", "cat"], dtype=object)
    classes = Classes(NAMES[:3])
    ask_chunks(
        Spied(labels, (1,)),
        Picked(strategy),
        bound=bound_of(strategy, (1,)),
        question=classes,
        **BUDGET,
    )
    unnoised = strategy @ encoded_of(classes, labels)
    assert not any(holds(one, unnoised.ravel()) for one in sent)
    for one in back:
        shown = f"{one} {one!r}"
        assert not any(str(abs(int(integer))) in shown for integer in one.integers.ravel())


def test_every_number_is_a_function_of_what_the_sampler_returned(monkeypatch):
    """The same draw for neighbours: identical answers, to the last bit."""
    monkeypatch.setattr(
        "cloakgp.privacy.noise.gaussian.add_discrete_gaussian",
        lambda integers, **_: np.arange(len(integers)) * 2**38,
    )
    strategy, labels, cuts = lopsided(3)
    moved = [*labels[:8], "ant"]
    one, other = (answers_of(strategy, each, count=3, cuts=cuts) for each in (labels, moved))
    assert one.values.tobytes() == other.values.tobytes()
    assert (one.noise_sd, one.guarantee) == (other.noise_sd, other.guarantee)
