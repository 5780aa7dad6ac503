"""Calibration and composition against closed forms, quadrature, another accountant, brute force."""

import math
from dataclasses import replace

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent
from dp_accounting.pld import PLDAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from cloakgp.privacy.accounting import (
    Guarantee,
    compose,
    compose_parallel,
    discretisation_delta,
    exact_noise_multiplier,
    gaussian_delta,
    gaussian_epsilon,
    papers_noise_multiplier,
)
from cloakgp.privacy.budgets import check_budget
from cloakgp.privacy.composition import compose_with_selection

EPSILONS = st.floats(1e-4, 100)
DELTAS = st.floats(1e-20, 0.9)


def hockey_stick(mu: float, epsilon: float) -> float:
    """∫ max(0, p − e^ε q) for p = N(μ, 1) and q = N(0, 1), by quadrature."""
    return integrate.quad(
        lambda x: max(0.0, stats.norm.pdf(x - mu) - math.exp(epsilon) * stats.norm.pdf(x)),
        epsilon / mu + mu / 2,
        mu + 12,
        epsabs=1e-14,
        limit=200,
    )[0]


@pytest.mark.parametrize(("mu", "epsilon"), [(0.2, 0.1), (0.5, 1), (1, 1), (2, 3), (3, 0)])
def test_delta_is_the_hockey_stick_divergence(mu, epsilon):
    assert gaussian_delta(mu, epsilon) == pytest.approx(hockey_stick(mu, epsilon), rel=1e-7)


@pytest.mark.parametrize(
    ("epsilon", "sigma"), [(0.2, 6.053), (1, 1.878), (10, 0.3501), (50, 0.1246)]
)
def test_exact_multipliers_of_the_design_page(epsilon, sigma):
    assert exact_noise_multiplier(epsilon, 0.01) == pytest.approx(sigma, abs=6e-4)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.2, 1.0e-5), (1, 7.6e-5)])
def test_what_the_papers_multiplier_really_gives(epsilon, delta):
    sigma = papers_noise_multiplier(epsilon, 0.01)
    assert sigma == pytest.approx(math.sqrt(2 * math.log(200)) / epsilon)
    assert gaussian_delta(1 / sigma, epsilon) == pytest.approx(delta, rel=0.05)


@pytest.mark.parametrize("epsilon", [1.0000001, 10, 50])
def test_papers_multiplier_is_refused_where_its_proof_ends(epsilon):
    with pytest.raises(ValueError, match="at most 1"):
        papers_noise_multiplier(epsilon, 0.01)


def test_papers_formula_beyond_one_is_not_private_as_claimed():
    for epsilon, delta in [(10, 0.0245), (50, 1.0)]:
        sigma = math.sqrt(2 * math.log(200)) / epsilon
        assert gaussian_delta(1 / sigma, epsilon) == pytest.approx(delta, rel=0.01)


@given(EPSILONS, DELTAS)
def test_sigma_is_the_least_that_keeps_the_guarantee(epsilon, delta):
    sigma = exact_noise_multiplier(epsilon, delta)
    assert gaussian_delta(1 / sigma, epsilon) <= delta
    assert gaussian_delta(1 / (sigma * (1 - 1e-7)), epsilon) > delta


@given(st.floats(1e-3, 20), st.floats(1e-12, 0.3))
def test_epsilon_is_the_least_that_the_profile_allows(mu, delta):
    epsilon = gaussian_epsilon(mu, delta)
    assert gaussian_delta(mu, epsilon) <= delta
    if epsilon > 1e-6:
        assert gaussian_delta(mu, epsilon * (1 - 1e-6)) > delta


@given(EPSILONS, DELTAS)
def test_guarantee_profiles_invert_each_other(epsilon, delta):
    mu = 1 / exact_noise_multiplier(epsilon, delta)
    guarantee = Guarantee(epsilon=epsilon, delta=delta, mu=mu)
    assert guarantee.delta_at(epsilon) <= delta * (1 + 1e-9)
    assert guarantee.epsilon_at(delta) == pytest.approx(epsilon, rel=1e-6)
    assert guarantee.noise_multiplier == pytest.approx(1 / mu)


def test_composition_against_a_privacy_loss_accountant():
    sigmas = (1.5, 2.5, 4.0)
    parts = [Guarantee(epsilon=1, delta=1e-5, mu=1 / sigma) for sigma in sigmas]
    total = compose(*parts, delta=1e-5)
    accountant = PLDAccountant(value_discretization_interval=1e-4)
    for sigma in sigmas:
        accountant.compose(GaussianDpEvent(sigma))
    # The accountant is pessimistic by its discretisation.
    assert total.epsilon <= accountant.get_epsilon(1e-5) <= total.epsilon + 2e-3


def test_composition_adds_squares_and_keeps_a_single_release_as_it_is():
    one = Guarantee(epsilon=1, delta=0.01, mu=0.3, answers=4, coarseness=1e-20)
    assert compose(one) is one
    both = compose(one, Guarantee(epsilon=2, delta=0.001, mu=0.4, answers=5, coarseness=2e-20))
    assert both.mu == pytest.approx(0.5, rel=1e-12)
    assert (both.answers, both.delta) == (9, 0.01)
    assert both.coarseness == pytest.approx(3e-20)
    assert both.delta_at(both.epsilon) <= both.delta


def test_asking_nothing_costs_nothing():
    free = Guarantee(epsilon=1, delta=0.01, mu=0)
    assert free.delta_at(0) == 0
    assert free.epsilon_at(1e-9) == 0
    assert compose(free, free).mu == 0
    assert free.noise_multiplier == math.inf


def discrete_pmf(tau: float, reach: int) -> np.ndarray:
    integers = np.arange(-reach, reach + 1)
    mass = np.exp(-(integers**2) / (2 * tau**2))
    return mass / mass.sum()


@pytest.mark.parametrize("tau", [2.0, 7.3, 30.0, 200.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_discretisation_bound_against_the_exact_discrete_gaussian(tau, epsilon):
    """δ of the discrete mechanism, summed over the integers, for every shift up to 3τ."""
    reach = int(45 * tau)
    pmf = discrete_pmf(tau, reach)
    for shift in {1, int(tau / 2) + 1, int(tau), int(3 * tau)}:
        here, there = pmf[: len(pmf) - shift], pmf[shift:]
        exact = np.maximum(here - math.exp(epsilon) * there, 0).sum() + pmf[-shift:].sum()
        continuous = gaussian_delta(shift / tau, epsilon)
        bound = discretisation_delta(epsilon, answers=1, coarseness=1 / tau**2)
        assert exact <= continuous + bound


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_discretisation_bound_in_two_dimensions(epsilon):
    tau, reach = 6.0, 100
    pmf = discrete_pmf(tau, reach)
    shifts = (3, 4)
    first, second = ((pmf, np.concatenate([np.zeros(shift), pmf[:-shift]])) for shift in shifts)
    joint, shifted = np.outer(first[0], second[0]), np.outer(first[1], second[1])
    exact = np.maximum(shifted - math.exp(epsilon) * joint, 0).sum()
    bound = discretisation_delta(epsilon, answers=2, coarseness=2 / tau**2)
    assert exact <= gaussian_delta(5 / tau, epsilon) + bound


def test_pointwise_ratios_of_the_discretisation_proof():
    """Steps 1 and 2: p ≤ e^η₁ q everywhere, q ≤ e^η₂ p within T standard deviations."""
    tau = 5.0
    integers = np.arange(-60, 61)
    p = discrete_pmf(tau, 400)[400 - 60 : 400 + 61]
    upper = np.abs(integers) + 0.5
    q = stats.norm.sf(np.abs(integers) - 0.5, scale=tau) - stats.norm.sf(upper, scale=tau)
    assert (p <= np.exp(1 / (24 * tau**2)) * q * (1 + 1e-12)).all()
    for reach in (1, 3, 8):
        near = np.abs(integers) <= reach * tau
        assert (q[near] <= np.exp((reach**2 + 1) / (8 * tau**2)) * p[near] * (1 + 1e-12)).all()


def test_discretisation_cost_is_negligible_on_the_grid_in_use_and_never_silent():
    cost = discretisation_delta(1.0, answers=100, coarseness=100 * 2.0**-80)
    assert 0 < cost < 1e-20
    assert discretisation_delta(1.0, answers=1, coarseness=2.0) == 1.0
    coarse = Guarantee(epsilon=1, delta=0.01, mu=0.5, answers=10, coarseness=1e-3)
    fine = Guarantee(epsilon=1, delta=0.01, mu=0.5)
    assert coarse.delta_at(1) > fine.delta_at(1) + 1e-2
    with pytest.raises(ValueError, match="too small for the grid"):
        coarse.epsilon_at(1e-9)


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf])
def test_impossible_epsilon(epsilon):
    with pytest.raises(ValueError, match="epsilon must be positive"):
        check_budget(epsilon, 0.01)


@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5, math.nan])
def test_impossible_delta(delta):
    with pytest.raises(ValueError, match="delta must lie strictly"):
        check_budget(1, delta)
    with pytest.raises(ValueError, match="delta must be strictly"):
        Guarantee(epsilon=1, delta=0.01, mu=0.5).epsilon_at(delta)


PARTS = [
    Guarantee(epsilon=1.0, delta=1e-5, mu=0.3, answers=7, coarseness=1e-20),
    Guarantee(epsilon=2.0, delta=1e-6, mu=0.6, answers=3, coarseness=1e-21),
    Guarantee(epsilon=1.0, delta=0.0, mu=0.0, laplace=(1.0,)),
    Guarantee(epsilon=1.2, delta=0.0, mu=0.0, laplace=(0.3, 0.4, 0.5), adaptive=True),
    Guarantee(epsilon=0.9, delta=0.0, mu=0.0, pure=(0.9,)),
    compose(
        Guarantee(epsilon=1.0, delta=1e-5, mu=0.3, answers=2, coarseness=1e-20),
        Guarantee(epsilon=0.4, delta=0.0, mu=0.0, laplace=(0.4,)),
    ),
]


@pytest.mark.parametrize("one", PARTS, ids=str)
@pytest.mark.parametrize("other", PARTS, ids=str)
def test_of_different_people_each_keeps_what_is_stated_of_all(one, other):
    one, other = (replace(part, epsilon=part.epsilon_at(part.delta)) for part in (one, other))
    together = compose_parallel(one, other)
    for epsilon in (0.0, 0.1, 0.5, 1.0, 1.7, 4.0):
        for part in (one, other):
            assert together.delta_at(epsilon) >= part.delta_at(epsilon) * (1 - 1e-9)
    together.validate()
    together.check_holds()
    # And less than if they were the same people.
    assert together.mu <= compose(one, other).mu
    assert together.epsilon_of_parts == max(one.epsilon_of_parts, other.epsilon_of_parts)


def test_of_alike_gaussian_noise_about_different_people_the_guarantee_is_that_of_one():
    part = PARTS[0]
    assert compose_parallel(part, part).mu == part.mu
    assert compose_parallel(part, part).delta_at(1.0) == part.delta_at(1.0)


def test_composing_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        compose()


@pytest.mark.parametrize(
    "parts",
    [
        ([Guarantee(epsilon=1, delta=0.01, mu=0.5)] * 2,),
        ((guarantee for guarantee in ()),),
        (compose_with_selection(Guarantee(epsilon=1, delta=0.01, mu=0.5), 0.5),),
        (1.0, None),
        ("(1, 0.01)",),
    ],
)
def test_only_guarantees_of_one_kind_add_up(parts):
    """A list was handed back as it was, as if it were what everything costs together."""
    with pytest.raises(TypeError, match=r"one by one|only guarantees of type Guarantee"):
        compose(*parts)


# Parts whose sizes answers decide.


def deciding(*parts, mu=0.0, delta=0.0):
    fixed = Guarantee(epsilon=math.fsum(parts), delta=delta, mu=mu, laplace=parts)
    return fixed, replace(fixed, adaptive=True)


@given(epsilon=st.floats(0, 2), parts=st.lists(st.floats(0.01, 2), min_size=1, max_size=4))
@settings(max_examples=30, deadline=None)
def test_of_parts_that_answers_decide_only_the_sum_counts(epsilon, parts):
    fixed, deciding_parts = deciding(*parts)
    total = math.fsum(parts)
    # A coin that shows the truth with probability e^s/(1 + e^s).
    exact = max(0.0, (math.exp(total) - math.exp(epsilon)) / (1 + math.exp(total)))
    assert exact <= deciding_parts.delta_at(epsilon) <= exact * (1 + 1e-9) + 1e-9
    assert fixed.delta_at(epsilon) <= deciding_parts.delta_at(epsilon) + 1e-9


@given(delta=st.floats(1e-9, 0.9), mu=st.sampled_from([0.0, 0.3, 2.0]))
@settings(max_examples=30, deadline=None)
def test_profiles_of_parts_that_answers_decide_invert_each_other(delta, mu):
    fixed, deciding_parts = deciding(0.3, 0.7, mu=mu, delta=1e-9)
    epsilon = deciding_parts.epsilon_at(delta)
    assert deciding_parts.delta_at(epsilon) <= delta
    assert epsilon >= fixed.epsilon_at(delta) - 1e-9
    if epsilon > 1e-3:
        assert deciding_parts.delta_at(epsilon - 1e-3) > delta * (1 - 1e-3) - 1e-12


def test_a_mechanism_whose_answers_decide_may_spend_more_than_fixed_parts_do():
    """Look at a coin; where it went against the truth, buy no more than a hundredth at a time."""
    whole, first, steps = 2.0, 1.0, 100

    def right(epsilon):
        return math.exp(epsilon) / (1 + math.exp(epsilon))

    def outcomes(truth):
        """Probabilities of (first coin, number of later coins that say 1)."""
        found = {}
        for coin in (0, 1):
            chance = right(first) if coin == truth else 1 - right(first)
            many = steps if coin == 0 else 1
            law = stats.binom(
                many, right((whole - first) / many) if truth else 1 - right((whole - first) / many)
            )
            found |= {(coin, k): chance * law.pmf(k) for k in range(many + 1)}
        return found

    one, other = outcomes(1), outcomes(0)
    for epsilon in (0.0, 0.5, 1.0, 1.5):
        exact = max(
            sum(max(p - math.exp(epsilon) * b[key], 0.0) for key, p in a.items())
            for a, b in ((one, other), (other, one))
        )
        stated = deciding(first, whole - first)[1].delta_at(epsilon)
        assert exact <= stated
        # Of a hundred fixed small parts it would be said to be less than it is.
        small = [(whole - first) / steps] * steps
        assert exact > deciding(first, *small)[0].delta_at(epsilon)


def test_what_answers_decide_stays_so_when_it_is_composed():
    fixed, deciding_parts = deciding(0.5)
    assert compose(fixed, deciding_parts).adaptive
    assert not compose(fixed, fixed).adaptive


def test_what_is_printed_of_a_guarantee_is_rounded_up():
    mixed = Guarantee(epsilon=1.00001, delta=1.00001e-3, mu=0.30001, laplace=(0.20001,))
    assert str(mixed) == ("(1.001, 0.001001)-differential privacy (mu = 0.3001; Laplace 0.2001)")
    pure = Guarantee(epsilon=1.00001, delta=0.0, mu=0.0, laplace=(1.00001,))
    assert str(pure) == "1.001-differential privacy"
