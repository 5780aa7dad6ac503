"""Attackers: bounds of right guesses and of the power of tests under a guarantee.

Both hold for any use of a release, by attackers who know everything but which of two values one
person has. With P and Q the laws of what is published under either,
δ(ε) = max over events A of P(A) − e^ε Q(A), and the same with P and Q exchanged.
"""

from __future__ import annotations

import math

from cloakgp.privacy import Guarantee
from cloakgp.privacy.composition import MixedGuarantee

# Points of the ε–δ curve at which tests are bounded.
CURVE_STEPS = 40


def right_guess(guarantee: Guarantee | MixedGuarantee, *, belief: float = 0.5) -> float:
    r"""Return the largest share of right guesses of an attacker between two values of a person.

    An attacker who believes the first value with probability p ≤ ½ guesses it on an event A, and
    is right with probability p P(A) + (1 − p)(1 − Q(A)) = (1 − p) + p (P(A) − e^ε Q(A)) with
    e^ε = (1 − p)/p, which is at most (1 − p) + p δ(ε).

    Parameters
    ----------
    guarantee : Guarantee or MixedGuarantee
    belief : float
        p, from 0 to 1; above ½ the two values change places.

    Examples
    --------
    >>> from cloakgp import Guarantee
    >>> guarantee = Guarantee(epsilon=1.0, delta=0.0, mu=0.0, laplace=(1.0,))
    >>> round(right_guess(guarantee), 3), right_guess(guarantee, belief=0.1)
    (0.697, 0.9)
    """
    less = min(belief, 1.0 - belief)
    if less <= 0:
        return 1.0
    return (1.0 - less) + less * guarantee.delta_at(math.log((1.0 - less) / less))


def power_of_tests(guarantee: Guarantee | MixedGuarantee, *, false_alarms: float) -> float:
    """Return the largest power of a test with a given share of false alarms.

    Its power is at most e^ε α + δ(ε) for every ε: the least of these over some.

    Parameters
    ----------
    guarantee : Guarantee or MixedGuarantee
    false_alarms : float
        α.

    Examples
    --------
    >>> from cloakgp import Guarantee
    >>> guarantee = Guarantee(epsilon=1.0, delta=0.0, mu=0.0, laplace=(1.0,))
    >>> round(power_of_tests(guarantee, false_alarms=0.05), 3)
    0.136
    """
    others = (guarantee.epsilon * share / CURVE_STEPS for share in range(CURVE_STEPS + 1))
    return min(
        1.0,
        *(math.exp(epsilon) * false_alarms + guarantee.delta_at(epsilon) for epsilon in others),
    )
