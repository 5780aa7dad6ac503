"""Noisy histogram: a public grid over the inputs, counts of its bins, and noisy sums in them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloakgp.models.defaults import find_varying
from cloakgp.privacy import Guarantee, OutputBounds
from cloakgp.privacy.noise import NOISES
from cloakgp.release.distributions import NoDistributions
from cloakgp.release.io.release_file import SavedRelease
from cloakgp.utils.arrays import Array, as_inputs
from cloakgp.utils.formatting import short_form
from cloakgp.utils.names import NoiseName

Indices = NDArray[np.intp]
BinsSpec = int | Sequence[int | ArrayLike]

# Bins are numbered by 64-bit integers.
MOST_BINS = 2**62


@dataclass(frozen=True, eq=False)
class NoisyHistogram(SavedRelease, NoDistributions):
    """Noisy sums of the outputs in bins of public inputs; a public object.

    Attributes
    ----------
    bins : Bins
    places : array of shape (m, D)
        Where the bins that hold rows lie along each input, counted from 0; by number, ascending.
    counts : array of shape (m,)
        How many rows each holds; public, as the inputs are.
    sums : array of shape (m,)
        Noisy sums of the outputs less ``centre``, in output units.
    noise_sd : float
        Of each sum, in output units.
    noise : {"gaussian", "laplace"}
    bounds : (float, float)
    guarantee : Guarantee
    insecure : bool
        True if the noise came from a fixed seed: such a release is not private.
    input_names : tuple of str

    Examples
    --------
    >>> from cloakgp.estimators.baselines import DPHistogramRegressor
    >>> X = np.linspace(0, 10, 400)[:, None]
    >>> y = np.sin(X).ravel()
    >>> model = DPHistogramRegressor(bounds=(-1, 1), epsilon=1.0, noise="laplace").fit(X, y)
    >>> model.release_
    <NoisyHistogram of 10 bins, 1-differential privacy.>
    >>> model.release_.predict([[3.0], [4.0]]).shape
    (2,)
    """

    kind = "histogram"

    bins: Bins
    # Not their numbers, which may be larger than the doubles of a file tell apart.
    places: Indices
    counts: Array
    sums: Array
    noise_sd: float
    noise: NoiseName
    bounds: tuple[float, float]
    guarantee: Guarantee
    insecure: bool = False
    input_names: tuple[str, ...] = ()

    @property
    def n_inputs(self) -> int:
        """D, the number of public inputs."""
        return len(self.bins.edges)

    @cached_property
    def cells(self) -> Indices:
        """The numbers of the bins that hold rows, ascending, shape (m,)."""
        return self.bins.cells_at(self.places)

    @property
    def centre(self) -> float:
        """The middle of the bounds."""
        return OutputBounds(*self.bounds).middle

    @property
    def means(self) -> Array:
        """Noisy means of the outputs in the bins that hold rows, shape (m,); not clipped."""
        means: Array = self.centre + self.sums / self.counts
        return means

    @overload
    def predict(self, X: ArrayLike, *, clip: bool = ...) -> Array: ...

    @overload
    def predict(
        self, X: ArrayLike, *, return_std: Literal[True], clip: bool = ...
    ) -> tuple[Array, Array]: ...

    def predict(
        self, X: ArrayLike, *, return_std: bool = False, clip: bool = True
    ) -> Array | tuple[Array, Array]:
        """Return the noisy mean of the bin in which, or nearest to which, each point lies.

        Parameters
        ----------
        X : array-like or table of shape (P, D)
            As for `cloakgp.Release.predict`: columns of a table are found by name.
        return_std : bool
            Also return the sd of the privacy noise on the mean of the values in a bin, before
            clipping; how far people within a bin differ from it is not in it: a histogram has no
            model of that.
        clip : bool
            Bring means inside the bounds, where the true ones are.

        Returns
        -------
        mean : array of shape (P,)
            In a bin without rows, the middle of the bounds.
        std : array of shape (P,)
            In a bin without rows, that of a mean that is anywhere within the bounds, d/√12.
        """
        points = as_inputs(X, input_names=self.input_names, n_inputs=self.n_inputs)
        cells = self.bins.cells(points)
        at = np.minimum(np.searchsorted(self.cells, cells), len(self.cells) - 1)
        known = self.cells[at] == cells
        means = np.where(known, self.means[at], self.centre)
        if clip:
            means = np.clip(means, *self.bounds)
        if not return_std:
            return means
        width = self.bounds[1] - self.bounds[0]
        return means, np.where(known, self.noise_sd / self.counts[at], width / math.sqrt(12))

    def validate(self) -> None:
        """Refuse arrays that do not fit each other, and less noise than the guarantee states.

        Raises
        ------
        ValueError
            If there are such.
        """
        counts, places, shape = self.counts, self.places, self.counts.shape
        if len(shape) != 1 or self.sums.shape != shape or places.shape != (*shape, self.n_inputs):
            raise ValueError("its arrays do not fit each other")
        if not (
            len(counts) > 0
            and (counts >= 1).all()
            and ((places >= 0) & (places < self.bins.shape)).all()
            and (np.diff(self.cells) > 0).all()
        ):
            raise ValueError("its arrays hold what no histogram has")
        width = OutputBounds.checked(self.bounds).width
        guarantee, noise_sd = self.guarantee, self.noise_sd
        # Written so that NaN fails every one of them.
        if self.noise not in NOISES or not 0 < noise_sd < math.inf:
            raise ValueError("its noise is damaged")
        if not NOISES[self.noise].keeps(guarantee, sensitivity_over_noise=width / noise_sd):
            raise ValueError("its noise is less than its guarantee needs")
        if guarantee.answers != len(counts):
            raise ValueError("its guarantee is damaged")
        guarantee.check_holds()

    def __repr__(self) -> str:
        return short_form(
            f"NoisyHistogram of {len(self.cells)} bins, {self.guarantee}", insecure=self.insecure
        )


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
            lowest = X.min(axis=0)
            highest = np.where(find_varying(X), X.max(axis=0), lowest)
            ranges = list(zip(lowest, highest, strict=True))
        elif len(ranges) != dimensions or any(len(pair) != 2 for pair in ranges):
            raise ValueError(f"ranges must be {dimensions} pairs, one for each input column")
        elif not all(np.isfinite(pair).all() and pair[0] < pair[1] for pair in ranges):
            raise ValueError("ranges must be finite, the lower end below the upper")
        made = cls(
            edges=tuple(
                _edges(spec, lo=float(lo), hi=float(hi))
                for spec, (lo, hi) in zip(bins, ranges, strict=True)
            )
        )
        made.validate()
        return made

    def validate(self) -> None:
        """Refuse edges that do not ascend, and more bins than can be numbered.

        Raises
        ------
        ValueError
            If there are such.
        """
        if not self.edges or not all(map(_ascend, self.edges)):
            raise ValueError("its edges do not ascend")
        if math.prod(self.shape) > MOST_BINS:
            raise ValueError(f"{' × '.join(map(str, self.shape))} bins are too many")

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
        return self.cells_at(np.column_stack(positions))

    def cells_at(self, places: Indices) -> Indices:
        """Return the numbers of bins from where they lie along each input, shape (n,).

        Parameters
        ----------
        places : array of shape (n, D)
        """
        return np.asarray(np.ravel_multi_index(tuple(places.T), self.shape), dtype=np.intp)

    def places(self, cells: Indices) -> Indices:
        """Return where bins lie along each input, shape (n, D).

        Parameters
        ----------
        cells : array of shape (n,)
        """
        return np.column_stack(np.unravel_index(cells, self.shape))

    def boxes(self, cells: Indices) -> Array:
        """Return the lower, then the upper corners of bins, shape (n, 2D)."""
        positions = self.places(cells).T
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


def _ascend(edges: Array) -> bool:
    """Return whether edges ascend; those of an input that never varies are two that are equal."""
    if edges.ndim != 1 or len(edges) < 2 or not np.isfinite(edges).all():
        return False
    return bool((np.diff(edges) > 0).all()) or (len(edges) == 2 and edges[0] == edges[1])
