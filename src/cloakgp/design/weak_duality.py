"""Weak duality for `bayes`: a bound of any strategy's explained variance, from slopes at this one.

Let W = S⁻¹RF, E = (F − K_y RᵀW)/s and A = RE, as in `cloakgp.design.bayes`; then A = sW. For every
feasible G, g(G) is the largest over C, with rows in the range of G, of

    2 tr(CF) − tr(C K_y Cᵀ) − s² tr(C G⁺ Cᵀ).

Split E = E' + Δ, so that F = K_y RᵀW + sΔ + sE'. Completing one square for each part,

    g(G) ≤ ‖K_y^{-½}(K_y RᵀW + sΔ)‖² + tr(E'ᵀ G E')
         ≤ g(RᵀR) − ‖A‖² + 2 tr(AᵀRΔ) + (s²/ℓ)‖Δ‖² + tr(E'ᵀ G E'),

with ℓ ≤ the eigenvalues of K_y. If a block-diagonal B ⪰ E'E'ᵀ has tr(BG) ≤ c for every feasible G
(rows on their own: B = diag(v), c = Σ_j v_j), the last term is at most c.

Take any B ≻ 0, let σ_i² and z_i be the eigenvalues and eigenvectors of EᵀB⁻¹E, and clip the σ_i at
t ≥ 1: Δ = Σ_i c_i E z_i z_iᵀ with c_i = (1 − t/σ_i)₊. Then E'E'ᵀ ⪯ t²B, tr(AᵀRΔ) = Σ_i c_i ‖Az_i‖²
and ‖Δ‖² = Σ_i c_i² ‖Ez_i‖². Large t pay for all rows, small ones only for the directions that B
misses; the best t is taken.

At the optimum diag(v)Rᵀ = EAᵀ, so v_j = ‖A e_j‖ = (e_jᵀ AᵀA e_j)^½ for the slopes e_j of row j.
Before it, adding a little to AᵀA makes room for directions that no answer covers yet.

Certificate and stopping rule
-----------------------------
A bound of every strategy holds wherever it was found, so the best bound and the best strategy make
the certificate, whichever came from where.

The gap shrinks roughly by a constant factor from one certificate to the next. Over the later half
of those since no more answers help, that factor is measured; if it would not reach the gap asked
for within the certificates that are left, and the strategy does not gain a share of that gap
either, the search ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg

from cloakgp.design.solver import Progress
from cloakgp.utils.arrays import Array
from cloakgp.utils.threads import product

# Added to AᵀA, as shares of its mean eigenvalue: of several bounds the least counts. The first one
# only keeps v away from zero.
FLOORS = (1e-12, 1e-4, 1e-3, 1e-2)
# Eigenvalues are right to about this share of the largest.
ROUNDING = 1e-12
# Certificates at most, once no more answers help.
CHECKS = 150
# So many at least measure the pace. The strategy moves as long as it gains more than this share of
# the gap asked for.
PACE, STALLED = 10, 0.1


@dataclass(frozen=True, eq=False)
class Tangent:
    """The parts of a strategy that bounds need.

    Attributes
    ----------
    answered : array of shape (k, P)
        A = RE.
    gram : array of shape (P, P)
        EᵀE.
    noise_ratio : float
        s²/ℓ.
    """

    answered: Array
    gram: Array
    noise_ratio: float

    def excess(self, squares: Array, *, cost: float) -> float:
        """Bound the variance that any feasible strategy explains beyond this one.

        Parameters
        ----------
        squares : array of shape (P, P)
            EᵀB⁻¹E.
        cost : float
            c, which tr(BG) does not exceed.

        Examples
        --------
        Where B dominates E Eᵀ, nothing is clipped: c − ‖A‖².

        >>> tangent = Tangent(answered=np.eye(1), gram=np.eye(1), noise_ratio=1.0)
        >>> round(tangent.excess(np.array([[0.5]]), cost=2.0), 9)
        1.0
        """
        covered = self.answered.T @ self.answered
        bound = clipped_bound(
            squares, covered=covered, gram=self.gram, noise_ratio=self.noise_ratio, cost=cost
        )
        return max(bound - float(np.trace(covered)), 0.0)


def clipped_bound(
    squares: Array, *, covered: Array, gram: Array, noise_ratio: float, cost: float
) -> float:
    """Return the least of t² c + 2 Σ_i c_i tr(AᵀA z_i z_iᵀ) + (s²/ℓ) Σ_i c_i² ‖E z_i‖² over t ≥ 1.

    Parameters
    ----------
    squares : array of shape (P, P)
        EᵀB⁻¹E, of eigenvectors z_i.
    covered : array of shape (P, P)
        AᵀA, or what else stands for tr(YᵀΔ).
    gram : array of shape (P, P)
        EᵀE.
    noise_ratio : float
        s²/ℓ.
    cost : float
        c.

    Examples
    --------
    >>> one = np.eye(1)
    >>> clipped_bound(one / 2, covered=one, gram=one, noise_ratio=1.0, cost=2.0).__round__(6)
    2.0
    """
    # The others are not clipped. There are few of these.
    values, vectors = linalg.eigh(squares, subset_by_value=(1.0, np.inf))
    scales = np.sqrt(values)
    along = np.einsum("pi,pi->i", vectors, covered @ vectors)
    lengths = np.einsum("pi,pi->i", vectors, gram @ vectors)
    levels = np.concatenate([[1.0], scales])
    clipped = np.maximum(1.0 - levels[:, None] / scales, 0.0)
    bounds = (
        np.square(levels) * (cost * (1.0 + ROUNDING))
        + 2.0 * (clipped @ along)
        + noise_ratio * (np.square(clipped) @ lengths)
    )
    return float(bounds.min())


@dataclass(frozen=True, eq=False)
class RowSupports:
    """Several choices of v for rows on their own, summed over the rows.

    Attributes
    ----------
    gram : array of shape (P, P)
        EᵀE.
    totals : array of shape (c,)
        Σ_j v_j of each choice.
    squares : array of shape (c, P, P)
        Σ_j e_j e_jᵀ/v_j.
    """

    gram: Array
    totals: Array
    squares: Array

    @classmethod
    def of(cls, slopes: Array, *, answered: Array, floors: Sequence[float] = FLOORS) -> RowSupports:
        """Sum over some rows.

        Parameters
        ----------
        slopes : array of shape (n, P)
            E.
        answered : array of shape (k, P)
            A, of all rows.
        floors : sequence of float
            A choice of v for each.
        """
        totals, squares = [], []
        for floor in floors:
            supports = row_supports(slopes, answered, floor=floor)
            totals.append(supports.sum())
            scaled = slopes / np.sqrt(supports)[:, None]
            # The same array twice: half the work.
            squares.append(scaled.T @ scaled)
        return cls(gram=slopes.T @ slopes, totals=np.array(totals), squares=np.array(squares))

    def merge(self, other: RowSupports) -> RowSupports:
        """Return the sums over these rows and others."""
        return RowSupports(
            gram=self.gram + other.gram,
            totals=self.totals + other.totals,
            squares=self.squares + other.squares,
        )

    def excess(self, answered: Array, *, noise_ratio: float) -> float:
        """Return the least of the bounds."""
        tangent = Tangent(answered=answered, gram=self.gram, noise_ratio=noise_ratio)
        return min(
            tangent.excess(squares, cost=float(total))
            for squares, total in zip(self.squares, self.totals, strict=True)
        )


def row_supports(slopes: Array, answered: Array, *, floor: float) -> Array:
    """Return v_j = (‖A e_j‖² + η ‖e_j‖²)^½, none of them zero.

    Parameters
    ----------
    slopes : array of shape (n, P)
        E.
    answered : array of shape (k, P)
        A.
    floor : float
        η, as a share of the mean eigenvalue of AᵀA.
    """
    directions = max(answered.shape[1], 1)
    mean = max(float(np.square(answered).sum()) / directions, np.finfo(np.float64).tiny)
    along = product(slopes, answered.T)
    squares = np.einsum("nk,nk->n", along, along)
    squares += floor * mean * np.einsum("np,np->n", slopes, slopes)
    supports: Array = np.maximum(np.sqrt(squares), np.finfo(np.float64).tiny)
    return supports


@dataclass(frozen=True, eq=False)
class Point:
    """A strategy, its explained variance, and its slopes.

    Attributes
    ----------
    strategy : array of shape (k, N)
        R.
    explained : float
        g, in squared output units.
    covered : array of shape (N, k)
        K_y Rᵀ.
    weights : array of shape (k, P)
        W.
    directions : array of shape (N, P)
        F.
    noise_sd : float
        s.
    """

    strategy: Array
    explained: float
    covered: Array
    weights: Array
    directions: Array
    noise_sd: float

    @cached_property
    def slopes(self) -> Array:
        """E, shape (N, P)."""
        slopes = product(self.covered, self.weights)
        # In place: it is the largest array there is.
        np.subtract(self.directions, slopes, out=slopes)
        slopes /= self.noise_sd
        return slopes

    @cached_property
    def answered(self) -> Array:
        """R E, shape (k, P)."""
        return product(self.strategy, self.slopes)

    @property
    def gradient(self) -> Array:
        """2 R E Eᵀ = 2 (W Fᵀ − W Wᵀ R K_y), shape (k, N): without E."""
        weights = self.weights
        gradient = product(weights, self.directions.T)
        gradient -= product(weights @ weights.T, self.covered.T)
        gradient *= 2.0
        return gradient


class Record:
    """The best strategy so far, and the best bound.

    Parameters
    ----------
    prior_variance : float
    gap : float
        The one asked for.
    progress : callable, optional
        Called with the certified gap.
    least : float

    Attributes
    ----------
    best : Point
        The one that explains most.
    least : float
        A lower bound of the unexplained variance of every strategy.
    target : float
        The gap asked for.
    """

    best: Point

    def __init__(
        self,
        prior_variance: float,
        *,
        gap: float,
        progress: Progress | None = None,
        least: float = 0.0,
    ) -> None:
        self.least = least
        self.target = gap
        self._prior_variance, self._progress = prior_variance, progress
        self._most_explained = -np.inf
        self._last: list[tuple[float, float]] | None = None

    def note(self, point: Point, *, excess: float) -> None:
        """Record a strategy, and a bound of the variance that the best one explains beyond it."""
        if point.explained > self._most_explained:
            self.best, self._most_explained = point, point.explained
        self.least = max(self.least, self._prior_variance - point.explained - excess)
        if self._last is not None:
            self._last.append((self.unexplained, self.gap))
        if self._progress is not None:
            self._progress(self.gap)

    @property
    def unexplained(self) -> float:
        """The variance that the best strategy leaves."""
        return positive(self._prior_variance - self._most_explained)

    @property
    def gap(self) -> float:
        """The certified gap of the best strategy."""
        return self.gap_of(self.unexplained)

    def gap_of(self, unexplained: float) -> float:
        """Return the certified gap of any strategy that leaves so much."""
        return max(1.0 - self.least / unexplained, 0.0)

    def expect_no_more_answers(self) -> None:
        """Measure the pace from now on."""
        self._last = [(self.unexplained, self.gap)]

    def finished(self) -> bool:
        """Whether the gap is reached, or is out of reach."""
        if self.gap <= self.target:
            return True
        if self._last is None:
            return False
        left = CHECKS + 1 - len(self._last)
        if left <= 0 or len(self._last) <= PACE:
            return left <= 0
        watched = max(PACE, len(self._last) // 2)
        unexplained, gap = self._last[-1 - watched]
        moving = unexplained - self.unexplained > STALLED * self.target * self.unexplained
        reachable = self.gap * (self.gap / gap) ** (left / watched) <= self.target
        return not (moving or reachable)


def positive(variance: float) -> float:
    """Return a variance that may be divided by."""
    return max(variance, float(np.finfo(np.float64).tiny))
