r"""Likelihood of classes: links, moments of labels, and the linear prior over labels.

A latent function f ~ GP(m, k) goes through a link: P(y = 1 | f) = π(f). With more than two classes,
each has a latent function of its own, all of one kernel, for "this class or another". `LabelPrior`
is that prior, and knows the Gaussian prior over labels ±1 that is nearest to it.

Links
-----
Both links are mixtures of normal distribution functions, π(f) = Σ_i w_i Φ(f/τ_i): the probit with
one of them, and the logistic because a logistic variable is a normal one whose variance is 4λ² for
λ of Kolmogorov's distribution (Andrews and Mallows 1974). So for f ~ N(μ, v)

    E[π(f)] = Σ_i w_i Φ(μ/√(τ_i² + v)),    E[π'(f)] = Σ_i w_i φ(μ/√(τ_i² + v))/√(τ_i² + v)

(Rasmussen and Williams 2006, equation 3.82, for one term). For the logistic link the mixture is a
quadrature, off by less than 2e-5 in probability; tails below e⁻²⁰ come out too thin.

Means and covariances of labels ±1
----------------------------------
With P(y = 1 | f) = Φ(f/τ) and f_i ~ N(m, v_i), cov k_ij, a label is +1 with probability Φ(a_i),
a_i = m/√(τ² + v_i), and two labels of different rows are both +1 with probability
Φ₂(a_i, a_j; ρ_ij) (the bivariate normal distribution function), with
ρ_ij = k_ij/√((τ² + v_i)(τ² + v_j)). So E y_i = 2Φ(a_i) − 1 and

    cov(y_i, y_j) = 4 [Φ₂(a_i, a_j; ρ_ij) − Φ(a_i) Φ(a_j)],    i ≠ j,

which for m = 0 is (2/π) arcsin ρ_ij. These moments are exact for the probit link (τ = 1); for the
logistic link they are those of the nearest probit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import optimize
from scipy.special import expit, ndtr, ndtri, owens_t
from scipy.stats import kstwobign
from sklearn.gaussian_process.kernels import ConstantKernel

from cloakgp.models.likelihoods.base import (
    LatentFunctions,
    LatentPrior,
    Likelihood,
    Linearisation,
)
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import LINKS, LinkName

QUADRATURE_NODES = 24
# The variance of the probit nearest to the logistic link, in its slope at zero.
LOGISTIC_SCALE_SQUARED = 8.0 / np.pi
MOMENT_NODES = 16
# Correlations are kept this far from 1, where derivatives grow without bound.
CLOSEST_TO_ONE = 1e-9
# Share of the latent variance that each row has to itself, so that covariances have factors.
LATENT_NUGGET = 1e-6


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

    def by_variance(self, mean: Array, variance: Array) -> Array:
        """Return ∂E[π(f)]/∂v for f ~ N(mean, v), of the shape of mean.

        Parameters
        ----------
        mean, variance : arrays of one shape
        """
        found = np.zeros_like(mean)
        for scale, weight in zip(self.scales, self.weights, strict=True):
            spread = np.sqrt(scale**2 + variance)
            density = np.exp(-((mean / spread) ** 2) / 2) / np.sqrt(2 * np.pi)
            found -= weight * density * mean / (2.0 * spread**3)
        return found

    def latent_mean(self, probability: float, *, variance: Array) -> float:
        """Return the mean of f at which a class has a given probability, on average over points.

        Parameters
        ----------
        probability : float
            Strictly between 0 and 1.
        variance : array of shape (n,)
            Of f, at each point.
        """
        # At no point, and in no part of the mixture, is it further away than for the widest.
        widest = np.sqrt(self.scales.max() ** 2 + variance.max())
        furthest = float(ndtri(probability) * widest)
        if furthest == 0.0:
            return furthest

        def excess(mean: float) -> float:
            found, _ = self.moments(np.full_like(variance, mean), variance)
            return float(found.mean()) - probability

        # Where all are the widest, rounding may set the end on the other side.
        return float(optimize.brentq(excess, 0.0, 1.001 * furthest, xtol=1e-13 * abs(furthest)))


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
    a, b = thresholds[:, None], thresholds[None, :]
    across = np.sqrt(1.0 - rho**2)
    density = np.exp(-(a**2 + b**2 - 2.0 * rho * a * b) / (2.0 * across**2))
    upper = ndtr(b)
    return LabelCovariance(
        values=4.0 * _orthant_excess(rho, a, b),
        by_correlation=4.0 * density / (2.0 * np.pi * across),
        # ∂Φ₂(a, b; ρ)/∂a = φ(a) Φ((b − ρa)/√(1 − ρ²)).
        by_threshold=4.0
        * np.exp(-(a**2) / 2.0)
        / np.sqrt(2.0 * np.pi)
        * (ndtr((b - rho * a) / across) - upper),
    )


def _orthant_excess(rho: Array, a: Array, b: Array) -> Array:
    """Return Φ₂(a, b; ρ) − Φ(a) Φ(b), by Plackett's identity ∂Φ₂/∂ρ = φ₂ (Plackett 1954).

    In θ = arcsin ρ the integrand exp(−(a² + b² − 2ab sin θ)/(2 cos² θ))/2π is smooth. Where all
    thresholds are the same a, Φ₂(a, a; ρ) = Φ(a) − 2 T(a, √((1 − ρ)/(1 + ρ))) for Owen's T (1956).
    """
    if np.ptp(a) == 0:
        level = float(a.flat[0])
        tail = owens_t(level, np.sqrt((1.0 - rho) / (1.0 + rho)))
        return np.asarray(ndtr(level) * ndtr(-level) - 2.0 * tail, dtype=np.float64)
    angle = np.arcsin(rho)
    nodes, weights = np.polynomial.legendre.leggauss(MOMENT_NODES)
    total = np.zeros(np.broadcast_shapes(rho.shape, a.shape))
    for node, weight in zip(nodes, weights, strict=True):
        theta = angle * (node + 1.0) / 2.0
        squared = np.cos(theta) ** 2
        total += weight * np.exp(-(a**2 + b**2 - 2.0 * a * b * np.sin(theta)) / (2.0 * squared))
    excess: Array = total * angle / (4.0 * np.pi)
    return excess


# Share of the latent variance that each row has to itself, so that covariances have factors.
LATENT_NUGGET = 1e-6


def latent_variances(latent: LatentPrior, X: Array) -> Array:
    """Return the variances of rows' latent values, white noise of their own included, shape (N,).

    Parameters
    ----------
    latent : ExactPrior or SparsePrior
    X : array of shape (N, D)
    """
    variances: Array = latent.query_variance(X) + latent.observation_noise(X)
    return variances


def mean_latent_variance(latent: LatentPrior, X: Array) -> float:
    """Return the average of `latent_variances`."""
    return float(latent_variances(latent, X).mean())


@dataclass(frozen=True)
class ClassLikelihood(Likelihood):
    """Outputs are classes: a link turns latent values into their probabilities.

    A channel is one class against all others; two classes need one channel only. An encoded output
    is 1 where its row is of the channel's class, and else −1.

    Attributes
    ----------
    link_name : {"probit", "logit"}
    latent_means : tuple of float
        The mean of each channel's latent function. The prior's own mean is 0.

    Examples
    --------
    >>> likelihood = ClassLikelihood(link_name="probit", latent_means=(0.0,))
    >>> likelihood.linearise(np.zeros(1), np.zeros(1)).residual
    array([1.])
    """

    link_name: LinkName
    latent_means: tuple[float, ...]

    name: ClassVar[str] = "classes"
    outputs: ClassVar[Literal["numbers", "classes"]] = "classes"

    def validate(self) -> None:
        """Refuse links that there are not, and means that are no numbers.

        Raises
        ------
        ValueError
            If there are such.
        """
        if self.link_name not in LINKS or not np.isfinite(self.latent_means).all():
            raise ValueError("its prior is damaged")

    @property
    def link(self) -> Link:
        """The link by which a latent value becomes a probability."""
        return link(self.link_name)

    @property
    def channels(self) -> int:
        """1 for two classes, one per class for more."""
        return len(self.latent_means)

    def means(self, prior: LatentPrior) -> tuple[float, ...]:
        """Return the mean of each channel's latent function."""
        del prior
        return self.latent_means

    def linearise(self, mean: Array, variance: Array) -> Linearisation:
        """Return h = 2E[π] − 1, A = 2E[π'] and 1 − h² − A² s²."""
        probability, half_slope = self.link.moments(mean, variance)
        expected, slope = 2.0 * probability - 1.0, 2.0 * half_slope
        residual = np.maximum(1.0 - expected**2 - slope**2 * variance, 0.0)
        return Linearisation(expected=expected, slope=slope, residual=residual)

    def linear_prior(self, prior: LatentPrior, X: Array) -> LatentPrior:
        """Return the Gaussian prior over labels ±1 that is nearest at the prior.

        Channels are averaged over, and so is the latent variance over the rows of X.

        Parameters
        ----------
        prior : ExactPrior or SparsePrior
        X : array of shape (N, D)
        """
        variance = mean_latent_variance(prior, X)
        means = np.array(self.latent_means)
        probability, slope = self.link.moments(means, np.full_like(means, variance))
        squared_slope = float(np.square(2.0 * slope).mean())
        spread = float(4.0 * (probability * (1.0 - probability)).mean())
        return replace(
            prior,
            kernel=ConstantKernel(squared_slope, constant_value_bounds="fixed") * prior.kernel,
            noise_variance=max(spread - squared_slope * variance, LATENT_NUGGET),
        )

    def label_means(self, prior: LatentPrior, X: Array) -> tuple[float, ...]:
        """Return the prior means of labels ±1, of each channel; the latent variance is averaged.

        Parameters
        ----------
        prior : ExactPrior or SparsePrior
        X : array of shape (N, D)
        """
        means = np.array(self.latent_means)
        variance = np.full_like(means, mean_latent_variance(prior, X))
        probability, _ = self.link.moments(means, variance)
        return tuple((2.0 * probability - 1.0).tolist())

    def cloaking_prior(self, prior: LatentPrior, X: Array) -> LatentPrior:
        """Return the regression prior whose cloaking matrix is half of a Newton step's from f = m.

        The step's linear part is C_* = ½ K_*f (I + W K)⁻¹ = (1/2w) K_*f (K + I/w)⁻¹ for W = w I,
        with w = π(m)(1 − π(m)) (2021 paper, equations 10 and 11, for the logistic link). At m = 0,
        C_* y is Gaussian-process regression on 2y with noise variance 4.

        Parameters
        ----------
        prior : ExactPrior or SparsePrior
        X : array of shape (N, D)
        """
        del X
        probability = link("logit").probability(np.array(self.latent_means))
        curvature = float((probability * (1.0 - probability)).mean())
        return replace(prior, noise_variance=1.0 / curvature)

    def predict(
        self,
        functions: LatentFunctions,
        X: Array,
        *,
        return_std: bool,
        return_cov: bool,
        new_output: bool,
    ) -> NDArray[np.intp]:
        """Return the position of the most probable class, shape (P,); of equal ones, the first.

        Raises
        ------
        ValueError
            If a spread is asked for, which classes do not have.
        """
        if return_std or return_cov or new_output:
            raise ValueError("classes have no sd: ask for predict_proba or predict_latent")
        return np.asarray(self.probabilities(functions, X).argmax(axis=1))

    def probabilities(
        self, functions: LatentFunctions, X: Array, *, privacy_noise: bool = True
    ) -> Array:
        """Return the probability of every class, shape (P, C), each row adding up to 1.

        Averages the link over what is not known of the latent functions. With more than two
        classes, the probabilities of "this class or another" are divided by their sum.

        Parameters
        ----------
        functions : LatentFunctions
        X : array of shape (P, D)
        privacy_noise : bool
            Whether what the privacy noise makes unknown is averaged over too.
        """
        shares = []
        for part in functions.marginals(X):
            variance = part.variance
            if not privacy_noise:
                variance = np.maximum(variance - part.noise_share, 0.0)
            variance = variance + part.prior.observation_noise(X)[:, None]
            shares.append(part.weight * self._shares(part.mean, variance))
        return np.asarray(sum(shares), dtype=np.float64)

    def prior_rates(self, prior: LatentPrior, X: Array) -> Array:
        """Return the probability of every class before any answer, averaged over X, shape (C,)."""
        shape = len(X), self.channels
        mean = np.broadcast_to(np.array(self.latent_means), shape)
        variance = np.broadcast_to(prior.query_variance(X)[:, None], shape)
        return np.asarray(self._shares(mean, variance).mean(axis=0))

    def _shares(self, mean: Array, variance: Array) -> Array:
        probability, _ = self.link.moments(mean, variance)
        if probability.shape[1] == 1:
            return np.hstack([1.0 - probability, probability])
        shares: Array = probability / probability.sum(axis=1, keepdims=True)
        return shares


def class_likelihood(likelihood: Likelihood) -> ClassLikelihood:
    """Return a likelihood of classes as one.

    Raises
    ------
    TypeError
        If outputs are no classes.
    """
    if not isinstance(likelihood, ClassLikelihood):
        raise TypeError(f"outputs are {likelihood.outputs}, and no classes")
    return likelihood
