"""Summary of a table: the number of rows, their ranges, and a sample."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cloakgp.models.defaults import find_varying, input_scales
from cloakgp.models.kernels.coregion import as_entries
from cloakgp.utils.arrays import Array
from cloakgp.utils.clusters import limit_threads
from cloakgp.utils.passes import Chunk, Passes

SAMPLE_ROWS = 50_000
# Consecutive multiples of an irrational number are spread evenly over the unit interval (Weyl
# 1916), so the rows of the smallest fractional parts are spread evenly over the table.
GOLDEN, SILVER = (5**0.5 - 1) / 2, 2**0.5 - 1
BATCH_ROWS = 4096
# An input is clustered about its middle where this lies so many of its units from zero.
FAR_FROM_ZERO = 1e3
# What the numbers of outputs are measured in: next to it all distances between rows are small.
OUTPUTS_APART = 1e-3


@dataclass(frozen=True, eq=False)
class Summary:
    """Public facts about the inputs of a table.

    Attributes
    ----------
    count : int
        N.
    lowest, highest : array of shape (D,)
        Of every input.
    sample : array of shape (n, D)
        Rows from all over the table, always the same ones.
    places : array of shape (n,)
        What they were chosen by: the least.
    size : int
        The most that are kept.
    """

    count: int
    lowest: Array
    highest: Array
    sample: Array
    places: Array
    size: int

    def merge(self, other: Summary) -> Summary:
        """Return a summary of the rows of both."""
        places = np.concatenate([self.places, other.places])
        kept = np.argsort(places, kind="stable")[: self.size]
        return Summary(
            count=self.count + other.count,
            lowest=np.minimum(self.lowest, other.lowest),
            highest=np.maximum(self.highest, other.highest),
            sample=np.vstack([self.sample, other.sample])[kept],
            places=places[kept],
            size=self.size,
        )

    @property
    def ranges(self) -> Array:
        """The corners of the box that holds all inputs, shape (2, D)."""
        return np.vstack([self.lowest, self.highest])

    @cached_property
    def units(self) -> Array:
        """The scale of every input, or 1 where it never varies, shape (D,).

        As in the default kernel. By its range, one extreme row would bring all others together.
        """
        return np.where(find_varying(self.sample), input_scales(self.sample), 1.0)

    def centres(self, count: int, *, random_state: int = 0) -> tuple[Array, Array]:
        """Return mini-batch k-means centres of the sample, and the number of rows of each.

        Distances are in scales of each input: near in age is not near in income.

        Parameters
        ----------
        count : int
            Centres wanted; fewer come back if fewer rows are distinct.
        random_state : int
            Of the algorithm. It concerns public inputs only.

        Returns
        -------
        centres : array of shape (n, D)
        sizes : array of shape (n,)
            Of the whole table, estimated from the sample.

        Raises
        ------
        ValueError
            If count is below one.
        """
        if count < 1:
            raise ValueError(f"the number of centres must be at least 1, got {count}")
        if (count, random_state) not in self._found:
            self._found[count, random_state] = self._clustered(count, random_state=random_state)
        return self._found[count, random_state]

    @cached_property
    def _found(self) -> dict[tuple[int, int], tuple[Array, Array]]:
        """Centres that were asked for before."""
        return {}

    @cached_property
    def _distinct(self) -> tuple[Array, Array]:
        """The distinct rows of the sample, and the count of each."""
        distinct, sizes = np.unique(self.sample, axis=0, return_counts=True)
        return distinct, sizes.astype(np.float64)

    def _clustered(self, count: int, *, random_state: int) -> tuple[Array, Array]:
        from sklearn.cluster import MiniBatchKMeans

        share = self.count / len(self.sample)
        distinct, sizes = self._distinct
        if len(distinct) <= count:
            return distinct, sizes * share
        clusters = MiniBatchKMeans(
            n_clusters=count, batch_size=BATCH_ROWS, n_init=1, random_state=random_state
        )
        # Squared distances are differences of squares there: far from zero nothing is left of them.
        middle = self.sample.mean(axis=0)
        middle[np.abs(middle) <= FAR_FROM_ZERO * self.units] = 0.0
        with limit_threads(1):
            labels = clusters.fit_predict((self.sample - middle) / self.units)
        sizes = np.bincount(labels, minlength=count).astype(np.float64)
        centres = np.asarray(middle + clusters.cluster_centers_ * self.units, dtype=np.float64)
        occupied = sizes > 0
        return centres[occupied], sizes[occupied] * share


@dataclass(frozen=True, eq=False)
class EntrySummary(Summary):
    """The summary of entries of several outputs per row; the last input numbers the output.

    Attributes
    ----------
    by_row : Summary
    outputs : int
        T.
    """

    by_row: Summary
    outputs: int

    @classmethod
    def of(cls, rows: Summary, *, count: int) -> EntrySummary:
        """Return the summary of the entries of rows.

        Parameters
        ----------
        rows : Summary
        count : int
            T.
        """
        kept = max(rows.size // count, 1)
        return cls(
            count=rows.count * count,
            lowest=np.append(rows.lowest, 0.0),
            highest=np.append(rows.highest, count - 1.0),
            sample=as_entries(rows.sample[:kept], count=count),
            places=np.repeat(rows.places[:kept], count),
            size=rows.size,
            by_row=rows,
            outputs=count,
        )

    @cached_property
    def units(self) -> Array:
        """The scale of every input; of the last so little that no cell holds two outputs."""
        return np.append(self.by_row.units, OUTPUTS_APART)

    def centres(self, count: int, *, random_state: int = 0) -> tuple[Array, Array]:
        """Return centres of rows for every output, limited in number, but at least one each."""
        rows = max(count // self.outputs, 1)
        centres, sizes = self.by_row.centres(rows, random_state=random_state)
        return as_entries(centres, count=self.outputs), np.repeat(sizes, self.outputs)


@dataclass(frozen=True, eq=False)
class ExposedSummary(Summary):
    """The summary of rows whose last input is the logarithm of their exposure.

    Attributes
    ----------
    by_row : Summary
        Of the other inputs.
    """

    by_row: Summary

    @classmethod
    def of(cls, exposed: Summary) -> ExposedSummary:
        """Return the summary of rows with exposures.

        Parameters
        ----------
        exposed : Summary
            As any other, in which exposures are an input.
        """
        rows = replace(
            exposed,
            lowest=exposed.lowest[:-1],
            highest=exposed.highest[:-1],
            sample=np.ascontiguousarray(exposed.sample[:, :-1]),
        )
        return cls(**vars(exposed), by_row=rows)

    @cached_property
    def units(self) -> Array:
        """The scale of every input; of exposures a factor of e, as far as rates are apart then."""
        return np.append(self.by_row.units, 1.0)


@dataclass(frozen=True)
class _Summing:
    size: int

    def __call__(self, chunk: Chunk) -> Summary:
        numbers = np.arange(1, len(chunk.X) + 1, dtype=np.float64)
        places: Array = (numbers * GOLDEN + chunk.number * SILVER) % 1.0
        kept = np.argsort(places, kind="stable")[: self.size]
        return Summary(
            count=len(chunk.X),
            lowest=chunk.X.min(axis=0),
            highest=chunk.X.max(axis=0),
            sample=chunk.X[kept],
            places=places[kept],
            size=self.size,
        )


def summarise(passes: Passes, *, size: int = SAMPLE_ROWS) -> Summary:
    """Go through a table once.

    Parameters
    ----------
    passes : Passes
    size : int
        The most rows to keep.
    """
    return passes.over_inputs(_Summing(size=size), what="looking at inputs")
