r"""Axes of private columns: lines, circles and levels, each with functions orthonormal over rows.

What a column says lies on one axis or several: a number on a line, a season round a circle, a
category on one of some levels. Given published shares of the rows in bins of an axis, it has
functions ψ_1 … ψ_K of mean 0 and variance 1 over rows with these shares, without correlation:

* a line: t ∈ [0, 1], the share of rows below, which rises evenly within a bin; √2 cos(π k t);
* a circle: t likewise, from one point round to it again; √2 cos(2π k t) and √2 sin(2π k t);
* L levels with shares p, the commonest first, and P_k = p_1 + … + p_k: what tells level k + 1 from
  all commoner ones,

      ψ_k = −√(p_{k+1}/(P_k P_{k+1})) on levels 1 … k,   √(P_k/(p_{k+1} P_{k+1})) on level k + 1.

Each function has a prior variance as its weight. On lines and circles these fall with frequency as
those of a Matérn process and add up to 1. On levels they are those of equal and independent effects
of all levels, whose variance over rows is 1 where levels are equally frequent; correlations that
uneven shares put between ψ_k are left out.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cloakgp.models.features import InputBox
from cloakgp.models.simplex import least_probability, nearest_probabilities
from cloakgp.utils.arrays import Array

FREQUENCIES, LENGTHSCALE = 6, 0.3
# Prior sd of (p − q)/(p + q) for the shares p and q of two halves of a range: a uniform law's.
HALVES_SD = 1 / math.sqrt(3)
# Halves are not thought to hold less than a hundredth of both.
MOST_UNEVEN = 0.98

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Axis(ABC):
    """What some numbers of a row say, and the functions of it: public.

    Attributes
    ----------
    kind : str
        Its name in files.
    """

    kind: ClassVar[str]

    @property
    @abstractmethod
    def columns(self) -> tuple[int, ...]:
        """Places of these numbers among the inputs, from 0."""

    @abstractmethod
    def bins(self, wanted: int) -> int:
        """Return how many bins there are, if so many are wanted."""

    @abstractmethod
    def bin_of(self, X: Array, *, box: InputBox, bins: int) -> Integers:
        """Return the bin of each row, from 0, by that row alone, shape (N,).

        Parameters
        ----------
        X : array of shape (N, D)
        box : InputBox
        bins : int
        """

    @abstractmethod
    def estimate(self, counts: Array, *, noise_sd: float, rows: float) -> Array:
        """Return shares of the rows in bins, given noisy counts.

        Parameters
        ----------
        counts : array of shape (bins,)
        noise_sd : float
            Of each.
        rows : float
            How many rows there are, or are thought to be.
        """

    @abstractmethod
    def table(self, shares: Array) -> Array:
        """Return what functions are computed from, a row for each bin.

        Of lines and circles the share of rows below a bin, and in it; of levels ψ on each.

        Parameters
        ----------
        shares : array of shape (bins,)
        """

    @abstractmethod
    def functions(self, X: Array, *, box: InputBox, table: Array) -> Array:
        """Return ψ at inputs, shape (N, K).

        Parameters
        ----------
        X : array of shape (N, D)
        box : InputBox
        table : array of shape (bins, ...)
            That of the shares.
        """

    @abstractmethod
    def variances(self, shares: Array) -> Array:
        """Return prior variances of the weights of ψ, shape (K,)."""

    @abstractmethod
    def point_at(self, shares: Array, *, box: InputBox) -> Array:
        """Return points at shares of the way along the axis, shape (n, its columns).

        Parameters
        ----------
        shares : array of shape (n,)
            At least 0 and below 1.
        box : InputBox
        """

    @abstractmethod
    def called(self, names: Sequence[str]) -> str:
        """Return what it is called, given the names of all inputs."""

    @abstractmethod
    def typical(self, shares: Array, *, box: InputBox) -> tuple[float, ...]:
        """Return typical numbers: at the median of a line, or where most rows are."""


@dataclass(frozen=True)
class Line(Axis):
    """A number within a range.

    Attributes
    ----------
    column : int
        Its place among the inputs.

    Examples
    --------
    >>> Line(0).bin_of(np.array([[1.0], [3.9], [99.0]]), box=InputBox((0.0,), (4.0,)), bins=2)
    array([0, 1, 1])
    """

    column: int

    kind: ClassVar[str] = "line"

    @property
    def columns(self) -> tuple[int, ...]:
        """Its one place."""
        return (self.column,)

    def bins(self, wanted: int) -> int:
        """Return as many as are wanted."""
        return wanted

    def bin_of(self, X: Array, *, box: InputBox, bins: int) -> Integers:
        """Return which of equal bins each number lies in."""
        return _bin(self._shares_of_range(X, box=box), bins)

    def estimate(self, counts: Array, *, noise_sd: float, rows: float) -> Array:
        """Return shares by halves of the range."""
        return estimate_shares(counts, noise_sd=noise_sd, rows=rows)

    def table(self, shares: Array) -> Array:
        """Return shares of rows below bins, and in them."""
        return _below_and_in(shares)

    def below(self, X: Array, *, box: InputBox, table: Array) -> Array:
        """Return t, the share of rows below each number, shape (N,)."""
        below: Array = Lines.of([self], box=box, tables=[table]).below(X)[:, 0]
        return below

    def functions(self, X: Array, *, box: InputBox, table: Array) -> Array:
        """Return cosines of t."""
        return Lines.of([self], box=box, tables=[table]).functions(X)

    def variances(self, shares: Array) -> Array:
        """Return variances that fall with frequency."""
        del shares
        return _falling(np.arange(1, FREQUENCIES + 1))

    def point_at(self, shares: Array, *, box: InputBox) -> Array:
        """Return numbers in its range."""
        lo, hi = box.lo[self.column], box.hi[self.column]
        return np.asarray(lo + (hi - lo) * shares)[:, None]

    def called(self, names: Sequence[str]) -> str:
        """Return the name of its number."""
        return names[self.column]

    def typical(self, shares: Array, *, box: InputBox) -> tuple[float, ...]:
        """Return the median."""
        lo, hi = box.lo[self.column], box.hi[self.column]
        edges = np.linspace(lo, hi, len(shares) + 1)
        return (float(np.interp(0.5, np.cumsum([0.0, *shares]), edges)),)

    def _shares_of_range(self, X: Array, *, box: InputBox) -> Array:
        lo, hi = box.lo[self.column], box.hi[self.column]
        inside: Array = (np.clip(X[:, self.column], lo, hi) - lo) / (hi - lo)
        return inside


@dataclass(frozen=True, eq=False)
class Lines:
    """Several lines of as many bins each, whose functions are computed at once.

    Attributes
    ----------
    columns : array of int, shape (d,)
    lo, hi : arrays of shape (d,)
        Their ranges.
    tables : array of shape (d, bins, 2)
    """

    columns: Integers
    lo: Array
    hi: Array
    tables: Array

    @classmethod
    def of(cls, axes: Sequence[Line], *, box: InputBox, tables: Sequence[Array]) -> Self:
        """Return lines, given their tables.

        Parameters
        ----------
        axes : sequence of Line
        box : InputBox
        tables : sequence of array of shape (bins, 2)
        """
        columns = np.array([axis.column for axis in axes], dtype=np.int64)
        lo, hi = (np.array(ends)[columns] for ends in (box.lo, box.hi))
        return cls(columns=columns, lo=lo, hi=hi, tables=np.array(tables))

    def below(self, X: Array) -> Array:
        """Return t, the shares of rows below each number, shape (N, d)."""
        bins = self.tables.shape[1]
        inside = np.minimum(np.maximum(X[:, self.columns], self.lo), self.hi)
        places = (inside - self.lo) / (self.hi - self.lo) * bins
        at = np.minimum(places.astype(np.intp), bins - 1)
        each = np.arange(len(self.columns))
        spread: Array = self.tables[each, at, 0] + (places - at) * self.tables[each, at, 1]
        return spread

    def functions(self, X: Array) -> Array:
        """Return cosines of t, those of each line together, shape (N, 6 d)."""
        angles = np.pi * self.below(X)[:, :, None] * np.arange(1, FREQUENCIES + 1)
        waves: Array = np.cos(angles) * math.sqrt(2.0)
        return waves.reshape(len(X), -1)


@dataclass(frozen=True)
class Circle(Axis):
    """An angle, by its cosine and its sine.

    Attributes
    ----------
    cosine, sine : int
        Their places among the inputs.

    Examples
    --------
    >>> box = InputBox((-1.0, -1.0), (1.0, 1.0))
    >>> Circle(0, 1).bin_of(np.array([[1.0, 0.1], [-1.0, 0.1]]), box=box, bins=8)
    array([0, 3])
    """

    cosine: int
    sine: int

    kind: ClassVar[str] = "circle"

    @property
    def columns(self) -> tuple[int, ...]:
        """Those of cosine and sine."""
        return (self.cosine, self.sine)

    def bins(self, wanted: int) -> int:
        """Return as many as are wanted."""
        return wanted

    def bin_of(self, X: Array, *, box: InputBox, bins: int) -> Integers:
        """Return which of equal arcs each angle lies in."""
        del box
        return _bin(self._shares_of_turn(X), bins)

    def estimate(self, counts: Array, *, noise_sd: float, rows: float) -> Array:
        """Return shares by halves of the circle."""
        return estimate_shares(counts, noise_sd=noise_sd, rows=rows)

    def table(self, shares: Array) -> Array:
        """Return shares of rows below arcs, and in them."""
        return _below_and_in(shares)

    def functions(self, X: Array, *, box: InputBox, table: Array) -> Array:
        """Return cosines and sines of t, in turns."""
        del box
        t = _below(self._shares_of_turn(X), table)
        angles = 2 * np.pi * t[:, None] * np.arange(1, FREQUENCIES // 2 + 1)
        waves = np.stack([np.cos(angles), np.sin(angles)], axis=2) * math.sqrt(2.0)
        return waves.reshape(len(X), FREQUENCIES)

    def variances(self, shares: Array) -> Array:
        """Return variances that fall with frequency: of a cosine and its sine the same."""
        del shares
        return _falling(np.repeat(2 * np.arange(1, FREQUENCIES // 2 + 1), 2))

    def point_at(self, shares: Array, *, box: InputBox) -> Array:
        """Return cosines and sines of angles."""
        del box
        return np.column_stack([np.cos(2 * np.pi * shares), np.sin(2 * np.pi * shares)])

    def called(self, names: Sequence[str]) -> str:
        """Return the name that its cosine has without that word."""
        return names[self.cosine].removesuffix(" cos")

    def typical(self, shares: Array, *, box: InputBox) -> tuple[float, ...]:
        """Return the middle of the commonest arc."""
        del box
        angle = 2 * math.pi * (float(np.argmax(shares)) + 0.5) / len(shares)
        return (math.cos(angle), math.sin(angle))

    def _shares_of_turn(self, X: Array) -> Array:
        # By the standard library, one by one: in an array, last digits could depend on the place.
        turns = [math.atan2(y, x) / (2 * math.pi) for x, y in X[:, list(self.columns)].tolist()]
        return np.array([turn % 1.0 for turn in turns])


@dataclass(frozen=True)
class Levels(Axis):
    """One of some levels, by a number for each that is largest where it is; or by one, 0 or more.

    Attributes
    ----------
    places : tuple of int
        Of the numbers of the levels among the inputs; of a single one, two levels.

    Examples
    --------
    >>> box = InputBox((0.0, 0.0), (1.0, 1.0))
    >>> Levels((0, 1)).bin_of(np.array([[1.0, 0.0], [0.0, 1.0]]), box=box, bins=2)
    array([0, 1])
    """

    places: tuple[int, ...]

    kind: ClassVar[str] = "levels"

    @property
    def columns(self) -> tuple[int, ...]:
        """The places."""
        return self.places

    def bins(self, wanted: int) -> int:
        """Return how many levels there are."""
        del wanted
        return max(len(self.places), 2)

    def bin_of(self, X: Array, *, box: InputBox, bins: int) -> Integers:
        """Return the level of each row."""
        del box, bins
        if len(self.places) == 1:
            above: Integers = (X[:, self.places[0]] > 0.5).astype(np.int64)
            return above
        found: Integers = np.argmax(X[:, list(self.places)], axis=1).astype(np.int64)
        return found

    def estimate(self, counts: Array, *, noise_sd: float, rows: float) -> Array:
        """Return shares of levels, which have no order."""
        return estimate_class_shares(counts, noise_sd=noise_sd, rows=rows)

    def table(self, shares: Array) -> Array:
        """Return ψ on every level, shape (L, L − 1)."""
        order = np.argsort(-shares, kind="stable")
        p, whole = shares[order], np.cumsum(shares[order])
        functions = np.zeros((len(p), len(p) - 1))
        for k in range(len(p) - 1):
            functions[: k + 1, k] = -math.sqrt(p[k + 1] / (whole[k] * whole[k + 1]))
            functions[k + 1, k] = math.sqrt(whole[k] / (p[k + 1] * whole[k + 1]))
        unsorted = np.empty_like(functions)
        unsorted[order] = functions
        return unsorted

    def functions(self, X: Array, *, box: InputBox, table: Array) -> Array:
        """Return ψ on the level of each row."""
        found: Array = table[self.bin_of(X, box=box, bins=len(table))]
        return found

    def variances(self, shares: Array) -> Array:
        """Return those of equal and independent effects of levels."""
        count = len(shares)
        weighted = np.square(shares[:, None] * self.table(shares)).sum(axis=0)
        found: Array = weighted * (count / (count - 1))
        return found

    def point_at(self, shares: Array, *, box: InputBox) -> Array:
        """Return levels, in their order."""
        return self._points((shares * self.bins(1)).astype(np.int64), box=box)

    def called(self, names: Sequence[str]) -> str:
        """Return the name of its column."""
        first = names[self.places[0]]
        return first if len(self.places) == 1 else first.rpartition(": ")[0] or first

    def typical(self, shares: Array, *, box: InputBox) -> tuple[float, ...]:
        """Return the commonest level."""
        return tuple(self._points(np.array([np.argmax(shares)]), box=box)[0].tolist())

    def _points(self, levels: Integers, *, box: InputBox) -> Array:
        if len(self.places) == 1:
            return levels[:, None].astype(np.float64)
        corners: Array = np.eye(len(self.places))[levels] * np.array(box.hi)[list(self.places)]
        return corners


def lines(count: int) -> tuple[Line, ...]:
    """Return the axes of so many numbers, each on a line of its own.

    Examples
    --------
    >>> lines(2)
    (Line(column=0), Line(column=1))
    """
    return tuple(Line(column) for column in range(count))


def even_shares(axes: Sequence[Axis]) -> tuple[Array, ...]:
    """Return the shares of rows that are spread evenly, in as few bins as say so.

    Examples
    --------
    >>> [shares.tolist() for shares in even_shares([Line(0), Levels((1, 2))])]
    [[1.0], [0.5, 0.5]]
    """
    counts = [axis.bins(1) for axis in axes]
    return tuple(np.full(count, 1.0 / count) for count in counts)


def estimate_shares(counts: Array, *, noise_sd: float, rows: float) -> Array:
    """Return shares of the rows in bins, given noisy counts, shape (bins,).

    The posterior mean of a Pólya tree, from the whole range down: how a node's rows divide among
    its halves is thought uniform beforehand, and the difference of the halves' counts, with the
    noise of all bins in them, moves it as far as that noise allows. So what is finer than noise
    lets see stays even.

    Parameters
    ----------
    counts : array of shape (bins,)
        Published; a power of two of them.
    noise_sd : float
        Of each.
    rows : float
        How many rows there are, or are thought to be.

    Examples
    --------
    >>> estimate_shares(np.array([60.0, 20.0, 10.0, 10.0]), noise_sd=1e-6, rows=100.0).round(2)
    array([0.6, 0.2, 0.1, 0.1])
    >>> estimate_shares(np.array([60.0, 20.0, 10.0, 10.0]), noise_sd=1e6, rows=100.0).round(2)
    array([0.25, 0.25, 0.25, 0.25])
    """
    masses = np.array([float(rows)])
    while len(masses) < len(counts):
        halves = counts.reshape(2 * len(masses), -1).sum(axis=1).reshape(-1, 2)
        noise = 2 * noise_sd**2 * len(counts) / (2 * len(masses))
        prior = np.square(HALVES_SD * masses)
        moved = prior / (prior + noise) * (halves[:, 0] - halves[:, 1])
        moved = np.clip(moved, -MOST_UNEVEN * masses, MOST_UNEVEN * masses)
        masses = np.column_stack([masses + moved, masses - moved]).ravel() / 2
    shares: Array = masses / masses.sum()
    return shares


def estimate_class_shares(counts: Array, *, noise_sd: float, rows: float) -> Array:
    """Return shares of the rows in classes, given noisy counts, shape (C,).

    Shares are thought uniform over all that add up to 1 beforehand, which is a Dirichlet law; given
    counts, the mean is that of a normal law with its mean and variances.

    Parameters
    ----------
    counts : array of shape (C,)
        Published.
    noise_sd : float
        Of each.
    rows : float
        How many rows there are, or are thought to be.

    Examples
    --------
    >>> estimate_class_shares(np.array([60.0, 30.0, 10.0]), noise_sd=1e-6, rows=100.0).round(2)
    array([0.6, 0.3, 0.1])
    >>> estimate_class_shares(np.array([60.0, 30.0, 10.0]), noise_sd=1e6, rows=100.0).round(2)
    array([0.33, 0.33, 0.33])
    """
    count = len(counts)
    prior = rows**2 / (count * (count + 1))
    trust = prior / (prior + noise_sd**2)
    moved = 1.0 / count + trust * (counts - counts.mean()) / rows
    nearest: Array = nearest_probabilities(moved[None], least=least_probability(count))[0]
    return nearest


def _bin(shares: Array, bins: int) -> Integers:
    inside: Integers = np.clip((shares * bins).astype(np.int64), 0, bins - 1)
    return inside


def _below_and_in(shares: Array) -> Array:
    return np.column_stack([np.cumsum(shares) - shares, shares])


def _below(places: Array, table: Array) -> Array:
    """Return the share of rows below places in [0, 1], which rises evenly within a bin."""
    bins = len(table)
    within, at = places * bins, _bin(places, bins)
    below: Array = table[at, 0] + (within - at) * table[at, 1]
    return below


def _falling(frequencies: NDArray[Any]) -> Array:
    falling = (1.0 + (np.pi * LENGTHSCALE * frequencies) ** 2) ** -2.0
    normalised: Array = falling / falling.sum()
    return normalised
