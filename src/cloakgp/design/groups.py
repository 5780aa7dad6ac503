r"""Group constraints on a design: all outputs of one group may change together.

A strategy is feasible if every group's columns R_g have a gauge q(R_g) = max ‖R_g s‖ over signs s
of at most 1. The gauge has a kink wherever two vectors of signs tie, and optima lie on kinks; so a
design climbs with the smooth

    q_p(R_g) = (Σ_s ‖R_g s‖^p)^{1/p} ≥ q(R_g)

for larger and larger p. Up to 8 rows the sum goes over all signs (s and −s are one), of more rows
over those that were ever found to be the worst and over tr R_gᵀ R_g, the mean of ‖R_g s‖² over all
signs: without it, columns on which the known signs cancel would seem to cost nothing.

What is computed here decides how useful a release is, never how private: the sensitivity is bounded
anew by `cloakgp.privacy.groups`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cloakgp.design.weak_duality import Tangent
from cloakgp.utils.arrays import Array

Groups = NDArray[np.intp]

# Groups up to here are designed over all signs.
ALL_SIGNS = 8
# Starting points of the search for the worst signs of larger groups, and its sweeps.
STARTS, SWEEPS = 16, 20
# Powers and shares of the unexplained variance with which a certificate is tried.
CERTIFICATE_POWERS = (32.0, 256.0, 2048.0)
FLOORS = (1e-6, 1e-4, 1e-3, 1e-2)
# Blocks are inverted to about this.
ROUNDED_UP = 1 + 1e-9


@dataclass(frozen=True, eq=False)
class SameSize:
    """The groups of one size.

    Attributes
    ----------
    rows : array of shape (m, n)
        The rows of each group.
    signs : array of shape (m, S, n), or (1, S, n) if the same for all
        The vectors of signs that are looked at.
    complete : bool
        Whether these are all.
    """

    rows: Groups
    signs: Array
    complete: bool

    def squares(self, columns: Array) -> Array:
        """Return ‖R_g s‖² of every group and vector of signs, shape (m, S).

        If these are not all, their mean over all signs follows, and the shape is (m, S + 1).
        """
        grams = self.grams(columns)
        forms = np.einsum("msi,msi->ms", self.signs @ grams, np.broadcast_to(self.signs, self.size))
        if not self.complete:
            forms = np.column_stack([forms, np.einsum("mii->m", grams)])
        return np.asarray(np.maximum(forms, 0.0), dtype=np.float64)

    def grams(self, columns: Array) -> Array:
        """Return R_gᵀ R_g of every group, shape (m, n, n)."""
        own = columns.T[self.rows]
        return np.asarray(own @ own.transpose(0, 2, 1), dtype=np.float64)

    def outer(self, weights: Array) -> Array:
        """Return Σ_s w_s s sᵀ of every group, shape (m, n, n); w as `squares` orders them."""
        _, known, rows = self.size
        weighted = self.signs.transpose(0, 2, 1) * weights[:, None, :known]
        total = np.asarray(weighted @ self.signs, dtype=np.float64)
        if not self.complete:
            total += weights[:, known, None, None] * np.eye(rows)
        return total

    @property
    def size(self) -> tuple[int, int, int]:
        """(m, S, n)."""
        return len(self.rows), self.signs.shape[1], self.signs.shape[2]

    def with_worst(self, columns: Array) -> SameSize:
        """Look at each group's worst signs as well."""
        if self.complete:
            return self
        worst = worst_signs(self.grams(columns))[:, None, :]
        known = np.broadcast_to(self.signs, self.size)
        return SameSize(
            rows=self.rows, signs=np.concatenate([known, worst], axis=1), complete=False
        )


@dataclass(frozen=True, eq=False)
class GroupGauges:
    """The feasible strategies: q(R_g) ≤ 1 for every group.

    Attributes
    ----------
    sizes : tuple of SameSize
    power : float
        p; how sharp the smooth gauge is.
    """

    sizes: tuple[SameSize, ...]
    power: float = 16.0

    @classmethod
    def of(cls, groups: Groups, strategy: Array) -> GroupGauges:
        """Sort groups by their size.

        Parameters
        ----------
        groups : array of shape (N,)
            Which group each row belongs to, from 0.
        strategy : array of shape (k, N)
            Whose worst signs the larger groups begin with.
        """
        order = np.argsort(groups, kind="stable")
        members = np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)
        counts = np.array([len(group) for group in members])
        sizes = []
        for count in np.unique(counts):
            rows = np.stack([group for group in members if len(group) == count])
            small = count <= ALL_SIGNS
            signs = _half_of_signs(int(count)) if small else np.ones((1, int(count)))
            same = SameSize(rows=rows, signs=signs[None], complete=bool(small))
            sizes.append(same.with_worst(strategy))
        return cls(sizes=tuple(sizes))

    def sharper(self, power: float, strategy: Array) -> GroupGauges:
        """Return gauges of another power that know a strategy's worst signs."""
        return GroupGauges(
            sizes=tuple(same.with_worst(strategy) for same in self.sizes), power=power
        )

    def lengths(self, columns: Array) -> Array:
        """Return the gauge of each row's group, shape (N,), none of them zero."""

        def gauge(same: SameSize) -> Array:
            squares = same.with_worst(columns).squares(columns)
            return np.asarray(np.sqrt(squares.max(axis=1)), dtype=np.float64)

        return self._by_row(columns, gauge)

    def worst_columns(self, C: Array, strategy: Array, *, above: float) -> Array:
        """Return C_g s for the worst signs of the groups whose gauge is too large, shape (P, n).

        Parameters
        ----------
        C : array of shape (P, N)
        strategy : array of shape (k, N)
        above : float
            What a gauge must exceed.
        """
        columns = []
        for same in self.sizes:
            looked = same.with_worst(strategy)
            squares = looked.squares(strategy)[:, : looked.size[1]]
            worst = np.broadcast_to(looked.signs, looked.size)[
                np.arange(len(squares)), squares.argmax(axis=1)
            ]
            signed = np.einsum("pmn,mn->pm", C[:, same.rows], worst)
            columns.append(signed[:, squares.max(axis=1) > above**2])
        return np.hstack(columns)

    def smooth_lengths(self, columns: Array) -> Array:
        """Return the smooth gauge of each row's group, shape (N,), none of them zero."""

        def gauge(same: SameSize) -> Array:
            squares = same.squares(columns)
            largest = np.maximum(squares.max(axis=1), np.finfo(np.float64).tiny)
            shares = (squares / largest[:, None]) ** (self.power / 2)
            return np.asarray(np.sqrt(largest) * shares.sum(axis=1) ** (1 / self.power))

        return self._by_row(columns, gauge)

    def across(self, strategy: Array, gradient: Array) -> Array:
        """Remove from a gradient the part that changes the smooth gauge, at columns where it is 1.

        Its derivative there is R_g Σ_s ‖R_g s‖^{p−2} s sᵀ.
        """
        rest = gradient.copy()
        for same in self.sizes:
            outer = same.outer(same.squares(strategy) ** (self.power / 2 - 1))
            own = strategy.T[same.rows]
            along = np.einsum("mnk,mnk->m", own, gradient.T[same.rows])
            rest.T[same.rows] -= along[:, None, None] * (outer @ own)
        return rest

    def excess(
        self,
        strategy: Array,
        slopes: Array,
        *,
        answered: Array,
        noise_ratio: float,
        floor: float,
    ) -> float:
        r"""Bound the variance that any feasible strategy explains beyond this one, by weak duality.

        Let B be block-diagonal with B_g = Σ_s λ_s s sᵀ + c I, λ and c ≥ 0. For every feasible G',
        tr[B G'] ≤ Σ_g (Σ_s λ_s + c), because sᵀ G'_gg s ≤ 1 for each s, and tr G'_gg, the mean of
        these over all s, is at most 1 too. Complementary slackness wants λ_s on the worst signs
        alone, and (E Eᵀ R)_g = B_g R_g; λ_s ∝ ‖R_g s‖^{p−2} nearly does so.

        Parameters
        ----------
        strategy : array of shape (k, N)
        slopes : array of shape (N, P)
            E.
        answered : array of shape (k, P)
            R E.
        noise_ratio : float
            s² over a lower bound of the eigenvalues of K_y.
        floor : float
            The variance that c is measured by.
        """
        tangent = Tangent(answered=answered, gram=slopes.T @ slopes, noise_ratio=noise_ratio)
        supporting = np.einsum("kj,kj->j", strategy, answered @ slopes.T)
        count = sum(len(same.rows) for same in self.sizes)
        best = np.inf
        for power in CERTIFICATE_POWERS:
            parts = [_supports(same, strategy, supporting, power=power) for same in self.sizes]
            cost = sum(float(supports.sum()) for _, supports in parts)
            for share in FLOORS:
                least = share * floor / count
                blocks = [outer + least * np.eye(outer.shape[1]) for outer, _ in parts]
                squares = self._squares(blocks, slopes)
                best = min(best, tangent.excess(squares, cost=(cost + least * count) * ROUNDED_UP))
        return best

    def _squares(self, blocks: Sequence[Array], slopes: Array) -> Array:
        """Return Eᵀ B⁻¹ E."""
        total = np.zeros((slopes.shape[1], slopes.shape[1]))
        for same, block in zip(self.sizes, blocks, strict=True):
            factor = np.linalg.cholesky(block)
            solved = np.linalg.solve(factor, slopes[same.rows]).reshape(-1, slopes.shape[1])
            total += solved.T @ solved
        return total

    def _by_row(self, columns: Array, gauge: Callable[[SameSize], Array]) -> Array:
        lengths = np.zeros(columns.shape[1])
        for same in self.sizes:
            lengths[same.rows] = gauge(same)[:, None]
        return np.maximum(lengths, np.finfo(np.float64).tiny)


def _supports(
    same: SameSize, strategy: Array, supporting: Array, *, power: float
) -> tuple[Array, Array]:
    """Return Σ_s λ_s s sᵀ and Σ_s λ_s of every group, λ_s ∝ ‖R_g s‖^{p−2}."""
    squares = same.squares(strategy)
    largest = np.maximum(squares.max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    weights = (squares / largest) ** (power / 2 - 1)
    # tr[B_g G_gg] is to be the group's share of tr[E Eᵀ G].
    weights /= np.einsum("ms,ms->m", weights, squares / largest)[:, None]
    weights *= np.maximum(supporting[same.rows].sum(axis=1), 0.0)[:, None]
    return same.outer(weights), weights.sum(axis=1)


def worst_signs(grams: Array) -> Array:
    """Return signs that make sᵀ G s large: the best of several climbs, one sign at a time.

    Parameters
    ----------
    grams : array of shape (m, n, n)

    Returns
    -------
    array of shape (m, n)

    Examples
    --------
    >>> int(worst_signs(np.array([[[1.0, -0.5], [-0.5, 1.0]]])).sum())
    0
    """
    groups, count, _ = grams.shape
    index = np.arange(1, 1 + STARTS * count, dtype=np.float64).reshape(STARTS, count)
    start = np.where(np.cos(index * np.sqrt(2.0) * np.pi) >= 0, 1.0, -1.0)
    _, vectors = np.linalg.eigh(grams)
    leading = np.where(vectors.transpose(0, 2, 1)[:, -3:] >= 0, 1.0, -1.0)
    tried = np.concatenate([np.broadcast_to(start, (groups, STARTS, count)), leading], axis=1)
    variances = np.einsum("mii->mi", grams)
    for _ in range(SWEEPS):
        before = tried.copy()
        for row in range(count):
            pull = (
                np.einsum("msj,mj->ms", tried, grams[:, row])
                - tried[:, :, row] * variances[:, row, None]
            )
            tried[:, :, row] = np.where(pull >= 0, 1.0, -1.0)
        if np.array_equal(tried, before):
            break
    forms = np.einsum("msi,msi->ms", tried @ grams, tried)
    return np.asarray(tried[np.arange(groups), forms.argmax(axis=1)], dtype=np.float64)


def _half_of_signs(count: int) -> Array:
    """Return all vectors of signs that begin with +1, shape (2ⁿ⁻¹, n)."""
    bits = (np.arange(2 ** (count - 1))[:, None] >> np.arange(count)[::-1]) & 1
    return np.asarray(1.0 - 2.0 * bits, dtype=np.float64)
