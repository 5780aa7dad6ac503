"""Linear kernel on standardised inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.utils.arrays import Array


class LinearKernel(Kernel):
    """Covariance of a linear function through zero at a centre, k(x, z) = Σ_d u_d(x) u_d(z)/D.

    With u_d(x) = (x_d − c_d)/s_d. Over inputs of mean c and sds s its variance is 1 on average;
    multiply by a `ConstantKernel` for another. Centre and scales are no hyperparameters.

    Parameters
    ----------
    centre : array-like of shape (D,)
        c, in input units.
    scale : array-like of shape (D,)
        s, in input units; above zero.

    Examples
    --------
    >>> LinearKernel([0.0, 1.0], [1.0, 2.0])(np.array([[2.0, 3.0]]))
    array([[2.5]])
    """

    def __init__(self, centre: ArrayLike, scale: ArrayLike) -> None:
        self.centre = centre
        self.scale = scale

    def __call__(
        self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False
    ) -> Any:
        """Return the covariances of X with Y, shape (n, m), and an empty gradient if asked for."""
        left = self._standardised(X)
        right = left if Y is None else self._standardised(Y)
        covariance = left @ right.T
        covariance /= left.shape[1]
        if eval_gradient:
            return covariance, np.empty((*covariance.shape, 0))
        return covariance

    def diag(self, X: ArrayLike) -> Array:
        """Return the variances at X, shape (n,)."""
        standardised = self._standardised(X)
        variances: Array = np.square(standardised).mean(axis=1)
        return variances

    def is_stationary(self) -> bool:
        """Return False."""
        return False

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, LinearKernel)
            and np.array_equal(self.centre, other.centre)
            and np.array_equal(self.scale, other.scale)
        )

    def __repr__(self) -> str:
        centre, scale = np.atleast_1d(self.centre), np.atleast_1d(self.scale)
        pairs = zip(centre, scale, strict=True)
        return f"Linear({', '.join(f'{c:.3g} ± {s:.3g}' for c, s in pairs)})"

    def _standardised(self, X: ArrayLike) -> Array:
        inputs = np.atleast_2d(np.asarray(X, dtype=np.float64))
        centre = np.atleast_1d(np.asarray(self.centre, dtype=np.float64))
        standardised: Array = (inputs - centre) / np.atleast_1d(
            np.asarray(self.scale, dtype=np.float64)
        )
        return standardised
