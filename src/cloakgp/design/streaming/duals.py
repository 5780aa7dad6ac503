r"""Weak duality for `bayes` in passes: a bound on every strategy, from duals fixed before a pass.

With K_y = VᵀV + Λ and F = VᵀQ, take any U of shape (M, P) and Y of shape (N, P), and let
E = (Vᵀ(Q − U) − ΛY)/s. Completing one square for each part of K_y, as in
`cloakgp.design.weak_duality`, every feasible G explains at most

    ‖U‖² + tr(YᵀΛY) + max over C of [2 s tr(CE) − s² tr(C G⁺ Cᵀ)],

where the last is at most Σ_j v_j for any v with diag(v) ⪰ E Eᵀ; directions in which that fails are
moved to Y. With Y = RᵀW and U = V Y it is the bound there. But U need not be: U = AᵀW is taken from
the sums *before* a pass, and Y = RᵀW has the columns that the pass itself finds. So the pass that
improves a design certifies it, too; and as both duals are the best answers to each other, more
sharply than a pass of its own would.

E is had in float32, unless a gap below 1e-4 is asked for. Rounding moves the bound by some 1e-7 of
Σ_j v_j, of which far more is added. Constants are had from sums in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from cloakgp.design.weak_duality import clipped_bound
from cloakgp.utils.arrays import Array

Precision = type[np.float32] | type[np.float64]

# Added to WᵀW, as shares of its mean eigenvalue: of several bounds the least counts.
FLOORS, CLOSE_FLOORS = (1e-4, 1e-2), (1e-12, 1e-8, 1e-4, 1e-2)
# Of Σ_j v_j, for rounding in float32.
SINGLE_ROUNDING = 1e-5
# Certificates that are to be closer than this are had in float64.
CLOSE = 1e-4
# Of the queries' largest entry: the least unit of slopes.
SMALLEST = 1e-9


@dataclass(frozen=True, eq=False)
class Duals:
    """The dual variables, fixed before a pass, in a basis of the queries in which WᵀW is diagonal.

    Attributes
    ----------
    features : array of shape (M, P)
        U.
    weights : array of shape (k, P)
        W.
    queries : array of shape (M, P)
        Q.
    noise_sd : float
        s.
    squares : array of shape (P,)
        The diagonal of s² WᵀW.
    precision : type
        In which E is had.
    """

    features: Array
    weights: Array
    queries: Array
    noise_sd: float
    squares: Array
    precision: Precision = np.float32

    @classmethod
    def of(
        cls,
        *,
        features: Array,
        weights: Array,
        queries: Array,
        noise_sd: float,
        gap: float,
    ) -> Duals:
        """Turn to that basis.

        Parameters
        ----------
        features : array of shape (k, M)
            A.
        weights : array of shape (k, P)
            W.
        queries : array of shape (M, P)
        noise_sd : float
        gap : float
            Of the certificate that is wanted.
        """
        squares, rotation = linalg.eigh(weights.T @ weights)
        turned = weights @ rotation
        return cls(
            features=features.T @ turned,
            weights=turned,
            queries=queries @ rotation,
            noise_sd=noise_sd,
            squares=noise_sd**2 * np.maximum(squares, 0.0),
            precision=np.float32 if gap >= CLOSE else np.float64,
        )

    @property
    def rounding(self) -> float:
        """The rounding margin of Σ_j v_j, as a share."""
        return SINGLE_ROUNDING if self.precision is np.float32 else 0.0

    @property
    def unit(self) -> float:
        """In which E is measured: the root of the mean of the squares, where something is asked."""
        least = SMALLEST * float(np.abs(self.queries).max(initial=0.0))
        return max(float(np.sqrt(self.squares.mean())), least) or 1.0

    def over(self, features: Array, noise: Array, columns: Array) -> DualSums:
        """Return the sums over some rows that the bound needs.

        Parameters
        ----------
        features : array of shape (M, n)
        noise : array of shape (n,)
        columns : array of shape (k, n)
        """
        unit, sd, kind = self.unit, self.noise_sd, self.precision
        residual = ((self.queries - self.features) / unit).astype(kind)
        weights = (self.weights * (sd / unit)).astype(kind)
        slopes: NDArray[Any] = residual.T @ _multiple(features, 1.0 / sd, kind)
        slopes -= (weights.T @ columns.astype(kind)) * (noise / sd**2).astype(kind)
        squares = np.square(slopes)
        totals, grams = [], []
        for floor in FLOORS if kind is np.float32 else CLOSE_FLOORS:
            shares = (self.squares / unit**2 + floor).astype(kind)
            supports = np.maximum(np.sqrt(shares @ squares), np.finfo(np.float32).tiny ** 0.5)
            scaled = slopes / np.sqrt(supports)
            totals.append(float(supports.sum(dtype=np.float64)))
            # The same array twice: half the work.
            grams.append((scaled @ scaled.T).astype(np.float64))
        return DualSums(
            gram=(slopes @ slopes.T).astype(np.float64),
            totals=np.array(totals),
            squares=np.array(grams),
            least_noise=float(noise.min()),
        )

    def most_explained(self, sums: DualSums, *, features: Array, noise: Array) -> float:
        """Return an upper bound of the variance that any strategy explains.

        Parameters
        ----------
        sums : DualSums
            Over all rows.
        features : array of shape (k, M)
            R Vᵀ over the same rows and columns.
        noise : array of shape (k, k)
            R Λ Rᵀ.
        """
        sd, unit = self.noise_sd, self.unit
        held = float(np.square(self.features).sum() + np.vdot(self.weights, noise @ self.weights))
        # Yᵀ E.
        answered = features @ (self.queries - self.features) - noise @ self.weights
        covered = self.weights.T @ answered
        bounds = [
            clipped_bound(
                squares,
                covered=covered / unit**2,
                gram=sums.gram,
                noise_ratio=sd**2 / sums.least_noise,
                cost=float(total) * (1.0 + self.rounding),
            )
            for squares, total in zip(sums.squares, sums.totals, strict=True)
        ]
        return held + unit**2 * min(bounds)


@dataclass(frozen=True, eq=False)
class DualSums:
    """Sums over rows for a bound; slopes in the unit of the duals.

    Attributes
    ----------
    gram : array of shape (P, P)
        EᵀE.
    totals : array of shape (c,)
        Σ_j v_j of each choice of v.
    squares : array of shape (c, P, P)
        Σ_j e_j e_jᵀ/v_j.
    least_noise : float
        The smallest λ_j.
    """

    gram: Array
    totals: Array
    squares: Array
    least_noise: float

    def merge(self, other: DualSums) -> DualSums:
        """Return the sums over these rows and others."""
        return DualSums(
            gram=self.gram + other.gram,
            totals=self.totals + other.totals,
            squares=self.squares + other.squares,
            least_noise=min(self.least_noise, other.least_noise),
        )


def _multiple(matrix: Array, factor: float, kind: Precision) -> NDArray[Any]:
    """Return a multiple in that precision, in one go over the matrix and in its order."""
    multiple: NDArray[Any] = np.empty_like(matrix, dtype=kind)
    np.multiply(matrix, factor, out=multiple, casting="same_kind")
    return multiple
