"""A table that is read in passes: no row is kept, only rules and sums over rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Protocol, Self, runtime_checkable

import numpy as np
from scipy import sparse
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.criteria import criterion_named
from cloakgp.criteria.base import ChosenRule
from cloakgp.data import InputRows
from cloakgp.data.entries import EntryRows, GroupedRows, TransformedRows, added_noise, as_asked
from cloakgp.design import Certificate
from cloakgp.design.streaming.binning import CellsOfAnswers, Partition
from cloakgp.design.streaming.condensing import condense
from cloakgp.design.streaming.grouping import GroupedPasses, sum_grouped
from cloakgp.design.streaming.rules import EqualRule
from cloakgp.design.streaming.sums import StrategySums
from cloakgp.design.streaming.together import sum_columns
from cloakgp.fitting.bands import Stage, Step, reach_of_bands
from cloakgp.fitting.calibration import choose_cells, choose_strata, noise_share
from cloakgp.fitting.refusals import refuse
from cloakgp.fitting.resolution import finer, resolve
from cloakgp.fitting.row_forecast import LITTLE, LITTLE_OF_CURVE, RowsForecast, forecast_rows
from cloakgp.fitting.scatter import choose_strata_of_scatter
from cloakgp.fitting.strategies import Budget, Query, design_rows, query_weights, unit_noise_sd
from cloakgp.fitting.table import (
    Count,
    Design,
    DesignSettings,
    Model,
    Strata,
    Table,
    cells_of_output,
)
from cloakgp.models import ExactPrior, NotPositiveDefiniteError, SparsePrior
from cloakgp.models.kernels.adjoint import has_adjoint
from cloakgp.models.kernels.cells import InputCells
from cloakgp.models.kernels.coregion import CoregionKernel
from cloakgp.models.likelihoods import NUMBERS, ClassLikelihood
from cloakgp.models.prediction import alternatives
from cloakgp.models.summary import EntrySummary, Summary, summarise
from cloakgp.models.transforms import OutputTransform
from cloakgp.privacy import Answers, OutputBounds
from cloakgp.privacy.ask import PrivateRows, StrategyBound, ask_chunks
from cloakgp.privacy.noise import NOISES
from cloakgp.privacy.questions.base import Question
from cloakgp.privacy.questions.classes import Classes
from cloakgp.privacy.questions.counts import CountQuestion
from cloakgp.privacy.questions.outside import OutsideQuestion
from cloakgp.privacy.rounding import sum_of_shares
from cloakgp.privacy.several_outputs import OutputColumns
from cloakgp.release import (
    Hyperprior,
    Measurement,
    Release,
    Strategy,
    StreamedStrategy,
    WeightedPrior,
)
from cloakgp.release.bands import (
    RowBands,
    RowCalibration,
    RowPrediction,
    RowQuestion,
    RowScatter,
    RowSpread,
)
from cloakgp.release.hyperparameters.covariance import gather_sums
from cloakgp.release.hyperparameters.hyperprior import DEGREES_IN_PASSES
from cloakgp.release.hyperparameters.learning import (
    confirmed,
    learn_classes,
    learn_numbers,
    likeliest,
    linear_log_evidence,
    weigh,
)
from cloakgp.release.hyperparameters.noise import (
    NEAR_END,
    AnswersByNoise,
    expected_position,
    noise_positions,
    position_of_noise,
    positions_around,
    scaled_noise,
)
from cloakgp.release.hyperparameters.scatter import Bumps, with_noise_in_strata
from cloakgp.release.posterior.clipped_sums import (
    GatheredCells,
    as_kept,
    gather_cells,
    restate,
    says_nothing,
    stages_of,
    sum_stage,
    under_alone,
    under_these,
)
from cloakgp.release.posterior.label_sums import CellSigns, label_sums
from cloakgp.release.posterior.mixture import weightiest
from cloakgp.release.posterior.spread_sums import sum_spread
from cloakgp.release.streamed_strategy import EqualShares, same_covariance
from cloakgp.release.sums import ChannelSums, PriorSums
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import Ball
from cloakgp.utils.passes import Passes

# Of the cells that kernels are learned at: twice as many within answers had the same maximum.
LEARNING_CELLS = 1000
# Of a single input fewer lie as near to all rows.
LEARNING_CELLS_AN_INPUT = 500
# Of a kernel whose gradient takes a matrix between all of them for every hyperparameter.
SLOW_LEARNING_CELLS = 400
# Rows by which cells within answers are chosen.
PLACED_ROWS = 2**14
# In which questions about labels are kept: see `cloakgp.design.streaming.condensing`.
LABEL_CELLS = 500
# Rows that say how others differ from the centres of their cells: at most so many, and one in so
# many, as a search over more would cost what it spares.
LABEL_SAMPLE, SAMPLED_ONE_IN = 2**14, 16
# By how much logarithms of hyperparameters of two maxima may differ that are one.
SAME_MAXIMUM = 0.05
# By how many sds outputs may scatter less than what was learned would have it.
REFUTED = 3.0
# Rows that say how far outputs are expected to scatter, and the fewest in each stratum: what they
# may be off by moves the noise that is learned by less than a hundredth.
SPREAD_ROWS, FEWEST_SAMPLED = 2**14, 100


@runtime_checkable
class Rows(Passes, PrivateRows, Protocol):
    """A table in chunks: public inputs, and private outputs that `ask_chunks` alone reads."""

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the public columns, if there are any."""

    @property
    def output_name(self) -> str:
        """Name of the private column."""

    @property
    def grouped(self) -> bool:
        """Whether rows have groups, to be protected together."""


@dataclass(frozen=True, eq=False, repr=False)
class RowTable(Table):
    """A table of one private column in chunks.

    Attributes
    ----------
    passes : Rows or GroupedRows
        With groups, all rows of a group are protected together.
    summary : Summary
        Of its public inputs.
    number : int
        Of the table, in the release.
    input_names, output_name
        Names of the columns.
    resolves : bool
        Whether inducing inputs are chosen anew for the kernel that is learned from each stage.
    """

    passes: Rows | GroupedRows
    summary: Summary
    number: int = 0
    input_names: tuple[str, ...] = ()
    output_name: str = "y"
    resolves: bool = False
    _forecasts: dict[tuple[Question, Budget], RowsForecast] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        rows: Rows,
        *,
        transform: OutputTransform | None = None,
        summary: Summary | None = None,
        number: int = 0,
        resolves: bool = False,
    ) -> Self:
        """Return a table, after a pass over its public inputs.

        Parameters
        ----------
        rows : Rows
            See `cloakgp.data`.
        transform : OutputTransform, optional
            Applied to outputs first.
        summary : Summary, optional
            If it is there already.
        number : int
        resolves : bool
        """
        if getattr(rows, "n_outputs", 1) != 1:
            raise ValueError(
                "y must have one dimension, with one entry per row: several private columns are "
                "for DPGPMultiOutputRegressor"
            )
        known = summarise(rows) if summary is None else summary
        within = TransformedRows.of(rows, transform)
        return cls(
            passes=GroupedRows.of(within) if rows.grouped else within,
            summary=known,
            number=number,
            input_names=tuple(rows.input_names),
            output_name=rows.output_name,
            resolves=resolves,
        )

    @property
    def rows(self) -> int:
        """N."""
        return self.summary.count

    @property
    def counted(self) -> int:
        """N; with groups, the numbers that groups have: a row counts for a share of one."""
        if isinstance(self.passes, GroupedRows):
            return int(np.count_nonzero(self.passes.counts))
        return self.summary.count

    @property
    def grouped(self) -> bool:
        """Whether all rows of one group are protected together."""
        return isinstance(self.passes, GroupedRows)

    @property
    def most_counted(self) -> int:
        """1: the shares of a group sum up to one."""
        return 1

    @property
    def together(self) -> int:
        """The number of adjacent entries of one row, which are protected together."""
        return 1

    @property
    def added_noise(self) -> float:
        """The noise of answers over that of a budget: more of several custodians."""
        return added_noise(self.passes)

    def price(self, model: Model, ball: Ball) -> float:
        """Return the effect on answers of a row whose entries all have columns of norm 1.

        It is expected, for designs, and decides how useful these are; what is asked is measured.
        """
        del model, ball
        return 1.0

    def cells_for(self, kernel: Kernel) -> Partition:
        """Return cells of similar inputs at which a kernel is learned."""
        most = self._most_cells(kernel)
        if most not in self._kept_cells:
            centres, _ = self.summary.centres(most)
            self._kept_cells[most] = Partition(centres=centres, units=self.summary.units)
        return self._kept_cells[most]

    def _most_cells(self, kernel: Kernel) -> int:
        """Return at how many points a kernel is learned, at most."""
        if not has_adjoint(kernel):
            return SLOW_LEARNING_CELLS
        return min(LEARNING_CELLS, LEARNING_CELLS_AN_INPUT * len(self.summary.units))

    @cached_property
    def _kept_cells(self) -> dict[int, Partition]:
        return {}

    def forecast(self, model: Model, budget: Budget, query: Query) -> RowsForecast:
        """Forecast one stage with a budget."""
        key = model.question, budget
        if key not in self._forecasts:
            self._forecasts[key] = forecast_rows(
                self.passes,
                self.summary,
                prior=self._prior_over_outputs(model),
                query=query,
                noise_sd=unit_noise_sd(model.question, budget) * self.price(model, budget.law.ball),
                ball=budget.law.ball,
            )
        return self._forecasts[key]

    def _prior_over_outputs(self, model: Model) -> SparsePrior:
        """Return the Gaussian prior over outputs under which questions are chosen."""
        assert isinstance(model.prior, SparsePrior)
        return model.prior

    def goes_by_spread(self, model: Model) -> bool:
        """Return whether a kernel is learned at so many points that narrow bands can teach it."""
        return has_adjoint(model.prior.kernel)

    def needs_stages(
        self,
        model: Model,
        budget: Budget,
        settings: DesignSettings,
        *,
        known: Release | None = None,
    ) -> bool:
        """Return whether several stages are worth their readings of the table."""
        if known is None:
            return self.forecast(model, budget, settings.query).excess > LITTLE
        forecast = self._forecast_after(known, model, budget, settings)
        return forecast.excess_of_curve > LITTLE_OF_CURVE

    def expected_error(
        self, step: Step, model: Model, settings: DesignSettings, *, known: Release
    ) -> float:
        """Return the root mean squared error of predictions that is expected after a step."""
        assert step.stage is not None
        bands = self._bands(step.stage.width, model, known=known)
        return self._forecast_after(known, model, step.budget, settings, bands=bands).error

    def _forecast_after(
        self,
        known: Release,
        model: Model,
        budget: Budget,
        settings: DesignSettings,
        *,
        bands: RowBands | None = None,
    ) -> RowsForecast:
        """Forecast one more stage, after the answers of a release."""
        prior = known.fitted_prior
        assert isinstance(prior, SparsePrior)
        return forecast_rows(
            self.passes,
            self.summary,
            prior=prior,
            query=settings.query,
            noise_sd=unit_noise_sd(model.question if bands is None else bands, budget)
            * self.price(model, budget.law.ball),
            ball=budget.law.ball,
            known=known.posterior,
            bands=bands,
        )

    def calibrates(self, model: Model, *, average: bool) -> bool:
        """Return whether the distributions that rows are predicted by are those of new outputs."""
        prior = model.prior
        assert isinstance(prior, SparsePrior)
        alone = not average and prior.approximation != "dtc"
        return alone and super().calibrates(model, average=average)

    def design(
        self, step: Step, model: Model, settings: DesignSettings, *, known: Release | None
    ) -> Design:
        """Choose the questions of a step, given earlier answers."""
        if known is None:
            return self._first(step.budget, model, settings)
        if step.calibrates:
            return self._calibration(step, settings, known=known)
        if step.stage is None:
            return self._spread(step.budget, model, settings, known=known)
        return self._later(step.budget, step.stage.width, model, settings, known=known)

    def _first(self, budget: Budget, model: Model, settings: DesignSettings) -> Design:
        prior = model.prior
        assert isinstance(prior, SparsePrior)
        chosen = design_rows(
            self.passes,
            self.summary,
            prior=prior,
            query=settings.query,
            noise_sd=unit_noise_sd(model.question, budget) * self.price(model, budget.law.ball),
            noise=budget.noise,
            criterion=settings.criterion,
            gap=settings.gap,
            together=self.together,
            progress=settings.progress,
        )
        strategy = self._kept(
            chosen, settings.query, budget, prior=prior, sums=[as_kept(prior, chosen.sums)]
        )
        return Design(strategy=strategy, question=model.question)

    def resolve(
        self, release: Release, step: Step | None, model: Model, settings: DesignSettings
    ) -> Release:
        """Return a release with inducing inputs for the kernel that was learned last.

        As it is, where those that there are serve. All that was asked is restated in the new ones.
        A kernel that is no covariance there keeps those that it was learned with.
        """
        located = stages_of(release.measurements, self.number)
        if not self.resolves or not located:
            return release
        declared = release.prior
        fitted = release.fitted_prior if step is None else self._sought(release)
        assert isinstance(fitted, SparsePrior)
        assert isinstance(declared, SparsePrior)
        inducing = resolve(
            fitted,
            self.summary.sample,
            rows=self.rows,
            # Once all is asked, inducing inputs are for what the last stage told.
            noise_sd=located[-1].noise_sd
            if step is None
            else self._answer_noise(step, model, prior=fitted),
            answers=len(settings.query.X),
        )
        if inducing is fitted.inducing:
            return release
        if declared.trend is not None:
            # The last carries the slope of outputs over their public prediction.
            inducing = np.vstack([inducing, declared.inducing[-1:]])
        try:
            return self._restated(release, inducing)
        except (NotPositiveDefiniteError, np.linalg.LinAlgError):
            return release

    def _answer_noise(self, step: Step, model: Model, *, prior: SparsePrior) -> float:
        """Return the noise sd of the answers of a stage, as narrow as its bands will be."""
        assert step.stage is not None
        assert isinstance(model.question, OutputBounds)
        width = model.question.width
        if step.stage.width is not None:
            _, noise = prior.features_and_noise(self.summary.sample[:SPREAD_ROWS])
            width = min(width, 2.0 * step.stage.width * float(np.sqrt(noise.mean())))
        return width * step.budget.unit_sd() * self.price(model, step.budget.law.ball)

    def _restated(self, release: Release, inducing: Array) -> Release:
        """Return a release with sums over rows under its priors on other inducing inputs alone."""
        declared = _on(release.prior, inducing)
        learned = tuple(
            replace(one, prior=declared if one.prior is release.prior else _on(one.prior, inducing))
            for one in release.learned
        )
        priors = [declared, *_others(learned, declared)]
        found = restate(self.passes, priors, measurements=release.measurements)
        measurements = []
        for one in found:
            assert isinstance(one.strategy, StreamedStrategy)
            kept = replace(one.strategy, sums=one.strategy.sums[-len(priors) :])
            measurements.append(replace(one, strategy=kept))
        moved = replace(release, prior=declared, learned=learned, measurements=tuple(measurements))
        _ = moved.posteriors
        return moved

    def _later(
        self,
        budget: Budget,
        width: float | None,
        model: Model,
        settings: DesignSettings,
        *,
        known: Release,
    ) -> Design:
        finely = self._finely(known)
        prior, bands = finely.fitted_prior, self._bands(width, model, known=finely)
        assert isinstance(prior, SparsePrior)
        question: Question = model.question if bands is None else bands
        chosen = design_rows(
            self.passes,
            self.summary,
            prior=prior,
            query=settings.query,
            noise_sd=unit_noise_sd(question, budget) * self.price(model, budget.law.ball),
            noise=budget.noise,
            gap=settings.gap,
            known=finely.posterior,
            bands=bands,
            together=self.together,
            progress=settings.progress,
        )
        asked = (one.strategy for one in stages_of(known.measurements, self.number))
        before = [one for one in asked if isinstance(one, StreamedStrategy)]
        places = _different(before)
        earlier = [before[place] for place in places]
        strategy = self._kept(chosen, settings.query, budget, prior=prior, earlier=earlier)
        priors = _priors(known)
        sums = sum_stage(
            self.passes,
            priors,
            columns=strategy.columns(question),
            bands=bands,
            known=known.measurements,
            table=self.number,
        )
        kept = [as_kept(*each, shared=places) for each in zip(priors, sums, strict=True)]
        return Design(strategy=replace(strategy, sums=tuple(kept)), question=question)

    def _sought(self, known: Release) -> SparsePrior:
        """Return the prior that a stage is designed for: finer where inducing inputs follow."""
        fitted = known.fitted_prior
        assert isinstance(fitted, SparsePrior)
        return finer(fitted) if self.resolves and known.learned else fitted

    def _finely(self, known: Release) -> Release:
        """Return a release by which a stage is designed: as it is if finer is no covariance."""
        prior, declared = self._sought(known), known.prior
        if prior is known.fitted_prior:
            return known
        assert isinstance(declared, SparsePrior)
        own = [under_alone(one, declared) for one in known.measurements]
        try:
            restated = replace(
                known,
                learned=(replace(known.fitted, prior=prior, weight=1.0),),
                measurements=restate(self.passes, [prior], measurements=own),
            )
            _ = restated.posteriors
        except (NotPositiveDefiniteError, np.linalg.LinAlgError):
            return known
        return restated

    def _bands(self, width: float | None, model: Model, *, known: Release) -> RowBands | None:
        """Return the bands to which outputs are clipped; None for the bounds alone."""
        if width is None:
            return None
        assert isinstance(model.question, OutputBounds)
        within = reach_of_bands(model.question, known.measurements)
        return RowBands(prediction=predict_rows(known), reach=width, bounds=(within.lo, within.hi))

    def _spread(
        self, budget: Budget, model: Model, settings: DesignSettings, *, known: Release
    ) -> Design:
        """Ask for the distances of outputs from predictions; with groups, in shares."""
        bounds = model.question
        assert isinstance(bounds, OutputBounds)
        within = reach_of_bands(bounds, known.measurements)
        question = RowSpread(prediction=predict_rows(known), bounds=(within.lo, within.hi))
        strata = choose_strata_of_scatter(self, budget, model.likelihood)
        if strata is not None:
            question = RowScatter(
                prediction=question.prediction,
                bounds=question.bounds,
                centres=strata.cells.centres,
                units=strata.cells.units,
            )
        return self._of_all_alike(question, budget, settings, known=known, strata=strata)

    def _calibration(self, step: Step, settings: DesignSettings, *, known: Release) -> Design:
        """Count outputs in cells of their predicted distributions; with groups, in shares."""
        prediction, output = predict_rows(known), self._which(step.output)
        inputs = self.summary.sample
        if output is not None:
            inputs = inputs[inputs[:, -1] == output]
        sample = prediction.predicted(*prediction.known(inputs))[0]
        noise = noise_share(step.budget, rows=self.counted, largest_group=self.most_counted)
        strata, middles, shares = choose_strata(sample, noise=noise)
        question = RowCalibration(
            prediction=prediction,
            cells=choose_cells(noise),
            strata=strata,
            middles=middles,
            sizes=shares * self.counted,
        )
        asked = self._of_all_alike(question, step.budget, settings, known=known)
        if output is None:
            return asked
        assert isinstance(asked.strategy, StreamedStrategy)
        return replace(asked, strategy=self._of_one_output(asked.strategy, output))

    def _of_all_alike(
        self,
        question: RowQuestion,
        budget: Budget,
        settings: DesignSettings,
        *,
        known: Release,
        strata: Strata | None = None,
    ) -> Design:
        """Return one question about all rows alike, or about those of each stratum."""
        prior = known.fitted_prior
        assert isinstance(prior, SparsePrior)
        rule, grouping = _equal_rule(prior), None
        if isinstance(self.passes, GroupedPasses):
            [sums], grouping = sum_grouped(
                self.passes, [prior], model=question, rule=rule, ball=budget.law.ball
            )
        else:
            sums = self._sums_of_all_alike(known.measurements[0].strategy)
        chosen = ChosenRule(
            rule=rule,
            sums=sums,
            certificate=Certificate(criterion="given", gap=np.inf),
            reconstruction=None,
            grouping=grouping,
        )
        declared = known.prior
        assert isinstance(declared, SparsePrior)
        strategy = self._kept(
            chosen, settings.query, budget, prior=prior, sums=[says_nothing(declared, 1)]
        )
        if strata is not None:
            strategy = _by_strata(strategy, strata, prior=prior, declared=declared)
        return Design(strategy=strategy, question=question)

    def _sums_of_all_alike(self, first: Strategy) -> StrategySums:
        """Return the sums of a question about all rows alike, by the first about these rows."""
        assert isinstance(first, StreamedStrategy)
        return StrategySums(
            features=np.zeros((1, len(first.prior.inducing))),
            noise=np.zeros((1, 1)),
            totals=np.array([float(first.rows)]),
            count=first.rows,
            chunk_rows=first.chunk_rows,
            # All entries of a row are in the one question.
            longest=float(self.together),
        )

    def _kept(
        self,
        chosen: ChosenRule,
        query: Query,
        budget: Budget,
        *,
        prior: SparsePrior,
        sums: Sequence[PriorSums] = (),
        earlier: Sequence[StreamedStrategy] = (),
    ) -> StreamedStrategy:
        """Return the kept strategy: the rule, and sums over rows."""
        return StreamedStrategy(
            prior=prior,
            rule=chosen.rule,
            sums=tuple(sums),
            row_totals=chosen.sums.totals,
            rows=chosen.sums.count,
            chunk_rows=chosen.sums.chunk_rows,
            longest=chosen.sums.longest,
            input_ranges=self.summary.ranges,
            X_query=query.X,
            query_weights=query_weights(query),
            reconstruction=chosen.reconstruction,
            certificate=chosen.certificate,
            table=self.number,
            earlier=tuple(one.digest for one in earlier),
            grouping=chosen.grouping,
            ball=budget.law.ball,
            together=self.together,
        )

    def ask(
        self,
        design: Design,
        y: Rows | GroupedRows,
        budget: Budget,
        *,
        after_answers: bool,
        insecure_seed: int | None,
    ) -> Measurement:
        """Put a design to the outputs in one pass, under (ε, δ)-differential privacy."""
        strategy = design.strategy
        assert isinstance(strategy, StreamedStrategy)
        # Columns in the ℓ1 ball have a single entry each, as long in one norm as in another.
        bound = StrategyBound(
            answers=strategy.n_answers,
            longest=strategy.longest,
            chunk_rows=strategy.chunk_rows,
            count=strategy.rows,
            noise=NOISES[budget.noise],
            together=strategy.together,
        )
        if strategy.grouping is not None:
            grouping = strategy.grouping
            bound = replace(
                bound,
                group_rows=grouping.most_rows,
                chunks=grouping.chunks,
                places=grouping.places,
            )
        answers = ask_chunks(
            as_asked(self._convert_outputs(y)),
            strategy.columns(design.question),
            bound=bound,
            question=design.question,
            epsilon=budget.epsilon,
            delta=budget.delta,
            after_answers=after_answers,
            decides=design.decides,
            insecure_seed=insecure_seed,
        )
        return Measurement(strategy=strategy, question=design.question, answers=answers)

    def _convert_outputs(self, y: Rows | GroupedRows) -> Rows | GroupedRows:
        """Return rows with private outputs as they are asked."""
        return y

    def _convert_counted_outputs(self, y: Rows | GroupedRows) -> Rows | GroupedRows:
        """Return rows with private outputs as they are counted, in the units of their bounds."""
        return y

    def _which(self, output: int) -> int | None:
        """Return which output alone is counted, of several; None if there is one."""
        del output
        return None

    def count(
        self,
        question: CountQuestion | OutsideQuestion,
        y: Rows | GroupedRows,
        budget: Budget,
        *,
        output: int,
        insecure_seed: int | None,
        strata: Strata | None = None,
    ) -> Answers:
        """Count an output of every row, by strata if given, under (ε, δ)-differential privacy."""
        # Every chunk has at most all rows, and there are at most as many chunks as rows.
        bound = StrategyBound(
            answers=1 if strata is None else len(strata.sizes),
            longest=1.0,
            chunk_rows=self.rows,
            count=self.rows,
            noise=NOISES[budget.noise],
            together=self.together,
        )
        if isinstance(self.passes, GroupedRows):
            most = int(self.passes.counts.max())
            bound = replace(
                bound,
                longest=sum_of_shares(most),
                group_rows=most,
                chunks=self.rows,
                places=self.passes.places,
            )
        return ask_chunks(
            as_asked(self._convert_counted_outputs(y)),
            self._shares(output, None if strata is None else strata.cells),
            bound=bound,
            question=question,
            epsilon=budget.epsilon,
            delta=budget.delta,
            insecure_seed=insecure_seed,
        )

    def _shares(self, output: int, cells: Partition | None) -> EqualShares:
        return EqualShares(grouped=self.grouped, output=self._which(output), strata=cells)

    def strata(self, count: int, *, output: int = 0) -> Strata:
        """Return up to a number of strata of similar inputs, after a pass that counts; public."""
        cells = self._cells(count, output=output)
        asked = self._shares(output, cells)
        sums = sum_columns(self.passes, asked, what="looking at groups of inputs")
        return Strata(cells=cells, sizes=sums.totals)

    def _cells(self, count: int, *, output: int) -> Partition:
        """Return up to a number of cells of similar inputs."""
        del output
        return Partition(centres=self.summary.centres(count)[0], units=self.summary.units)

    def measure_counts(
        self, counts: Sequence[Count], *, first: Strategy
    ) -> tuple[Measurement, ...]:
        """Return counts as measurements of a release; they are not about single outputs."""
        assert isinstance(first, StreamedStrategy)
        strategy = replace(
            first,
            rule=_equal_rule(first.prior),
            sums=(says_nothing(first.prior, 1),),
            reconstruction=None,
            certificate=Certificate(criterion="given", gap=np.inf),
        )

        def counted(one: Count) -> StreamedStrategy:
            which = self._of_one_output(strategy, self._which(one.output))
            if one.strata is None:
                return which
            return _by_strata(which, one.strata, prior=first.prior, declared=first.prior)

        return tuple(
            Measurement(strategy=counted(one), question=self._in_units(one), answers=one.answers)
            for one in counts
        )

    def _of_one_output(self, strategy: StreamedStrategy, output: int | None) -> StreamedStrategy:
        """Return a question about all rows alike as one about their entries of one output."""
        grouping, rows = strategy.grouping, strategy.n_rows // self.together
        return replace(
            strategy,
            row_totals=np.array([float(rows if grouping is None else grouping.groups)]),
            longest=1.0 if grouping is None else sum_of_shares(grouping.most_rows),
            output=output,
        )

    def _in_units(self, count: Count) -> CountQuestion | OutsideQuestion:
        """Return the question of a count in the units of the other questions."""
        return count.question

    def learn(
        self,
        release: Release,
        asked: Sequence[tuple[Design, Measurement]],
        *,
        hyperprior: Hyperprior | None,
        average: bool,
    ) -> Release:
        """Return a release with hyperparameters fitted to its answers, in more passes if they move.

        Values under which the answers have no covariance that float64 can hold are set aside.
        """
        del asked
        found = self._learn(release, hyperprior=hyperprior, average=average)
        if not found.learned:
            return found
        try:
            _ = found.posteriors
        except np.linalg.LinAlgError:
            return self._learn(release, hyperprior=None, average=average)
        return found

    def _learn(self, release: Release, *, hyperprior: Hyperprior | None, average: bool) -> Release:
        prior = release.prior
        assert isinstance(prior, SparsePrior)
        *earlier, last = [under_alone(one, prior) for one in release.measurements]
        declared = (*earlier, last)
        before = release.fitted_prior if any(one.about_spread for one in earlier) else None
        known, release = release, replace(release, learned=(), measurements=declared)
        stages = stages_of(known.measurements, self.number)
        if hyperprior is None or not stages or not all(one.noise_sd > 0 for one in stages):
            return release
        stated: tuple[Measurement, ...] | None = None
        if before is not None and known.learned and last.about_spread:
            # Nothing new is known of where outputs are.
            learned, stated = known.learned, known.measurements
        else:
            free = hyperprior.noise_variance and before is None and not last.about_spread
            learned, stated = self._learn_curve(
                release,
                known,
                # Sums of outputs say little of their noise: where that was asked, it is not free.
                hyperprior=replace(hyperprior, noise_variance=free),
                average=average,
                noisy=before,
            )
        if last.about_spread:
            learned = self._learn_noise(
                learned, release, known, hyperprior=hyperprior, average=average, before=before
            )
            stated = None
        if stated is None:
            stated = restate(self.passes, _others(learned, prior), measurements=declared)
        return replace(release, learned=learned, measurements=stated)

    def _learn_noise(
        self,
        learned: tuple[WeightedPrior, ...],
        release: Release,
        known: Release,
        *,
        hyperprior: Hyperprior,
        average: bool,
        before: ExactPrior | SparsePrior | None,
    ) -> tuple[WeightedPrior, ...]:
        """Return what was learned with the noise that the last answers tell, where they allow it.

        Sums of outputs hardly tell a curve of very short lengthscales from noise of each row; how
        far outputs scatter does. Where that is less than was learned, what is learned with normal
        tails is held against it.

        Parameters
        ----------
        learned : tuple of WeightedPrior
        release, known, hyperprior, average
            As for `_learn_curve`.
        before : ExactPrior or SparsePrior or None
            With the noise that an earlier such answer told.
        """
        tell = partial(
            tell_noise_of_rows,
            rows=self.passes,
            release=release,
            sample=self._spread_sample(),
            before=before,
        )
        told = tell(learned)
        if told.excess <= REFUTED or len(stages_of(known.measurements, self.number)) == 1:
            return told.priors
        prior = release.prior
        noisy = None if before is None else _with_noise_of(prior, before)
        stated = release.measurements
        if noisy is not None:
            stated = restate(self.passes, [noisy], measurements=stated)
        less, _ = self._learn_curve(
            release,
            replace(known, learned=(), measurements=stated),
            hyperprior=replace(hyperprior, noise_variance=False),
            average=average,
            noisy=noisy,
            tails=(np.inf,),
        )
        return max(told, tell(less), key=lambda one: one.log_density).priors

    def _learn_curve(
        self,
        release: Release,
        known: Release,
        *,
        hyperprior: Hyperprior,
        average: bool,
        noisy: ExactPrior | SparsePrior | None,
        tails: Sequence[float] = (DEGREES_IN_PASSES, np.inf),
    ) -> tuple[tuple[WeightedPrior, ...], tuple[Measurement, ...] | None]:
        """Return what is learned of the curve, and answers with sums under it, if there are.

        Parameters
        ----------
        release : Release
            With sums under the declared prior alone.
        known : Release
            With what was learned before the last answers, and sums under that, too.
        hyperprior : Hyperprior
        average : bool
        noisy : ExactPrior or SparsePrior or None
            With the noise of outputs, if that is known.
        tails : sequence of float
            Degrees of freedom of weak priors that are tried after several stages.
        """
        prior, bounds = release.prior, release.measurements[0].question
        assert isinstance(prior, SparsePrior)
        assert isinstance(bounds, OutputBounds)
        # Inducing inputs that were chosen for a kernel do not serve to learn another, and are more.
        first = release.measurements[0].strategy
        assert isinstance(first, StreamedStrategy)
        located = stages_of(release.measurements, self.number)
        trends: list[Array] = []
        if prior.trend is not None:
            trends = [one.strategy.trend_answers(prior) for one in located]
        scatter, found = None, []
        if noisy is not None:
            assert isinstance(noisy, SparsePrior)
            scatter = noisy.scatter
        # Where noise was asked, the bands are narrow: how answers depend on outputs is told by what
        # was known when they were chosen.
        told = prior if noisy is None else noisy
        gathered, cells = self._gather(known, told)
        slow = not has_adjoint(prior.kernel)
        for declared in alternatives(prior if noisy is None else _with_noise_of(prior, noisy)):
            coarse = (
                _on(declared, first.prior.inducing)
                if slow
                else ExactPrior(
                    kernel=declared.kernel,
                    noise_variance=declared.noise_variance,
                    mean=declared.mean,
                    trend=declared.trend,
                )
            )
            answers = gather_sums(
                list(zip(gathered.stages, located, strict=True)),
                mean=told.mean,
                points=cells.means,
                counts=gathered.counts,
                variances=None if slow else cells.variances,
                trends=trends,
                detrended=declared.trend is not None,
            )
            # Rows are moved to points in learning: how noise differs between them comes after.
            other = declared if scatter is None else replace(declared, scatter=scatter)
            maxima: list[tuple[WeightedPrior, ...]] = []
            # What one stage tells is too little to go by that is far from what was declared.
            for each in tails if len(located) > 1 else (np.inf,):
                learned = learn_numbers(
                    coarse,
                    answers,
                    bounds=(bounds.lo, bounds.hi),
                    hyperprior=hyperprior,
                    average=average,
                    degrees=each,
                )
                if not any(_near(learned, one) for one in maxima):
                    maxima.append(learned)
            placed = [
                tuple(
                    replace(
                        one,
                        prior=other if one.prior is coarse else _with_values(other, one.prior),
                    )
                    for one in learned
                )
                for learned in maxima
            ]
            found.append((WeightedPrior(prior=other, likelihood=NUMBERS, weight=1.0), placed))
        if noisy is not None and len(found) == len(known.learned) == 1:
            # What was learned before, with the noise that is known, stays if it is as probable.
            found = [(replace(known.learned[0], prior=noisy), found[0][1])]
        confirms = self.rows > self._most_cells(prior.kernel)
        if confirms or len(found) > 1 or len(found[0][1]) > 1:
            return self._weigh(found, release, confirms=confirms)
        return found[0][1][0], None

    def _weigh(
        self,
        found: Sequence[tuple[WeightedPrior, Sequence[tuple[WeightedPrior, ...]]]],
        release: Release,
        *,
        confirms: bool,
    ) -> tuple[tuple[WeightedPrior, ...], tuple[Measurement, ...]]:
        """Return what holds of what was learned, weighed, and answers with sums under it.

        Parameters
        ----------
        found : sequence of pairs
            What was declared, but for noise that is known, first, and its alternatives, or what was
            learned before, with what was learned from each, by different weak priors.
        release : Release
            With sums under the declared prior alone.
        confirms : bool
            Whether learning moved rows, so that it counts where it holds with all at their places.
        """
        prior = release.prior
        assert isinstance(prior, SparsePrior)
        tried = [one for _, maxima in found for learned in maxima for one in learned]
        if confirms:
            tried += [other for other, _ in found]
        stated = restate(self.passes, _others(tried, prior), measurements=release.measurements)
        evidence = partial(linear_log_evidence, measurements=stated)
        chosen = []
        for other, maxima in found:
            learned = likeliest(maxima, log_evidence=evidence)
            if confirms:
                learned = confirmed(learned, declared=other, log_evidence=evidence)
            chosen.append(learned)
        learned = chosen[0] if len(chosen) == 1 else weigh(chosen, log_evidence=evidence)
        kept = [prior, *_others(learned, prior)]
        return learned, tuple(under_these(one, kept) for one in stated)

    def _gather(self, release: Release, prior: SparsePrior) -> tuple[GatheredCells, InputCells]:
        """Return what was asked of the rows of cells, and their inputs, in a pass.

        Within the answers of the last stage where each row is in one: what it asked is then asked
        of whole cells. (Not of several outputs, which would be mixed in these.)

        Parameters
        ----------
        release : Release
            With sums under the prior.
        prior : SparsePrior
            Under which outputs in bands are linearised.
        """
        last = stages_of(release.measurements, self.number)[-1]
        assert isinstance(last.strategy, StreamedStrategy)
        cells: Partition | CellsOfAnswers
        most = self._most_cells(prior.kernel)
        whole = has_adjoint(prior.kernel) and self.together == 1
        if whole and last.strategy.in_parts and self.rows > most:
            sample = self.summary.sample[:PLACED_ROWS]
            asked = last.strategy.columns(last.question).summable_columns(sample)
            assert isinstance(asked, sparse.csr_array)
            cells = CellsOfAnswers.of(sample, asked, units=self.summary.units, most=LEARNING_CELLS)
        else:
            cells = self.cells_for(prior.kernel)
        origin = self.summary.sample.mean(axis=0)
        found = gather_cells(
            self.passes,
            prior,
            measurements=release.measurements,
            table=self.number,
            cells=cells,
            origin=origin,
        )
        return found, found.inputs(origin)

    def _spread_sample(self) -> InputRows | None:
        """Return some rows that tell how far outputs are expected to scatter; None for all.

        With groups, rows weigh by how many there are of each, which a sample does not know.
        """
        if self.grouped or self.rows <= SPREAD_ROWS:
            return None
        return InputRows(self.summary.sample[:SPREAD_ROWS])

    def finish(self, release: Release) -> Release:
        """Return the release, and free the memory of what was found of rows."""
        for measurement in release.measurements:
            if isinstance(measurement.strategy, StreamedStrategy):
                measurement.strategy.columns(measurement.question).forget()
        return super().finish(release)


NO_COLUMNS = OutputColumns(bounds=())


@dataclass(frozen=True, eq=False, repr=False)
class EntryTable(RowTable):
    """A table of several private columns in chunks: each output of a row is an entry of its own.

    As `cloakgp.fitting.held.HeldEntries`: entries are in widths from the middle of their intervals,
    and all entries of one row are protected together, or of one group.

    Attributes
    ----------
    columns : OutputColumns
        Declared.
    intervals : OutputColumns or None
        Found; None if nothing was looked for.
    """

    columns: OutputColumns = NO_COLUMNS
    intervals: OutputColumns | None = None

    @classmethod
    def of_columns(cls, rows: Rows, *, columns: OutputColumns, summary: Summary) -> Self:
        """Return the entries of a table, after a pass that counts the rows of groups, if any.

        Parameters
        ----------
        rows : Rows
            With as many private columns.
        columns : OutputColumns
        summary : Summary
            Of the rows.

        Raises
        ------
        ValueError
            If they have another number of private columns.
        """
        entries = EntryRows.of(rows, columns)
        passes: Rows | GroupedRows = entries
        if entries.grouped:
            passes = GroupedRows.of(entries, together=entries.together)
        return cls(
            passes=passes,
            summary=EntrySummary.of(summary, count=entries.together),
            input_names=entries.input_names,
            output_name=entries.output_name,
            columns=columns,
        )

    @property
    def outputs(self) -> int:
        """T."""
        return len(self.columns.bounds)

    @property
    def together(self) -> int:
        """T."""
        return len(self.columns.bounds)

    @property
    def counted(self) -> int:
        """The rows; with groups, the numbers that groups have."""
        return super().counted if self.grouped else self.rows // self.outputs

    def price(self, model: Model, ball: Ball) -> float:
        """Return the effect on answers of a row whose entries all have columns of norm 1.

        In the ℓ1 norm T. In the ℓ2 norm columns of entries are taken to be as alike as the entries
        are: √T for independent outputs, and T for those that are one.
        """
        kernel = model.prior.kernel
        assert isinstance(kernel, CoregionKernel)
        coregion = np.asarray(kernel.coregion, dtype=np.float64)
        sds = np.sqrt(np.diag(coregion))
        if ball == "l1" or not (sds > 0).all():
            return float(self.outputs)
        return float(np.sqrt(np.abs(coregion / sds[:, None] / sds).sum()))

    def within(self, found: Sequence[OutputBounds]) -> EntryTable:
        """Return the table with entries in widths from the middles of the found intervals."""
        return replace(self, intervals=OutputColumns(bounds=tuple(found)), _forecasts={})

    @property
    def units(self) -> OutputColumns:
        """The bounds whose middles and widths are origin and unit of entries."""
        return self.columns if self.intervals is None else self.intervals

    def _convert_outputs(self, y: Rows | GroupedRows) -> Rows | GroupedRows:
        return _change_units(y, self.units)

    def _convert_counted_outputs(self, y: Rows | GroupedRows) -> Rows | GroupedRows:
        return _change_units(y, None)

    def _which(self, output: int) -> int:
        return output

    def _in_units(self, count: Count) -> CountQuestion | OutsideQuestion:
        return count.question.in_units(self.units.bounds[count.output])

    def _cells(self, count: int, *, output: int) -> Partition:
        assert isinstance(self.summary, EntrySummary)
        rows = self.summary.by_row
        return cells_of_output(Partition(rows.centres(count)[0], rows.units), output)


def _change_units(y: Rows | GroupedRows, units: OutputColumns | None) -> Rows | GroupedRows:
    """Return the entries of rows in widths from the middles of some bounds, or as they are."""
    if isinstance(y, GroupedRows):
        return replace(y, passes=_change_units(y.passes, units))
    assert isinstance(y, EntryRows)
    return y.with_units(units)


@dataclass(frozen=True, eq=False, repr=False)
class LabelTable(RowTable):
    """A table of labels in chunks: answers about them are linearised while rows are there."""

    def check_stages(self, stages: Sequence[Stage], model: Model) -> None:
        """Refuse several stages: see `cloakgp.fitting.refusals`."""
        super().check_stages(stages, model)
        if len(stages) > 1:
            refuse("stages of labels in passes")

    criterion: str = "bayes"

    def _prior_over_outputs(self, model: Model) -> SparsePrior:
        criterion = criterion_named(self.criterion, use="classes")
        linear = criterion.prior_over_outputs(model.prior, model.likelihood, self.summary.sample)
        assert isinstance(linear, SparsePrior)
        return linear

    def _first(self, budget: Budget, model: Model, settings: DesignSettings) -> Design:
        linear = replace(self, criterion=settings.criterion)._prior_over_outputs(model)
        chosen = design_rows(
            self.passes,
            self.summary,
            prior=linear,
            query=settings.query,
            noise_sd=unit_noise_sd(model.question, budget),
            noise=budget.noise,
            criterion=settings.criterion,
            gap=settings.gap,
            progress=settings.progress,
        )
        grouped = chosen.grouping is not None
        sampled = 0 if grouped else min(LABEL_SAMPLE, self.rows // SAMPLED_ONE_IN + 1)
        cells = condense(
            self.passes,
            model=linear,
            rule=chosen.rule,
            cells=Partition(centres=self.summary.centres(LABEL_CELLS)[0], units=self.summary.units),
            sample=self.summary.sample[:sampled] if sampled else None,
        )
        strategy = self._kept(chosen, settings.query, budget, prior=linear)
        return Design(strategy=strategy, question=model.question, cells=cells)

    def learn(
        self,
        release: Release,
        asked: Sequence[tuple[Design, Measurement]],
        *,
        hyperprior: Hyperprior | None,
        average: bool,
    ) -> Release:
        """Return a release with labels linearised, under hyperparameters fitted to its answers."""
        [(design, measurement)] = asked
        strategy, classes = measurement.strategy, measurement.question
        prior, likelihood = release.prior, release.likelihood
        assert isinstance(strategy, StreamedStrategy)
        assert isinstance(classes, Classes)
        assert isinstance(likelihood, ClassLikelihood)
        assert design.cells is not None
        signs = CellSigns.of(design.cells, measurement.answers, classes=classes)
        learned: tuple[WeightedPrior, ...] = ()
        if hyperprior is not None:
            learned = learn_classes(
                prior, likelihood, signs, hyperprior=hyperprior, average=average
            )
        priors = learned or (WeightedPrior(prior=prior, likelihood=likelihood, weight=1.0),)
        sums = label_sums(
            self.passes, signs, model=strategy.prior, rule=strategy.rule, priors=priors
        )
        kept = []
        for each, channels in zip(priors, sums, strict=True):
            assert isinstance(each.prior, SparsePrior)
            # In the units of the answers, as strategies keep them.
            scale = signs.noise_sd
            parts = tuple(
                ChannelSums(
                    features=one.features * scale,
                    noise=one.noise * scale**2,
                    offset=one.offset * scale,
                )
                for one in channels
            )
            kept.append(PriorSums(prior=each.prior, likelihood=each.likelihood, channels=parts))
        stated = replace(measurement, strategy=replace(strategy, sums=tuple(kept)))
        return replace(release, learned=learned, measurements=(stated,))


def predict_rows(release: Release) -> RowPrediction:
    """Return the prediction of a release for the output of a row, by its inputs.

    Parameters
    ----------
    release : Release
        About numbers, with a sparse prior.
    """
    known = release.posterior
    assert isinstance(known.prior, SparsePrior)
    return RowPrediction(prior=known.prior, mean=known.inducing_mean(), root=known.inducing_root())


@dataclass(frozen=True)
class ToldNoise:
    """What answers about the spread of outputs tell.

    Attributes
    ----------
    priors : tuple of WeightedPrior
        With the noise that is expected after them.
    log_density : float
        Of all answers.
    excess : float
        By how many of their sds outputs scatter less than is expected with that noise.
    """

    priors: tuple[WeightedPrior, ...]
    log_density: float
    excess: float


def tell_noise_of_rows(
    priors: Sequence[WeightedPrior],
    rows: Passes,
    *,
    release: Release,
    sample: Passes | None = None,
    before: ExactPrior | SparsePrior | None = None,
) -> ToldNoise:
    """Return priors with the noise that is expected after the answers, and how that fits these.

    As `cloakgp.release.hyperparameters.noise.with_learned_noise`, or, by strata,
    `cloakgp.release.hyperparameters.scatter.with_learned_scatter`, for rows that are not kept: the
    noise is tried at a few values, all of them in the same passes.

    Parameters
    ----------
    priors : sequence of WeightedPrior
        Their noise is changed by the factor that suits the one of most weight.
    rows : Passes
    release : Release
        The last measurement is about the spread of outputs.
    sample : Passes, optional
        Over some of the rows, by which the answer is expected where each part of it has enough.
    before : ExactPrior or SparsePrior, optional
        With the noise that an earlier such answer told: tried first is what lies near that.
    """
    declared = release.prior
    assert isinstance(declared, SparsePrior)
    question = release.measurements[-1].question
    noisy = [replace(one, prior=_with_noise_of(one.prior, declared)) for one in priors]
    tried = [noise_positions()]
    if before is not None:
        tried.insert(0, positions_around(position_of_noise(before, declared=declared)))
    for positions in tried:
        by_noise = _answers_by_noise(
            noisy, rows, release=release, sample=sample, positions=positions
        )
        if isinstance(question, RowScatter):
            bumps = Bumps.around([(question.centres, question.units)])
            found = with_noise_in_strata(noisy, by_noise, bumps=bumps)
        else:
            position = expected_position(by_noise)
            found = tuple(replace(one, prior=scaled_noise(one.prior, position)) for one in noisy)
        place = position_of_noise(found[0].prior, declared=declared)
        if positions[0] + NEAR_END < place < positions[-1] - NEAR_END:
            break
    return ToldNoise(priors=found, log_density=by_noise.log_density, excess=by_noise.excess(place))


def _answers_by_noise(
    priors: Sequence[WeightedPrior],
    rows: Passes,
    *,
    release: Release,
    sample: Passes | None,
    positions: Array,
) -> AnswersByNoise:
    """Return what is expected of the last answer, and how probable others are, by the noise."""
    main, declared = weightiest(priors).prior, release.prior
    assert isinstance(declared, SparsePrior)
    *known, last = release.measurements
    strategy = last.strategy
    assert isinstance(strategy, StreamedStrategy)
    assert isinstance(last.question, RowSpread)
    candidates = []
    for position in positions.tolist():
        candidate = scaled_noise(main, position)
        assert isinstance(candidate, SparsePrior)
        candidates.append(candidate)
    stated = restate(rows, candidates, measurements=[under_alone(one, declared) for one in known])
    expect = partial(
        sum_spread,
        priors=candidates,
        columns=strategy.columns(last.question),
        spread=last.question,
        known=stated,
        table=strategy.table,
    )
    sums = expect(rows if sample is None else sample)
    if sample is not None:
        enough = (sums.totals >= FEWEST_SAMPLED).all()
        sums = sums.over_all(strategy.row_totals) if enough else expect(rows)
    return AnswersByNoise.at_all(
        np.array([linear_log_evidence(one, stated) for one in candidates]),
        positions=positions,
        values=last.answers.values[:, 0],
        expected=sums.expected,
        variance=sums.scatter + last.noise_sd**2,
    )


def _near(learned: Sequence[WeightedPrior], other: Sequence[WeightedPrior]) -> bool:
    """Return whether two maxima are one, by the kernels of their main parts."""
    one, another = (weightiest(each).prior for each in (learned, other))
    # A hyperparameter of zero has an infinite logarithm, and stays.
    with np.errstate(divide="ignore"):
        thetas = one.kernel.theta, another.kernel.theta
    return bool(np.allclose(thetas[0], thetas[1], rtol=0.0, atol=SAME_MAXIMUM))


def _with_noise_of(prior: ExactPrior | SparsePrior, other: ExactPrior | SparsePrior) -> SparsePrior:
    """Return a prior with the mean noise of another, alike for all rows."""
    assert isinstance(prior, SparsePrior)
    return replace(prior, noise_variance=other.noise_variance, scatter=None)


def _with_values(prior: ExactPrior | SparsePrior, learned: ExactPrior | SparsePrior) -> SparsePrior:
    """Return a prior with the hyperparameters of another."""
    assert isinstance(prior, SparsePrior)
    return replace(
        prior,
        kernel=learned.kernel,
        noise_variance=learned.noise_variance,
        mean=learned.mean,
    )


def _on(prior: ExactPrior | SparsePrior, inducing: Array) -> SparsePrior:
    assert isinstance(prior, SparsePrior)
    return replace(prior, inducing=inducing)


def _others(learned: Sequence[WeightedPrior], prior: SparsePrior) -> list[SparsePrior]:
    """Return the learned priors other than the declared one, each once."""
    others: list[SparsePrior] = []
    for one in (each.prior for each in learned):
        if isinstance(one, SparsePrior) and not any(one is other for other in (prior, *others)):
            others.append(one)
    return others


def _equal_rule(prior: SparsePrior, *, answers: int = 1) -> EqualRule:
    return EqualRule(matrix=np.zeros((answers, len(prior.inducing))))


def _by_strata(
    strategy: StreamedStrategy, strata: Strata, *, prior: SparsePrior, declared: SparsePrior
) -> StreamedStrategy:
    """Return a question about all rows alike as one about those of each stratum.

    Its longest column is as long: a row is in one stratum.
    """
    apart = len(strata.sizes)
    return replace(
        strategy,
        rule=_equal_rule(prior, answers=apart),
        sums=(says_nothing(declared, apart),),
        row_totals=strata.sizes,
        strata=strata.cells,
    )


def _different(strategies: Sequence[Strategy]) -> list[int]:
    """Return the places of the first of those about the same rows that ask the same."""
    found: list[int] = []
    for place, one in enumerate(strategies):
        if not any(one.same_questions(strategies[other]) for other in found):
            found.append(place)
    return found


def _priors(release: Release) -> list[SparsePrior]:
    """Return the declared prior, and those that were learned, each once."""
    priors: list[SparsePrior] = []
    for one in (release.prior, *(each.prior for each in release.learned)):
        assert isinstance(one, SparsePrior)
        if not any(_alike(other, one) for other in priors):
            priors.append(one)
    return priors


def _alike(one: SparsePrior, other: SparsePrior) -> bool:
    alike = one.mean == other.mean and one.trend == other.trend
    return alike and same_covariance(one, other)


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
