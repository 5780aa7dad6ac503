r"""Guesses, tests, odds: what a guarantee bounds of an attacker who wants to know a person's value.

Each follows from the guarantee's curve δ(ε), which bounds P(A) − e^ε Q(A) for every event A of what
is published, with P and Q its laws under two values of the person: of an attacker who knows all
others, and believes of this person whatever it may be.
"""

from __future__ import annotations

import math
import sys
from statistics import NormalDist

from cloakgp.privacy.accounting import Guarantee
from cloakgp.privacy.composition import MixedGuarantee

NORMAL = NormalDist()
# Points of the ε–δ curve at which tests are bounded.
CURVE_STEPS = 40
# By how many powers of e smaller factors than e^ε lie below it, over ε, at which odds are bounded:
# far below where δ falls slowly, and close to it where δ falls fast.
BELOW = tuple(2.0 ** (-step / 4) for step in range(1, 61))


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
    >>> guarantee = Guarantee(epsilon=1.0, delta=0.0, mu=0.0, laplace=(1.0,))
    >>> round(right_guess(guarantee), 3), right_guess(guarantee, belief=0.1)
    (0.697, 0.9)
    """
    less = min(belief, 1.0 - belief)
    if less <= 0:
        return 1.0
    return (1.0 - less) + less * guarantee.delta_at(math.log((1.0 - less) / less))


def right_guess_of_any(epsilon: float, delta: float) -> float:
    """Return the largest `right_guess` under any noise (Kairouz, Oh and Viswanath 2015).

    Parameters
    ----------
    epsilon, delta : float

    Examples
    --------
    >>> round(right_guess_of_any(1.0, 0.0), 3)
    0.731
    """
    return 1 - (1 - delta) * math.exp(-epsilon) / (1 + math.exp(-epsilon))


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
    >>> guarantee = Guarantee(epsilon=1.0, delta=0.0, mu=0.0, laplace=(1.0,))
    >>> round(power_of_tests(guarantee, false_alarms=0.05), 3)
    0.136
    """
    # Beyond, e^ε α is more than 1, which is no bound.
    largest = min(guarantee.epsilon, -math.log(max(false_alarms, sys.float_info.min)))
    others = (largest * share / CURVE_STEPS for share in range(CURVE_STEPS + 1))
    return min(
        1.0,
        *(math.exp(epsilon) * false_alarms + guarantee.delta_at(epsilon) for epsilon in others),
    )


def odds_beyond(guarantee: Guarantee, epsilon: float) -> float:
    r"""Bound the probability that odds between two values change by a factor of more than e^ε.

    Let P and Q be the laws of what is published under the true value and another, L = log dP/dQ,
    and ε' < ε. Where L > ε, dQ < e^{−ε} dP, so that for that event A

    .. math:: δ(ε') ≥ P(A) − e^{ε'} Q(A) ≥ (1 − e^{ε'−ε}) P(A),

    which bounds P(A). Where L < −ε, dP < e^{−ε} dQ: P is at most e^{−ε} times Q of that event, for
    which the same bound holds, with P and Q exchanged. Together they are (1 + e^{−ε}) times
    δ(ε')/(1 − e^{ε'−ε}), of which the least over some ε' is returned. It goes by the curve alone,
    and so holds however later questions depend on earlier answers; such an attacker may stop when
    the odds have moved far, and goes beyond `odds_beyond_once`.

    Parameters
    ----------
    guarantee : Guarantee
    epsilon : float
        Above 0.

    Examples
    --------
    >>> from cloakgp.privacy.accounting import exact_noise_multiplier
    >>> mu = 1 / exact_noise_multiplier(1.0, 1e-6)
    >>> guarantee = Guarantee(epsilon=1.0, delta=1e-6, mu=mu)
    >>> 1e-6 < odds_beyond_once(mu, 1.0) < odds_beyond(guarantee, 1.0) < 1e-4
    True
    """
    below = (
        guarantee.delta_at(epsilon * (1 - share)) / -math.expm1(-epsilon * share) for share in BELOW
    )
    return min(1.0, (1 + math.exp(-epsilon)) * min(below))


def odds_beyond_once(mu: float, epsilon: float) -> float:
    """Return what `odds_beyond` bounds for one draw of Gaussian noise for fixed questions.

    The logarithm of the likelihood ratio is N(±m²/2, m²) with m ≤ μ, and is beyond ±ε with a
    probability that grows with m.

    Parameters
    ----------
    mu : float
        Sensitivity over noise sd.
    epsilon : float

    Examples
    --------
    >>> round(odds_beyond_once(0.5, 1.0), 3)
    0.052
    """
    return NORMAL.cdf(mu / 2 - epsilon / mu) + NORMAL.cdf(-mu / 2 - epsilon / mu)
