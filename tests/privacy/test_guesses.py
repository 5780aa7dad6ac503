"""Bounds on guesses, tests and odds hold against the best attacker, found by trying them all."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp import Guarantee
from cloakgp.privacy.guesses import (
    odds_beyond,
    odds_beyond_once,
    power_of_tests,
    right_guess,
    right_guess_of_any,
)

EPSILON = 0.7
# Randomised response with e^ε to 1, which is the worst that ε allows.
LAW = np.array([np.exp(EPSILON), 1.0]) / (1 + np.exp(EPSILON))


class Response(Guarantee):
    """The exact curve of randomised response."""

    def delta_at(self, epsilon):
        return float(np.maximum(LAW - np.exp(epsilon) * LAW[::-1], 0).sum())


WORST = Response(epsilon=EPSILON, delta=0.0, mu=0.0, laplace=(EPSILON,))


@pytest.mark.parametrize("belief", [0.0, 0.05, 0.2, 0.4, 0.5, 0.8, 1.0])
def test_guesses_are_those_of_the_best_of_all_answers(belief):
    best = np.maximum(belief * LAW, (1 - belief) * LAW[::-1]).sum()
    assert right_guess(WORST, belief=belief) == pytest.approx(best)


def test_no_test_finds_more():
    for accused in ([], [0], [1], [0, 1]):
        alarms, power = LAW[::-1][accused].sum(), LAW[accused].sum()
        assert power <= power_of_tests(WORST, false_alarms=float(alarms)) + 1e-12


def test_of_a_budget_that_protects_nobody_no_bound_is_told():
    """Where e^ε is no number any more."""
    guarantee = Guarantee(epsilon=1000.0, delta=0.0, mu=0.0, laplace=(1000.0,))
    assert power_of_tests(guarantee, false_alarms=0.05) == pytest.approx(1.0)


@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_no_noise_allows_more_guesses_than_randomised_response_that_gives_values_away(delta):
    """The worst law of (ε, δ): with probability δ the value itself, otherwise as `LAW`."""
    law = np.array([delta, (1 - delta) * LAW[0], (1 - delta) * LAW[1], 0.0])
    assert right_guess_of_any(EPSILON, delta) == pytest.approx(
        np.maximum(law, law[::-1]).sum() / 2, abs=1e-12
    )


@pytest.mark.parametrize("epsilon", [0.1, 0.5, EPSILON - 1e-9])
def test_odds_move_no_more_often_than_is_bounded(epsilon):
    """Of randomised response they always move by e^ε, and never by more."""
    assert odds_beyond(WORST, epsilon) >= 1.0
    assert odds_beyond(WORST, 2 * EPSILON) == 0.0


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
def test_odds_of_one_draw_are_those_of_its_law(mu, epsilon):
    once = odds_beyond_once(mu, epsilon)
    losses = np.random.default_rng(0).normal(mu**2 / 2, mu, size=100_000)
    assert once == pytest.approx(np.mean(np.abs(losses) > epsilon), abs=0.006)
    assert once <= odds_beyond(Guarantee(epsilon=epsilon, delta=0.1, mu=mu), epsilon)
    # Of somebody whom the noise hides better they are smaller.
    assert odds_beyond_once(0.9 * mu, epsilon) <= once
