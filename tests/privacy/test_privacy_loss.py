"""Losses of Laplace and Gaussian parts together: another accountant, attacks, basic composition."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from attacks.loss import composed_delta
from dp_accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
)
from dp_accounting.pld import PLDAccountant
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakgp.privacy import OutputBounds
from cloakgp.privacy.accounting import Guarantee, compose, gaussian_delta, pure_mu
from cloakgp.privacy.ask import ask
from cloakgp.privacy.privacy_loss import LARGEST_MU, mixed_delta, mixed_epsilon

PARTS = st.lists(st.floats(0.01, 3.0), min_size=1, max_size=4).map(tuple)
MUS = st.one_of(st.just(0.0), st.floats(0.02, 3.0))


def guarantee_of(mu, laplace, *, delta=1e-5):
    stated = 0.0 if mu == 0 else delta
    whole = Guarantee(epsilon=0.0, delta=stated, mu=mu, laplace=laplace)
    return compose(whole, delta=stated)


def other_accountant(mu, laplace):
    events = [LaplaceDpEvent(1.0 / part) for part in laplace]
    if mu:
        events.append(GaussianDpEvent(1.0 / mu))
    return PLDAccountant().compose(ComposedDpEvent(events))


@pytest.mark.parametrize("mu", [0.0, 0.4, 2.0])
@pytest.mark.parametrize("laplace", [(0.5, 0.5), (0.3, 1.0, 0.2), (2.0,)])
def test_another_accountant_finds_nearly_the_same_and_no_less(mu, laplace):
    """dp-accounting used directly: its own grid of losses, 10⁻⁴, rounds up by more."""
    accountant = other_accountant(mu, laplace)
    for epsilon in (0.1, 0.5, 1.0):
        found, other = mixed_delta(mu, laplace, epsilon), accountant.get_delta(epsilon)
        assert found == pytest.approx(other, abs=2e-4)
    for delta in (1e-3, 0.05):
        assert mixed_epsilon(mu, laplace, delta) == pytest.approx(
            accountant.get_epsilon(delta), abs=1e-3
        )


@given(mu=MUS, laplace=PARTS, share=st.floats(0.0, 1.2))
@settings(max_examples=12)
def test_an_attacker_never_does_better_and_can_do_nearly_as_well(mu, laplace, share):
    """The losses themselves, added up on a grid that favours nobody else."""
    epsilon = share * (sum(laplace) + mu)
    attained = composed_delta([Fraction(part) for part in laplace], Fraction(mu) ** 2, epsilon)
    stated = guarantee_of(mu, laplace).delta_at(epsilon)
    assert attained <= stated + 1e-12
    assert stated <= attained + 2e-3 * (1 + sum(laplace))


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_one_gaussian_part_is_the_limit_of_small_laplace_ones(epsilon):
    """Beside a part that tells nearly nothing, the other's profile is what it was."""
    with_tiny = guarantee_of(1.0, (1e-9,)).delta_at(epsilon)
    assert with_tiny == pytest.approx(gaussian_delta(1.0, epsilon), rel=1e-2, abs=1e-4)


@given(laplace=PARTS, epsilon=st.sampled_from([0.0, 0.5, 2.0]))
@settings(max_examples=12)
def test_other_parts_never_make_a_gaussian_part_cheaper(laplace, epsilon):
    assert guarantee_of(1.0, laplace).delta_at(epsilon) >= gaussian_delta(1.0, epsilon)


@given(mu=MUS, laplace=PARTS)
@settings(max_examples=6)
def test_profiles_fall_and_never_exceed_basic_composition(mu, laplace):
    guarantee = guarantee_of(mu, laplace)
    spent = sum(laplace)
    epsilons = np.linspace(0.0, 2 * (spent + mu), 9)
    deltas = [guarantee.delta_at(float(epsilon)) for epsilon in epsilons]
    assert all(0 <= one <= 1 for one in deltas)
    assert all(after <= before for before, after in itertools.pairwise(deltas))
    for epsilon, delta in zip(epsilons, deltas, strict=True):
        if epsilon >= spent * (1 + 1e-9):
            assert delta <= gaussian_delta(mu, float(epsilon) - spent * (1 + 1e-9)) * (1 + 1e-9)
    for delta in (1e-9, 1e-4, 0.1):
        gaussian = guarantee_of(mu, ()).epsilon_at(delta) if mu else 0.0
        assert guarantee.epsilon_at(delta) <= (spent + gaussian) * (1 + 1e-9)


@given(mu=MUS, laplace=PARTS, delta=st.sampled_from([1e-9, 1e-5, 1e-2, 0.3]))
@settings(max_examples=12)
def test_the_two_directions_agree_safely(mu, laplace, delta):
    guarantee = guarantee_of(mu, laplace)
    epsilon = guarantee.epsilon_at(delta)
    assert guarantee.delta_at(epsilon) <= delta * (1 + 1e-9)
    if epsilon > 1e-3:
        assert guarantee.delta_at(epsilon * 0.99) > delta * (1 - 1e-9)


@given(laplace=PARTS)
def test_without_a_delta_parts_add_up_and_never_round_down(laplace):
    guarantee = guarantee_of(0.0, laplace)
    assert Fraction(guarantee.epsilon) >= sum(map(Fraction, laplace))
    assert guarantee.epsilon == pytest.approx(sum(laplace), rel=1e-15)
    assert guarantee.delta_at(guarantee.epsilon) == 0.0
    assert guarantee.epsilon_at(0.0) == guarantee.pure_epsilon
    assert guarantee.delta_at(guarantee.epsilon * (1 - 1e-6)) > 0


@given(st.floats(-9, 1.5).map(lambda power: 10.0**power))
def test_a_gaussian_statement_of_pure_noise_is_true(epsilon):
    """At every ε', its profile is at least that of randomised response, the worst of ε-DP."""
    mu = pure_mu(epsilon)
    for share in (0.0, 0.25, 0.5, 0.9, 1.0):
        # −expm1 keeps the digits of what is nearly nothing.
        worst = -math.expm1((share - 1) * epsilon) / (1 + math.exp(-epsilon))
        assert worst <= gaussian_delta(mu, share * epsilon) * (1 + 2.0**-38)
    assert gaussian_delta(mu, 0.0) == pytest.approx(
        -math.expm1(-epsilon) / (1 + math.exp(-epsilon)), rel=1e-9, abs=1e-13
    )


def test_releases_of_both_noises_add_up_whatever_their_order():
    gaussian, laplace = (
        ask(
            np.eye(2),
            [0.0, 1.0],
            question=OutputBounds.checked((0, 1)),
            epsilon=0.8,
            delta=delta,
            noise=noise,
        )
        for noise, delta in (("gaussian", 0.01), ("laplace", 0.0))
    )
    parts = gaussian.guarantee, laplace.guarantee
    total = compose(*parts)
    assert total == compose(*reversed(parts))
    assert (total.delta, total.laplace) == (0.01, (0.8,))
    assert gaussian.guarantee.mu <= total.mu <= gaussian.guarantee.mu * (1 + 1e-15)
    accountant = other_accountant(total.mu, total.laplace)
    assert total.epsilon == pytest.approx(accountant.get_epsilon(0.01), rel=2e-3)
    assert 0.8 < total.epsilon < 1.6
    assert total.delta_at(total.epsilon) <= 0.01
    # What both cost, grids included.
    assert total.delta_at(0.9) >= mixed_delta(total.mu, total.laplace, 0.9)
    assert math.isinf(total.pure_epsilon)
    with pytest.raises(ValueError, match="strictly between"):
        total.epsilon_at(0.0)


def test_losses_too_long_for_a_grid_are_left_to_basic_composition():
    assert mixed_delta(2 * LARGEST_MU, (1.0,), 5.0) == 1.0
    assert math.isinf(mixed_epsilon(2 * LARGEST_MU, (1.0,), 0.1))
    guarantee = guarantee_of(2 * LARGEST_MU, (1.0,))
    gaussian = guarantee_of(2 * LARGEST_MU, ())
    assert guarantee.epsilon == pytest.approx(1.0 + gaussian.epsilon, rel=1e-9)
    assert guarantee.delta_at(guarantee.epsilon) <= guarantee.delta


@pytest.mark.parametrize(
    "damage",
    [
        {"laplace": (0.5, -0.1)},
        {"laplace": (math.nan,)},
        {"laplace": (math.inf,)},
        {"mu": math.nan},
        {"mu": -1.0},
        {"answers": -1},
    ],
)
def test_damaged_guarantees_are_refused(damage):
    whole = {"epsilon": 1.0, "delta": 1e-3, "mu": 0.0, "laplace": (0.5, 0.5)}
    Guarantee(**whole).validate()
    with pytest.raises(ValueError, match="damaged"):
        Guarantee(**{**whole, **damage}).validate()


@pytest.mark.parametrize(
    "claim", [{"epsilon": 0.9}, {"laplace": (0.5, 0.6)}, {"mu": 0.3}, {"laplace": (0.7, 0.5)}]
)
def test_guarantees_that_do_not_hold_are_refused(claim):
    """At δ = 0, or so small a one that a Gaussian part does not fit beside the others."""
    whole = {"epsilon": 1.0 + 1e-12, "delta": 0.0, "mu": 0.0, "laplace": (0.5, 0.5)}
    if "mu" in claim:
        whole["delta"] = 1e-9
    Guarantee(**whole).check_holds()
    with pytest.raises(ValueError, match="does not hold"):
        Guarantee(**{**whole, **claim}).check_holds()
