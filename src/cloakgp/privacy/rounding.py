"""Rounding errors of float64: what the proofs of this package count with."""

from __future__ import annotations

UNIT_ROUNDOFF = 2.0**-53


def gamma(operations: int) -> float:
    """Return Higham's γ_n = n u / (1 − n u), the relative error that n roundings can add up to.

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
