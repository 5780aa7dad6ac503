"""Values that most outputs have in common, by noisy counts: nothing, or 0 and 1.

Counts in intervals, of a few rounds, tell together how many outputs lie below every place where one
of these ends. The first round counts the ends of the bounds and zero apart, to the last digits
(`cloakgp.fitting.interval`).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import linalg

from cloakgp.privacy import Answers, OutputBounds
from cloakgp.privacy.questions.base import Question
from cloakgp.privacy.questions.counts import CountQuestion
from cloakgp.privacy.questions.margins import MarginQuestion
from cloakgp.release.gathered_strategy import GatheredStrategy
from cloakgp.release.measurement import Measurement
from cloakgp.release.strategy import DenseStrategy, Strategy
from cloakgp.release.streamed_strategy import StreamedStrategy
from cloakgp.utils.arrays import Array

# Where more outputs than this share have a value, that says nothing of where others are. For bands
# to go, that they are so many is not refuted by an sd of noise, and that nobody is by three.
MOST_ALIKE, MAYBE, SURELY = 0.5, 1.0, 3.0
# Outputs that are so many halvings of the bounds away from a value, or nearer, have it.
HALVINGS_ALIKE = 44


class Counted(Protocol):
    """A question that was asked, and its answers."""

    @property
    def question(self) -> Question:
        """The question."""

    @property
    def answers(self) -> Answers:
        """Its noisy answers."""


def estimate_below(
    asked: Sequence[tuple[Array, Answers]], places: Array, *, rows: float
) -> tuple[Array, Array]:
    """Return the numbers of outputs below every place, by least squares, and their covariance.

    Every count is a difference of two such numbers. None lies below the first place, and all below
    the last: these are known.

    Parameters
    ----------
    asked : sequence of pairs of array and Answers
        Where the intervals of each round end, and their noisy counts.
    places : array of shape (n,)
        All of these ends, in order.
    rows : float
        N.
    """
    count = len(places)
    precision, moment = np.zeros((count, count)), np.zeros(count)
    for edges, answers in asked:
        positions = np.searchsorted(places, edges)
        differences = np.zeros((len(edges) - 1, count))
        each = np.arange(len(edges) - 1)
        differences[each, positions[1:]], differences[each, positions[:-1]] = 1.0, -1.0
        precision += differences.T @ differences / answers.noise_sd**2
        moment += differences.T @ answers.values[0] / answers.noise_sd**2
    below, covariance = np.zeros(count), np.zeros((count, count))
    below[-1] = rows
    inner = slice(1, count - 1)
    if count > 2:
        factor = linalg.cho_factor(precision[inner, inner])
        below[inner] = linalg.cho_solve(factor, moment[inner] - precision[inner, -1] * rows)
        covariance[inner, inner] = linalg.cho_solve(factor, np.eye(count - 2))
    return below, covariance


def rounds_of(asked: Iterable[Counted]) -> list[tuple[Array, Answers]]:
    """Return where the intervals of each round end, in output units, and their noisy counts.

    Parameters
    ----------
    asked : iterable of Counted
        Of one output; others than rounds of counts are passed over.
    """
    return [
        (one.question.edges, one.answers)
        for one in asked
        if isinstance(one.question, CountQuestion)
    ]


def mostly_alike(asked: Sequence[tuple[Array, Answers]], *, rows: float) -> bool:
    """Return whether, as far as counts tell, more than half of the outputs are at single values.

    Such as nothing, or 0 and 1. Of a curve between values outputs are near one of them wherever
    that is frequent: how far they mostly lie from a prediction says little of how far the others
    do, and a band around it would hide these.

    Parameters
    ----------
    asked : sequence of pairs of array and Answers
        Where the intervals of each round end, in output units, and their noisy counts.
    rows : float
        N.

    Examples
    --------
    >>> edges = np.array([0.0, 2.0**-44, 0.5, 1 - 2.0**-44, 1.0])
    >>> for counts in ([50.0, 5.0, -4.0, 47.0], [20.0, 33.0, 35.0, 14.0]):
    ...     answers = Answers(np.array([counts]), noise_sd=5.0, guarantee=None)
    ...     print(mostly_alike([(edges, answers)], rows=100))
    True
    False
    """
    return estimate_single_values(asked, rows=rows).may_be_most


@dataclass(frozen=True, eq=False)
class SingleValues:
    """Values that outputs may have in common, and how many have them by noisy counts.

    Attributes
    ----------
    values : array of shape (k,)
        In output units, in order.
    shares : array of shape (k,)
        Of all outputs, estimated.
    covariance : array of shape (k, k)
        Of these.
    """

    values: Array
    shares: Array
    covariance: Array

    @property
    def may_be_most(self) -> bool:
        """Whether more than half of the outputs may have one of them, and surely anybody has."""
        share, variance = float(self.shares.sum()), float(self.covariance.sum())
        noise_sd = math.sqrt(max(variance, 0.0))
        return share > max(MOST_ALIKE - MAYBE * noise_sd, SURELY * noise_sd)


def estimate_single_values(asked: Sequence[tuple[Array, Answers]], *, rows: float) -> SingleValues:
    """Return the values that were counted apart.

    Parameters
    ----------
    asked, rows
        As for `mostly_alike`.
    """
    if not asked:
        return SingleValues(np.zeros(0), np.zeros(0), np.zeros((0, 0)))
    places = np.unique(np.concatenate([edges for edges, _ in asked]))
    bounds = OutputBounds(float(places[0]), float(places[-1]))
    below, covariance = estimate_below(asked, places, rows=rows)
    # Ends in output units are rounded.
    cells = np.flatnonzero(np.diff(places) <= 2.5 * near_enough(bounds))
    differences = np.zeros((len(cells), len(places)))
    each = np.arange(len(cells))
    differences[each, cells + 1], differences[each, cells] = 1.0, -1.0
    values = np.where(cells == 0, bounds.lo, 0.0)
    values[cells == len(places) - 2] = bounds.hi
    return SingleValues(
        values=values,
        shares=differences @ below / rows,
        covariance=differences @ covariance @ differences.T / rows**2,
    )


def near_enough(bounds: OutputBounds) -> float:
    """Return how far from a value outputs may be that have it, in output units.

    Parameters
    ----------
    bounds : OutputBounds
        Declared.

    Examples
    --------
    >>> near_enough(OutputBounds(0.0, 1.0)) < 1e-13
    True
    """
    smallest = float(np.spacing(max(abs(bounds.lo), abs(bounds.hi))))
    return max(math.ldexp(bounds.width, -HALVINGS_ALIKE), smallest)


def found_alike(measurements: Sequence[Measurement]) -> bool:
    """Return whether counts found most outputs of a table at single values.

    A first fit whose own counts say so has no bands, unless it was given stages. Later visits count
    nothing: they go by what was counted first, of any of the tables.

    Parameters
    ----------
    measurements : sequence of Measurement
        Of numbers, or of the entries of several outputs.
    """
    return any(
        mostly_alike(rounds_of(each), rows=float(each[0].strategy.totals[0]))
        for each in _counted_apart(measurements).values()
    )


def asked_tables(measurements: Sequence[Measurement]) -> set[int]:
    """Return the numbers of tables, but for rows that were kept out to tell margins.

    Parameters
    ----------
    measurements : sequence of Measurement
    """
    return {
        one.strategy.table for one in measurements if not isinstance(one.question, MarginQuestion)
    }


def counts_of_one_output(measurements: Sequence[Measurement]) -> Sequence[Measurement]:
    """Return the rounds of counts of the one output of the one table that was counted.

    None if nothing was counted, or more than one output or table.

    Parameters
    ----------
    measurements : sequence of Measurement
    """
    apart = list(_counted_apart(measurements).values())
    return apart[0] if len(apart) == 1 else ()


def _counted_apart(
    measurements: Sequence[Measurement],
) -> dict[tuple[int, Hashable], list[Measurement]]:
    """Return counts of each output of each table: each of several is counted apart."""
    apart: dict[tuple[int, Hashable], list[Measurement]] = {}
    for one in measurements:
        if isinstance(one.question, CountQuestion):
            apart.setdefault((one.strategy.table, _counted_entries(one.strategy)), []).append(one)
    return apart


def _counted_entries(strategy: Strategy) -> Hashable:
    """Return what tells counts of one output from those of others."""
    if isinstance(strategy, StreamedStrategy):
        return strategy.output
    assert isinstance(strategy, DenseStrategy | GatheredStrategy)
    return (strategy.matrix > 0).tobytes()
