"""Measuring rows that are read in passes: the private pass, and the strategy that is kept of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

import numpy as np

from cloakgp.criteria.base import ChosenRule
from cloakgp.fitting.strategies import Query, query_weights
from cloakgp.models import SparsePrior
from cloakgp.models.summary import Summary
from cloakgp.privacy.noise import NOISES
from cloakgp.privacy.streaming import PrivateRows, StrategyBound
from cloakgp.release import StreamedStrategy
from cloakgp.release.bands import RowBands, RowSpread
from cloakgp.release.sums import PriorSums
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import NoiseName
from cloakgp.utils.passes import Passes

INDUCING = 200


@runtime_checkable
class Rows(Passes, PrivateRows, Protocol):
    """A table in chunks: public inputs, and private outputs that `measure_rows` alone reads."""

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the public columns, if there are any."""

    @property
    def output_name(self) -> str:
        """Name of the private column."""

    @property
    def grouped(self) -> bool:
        """Whether the rows say whose they are, to be protected together."""


def bound_of(asked: ChosenRule, *, noise: NoiseName = "gaussian") -> StrategyBound:
    """Return what is known of questions before any output is read.

    Those for Laplace noise put every row into one answer, and a column of a single entry is as long
    in one norm as in another.
    """
    bound = StrategyBound(
        answers=asked.rule.answers,
        longest=asked.sums.longest,
        chunk_rows=asked.sums.chunk_rows,
        count=asked.sums.count,
        noise=NOISES[noise],
    )
    if asked.grouping is None:
        return bound
    return replace(bound, group_rows=asked.grouping.most_rows, chunks=asked.grouping.chunks)


def streamed_strategy(
    asked: ChosenRule,
    *,
    prior: SparsePrior,
    summary: Summary,
    query: Query,
    sums: Sequence[PriorSums],
    bands: RowBands | RowSpread | None = None,
    table: int = 0,
    earlier: Sequence[StreamedStrategy] = (),
    noise: NoiseName = "gaussian",
) -> StreamedStrategy:
    """Return what is kept of questions about rows that are read in passes.

    Parameters
    ----------
    asked : ChosenRule
    prior : SparsePrior
        Under which questions were chosen.
    summary : Summary
        Of the rows.
    query : Query
    sums : sequence of PriorSums
    bands : RowBands or RowSpread, optional
    table : int
    earlier : sequence of StreamedStrategy
        About the same rows: those with which the sums say what is shared.
    noise : {"gaussian", "laplace"}
        That was added.
    """
    return StreamedStrategy(
        prior=prior,
        rule=asked.rule,
        sums=tuple(sums),
        row_totals=asked.sums.totals,
        rows=asked.sums.count,
        chunk_rows=asked.sums.chunk_rows,
        longest=asked.sums.longest,
        input_ranges=summary.ranges,
        X_query=query.X,
        query_weights=query_weights(query),
        reconstruction=asked.reconstruction,
        certificate=asked.certificate,
        table=table,
        earlier=tuple(one.row_totals for one in earlier),
        grouping=asked.grouping,
        bands=bands,
        norm=noise,
    )


def inducing_inputs(summary: Summary, inducing: int | Array, *, random_state: int) -> int | Array:
    """Return inducing inputs of rows that are read in passes: those given, or k-means centres.

    Parameters
    ----------
    summary : Summary
    inducing : int or array of shape (M, D)
    random_state : int
        Of k-means on public inputs.
    """
    if isinstance(inducing, int | np.integer) and not isinstance(inducing, bool):
        return summary.centres(int(inducing), random_state=random_state)[0]
    return inducing
