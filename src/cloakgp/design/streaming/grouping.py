r"""Rows of groups that are protected together: the same designs, for rows that weigh less.

Who owns n rows can move answers by n times what one row can, so a row j of theirs is asked
r_j = r̃_j/n with r̃_j as long as the column of a row on its own may be. To ask r̃_j/n of y_j is to ask
r̃_j of y_j/n, which a sparse model knows by the features v_j/n and the noise variance λ_j/n². So a
design for such rows is one for rows of these features and this noise. It is found as if all rows
of a group were asked alike in the worst direction; where they are not, a group moves answers less
than it is allowed to.

How many rows a group has is counted in one pass, for numbers of groups and not for groups
(`cloakgp.utils.passes.GROUP_NUMBERS`): where several groups share a number, their rows weigh less
than they could. That, too, decides how useful a release is and not how private: what a group's
columns add up to is measured where they are asked (`cloakgp.privacy.ask`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, Self

import numpy as np
from numpy.typing import NDArray

from cloakgp.design.streaming.row_model import RowModel
from cloakgp.design.streaming.rules import Rule
from cloakgp.design.streaming.sums import StrategySums, sums_of_rows
from cloakgp.design.streaming.together import lengths_of_rows
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import Ball
from cloakgp.utils.passes import GROUP_NUMBERS, Chunk, PartOf, Passes

NO_GROUPS = "the rows do not say whose they are: name their groups"


@dataclass(frozen=True, eq=False)
class _Counts:
    """The number of rows with each group number."""

    counts: NDArray[np.intp]

    @classmethod
    def of(cls, chunk: Chunk) -> _Counts:
        if chunk.groups is None:
            raise ValueError(NO_GROUPS)
        return cls(counts=np.bincount(chunk.groups, minlength=GROUP_NUMBERS))

    def merge(self, other: _Counts) -> _Counts:
        return _Counts(counts=self.counts + other.counts)


def weighed(chunk: Chunk, counts: NDArray[np.intp]) -> Chunk:
    """Return a chunk with one more column: the number of rows of each row's group.

    Parameters
    ----------
    chunk : Chunk
        With groups.
    counts : array of int, shape (GROUP_NUMBERS,)
    """
    if chunk.groups is None:
        raise ValueError(NO_GROUPS)
    # A group that was not there when rows were counted: the private pass will refuse it.
    sizes = np.maximum(counts[chunk.groups], 1).astype(np.float64)
    return replace(chunk, X=np.column_stack([chunk.X, sizes]))


def places_of(passes: Passes) -> int:
    """Return at how many custodians a person may have rows; 1 of a table that one has alone."""
    return int(getattr(passes, "places", 1))


@dataclass(frozen=True, eq=False)
class _OnWeighed(Generic[PartOf]):
    """Work on chunks that know how large groups are."""

    work: Callable[[Chunk], PartOf]
    counts: NDArray[np.intp]

    def __call__(self, chunk: Chunk) -> PartOf:
        return self.work(weighed(chunk, self.counts))


@dataclass(frozen=True, eq=False)
class GroupedPasses:
    """Passes over rows whose inputs have one more column, with the sizes of their groups.

    Attributes
    ----------
    passes : Passes
        Whose chunks have groups.
    counts : array of int, shape (GROUP_NUMBERS,)
        How many rows there are of each number.
    together : int
        T, how many entries next to each other are those of one row, and count as one.
    """

    passes: Passes
    counts: NDArray[np.intp]
    together: int = 1

    @property
    def places(self) -> int:
        """At how many custodians a person may have rows, under a number of their own at each."""
        return places_of(self.passes)

    @classmethod
    def of(cls, passes: Passes, *, together: int = 1) -> Self:
        """Go through a table once and count the rows of groups.

        Parameters
        ----------
        passes : Passes
        together : int

        Raises
        ------
        ValueError
            If the rows do not say whose they are.
        """
        found = passes.over_inputs(_Counts.of, what="counting the rows of groups")
        return cls(passes=passes, counts=found.counts // together, together=together)

    @property
    def n_inputs(self) -> int:
        """D, the number of public inputs, without the column of sizes."""
        return self.passes.n_inputs

    def over_inputs(self, work: Callable[[Chunk], PartOf], *, what: str) -> PartOf:
        """Do some work on every chunk, and merge the parts in the order of the table."""
        return self.passes.over_inputs(_OnWeighed(work, self.counts), what=what)


@dataclass(frozen=True, eq=False)
class GroupedModel:
    """A sparse model of outputs over the sizes of their groups, for inputs that end with these.

    Attributes
    ----------
    model : RowModel
        Of the outputs.
    """

    model: RowModel

    def features_and_noise(self, X: Array) -> tuple[Array, Array]:
        """Return V/n, shape (M, n), and λ/n², shape (n,)."""
        features, noise = self.model.features_and_noise(X[:, :-1])
        return features / X[:, -1], noise / np.square(X[:, -1])


def grouped_columns(X: Array, *, model: RowModel, rule: Rule) -> Array:
    """Return the columns of outputs under a rule of a `GroupedModel`, r̃/n, shape (k, n).

    Parameters
    ----------
    X : array of shape (n, D + 1)
        Inputs, and behind them the sizes of groups.
    model : RowModel
        Of the outputs.
    rule : Rule
        Over what the `GroupedModel` knows of rows.
    """
    columns: Array = rule.columns(*GroupedModel(model).features_and_noise(X)) / X[:, -1]
    return columns


def columns_at(
    X: Array, *, model: RowModel, rule: Rule, grouped: bool = False
) -> tuple[Array, Array]:
    """Return the columns of rows, shape (k, n), and their inputs without sizes of groups.

    Parameters
    ----------
    X : array of shape (n, D), or (n, D + 1)
    model : RowModel
        Of the outputs.
    rule : Rule
    grouped : bool
        Whether inputs end with the sizes of groups.
    """
    if grouped:
        return grouped_columns(X, model=model, rule=rule), X[:, :-1]
    return rule.columns(*model.features_and_noise(X)), X


@dataclass(frozen=True)
class Grouping:
    """Facts about groups of rows that are not kept.

    Attributes
    ----------
    groups : int
        How many there are at least.
    most_rows : int
        The most rows of one, at least.
    chunks : int
        In how many chunks the table was read.
    places : int
        At how many custodians a person may have rows. Everything else is of the rows of a person at
        one of them, who is counted once at each.
    """

    groups: int
    most_rows: int
    chunks: int
    places: int = 1

    def validate(self) -> None:
        """Refuse numbers that cannot be.

        Raises
        ------
        ValueError
            If they are not positive.
        """
        if min(self.groups, self.most_rows, self.chunks, self.places) < 1:
            raise ValueError("the groups of its rows are damaged")


@dataclass(frozen=True, eq=False)
class _Grouped:
    """Sums under several models, and the lengths of the columns of each number of groups."""

    sums: tuple[StrategySums, ...]
    lengths: Array
    counts: NDArray[np.intp]
    chunks: int

    def merge(self, other: _Grouped) -> _Grouped:
        return _Grouped(
            sums=tuple(one.merge(two) for one, two in zip(self.sums, other.sums, strict=True)),
            lengths=self.lengths + other.lengths,
            counts=self.counts + other.counts,
            chunks=self.chunks + other.chunks,
        )


@dataclass(frozen=True, eq=False)
class _Summing:
    """The sums of one chunk."""

    columns: Callable[[Array], Array]
    seen_by: tuple[RowModel, ...]
    together: int
    ball: Ball

    def __call__(self, chunk: Chunk) -> _Grouped:
        columns = self.columns(chunk.X)
        lengths = lengths_of_rows(columns, together=self.together, ball=self.ball)
        sums = tuple(
            sums_of_rows(columns, *model.features_and_noise(chunk.X[:, :-1]))
            for model in self.seen_by
        )
        assert chunk.groups is not None
        numbers = chunk.groups[:: self.together]
        summed = np.bincount(numbers, weights=lengths, minlength=GROUP_NUMBERS)
        return _Grouped(
            sums=sums,
            lengths=summed.astype(np.float64),
            counts=np.bincount(numbers, minlength=GROUP_NUMBERS),
            chunks=1,
        )


def sum_grouped(
    passes: GroupedPasses,
    models: Sequence[RowModel],
    *,
    model: RowModel,
    rule: Rule,
    ball: Ball = "l2",
    what: str = "summing questions",
) -> tuple[tuple[StrategySums, ...], Grouping]:
    """Sum the columns of the outputs of all rows, in one pass.

    Parameters
    ----------
    passes : GroupedPasses
    models : sequence of RowModel
        Of the outputs: whose features and noise variances the sums are of.
    model : RowModel
        Of the outputs: by which, over the sizes of groups, the rule goes.
    rule : Rule
    ball : {"l1", "l2"}
        In whose norm columns are measured.
    what : str
        Shown to whoever waits.

    Returns
    -------
    tuple of StrategySums
        One for each model. ``longest`` is the most that the lengths of one group's columns add up
        to, for what is protected together.
    Grouping
    """
    summing = _Summing(
        columns=partial(grouped_columns, model=model, rule=rule),
        seen_by=tuple(models),
        together=passes.together,
        ball=ball,
    )
    found = passes.over_inputs(summing, what=what)
    longest = float(found.lengths.max())
    grouping = Grouping(
        groups=int(np.count_nonzero(found.counts)),
        most_rows=int(found.counts.max()),
        chunks=found.chunks,
        places=passes.places,
    )
    return tuple(replace(one, longest=longest) for one in found.sums), grouping
