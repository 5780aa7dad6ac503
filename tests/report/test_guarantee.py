"""Bounds on guesses and tests hold against the best attacker, found by going through them all."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp import Guarantee
from cloakgp.report.guarantee import power_of_tests, right_guess

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
