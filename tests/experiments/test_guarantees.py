"""Guarantees in numbers: against the closed forms, and the kept tables against today's."""

from __future__ import annotations

import math
from statistics import NormalDist

import pytest

from experiments import progress
from experiments.guarantees import (
    DELTAS,
    NOISE_EPSILONS,
    Guarantees,
    gaussian_guarantee,
    laplace_guarantee,
)
from experiments.pages import Kept
from experiments.written import Plain

NORMAL = NormalDist()


def fresh():
    experiment = Guarantees()
    tables = experiment.tables(experiment.compute(progress.quietly))
    return tuple(Plain.of(table) for table in tables)


def test_what_is_kept_is_what_the_closed_forms_give():
    assert Kept.read("guarantees").tables == fresh()


def test_bounds_of_guesses_are_rounded_up_and_no_further():
    for epsilon, odds, any_noise, laplace, _ in fresh()[0].rows:
        of = float(epsilon)
        for told, exact in (
            (odds, math.exp(of)),
            (any_noise, 100 / (1 + math.exp(-of))),
            (laplace, 100 * (1 - math.exp(-of / 2) / 2)),
        ):
            value = float(told.rstrip(" %").replace(",", ""))
            assert exact <= value < exact * 1.01


@pytest.mark.parametrize("epsilon", NOISE_EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_gaussian_noise_has_the_delta_that_is_stated(epsilon, delta):
    mu = gaussian_guarantee(epsilon, delta).mu
    reached = NORMAL.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * NORMAL.cdf(
        -mu / 2 - epsilon / mu
    )
    assert reached == pytest.approx(delta, rel=1e-6)


def test_a_laplace_answer_is_better_than_its_epsilon_says():
    assert laplace_guarantee(1.0).delta_at(0.0) == pytest.approx(1 - math.exp(-0.5))
