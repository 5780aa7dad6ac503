"""Budgets: what is held for a request is the greatest of what may be drawn for it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from counting_keeper import Counting
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cloakgp import DPGPClassifier, DPGPRegressor
from cloakgp.data import ArrayRows
from cloakgp.privacy.filters import UNITS, Amount, costs_of_release, fixed
from cloakgp.privacy.spending import Cost, counted_by
from cloakgp.service.budgets import Charges, _held_amount, costs_of, epsilon_left
from cloakgp.service.messages import LARGEST_EPSILON, Choices

rng = np.random.default_rng(5)
X = rng.uniform(0, 10, (40, 2))
Y = np.clip(X[:, 0] / 10 + rng.normal(scale=0.05, size=40), 0, 1)
LABELS = np.where(Y > 0.5, "yes", "no")
OWNERS = [f"person {number % 20}" for number in range(40)]


def numbers(**options):
    return lambda budget: DPGPRegressor(bounds=(0, 1), **options, **budget).fit(X, Y)


def classes(**options):
    return lambda budget: DPGPClassifier(classes=["no", "yes"], **options, **budget).fit(X, LABELS)


def persons(budget):
    return DPGPRegressor(bounds=(0, 1), **budget).fit(X, Y, groups=OWNERS)


def passes(budget):
    model = DPGPRegressor(bounds=(0, 1), inducing=5, **budget)
    return model.fit_rows(ArrayRows(X, Y))


# What a service can be asked for.
KINDS = {
    "numbers": numbers(),
    "within wide bounds": lambda budget: DPGPRegressor(bounds=(-50, 50), **budget).fit(X, Y),
    "in one stage": numbers(stages=None),
    "without a search": numbers(interval=False),
    "with inducing inputs": numbers(inducing=5),
    "as they are": numbers(learn=None),
    "logarithms": lambda budget: DPGPRegressor(bounds=(0.01, 1), transform="log", **budget).fit(
        X, np.clip(Y, 0.01, 1)
    ),
    "least noise": numbers(criterion="trace"),
    "classes": classes(),
    "classes, iterated": classes(criterion="newton"),
    "persons": persons,
    "passes": passes,
}


def drawn_for(fit, budget):
    """What a fit drew, and the message with which it was refused, if it was."""
    keeper, told = Counting(), ""
    with counted_by(keeper), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fit(budget)
        except (ValueError, TypeError) as error:
            told = str(error)
    return sum((Amount.of(cost) for cost in keeper.costs), start=Amount()), told


def covers(held, drawn):
    """Whether no sum of what was drawn is above what was held."""
    return (
        held.gaussian >= drawn.gaussian
        and held.covers_pure(drawn)
        and all(a >= b for a, b in zip(held.renyi, drawn.renyi, strict=True))
    )


@pytest.mark.parametrize("kind", KINDS)
@settings(
    max_examples=5,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    epsilon=st.floats(0.05, 8.0),
    delta=st.sampled_from([0.0, 1e-15, 1e-12, 1e-6, 1e-3, 0.01, 0.2]),
    noise=st.sampled_from(["auto", "gaussian", "laplace"]),
)
def test_no_request_draws_more_than_it_was_held_for(kind, epsilon, delta, noise):
    budget = {"epsilon": epsilon, "delta": delta, "noise": noise}
    drawn, told = drawn_for(KINDS[kind], budget)
    assert drawn != Amount() or told
    held = costs_of(Choices(**budget))
    assert any(covers(one, drawn) for one in held)


def test_the_test_would_see_it():
    # What was held before: of the pair with its δ, although Laplace noise may be drawn.
    drawn, _ = drawn_for(KINDS["numbers"], {"epsilon": 2.9, "delta": 1e-15, "noise": "laplace"})
    assert not covers(Amount.to_hold([(2.9, 1e-15)]), drawn)
    assert drawn.laplace > 2.8 * UNITS
    more = Amount.of(Cost("laplace", epsilon=2.9)) + Amount(laplace=fixed(1e-12))
    assert not covers(costs_of_release(2.9, 0.0)[0], more)


def test_a_request_whose_noise_was_drawn_counts_for_all_that_it_was_held_for():
    costs = costs_of_release(1.0, 1e-6)
    little = Amount.of(Cost("laplace", epsilon=0.1))
    assert _held_amount(Amount(), costs) == Amount()
    assert _held_amount(little, costs) == costs[1]
    bit = Amount.of(Cost("gaussian", mu=0.01))
    assert _held_amount(bit, costs) == costs[0]
    assert _held_amount(bit, costs[1:]).covers_pure(costs[1])


def test_room_is_told_for_no_more_than_one_release_may_ask():
    nothing = Charges(spent=Amount(), pending=())
    assert epsilon_left(nothing, (900.0, 0.0)) == LARGEST_EPSILON
    Choices(epsilon=epsilon_left(nothing, (900.0, 0.0)))
