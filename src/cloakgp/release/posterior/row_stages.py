"""Rows that are not kept, in a further pass: questions of stages, and posteriors of rows.

The mean and the variance of a row's output given earlier answers are those of the exact posterior
of the sparse model, what the answers hold of the row's own noise included. With answers in units of
their noise, S = L Lᵀ their covariance, and q_j the questions A r_j that earlier stages asked of row
j of the same table,

    cov(y_j, a) L⁻ᵀ = (F v_j + λ_j q_j)ᵀ L⁻ᵀ,    F = R A Vᵀ over all answers.

So earlier stages are gone through row by row: the columns of each follow from its rule, and the
slope A of what it asked in bands from the answers before it. Of answers about one table the first
have the first block of L: what they tell of a row is gone on from when there are more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Self

import numpy as np
from scipy import linalg

from cloakgp.design.streaming.remembering import BLOCK_ROWS
from cloakgp.design.streaming.row_model import RememberedFeatures
from cloakgp.design.streaming.rules import Columns, weigh_rows
from cloakgp.models import SparsePrior
from cloakgp.models.likelihoods import Linearisation
from cloakgp.privacy.questions.bands import Bands
from cloakgp.release.bands import RowBands, account_in_bands
from cloakgp.release.measurement import Measurement, linear_measurements
from cloakgp.release.posterior.clipped import SMALLEST_VARIANCE
from cloakgp.release.posterior.dense import Posterior
from cloakgp.release.posterior.mixture import answered_tables
from cloakgp.release.streamed_strategy import RuleColumns, StreamedStrategy
from cloakgp.utils.arrays import Array
from cloakgp.utils.passes import Chunk, PartOf


def over_blocks_of(chunk: Chunk, work: Callable[[Array], PartOf]) -> PartOf:
    """Do some work on blocks of a chunk's rows, one after the other, and merge the parts in order.

    Parameters
    ----------
    chunk : Chunk
    work : callable
        Called with the inputs of some rows.
    """
    starts = range(0, len(chunk.X), BLOCK_ROWS)
    # Merged as they come: each may be large.
    parts = (work(chunk.X[start : start + BLOCK_ROWS]) for start in starts)
    return reduce(lambda before, part: before.merge(part), parts)


def is_stage_of(measurement: Measurement, table: int) -> bool:
    """Return whether a measurement locates the outputs of a table read in passes.

    Parameters
    ----------
    measurement : Measurement
    table : int
    """
    return (
        measurement.strategy.table == table
        and isinstance(measurement.strategy, StreamedStrategy)
        and bool(linear_measurements([measurement]))
    )


@dataclass(frozen=True, eq=False)
class RowStage:
    """The columns of rows in one stage, by their inputs.

    Attributes
    ----------
    columns : RuleColumns
    bands : RowBands or None
    scale : float
        Answers times this have noise of sd 1.
    """

    columns: RuleColumns
    bands: RowBands | None
    scale: float

    @classmethod
    def of(cls, measurement: Measurement) -> Self:
        """Return the stage that a measurement was."""
        strategy = measurement.strategy
        assert isinstance(strategy, StreamedStrategy)
        question = measurement.question
        return cls(
            columns=strategy.columns(question),
            bands=question if isinstance(question, RowBands) else None,
            scale=1.0 / measurement.noise_sd,
        )


@dataclass(frozen=True, eq=False)
class RowKnowledge:
    """The posterior of rows before a stage, under one prior.

    Attributes
    ----------
    prior : SparsePrior
    known : array of shape (K, M)
        L⁻¹F, of all answers before.
    inverse : array of shape (K, K)
        L⁻¹. In units of the noise S is I and more, so that little is lost to rounding.
    whitened : array of shape (K,)
        L⁻¹ (a − E a).
    own : tuple of slice
        Where the answers of each earlier stage of the same table are.
    whole : array
        L⁻¹F of more answers, of which these are the first.
    """

    prior: SparsePrior
    known: Array
    inverse: Array
    whitened: Array
    own: tuple[slice, ...]
    whole: Array

    @classmethod
    def given(cls, prior: SparsePrior, before: Sequence[Measurement], *, table: int) -> Self:
        """Return the posterior given measurements."""
        if not linear_measurements(before):
            posterior = Posterior.given(prior, (), np.zeros(0))
        else:
            tables, values = answered_tables(prior, before, prior.mean)
            posterior = Posterior.given(prior, tables, values[:, 0])
        own, start = [], 0
        for one in linear_measurements(before):
            stop = start + one.strategy.n_answers
            if one.strategy.table == table:
                own.append(slice(start, stop))
            start = stop
        asked = [each.inducing_cross(prior) for each in posterior.tables]
        inverse = linalg.solve_triangular(
            posterior.factor, np.eye(len(posterior.factor)), lower=True
        )
        known = inverse @ np.vstack([np.zeros((0, len(prior.inducing))), *asked])
        return cls(
            prior=prior,
            known=known,
            inverse=inverse,
            whitened=posterior.factor.T @ posterior.weights,
            own=tuple(own),
            whole=known,
        )

    def first(self, count: int) -> RowKnowledge:
        """Return the posterior given the first answers alone.

        Parameters
        ----------
        count : int
            Those of some stages.
        """
        return replace(
            self,
            known=self.known[:count],
            inverse=self.inverse[:count, :count],
            whitened=self.whitened[:count],
            own=tuple(span for span in self.own if span.stop <= count),
        )


class Rows:
    """Some rows under one prior, and what is known of their outputs after some answers.

    Parameters
    ----------
    features : array of shape (M, n)
    noise : array of shape (n,)
    """

    def __init__(self, features: Array, noise: Array) -> None:
        self.features = features
        self.noise = noise
        self._whole: Array | None = None
        self._answers = 0
        self._mean = self._explained = np.zeros(0)

    def outputs(self, knowledge: RowKnowledge, earlier: Sequence[Columns]) -> tuple[Array, Array]:
        """Return means and variances of the outputs of rows, shapes (n,).

        Parameters
        ----------
        knowledge : RowKnowledge
            Where it is of more answers than the last time, it is gone on from there.
        earlier : sequence of arrays or sparse arrays of shape (k', n)
            What earlier stages asked of them, in units of their noise.
        """
        count = len(knowledge.known)
        if knowledge.whole is not self._whole or count < self._answers:
            self._whole, self._answers = knowledge.whole, 0
            self._mean = knowledge.prior.means_of(self.features)
            self._explained = np.zeros_like(self.noise)
        if count > self._answers:
            more = slice(self._answers, count)
            known = knowledge.known[more] @ self.features
            for span, questions in zip(knowledge.own, earlier, strict=True):
                known += knowledge.inverse[more, span] @ weigh_rows(questions, self.noise)
            self._mean = self._mean + knowledge.whitened[more] @ known
            self._explained = self._explained + np.einsum("kn,kn->n", known, known)
            self._answers = count
        variance = self._prior_variance - self._explained
        return self._mean, np.maximum(variance, SMALLEST_VARIANCE * self._prior_variance)

    @cached_property
    def _prior_variance(self) -> Array:
        explained: Array = np.einsum("mn,mn->n", self.features, self.features)
        return explained + self.noise


@dataclass(frozen=True, eq=False)
class AskedOfRows:
    """The columns of some rows in one stage, for outputs under one prior.

    Attributes
    ----------
    columns : array or sparse array of shape (k, n)
        R.
    questions : array or sparse array of shape (k, n)
        R A.
    scaled : array or sparse array of shape (k, n)
        The same in units of the noise.
    band : Bands or None
    mean, variance : arrays of shape (n,) or None
        Of the outputs given the answers before, where they were asked in bands.
    account : Linearisation or None
    """

    columns: Columns
    questions: Columns
    scaled: Columns
    band: Bands | None = None
    mean: Array | None = None
    variance: Array | None = None
    account: Linearisation | None = None


@dataclass(frozen=True, eq=False)
class RowStages:
    """Stages of one table, under several priors.

    Attributes
    ----------
    stages : tuple of RowStage
    priors : tuple of SparsePrior
    knowledge : tuple of tuples of RowKnowledge or None
        For each prior, what was known before each stage; None where that does not matter.
    at_end : tuple of RowKnowledge
        For each prior, what is known after all answers, if that was asked for.
    remembered : RememberedFeatures or None
        Of rows that are gone through again under these priors.
    """

    stages: tuple[RowStage, ...]
    priors: tuple[SparsePrior, ...]
    knowledge: tuple[tuple[RowKnowledge | None, ...], ...]
    at_end: tuple[RowKnowledge, ...] = ()
    remembered: RememberedFeatures | None = None

    @classmethod
    def given(
        cls,
        priors: Sequence[SparsePrior],
        known: Sequence[Measurement],
        *,
        table: int,
        last: RowStage | None = None,
        to_end: bool = False,
        remembered: RememberedFeatures | None = None,
    ) -> Self:
        """Return the stages that a table went through, and one that is to come, if any.

        Parameters
        ----------
        priors : sequence of SparsePrior
        known : sequence of Measurement
            All that was answered before, as it came in; of the table with sums under each prior.
        table : int
        last : RowStage, optional
        to_end : bool
            Whether what is known after all answers is asked for.
        remembered : RememberedFeatures, optional
        """
        before = [(place, one) for place, one in enumerate(known) if is_stage_of(one, table)]
        stages = [RowStage.of(one) for _, one in before]
        places = [place for place, _ in before]
        if last is not None:
            stages, places = [*stages, last], [*places, len(known)]
        needed = [
            place if stage.bands else None for stage, place in zip(stages, places, strict=True)
        ]
        if to_end:
            needed.append(len(known))
        knowledge = [_knowledge_at(needed, prior, known, table=table) for prior in priors]
        return cls(
            stages=tuple(stages),
            priors=tuple(priors),
            knowledge=tuple(each[: len(stages)] for each in knowledge),
            at_end=tuple(each[-1] for each in knowledge if to_end and each[-1] is not None),
            remembered=remembered,
        )

    def over(self, X: Array) -> Iterator[tuple[Rows, list[AskedOfRows]]]:
        """Return some rows, and their columns in every stage, under each prior.

        Parameters
        ----------
        X : array of shape (n, D), or with the sizes of groups
        """
        columns = [stage.columns.summable_columns(X) for stage in self.stages]
        bands = [
            None if stage.bands is None else stage.bands.of_rows(X, remember=True)
            for stage in self.stages
        ]
        known_of_rows = features_under(self.priors, X, remembered=self.remembered)
        for (features, noise), knowledge in zip(known_of_rows, self.knowledge, strict=True):
            asked: list[AskedOfRows] = []
            rows = Rows(features, noise)
            for stage, column, band, known in zip(
                self.stages, columns, bands, knowledge, strict=True
            ):
                if band is None or known is None:
                    asked.append(AskedOfRows(column, column, column * stage.scale))
                    continue
                mean, variance = rows.outputs(known, [one.scaled for one in asked])
                account = account_in_bands(mean, variance, bands=band)
                questions = weigh_rows(column, account.slope)
                asked.append(
                    AskedOfRows(
                        columns=column,
                        questions=questions,
                        scaled=questions * stage.scale,
                        band=band,
                        mean=mean,
                        variance=variance,
                        account=account,
                    )
                )
            yield rows, asked


def _knowledge_at(
    places: Sequence[int | None], prior: SparsePrior, known: Sequence[Measurement], *, table: int
) -> tuple[RowKnowledge | None, ...]:
    """Return what is known before each of some places among measurements, None where not asked.

    Of answers about one table, all of it is part of what is known at the last.
    """
    last = max((place for place in places if place is not None), default=0)
    if any(one.strategy.table != table for one in linear_measurements(known[:last])):
        return tuple(
            None if place is None else RowKnowledge.given(prior, known[:place], table=table)
            for place in places
        )
    if all(place is None for place in places):
        return tuple(None for _ in places)
    whole = RowKnowledge.given(prior, known[:last], table=table)
    counts = [
        sum(one.strategy.n_answers for one in linear_measurements(known[: place or 0]))
        for place in places
    ]
    pairs = zip(places, counts, strict=True)
    return tuple(None if place is None else whole.first(count) for place, count in pairs)


def features_under(
    priors: Sequence[SparsePrior], X: Array, *, remembered: RememberedFeatures | None = None
) -> Iterator[tuple[Array, Array]]:
    """Return features and noise of some rows under each prior; of those alike, computed once.

    Parameters
    ----------
    priors : sequence of SparsePrior
        Those alike next to each other.
    X : array of shape (n, D), or with the sizes of groups
    remembered : RememberedFeatures, optional
        Of the same rows in other passes.
    """
    seen: tuple[SparsePrior, Array, Array] | None = None
    for prior in priors:
        if seen is not None and same_features(prior, seen[0]):
            features = seen[1]
            noise = seen[2] + (prior.noise_variance - seen[0].noise_variance)
        else:
            inputs = X[:, : prior.inducing.shape[1]]
            if remembered is None:
                features, noise = prior.features_and_noise(inputs)
            else:
                features, noise = remembered.features_and_noise(prior, inputs)
        seen = prior, features, noise
        yield features, noise


def same_features(one: SparsePrior, other: SparsePrior) -> bool:
    """Return whether two priors differ in their mean and one noise variance of all rows at most."""
    return (
        one.scatter is other.scatter is None
        and one.kernel is other.kernel
        and one.inducing is other.inducing
        and one.approximation == other.approximation
        and one.trend == other.trend
    )
