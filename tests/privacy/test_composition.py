"""A private choice and the release made with it, against brute force over every event."""

import itertools
import math

import numpy as np
import pytest
from dp_accounting.pld import common, privacy_loss_distribution
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cloakgp.privacy.accounting import Guarantee, compose, exact_noise_multiplier, gaussian_delta
from cloakgp.privacy.composition import (
    PIECES,
    MixedGuarantee,
    _ends,
    compose_with_selection,
    worst_release,
)
from cloakgp.privacy.grid import Sensitivity, calibrate
from cloakgp.privacy.questions.bounds import OutputBounds

EPSILONS = (0.0, 0.2, 0.7, 1.3, 2.5)
CUTS = np.linspace(-6.0, 7.0, 1500)


def binned_normal(mean):
    """A normal of sd 1, rounded: post-processing of the Gaussian mechanism, and a finite table."""
    return np.diff(np.concatenate([[0.0], stats.norm.cdf(CUTS, loc=mean), [1.0]]))


def largest_gap(choice, other_choice, shifts, *, epsilon):
    """The largest of P(A) − e^ε Q(A) over every event A of a choice and its release."""
    base = binned_normal(0.0)
    joint = np.concatenate([p * base for p in choice])
    other = np.concatenate(
        [q * binned_normal(shift) for q, shift in zip(other_choice, shifts, strict=True)]
    )
    return float(np.maximum(joint - math.exp(epsilon) * other, 0.0).sum())


def stated(mechanism, *, mu, spent):
    return MixedGuarantee(
        epsilon=math.inf,
        delta=0.01,
        selection_epsilon=spent,
        mechanism=mechanism,
        release=Guarantee(epsilon=1.0, delta=0.01, mu=mu),
    )


def exponential_mechanism(scores, spent):
    weights = np.exp(spent / 2 * (scores - scores.max()))
    return weights / weights.sum()


@given(
    seed=st.integers(0, 2**32 - 1),
    spent=st.sampled_from([0.1, 1.0, 3.0]),
    mu=st.sampled_from([0.3, 1.0]),
)
def test_no_event_of_an_exponential_mechanism_and_its_release_beats_the_bound(seed, spent, mu):
    rng = np.random.default_rng(seed)
    scores = rng.normal(scale=3.0, size=4)
    moved = scores + rng.choice([-1.0, 1.0], size=4)
    # The release depends on the choice: its size and direction of move do.
    shifts = mu * rng.choice([-1.0, -0.4, 1.0], size=4)
    pair = exponential_mechanism(scores, spent), exponential_mechanism(moved, spent)
    total = stated("exponential", mu=mu, spent=spent)
    for epsilon in EPSILONS:
        assert largest_gap(*pair, shifts, epsilon=epsilon) <= total.delta_at(epsilon)


@given(
    seed=st.integers(0, 2**32 - 1),
    spent=st.sampled_from([0.1, 1.0, 3.0]),
    mu=st.sampled_from([0.3, 1.0]),
)
def test_no_event_of_any_private_choice_and_its_release_beats_the_bound(seed, spent, mu):
    """Any two distributions within e^±ε of each other, such as permute-and-flip's."""
    rng = np.random.default_rng(seed)
    choice = rng.dirichlet(np.ones(5))
    # Move mass by factors in [e^-ε, e^ε], and mend one share so that the sum is 1.
    other = choice * np.exp(rng.uniform(-spent, spent, size=5))
    other /= other.sum()
    ratio = np.log(other / choice)
    within = float(np.abs(ratio).max())
    shifts = mu * rng.choice([-1.0, -0.4, 1.0], size=5)
    total = stated("permute-and-flip", mu=mu, spent=within)
    for epsilon in EPSILONS:
        assert largest_gap(choice, other, shifts, epsilon=epsilon) <= total.delta_at(epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("spent", [0.2, 1.0])
def test_randomised_response_attains_the_bound(epsilon, spent):
    truth = 1 / (1 + math.exp(-spent))
    found = largest_gap(
        np.array([truth, 1 - truth]), np.array([1 - truth, truth]), (1.0, 1.0), epsilon=epsilon
    )
    bound = stated("permute-and-flip", mu=1.0, spent=spent).delta_at(epsilon)
    # The rounded normal has lost a little.
    assert found <= bound
    assert found == pytest.approx(bound, rel=1e-3)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("spent", [0.2, 1.0])
def test_generalised_randomised_response_nearly_attains_the_bound(epsilon, spent):
    found = []
    for t in np.linspace(0.0, spent, 101)[1:-1]:
        first = math.expm1(spent - t) / (math.exp(spent - t) - math.exp(-t))
        choice = np.array([first, 1 - first])
        other = choice * np.exp([-t, spent - t])
        assert other.sum() == pytest.approx(1.0)
        found.append(largest_gap(choice, other, (1.0, 1.0), epsilon=epsilon))
    bound = stated("exponential", mu=1.0, spent=spent).delta_at(epsilon)
    assert max(found) <= bound
    assert max(found) == pytest.approx(bound, rel=0.03)


def test_a_halved_loss_is_caught():
    """Mutation: a bound for half of what the choice spends is below what an event attains."""
    truth = 1 / (1 + math.exp(-1.0))
    pair = np.array([truth, 1 - truth]), np.array([1 - truth, truth])
    found = largest_gap(*pair, (1.0, 1.0), epsilon=0.7)
    assert found > stated("permute-and-flip", mu=1.0, spent=0.5).delta_at(0.7)


@pytest.mark.parametrize(("spent", "mu"), [(0.3, 0.5), (1.0, 0.5), (2.0, 1.2)])
def test_against_dp_accounting(spent, mu):
    choice = privacy_loss_distribution.from_privacy_parameters(
        common.DifferentialPrivacyParameters(spent, 0.0), value_discretization_interval=1e-4
    )
    release = privacy_loss_distribution.from_gaussian_mechanism(
        1 / mu, value_discretization_interval=1e-4
    )
    both = choice.compose(release)
    total = stated("permute-and-flip", mu=mu, spent=spent)
    for epsilon in EPSILONS:
        assert total.delta_at(epsilon) == pytest.approx(
            both.get_delta_for_epsilon(epsilon), rel=2e-3
        )


@pytest.mark.parametrize("mechanism", ["permute-and-flip", "exponential"])
@pytest.mark.parametrize(
    ("epsilon", "delta", "spent"),
    [*itertools.product([0.2, 2.0], [1e-6, 0.01], [1e-6, 0.5, 4.0]), (50.0, 0.01, 500.0)],
)
def test_between_the_release_alone_and_basic_composition(mechanism, epsilon, delta, spent):
    release = worst_release(epsilon, delta, rows=300, answers=900)
    total = compose_with_selection(release, spent, mechanism=mechanism)
    assert total.delta == delta
    assert release.epsilon_at(delta) * (1 - 1e-9) <= total.epsilon
    assert total.epsilon <= (release.epsilon_at(delta) + spent) * (1 + 1e-9)
    assert total.delta_at(total.epsilon) <= delta
    assert total.delta_at(total.epsilon * (1 - 1e-6)) > delta


@pytest.mark.parametrize("mechanism", ["permute-and-flip", "exponential"])
def test_float64_finds_what_80_digits_confirm(mechanism, monkeypatch):
    """Every step of the search in 80 digits took seconds for an exponential mechanism."""
    release = worst_release(1.0, 0.01, rows=300, answers=900)
    total = stated(mechanism, mu=release.mu, spent=0.7)
    evaluated = []

    def counted(mu, epsilon):
        evaluated.append(epsilon)
        return gaussian_delta(mu, epsilon)

    monkeypatch.setattr("cloakgp.privacy.composition.gaussian_delta", counted)
    found = {delta: total.epsilon_at(delta) for delta in (1e-9, 0.01, 0.1, 0.9)}
    assert len(evaluated) <= len(found) * 2 * PIECES
    # Whatever float64 says, nothing is returned that the bound does not confirm.
    for wrong in (0.0, 1.0, math.nan):
        monkeypatch.setattr(MixedGuarantee, "_rough_delta_at", lambda *_, wrong=wrong: wrong)
        for delta in (0.01, 0.9):
            epsilon = total.epsilon_at(delta)
            assert total.delta_at(epsilon) <= delta
            if wrong == 0.0:
                assert epsilon == found[delta]


@pytest.mark.parametrize("mechanism", ["permute-and-flip", "exponential"])
def test_choices_beyond_what_float64_can_raise_e_to(mechanism):
    """e^1e4 overflowed, and nothing was said of what a choice costs."""
    release = worst_release(1.0, 0.01, rows=300, answers=900)
    total = compose_with_selection(release, 1e4, mechanism=mechanism)
    assert 1e4 - 10 < total.epsilon <= 1e4 + 1 + 1e-4
    for lowest, highest in ((-1e4, 1e4), (-1e-9, 2.0), (-3.0, 1e-9), (-0.5, 0.7)):
        (first, upper), (second, lower) = _ends(lowest, highest)
        assert first + second == pytest.approx(1.0)
        assert (upper, lower) == (highest, lowest)
        # The mean of the ratio, over e^−lo so that it can be held.
        mean = first * math.exp(lowest - highest) + second
        assert mean == pytest.approx(math.exp(lowest))


def test_the_exponential_mechanism_composes_better():
    release = worst_release(1.0, 0.01, rows=300, answers=900)
    flip, exponential = (
        compose_with_selection(release, 1.0, mechanism=mechanism).epsilon
        for mechanism in ("permute-and-flip", "exponential")
    )
    assert exponential < 1.6 < 1.9 < flip < 2.0


def test_with_a_release_that_asked_nothing_the_choice_is_all():
    nothing = Guarantee(epsilon=1.0, delta=0.01, mu=0.0)
    for mechanism in ("permute-and-flip", "exponential"):
        total = stated(mechanism, mu=0.0, spent=0.8)
        assert total.delta_at(0.8) == pytest.approx(0.0, abs=1e-15)
        assert total.delta_at(0.0) > 0
        assert compose_with_selection(nothing, 0.8, mechanism=mechanism).epsilon <= 0.8


def test_profiles_fall():
    for mechanism in ("permute-and-flip", "exponential"):
        total = stated(mechanism, mu=0.7, spent=1.0)
        deltas = [total.delta_at(epsilon) for epsilon in np.linspace(0.0, 4.0, 30)]
        assert all(left >= right for left, right in itertools.pairwise(deltas))


@pytest.mark.parametrize("rows", [2, 300, 10**6])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.05, 1e-9), (1.0, 0.01), (20.0, 1e-3)])
def test_the_worst_release_is_worse_than_every_release(rows, epsilon, delta):
    worst = worst_release(epsilon, delta, rows=rows, answers=3 * rows)
    assert gaussian_delta(worst.mu, epsilon) > delta
    assert worst.mu == pytest.approx(1 / exact_noise_multiplier(epsilon, delta), rel=1e-6)
    bounds = OutputBounds(-3.0, 7.0)
    some = min(rows, 1000)
    for strategy in (np.ones((1, some)), np.eye(min(some, 20), some), np.full((3, some), 1e-3)):
        _, guarantee = calibrate(
            strategy,
            sensitivity=Sensitivity.of_strategy(strategy, question=bounds),
            epsilon=epsilon,
            delta=delta,
        )
        assert guarantee.mu < worst.mu
        assert guarantee.answers <= worst.answers
        assert guarantee.coarseness <= worst.coarseness


def test_the_worst_release_covers_answers_that_outgrow_the_finest_grid():
    rows, bounds = 3_000_000, OutputBounds(0.0, 1.0)
    _, guarantee = calibrate(
        np.ones((1, rows)),
        sensitivity=Sensitivity.of_strategy(np.ones((1, rows)), question=bounds),
        epsilon=1.0,
        delta=0.01,
    )
    assert guarantee.coarseness <= worst_release(1.0, 0.01, rows=rows, answers=rows).coarseness


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"selection_epsilon": 0.0}, "epsilon"),
        ({"selection_epsilon": math.inf}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"mechanism": "coin"}, "mechanism"),
    ],
)
def test_bad_settings(change, complaint):
    settings = {"selection_epsilon": 1.0} | change
    with pytest.raises(ValueError, match=complaint):
        compose_with_selection(Guarantee(epsilon=1.0, delta=0.01, mu=0.5), **settings)


def test_bad_points_of_the_profile():
    total = stated("permute-and-flip", mu=0.5, spent=1.0)
    with pytest.raises(ValueError, match="epsilon"):
        total.delta_at(-1.0)
    with pytest.raises(ValueError, match="delta"):
        total.epsilon_at(0.0)


def test_a_delta_that_the_grid_cannot_hold():
    coarse = Guarantee(epsilon=1.0, delta=0.01, mu=0.5, answers=3, coarseness=1e-4)
    with pytest.raises(ValueError, match="too small"):
        compose_with_selection(coarse, 1.0, delta=1e-9)


# --- beside Laplace noise ---

LATER = Guarantee(epsilon=0.5, delta=0.0, mu=0.0, laplace=(0.5,))


@pytest.mark.parametrize("mechanism", ["permute-and-flip", "exponential"])
def test_measurements_with_laplace_noise_count_beside_a_choice(mechanism):
    """They were left out: whoever asked again with Laplace noise was told the old total."""
    once = Guarantee(epsilon=1.0, delta=0.01, mu=0.5325)
    alone = compose_with_selection(once, 0.5, mechanism=mechanism)
    both = compose_with_selection(compose(once, LATER), 0.5, mechanism=mechanism)
    assert both.epsilon == pytest.approx(alone.epsilon + 0.5, rel=1e-6)
    assert both.mu > np.hypot(alone.mu, 0.5)
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        # At least what an attacker gains from the Laplace part, and from the rest.
        assert both.delta_at(epsilon) >= LATER.delta_at(epsilon)
        assert both.delta_at(epsilon) >= alone.delta_at(epsilon)
        assert both.delta_at(epsilon + 0.5) <= alone.delta_at(epsilon) * (1 + 1e-9)
    for delta in (1e-6, 1e-2):
        assert both.delta_at(both.epsilon_at(delta)) <= delta


def test_a_choice_beside_laplace_noise_alone():
    total = compose_with_selection(LATER, 0.5, delta=1e-3)
    assert total.epsilon <= 1.0 * (1 + 1e-9)
    assert total.delta_at(1.0 + 1e-6) == 0.0
