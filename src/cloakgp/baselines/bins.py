"""A public grid over the inputs, and which rows lie in which of its bins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloakgp.arrays import Array

Indices = NDArray[np.intp]
BinsSpec = int | Sequence[int | ArrayLike]
# Bins are numbered by 64-bit integers.
MOST_BINS = 2**62


@dataclass(frozen=True, eq=False)
class Bins:
    """A grid of boxes.

    A bin holds its lower edges and not its upper ones, but for the last of each dimension, which
    holds both. What lies outside the grid belongs to the nearest bin.

    Attributes
    ----------
    edges : tuple of D arrays
        The edges along each dimension, ascending, at least two.

    Examples
    --------
    >>> bins = Bins.over(np.array([[0.0], [10.0]]), bins=5)
    >>> bins.edges[0]
    array([ 0.,  2.,  4.,  6.,  8., 10.])
    >>> bins.cells(np.array([[-7.0], [2.0], [10.0]]))
    array([0, 1, 4])
    """

    edges: tuple[Array, ...]

    @classmethod
    def over(
        cls, X: Array, *, bins: BinsSpec = 10, ranges: Sequence[tuple[float, float]] | None = None
    ) -> Bins:
        """Return a grid of equal bins, or of given edges.

        Parameters
        ----------
        X : array of shape (N, D)
            Public inputs.
        bins : int, or sequence of D items
            Bins along every dimension; or for each dimension how many, or where their edges are.
        ranges : sequence of D pairs, optional
            Of the grid, where edges are not given; the ranges of X if not given. An input that
            never varies has one bin without width.

        Raises
        ------
        ValueError
            If they do not make sense or do not fit X.
        """
        dimensions = X.shape[1]
        if isinstance(bins, int | np.integer):
            bins = [bins] * dimensions
        if not isinstance(bins, Sequence | np.ndarray) or len(bins) != dimensions:
            raise ValueError(
                "bins must be a number, or one number or array of edges for each of the "
                f"{dimensions} input columns"
            )
        if ranges is None:
            ranges = list(zip(X.min(axis=0), X.max(axis=0), strict=True))
        elif len(ranges) != dimensions or any(len(pair) != 2 for pair in ranges):
            raise ValueError(f"ranges must be {dimensions} pairs, one for each input column")
        elif not all(np.isfinite(pair).all() and pair[0] < pair[1] for pair in ranges):
            raise ValueError("ranges must be finite, the lower end below the upper")
        return cls(
            edges=tuple(
                _edges(spec, lo=float(lo), hi=float(hi))
                for spec, (lo, hi) in zip(bins, ranges, strict=True)
            )
        ).checked()

    def checked(self) -> Bins:
        """Return itself, or say that there are too many bins to number."""
        if math.prod(self.shape) > MOST_BINS:
            raise ValueError(f"{' × '.join(map(str, self.shape))} bins are too many")
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of bins along each dimension."""
        return tuple(len(edges) - 1 for edges in self.edges)

    def cells(self, X: Array) -> Indices:
        """Return the number of the bin in which, or nearest to which, each row lies, shape (N,)."""
        positions = [
            np.clip(np.searchsorted(edges, column, side="right") - 1, 0, len(edges) - 2)
            for edges, column in zip(self.edges, X.T, strict=True)
        ]
        return np.asarray(np.ravel_multi_index(positions, self.shape), dtype=np.intp)

    def boxes(self, cells: Indices) -> Array:
        """Return the lower, then the upper corners of bins, shape (n, 2D)."""
        positions = np.unravel_index(cells, self.shape)
        lower = [edges[at] for edges, at in zip(self.edges, positions, strict=True)]
        upper = [edges[at + 1] for edges, at in zip(self.edges, positions, strict=True)]
        return np.stack([*lower, *upper], axis=1)


@dataclass(frozen=True, eq=False)
class Occupancy:
    """Which bins hold rows: public, as the inputs are.

    Attributes
    ----------
    cells : array of shape (m,)
        The numbers of the bins that hold any, ascending.
    counts : array of shape (m,)
        How many each holds.
    strategy : array of shape (m, N)
        1 where a bin holds a row, 0 elsewhere: every column has a single one.

    Examples
    --------
    >>> X = np.array([[0.0], [9.0], [10.0]])
    >>> Occupancy.of(X, Bins.over(X, bins=5)).strategy
    array([[1., 0., 0.],
           [0., 1., 1.]])
    """

    cells: Indices
    counts: Array
    strategy: Array

    @classmethod
    def of(cls, X: Array, bins: Bins) -> Occupancy:
        """Count the rows of X in the bins."""
        cells, members, counts = np.unique(bins.cells(X), return_inverse=True, return_counts=True)
        strategy = np.zeros((len(cells), len(X)))
        strategy[members.ravel(), np.arange(len(X))] = 1.0
        return cls(cells=cells, counts=counts.astype(np.float64), strategy=strategy)


def _edges(spec: int | ArrayLike, *, lo: float, hi: float) -> Array:
    if isinstance(spec, bool | np.bool_):
        raise ValueError("bins must be numbers or arrays of edges, not truth values")
    if isinstance(spec, int | np.integer):
        if spec < 1:
            raise ValueError(f"there must be at least one bin, got {spec}")
        if spec >= MOST_BINS:
            raise ValueError(f"{spec} bins are too many")
        return np.linspace(lo, hi, int(spec) + 1) if lo < hi else np.array([lo, hi])
    edges = np.asarray(spec, dtype=np.float64)
    if edges.ndim != 1 or len(edges) < 2:
        raise ValueError(
            f"edges must be at least two numbers per input column, got shape {edges.shape}"
        )
    if not (np.isfinite(edges).all() and (np.diff(edges) > 0).all()):
        raise ValueError("edges must be finite and strictly ascending")
    return edges
