"""A table that is read in passes: no row is kept, only rules and sums over rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol, Self, runtime_checkable

import numpy as np

from cloakgp.criteria import criterion_named
from cloakgp.criteria.base import ChosenRule
from cloakgp.data.entries import EntryRows, GroupedRows, TransformedRows, added_noise, as_asked
from cloakgp.design import Certificate
from cloakgp.design.streaming.binning import Partition
from cloakgp.design.streaming.condensing import condense
from cloakgp.design.streaming.grouping import GroupedPasses, sum_grouped
from cloakgp.design.streaming.rules import EqualRule
from cloakgp.design.streaming.sums import StrategySums
from cloakgp.design.streaming.together import sum_columns
from cloakgp.fitting.bands import Stage, Step, reach_of_bands
from cloakgp.fitting.calibration import choose_cells, choose_strata, noise_share
from cloakgp.fitting.held import HeldTable
from cloakgp.fitting.refusals import refuse
from cloakgp.fitting.resolution import finer, resolve
from cloakgp.fitting.row_forecast import LITTLE, LITTLE_OF_CURVE, RowsForecast, forecast_rows
from cloakgp.fitting.row_learning import SPREAD_ROWS, RowLearning, on_inducing, other_priors
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
    few_of,
)
from cloakgp.models import NotPositiveDefiniteError, SparsePrior
from cloakgp.models.kernels.adjoint import has_adjoint
from cloakgp.models.kernels.coregion import CoregionKernel
from cloakgp.models.likelihoods import ClassLikelihood
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
from cloakgp.release.hyperparameters.learning import (
    learn_classes,
)
from cloakgp.release.posterior.clipped_sums import (
    as_kept,
    restate,
    says_nothing,
    stages_of,
    sum_stage,
    under_alone,
)
from cloakgp.release.posterior.label_sums import CellSigns, label_sums
from cloakgp.release.streamed_strategy import EqualShares, same_covariance
from cloakgp.release.sums import ChannelSums, PriorSums
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import Ball
from cloakgp.utils.passes import Passes

# In which questions about labels are kept: see `cloakgp.design.streaming.condensing`.
LABEL_CELLS = 500
# Rows that say how others differ from the centres of their cells: at most so many, and one in so
# many, as a search over more would cost what it spares.
LABEL_SAMPLE, SAMPLED_ONE_IN = 2**14, 16


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

    def few_rows(self) -> HeldTable:
        """Return a few rows of its sample, each on its own."""
        return HeldTable(X=few_of(self.summary.sample))

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
        declared = on_inducing(release.prior, inducing)
        learned = tuple(
            replace(
                one,
                prior=declared if one.prior is release.prior else on_inducing(one.prior, inducing),
            )
            for one in release.learned
        )
        priors = [declared, *other_priors(learned, declared)]
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

    @cached_property
    def learning(self) -> RowLearning:
        """How its hyperparameters are learned."""
        return RowLearning(
            passes=self.passes,
            summary=self.summary,
            number=self.number,
            grouped=self.grouped,
            together=self.together,
            resolves=self.resolves,
        )

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
        return self.learning.learn(release, hyperprior=hyperprior, average=average)

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
