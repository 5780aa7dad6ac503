"""Rounding errors of float64, as the proofs of this package count them."""

from __future__ import annotations

import math
from fractions import Fraction

UNIT_ROUNDOFF = 2.0**-53


def gamma(operations: int) -> float:
    """Return Higham's γ_n = n u / (1 − n u), the largest relative error of n roundings.

    Higham 2002, *Accuracy and Stability of Numerical Algorithms*, lemma 3.1.

    Parameters
    ----------
    operations : int
        n.

    Examples
    --------
    >>> gamma(2) > 2 * UNIT_ROUNDOFF
    True
    """
    return operations * UNIT_ROUNDOFF / (1 - operations * UNIT_ROUNDOFF)


def sum_of_shares(rows: int) -> float:
    """Return at least what n rounded shares 1/n add up to, in any order.

    Parameters
    ----------
    rows : int
        n.

    Examples
    --------
    >>> sum_of_shares(10) >= sum([1 / 10] * 10)
    True
    """
    return 1.0 + 8 * gamma(2 * rows + 2)


def round_up(exact: Fraction) -> float:
    """Return the least float64 that is at least as large.

    Parameters
    ----------
    exact : Fraction

    Examples
    --------
    >>> round_up(Fraction(1, 2)), round_up(Fraction(1, 10)) >= Fraction(1, 10)
    (0.5, True)
    """
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def decimal(value: float) -> Fraction:
    """Return the decimal number that a float64 is written as: the shortest that is read as it.

    Examples
    --------
    >>> decimal(0.1) * 3 == decimal(0.3)
    True
    """
    return Fraction(repr(float(value)))


def round_up_decimal(exact: Fraction) -> float:
    """Return the least float64 that is written as a number at least as large.

    Examples
    --------
    >>> round_up_decimal(Fraction(1, 5)), decimal(round_up_decimal(Fraction(1, 3))) > Fraction(1, 3)
    (0.2, True)
    """
    found = math.nextafter(float(exact), -math.inf)
    while decimal(found) < exact:
        found = math.nextafter(found, math.inf)
    return found
