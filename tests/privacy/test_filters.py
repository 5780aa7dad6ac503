"""Privacy filters: exact sums, curves, and adversaries that choose prices by answers."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import laplace, norm

from cloakgp.privacy import Guarantee, OutputBounds, ask, compose, filters
from cloakgp.privacy.accounting import gaussian_delta, pure_mu
from cloakgp.privacy.composition import compose_with_selection
from cloakgp.privacy.filters import (
    ORDERS,
    RENYI_UNITS,
    UNITS,
    Amount,
    checked_limit,
    costs_of_release,
    filter_of,
    fixed,
    has_room,
    laplace_mu,
    releases_left,
    renyi_divergences,
    root_up,
    used_by,
)
from cloakgp.privacy.spending import Cost
from experiments import filters as experiment
from experiments.adversaries import (
    adding_up,
    best_delta,
    coin_delta,
    filtering,
    laplace_delta,
    stopping_delta,
)

numbers = st.floats(min_value=1e-6, max_value=100.0)
prices = st.floats(min_value=1e-3, max_value=3.0)
limits = st.tuples(st.floats(0.05, 10.0), st.sampled_from([1e-2, 1e-5, 1e-9]))


def gaussian(mu, answers=1, coarseness=2.0**-78):
    return Cost(mechanism="gaussian", mu=mu, answers=answers, coarseness=coarseness)


def noise(epsilon):
    return Cost(mechanism="laplace", epsilon=epsilon)


def choice(epsilon):
    return Cost(mechanism="permute-and-flip", epsilon=epsilon)


# Adversaries


@pytest.mark.parametrize("pure", ["laplace", "coin"])
def test_whoever_stops_by_answers_stays_within_the_limit(pure):
    limit = (1.0, 1e-5)
    reached = [stopping_delta(filtering, limit, levels=n, pure=pure) for n in (1, 5, 15)]
    assert all(delta <= limit[1] for delta in reached)
    # The adversary is none that could not do harm: what the Gaussian filter alone allows it has.
    assert reached[0] == pytest.approx(0.699 * limit[1], rel=1e-2)
    assert reached[-1] > 0.8 * limit[1]


@pytest.mark.slow
@pytest.mark.parametrize("limit", [(1.0, 1e-5), (2.0, 1e-6), (1.0, 0.01), (0.2, 1e-8)])
@pytest.mark.parametrize("pure", ["laplace", "coin"])
def test_whoever_stops_after_many_answers_stays_within_the_limit(limit, pure):
    for levels in (1, 2, 5, 15, 40, 120):
        assert stopping_delta(filtering, limit, levels=levels, pure=pure) <= limit[1]


def test_adding_up_is_no_filter():
    limit = (1.0, 1e-5)
    # One level is no choice: the adversary reaches just what is stated, and no more.
    alone = stopping_delta(adding_up, limit, levels=1, pure="coin")
    assert alone == pytest.approx(limit[1], rel=1e-3)
    assert stopping_delta(adding_up, limit, levels=15, pure="coin") > 5 * limit[1]
    assert stopping_delta(adding_up, limit, levels=15, pure="laplace") > 4 * limit[1]
    assert best_delta(adding_up, limit, mu=0.05, pure=0.3) > 1.3 * limit[1]


@pytest.mark.parametrize(
    ("limit", "mu", "pure"),
    [((1.0, 1e-5), 0.05, 0.3), ((0.5, 1e-3), 0.08, 0.05), ((2.0, 1e-6), 0.1, 0.5)],
)
def test_the_best_of_all_orders_stays_within_the_limit(limit, mu, pure):
    assert best_delta(filtering, limit, mu=mu, pure=pure) <= limit[1]


def test_a_simulated_adversary_tells_more_than_adding_up_states_and_less_than_the_filter_allows():
    # Limit (1, .01): a Gaussian answer of μ = .2917; where the loss came out high, all the Laplace
    # noise that is left; else all the Gaussian. By importance: draws under the neighbour, weighed.
    limit, first, rng = (1.0, 0.01), 0.2917, np.random.default_rng(3)

    def most(rule, cost):
        spent = Amount.of(gaussian(first, coarseness=0.0))
        low, high = 0.0, 2.0
        for _ in range(40):
            middle = (low + high) / 2
            fits = rule(spent + Amount.of(cost(middle)), limit)
            low, high = (middle, high) if fits else (low, middle)
        return low

    def told(rule):
        more_laplace = most(rule, noise)
        more_gaussian = most(rule, lambda mu: gaussian(mu, coarseness=0.0))
        losses = rng.normal(first**2 / 2, first, size=400_000)
        by_laplace = laplace_delta(1.0 - losses, more_laplace) if more_laplace else 0.0
        left = 1.0 - losses
        by_gaussian = norm.cdf(more_gaussian / 2 - left / more_gaussian) - np.exp(left) * norm.cdf(
            -more_gaussian / 2 - left / more_gaussian
        )
        best = np.maximum(by_laplace, by_gaussian)
        return best.mean(), best.std() / math.sqrt(len(best))

    reached, spread = told(adding_up)
    assert reached - 3 * spread > 1.2 * limit[1]
    reached, spread = told(filtering)
    assert reached + 3 * spread < limit[1]


# Room


def test_room_is_that_of_releases_left():
    for limit in experiment.LIMITS:
        counts = experiment.accepted_releases(filtering, limit)
        for cost, alone in zip((experiment.GAUSSIAN, experiment.LAPLACE), counts, strict=False):
            assert alone == releases_left(Amount(), (cost,), limit=limit)


@given(limits, st.lists(st.tuples(prices, prices), min_size=1, max_size=6))
def test_what_is_accepted_was_accepted_all_along(limit, bought):
    rule = filter_of(limit)
    total, accepted = Amount(), [True]
    for mu, epsilon in bought:
        total += Amount.of(gaussian(mu)) + Amount.of(noise(epsilon))
        accepted.append(rule.accepts(total))
    assert accepted == sorted(accepted, reverse=True)
    assert rule.accepts(total) == (rule.used(total) <= 1)


@given(limits)
@settings(max_examples=40)
def test_the_first_may_take_all_and_then_nothing_fits(limit):
    for noise_name in ("gaussian", "laplace", "auto"):
        one = costs_of_release(*limit, noise=noise_name)
        assert has_room(Amount(), [one], limit=limit)
        small = costs_of_release(limit[0] / 1000, 0.0)
        if not filter_of(limit).accepts(one[0]):
            assert not has_room(one[0], [small], limit=limit)
            assert not has_room(Amount(), [one, small], limit=limit)


def test_several_draws_of_one_charge_pay_for_their_grids_apart():
    rule = filter_of((1.0, 1e-6))
    whole = Amount.of(gaussian(0.999999 / 4.22467891197, coarseness=0.0))
    assert rule.takes_whole(whole, draws=3)
    assert not rule.takes_whole(whole + Amount(answers=1, coarseness=UNITS >> 30), draws=3)


@given(limits, st.lists(st.sampled_from([0.1, 0.3, 1.0]), min_size=1, max_size=5), st.booleans())
@settings(max_examples=60, deadline=None)
def test_room_is_there_whichever_noise_each_release_draws(limit, epsilons, spent_before):
    spent = Amount.of(gaussian(0.05)) if spent_before else Amount()
    pending = [costs_of_release(epsilon, limit[1]) for epsilon in epsilons]
    rule = filter_of(limit)
    every = [sum(drawn, start=spent) for drawn in itertools.product(*pending)]
    expected = all(rule.accepts(total) for total in every)
    if not (spent == Amount() and len(pending) == 1):
        assert has_room(spent, pending, limit=limit) == expected
        assert used_by(spent, pending, limit=limit) == min(1.0, max(map(rule.used, every)))


def test_very_many_releases_are_bounded_from_above():
    each = costs_of_release(0.001, 1e-6)
    left = releases_left(Amount(), each, limit=(1.0, 1e-6))
    assert left > 256
    assert has_room(Amount(), [each] * left, limit=(1.0, 1e-6))


def test_ten_tenths_are_one():
    tenth = costs_of_release(0.1, 0.0)
    assert releases_left(Amount(), tenth, limit=(1.0, 0.0)) == 10
    assert releases_left(Amount(), tenth, limit=(0.3, 0.0)) == 3
    drawn = Cost.of_pure("laplace", sensitivity=1, scale=10.0)
    assert Fraction(str(drawn.epsilon)) >= Fraction(1, 10)


# Curves


@given(prices)
def test_laplace_noise_is_as_private_as_its_gaussian(epsilon):
    mu = laplace_mu(epsilon)
    levels = np.linspace(-epsilon, epsilon, 201)
    for level, told in zip(levels, laplace_delta(levels, epsilon), strict=True):
        bound = (
            gaussian_delta(mu, level)
            if level >= 0
            else -math.expm1(level) + math.exp(level) * gaussian_delta(mu, -level)
        )
        assert told <= bound + 1e-15
    # At the middle both are one: there is no smaller μ.
    assert laplace_delta(0.0, epsilon) == pytest.approx(gaussian_delta(mu, 0.0), rel=1e-9)
    assert mu < pure_mu(epsilon)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
def test_renyi_divergences_are_those_of_the_laws(epsilon):
    for place in (0, 4, 8, 12):
        order = ORDERS[place]
        integral, _ = quad(
            lambda x, a=order: math.exp(
                a * laplace.logpdf(x) + (1 - a) * laplace.logpdf(x - epsilon)
            ),
            -60,
            60,
            points=[0.0, epsilon],
            limit=400,
        )
        found = renyi_divergences(epsilon, laplace=True)[place] / RENYI_UNITS
        assert found == pytest.approx(math.log(integral) / (order - 1), rel=1e-6)
        heads = 1 / (1 + math.exp(-epsilon))
        odds = heads**order * (1 - heads) ** (1 - order) + (1 - heads) ** order * heads ** (
            1 - order
        )
        found = renyi_divergences(epsilon, laplace=False)[place] / RENYI_UNITS
        assert found == pytest.approx(math.log(odds) / (order - 1), rel=1e-9)
    assert np.all(
        coin_delta(np.linspace(-3, 3, 50), epsilon)
        >= laplace_delta(np.linspace(-3, 3, 50), epsilon)
    )


@given(prices, prices)
def test_one_part_never_costs_less_than_its_pieces(first, second):
    for cost in (noise, choice):
        whole = Amount.of(cost(first + second))
        pieces = Amount.of(cost(first)) + Amount.of(cost(second))
        slack = 1 + Fraction(1, 2**40)
        assert pieces.as_gaussian <= whole.as_gaussian * slack
        assert all(a <= b * slack + 2 for a, b in zip(pieces.renyi, whole.renyi, strict=True))


# Sums


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
    assert filter_of((1.5, 0.0)).accepts(total)
    assert not filter_of((math.nextafter(1.5, 0), 0.0)).accepts(total)


def test_both_kinds_are_as_a_choice_and_a_release():
    total = Amount.of(gaussian(0.5)) + Amount.of(Cost(mechanism="laplace", epsilon=0.5))
    release = Guarantee(epsilon=1.0, delta=1e-5, mu=0.5, answers=1, coarseness=2.0**-78)
    expected = compose_with_selection(release, 0.5).epsilon
    assert total.epsilon_at(1e-5) == pytest.approx(expected, rel=1e-9)
    assert total.epsilon_at(0.0) == math.inf


def test_many_small_pure_parts_cost_less_than_their_sum():
    each = Amount.of(Cost(mechanism="laplace", epsilon=0.01))
    many = each.times(1000)
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
    answers = ask(
        np.full((3, 4), 0.5),
        [1.0, 0.0, 1.0, 1.0],
        question=OutputBounds.checked((0, 1)),
        epsilon=epsilon,
        delta=delta,
    )
    spent = answers.guarantee
    amount = Amount.of(gaussian(spent.mu, spent.answers, spent.coarseness))
    rule = filter_of((epsilon, delta))
    assert rule.takes_whole(amount)
    assert rule.takes_whole(Amount.to_hold([(epsilon, delta)]))
    assert rule.takes_whole(Amount.to_hold([(epsilon, delta)]).largest(amount))
    assert not rule.takes_whole(amount + amount)
    assert not rule.accepts(amount + amount)


def test_releases_left_are_those_that_fit(monkeypatch):
    each = costs_of_release(1.0, 1e-6, noise="gaussian")
    limit = (10.0, 1e-6)
    count = releases_left(Amount(), each, limit=limit)
    many = each[0].times(count)
    assert filter_of(limit).accepts(many)
    assert not filter_of(limit).accepts(many + each[0])
    assert releases_left(many, each, limit=limit) == 0
    monkeypatch.setattr(filters, "MOST_RELEASES", 1000)
    assert releases_left(Amount(), costs_of_release(1e-6, 0.0), limit=(10.0, 0.0)) == 1000


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        (math.nan, 1e-6),
        (math.inf, 1e-6),
        (-1.0, 1e-6),
        (0.0, 1e-6),
        (5e-324, 1e-6),
        (1e-300, 1e-6),
        (1e300, 1e-6),
        (1e4, 0.0),
        (1.0, 5e-324),
        (1.0, 1e-300),
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
        Cost(mechanism="gaussian", mu=1e300),
        Cost(mechanism="laplace", epsilon=1e300),
    ],
)
def test_draws_that_cost_nothing_or_nonsense_are_refused(cost):
    with pytest.raises(ValueError, match=r"mu|epsilon|protects no one"):
        Amount.of(cost)
