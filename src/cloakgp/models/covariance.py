"""Covariance of the outputs K_y, as something to multiply by.

Designs need products of K_y with few columns, and a bound of its eigenvalues. The bound is that of
the noise, which is independent from row to row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cloakgp.utils.arrays import Array
from cloakgp.utils.threads import over_blocks

# Of a matrix whose product is made in several threads.
PRODUCT_ROWS = 1024


class OutputCovariance(Protocol):
    """K_y, in the form in which a product with few columns costs least."""

    def times(self, columns: Array) -> Array:
        """Return K_y B for B of shape (N, k)."""

    @property
    def least_noise(self) -> float:
        """A positive lower bound of the eigenvalues of K_y, in squared output units."""


class RowCovariance(OutputCovariance, Protocol):
    """K_y of rows under a prior, whose diagonal is known."""

    @property
    def variance(self) -> Array:
        """The diagonal of K_y, shape (N,)."""


@dataclass(frozen=True, eq=False)
class DenseCovariance:
    """K_y as a matrix plus a diagonal.

    Attributes
    ----------
    latent : array of shape (N, N)
    noise : array of shape (N,)

    Examples
    --------
    >>> import numpy as np
    >>> DenseCovariance(latent=np.eye(2), noise=np.ones(2)).times(np.ones((2, 1)))
    array([[2.],
           [2.]])
    """

    latent: Array
    noise: Array

    def times(self, columns: Array) -> Array:
        """Return K_y B."""
        # Small matrices take one block, and no thread waits for another.
        parts = over_blocks(lambda rows: rows @ columns, self.latent, rows=PRODUCT_ROWS)
        return np.concatenate(parts) + self.noise[:, None] * columns

    @property
    def variance(self) -> Array:
        """The diagonal of K_y."""
        return np.asarray(np.diag(self.latent) + self.noise, dtype=np.float64)

    @property
    def least_noise(self) -> float:
        """The smallest noise variance."""
        return float(self.noise.min())


@dataclass(frozen=True, eq=False)
class LowRankCovariance:
    """K_y = Vᵀ V plus a diagonal, never formed.

    Attributes
    ----------
    features : array of shape (M, N)
        V.
    noise : array of shape (N,)

    Examples
    --------
    >>> import numpy as np
    >>> LowRankCovariance(features=np.ones((1, 2)), noise=np.ones(2)).times(np.ones((2, 1)))
    array([[3.],
           [3.]])
    """

    features: Array
    noise: Array

    def times(self, columns: Array) -> Array:
        """Return K_y B."""
        product: Array = self.features.T @ (self.features @ columns)
        return product + self.noise[:, None] * columns

    @property
    def variance(self) -> Array:
        """The diagonal of K_y."""
        variance: Array = np.square(self.features).sum(axis=0) + self.noise
        return variance

    @property
    def least_noise(self) -> float:
        """The smallest noise variance."""
        return float(self.noise.min())


@dataclass(frozen=True, eq=False)
class ConditionedCovariance:
    """K_y after noisy answers are known: a covariance less A Aᵀ.

    Attributes
    ----------
    prior : OutputCovariance
    known : array of shape (N, k)
        A = cov(y, a) S^-½, for answers a with covariance S.
    least_noise : float

    Examples
    --------
    >>> import numpy as np
    >>> prior = DenseCovariance(latent=np.eye(2), noise=np.ones(2))
    >>> known = ConditionedCovariance(prior=prior, known=np.ones((2, 1)), least_noise=0.5)
    >>> known.times(np.ones((2, 1)))
    array([[0.],
           [0.]])
    """

    prior: OutputCovariance
    known: Array
    least_noise: float

    def times(self, columns: Array) -> Array:
        """Return (K_y − A Aᵀ) B."""
        product: Array = self.prior.times(columns) - self.known @ (self.known.T @ columns)
        return product


@dataclass(frozen=True, eq=False)
class LinearisedCovariance:
    """Covariance of linearised functions of outputs, A C A + diag(e).

    Attributes
    ----------
    outputs : OutputCovariance
        C.
    slope, residual : arrays of shape (N,)
        A, and the variance that it leaves out.

    Examples
    --------
    >>> import numpy as np
    >>> outputs = DenseCovariance(latent=np.eye(2), noise=np.ones(2))
    >>> clipped = LinearisedCovariance(outputs, slope=np.full(2, 0.5), residual=np.ones(2))
    >>> clipped.times(np.ones((2, 1)))
    array([[1.5],
           [1.5]])
    """

    outputs: OutputCovariance
    slope: Array
    residual: Array

    def times(self, columns: Array) -> Array:
        """Return (A C A + diag(e)) B."""
        product: Array = self.slope[:, None] * self.outputs.times(self.slope[:, None] * columns)
        return product + self.residual[:, None] * columns

    @property
    def least_noise(self) -> float:
        """A lower bound of the eigenvalues: of both parts for the same row."""
        return float((self.slope**2 * self.outputs.least_noise + self.residual).min())
