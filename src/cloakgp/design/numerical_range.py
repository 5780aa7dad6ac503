"""Numerical range of a cloaking matrix: the directions in which it really acts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from cloakgp.utils.arrays import Array

# Directions whose singular value is below this share of the largest carry no digits that float64
# predictions could show. They are not asked for, and so nothing is published along them.
RANGE_TOLERANCE = float(np.sqrt(np.finfo(np.float64).eps))
# Matrices so many times as wide as tall, and whose least singular value is above some such share of
# the largest, are decomposed by products alone.
WIDE, WELL_CONDITIONED = 4, 1e-4


@dataclass(frozen=True)
class NumericalRange:
    """A thin singular value decomposition, cut off at the tolerance.

    Attributes
    ----------
    left : array of shape (P, r)
    scales : array of shape (r,)
        Singular values, largest first.
    right : array of shape (r, N)
    """

    left: Array
    scales: Array
    right: Array


def numerical_range(matrix: Array, *, tolerance: float = RANGE_TOLERANCE) -> NumericalRange:
    """Decompose a matrix and keep the directions above the tolerance.

    Parameters
    ----------
    matrix : array of shape (P, N)
    tolerance : float
        Relative to the largest singular value.

    Returns
    -------
    NumericalRange
        Of rank 0 for a matrix of zeros.

    Examples
    --------
    >>> numerical_range(np.ones((3, 4))).scales.round(3)
    array([3.464])
    """
    wide = _well_conditioned(matrix)
    if wide is not None and wide.scales[-1] > tolerance * wide.scales[0]:
        return wide
    try:
        left, scales, right = np.linalg.svd(matrix, full_matrices=False)
    except np.linalg.LinAlgError:
        # The fast driver can fail to converge on wild scales; this one is slower and does not.
        left, scales, right = linalg.svd(matrix, full_matrices=False, lapack_driver="gesvd")
    rank = int(np.count_nonzero(scales > tolerance * scales[0])) if len(scales) else 0
    return NumericalRange(left=left[:, :rank], scales=scales[:rank], right=right[:rank])


def _well_conditioned(matrix: Array) -> NumericalRange | None:
    """Decompose a wide matrix by two Cholesky factors, or return None if its rank is in doubt.

    Orthogonal to rounding, and as accurate as Householder's factors, where the condition number is
    well below ε_mach^-½ (Yamamoto, Nakatsukasa, Yanagisawa and Fukaya 2015), in a few products.
    """
    rows, columns = matrix.shape
    largest = float(np.abs(matrix).max(initial=0.0))
    if columns < WIDE * rows or not 0.0 < largest < np.inf:
        return None
    orthogonal = matrix / largest
    triangle = np.eye(rows)
    for _ in range(2):
        factor, failed = linalg.lapack.dpotrf(orthogonal @ orthogonal.T, lower=1, clean=1)
        diagonal = np.diag(factor)
        if failed or diagonal.min() <= WELL_CONDITIONED * diagonal.max():
            return None
        inverse, _ = linalg.lapack.dtrtri(factor, lower=1)
        if np.linalg.norm(inverse) * np.linalg.norm(factor) >= rows / WELL_CONDITIONED:
            return None
        orthogonal = inverse @ orthogonal
        triangle = triangle @ factor
    left, scales, right = np.linalg.svd(triangle)
    return NumericalRange(left=left, scales=scales * largest, right=right @ orthogonal)
