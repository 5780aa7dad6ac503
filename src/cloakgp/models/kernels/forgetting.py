r"""Forgetting kernel: a function of inputs, of which a share drifts with time.

With inputs x and a time t, and a kernel k over inputs alone,

    cov[f(x, t), f(z, u)] = k(x, z) (s + (1 − s) exp(−|t − u|/ℓ)).

It is the covariance of √s g(x) + √(1 − s) h(x, t), where g and h have the covariance k over inputs,
g lasts, and h is in time an Ornstein-Uhlenbeck process (a Matérn 1/2, Rasmussen and Williams 2006,
equation 4.9): what was known of it is known less by a factor e after each length ℓ. A product of
covariances, and a sum of them, is one.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.models.kernels.factored import FactoredKernel
from cloakgp.utils.arrays import Array, as_matrix


class ForgettingKernel(FactoredKernel):
    """Covariance over inputs, of which a share fades with the distance in time.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        k, over all columns but that of the time; its hyperparameters are the only ones.
    place : int
        Which column is the time, from 0.
    length : float
        ℓ, in units of the time; above zero.
    lasting : float
        s, the share of the variance that does not drift, from 0 to 1.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> kernel = ForgettingKernel(RBF(), place=1, length=10.0)
    >>> kernel([[0.0, 0.0]], [[0.0, 0.0], [0.0, 10.0], [0.0, 1e6]]).round(3)
    array([[1.   , 0.684, 0.5  ]])
    """

    declared: ClassVar[tuple[str, ...]] = ("place", "length", "lasting")

    def __init__(self, kernel: Kernel, place: int, length: float, lasting: float = 0.5) -> None:
        self.kernel = kernel
        self.place = place
        self.length = length
        self.lasting = lasting

    def is_stationary(self) -> bool:
        """Return whether the kernel over inputs is."""
        return bool(self.kernel.is_stationary())

    def split(self, X: ArrayLike) -> tuple[Array, Array]:
        """Return inputs without the time, shape (n, D), and times, shape (n,).

        Raises
        ------
        ValueError
            If there is no such column, or a parameter makes no sense.
        """
        inputs = as_matrix(X, name="X")
        self.check()
        if not 0 <= self.place < inputs.shape[1]:
            raise ValueError(f"there is no column {self.place} for the time")
        rest = np.delete(inputs, self.place, axis=1)
        return np.ascontiguousarray(rest), np.ascontiguousarray(inputs[:, self.place])

    def factor(self, column: Array, other: Array) -> Array:
        """Return s + (1 − s) exp(−|t − u|/ℓ) for all pairs of times, shape (n, m)."""
        faded = np.exp(-np.abs(column[:, None] - other[None, :]) / self.length)
        kept: Array = self.lasting + (1.0 - self.lasting) * faded
        return kept

    def own_factor(self, column: Array) -> Array:
        """Return ones: at the same time nothing is forgotten."""
        return np.ones(len(column))

    def check(self) -> None:
        """Refuse parameters that make no covariance.

        Raises
        ------
        ValueError
        """
        # Written so that NaN fails.
        if not 0 < self.length < np.inf:
            raise ValueError(f"length must be positive and finite, got {self.length!r}")
        if not 0 <= self.lasting <= 1:
            raise ValueError(f"lasting must be a share from 0 to 1, got {self.lasting!r}")

    def __eq__(self, other: object) -> bool:
        """Return whether the other is of this class and has the same parameters."""
        if not isinstance(other, ForgettingKernel):
            return False
        own, theirs = ((each.place, each.length, each.lasting) for each in (self, other))
        return bool(self.kernel == other.kernel) and own == theirs

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Forgetting({self.kernel!r}, length={self.length:.3g}, lasting={self.lasting:.3g})"
