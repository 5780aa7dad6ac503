r"""Prior: the interface of Gaussian-process priors, exact and approximate.

The latent function f and the outputs y = f(X) + noise are jointly Gaussian under the prior:
K_*f = cov(f_*, f), K_y = K_ff + diag(noise), K_** = cov(f_*). Design and prediction need these, at
public inputs, and nothing else.
"""

from __future__ import annotations

from typing import Protocol

from cloakgp.models.covariance import OutputCovariance
from cloakgp.utils.arrays import Array

# Of a kernel, and of noise, in squared output units: products of two are numbers of float64.
LARGEST_VARIANCE = 1e140


class HasNumbers(Protocol):
    """A prior with one mean, and one noise variance, that a file may hold."""

    @property
    def mean(self) -> float:
        """In output units."""

    @property
    def noise_variance(self) -> float:
        """In squared output units."""


def check_numbers(prior: HasNumbers) -> None:
    """Refuse a mean and a noise variance with which nothing can be computed.

    Parameters
    ----------
    prior : ExactPrior or SparsePrior

    Raises
    ------
    ValueError
        If they are beyond what can be computed with, or the latter is negative.
    """
    # Written so that NaN fails.
    if not (0 <= prior.noise_variance <= LARGEST_VARIANCE and abs(prior.mean) <= LARGEST_VARIANCE):
        raise ValueError("the prior's mean or noise variance is damaged")


class Prior(Protocol):
    """A public Gaussian-process prior over the latent function and the outputs."""

    @property
    def mean(self) -> float:
        """Prior mean of the latent function, in output units, where no trend moves it."""

    def means(self, X: Array) -> Array:
        """Return the prior mean of the latent function at rows, shape (N,)."""

    def cross_covariance(self, X_query: Array, X: Array) -> Array:
        """Return K_*f between query points (P, D) and rows (N, D), shape (P, N)."""

    def row_covariance(self, X: Array, Z: Array) -> Array:
        """Return the latent covariance between two sets of rows, shape (N, M)."""

    def row_noise(self, X: Array) -> Array:
        """Return the variance of each output about its (approximated) latent value, shape (N,)."""

    def query_covariance(self, X_query: Array) -> Array:
        """Return K_**, shape (P, P)."""

    def query_variance(self, X_query: Array) -> Array:
        """Return the diagonal of K_**, shape (P,)."""

    def observation_noise(self, X_query: Array) -> Array:
        """Return the noise variance of a new output at each query point, shape (P,)."""

    def output_covariance(self, X: Array) -> OutputCovariance:
        """Return K_y over rows, in the form in which products with it cost least."""

    def cloaking_matrix(self, X_query: Array, X: Array) -> Array:
        """Return C = K_*f K_y⁻¹, shape (P, N)."""
