"""ε-differential privacy: its profile, its Gaussian statement, and composition."""

import math
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import common, privacy_loss_distribution
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.privacy.accounting import Guarantee, gaussian_delta
from cloakgp.privacy.gaussian import measure
from cloakgp.privacy.pure_dp import PureGuarantee, compose_pure


@given(st.floats(1e-3, 8), st.floats(0, 1))
def test_profile_is_that_of_randomised_response(epsilon, share):
    guarantee = PureGuarantee(epsilon=epsilon)
    other = share * epsilon
    truth = 1 / (1 + math.exp(-epsilon))
    # The event that the truth is told.
    attained = max(0.0, truth - math.exp(other) * (1 - truth))
    assert guarantee.delta_at(other) == pytest.approx(attained, abs=1e-11)
    assert guarantee.epsilon_at(guarantee.delta_at(other)) == pytest.approx(other, abs=1e-7)
    assert guarantee.delta_at(epsilon) == guarantee.delta == 0.0
    assert guarantee.epsilon_at(0.0) == epsilon


@given(st.floats(-3, 3).map(lambda power: 10.0**power), st.floats(0, 0.999))
def test_the_two_directions_of_the_profile_agree_safely(epsilon, delta):
    guarantee = PureGuarantee(epsilon=epsilon)
    assert guarantee.delta_at(guarantee.epsilon_at(delta)) <= delta
    assert guarantee.epsilon_at(delta) <= epsilon


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_the_profile_is_above_that_of_laplace_noise_itself(epsilon):
    laplace = privacy_loss_distribution.from_laplace_mechanism(
        1 / epsilon, value_discretization_interval=1e-4
    )
    guarantee = PureGuarantee(epsilon=epsilon)
    for share in (0.0, 0.3, 0.9):
        exact = laplace.get_delta_for_epsilon(share * epsilon)
        assert exact <= guarantee.delta_at(share * epsilon)
        # Half of randomised response's at worst, for large ε.
        assert guarantee.delta_at(share * epsilon) <= 2 * exact


@given(st.floats(-9, 1.5).map(lambda power: 10.0**power))
def test_its_gaussian_statement_is_true(epsilon):
    """At every ε', the Gaussian profile of its μ is at least that of randomised response."""
    guarantee = PureGuarantee(epsilon=epsilon)
    for share in (0.0, 0.25, 0.5, 0.9, 1.0):
        bound = gaussian_delta(guarantee.mu, share * epsilon)
        # Both are rounded up.
        assert guarantee.delta_at(share * epsilon) <= bound * (1 + 2.0**-38)
    # At the diagonal the two meet: δ(0) is the same.
    assert gaussian_delta(guarantee.mu, 0.0) == pytest.approx(
        guarantee.delta_at(0.0), rel=1e-9, abs=1e-13
    )
    stated = guarantee.as_gaussian(1e-3)
    assert stated.delta_at(stated.epsilon) <= 1e-3


def test_composition_with_gaussian_releases():
    release = measure(np.eye(2), [0.0, 1.0], bounds=(0, 1), epsilon=1.0, delta=0.01).guarantee
    spent = PureGuarantee(epsilon=0.8)
    both = privacy_loss_distribution.from_privacy_parameters(
        common.DifferentialPrivacyParameters(0.8, 0.0), value_discretization_interval=1e-4
    ).compose(
        privacy_loss_distribution.from_gaussian_mechanism(
            release.noise_multiplier, value_discretization_interval=1e-4
        )
    )
    assert spent.epsilon_with(release) == pytest.approx(both.get_epsilon_for_delta(0.01), rel=2e-3)
    assert spent.epsilon_with(release, delta=0.05) < spent.epsilon_with(release) < 1.8


def test_composition_adds_up_and_never_rounds_down():
    parts = [PureGuarantee(epsilon=0.1, answers=2)] * 3
    total = compose_pure(*parts)
    assert Fraction(total.epsilon) >= 3 * Fraction(0.1)
    assert total.epsilon == pytest.approx(0.3)
    assert total.answers == 6
    assert compose_pure(parts[0]) is parts[0]
    with pytest.raises(ValueError, match="nothing to compose"):
        compose_pure()
    for wrong in ([parts], [Guarantee(epsilon=1.0, delta=0.01, mu=0.5)], [parts[0], 1.0]):
        with pytest.raises(TypeError, match=r"one by one|only guarantees of type PureGuarantee"):
            compose_pure(*wrong)


def test_bad_points_of_the_profile():
    with pytest.raises(ValueError, match="epsilon"):
        PureGuarantee(epsilon=1.0).delta_at(-1.0)
    with pytest.raises(ValueError, match="delta"):
        PureGuarantee(epsilon=1.0).epsilon_at(1.0)
