"""Bounds on what any strategy explains, against a conic solver; and when a search ends."""

from __future__ import annotations

import importlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.design.weak_duality import (
    CHECKS,
    PACE,
    Point,
    Record,
    RowSupports,
    Tangent,
    row_supports,
)

tasks = importlib.import_module("bayes_tasks")
Task, unit_columns, random_questions = tasks.Task, tasks.unit_columns, tasks.random_questions


def tangent(task, strategy):
    """The slopes and the tangent at a strategy, by dense inverses."""
    answers = strategy @ task.outputs @ strategy.T + task.noise_sd**2 * np.eye(len(strategy))
    weights = np.linalg.solve(answers, strategy @ task.crossed)
    slopes = (task.crossed - task.outputs @ strategy.T @ weights) / task.noise_sd
    least = float(np.linalg.eigvalsh(task.outputs)[0])
    return slopes, Tangent(
        answered=strategy @ slopes,
        gram=slopes.T @ slopes,
        noise_ratio=task.noise_sd**2 / least,
    )


def best_known(task, seed):
    """The most that is explained by any of many strategies, the designed one among them."""
    rng = np.random.default_rng(seed)
    rows = len(task.noise)
    candidates = [random_questions(rng, rows) for _ in range(20)]
    candidates += [np.eye(rows), np.ones((1, rows)), task.design(gap=1e-2).strategy]
    return task.prior_variance - min(task.unexplained(candidate) for candidate in candidates)


@given(seed=st.integers(0, 2**32 - 1), noise_sd=st.floats(0.03, 30.0), share=st.floats(0.01, 10.0))
def test_no_strategy_explains_more_whatever_the_supports(seed, noise_sd, share):
    """Any v > 0 at any strategy, the smallest of which all directions are clipped for."""
    task = Task.drawn(seed, rows=6, points=3, noise_sd=noise_sd)
    rng = np.random.default_rng(seed + 1)
    strategy = unit_columns(rng.normal(size=(rng.integers(1, 5), 6)))
    slopes, here = tangent(task, strategy)
    supports = share * np.square(slopes).sum(axis=1) * np.exp(rng.normal(size=6))
    bound = here.excess((slopes / supports[:, None]).T @ slopes, cost=float(supports.sum()))
    explained = task.prior_variance - task.unexplained(strategy)
    assert best_known(task, seed) <= explained + bound + 1e-9 * task.prior_variance


@pytest.mark.parametrize("noise_sd", [0.03, 0.3, 3.0])
@pytest.mark.parametrize("seed", range(4))
def test_bounds_are_tight_at_the_optimum_and_close_near_it(seed, noise_sd):
    task = Task.drawn(seed, rows=6, points=3, noise_sd=noise_sd)
    best = task.design(gap=1e-6).strategy
    rng = np.random.default_rng(seed)
    for size, allowed in ((0.0, 1e-5), (1e-4, 1e-2)):
        strategy = unit_columns(best + size * rng.normal(size=best.shape))
        slopes, here = tangent(task, strategy)
        supports = RowSupports.of(slopes, answered=here.answered)
        excess = supports.excess(here.answered, noise_ratio=here.noise_ratio)
        least = task.least()
        assert task.unexplained(strategy) - excess <= least * (1 + 1e-6)
        assert excess <= allowed * task.unexplained(strategy)


def test_clipping_pays_for_missed_directions_alone(rng):
    """Scaling v until it dominates would pay for all rows."""
    task = Task.drawn(1, rows=30, points=8, noise_sd=0.5)
    best = task.design(gap=1e-5).strategy
    slopes, here = tangent(task, unit_columns(best + 1e-3 * rng.normal(size=best.shape)))
    supports = row_supports(slopes, here.answered, floor=1e-12)
    squares = (slopes / supports[:, None]).T @ slopes
    largest = float(np.linalg.eigvalsh(squares)[-1])
    scaled = largest * supports.sum() - np.square(here.answered).sum()
    assert largest > 1
    assert here.excess(squares, cost=float(supports.sum())) < 0.5 * scaled
    # Without knowing how small the eigenvalues of K_y may be, nothing can be clipped.
    blind = replace(here, noise_ratio=np.finfo(np.float64).max)
    assert blind.excess(squares, cost=float(supports.sum())) == pytest.approx(scaled, rel=1e-9)


@given(seed=st.integers(0, 2**32 - 1), cut=st.integers(0, 6))
def test_rows_may_come_in_parts(seed, cut):
    task = Task.drawn(seed, rows=6, points=3)
    strategy = random_questions(np.random.default_rng(seed), 6)
    slopes, here = tangent(task, strategy)
    whole = RowSupports.of(slopes, answered=here.answered)
    parts = [RowSupports.of(part, answered=here.answered) for part in np.split(slopes, [cut])]
    merged = parts[0].merge(parts[1])
    for name in ("gram", "totals", "squares"):
        one, other = getattr(merged, name), getattr(whole, name)
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12 * np.abs(other).max())


def test_rows_and_answers_that_tell_nothing():
    nothing = RowSupports.of(np.zeros((3, 2)), answered=np.zeros((0, 2)))
    assert nothing.excess(np.zeros((0, 2)), noise_ratio=1.0) == pytest.approx(0.0, abs=1e-100)
    unasked = RowSupports.of(np.ones((3, 2)), answered=np.zeros((1, 2)))
    # Whoever asks nothing may miss all that is there: the elliptope's largest tr(Eᵀ G E).
    assert 18.0 <= unasked.excess(np.zeros((1, 2)), noise_ratio=1e6) < np.inf


def point(explained):
    nothing = np.zeros((1, 1))
    return Point(
        strategy=nothing,
        explained=explained,
        covered=nothing,
        weights=nothing,
        directions=nothing,
        noise_sd=1.0,
    )


def checks(gaps, *, target, gains=None, limit=10 * CHECKS):
    """How many certificates are looked at, of a strategy that leaves 1 with these gaps."""
    record = Record(2.0, gap=target)
    record.note(point(1.0), excess=1.0)
    record.expect_no_more_answers()
    for number in range(1, limit):
        gain = 0.0 if gains is None else gains(number)
        record.note(point(1.0 + gain), excess=gaps(number))
        if record.finished():
            return number
    raise AssertionError("it went on")


@pytest.mark.parametrize("rate", [0.5, 0.9, 0.96])
def test_a_steady_pace_reaches_the_gap(rate):
    expected = int(np.ceil(np.log(1e-2) / np.log(rate)))
    assert checks(lambda n: rate**n, target=1e-2) == pytest.approx(expected, abs=1)


def test_what_stands_still_ends_soon():
    assert checks(lambda _: 0.1, target=1e-3) <= 2 * PACE
    # Gaps that are not the best so far tell nothing.
    assert checks(lambda n: 0.1 + 0.05 * np.cos(n), target=1e-3) <= 4 * PACE


def test_a_pace_that_is_too_slow_ends_before_all_checks_are_spent():
    assert checks(lambda n: 0.999**n, target=1e-6) <= 2 * PACE
    assert PACE < checks(lambda n: 1.0 / n, target=1e-6) < CHECKS


def test_a_strategy_that_still_gains_goes_on_until_the_end():
    assert checks(lambda _: 0.5, target=1e-3, gains=lambda n: 1e-4 * n) == CHECKS
    assert checks(lambda _: 0.5, target=1e-3, gains=lambda n: 1e-6 * n) <= 2 * PACE


def test_a_pause_after_progress_does_not_end_it():
    """Bounds come down in steps: the later half of all certificates is looked at."""
    steps = lambda n: 0.5 ** (1 + n // 8)  # noqa: E731
    assert checks(steps, target=1e-3) == 72


def test_the_best_bound_and_the_best_strategy_make_the_certificate():
    seen = []
    record = Record(2.0, gap=1e-6, progress=seen.append, least=0.25)
    record.note(point(1.0), excess=0.5)
    assert record.gap == pytest.approx(0.5)
    record.note(point(1.2), excess=1.0)
    assert record.best.explained == 1.2
    assert record.gap == pytest.approx(1 - 0.5 / 0.8)
    record.note(point(1.1), excess=0.2)
    assert record.best.explained == 1.2
    assert record.gap == pytest.approx(1 - 0.7 / 0.8)
    assert record.gap_of(1.0) == pytest.approx(0.3)
    assert seen == sorted(seen, reverse=True)
    assert not record.finished()
