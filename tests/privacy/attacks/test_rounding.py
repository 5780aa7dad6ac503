"""Attacks on floating point: outputs whose last digits matter, and sums in another order.

The worst output of a table is sought among doubles at and near the ends of the bounds, with full
mantissas; and two neighbours are summed in different orders, on one thread and on two. What moves
then is more than exact arithmetic says, and must still be within what is stated: compared in
Python integers.
"""

from __future__ import annotations

import numpy as np
import pytest
from attacks.checker import Attack, Outcome, check
from attacks.families import Table
from threadpoolctl import threadpool_limits

from cloakgp.privacy import OutputBounds, ask
from cloakgp.privacy.questions.classes import Classes

BOUNDS = [
    (0.1, 0.3),
    (-1 / 3, 1e-17),
    (1e16, 1e16 + 2.0),
    (-1e15, -1e15 + 0.125),
    (4e-99, 5e-99),
    (-9e99, 3e-5),
    (2.0**-1074, 1.0),
    (np.pi * 1e50, np.pi * 1e50 * (1 + 1e-15)),
]


def near_the_ends(bounds: tuple[float, float]) -> list[float]:
    lo, hi = bounds
    middle = lo + (hi - lo) / 2
    inner = [np.nextafter(lo, hi), np.nextafter(hi, lo), middle, np.nextafter(middle, hi)]
    return [lo, hi, *inner, lo - abs(lo) - 1.0, hi + abs(hi) + 1.0]


def attack(mechanism, *, bounds, rows, seed, threads=False, order=False):
    """Attack a mechanism with a random strategy; odd data sets are summed otherwise."""
    generator = np.random.default_rng(seed)
    strategy = generator.normal(size=(3, rows)) * 2.0 ** generator.integers(-30, 3, size=(3, rows))
    values = near_the_ends(bounds)
    base = generator.choice(values, size=rows)
    widest = int(np.square(strategy).sum(axis=0).argmax())
    neighbourhoods = []
    for row in {widest, 0, rows - 1}:
        several = [base.copy() for _ in values]
        for outputs, value in zip(several, values, strict=True):
            outputs[row] = value
        neighbourhoods.append(several)
    odd = {id(one) for several in neighbourhoods for one in several[1::2]}

    def run(y, _):
        questions = strategy
        if order and id(y) in odd:
            # The same numbers: matrix products go through them in another order.
            questions = np.asfortranarray(strategy)
        with threadpool_limits(1 + (threads and id(y) in odd), user_api="blas"):
            found = mechanism(questions, y, bounds)
        return Outcome((found.guarantee,), found.values.tobytes())

    return Attack("rounding", lambda _: neighbourhoods, run, tight=None)


def gaussian(strategy, y, bounds):
    return ask(strategy, y, question=OutputBounds.checked(bounds), epsilon=1.0, delta=1e-6)


def laplace(strategy, y, bounds):
    # Noise is on single bins: other strategies move several integers.
    bins = np.zeros_like(strategy)
    bins[np.arange(strategy.shape[1]) % 3, np.arange(strategy.shape[1])] = strategy[0]
    return ask(
        bins, y, question=OutputBounds.checked(bounds), epsilon=1.0, delta=0.0, noise="laplace"
    )


def grouped(strategy, y, bounds):
    groups = np.arange(len(y)) // 2
    return ask(
        strategy, y, question=OutputBounds.checked(bounds), epsilon=1.0, delta=1e-6, groups=groups
    )


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("mechanism", [gaussian, laplace, grouped])
def test_last_digits_tell_nothing(mechanism, bounds):
    for rows in (5, 64):
        check(attack(mechanism, bounds=bounds, rows=rows, seed=rows, order=True))


@pytest.mark.parametrize("mechanism", [gaussian, laplace])
def test_sums_on_one_thread_and_on_two_tell_nothing(mechanism):
    for bounds in BOUNDS[:2]:
        check(attack(mechanism, bounds=bounds, rows=30_000, seed=1, threads=True, order=True))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("mechanism", [gaussian, laplace, grouped])
def test_last_digits_tell_nothing_of_many_tables(mechanism, bounds, seed):
    check(attack(mechanism, bounds=bounds, rows=1 + 7 * seed, seed=seed, order=True))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("mechanism", [gaussian, laplace])
def test_threads_tell_nothing_of_many_tables(mechanism, seed):
    for bounds in BOUNDS:
        check(attack(mechanism, bounds=bounds, rows=60_000, seed=seed, threads=True, order=True))


@pytest.mark.parametrize("classes", [("a", "b"), ("a", "b", "c")])
def test_labels_are_summed_as_they_should(classes):
    """V has thirds, which no double holds."""
    generator = np.random.default_rng(5)
    strategy = generator.normal(size=(3, 40)) * 2.0 ** generator.integers(-30, 3, size=(3, 40))
    base = generator.choice(classes, size=40).tolist()
    neighbourhoods = []
    for row in range(40):
        several = [list(base) for _ in classes]
        for labels, label in zip(several, classes, strict=True):
            labels[row] = label
        neighbourhoods.append(several)

    def run(y, _):
        found = ask(strategy, y, question=Classes(classes), epsilon=1.0, delta=1e-6)
        return Outcome((found.guarantee,), found.values.tobytes())

    check(Attack("labels", lambda _: neighbourhoods, run, tight=1e-6))


@pytest.mark.slow
def test_groups_of_twenty_are_measured_exactly():
    """The worst signs of twenty rows, over all of them, move answers as far as is stated."""
    generator = np.random.default_rng(20)
    strategy = generator.normal(size=(4, 23))
    signs = 1.0 - 2.0 * ((np.arange(2**19)[:, None] >> np.arange(20)) & 1)
    moved = np.square(signs @ strategy[:, :20].T).sum(axis=1)
    worst = signs[moved.argmax()]
    groups = [0] * 20 + [1, 2, 3]
    lo, hi = bounds = (-1.0, 4.0)
    corners = [np.concatenate([np.where(one > 0, lo, hi), [lo, hi, lo]]) for one in (worst, -worst)]

    def run(y, _):
        found = ask(
            strategy,
            y,
            question=OutputBounds.checked(bounds),
            epsilon=1.0,
            delta=1e-6,
            groups=groups,
        )
        return Outcome((found.guarantee,), found.values.tobytes())

    check(Attack("twenty", lambda _: [corners], run, tight=1e-6))


def test_the_tables_are_at_their_ends():
    assert set(Table.of(1).outputs) == {-3.3, 7.1}
