r"""Pólya numbers, whose sums are geometric: shares of discrete Laplace noise, drawn exactly.

Let q = e^(−1/τ). A Pólya (negative binomial) number of shape r has the generating function
((1 − q)/(1 − q z))^r. So numbers of shapes that add up to 1 add up to a geometric one, of
probabilities (1 − q) q^k; and the difference of two independent geometric numbers has the
probabilities (1 − q)/(1 + q) q^|t| of discrete Laplace noise: if n custodians add a difference of
two Pólya numbers of shape 1/n each, they add, together, one draw of it (Goryczka and Xiong 2017, *A
comprehensive comparison of multiparty secure additions with differential privacy*, §4; on integers,
Ács and Castelluccia 2011 and Ghosh, Roughgarden and Sundararajan 2012).

Draw
----
The logarithm of the generating function is Σ_k r q^k/k (z^k − 1), over k ≥ 1: a Pólya number is the
sum of the points of a Poisson process on the whole numbers k ≥ 1, of intensities r q^k/k. It is
drawn by thinning a process that has at least these intensities. With K = 2^J the least power of two
that is not below τ, it has r points on average on each of J + 1 levels:

* level j < J, of the k from 2^j to 2^(j+1) − 1: each has the intensity r/2^j, and is kept with the
  probability 2^j/k · q^k;
* the last level, of k ≥ K, in blocks m = 0, 1, 2, … of the K numbers from K(1 + m) on: each of
  block m has the intensity r 2^−(m+1)/K, and is kept with the probability K/k · 2^(m+1) q^k. As k ≥
  K(1 + m) ≥ τ(1 + m), that is K/k · (2/e)^(m+1) · e^−(k/τ − m − 1), all factors at most 1.

So there are Poisson(r(J + 1)) points, each on any level alike. All probabilities are rational
numbers, e^−x of a rational x, or 2/e, and are drawn from uniform whole numbers, without floats:

* e^−x as Canonne, Kamath and Steinke 2020 do, algorithm 1;
* 2/e = Σ_i (−1)^i a_i, a_i = 2/(i + 2)!: coins of 1/3, 1/4, 1/5, … are thrown until one fails. At
  least i succeed with the probability a_i, so an even number does with 2/e;
* Poisson(λ) for λ ≤ ½, and sums of such for others: k has the probability 2^−(k+1), and is kept
  with Π_{i≤k} 2λ/i, which leaves k in proportion to λ^k/k!.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

Below = Callable[[int], int]
"""n → a uniform whole number from 0 to n − 1."""

HALF = Fraction(1, 2)


def draw_polya(shape: Fraction, *, scale: Fraction, below: Below) -> int:
    """Return a Pólya number.

    Parameters
    ----------
    shape : Fraction
        r, above 0.
    scale : Fraction
        τ, at least 1: q = e^(−1/τ).
    below : callable

    Examples
    --------
    >>> from random import Random
    >>> draw_polya(Fraction(1, 3), scale=Fraction(1000), below=Random(5).randrange) >= 0
    True
    """
    levels = (_ceiling(scale) - 1).bit_length()
    total = 0
    for _ in range(draw_poisson(shape * (levels + 1), below)):
        level = below(levels + 1)
        block, width = 0, 1 << level
        if level == levels:
            while below(2):
                block += 1
        point = width * (1 + block) + below(width)
        if below(point) >= width:
            continue
        exponent = Fraction(point) / scale
        if level == levels:
            if not all(_keeps_two_over_e(below) for _ in range(block + 1)):
                continue
            exponent -= block + 1
        if draw_bernoulli_exp(exponent, below):
            total += point
    return total


def draw_poisson(rate: Fraction, below: Below) -> int:
    """Return a Poisson number.

    Parameters
    ----------
    rate : Fraction
        Its mean, at least 0.
    below : callable
    """
    parts = _ceiling(rate * 2)
    return sum(_draw_small_poisson(rate / parts, below) for _ in range(parts))


def draw_bernoulli_exp(exponent: Fraction, below: Below) -> bool:
    """Return true with the probability e^−x.

    Parameters
    ----------
    exponent : Fraction
        x, at least 0.
    below : callable
    """
    while exponent > 1:
        if not _draw_bernoulli_exp_to_one(Fraction(1), below):
            return False
        exponent -= 1
    return _draw_bernoulli_exp_to_one(exponent, below)


def _draw_bernoulli_exp_to_one(exponent: Fraction, below: Below) -> bool:
    tried = 1
    while below(exponent.denominator * tried) < exponent.numerator:
        tried += 1
    return tried % 2 == 1


def _keeps_two_over_e(below: Below) -> bool:
    succeeded = 0
    while below(succeeded + 3) == 0:
        succeeded += 1
    return succeeded % 2 == 0


def _draw_small_poisson(rate: Fraction, below: Below) -> int:
    while True:
        count = 0
        while below(2):
            count += 1
        kept = (rate * 2 / each for each in range(1, count + 1))
        if all(below(each.denominator) < each.numerator for each in kept):
            return count


def _ceiling(number: Fraction) -> int:
    return -(-number.numerator // number.denominator)
