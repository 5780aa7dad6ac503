r"""Means and covariances of labels ±1 under a latent Gaussian process.

With P(y = 1 | f) = Φ(f/τ) and f_i ~ N(m, v_i), cov k_ij, a label is +1 with probability Φ(a_i),
a_i = m/√(τ² + v_i), and two labels of different rows are both +1 with probability
Φ₂(a_i, a_j; ρ_ij) (the bivariate normal distribution function), with
ρ_ij = k_ij/√((τ² + v_i)(τ² + v_j)). So E y_i = 2Φ(a_i) − 1 and

    cov(y_i, y_j) = 4 [Φ₂(a_i, a_j; ρ_ij) − Φ(a_i) Φ(a_j)],    i ≠ j,

which for m = 0 is (2/π) arcsin ρ_ij. These moments are exact for the probit link (τ = 1); for the
logistic link they are those of the nearest probit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, owens_t

from cloakgp.arrays import Array

QUADRATURE_NODES = 16
# Correlations are kept this far from 1, where derivatives grow without bound.
CLOSEST_TO_ONE = 1e-9


@dataclass(frozen=True, eq=False)
class LabelCovariance:
    """Covariances of labels of different rows, and how they change.

    Attributes
    ----------
    values : array of shape (n, n)
        On the diagonal: for two rows at the same inputs.
    by_correlation : array of shape (n, n)
        ∂/∂ρ_ij.
    by_threshold : array of shape (n, n)
        ∂/∂a_i, the other threshold held; ∂/∂a_j is its transpose.
    """

    values: Array
    by_correlation: Array
    by_threshold: Array


def label_covariance(correlation: Array, thresholds: Array) -> LabelCovariance:
    """Return the covariances of labels from latent correlations, with derivatives.

    Parameters
    ----------
    correlation : array of shape (n, n)
        ρ, symmetric.
    thresholds : array of shape (n,)
        a, so that row i is +1 with probability Φ(a_i).

    Examples
    --------
    >>> at_zero = label_covariance(np.full((1, 1), 0.5), np.zeros(1))
    >>> at_zero.values * 3
    array([[1.]])
    """
    limit = 1.0 - CLOSEST_TO_ONE
    rho = np.clip(correlation, -limit, limit)
    one, other = thresholds[:, None], thresholds[None, :]
    across = np.sqrt(1.0 - rho**2)
    density = np.exp(-(one**2 + other**2 - 2.0 * rho * one * other) / (2.0 * across**2))
    upper = ndtr(other)
    return LabelCovariance(
        values=4.0 * _orthant_excess(rho, one, other),
        by_correlation=4.0 * density / (2.0 * np.pi * across),
        # ∂Φ₂(a, b; ρ)/∂a = φ(a) Φ((b − ρa)/√(1 − ρ²)).
        by_threshold=4.0
        * np.exp(-(one**2) / 2.0)
        / np.sqrt(2.0 * np.pi)
        * (ndtr((other - rho * one) / across) - upper),
    )


def _orthant_excess(rho: Array, one: Array, other: Array) -> Array:
    """Return Φ₂(a, b; ρ) − Φ(a) Φ(b), by Plackett's identity ∂Φ₂/∂ρ = φ₂ (Plackett 1954).

    In θ = arcsin ρ the integrand exp(−(a² + b² − 2ab sin θ)/(2 cos² θ))/2π is smooth. Where all
    thresholds are one a, Φ₂(a, a; ρ) = Φ(a) − 2 T(a, √((1 − ρ)/(1 + ρ))) for Owen's T (1956).
    """
    if np.ptp(one) == 0:
        a = float(one.flat[0])
        tail = owens_t(a, np.sqrt((1.0 - rho) / (1.0 + rho)))
        return np.asarray(ndtr(a) * ndtr(-a) - 2.0 * tail, dtype=np.float64)
    angle = np.arcsin(rho)
    nodes, weights = np.polynomial.legendre.leggauss(QUADRATURE_NODES)
    total = np.zeros(np.broadcast_shapes(rho.shape, one.shape))
    for node, weight in zip(nodes, weights, strict=True):
        theta = angle * (node + 1.0) / 2.0
        squared = np.cos(theta) ** 2
        total += weight * np.exp(
            -(one**2 + other**2 - 2.0 * one * other * np.sin(theta)) / (2.0 * squared)
        )
    excess: Array = total * angle / (4.0 * np.pi)
    return excess
