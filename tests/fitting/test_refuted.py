"""Counts that refute that half of the outputs lie outside of an interval, or do not."""

from __future__ import annotations

import math
from functools import partial
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from cloakgp.fitting import interval
from cloakgp.fitting.interval import find_interval, plan_search
from cloakgp.fitting.refuted import HALF, REFUTED, refutes_half_outside
from cloakgp.fitting.strategies import Budget
from cloakgp.privacy import Answers, OutputBounds
from cloakgp.privacy.noise import NOISES

BOUNDS = OutputBounds(0.0, 1500.0)


def answers_of(counts, *, noise_sd, noise):
    return Answers(np.array([counts]), noise_sd=noise_sd, guarantee=None, noise=noise)


def log_density(values, sd, noise):
    if noise == "gaussian":
        return stats.norm.logpdf(values, scale=sd)
    return stats.laplace.logpdf(values, scale=sd / math.sqrt(2.0))


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("seed", range(6))
def test_the_ratio_is_that_of_all_splits_of_a_few_outputs(noise, seed):
    """Brute force: every way in which twenty outputs may lie in four cells, counted twice."""
    rng, rows, sd = np.random.default_rng(seed), 20, 6.0
    first, second = np.array([0.0, 1.0, 3.0, 4.0]), np.array([0.0, 2.0, 4.0])
    held = rng.multinomial(rows, [0.1, 0.3, 0.4, 0.2])
    true = [[held[0], held[1] + held[2], held[3]], [held[0] + held[1], held[2] + held[3]]]
    asked = [
        (edges, answers_of(counts + sd * rng.normal(size=len(counts)), noise_sd=sd, noise=noise))
        for edges, counts in zip((first, second), map(np.array, true), strict=True)
    ]
    half_outputs = np.indices(3 * (2 * rows + 1,)).reshape(3, -1)
    half_outputs = half_outputs[:, half_outputs.sum(axis=0) <= 2 * rows]
    a, b, c, d = np.vstack([half_outputs, 2 * rows - half_outputs.sum(axis=0)]) / 2.0
    expected = (np.array([a, b + c, d]), np.array([a + b, c + d]))
    likely = sum(
        log_density(one.values[0][:, None] - each, sd, noise).sum(axis=0)
        for (_, one), each in zip(asked, expected, strict=True)
    )
    best, halved = likely.max(), likely[a + d >= HALF * rows].max()
    outside, rounds = np.array([1.0, 0.0, 0.0, 1.0]), [[0, 1, 1, 2], [0, 0, 1, 1]]
    questions = np.vstack(
        [np.array(cells) == np.arange(3 - at)[:, None] for at, cells in enumerate(rounds)]
    )
    fit_of = partial(
        NOISES[noise].fit_amounts,
        questions / sd,
        np.concatenate([one.values[0] for _, one in asked]) / sd,
    )
    fit = fit_of(sums=np.ones((1, 4)), totals=np.array([rows]))
    half = fit_of(sums=np.array([np.ones(4), outside]), totals=np.array([rows, HALF * rows]))
    # Halves of outputs are as near as the brute force goes.
    if fit[0] @ outside < HALF * rows:
        assert half[1] - fit[1] == pytest.approx(best - halved, abs=0.15)
    refutes = refutes_half_outside(asked, 1.0, 3.0, rows=rows)
    if abs(best - halved - REFUTED) > 0.2:
        assert refutes == (best - halved >= REFUTED)


def test_most_outputs_outside_are_not_refuted():
    edges = np.array([0.0, 1.0, 2.0])
    asked = [(edges, answers_of([95.0, 5.0], noise_sd=3.0, noise="laplace"))]
    assert not refutes_half_outside(asked, 1.0, 2.0, rows=100)
    assert refutes_half_outside(asked, 0.0, 1.0, rows=100)
    assert refutes_half_outside(asked, 0.0, 2.0, rows=100)


def fails(*_, **__):
    raise RuntimeError("the most iterations were made")


@pytest.mark.parametrize(
    ("noise", "solver", "given_up"),
    [
        ("laplace", "linprog", lambda *_, **__: SimpleNamespace(success=False, x=None)),
        ("gaussian", "nnls", fails),
    ],
)
def test_a_programme_that_is_given_up_refutes_nothing(noise, solver, given_up, monkeypatch):
    edges = np.array([0.0, 1.0, 2.0])
    asked = [(edges, answers_of([95.0, 5.0], noise_sd=3.0, noise=noise))]
    assert refutes_half_outside(asked, 0.0, 1.0, rows=100)
    law = import_module(type(NOISES[noise]).__module__)
    monkeypatch.setattr(law, solver, given_up)
    assert not refutes_half_outside(asked, 0.0, 1.0, rows=100)


def searched(noise, *, seed, epsilon=1.0, rows=200):
    """An interval by noise of a law, and the share of outputs outside."""
    rng = np.random.default_rng(seed)
    outputs = BOUNDS.clip(rng.lognormal(5.5, 0.6, rows))
    budget = Budget(epsilon, 0.01 if noise == "gaussian" else 0.0, noise=noise)
    law = NOISES[noise]

    def ask(question, part):
        sd = law.between_indicators * part.unit_sd()
        drawn = rng.normal(size=question.channels)
        if noise == "laplace":
            drawn = rng.laplace(scale=math.sqrt(0.5), size=question.channels)
        counts = question.encode(outputs).sum(axis=0) + sd * drawn
        return answers_of(counts, noise_sd=sd, noise=noise)

    plan = plan_search(BOUNDS, budget=budget, rows=rows)
    assert plan.rounds
    found = find_interval(ask, bounds=BOUNDS, rows=rows, rounds=plan.rounds)
    return float(np.mean((outputs < found.lo) | (outputs > found.hi)))


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_no_interval_is_taken_that_leaves_most_outputs_outside(noise):
    assert max(searched(noise, seed=seed) for seed in range(600)) < 0.6


def test_without_refutation_some_are(monkeypatch):
    """Mutation: the same searches, whatever the counts refute."""
    monkeypatch.setattr(interval, "refutes_half_outside", lambda *_, **__: True)
    assert max(searched("laplace", seed=seed) for seed in range(600)) > 0.8
