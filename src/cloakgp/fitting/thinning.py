"""Thinned table: a few places that stand for many rows, for a forecast at once.

Rows are split at medians, each time across the input in which they lie farthest apart, into cells
of equally many, and the row in the middle of a cell stands for it. It counts as the mean of the
cell's s outputs: their own noise is s times less in it, and a question that asks each of them alike
asks s times the mean, next to which the noise of an answer is s times less. Of persons with several
rows, some persons stand for all, with all of their rows or some of each.

Each output is clipped by itself, not the mean of several, and clipping loses a share of what is
asked: of a normal value, clipped to c predictive sds on either side, P(|z| < c) of its slope is
left. Next to the band a mean hardly varies, and would lose nothing. So its band is made wider by as
much, which adds the noise that the loss amounts to.

What this leaves out: how the rows of a cell differ, the scatter that clipping adds, and the doubt
about where bands lie that rows share. ``tests/fitting/test_thinning.py`` holds the errors that
come of it, over tables and budgets, within `WITHIN` of those of all rows. Of persons with many rows
designs differ by more than that: `WITHIN_OF_PERSONS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cloakgp.fitting.bands import Step
from cloakgp.fitting.expected import ExpectedTable
from cloakgp.fitting.strategies import Query, query_weights, scale_noise
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.defaults import find_varying, input_scales
from cloakgp.privacy.groups import Groups
from cloakgp.utils.arrays import Array

# How far the error of places may be from that of all rows, as a share of it.
WITHIN, WITHIN_OF_PERSONS = 0.2, 0.35
# So many places, and query points, make a forecast that comes at once.
PLACES, POINTS = 150, 100
# Designs for them need no closer certificate.
ROUGHLY = 0.1
# Persons who stand for all, at least.
LEAST_PERSONS = 50
# The width of a band is found by so many steps, of which each leaves a tenth of the error or less.
STEPS = 5


@dataclass(frozen=True, eq=False)
class ThinnedTable(ExpectedTable):
    """A table of places, each of which stands for the mean of some rows' outputs.

    Attributes
    ----------
    each : float
        For how many rows.
    """

    each: float = 1.0

    def _spread_of_one(
        self, variance: Array, *, prior: ExactPrior | SparsePrior, width: float
    ) -> Array:
        single = np.sqrt(variance + prior.noise_variance * (self.each - 1.0))
        reach = wanted = width * single / _inside(np.asarray(width))
        for _ in range(STEPS):
            reach = wanted * _inside(reach / np.sqrt(variance))
        return np.asarray(np.square(reach / width))


@dataclass(frozen=True, eq=False)
class Thinned:
    """What a forecast of a table of places is made of.

    Attributes
    ----------
    table : ThinnedTable
    prior : ExactPrior or SparsePrior
        With the noise of means.
    query : Query
    units : float
        For how many rows, each protected on its own, or persons a place stands, or a person.
    """

    table: ThinnedTable
    prior: ExactPrior | SparsePrior
    query: Query
    units: float

    @property
    def within(self) -> float:
        """How far off errors may be, as a share of those of all rows."""
        return WITHIN if self.table.groups is None else WITHIN_OF_PERSONS

    @classmethod
    def of(
        cls,
        X: Array,
        *,
        prior: ExactPrior | SparsePrior,
        query: Query,
        groups: Groups | None = None,
    ) -> Thinned | None:
        """Return places that stand for the rows of a table; None if rows are few.

        Parameters
        ----------
        X : array of shape (N, D)
            Public inputs.
        prior : ExactPrior or SparsePrior
        query : Query
        groups : array of shape (N,), optional
        """
        if len(X) <= PLACES:
            return None
        if groups is None:
            kept, _ = middle_rows(X, PLACES)
            units = len(X) / len(kept)
        else:
            kept, units = some_persons(X, groups)
        each = len(X) / len(kept)
        points, cells = middle_rows(query.X, POINTS)
        return cls(
            table=ThinnedTable(
                X=X[kept],
                groups=None if groups is None else np.unique(groups[kept], return_inverse=True)[1],
                each=each,
            ),
            prior=replace(prior, noise_variance=prior.noise_variance / each),
            query=Query(
                X=query.X[points],
                weights=np.asarray(
                    np.bincount(cells, weights=query_weights(query)), dtype=np.float64
                ),
            ),
            units=units,
        )

    def steps(self, steps: Sequence[Step]) -> list[Step]:
        """Return the steps of a schedule for places: with as much less noise."""
        return [replace(step, budget=scale_noise(step.budget, factor=self.units)) for step in steps]


def middle_rows(X: Array, count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows in the middle of cells of equally many rows, and the cell of each row.

    Parameters
    ----------
    X : array of shape (N, D)
        Public inputs.
    count : int
        Of cells; there are no more than rows.

    Returns
    -------
    middles : array of shape (n,)
        Numbers of rows, in the order of their cells.
    cells : array of shape (N,)

    Examples
    --------
    >>> middle_rows(np.array([[9.0], [1.0], [2.0], [8.0], [3.0], [7.0]]), 2)
    (array([2, 3]), array([1, 0, 0, 1, 0, 1]))
    """
    varies = find_varying(X)
    scaled = X[:, varies] / input_scales(X)[varies]
    cells = np.zeros(len(X), dtype=np.intp)
    middles: list[int] = []

    def split(rows: NDArray[np.intp], parts: int) -> None:
        places = scaled[rows]
        if parts == 1:
            far = np.square(places - np.median(places, axis=0)).sum(axis=1)
            cells[rows] = len(middles)
            middles.append(int(rows[far.argmin()]))
            return
        left = parts // 2
        at = len(rows) * left // parts
        if varies.any():
            rows = rows[places[:, np.ptp(places, axis=0).argmax()].argsort(kind="stable")]
        split(rows[:at], left)
        split(rows[at:], parts - left)

    split(np.arange(len(X)), min(count, len(X)))
    return np.array(middles), cells


def some_persons(X: Array, groups: Groups) -> tuple[NDArray[np.intp], float]:
    """Return rows of some persons, and for how many persons each of these stands.

    Parameters
    ----------
    X : array of shape (N, D)
        Public inputs.
    groups : array of shape (N,)
        Whose row each is.
    """
    sizes = np.bincount(groups)
    persons = min(len(sizes), max(PLACES * len(sizes) // len(X), LEAST_PERSONS))
    centres = np.column_stack([np.bincount(groups, weights=column) / sizes for column in X.T])
    chosen, _ = middle_rows(centres, persons)
    rows = np.flatnonzero(np.isin(groups, chosen))
    most = max(PLACES, persons)
    if len(rows) > most:
        # As many of each as keeps the share that a person has of all rows.
        share = most / len(rows)
        parts = [rows[groups[rows] == person] for person in chosen]
        rows = np.sort(
            np.concatenate(
                [part[middle_rows(X[part], max(round(share * len(part)), 1))[0]] for part in parts]
            )
        )
    return rows, len(sizes) / persons


def _inside(reach: Array) -> Array:
    """Return P(|z| < c) of a normal z."""
    return np.asarray(special.erf(reach / np.sqrt(2.0)))
