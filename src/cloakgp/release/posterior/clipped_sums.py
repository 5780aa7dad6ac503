r"""Sums over rows for answers about outputs in bands, under any prior: `sum_stage`.

`cloakgp.release.posterior.clipped` replaces a clipped output by its best linear account given the
answers before, t ≈ h + A (y − m) + e + o β. For rows that are not kept, everything it then needs of
a stage with columns R is a sum over rows: R A Vᵀ, R A Λ A Rᵀ and the same with what earlier stages
asked, R diag(var e) Rᵀ, R o and R (h − A (m − m₀)). So each stage takes one pass over public inputs
for every prior that it is to be known under.

How m_j, v_j and A are had of rows that are not kept: `cloakgp.release.posterior.row_stages`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cloakgp.design.streaming.binning import CellsOfAnswers, Partition
from cloakgp.design.streaming.row_model import RememberedFeatures
from cloakgp.design.streaming.sums import (
    AskedOfCells,
    ClippedSums,
    StrategySums,
    sums_of_rows,
    sums_over_cells,
    weighted_products,
)
from cloakgp.models import SparsePrior
from cloakgp.models.clipping import offset_per_sd
from cloakgp.models.kernels.cells import InputCells
from cloakgp.models.likelihoods import NUMBERS
from cloakgp.release.bands import RowBands
from cloakgp.release.measurement import Measurement
from cloakgp.release.posterior.row_stages import (
    AskedOfRows,
    RowStage,
    RowStages,
    features_under,
    is_stage_of,
    over_blocks_of,
    same_features,
)
from cloakgp.release.streamed_strategy import RuleColumns, StreamedStrategy
from cloakgp.release.sums import ChannelSums, PriorSums
from cloakgp.utils.arrays import Array
from cloakgp.utils.clusters import membership_of
from cloakgp.utils.passes import Chunk, Passes


def sum_stage(
    passes: Passes,
    priors: Sequence[SparsePrior],
    *,
    columns: RuleColumns,
    bands: RowBands | None,
    known: Sequence[Measurement],
    table: int,
    what: str = "summing questions",
    remembered: RememberedFeatures | None = None,
) -> tuple[StrategySums, ...]:
    """Sum the columns of a stage under several priors, in one pass.

    Parameters
    ----------
    passes : Passes
    priors : sequence of SparsePrior
    columns : RuleColumns
        What is asked of every row.
    bands : RowBands or None
        None where outputs themselves are asked.
    known : sequence of Measurement
        All that was answered before, as it came in. Of the same table with sums under each of the
        priors.
    table : int
        The number of the table.
    what : str
        Shown to whoever waits.
    remembered : RememberedFeatures, optional
        Of the same rows in other passes.

    Returns
    -------
    tuple of StrategySums
        One for each prior, with what is shared with each stage in `stages_of` (known, table).
    """
    before = [RowStage.of(one) for one in stages_of(known, table)]
    if bands is None and all(stage.bands is None for stage in before):
        asking = _AskingOutputs(
            columns=columns,
            earlier=tuple(stage.columns for stage in before),
            priors=tuple(priors),
            remembered=remembered,
        )
        return passes.over_inputs(asking, what=what).parts
    stages = RowStages.given(
        priors,
        known,
        table=table,
        last=RowStage(columns=columns, bands=bands, scale=1.0),
        remembered=remembered,
    )
    return passes.over_inputs(_Summing(stages=stages), what=what).parts


@dataclass(frozen=True, eq=False)
class GatheredCells:
    """Sums over the rows of cells, for every stage of a table, and of their inputs.

    Attributes
    ----------
    stages : tuple of AskedOfCells
    counts : array of shape (n,)
        Rows of each cell.
    totals, squares : arrays of shape (n, D)
        Of their inputs, less a public origin.
    origin : array of shape (D,)
    """

    stages: tuple[AskedOfCells, ...]
    counts: Array
    totals: Array
    squares: Array
    origin: Array

    def merge(self, other: GatheredCells) -> GatheredCells:
        """Return the sums over the rows of both."""
        pairs = zip(self.stages, other.stages, strict=True)
        return GatheredCells(
            stages=tuple(mine.merge(theirs) for mine, theirs in pairs),
            counts=self.counts + other.counts,
            totals=self.totals + other.totals,
            squares=self.squares + other.squares,
            origin=self.origin,
        )

    def joined(self, places: NDArray[np.intp]) -> GatheredCells:
        """Return the sums over larger cells.

        Parameters
        ----------
        places : array of int, shape (n,)
            Of which of them each of these is part.
        """
        cells = membership_of(places)
        return GatheredCells(
            stages=tuple(one.joined(cells) for one in self.stages),
            counts=cells @ self.counts,
            totals=cells @ self.totals,
            squares=cells @ self.squares,
            origin=self.origin,
        )

    @cached_property
    def inputs(self) -> InputCells:
        """Means and variances of inputs; the origin in cells without a row."""
        counts = np.maximum(self.counts, 1.0)[:, None]
        means = self.totals / counts
        variances = np.maximum(self.squares / counts - np.square(means), 0.0)
        return InputCells(means=self.origin + means, variances=variances)


@dataclass(frozen=True, eq=False)
class _Gathering:
    """The sums of one chunk over cells, of all stages."""

    stages: RowStages
    cells: Partition | CellsOfAnswers
    origin: Array

    def __call__(self, chunk: Chunk) -> GatheredCells:
        return over_blocks_of(chunk, self._of_block)

    def _of_block(self, X: Array) -> GatheredCells:
        [(rows, stages)] = self.stages.over(X)
        [prior] = self.stages.priors
        mean = prior.means_of(rows.features)
        if isinstance(self.cells, CellsOfAnswers):
            membership = self.cells.membership(X, stages[-1].columns)
        else:
            membership = self.cells.membership(X)
        sums = [
            replace(
                sums_over_cells(one.questions, membership),
                clipped=_clipped(one, mean=mean),
            )
            for one in stages
        ]
        inputs = X[:, : len(self.origin)] - self.origin
        return GatheredCells(
            stages=tuple(sums),
            counts=np.asarray(membership.sum(axis=1), dtype=np.float64),
            totals=membership @ inputs,
            squares=membership @ np.square(inputs),
            origin=self.origin,
        )


def gather_cells(
    passes: Passes,
    prior: SparsePrior,
    *,
    measurements: Sequence[Measurement],
    table: int,
    cells: Partition | CellsOfAnswers,
    origin: Array,
) -> GatheredCells:
    """Sum what the stages of a table asked over the rows of cells, in one pass.

    Parameters
    ----------
    passes : Passes
    prior : SparsePrior
        Under which outputs in bands are linearised.
    measurements : sequence of Measurement
        As they came in; of the same table with sums under the prior.
    table : int
        The number of the table.
    cells : Partition or CellsOfAnswers
        Of the inputs, or within the answers of the last stage.
    origin : array of shape (D,)
        Public, among the inputs.
    """
    stages = RowStages.given([prior], measurements, table=table)
    gathering = _Gathering(stages=stages, cells=cells, origin=origin)
    return passes.over_inputs(gathering, what="gathering rows to learn from")


def stages_of(measurements: Sequence[Measurement], table: int) -> list[Measurement]:
    """Return the answered questions about where the outputs of a table read in passes are."""
    return [one for one in measurements if is_stage_of(one, table)]


def as_kept(
    prior: SparsePrior, sums: StrategySums, *, shared: Sequence[int] | None = None
) -> PriorSums:
    """Return sums as strategies keep them.

    Parameters
    ----------
    prior : SparsePrior
        Under which they are.
    sums : StrategySums
    shared : sequence of int, optional
        Which of the earlier stages count; all if not given.
    """
    clipped = sums.clipped
    kept = range(len(sums.shared)) if shared is None else shared
    channel = ChannelSums(
        features=sums.features,
        noise=sums.noise if clipped is None else sums.noise + clipped.residual,
        offset=None if clipped is None else clipped.expected,
        shared=tuple(sums.shared[place] for place in kept),
        skew=None if clipped is None else clipped.skew,
    )
    return PriorSums(prior=prior, likelihood=NUMBERS, channels=(channel,))


def restate(
    passes: Passes, priors: Sequence[SparsePrior], *, measurements: Sequence[Measurement]
) -> tuple[Measurement, ...]:
    """Return the measurements of one table with sums under more priors.

    Takes a pass for each stage: what a stage in bands says depends on the answers before it.

    Parameters
    ----------
    passes : Passes
        Over the rows of the table.
    priors : sequence of SparsePrior
        Other than those that there are sums under.
    measurements : sequence of Measurement
        In the order in which they were made.
    """
    done: list[Measurement] = []
    remembered = RememberedFeatures(max((one.strategy.n_rows for one in measurements), default=0))
    for number, one in enumerate(measurements, start=1):
        strategy = one.strategy
        assert isinstance(strategy, StreamedStrategy)
        added: tuple[PriorSums, ...]
        if not priors or not is_stage_of(one, strategy.table):
            added = tuple(says_nothing(prior, strategy.n_answers) for prior in priors)
        else:
            bands = one.question if isinstance(one.question, RowBands) else None
            found = sum_stage(
                passes,
                priors,
                columns=strategy.columns(one.question),
                bands=bands,
                known=done,
                table=strategy.table,
                what=f"summing what was learned ({number} of {len(measurements)})",
                remembered=remembered,
            )
            added = tuple(as_kept(*each) for each in zip(priors, found, strict=True))
        done.append(replace(one, strategy=replace(strategy, sums=(*strategy.sums, *added))))
    return tuple(done)


def stated_under(prior: SparsePrior, measurements: Sequence[Measurement]) -> bool:
    """Return whether all measurements of one table have sums under a prior.

    Parameters
    ----------
    prior : SparsePrior
    measurements : sequence of Measurement
    """
    kept = [one.strategy.sums for one in measurements if isinstance(one.strategy, StreamedStrategy)]
    return all(any(sums.prior is prior for sums in each) for each in kept)


def under_alone(measurement: Measurement, prior: SparsePrior) -> Measurement:
    """Return a measurement of rows that are not kept with its sums under one prior alone.

    Parameters
    ----------
    measurement : Measurement
    prior : SparsePrior
        One of those that there are sums under.
    """
    return under_these(measurement, [prior])


def under_these(measurement: Measurement, priors: Sequence[SparsePrior]) -> Measurement:
    """Return a measurement of rows that are not kept with its sums under some priors alone.

    Parameters
    ----------
    measurement : Measurement
    priors : sequence of SparsePrior
        Of those that there are sums under.
    """
    strategy = measurement.strategy
    assert isinstance(strategy, StreamedStrategy)
    kept = tuple(strategy.sums_under(one, NUMBERS) for one in priors)
    return replace(measurement, strategy=replace(strategy, sums=kept))


def says_nothing(prior: SparsePrior, answers: int) -> PriorSums:
    """Return the sums of questions whose answers do not locate outputs."""
    channel = ChannelSums(
        features=np.zeros((answers, len(prior.inducing))), noise=np.zeros((answers, answers))
    )
    return PriorSums(prior=prior, likelihood=NUMBERS, channels=(channel,))


@dataclass(frozen=True, eq=False)
class _Several:
    """Sums under several priors."""

    parts: tuple[StrategySums, ...]

    def merge(self, other: _Several) -> _Several:
        pairs = zip(self.parts, other.parts, strict=True)
        return _Several(parts=tuple(mine.merge(theirs) for mine, theirs in pairs))


@dataclass(frozen=True, eq=False)
class _AskingOutputs:
    """The sums of one chunk where outputs themselves are asked, as in all stages before.

    Rows that have more noise, each as much, have as much more of R Rᵀ in their sums: priors that
    differ in nothing else cost no more than one.
    """

    columns: RuleColumns
    earlier: tuple[RuleColumns, ...]
    priors: tuple[SparsePrior, ...]
    remembered: RememberedFeatures | None

    def __call__(self, chunk: Chunk) -> _Several:
        asked = self.columns.summable_columns(chunk.X)
        earlier = [one.summable_columns(chunk.X) for one in self.earlier]
        parts: list[StrategySums] = []
        products: list[Array] = []
        under = features_under(self.priors, chunk.X, remembered=self.remembered)
        for place, (features, noise) in enumerate(under):
            prior, last = self.priors[place], self.priors[place - 1]
            if place and same_features(prior, last):
                products = products or [
                    weighted_products(asked, one, weights=1.0) for one in (asked, *earlier)
                ]
                more = prior.noise_variance - last.noise_variance
                parts.append(parts[-1].with_noise(more, products=products))
                continue
            parts.append(sums_of_rows(asked, features, noise, earlier=earlier))
        return _Several(parts=tuple(parts))


@dataclass(frozen=True, eq=False)
class _Summing:
    """The sums of one chunk, of the last of some stages, any of which may be in bands."""

    stages: RowStages

    def __call__(self, chunk: Chunk) -> _Several:
        return over_blocks_of(chunk, self._of_block)

    def _of_block(self, X: Array) -> _Several:
        parts = []
        for (rows, stages), prior in zip(self.stages.over(X), self.stages.priors, strict=True):
            *earlier, last = stages
            sums = sums_of_rows(
                last.questions,
                rows.features,
                rows.noise,
                earlier=[one.questions for one in earlier],
            )
            parts.append(replace(sums, clipped=_clipped(last, mean=prior.means_of(rows.features))))
        return _Several(parts=tuple(parts))


def _clipped(asked: AskedOfRows, *, mean: Array) -> ClippedSums | None:
    """Return the sums that a linear account adds, over some rows of these prior means."""
    if asked.account is None:
        return None
    assert asked.band is not None
    assert asked.mean is not None
    assert asked.variance is not None
    columns, account, width = asked.columns, asked.account, asked.band.width
    # The probability of not being clipped is the slope in output units.
    offset = offset_per_sd(account.slope * width, asked.variance) / width
    return ClippedSums(
        expected=columns @ (account.expected - account.slope * (asked.mean - mean)),
        residual=weighted_products(columns, columns, weights=account.residual),
        skew=columns @ offset,
    )
