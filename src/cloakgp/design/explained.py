"""Explained variance of a strategy, and its slopes: the objective of designs for predictions.

With S = s² I + R K_y Rᵀ, T = R F and W = S⁻¹T, the answers explain tr(TᵀW) at the query points, and
this grows along 2 R E Eᵀ, E = (F − K_y RᵀW)/s. See `cloakgp.design.bayes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from scipy import linalg

from cloakgp.design.weak_duality import Point
from cloakgp.utils.arrays import Array
from cloakgp.utils.threads import product

# Query directions that explain less than this share of the variance are left out of F, and the
# most that they could explain is added to the certificate.
NEGLIGIBLE = 1e-7


class CovarianceProduct(Protocol):
    """Products with the outputs' prior covariance K_y that a design needs."""

    def times(self, columns: Array) -> Array:
        """Return K_y B for B of shape (N, k)."""

    @property
    def least_noise(self) -> float:
        """A positive lower bound of the eigenvalues of K_y."""


def main_directions(
    crossed: Array,
    covariance: CovarianceProduct,
    *,
    prior_variance: float,
    negligible: float = NEGLIGIBLE,
) -> tuple[Array, float]:
    """Rotate F to orthogonal columns, ascending, and cut off those that cannot matter.

    A column f explains at most fᵀ K_y⁻¹ f ≤ ‖f‖² / least noise, whatever is asked.

    Parameters
    ----------
    crossed : array of shape (N, P)
        F.
    covariance : CovarianceProduct
    prior_variance : float
        Of all query points together.
    negligible : float
        The share of it that all directions left out may explain together.

    Returns
    -------
    directions : array of shape (N, p)
    lost : float
        The most that the others could explain.

    Examples
    --------
    >>> from cloakgp.models.covariance import DenseCovariance
    >>> prior = DenseCovariance(latent=np.eye(2), noise=np.ones(2))
    >>> directions, lost = main_directions(np.diag([1.0, 1e-5]), prior, prior_variance=1.0)
    >>> directions.shape, round(lost, 12)
    ((2, 1), 1e-10)
    """
    [found] = several_main_directions(
        crossed, covariance, prior_variance=prior_variance, negligible=(negligible,)
    )
    return found


def several_main_directions(
    crossed: Array,
    covariance: CovarianceProduct,
    *,
    prior_variance: float,
    negligible: Sequence[float],
) -> list[tuple[Array, float]]:
    """Return the main directions for several shares that are negligible, rotated once.

    Parameters
    ----------
    crossed, covariance, prior_variance
        As for `main_directions`.
    negligible : sequence of float
    """
    squares, rotation = linalg.eigh(crossed.T @ crossed)
    explainable = np.cumsum(np.maximum(squares, 0.0)) / covariance.least_noise
    found = []
    for share in negligible:
        kept = explainable > share * prior_variance
        lost = float(explainable[~kept].max()) if not kept.all() else 0.0
        found.append((crossed @ rotation[:, kept], lost))
    return found


def evaluate(
    strategy: Array, *, covariance: CovarianceProduct, directions: Array, noise_sd: float
) -> Point:
    """Return the variance that a strategy explains, with E and R E.

    Parameters
    ----------
    strategy : array of shape (k, N)
    covariance : CovarianceProduct
    directions : array of shape (N, p)
        F.
    noise_sd : float
        Of every answer.

    Examples
    --------
    >>> from cloakgp.models.covariance import DenseCovariance
    >>> prior = DenseCovariance(latent=np.eye(1), noise=np.ones(1))
    >>> point = evaluate(np.eye(1), covariance=prior, directions=np.eye(1), noise_sd=1.0)
    >>> round(point.explained, 6)
    0.333333
    """
    covered = covariance.times(strategy.T)
    answers = product(strategy, covered)
    answers[np.diag_indices(len(answers))] += noise_sd**2
    answered = product(strategy, directions)
    weights = linalg.cho_solve(linalg.cho_factor(answers, lower=True), answered)
    return Point(
        strategy=strategy,
        explained=float(np.vdot(answered, weights)),
        covered=covered,
        weights=np.asarray(weights, dtype=np.float64),
        directions=directions,
        noise_sd=noise_sd,
    )
