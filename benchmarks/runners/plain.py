"""The plain pass: what no fit of a sparse model can do without, in NumPy and SciPy alone.

Kernel, triangular solve and one product for every chunk: V Vᵀ over all rows. The limit that passes
are measured against.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg
from scipy.spatial.distance import cdist

CHUNK_ROWS = 8192


def features(X, inducing, *, lengthscale, factor):
    """Return the features of rows under a Matérn 3/2 kernel of variance 1, shape (M, n).

    Parameters
    ----------
    X : array of shape (n, D)
    inducing : array of shape (M, D)
    lengthscale : float, or array of shape (D,)
    factor : array of shape (M, M)
        The lower Cholesky factor of the kernel between inducing inputs.
    """
    crossed = matern(X, inducing, lengthscale=lengthscale)
    return linalg.solve_triangular(factor, crossed.T, lower=True)


def matern(X, Z, *, lengthscale):
    """Return the Matérn 3/2 kernel of variance 1, shape (n, M)."""
    roots = np.sqrt(3.0) * cdist(X / lengthscale, Z / lengthscale)
    return (1.0 + roots) * np.exp(-roots)


def factor_of(inducing, *, lengthscale):
    """Return the lower Cholesky factor of the kernel between inducing inputs."""
    covariance = matern(inducing, inducing, lengthscale=lengthscale)
    return np.linalg.cholesky(covariance + 1e-8 * np.eye(len(inducing)))


def pass_over(X, inducing, *, lengthscale):
    """Return V Vᵀ over all rows, chunk by chunk."""
    factor = factor_of(inducing, lengthscale=lengthscale)
    total = np.zeros((len(inducing), len(inducing)))
    for start in range(0, len(X), CHUNK_ROWS):
        found = features(
            X[start : start + CHUNK_ROWS], inducing, lengthscale=lengthscale, factor=factor
        )
        total += found @ found.T
    return total
