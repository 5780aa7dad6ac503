"""How much neighbours can be told apart by noisy integers: exact, and by nobody else's accounting.

All with 50 digits (mpmath) or as fractions, but for what several draws of Laplace noise lose
together, which is rounded down to a grid, for the attacker's worse. δ(ε) of two distributions P and
Q is the most that P(S) − e^ε Q(S) can be, over events S.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import mpmath
import numpy as np
from attacks.tape import Draw
from scipy.special import log_ndtr, ndtr

DIGITS = 50
# Of the grid of losses, to their sum.
LOSS_STEPS = 2_000
mp = mpmath.MPContext()
mp.dps = DIGITS


def as_mp(number: Fraction | float) -> mpmath.mpf:
    """Return a fraction, or a double to its last bit."""
    exact = Fraction(number)
    return mp.mpf(exact.numerator) / exact.denominator


def squared_mu(one: Draw, other: Draw) -> Fraction:
    """Return the squared distance of integers in units of the noise's sd."""
    moved = sum((a - b) ** 2 for a, b in zip(one.integers, other.integers, strict=True))
    return Fraction(moved) / Fraction(one.scale) ** 2


def gaussian_delta(squared: Fraction, epsilon: mpmath.mpf) -> mpmath.mpf:
    """Return δ(ε) of N(0, 1) and N(μ, 1), for any real ε (Balle and Wang 2018, theorem 8).

    >>> mp.nstr(gaussian_delta(Fraction(1), mp.mpf(1)), 12)
    '0.126936737507'
    """
    if epsilon < 0:
        # P(S) − e^ε Q(S) is largest where Q(S') − e^−ε P(S') is, for the complement S'.
        return -mp.expm1(epsilon) + mp.exp(epsilon) * gaussian_delta(squared, -epsilon)
    if squared == 0:
        return mp.mpf(0)
    mu = mp.sqrt(as_mp(squared))
    first = mp.ncdf(mu / 2 - epsilon / mu)
    return first - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


def laplace_loss(one: Draw, other: Draw) -> Fraction:
    """Return the largest privacy loss of discrete Laplace noise on all integers."""
    moved = sum(abs(a - b) for a, b in zip(one.integers, other.integers, strict=True))
    return Fraction(moved) / Fraction(one.scale)


def laplace_delta(one: Draw, other: Draw, epsilon: mpmath.mpf) -> mpmath.mpf:
    """Return at least δ(ε) of discrete Laplace noise, for any real ε; exactly if one integer moved.

    P(t)/P(t − d) falls from e^{d/τ} to e^{−d/τ} in steps of two losses, so the best event is t ≤ t*
    with (d − 2t)/τ > ε. Several integers that moved are no further apart than one that moved by all
    of their moves: `tests/privacy/noise/test_laplace.py` holds that against convolutions.
    """
    shift = sum(abs(a - b) for a, b in zip(one.integers, other.integers, strict=True))
    scale = as_mp(one.scale)
    if shift / scale <= epsilon:
        return mp.mpf(0)
    if shift / scale <= -epsilon:
        return -mp.expm1(epsilon)
    last = int(mp.ceil((shift - epsilon * scale) / 2)) - 1
    return _laplace_below(last, scale) - mp.exp(epsilon) * _laplace_below(last - shift, scale)


def _laplace_below(last: int, scale: mpmath.mpf) -> mpmath.mpf:
    """Return P(T ≤ t) for P(T = t) in proportion to exp(−|t|/τ)."""
    share = 1 / (1 + mp.exp(-1 / scale))
    if last < 0:
        return mp.exp(last / scale) * share
    return 1 - mp.exp(-(last + 1) / scale) * share


def composed_delta(losses: Sequence[Fraction], squared: Fraction, epsilon: float) -> float:
    """Return at most δ(ε) of Laplace noise in several draws and of a Gaussian release, and nearly.

    Of one draw in which a single integer moves, far on its grid, the loss is ±ℓ with probability ½
    and ½ e^−ℓ, and in between of density ¼ e^((l − ℓ)/2). Losses are rounded down to a grid, so
    that an attacker does at least this well, and what is left to the Gaussian release is exact.
    """
    step = float(sum(losses)) / LOSS_STEPS
    lowest, shares = 0.0, np.ones(1)
    for loss in losses:
        found = _laplace_losses(float(loss), step)
        lowest, shares = lowest - float(loss), np.convolve(shares, found)
    left = epsilon - (lowest + step * np.arange(len(shares)))
    if squared == 0:
        return float(shares @ -np.expm1(np.minimum(left, 0.0)))
    mu = math.sqrt(squared)
    return float(shares @ (ndtr(mu / 2 - left / mu) - np.exp(left + log_ndtr(-mu / 2 - left / mu))))


def _laplace_losses(loss: float, step: float) -> np.ndarray:
    """Return how probable losses are that are rounded down to −ℓ and steps above it."""
    edges = -loss + step * np.arange(math.ceil(2 * loss / step) + 1)
    below = np.exp((np.minimum(edges, loss) - loss) / 2) / 2
    shares = np.append(np.diff(below), 0.0)
    shares[0] += math.exp(-loss) / 2
    # The greatest loss, with probability ½, is rounded down like all others.
    shares[int(2 * loss / step * (1 - 1e-12))] += 0.5
    return shares


def probabilities(draw: Draw) -> list[mpmath.mpf]:
    """Return how probable it is for each score to be the noisy maximum.

    With Gumbel noise of scale b, in proportion to exp(q/b). With exponential noise, with
    a = (q − max q)/b, it is e^{a_i} ∫₀¹ Π_{j≠i} (1 − u e^{a_j}) du: the noise on the i-th takes it
    to max q + b log(1/u), and the others stay below.

    >>> draw = Draw("exponential", (3, 1, 0), 2.0, 1, (0,))
    >>> mp.nstr(sum(probabilities(draw)), 12)
    '1.0'
    """
    scale, highest = as_mp(draw.scale), max(draw.integers)
    weights = [mp.exp((score - highest) / scale) for score in draw.integers]
    if draw.noise == "gumbel":
        total = mp.fsum(weights)
        return [weight / total for weight in weights]
    return [
        weight * _integral_of_product([w for at, w in enumerate(weights) if at != index])
        for index, weight in enumerate(weights)
    ]


def _integral_of_product(weights: Sequence[mpmath.mpf]) -> mpmath.mpf:
    """Return ∫₀¹ Π (1 − u w) du."""
    coefficients = [mp.mpf(1)]
    for weight in weights:
        shifted = [mp.mpf(0), *coefficients]
        coefficients = [
            one - weight * other for one, other in zip([*coefficients, 0], shifted, strict=True)
        ]
    return mp.fsum(one / (power + 1) for power, one in enumerate(coefficients))


def chosen_delta(
    first: Draw, second: Draw, later: Sequence[Fraction], epsilon: mpmath.mpf
) -> mpmath.mpf:
    """Return δ(ε) of a choice followed by a Gaussian release that depends on what was chosen.

    The density of choice i and answers a is p_i g_i(a), so δ(ε) = Σ p_i δ_{μ_i}(ε − log p_i/p'_i).

    Parameters
    ----------
    first, second : Draw
        Of the choice, for two data sets.
    later : sequence of Fraction
        μ_i², for every choice.
    epsilon : mpf
    """
    total = mp.mpf(0)
    ways = zip(probabilities(first), probabilities(second), later, strict=True)
    for here, there, squared in ways:
        total += here * gaussian_delta(squared, epsilon - mp.log(here / there))
    return total
