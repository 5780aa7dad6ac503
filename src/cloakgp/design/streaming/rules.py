r"""Rules: strategies that compute the column of a row from its features and noise.

A sparse model with M inducing inputs knows a row by its features v, of shape (M,), and its noise
variance λ. A strategy for millions of rows is kept as a rule that gives every row's column
r = r(v, λ) from a matrix of shape (k, M): whoever has the public inputs can ask again for every
column, and nobody has to keep them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from cloakgp.design.streaming.remembering import RememberedColumns
from cloakgp.utils.arrays import Array

NEWTON_STEPS = 30
BLOCK_ROWS = 512
TINY, HUGE = float(np.finfo(np.float64).tiny), float(np.finfo(np.float64).max)
# Relative error of a column's length at which the search for its multiplier stops.
LENGTH_TOLERANCE = 1e-10

Columns = Array | sparse.csr_array
"""What is asked of rows, shape (k, n): dense, or of few entries that are not zero."""


def weigh_rows(columns: Columns, weights: Array) -> Columns:
    """Return R diag(weights), as sparse as R.

    Parameters
    ----------
    columns : array or sparse array of shape (k, n)
        R.
    weights : array of shape (n,)

    Examples
    --------
    >>> weigh_rows(sparse.csr_array(np.eye(2)), np.array([3.0, 4.0])).toarray()
    array([[3., 0.],
           [0., 4.]])
    """
    if not isinstance(columns, sparse.csr_array):
        return columns * weights
    entries = columns.data * weights[columns.indices]
    return sparse.csr_array((entries, columns.indices, columns.indptr), shape=columns.shape)


@dataclass(frozen=True, eq=False)
class Rule(ABC):
    """A rule for the column of a row.

    Attributes
    ----------
    matrix : array of shape (k, M)
    """

    matrix: Array

    @property
    def answers(self) -> int:
        """k, the number of questions."""
        return len(self.matrix)

    @cached_property
    def remembered(self) -> RememberedColumns:
        """The columns of rows of earlier passes, for a further pass."""
        return RememberedColumns()

    @abstractmethod
    def columns(self, features: Array, noise: Array) -> Array:
        """Return the columns r_j of rows with features V and noise variances λ, shape (k, n)."""

    def summable_columns(self, features: Array, noise: Array) -> Columns:
        """Return the columns in the form in which sums over rows cost least.

        Parameters
        ----------
        features : array of shape (M, n)
        noise : array of shape (n,)
        """
        return self.columns(features, noise)

    def validate(self) -> None:
        """Refuse a rule that is none.

        Raises
        ------
        ValueError
            If its arrays do not fit each other.
        """
        if self.matrix.ndim != 2:
            raise ValueError("its rule is damaged")


@dataclass(frozen=True, eq=False)
class EqualRule(Rule):
    """R = 1: all rows alike.

    Attributes
    ----------
    matrix : array of shape (1, M)
        Of zeros: the features of rows do not matter.

    Examples
    --------
    >>> EqualRule(matrix=np.zeros((1, 2))).columns(np.array([[1.0], [3.0]]), np.array([2.0]))
    array([[1.]])
    """

    def columns(self, features: Array, noise: Array) -> Array:
        """Return ones, shape (1, n)."""
        del features
        return np.ones((1, len(noise)))


@dataclass(frozen=True, eq=False)
class LinearRule(Rule):
    """r = T v / λ: the rule that reconstructs predictions linear in the outputs.

    Attributes
    ----------
    matrix : array of shape (k, M)
        T.

    Examples
    --------
    >>> LinearRule(matrix=np.eye(2)).columns(np.array([[1.0], [3.0]]), np.array([2.0]))
    array([[0.5],
           [1.5]])
    """

    def columns(self, features: Array, noise: Array) -> Array:
        """Return T v / λ, shape (k, n)."""
        columns: Array = self.matrix @ features
        return columns / noise


@dataclass(frozen=True, eq=False)
class BallRule(Rule):
    r"""r = argmax of 2 rᵀ L v − λ rᵀ diag(q) r over ‖r‖ ≤ 1: the rule of the sharpest design.

    The maximum is at r = (ν + λ q)⁻¹ L v, entry by entry, with the multiplier ν ≥ 0 for which the
    length is 1, or ν = 0 if it is less than 1 there. ν is found by Newton's method on 1/‖r‖, which
    is concave in ν and nearly straight (Moré and Sorensen 1983).

    Attributes
    ----------
    matrix : array of shape (k, M)
        L.
    curvatures : array of shape (k,)
        q, not negative.

    Examples
    --------
    >>> rule = BallRule(matrix=np.eye(2), curvatures=np.zeros(2))
    >>> rule.columns(np.array([[3.0], [4.0]]), np.array([1.0])).round(6)
    array([[0.6],
           [0.8]])
    """

    curvatures: Array

    def validate(self) -> None:
        """Refuse a rule that is none; see `Rule.validate`."""
        super().validate()
        _check_curvatures(self.curvatures, matrix=self.matrix)

    def columns(self, features: Array, noise: Array) -> Array:
        """Return the columns, shape (k, n), each at most 1 long but for rounding."""
        wanted: Array = self.matrix @ features
        # In blocks that stay in the processor's cache: three times as fast.
        for start in range(0, len(noise), BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            # The maximum is the same in all units: in these, no square over- or underflows.
            sizes = np.maximum(np.abs(wanted[:, block]).max(axis=0, initial=0.0), TINY)
            scaled = wanted[:, block] / sizes
            if self.curvatures.any():
                with np.errstate(over="ignore"):
                    penalties = self.curvatures[:, None] * np.minimum(noise[block] / sizes, HUGE)
                wanted[:, block] = _shortened(scaled, penalties)
            else:
                wanted[:, block] = scaled / np.maximum(_lengths(scaled), TINY)
        return wanted


@dataclass(frozen=True, eq=False)
class PartitionRule(Rule):
    r"""r = argmax of 2 rᵀ L v − λ rᵀ diag(q) r over the vertices of ‖r‖₁ ≤ 1: a signed partition.

    Every row goes to the answer i for which 2 |l_iᵀv| − λ q_i is greatest, with the sign of l_iᵀv.

    Attributes
    ----------
    matrix : array of shape (k, M)
        L.
    curvatures : array of shape (k,)
        q, not negative.

    Examples
    --------
    >>> rule = PartitionRule(matrix=np.eye(2), curvatures=np.zeros(2))
    >>> rule.columns(np.array([[3.0, 1.0], [2.0, -2.0]]), np.ones(2))
    array([[ 1.,  0.],
           [ 0., -1.]])
    """

    curvatures: Array

    def validate(self) -> None:
        """Refuse a rule that is none; see `Rule.validate`."""
        super().validate()
        _check_curvatures(self.curvatures, matrix=self.matrix)

    def columns(self, features: Array, noise: Array) -> Array:
        """Return the columns, shape (k, n): one entry of each is ±1."""
        columns: Array = self.summable_columns(features, noise).toarray()
        return columns

    def summable_columns(self, features: Array, noise: Array) -> sparse.csr_array:
        """Return the columns, with their one entry each."""
        wanted: Array = self.matrix @ features
        rows = len(noise)
        if self.answers == 0:
            return sparse.csr_array((0, rows))
        parts = np.empty(rows, dtype=np.intp)
        for start in range(0, rows, BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            worth = 2.0 * np.abs(wanted[:, block]) - self.curvatures[:, None] * noise[block]
            parts[block] = worth.argmax(axis=0)
        each = np.arange(rows)
        signs = np.where(wanted[parts, each] < 0, -1.0, 1.0)
        return sparse.csr_array((signs, (parts, each)), shape=wanted.shape)


def _check_curvatures(curvatures: Array, *, matrix: Array) -> None:
    if curvatures.shape != matrix.shape[:1] or not (curvatures >= 0).all():
        raise ValueError("its rule is damaged")


def _shortened(wanted: Array, penalties: Array) -> Array:
    """Return (ν + p)⁻¹ w, with ν for which it is at most 1 long."""
    lengths = _lengths(wanted)
    # No divisor exceeds the largest, and no entry alone may be longer than 1: lower bounds.
    multipliers = np.maximum(lengths - penalties.max(axis=0), 0.0)
    multipliers = np.maximum((np.abs(wanted) - penalties).max(axis=0), multipliers)
    floor = np.finfo(np.float64).eps * np.maximum(lengths, TINY)
    for _ in range(NEWTON_STEPS):
        divisors = np.maximum(multipliers + penalties, floor)
        columns = wanted / divisors
        reached = _lengths(columns)
        if (reached <= 1.0 + LENGTH_TOLERANCE).all():
            break
        # Newton on φ(ν) = 1/‖r‖, whose derivative is rᵀ (ν + λq)⁻¹ r / ‖r‖³.
        slopes = np.einsum("kn,kn->n", columns, columns / divisors)
        steps = (reached - 1.0) * np.square(reached) / np.maximum(slopes, TINY)
        multipliers = multipliers + np.where(reached > 1.0, steps, 0.0)
    shortened: Array = columns / np.maximum(reached, 1.0)
    return shortened


def _lengths(columns: Array) -> Array:
    lengths: Array = np.sqrt(np.einsum("kn,kn->n", columns, columns))
    return lengths
