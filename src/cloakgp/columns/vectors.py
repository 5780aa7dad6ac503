"""Vectors: numbers of one scale, which say something only together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from sklearn.decomposition import PCA

from cloakgp.columns.base import LONGEST_TEXT, Column, Field, Reading, declared_range, middle
from cloakgp.columns.cells import Cells
from cloakgp.columns.numbers import read_together
from cloakgp.utils.arrays import Array

# Of more numbers, the principal components of the public rows, so many.
MOST_COMPONENTS = 32
# Of each number of an axis: more would fill files, and change no prediction that anybody sees.
AXIS_DIGITS = 7
# Of numbers whose axes are exact; of more they are approximate, and as public.
MOST_EXACT = 1_000
# Of rows, evenly spaced ones, that axes are taken from.
ROWS_FOR_AXES = 20_000


@dataclass(frozen=True)
class Vector(Column):
    """Numbers in several columns of a table, of one scale: an embedding, pixels, a spectrum.

    They stand for one thing, so that they share a lengthscale, and what varies little among them
    counts little. Of more than 32, the principal components of the public rows stand for them.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns, w.
    encoder : str
        What made the numbers, where something did: the name of a public model and its version.
        Whoever predicts needs the same.
    centre : tuple of float
        The mean of each over the public rows; also what stands for missing ones.
    axes : tuple of tuples of float
        Principal axes, each of w numbers; none where the numbers stand for themselves.

    Examples
    --------
    >>> from cloakgp.columns.cells import cells_of
    >>> cells = [cells_of([1.0, 3.0]), cells_of([0.0, 4.0])]
    >>> pair = Vector("v", columns=("v1", "v2")).fill_from(cells, codes=frozenset())
    >>> pair.centre, pair.encode(cells, codes=frozenset()).X.tolist()
    ((2.0, 2.0), [[1.0, 0.0], [3.0, 4.0]])
    """

    columns: tuple[str, ...] = ()
    encoder: str = ""
    centre: tuple[float, ...] = ()
    axes: tuple[tuple[float, ...], ...] = ()

    kind: ClassVar[str] = "vector"
    field_type: ClassVar[str] = "array"
    part_of: ClassVar[str] = "vector"
    what: ClassVar[str] = "vectors"

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns of its numbers."""
        return self.columns

    @property
    def own_blocks(self) -> tuple[tuple[str, ...], ...]:
        """Its numbers, or its components, all of one scale."""
        count = len(self.axes) or min(len(self.columns), MOST_COMPONENTS)
        return (tuple(f"{self.name}: {place}" for place in range(1, count + 1)),)

    @property
    def filling(self) -> tuple[float, ...]:
        """The centre."""
        return self.centre

    @property
    def complete(self) -> bool:
        """Whether its centre is known, and its axes if it needs some."""
        reduced = len(self.columns) <= MOST_COMPONENTS or bool(self.axes)
        return len(self.centre) == len(self.columns) and reduced

    def read(self, cells: Sequence[Cells], *, codes: frozenset[str]) -> Reading:
        """Read all numbers; where one is missing, all are."""
        values, missing, strange = read_together(self.columns, cells, codes=codes)
        faults = {"is not a vector of finite numbers": strange & ~missing}
        return Reading(values=values, missing=missing, faults=faults)

    def expand(self, values: Array) -> Array:
        """Return the numbers, or their components along the axes."""
        if not self.axes:
            return values
        return np.asarray((values - np.array(self.centre)) @ np.array(self.axes).T)

    def take_declared(self) -> Self:
        """Refuse it without a range of its numbers, or with too many of these and no axes."""
        if len(self.ranges) != 1:
            raise self._needs_ranges("a range of its numbers (range)")
        if len(self.columns) > MOST_COMPONENTS and not self.axes:
            raise self._needs_ranges(f"axes, as it has more than {MOST_COMPONENTS} numbers")
        if self.centre:
            return self
        return replace(self, centre=middle(self.ranges) * len(self.columns))

    @property
    def own_ranges(self) -> tuple[tuple[float, float], ...]:
        """The range of its numbers, or of their components."""
        if not self.axes:
            return self.ranges * len(self.columns)
        axes, centre = np.array(self.axes), np.array(self.centre)
        ends = np.array([end - centre for end in self.ranges[0]])
        products = axes[None] * ends[:, None]
        lo, hi = products.min(axis=0).sum(axis=1), products.max(axis=0).sum(axis=1)
        return tuple(zip(lo.tolist(), hi.tolist(), strict=True))

    def restore(self, X: Array) -> Array:
        """Return the numbers, shape (n, w), that stand behind encoded ones, shape (n, d).

        Parameters
        ----------
        X : array of shape (n, d)

        Returns
        -------
        array of shape (n, w)
            Where components stand for the numbers, what these say of them.
        """
        return np.array(self.centre) + X @ np.array(self.axes) if self.axes else X

    def fill_from(self, cells: Sequence[Cells], *, codes: frozenset[str]) -> Self:
        """Take the centre and, of many numbers, the axes along which public rows vary most."""
        values = self.read(cells, codes=codes).values
        known = values[np.isfinite(values).all(axis=1)]
        centre = known.mean(axis=0) if len(known) else np.zeros(len(self.columns))
        filled = replace(self, centre=tuple(centre.tolist()))
        if len(self.columns) <= MOST_COMPONENTS:
            return filled
        return replace(filled, axes=_principal_axes(known, width=len(self.columns)))

    def validate(self) -> None:
        """Refuse vectors whose parts do not fit each other."""
        super().validate()
        width = len(self.columns)
        if width < 2 or len(set(self.columns)) < width or not all(self.columns):
            raise ValueError(f"vector {self.name!r} needs at least two columns, each once")
        if len(self.encoder) > LONGEST_TEXT:
            raise ValueError(f"vector {self.name!r}: the name of its encoder is too long")
        sizes = {len(axis) for axis in self.axes} | ({len(self.centre)} if self.centre else set())
        if sizes - {width} or len(self.axes) > min(width, MOST_COMPONENTS):
            raise ValueError(f"vector {self.name!r}: its centre or its axes do not fit its columns")
        if not all(np.isfinite(axis).all() for axis in self.axes):
            raise ValueError(f"vector {self.name!r}: its axes are damaged")

    def to_field(self) -> Field:
        """Return columns, encoder, centre and axes."""
        return {
            "columns": list(self.columns),
            **({"encoder": self.encoder} if self.encoder else {}),
            "centre": list(self.centre),
            **({"range": list(self.ranges[0])} if self.ranges else {}),
            **({"axes": [list(axis) for axis in self.axes]} if self.axes else {}),
        }

    @classmethod
    def from_field(cls, field: Field, common: Field) -> Self:
        """Return the vector of a field."""
        return cls(
            **common,
            ranges=declared_range(*field.get("range", (None, None))),
            columns=tuple(map(str, field.get("columns", ()))),
            encoder=str(field.get("encoder", "")),
            centre=tuple(map(float, field.get("centre", ()))),
            axes=tuple(tuple(map(float, axis)) for axis in field.get("axes", ())),
        )

    def describe(self) -> str:
        """Return how many numbers it has, what made them, and what stands for them."""
        made = f" made by {self.encoder}" if self.encoder else ""
        reduced = f", as {len(self.axes)} principal components" if self.axes else ""
        return f"a vector of {len(self.columns)} numbers{made}{reduced}"


def _principal_axes(known: Array, *, width: int) -> tuple[tuple[float, ...], ...]:
    """Return the axes along which rows vary most, shape (K, w), or the numbers' own."""
    if len(known) < 2 or not np.ptp(known, axis=0).any():
        return tuple(map(tuple, np.eye(MOST_COMPONENTS, width).tolist()))
    rows = known[:: -(-len(known) // ROWS_FOR_AXES)]
    count = min(MOST_COMPONENTS, len(rows), width)
    # Exact where that takes a second; signs are those of the largest entries, wherever it is done.
    solver = "covariance_eigh" if width <= MOST_EXACT else "randomized"
    axes = PCA(count, svd_solver=solver, random_state=0).fit(rows).components_
    return tuple(tuple(float(f"{entry:.{AXIS_DIGITS}g}") for entry in axis) for axis in axes)
