"""Amounts: exact sums, and the composition that exists."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.ledger.amounts import (
    Amount,
    checked_limit,
    fixed,
    releases_left,
    root_up,
)
from cloakgp.privacy import Guarantee, compose, measure
from cloakgp.privacy.composition import compose_with_selection
from cloakgp.privacy.spending import Cost

numbers = st.floats(min_value=1e-6, max_value=100.0)


def gaussian(mu, answers=1, coarseness=2.0**-78):
    return Cost(mechanism="gaussian", mu=mu, answers=answers, coarseness=coarseness)


@given(st.lists(numbers, min_size=1, max_size=5))
def test_gaussian_parts_add_up_as_compose_adds_them_up(mus):
    total = sum((Amount.of(gaussian(mu)) for mu in mus), start=Amount())
    parts = [
        Guarantee(epsilon=1.0, delta=1e-5, mu=mu, answers=1, coarseness=2.0**-78) for mu in mus
    ]
    expected = compose(*parts, delta=1e-5)
    assert total.epsilon_at(1e-5) == pytest.approx(expected.epsilon, rel=1e-9)
    assert Fraction(total.numbers["mu"]) ** 2 >= sum(Fraction(mu) ** 2 for mu in mus)
    assert total.numbers["mu"] <= expected.mu
    assert total.answers == len(mus)


def test_pure_parts_add_up():
    total = Amount.of(Cost(mechanism="laplace", epsilon=1.0))
    total += Amount.of(Cost(mechanism="laplace", epsilon=0.5))
    expected = compose(
        *(Guarantee(epsilon=each, delta=0.0, mu=0.0, laplace=(each,)) for each in (1.0, 0.5))
    )
    assert total.epsilon_at(0.0) == 1.5 <= expected.epsilon
    assert total.epsilon_at(1e-5) <= 1.5
    assert total.fits((1.5, 0.0))
    assert not total.fits((math.nextafter(1.5, 0), 0.0))


def test_both_kinds_are_as_a_choice_and_a_release():
    total = Amount.of(gaussian(0.5)) + Amount.of(Cost(mechanism="laplace", epsilon=0.5))
    release = Guarantee(epsilon=1.0, delta=1e-5, mu=0.5, answers=1, coarseness=2.0**-78)
    expected = compose_with_selection(release, 0.5).epsilon
    assert total.epsilon_at(1e-5) == pytest.approx(expected, rel=1e-9)
    assert total.epsilon_at(0.0) == math.inf


def test_many_small_pure_parts_cost_less_than_their_sum():
    each = Amount.of(Cost(mechanism="laplace", epsilon=0.01))
    many = Amount(*(1000 * part for part in each.parts))
    assert many.epsilon_at(1e-6) < 3.0 < 10.0 <= many.epsilon_at(0.0)


@given(st.lists(numbers, max_size=4), numbers, numbers)
def test_what_is_taken_back_leaves_no_trace(mus, mu, epsilon):
    before = sum((Amount.of(gaussian(one)) for one in mus), start=Amount())
    part = Amount.of(Cost(mechanism="both", mu=mu, epsilon=epsilon, answers=3, coarseness=1e-24))
    assert before + part - part == before


@given(numbers)
def test_numbers_say_the_amount_again_and_never_less(mu):
    amount = Amount.of(gaussian(mu)) + Amount.of(gaussian(mu / 3))
    again = Amount.from_numbers(amount.numbers)
    assert all(a <= b for a, b in zip(amount.parts, again.parts, strict=True))
    assert again.epsilon_at(1e-5) == pytest.approx(amount.epsilon_at(1e-5), rel=1e-12)


@given(numbers)
def test_roots_are_rounded_up_and_exact_where_they_can_be(number):
    assert root_up(fixed(Fraction(number) ** 2)) == number
    root = root_up(fixed(number))
    assert Fraction(root) ** 2 >= Fraction(number) > Fraction(math.nextafter(root, 0)) ** 2


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 0.01), (10.0, 1e-12)])
def test_a_limit_has_room_for_just_what_is_stated(epsilon, delta):
    answers = measure(
        np.full((3, 4), 0.5), [1.0, 0.0, 1.0, 1.0], bounds=(0, 1), epsilon=epsilon, delta=delta
    )
    spent = answers.guarantee
    amount = Amount.of(gaussian(spent.mu, spent.answers, spent.coarseness))
    assert amount.fits((epsilon, delta))
    assert Amount.held([(epsilon, delta)]).fits((epsilon, delta))
    assert not (amount + amount).fits((epsilon, delta))


def test_releases_left_are_those_that_fit():
    each = Amount.held([(1.0, 1e-6)])
    count = releases_left(Amount(), each, limit=(10.0, 1e-6))
    many = Amount(*(count * part for part in each.parts))
    assert many.fits((10.0, 1e-6))
    assert not (many + each).fits((10.0, 1e-6))
    assert releases_left(many, each, limit=(10.0, 1e-6)) == 0
    assert releases_left(Amount(), Amount.held([(1e-9, 0.0)]), limit=(10.0, 0.0)) == 10**6


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        (math.nan, 1e-6),
        (math.inf, 1e-6),
        (-1.0, 1e-6),
        (0.0, 1e-6),
        (5e-324, 1e-6),
        ("1", 1e-6),
        (True, 1e-6),
        (None, 1e-6),
        (1 + 0j, 1e-6),
        (1.0, math.nan),
        (1.0, -1e-9),
        (1.0, 1.0),
        (1.0, 1e-310),
        (1.0, "1e-6"),
    ],
)
def test_budgets_that_are_none_are_refused(epsilon, delta):
    with pytest.raises(ValueError, match=r"epsilon|delta"):
        checked_limit(epsilon, delta)


@pytest.mark.parametrize(
    "cost",
    [
        Cost(mechanism="gaussian"),
        Cost(mechanism="gaussian", mu=math.nan),
        Cost(mechanism="gaussian", mu=-1.0),
        Cost(mechanism="laplace", epsilon=math.inf),
        Cost(mechanism="gaussian", mu=1.0, answers=-1),
        Cost(mechanism="gaussian", mu=5e-324),
    ],
)
def test_draws_that_cost_nothing_or_nonsense_are_refused(cost):
    with pytest.raises(ValueError, match=r"mu|epsilon|costs nothing"):
        Amount.of(cost)
