r"""From a latent function to the probability of a class.

Both links are mixtures of normal distribution functions, π(f) = Σ_i w_i Φ(f/τ_i): the probit with
one of them, and the logistic because a logistic variable is a normal one whose variance is 4λ² for
λ of Kolmogorov's distribution (Andrews and Mallows 1974). So for f ~ N(μ, v)

    E[π(f)] = Σ_i w_i Φ(μ/√(τ_i² + v)),    E[π'(f)] = Σ_i w_i φ(μ/√(τ_i² + v))/√(τ_i² + v)

(Rasmussen and Williams 2006, equation 3.82, for one term). For the logistic link the mixture is a
quadrature, off by less than 2e-5 in probability; tails below e⁻²⁰ come out too thin.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import expit, ndtr, ndtri
from scipy.stats import kstwobign

from cloakgp.arrays import Array
from cloakgp.names import LinkName

QUADRATURE_NODES = 24
# The variance of the probit nearest to the logistic link, in its slope at zero.
LOGISTIC_SCALE_SQUARED = 8.0 / np.pi


@dataclass(frozen=True, eq=False)
class Link:
    """A link as a mixture of normal distribution functions.

    Attributes
    ----------
    name : {"probit", "logit"}
    scales : array of shape (n,)
        τ, in latent units.
    weights : array of shape (n,)
        w, summing to 1.
    probit_variance : float
        τ² of the one probit nearest to it.

    Examples
    --------
    >>> probability, slope = link("probit").moments(np.array([0.0]), np.array([3.0]))
    >>> probability
    array([0.5])
    """

    name: LinkName
    scales: Array
    weights: Array
    probit_variance: float

    def probability(self, latent: Array) -> Array:
        """Return π(f), the probability of the class where the latent function is f."""
        values = ndtr(latent) if self.name == "probit" else expit(latent)
        return np.asarray(values, dtype=np.float64)

    def moments(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Return E[π(f)] and E[π'(f)] for f ~ N(mean, variance), each of the shape of mean.

        Parameters
        ----------
        mean, variance : arrays of one shape
        """
        probability, slope = np.zeros_like(mean), np.zeros_like(mean)
        for scale, weight in zip(self.scales, self.weights, strict=True):
            spread = np.sqrt(scale**2 + variance)
            standard = mean / spread
            probability += weight * ndtr(standard)
            slope += weight * np.exp(-(standard**2) / 2) / (np.sqrt(2 * np.pi) * spread)
        return probability, slope

    def latent_mean(self, probability: float, *, variance: float) -> float:
        """Return the mean of f at which a class has a given marginal probability.

        By the nearest probit for the logistic link.

        Parameters
        ----------
        probability : float
            Strictly between 0 and 1.
        variance : float
            Of f.
        """
        return float(ndtri(probability) * np.sqrt(self.probit_variance + variance))


@lru_cache
def link(name: LinkName) -> Link:
    """Return a link by its name.

    Raises
    ------
    ValueError
        For any other name.
    """
    if name == "probit":
        return Link(name=name, scales=np.ones(1), weights=np.ones(1), probit_variance=1.0)
    if name != "logit":
        raise ValueError(f"link must be 'probit' or 'logit', got {name!r}")
    nodes, weights = np.polynomial.legendre.leggauss(QUADRATURE_NODES)
    return Link(
        name=name,
        scales=2.0 * kstwobign.ppf((nodes + 1.0) / 2.0),
        weights=weights / 2.0,
        probit_variance=LOGISTIC_SCALE_SQUARED,
    )
