"""One private fit of a table that is read in passes: design, measure, learn, publish."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.criteria import criterion_named
from cloakgp.criteria.base import ChosenRule
from cloakgp.data.grouped import GroupedRows
from cloakgp.design import Progress
from cloakgp.design.streaming.binning import Cells
from cloakgp.design.streaming.grouping import GroupedPasses, grouped_columns, sum_grouped
from cloakgp.design.streaming.rules import Rule
from cloakgp.design.streaming.sums import StrategySums, sum_strategy_under
from cloakgp.fitting.defaults import LARGEST_DEFAULT_QUERY, choose_prior
from cloakgp.fitting.strategies import Query, design_rows, query_weights
from cloakgp.models import Approximation, SparsePrior
from cloakgp.models.likelihoods import NUMBERS
from cloakgp.models.summary import Summary, summarise
from cloakgp.privacy import Answers, OutputBounds
from cloakgp.privacy.accounting import check_budget, exact_noise_multiplier
from cloakgp.privacy.checks import warn_of_parameters
from cloakgp.privacy.streaming import PrivateRows, StrategyBound, measure_rows
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release import Hyperprior, Measurement, Release, StreamedStrategy, WeightedPrior
from cloakgp.release.hyperparameters.covariance import gather_sums
from cloakgp.release.hyperparameters.learning import learn_numbers
from cloakgp.release.sums import ChannelSums, PriorSums
from cloakgp.utils.arrays import Array
from cloakgp.utils.passes import Passes, Tell, tell_nobody

INDUCING = 200
# Of the points that kernels are learned at.
LEARNING_CELLS = 400


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


@dataclass(frozen=True, eq=False)
class RowSettings:
    """How a table in chunks is to be released; as for `DPGPRegressor`.

    Attributes
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel or None
    noise_variance, mean : float or None
    inducing : int or array of shape (M, D)
    approximation : {"fitc", "dtc", "sor"}
    criterion : str
        One of `cloakgp.criteria` for many rows.
    gap : float
    hyperprior : Hyperprior or None
    average : bool
    random_state : int
    """

    kernel: Kernel | None = None
    noise_variance: float | None = None
    mean: float | None = None
    inducing: int | Array = INDUCING
    approximation: Approximation = "fitc"
    criterion: str = "bayes"
    gap: float = 1e-3
    hyperprior: Hyperprior | None = None
    average: bool = False
    random_state: int = 0


@dataclass(frozen=True, eq=False)
class RuleColumns:
    """The columns of rows from their inputs: what the private pass asks.

    Attributes
    ----------
    prior : SparsePrior
        Over outputs; whose features and noise variances the rule goes by.
    rule : Rule
    grouped : bool
        Whether inputs end with the sizes of groups, which it goes by, too.
    """

    prior: SparsePrior
    rule: Rule
    grouped: bool = False

    def __call__(self, X: Array) -> Array:
        """Return the columns of rows, shape (k, n)."""
        if self.grouped:
            return grouped_columns(X, model=self.prior, rule=self.rule)
        return self.rule.columns(*self.prior.features_and_noise(X))


def bound_of(asked: ChosenRule) -> StrategyBound:
    """Return what is known of questions before any output is read."""
    bound = StrategyBound(
        answers=asked.rule.answers,
        longest=asked.sums.longest,
        chunk_rows=asked.sums.chunk_rows,
        count=asked.sums.count,
    )
    if asked.grouping is None:
        return bound
    return replace(bound, group_rows=asked.grouping.most_rows, chunks=asked.grouping.chunks)


@forget_on_failure
def release_rows(
    rows: Rows,
    *,
    bounds: OutputBounds,
    epsilon: float,
    delta: float,
    query: Query | None = None,
    settings: RowSettings | None = None,
    progress: Progress | None = None,
    tell: Tell = tell_nobody,
    insecure_seed: int | None = None,
) -> Release:
    """Go through a table a few times, and return what may be published.

    Outputs are read in one pass, by `cloakgp.privacy.streaming`, and touched nowhere else.

    Parameters
    ----------
    rows : Rows
        See `cloakgp.data`. If they say whose they are, all rows of a group are protected together.
    bounds : OutputBounds
    epsilon, delta : float
        The whole budget, protecting the output of one row, or all outputs of one group.
    query : Query, optional
        Where predictions matter; k-means centres of the rows if not given.
    settings : RowSettings, optional
    progress : callable, optional
        Called with the gap of the design while it improves. How far each pass is, rows tell to
        their own watch.
    tell : callable, optional
        Called with what begins, in a few words.
    insecure_seed : int, optional
        Makes the noise reproducible and the release **not private**.

    Returns
    -------
    Release

    Raises
    ------
    ValueError
        For anything that does not make sense; no message quotes an output.

    Examples
    --------
    >>> from cloakgp.data import ArrayRows
    >>> X = np.linspace(0, 10, 5000)[:, None]
    >>> release = release_rows(ArrayRows(X, np.sin(X).ravel()), bounds=OutputBounds(-1.0, 1.0),
    ...                        epsilon=1.0, delta=1e-5, settings=RowSettings(inducing=10))
    >>> release.n_rows
    5000
    """
    check_budget(epsilon, delta)
    chosen = RowSettings() if settings is None else settings
    criterion_named(chosen.criterion, use="many rows")
    summary = summarise(rows)
    warn_of_parameters(
        epsilon=epsilon,
        delta=delta,
        rows=summary.count,
        bounds=[(bounds.lo, bounds.hi)],
        mean=chosen.mean,
    )
    asking: Rows | GroupedRows = GroupedRows.of(rows) if rows.grouped else rows
    tell("choosing the prior")
    prior = _prior(summary, bounds=bounds, settings=chosen)
    tell("choosing where predictions matter")
    points = query or Query(*summary.centres(LARGEST_DEFAULT_QUERY))
    tally = Cells(centres=summary.centres(LEARNING_CELLS)[0], units=summary.units)
    asked = design_rows(
        asking,
        summary,
        prior=prior,
        query=points,
        noise_sd=bounds.width * exact_noise_multiplier(epsilon, delta),
        criterion=chosen.criterion,
        gap=chosen.gap,
        tally=tally,
        progress=progress,
    )
    answers = measure_rows(
        asking,
        RuleColumns(prior=prior, rule=asked.rule, grouped=rows.grouped),
        bound=bound_of(asked),
        bounds=bounds,
        epsilon=epsilon,
        delta=delta,
        insecure_seed=insecure_seed,
    )
    tell("learning from the noisy answers")
    learned = _learn(prior, asked.sums, answers, tally=tally, settings=chosen)
    strategy = StreamedStrategy(
        prior=prior,
        rule=asked.rule,
        sums=_sums_under(asking, learned, prior=prior, asked=asked),
        row_totals=asked.sums.totals,
        rows=asked.sums.count,
        chunk_rows=asked.sums.chunk_rows,
        longest=asked.sums.longest,
        input_ranges=summary.ranges,
        X_query=points.X,
        query_weights=query_weights(points),
        reconstruction=asked.reconstruction,
        certificate=asked.certificate,
        grouping=asked.grouping,
    )
    return Release(
        prior=prior,
        measurements=(Measurement(strategy=strategy, answers=answers),),
        learned=learned,
        input_names=tuple(rows.input_names),
        output_name=rows.output_name,
    )


def _prior(summary: Summary, *, bounds: OutputBounds, settings: RowSettings) -> SparsePrior:
    inducing = settings.inducing
    if isinstance(inducing, int | np.integer) and not isinstance(inducing, bool):
        inducing = summary.centres(int(inducing), random_state=settings.random_state)[0]
    prior = choose_prior(
        summary.sample,
        bounds=bounds,
        kernel=settings.kernel,
        noise_variance=settings.noise_variance,
        mean=settings.mean,
        inducing=inducing,
        approximation=settings.approximation,
    )
    assert isinstance(prior, SparsePrior)
    return prior


def _learn(
    prior: SparsePrior,
    sums: StrategySums,
    answers: Answers,
    *,
    tally: Cells,
    settings: RowSettings,
) -> tuple[WeightedPrior, ...]:
    if settings.hyperprior is None or answers.noise_sd == 0:
        return ()
    return learn_numbers(
        prior,
        gather_sums(sums, answers, points=tally.centres),
        bounds=answers.bounds,
        hyperprior=settings.hyperprior,
        average=settings.average,
    )


def _sums_under(
    rows: Passes, learned: tuple[WeightedPrior, ...], *, prior: SparsePrior, asked: ChosenRule
) -> tuple[PriorSums, ...]:
    """Return what was asked as every prior sees it, in another pass if one differs."""
    others = [
        one.prior
        for one in learned
        if one.prior is not prior and isinstance(one.prior, SparsePrior)
    ]
    seen: tuple[StrategySums, ...] = ()
    if others and isinstance(rows, GroupedPasses):
        seen, _ = sum_grouped(rows, others, model=prior, rule=asked.rule)
    elif others:
        seen = sum_strategy_under(rows, others, asked=[(prior, asked.rule)])
    return tuple(
        PriorSums(
            prior=each,
            likelihood=NUMBERS,
            channels=(ChannelSums(features=sums.features, noise=sums.noise),),
        )
        for each, sums in zip((prior, *others), (asked.sums, *seen), strict=True)
    )
