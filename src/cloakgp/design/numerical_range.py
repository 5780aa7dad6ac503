"""The directions in which a cloaking matrix really acts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from cloakgp.arrays import Array

# Directions whose singular value is below this share of the largest carry no digits that float64
# predictions could show. They are not asked for, and so nothing is published along them.
RANGE_TOLERANCE = float(np.sqrt(np.finfo(np.float64).eps))


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
    try:
        left, scales, right = np.linalg.svd(matrix, full_matrices=False)
    except np.linalg.LinAlgError:
        # The fast driver can fail to converge on wild scales; this one is slower and does not.
        left, scales, right = linalg.svd(matrix, full_matrices=False, lapack_driver="gesvd")
    rank = int(np.count_nonzero(scales > tolerance * scales[0])) if len(scales) else 0
    return NumericalRange(left=left[:, :rank], scales=scales[:rank], right=right[:rank])
