"""A held table: the release keeps its rows, and the column of each."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloakgp.criteria import criterion_named
from cloakgp.data import InputRows
from cloakgp.data.entries import POSITIVE_EXPOSURE
from cloakgp.design import Certificate
from cloakgp.design.streaming.binning import Partition
from cloakgp.fitting.bands import Step, reach_of_rows
from cloakgp.fitting.calibration import choose_cells, choose_strata, noise_share
from cloakgp.fitting.margins import CELLS, choose_kept
from cloakgp.fitting.refusals import refuse
from cloakgp.fitting.scatter import choose_strata_of_scatter
from cloakgp.fitting.strategies import Budget, choose_strategy, query_shares, unit_noise_sd
from cloakgp.fitting.table import (
    Count,
    Design,
    DesignSettings,
    Model,
    Strata,
    Table,
    cells_of_output,
    design_given,
    few_of,
)
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.kernels.coregion import as_entries
from cloakgp.models.likelihoods import CountLikelihood, Linearisation, QuantileLikelihood
from cloakgp.models.likelihoods.quantiles import quantile_likelihood
from cloakgp.models.summary import summarise
from cloakgp.models.transforms import OutputTransform
from cloakgp.privacy import Answers, Guarantee, OutputBounds
from cloakgp.privacy.ask import ask
from cloakgp.privacy.entries import read_outputs
from cloakgp.privacy.groups import Groups, checked_groups
from cloakgp.privacy.questions.bands import UNIT_INTERVAL
from cloakgp.privacy.questions.base import Question
from cloakgp.privacy.questions.calibration import CalibrationQuestion
from cloakgp.privacy.questions.counts import CountQuestion
from cloakgp.privacy.questions.margins import MarginQuestion
from cloakgp.privacy.questions.outside import OutsideQuestion
from cloakgp.privacy.questions.quantiles import QuantileQuestion
from cloakgp.privacy.questions.scatter import ScatterQuestion
from cloakgp.privacy.questions.spread import SpreadQuestion
from cloakgp.privacy.several_outputs import OutputColumns
from cloakgp.privacy.transforms import transform_outputs
from cloakgp.release import DenseStrategy, Measurement, Release, Strategy
from cloakgp.release.bands import account_in_bands, choose_bands, window_of
from cloakgp.release.posterior.dense import Posterior
from cloakgp.release.posterior.mixture import Inference, answered_tables
from cloakgp.release.posterior.quantiles import quantile_posteriors
from cloakgp.utils.arrays import Array


@dataclass(frozen=True, eq=False)
class HeldTable(Table):
    """The rows of a table of one private column, by their public inputs.

    Attributes
    ----------
    X : array of shape (N, D)
        Public inputs.
    groups : array of shape (N,) or None
        Public: which group each row belongs to. All rows of one group are protected together.
        None also where every person has one row.
    named : bool
        Whether it was said whose each row is.
    number : int
        Of the table, in the release.
    input_names, output_name
        Names of the columns.
    transform : OutputTransform or None
        Applied to outputs before they are asked.
    chosen : array of shape (N',) or None
        Whose rows these are, of a table from which some were kept out: true for N of its rows.
        Private outputs are those of the whole table.
    exposure : array of shape (N,) or None
        Public: of counts, how much of whatever they are counted in each row had.
    """

    X: Array
    groups: Groups | None = None
    exposure: Array | None = None
    number: int = 0
    input_names: tuple[str, ...] = ()
    output_name: str = "y"
    transform: OutputTransform | None = None
    chosen: NDArray[np.bool_] | None = None
    inference: Inference = "iterated"
    named: bool = False

    @classmethod
    def of(
        cls,
        X: Array,
        *,
        groups: Iterable[Hashable] | None = None,
        exposure: ArrayLike | None = None,
        transform: OutputTransform | None = None,
        input_names: Sequence[str] = (),
        output_name: str = "y",
    ) -> HeldTable:
        """Return a table, after checking its groups and exposures.

        Parameters
        ----------
        X
        groups : iterable of N texts or whole numbers, optional
            Whose row it is.
        exposure : array-like of shape (N,), optional
        transform : OutputTransform, optional
            Applied to outputs first.
        input_names, output_name
        """
        return cls(
            X=X,
            groups=checked_groups(groups, rows=len(X)),
            named=groups is not None,
            exposure=checked_exposure(exposure, rows=len(X)),
            input_names=tuple(input_names),
            output_name=output_name,
            transform=transform,
        )

    @property
    def rows(self) -> int:
        """N."""
        return len(self.X)

    @property
    def counted(self) -> int:
        """N."""
        return len(self.X)

    @property
    def grouped(self) -> bool:
        """Whether all rows of one group are protected together."""
        return self.groups is not None

    @property
    def by_person(self) -> bool:
        """Whether it is said whose each row is."""
        return self.named or self.grouped

    @property
    def most_counted(self) -> int:
        """The most rows of one group."""
        return 1 if self.groups is None else int(np.bincount(self.groups).max())

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
        if isinstance(model.likelihood, QuantileLikelihood):
            return self._of_quantiles(step.budget, model, settings, known=known)
        if model.likelihood.windowed:
            return self._of_counts(step.budget, step.stage.width, model, settings, known=known)
        if not model.likelihood.linear:
            return self._again(step.budget, model, settings, known=known)
        return self._in_bands(step.budget, step.stage.width, model, settings, known=known)

    def few_rows(self) -> HeldTable:
        """Return a few of its rows, each on its own."""
        exposure = None if self.exposure is None else few_of(self.exposure)
        return HeldTable(X=few_of(self.X), exposure=exposure)

    def _first(self, budget: Budget, model: Model, settings: DesignSettings) -> Design:
        if isinstance(model.likelihood, QuantileLikelihood):
            return self._of_quantiles(budget, model, settings, known=None)
        if model.likelihood.windowed:
            return self._of_counts(budget, None, model, settings, known=None)
        strategy = choose_strategy(
            self.X,
            prior=model.prior,
            likelihood=model.likelihood,
            question=model.question,
            query=settings.query,
            budget=budget,
            criterion=settings.criterion,
            groups=self.groups,
            gap=settings.gap,
            table=self.number,
            progress=settings.progress,
        )
        expected = None
        if isinstance(model.question, OutputBounds):
            expected = model.prior.means(self.X) - model.question.middle
        return Design(strategy=strategy, question=model.question, expected=expected)

    def _again(
        self, budget: Budget, model: Model, settings: DesignSettings, *, known: Release
    ) -> Design:
        """Ask labels again, given the Gaussian posterior over them."""
        strategy = choose_strategy(
            self.X,
            prior=known.fitted.prior,
            likelihood=known.fitted.likelihood,
            question=model.question,
            query=settings.query,
            budget=budget,
            gap=settings.gap,
            known=known_labels(known, self.X),
            table=self.number,
            groups=self.groups,
            progress=settings.progress,
        )
        return Design(strategy=strategy, question=model.question)

    def _in_bands(
        self,
        budget: Budget,
        width: float | None,
        model: Model,
        settings: DesignSettings,
        *,
        known: Release,
    ) -> Design:
        bounds, question = model.question, model.question
        assert isinstance(bounds, OutputBounds)
        posterior = known.posterior
        mean, variance = posterior.outputs(self.X, table=self.number)
        account, expected = None, mean - bounds.middle
        if width is not None:
            reach = reach_of_rows(bounds, known.measurements, rows=len(self.X))
            spread = self._spread_of_one(variance, prior=known.fitted_prior, width=width)
            bands = choose_bands(mean, spread, width=width, bounds=reach)
            account = account_in_bands(mean, variance, bands=bands)
            question, expected = bands, account.expected
        strategy = choose_strategy(
            self.X,
            prior=known.fitted_prior,
            likelihood=known.likelihood,
            question=bounds if width is None else UNIT_INTERVAL,
            query=settings.query,
            budget=budget,
            gap=settings.gap,
            known=posterior,
            table=self.number,
            groups=self.groups,
            account=account,
            progress=settings.progress,
        )
        return Design(strategy=strategy, question=question, expected=expected)

    def _of_counts(
        self,
        budget: Budget,
        width: float | None,
        model: Model,
        settings: DesignSettings,
        *,
        known: Release | None,
    ) -> Design:
        """Ask counts, in bands around the predictions of their roots, if there is a width.

        Questions are chosen by the account of what is asked by log rates, given what is known.
        """
        bounds = question = model.question
        assert isinstance(bounds, OutputBounds)
        prior = model.prior if known is None else known.fitted_prior
        posterior = None if known is None else known.posterior
        likelihood = model.likelihood if known is None else known.fitted.likelihood
        assert isinstance(likelihood, CountLikelihood)
        mean, variance = self._log_means(prior, posterior)
        asked: Question = bounds
        if width is not None:
            assert known is not None
            reach = reach_of_rows(bounds, known.measurements, rows=len(self.X))
            question = choose_bands(
                *likelihood.root_moments(mean, variance), width=width, bounds=reach
            )
            asked = UNIT_INTERVAL
        accounts = likelihood.accounts(mean, variance, [window_of(question)])
        account = self._of_sums(
            Linearisation(accounts.expected[0], accounts.slope[0], accounts.residual[0, 0])
        )
        strategy = choose_strategy(
            self.X,
            prior=prior,
            question=asked,
            query=settings.query,
            budget=budget,
            gap=settings.gap,
            known=posterior,
            table=self.number,
            groups=self.groups,
            account=account,
            progress=settings.progress,
        )
        expected = accounts.expected[0]
        if width is None:
            expected = expected - bounds.middle
        return Design(
            strategy=self._kept(replace(strategy, row_exposure=self.exposure)),
            question=question,
            expected=expected,
        )

    def _of_quantiles(
        self, budget: Budget, model: Model, settings: DesignSettings, *, known: Release | None
    ) -> Design:
        """Ask which outputs lie at or below their quantiles, as answers so far predict these.

        Questions are chosen by the account of indicators by the quantile nearest to the median.
        """
        bounds = model.question.limits
        assert bounds is not None
        if known is None:
            prior, likelihood = model.prior, quantile_likelihood(model.likelihood)
            posteriors = quantile_posteriors(prior, likelihood, ())
        else:
            prior, likelihood = known.fitted_prior, quantile_likelihood(known.fitted.likelihood)
            posteriors = known.posteriors
        marginals = [one.marginals(self.X) for one in posteriors]
        mean = np.stack([one.mean for one in marginals], axis=1)
        variance = np.stack([one.variance for one in marginals], axis=1)
        thresholds = np.sort(mean, axis=1)
        if known is not None:
            # They cost the same wherever they are: beyond an interval that was found, too.
            within = reach_of_rows(OutputBounds(*bounds), known.measurements, rows=len(self.X))
            thresholds = within.clip(thresholds.T).T
        question = QuantileQuestion(thresholds=thresholds, bounds=bounds)
        below, _ = likelihood.below(thresholds, mean=mean, variance=variance)
        strategy = choose_strategy(
            self.X,
            prior=prior,
            question=question,
            query=settings.query,
            budget=budget,
            gap=settings.gap,
            known=None if known is None else posteriors[likelihood.middle],
            table=self.number,
            groups=self.groups,
            account=self._of_sums(likelihood.account(thresholds, mean=mean, variance=variance)),
            progress=settings.progress,
        )
        return Design(
            strategy=self._kept(strategy), question=question, expected=question.expected(below)
        )

    def _spread_of_one(
        self, variance: Array, *, prior: ExactPrior | SparsePrior, width: float
    ) -> Array:
        """Return the predictive variances by which bands of outputs are as wide as they are."""
        del prior, width
        return variance

    def _kept(self, strategy: DenseStrategy) -> Strategy:
        """Return a strategy as the release keeps it."""
        return strategy

    def _of_sums(self, account: Linearisation) -> Linearisation:
        """Return the account of what each column of a strategy is about: the output of one row."""
        return account

    def _log_means(
        self, prior: ExactPrior | SparsePrior, posterior: Posterior | None
    ) -> tuple[Array, Array]:
        """Return mean and variance of the logarithms of the means of counts, shapes (N,)."""
        known = Posterior.given(prior, (), np.zeros(0)) if posterior is None else posterior
        mean, variance = known.outputs(self.X, table=self.number)
        return (mean if self.exposure is None else mean + np.log(self.exposure)), variance

    def _predicted(self, model: Model, known: Release) -> tuple[Array, Array]:
        """Return mean and variance of the asked values given answers, shapes (N,)."""
        if not model.likelihood.windowed:
            return known.posterior.outputs(self.X, table=self.number)
        likelihood = known.fitted.likelihood
        assert isinstance(likelihood, CountLikelihood)
        return likelihood.root_moments(*self._log_means(known.fitted_prior, known.posterior))

    def _spread(
        self, budget: Budget, model: Model, settings: DesignSettings, *, known: Release
    ) -> Design:
        """Ask for the distances of outputs from predictions: over all rows, or by strata."""
        bounds = model.question
        assert isinstance(bounds, OutputBounds)
        mean, variance = self._predicted(model, known)
        within = reach_of_rows(bounds, known.measurements, rows=len(self.X))
        question = SpreadQuestion(mean=within.clip(mean), sd=np.sqrt(variance))
        strategy = self._alike(settings.query.X, settings.query.weights)
        strata = choose_strata_of_scatter(self, budget, model.likelihood)
        if strata is None:
            return Design(strategy=self._kept(strategy), question=question)
        by_strata = ScatterQuestion(
            mean=question.mean,
            sd=question.sd,
            centres=strata.cells.centres,
            units=strata.cells.units,
        )
        matrix = strata.cells.membership(self.X).toarray()
        return Design(strategy=self._kept(replace(strategy, matrix=matrix)), question=by_strata)

    def _calibration(self, step: Step, settings: DesignSettings, *, known: Release) -> Design:
        """Count outputs in cells of their predicted distributions, as those of new outputs."""
        mean, sd = known.predict(self.X, return_std=True, new_output=True)
        noise = noise_share(step.budget, rows=self.counted, largest_group=self.most_counted)
        matrix = self._counting_matrix(step.output, None)
        strata, middles, shares = choose_strata(mean[matrix[0] > 0], noise=noise)
        question = CalibrationQuestion(
            mean=mean,
            sd=sd,
            cells=choose_cells(noise),
            strata=strata,
            middles=middles,
            sizes=shares * self.counted,
        )
        strategy = self._alike(settings.query.X, settings.query.weights)
        return Design(strategy=replace(strategy, matrix=matrix), question=question)

    def _alike(self, X_query: Array, query_weights: Array | None) -> DenseStrategy:
        """Return one question about all rows alike."""
        return DenseStrategy(
            X=self.X,
            matrix=np.ones((1, len(self.X))),
            X_query=X_query,
            query_weights=query_weights,
            reconstruction=None,
            certificate=Certificate(criterion="given", gap=np.inf),
            table=self.number,
            row_groups=self.groups,
            row_exposure=self.exposure,
        )

    def expected_error(
        self, step: Step, model: Model, settings: DesignSettings, *, known: Release
    ) -> float:
        """Return the root mean squared error of predictions that is expected after a step."""
        rough = replace(settings, gap=FORECAST_GAP, progress=None)
        known, design = design_given(self, step, model, rough, known=known)
        strategy, budget = design.strategy, step.budget
        assert isinstance(strategy, DenseStrategy)
        shares = query_shares(settings.query)
        if design.expected is None:
            # Of labels: of their expectation, under the Gaussian prior over them.
            sd = unit_noise_sd(design.question, budget) * strategy.longest_column(budget.law)
            posterior = known_labels(known, self.X, later=(strategy, sd))
            return float(np.sqrt(shares @ posterior.variance(settings.query.X)))
        expected = strategy.matrix @ design.expected
        measurement = expected_measurement(
            strategy, expected, question=design.question, budget=budget
        )
        later = replace(
            known,
            measurements=(*known.measurements, measurement),
            learned=(replace(known.fitted, weight=1.0),) if known.learned else (),
            hyperprior=None,
            provenance=None,
        )
        return float(np.sqrt(shares @ later.posterior.variance(settings.query.X)))

    def ask(
        self,
        design: Design,
        y: ArrayLike,
        budget: Budget,
        *,
        after_answers: bool,
        insecure_seed: int | None,
    ) -> Measurement:
        """Put a design to the outputs, under (ε, δ)-differential privacy."""
        assert isinstance(design.strategy, DenseStrategy)
        answers = ask(
            design.strategy.matrix,
            self._convert_outputs(y),
            question=design.question,
            epsilon=budget.epsilon,
            delta=budget.delta,
            groups=self.groups,
            noise=budget.noise,
            after_answers=after_answers,
            insecure_seed=insecure_seed,
        )
        return Measurement(strategy=design.strategy, question=design.question, answers=answers)

    def _which(self, output: int) -> NDArray[np.bool_] | None:
        """Return which rows are of one output of several; None if there is one."""
        del output
        return None

    def _convert_outputs(self, y: ArrayLike) -> ArrayLike:
        """Return private outputs as they are asked."""
        rows = len(self.X if self.chosen is None else self.chosen)
        if self.transform is not None:
            y = transform_outputs(y, transform=self.transform, rows=rows)
        return y if self.chosen is None else read_outputs(y, rows=rows)[self.chosen]

    def keep_out(self, share: float, *, random_state: int) -> tuple[HeldTable, HeldTable]:
        """Return the table without a share of its rows, and these rows as another table."""
        if self.groups is not None:
            refuse("margins of groups")
        kept = choose_kept(len(self.X), share=share, random_state=random_state)
        return (
            replace(self, X=self.X[~kept], chosen=~kept),
            replace(self, X=self.X[kept], chosen=kept, number=self.number + 1),
        )

    def design_margins(self, model: Model, settings: DesignSettings, *, known: Release) -> Design:
        """Ask how far predictions of these rows are off, as of new outputs."""
        assert isinstance(model.question, OutputBounds)
        mean, sd = known.predict(self.X, return_std=True, new_output=True)
        question = MarginQuestion(
            mean=mean,
            sd=sd,
            within=model.question,
            cells=CELLS,
        )
        strategy = self._alike(settings.query.X, settings.query.weights)
        return Design(strategy=strategy, question=question)

    def _convert_counted_outputs(self, y: ArrayLike) -> ArrayLike:
        """Return private outputs as they are counted, in the units of their bounds."""
        return self._convert_outputs(y)

    def count(
        self,
        question: CountQuestion | OutsideQuestion,
        y: ArrayLike,
        budget: Budget,
        *,
        output: int,
        insecure_seed: int | None,
        strata: Strata | None = None,
    ) -> Answers:
        """Count an output of every row, by strata if given, under (ε, δ)-differential privacy."""
        return ask(
            self._counting_matrix(output, strata),
            self._convert_counted_outputs(y),
            question=question,
            epsilon=budget.epsilon,
            delta=budget.delta,
            groups=self.groups,
            noise=budget.noise,
            insecure_seed=insecure_seed,
        )

    def strata(self, count: int, *, output: int = 0) -> Strata:
        """Return up to a number of strata of similar inputs; public."""
        del output
        return strata_of_rows(self.X, count)

    def _counting_matrix(self, output: int, strata: Strata | None) -> Array:
        """Return which rows are in which count, shape (S, N) or (1, N)."""
        which = self._which(output)
        rows = np.ones(len(self.X)) if which is None else which.astype(np.float64)
        if strata is None:
            return rows[None, :]
        apart: Array = strata.cells.membership(self.X).toarray()
        return apart * rows

    def measure_counts(
        self, counts: Sequence[Count], *, first: Strategy
    ) -> tuple[Measurement, ...]:
        """Return counts as measurements of a release."""
        return tuple(
            Measurement(
                strategy=self._kept(
                    replace(
                        self._alike(first.X_query, first.query_weights),
                        matrix=self._counting_matrix(one.output, one.strata),
                    )
                ),
                question=self._in_units(one),
                answers=one.answers,
            )
            for one in counts
        )

    def _in_units(self, count: Count) -> Question:
        """Return the question of a count in the units of the other questions."""
        return count.question


def checked_exposure(exposure: ArrayLike | None, *, rows: int) -> Array | None:
    """Return exposures of rows as positive numbers, or None if there are none.

    Parameters
    ----------
    exposure : array-like of shape (N,), optional
        Public.
    rows : int
        N.

    Raises
    ------
    ValueError
        Unless there is a positive, finite number for every row.

    Examples
    --------
    >>> checked_exposure([1, 2.5], rows=2)
    array([1. , 2.5])
    """
    if exposure is None:
        return None
    numbers = np.asarray(exposure, dtype=np.float64)
    if numbers.shape != (rows,):
        raise ValueError(f"exposure must be one number for each of {rows} rows")
    if not (np.isfinite(numbers) & (numbers > 0)).all():
        raise ValueError(POSITIVE_EXPOSURE)
    return numbers


# Of designs by which noises are compared.
FORECAST_GAP = 1e-2

NO_COLUMNS = OutputColumns(bounds=())


@dataclass(frozen=True, eq=False)
class HeldEntries(HeldTable):
    """The rows of a table of several private columns: each output of a row is an entry of its own.

    Entries are in widths from the middle of their intervals: declared bounds, or what was found to
    hold most of them. All entries of one person are one group. Private outputs have shape (N, T),
    in their own units.

    Attributes
    ----------
    X : array of shape (N T, D + 1)
        Inputs of entries: the last says which output an entry is of.
    columns : OutputColumns
        Declared.
    intervals : OutputColumns or None
        Found; None if nothing was looked for.
    of_persons : bool
        Whether persons have several rows; else every row is a person's.
    """

    columns: OutputColumns = NO_COLUMNS
    intervals: OutputColumns | None = None
    of_persons: bool = False

    @classmethod
    def of_columns(
        cls,
        X: Array,
        *,
        columns: OutputColumns,
        groups: Iterable[Hashable] | None,
        input_names: Sequence[str] = (),
    ) -> HeldEntries:
        """Return the entries of a table with inputs of shape (N, D)."""
        owners = columns.units(groups, rows=len(X))
        return cls(
            X=as_entries(X, count=len(columns.bounds)),
            groups=checked_groups(owners.tolist(), rows=len(owners)),
            columns=columns,
            of_persons=groups is not None,
            input_names=tuple(input_names),
        )

    @property
    def grouped(self) -> bool:
        """Whether all rows of one person are protected together."""
        return self.of_persons

    @property
    def outputs(self) -> int:
        """T."""
        return len(self.columns.bounds)

    @property
    def people(self) -> int:
        """N, the number of rows."""
        return len(self.X) // self.outputs

    @property
    def counted(self) -> int:
        """N."""
        return self.people

    @property
    def most_counted(self) -> int:
        """The most rows of one person."""
        return max(super().most_counted // self.outputs, 1)

    def within(self, found: Sequence[OutputBounds]) -> HeldEntries:
        """Return the table with entries in widths from the middles of the found intervals."""
        return replace(self, intervals=OutputColumns(bounds=tuple(found)))

    @property
    def units(self) -> OutputColumns:
        """The bounds whose middles and widths are origin and unit of entries."""
        return self.columns if self.intervals is None else self.intervals

    def _convert_outputs(self, y: ArrayLike) -> ArrayLike:
        # Later bands may go beyond what was found, and no first question does.
        declared = None if self.intervals is None else self.columns
        return self.units.standardised(y, rows=self.people, within=declared)

    def _convert_counted_outputs(self, y: ArrayLike) -> ArrayLike:
        return self.columns.entries(y, rows=self.people)

    def strata(self, count: int, *, output: int = 0) -> Strata:
        """Return up to a number of strata of the entries of one output, by inputs of their rows."""
        rows = strata_of_rows(self.X[:: self.outputs, :-1], count)
        return replace(rows, cells=cells_of_output(rows.cells, output))

    def _which(self, output: int) -> NDArray[np.bool_] | None:
        which: NDArray[np.bool_] = np.arange(len(self.X)) % self.outputs == output
        return which

    def _in_units(self, count: Count) -> Question:
        return count.question.in_units(self.units.bounds[count.output])


def strata_of_rows(X: Array, count: int) -> Strata:
    """Return up to a number of strata of rows with similar inputs.

    Parameters
    ----------
    X : array of shape (N, D)
    count : int
    """
    summary = summarise(InputRows(X))
    cells = Partition(centres=summary.centres(count)[0], units=summary.units)
    return Strata(cells=cells, sizes=np.asarray(cells.membership(X).sum(axis=1)))


def expected_measurement(
    strategy: DenseStrategy, values: Array, *, question: Question, budget: Budget
) -> Measurement:
    """Return a measurement with given answers, and the noise sd that they would have.

    Parameters
    ----------
    strategy : DenseStrategy
    values : array of shape (k,), or (k, C)
        Public: the answers that are expected.
    question : Question
    budget : Budget
    """
    answers = Answers(
        values=values.reshape(len(values), question.channels),
        noise_sd=unit_noise_sd(question, budget)
        * strategy.longest_column(budget.law, channels=question.channels),
        guarantee=Guarantee(epsilon=budget.epsilon, delta=budget.delta, mu=0.0),
        insecure=True,
        noise=budget.noise,
    )
    return Measurement(strategy=strategy, question=question, answers=answers)


def known_labels(
    release: Release, X: Array, *, later: tuple[DenseStrategy, float] | None = None
) -> Posterior:
    """Return the posterior of labels under the Gaussian prior over labels.

    By that prior questions about labels are chosen: signs are taken for Gaussian outputs of the
    prior's covariance, so that only what was asked matters and no answer does.

    Parameters
    ----------
    release : Release
        About classes of rows that are kept.
    X : array of shape (N, D)
        Rows over which the prior over labels is averaged.
    later : (DenseStrategy, float), optional
        Questions that are still to be asked, and the sd of the noise of their answers about signs.
    """
    criterion = criterion_named("bayes", use="classes")
    linear = criterion.prior_over_outputs(release.fitted.prior, release.fitted.likelihood, X)
    measurements = list(release.measurements)
    if later is not None:
        strategy, noise_sd = later
        signs = OutputBounds(-1.0, 1.0)
        answers = Answers(
            values=np.zeros((strategy.n_answers, 1)),
            noise_sd=noise_sd,
            guarantee=Guarantee(epsilon=0.0, delta=0.0, mu=0.0),
        )
        one = Measurement(strategy=strategy, question=signs, answers=answers)
        # The first channel of each stands for all: they were asked the same.
        measurements = [
            replace(
                each,
                question=signs,
                answers=replace(
                    answers, noise_sd=each.noise_sd, values=np.zeros((each.strategy.n_answers, 1))
                ),
            )
            for each in measurements
        ] + [one]
    tables, values = answered_tables(linear, measurements)
    return Posterior.given(replace(linear, mean=0.0), tables, values[:, 0])
