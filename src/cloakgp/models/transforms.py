"""Transformed Gaussian processes: outputs whose logarithm, or log odds, are modelled.

With g increasing, g(y) = f + noise is a Gaussian process (Snelson, Rasmussen and Ghahramani 2004,
*Warped Gaussian processes*, section 2, for a g that is declared). Given answers, g of an output or
of the curve is normal with mean m and sd s, and so on the scale of outputs

* quantiles are those of the normal distribution, taken back: the median is g⁻¹(m), and limits are
  g⁻¹(m ± 1.96 s), exactly;
* of the logarithm, the mean of outputs within [l, u], to which all are brought, is
  l Φ(a) + exp(m + s²/2) (Φ(b − s) − Φ(a − s)) + u Φ(−b), a and b the standardised ends, and
  covariances, of outputs without bounds, are E_i E_j (exp(c_ij) − 1) with E = exp(m + s²/2)
  (Crow and Shimizu 1988, *Lognormal distributions*, chapters 1 and 5);
* of log odds, means are Gauss-Hermite quadratures, and covariances add up over the normalised
  Hermite coefficients a_k of g⁻¹(m + s z): Σ_k a_k a_k' ρ^k, k ≥ 1 (Mehler's formula).

Two curves can be meant at x: the median of outputs there, g⁻¹(f(x)), or their mean,
h(f(x)) = E g⁻¹(f(x) + noise), which is increasing in f(x), too. Moments of h(f) need no second
quadrature: E h(f) is the mean of a new output, and Cov(h(f_i), h(f_j)) = Cov(g⁻¹(z_i), g⁻¹(z_j'))
for outputs z and z' whose noises are independent.

Where predictions average over hyperparameters, m and s are those of the mixture.

The root of counts, √(y + 3/8) (Anscombe 1948), is no model of them: it is what is asked of counts,
since it scatters about as much where they are many as where they are few. What is predicted of them
says their likelihood (`cloakgp.models.likelihoods.counts`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, log_ndtr, logit, ndtr

from cloakgp.utils.arrays import Array
from cloakgp.utils.names import TRANSFORMS, ScaleName

# Points of quadrature, and terms of covariances.
NODES = 96
TERMS = 48
# Of a count, before its root is taken.
ROOT_SHIFT = 3 / 8


class _Scale(ABC):
    """An increasing function g of outputs, with its inverse."""

    lowest: ClassVar[float]
    highest: ClassVar[float]
    advice: ClassVar[str]

    @abstractmethod
    def forward(self, values: Array) -> Array:
        """Return g(y)."""

    @abstractmethod
    def inverse(self, values: Array) -> Array:
        """Return g⁻¹(z)."""


class _NormalScale(_Scale):
    """A scale on which outputs are taken to be normal."""

    @abstractmethod
    def mean(self, mean: Array, sd: Array, *, bounds: tuple[float, float]) -> Array:
        """Return E g⁻¹(z), z normal, of what is brought within bounds."""

    @abstractmethod
    def covariance(self, mean: Array, sd: Array, shared: Array) -> Array:
        """Return covariances of g⁻¹(z) and g⁻¹(z'); see `OutputTransform.covariance`."""


class _Root(_Scale):
    lowest, highest = -ROOT_SHIFT, math.inf
    advice = "counts are not below 0: give bounds=(0, 50), say"

    def forward(self, values: Array) -> Array:
        return np.asarray(np.sqrt(values + ROOT_SHIFT))

    def inverse(self, values: Array) -> Array:
        return np.asarray(np.square(values) - ROOT_SHIFT)


class _Log(_NormalScale):
    lowest, highest = 0.0, math.inf
    advice = (
        "a logarithm needs bounds above 0: declare the least amount that matters, to which lower "
        "ones are raised (bounds=(1, 1000), say)"
    )

    def forward(self, values: Array) -> Array:
        return np.asarray(np.log(values))

    def inverse(self, values: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(values))

    def mean(self, mean: Array, sd: Array, *, bounds: tuple[float, float]) -> Array:
        lo, hi = bounds
        # Without any scatter, a very small one: the limit is the same.
        scatter = np.maximum(sd, 1e-8)
        low, high = ((np.log(end) - mean) / scatter for end in bounds)
        # The tail may be so long that its mean overflows, and hardly any of it lies within.
        most, least = log_ndtr(high - scatter), log_ndtr(low - scatter)
        with np.errstate(divide="ignore"):
            within = most + np.log1p(-np.exp(np.minimum(least - most, 0.0)))
        between = np.exp(np.minimum(mean + np.square(scatter) / 2 + within, np.log(hi)))
        return np.asarray(np.clip(lo * ndtr(low) + between + hi * ndtr(-high), lo, hi))

    def covariance(self, mean: Array, sd: Array, shared: Array) -> Array:
        level = self.inverse(mean + np.square(sd) / 2)
        with np.errstate(over="ignore"):
            return np.asarray(_products(level, shared) * np.expm1(shared))


class _Logit(_NormalScale):
    lowest, highest = 0.0, 1.0
    advice = (
        "log odds need bounds above 0 and below 1: declare the smallest and the largest share that "
        "matter (bounds=(0.01, 0.99), say)"
    )

    def forward(self, values: Array) -> Array:
        return np.asarray(logit(values))

    def inverse(self, values: Array) -> Array:
        return np.asarray(expit(values))

    def mean(self, mean: Array, sd: Array, *, bounds: tuple[float, float]) -> Array:
        return np.asarray(np.clip(self._coefficients(mean, sd, terms=1)[:, 0], *bounds))

    def covariance(self, mean: Array, sd: Array, shared: Array) -> Array:
        scale = np.where(sd > 0, sd, 1.0)
        correlation = np.clip(shared / _products(scale, shared), -1.0, 1.0)
        total, power = np.zeros_like(correlation), np.ones_like(correlation)
        for column in self._coefficients(mean, sd, terms=TERMS).T[1:]:
            power = power * correlation
            total += _products(column, shared) * power
        return total

    def _coefficients(self, mean: Array, sd: Array, *, terms: int) -> Array:
        """Return those of g⁻¹(m + s z) by normalised Hermite polynomials, shape (P, terms)."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
        polynomials = np.ones((terms, NODES))
        if terms > 1:
            polynomials[1] = nodes
        for order in range(2, terms):
            polynomials[order] = (
                nodes * polynomials[order - 1] - math.sqrt(order - 1) * polynomials[order - 2]
            ) / math.sqrt(order)
        values = self.inverse(mean[:, None] + sd[:, None] * nodes)
        return np.asarray(values @ (polynomials * (weights / weights.sum())).T)


def _products(values: Array, like: Array) -> Array:
    """Return squares of values, or products of all pairs, in the shape of another array."""
    return np.asarray(np.square(values) if like.ndim == 1 else np.outer(values, values))


_NORMAL_SCALES: dict[str, _NormalScale] = {"log": _Log(), "logit": _Logit()}
_SCALES: dict[str, _Scale] = {**_NORMAL_SCALES, "root": _Root()}


@dataclass(frozen=True)
class OutputTransform:
    """A public increasing function of outputs between declared bounds.

    Attributes
    ----------
    name : {"log", "logit", "root"}
        Logarithm, for amounts with a long tail; log odds, for shares; or root, for counts.
    bounds : (float, float)
        Declared, in output units.

    Examples
    --------
    >>> incomes = OutputTransform.checked("log", (1_000.0, 1e6))
    >>> incomes.inverse(incomes.forward(np.array([50_000.0]))).round(6)
    array([50000.])
    >>> [round(end, 3) for end in incomes.ends]
    [6.908, 13.816]
    """

    name: ScaleName
    bounds: tuple[float, float]

    @classmethod
    def checked(cls, name: object, bounds: tuple[float, float]) -> OutputTransform | None:
        """Return the transform of a name, None for None.

        Parameters
        ----------
        name : {"log", "logit"} or None
        bounds : (float, float)
            Finite, the lower first.

        Raises
        ------
        ValueError
            If there is no such transform, or bounds are not where it is defined.
        """
        if name is None:
            return None
        if name not in TRANSFORMS:
            raise ValueError(
                f"transform must be {' or '.join(map(repr, TRANSFORMS))} or None, got {name!r}"
            )
        made = cls(name=name, bounds=(float(bounds[0]), float(bounds[1])))
        made.validate()
        return made

    def validate(self) -> None:
        """Refuse bounds where it is not defined.

        Raises
        ------
        ValueError
        """
        (lo, hi), scale = self.bounds, _SCALES[self.name]
        # Written so that NaN fails.
        if not scale.lowest < lo < hi < scale.highest:
            raise ValueError(
                f"output_transform={self.name!r} with bounds ({lo:g}, {hi:g}): {scale.advice}"
            )

    @property
    def ends(self) -> tuple[float, float]:
        """The bounds, transformed."""
        lo, hi = self.forward(np.array(self.bounds))
        return float(lo), float(hi)

    def forward(self, values: Array) -> Array:
        """Return g of numbers within the bounds."""
        return _SCALES[self.name].forward(values)

    def forward_number(self, value: float, *, name: str) -> float:
        """Return g of one declared number.

        Parameters
        ----------
        value : float
        name : str
            What errors call it.

        Raises
        ------
        ValueError
            If it is outside of the bounds.
        """
        lo, hi = self.bounds
        if not lo <= value <= hi:
            raise ValueError(
                f"{name} must be within the bounds of transformed outputs, got {value}"
            )
        return float(self.forward(np.array(float(value))))

    def inverse(self, values: Array) -> Array:
        """Return numbers on the scale of outputs."""
        return _SCALES[self.name].inverse(values)

    def mean(self, mean: Array, sd: Array) -> Array:
        """Return the mean of outputs g⁻¹(z) for z normal, shape (P,).

        Parameters
        ----------
        mean, sd : arrays of shape (P,)
            Of z. Outputs beyond the bounds count as at them.
        """
        return _NORMAL_SCALES[self.name].mean(mean, sd, bounds=self.bounds)

    def covariance(self, mean: Array, sd: Array, shared: Array) -> Array:
        """Return the covariances of g⁻¹(z_i) and g⁻¹(z_j), or the variances of their common part.

        Parameters
        ----------
        mean, sd : arrays of shape (P,)
            Of z_i, normal.
        shared : array of shape (P, P) or (P,)
            Cov(z_i, z_j') for z and z' that are distributed alike: equal to sd² on the diagonal
            where they are one, less where each has noise of its own. Of shape (P,): the diagonal
            alone.

        Returns
        -------
        array of the shape of shared
        """
        return _NORMAL_SCALES[self.name].covariance(mean, sd, shared)
