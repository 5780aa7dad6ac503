r"""Forecast: the expected accuracy of a release, from public inputs, before any question.

While hyperparameters stay as declared, every design and every predicted variance is known before
any output is: the posterior variance of a Gaussian process does not depend on the answers, and
neither do the widths of bands that no bound cuts. So the stages of a fit are gone through with the
answers that the prior expects, and no output.

The forecast believes its prior. How far it was from the truth on tables is recorded in
``docs/adaptive.md``.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cloakgp.criteria import criterion_named
from cloakgp.data import InputRows
from cloakgp.design import DesignGapWarning
from cloakgp.fitting.bands import ONE_STAGE, Stage, Step
from cloakgp.fitting.calibration import CELLS, MOST_STRATA
from cloakgp.fitting.defaults import LARGEST_DEFAULT_QUERY
from cloakgp.fitting.expected import ExpectedTable
from cloakgp.fitting.held import expected_measurement
from cloakgp.fitting.interval import MOST_COUNTS
from cloakgp.fitting.margins import CELLS as DISTANCES
from cloakgp.fitting.planning import fit_cost
from cloakgp.fitting.scatter import choose_count
from cloakgp.fitting.schedule import schedule_release
from cloakgp.fitting.steps import take_steps
from cloakgp.fitting.strategies import (
    Budget,
    Query,
    choose_strategy,
    query_shares,
    scale_noise,
    unit_noise_sd,
)
from cloakgp.fitting.table import DesignSettings, Model
from cloakgp.fitting.thinning import ROUGHLY, Thinned
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.likelihoods import Likelihood
from cloakgp.models.likelihoods.quantiles import quantile_likelihood
from cloakgp.models.summary import summarise
from cloakgp.privacy import Guarantee, OutputBounds
from cloakgp.privacy.groups import Groups
from cloakgp.privacy.questions.classes import Classes
from cloakgp.release import Hyperprior, Release
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import NoiseName

# Noises are compared on so many rows, or entries of several outputs, of tables that have some times
# as many.
DECIDING_ROWS, FEW_ENOUGH = 500, 2


@dataclass(frozen=True)
class Forecast:
    """The expected accuracy and cost of a release of one budget.

    Attributes
    ----------
    epsilon, delta : float
    noise : {"gaussian", "laplace"}
    error : float
        Expected root mean squared error of predictions of the curve at the query points, in output
        units.
    output_error : float
        The same, of predictions of new outputs: with their own noise.
    prior_error : float
        As ``error``, if nothing were asked.
    stages : int
    questions : int
        Numbers that will be published with noise, in all stages, at most; of an approximate
        forecast, as many as there can be.
    memory : float
        In bytes, within a factor of two.
    seconds : float
        On one core, no better than an order of magnitude.
    guarantee : Guarantee
        What the release will state, if all is drawn that may be.
    release : Release
        What would be released if answers were as the prior expects them. Its sds are the expected
        ones; its means are those of the prior, and no output is in it.
    within : float
        How far off the error may be as a share of that of the exact forecast; 0 of an exact one. Of
        an approximate forecast the release is about a few places that stand for all rows.
    certain_noise : bool
        Whether the exact forecast is sure to be one of this noise.
    """

    epsilon: float
    delta: float
    noise: NoiseName
    error: float
    output_error: float
    prior_error: float
    stages: int
    questions: int
    memory: float
    seconds: float
    guarantee: Guarantee
    release: Release = field(repr=False, compare=False)
    within: float = 0.0
    certain_noise: bool = True

    @property
    def file_bytes(self) -> int:
        """Size of the release's file, without learned hyperparameters."""
        return len(self.release.to_bytes())


def forecast_release(
    X: Array,
    *,
    prior: ExactPrior | SparsePrior,
    bounds: OutputBounds,
    query: Query,
    budget: Budget,
    stages: Sequence[Stage],
    hyperprior: Hyperprior | None = None,
    criterion: str = "bayes",
    searched: bool = False,
    calibrated: bool = False,
    kept: float = 0.0,
    outputs: int = 1,
    groups: Groups | None = None,
    gap: float = 1e-2,
    thins: bool = False,
) -> Forecast:
    """Forecast a release of one table of numbers. Sees no output.

    Parameters
    ----------
    X : array of shape (N, D)
        Public inputs.
    prior : ExactPrior or SparsePrior
    bounds : OutputBounds
    query : Query
    budget : Budget
        The whole.
    stages : sequence of Stage
    hyperprior : Hyperprior, optional
        What would be learned.
    criterion : str
    searched : bool
        Whether an interval that holds most outputs would be looked for first. What that costs is
        counted; bounds are taken to be good ones, which one round of each output finds.
    calibrated : bool
        Whether outputs would be counted in cells of their predicted distributions.
    kept : float
        The share of the rows that would be kept out of the fit; all are forecast as if they were
        in it.
    outputs : int
        T: X are the entries of so many outputs of each row.
    groups : array of shape (N,), optional
        Whose row each is, from `cloakgp.privacy.groups.checked_groups`.
    gap : float
        Of the designs: coarser than a release's own, which changes little.
    thins : bool
        Whether a few places stand for all rows where these are many
        (`cloakgp.fitting.thinning`): what comes out is approximate, and comes at once.

    Returns
    -------
    Forecast
    """
    most_rows = 1 if groups is None else int(np.bincount(groups).max())
    schedule = schedule_release(
        budget,
        bounds=bounds,
        stages=stages,
        rows=len(X),
        most_rows=most_rows,
        ask_spread=hyperprior is not None and hyperprior.noise_variance,
        searched=searched,
        calibrated=calibrated,
        kept=kept,
        outputs=outputs,
    )
    # What does not ask where outputs are is not forecast: its answers are no predictions.
    steps = [step for step in schedule.steps if step.stage is not None]
    few = Thinned.of(X, prior=prior, query=query, groups=groups) if thins else None
    if few is None:
        table: ExpectedTable = ExpectedTable(X=X, groups=groups)
        settings = DesignSettings(query=query, criterion=criterion, gap=gap)
        model = Model(prior=prior, question=bounds)
    else:
        table, steps = few.table, few.steps(steps)
        settings = DesignSettings(query=few.query, criterion=criterion, gap=max(gap, ROUGHLY))
        model = Model(prior=few.prior, question=bounds)
    with warnings.catch_warnings():
        if few is not None:
            warnings.simplefilter("ignore", DesignGapWarning)
        release = take_steps(table, None, model, steps, settings=settings)
    # Beside the stages: the question how noisy outputs are, and counts in intervals at most.
    search = schedule.search
    others = MOST_COUNTS * len(search.rounds) + search.strata * len(search.checks)
    if schedule.kept:
        others += len(DISTANCES) + 1
    for step in schedule.steps:
        if step.calibrates:
            others += MOST_STRATA * (len(CELLS) + 1)
        elif step.stage is None:
            asked = choose_count(step.budget, rows=len(X), largest_group=most_rows)
            others += asked if outputs == 1 else 1
    found = _summarised(
        release, query, budget=schedule.budget, guarantee=schedule.guarantee, others=others
    )
    if few is None:
        return found
    return replace(_of_all_rows(found, X, prior=prior, query=query), within=few.within)


@dataclass(frozen=True, eq=False)
class FewRows:
    """A sample of rows, each with a weight: a cheaper forecast.

    A row stands for the mean of N/n outputs at its place, whose own noise is as much less. To ask
    for sums of N/n outputs is to ask for N/n times their means, so the noise of what is asked
    counts as much less, too.

    Attributes
    ----------
    X : array of shape (n, D)
    prior : ExactPrior or SparsePrior
    share : float
        N/n.
    """

    X: Array
    prior: ExactPrior | SparsePrior
    share: float

    @classmethod
    def of(
        cls,
        X: Array,
        prior: ExactPrior | SparsePrior,
        *,
        outputs: int = 1,
        rows: int | None = None,
    ) -> FewRows:
        """Take some rows from all over a table; all of them, if they are not many.

        Parameters
        ----------
        X : array of shape (N, D)
            Public inputs.
        prior : ExactPrior or SparsePrior
        outputs : int
            T: every row has so many entries, and fewer rows are taken.
        rows : int, optional
            N, if X is a sample.
        """
        size, count = max(DECIDING_ROWS // outputs, 1), len(X) if rows is None else rows
        few = X
        if len(X) < FEW_ENOUGH * size:
            size = len(X)
        else:
            few = summarise(InputRows(X), size=size).sample
        if size == count:
            return cls(X=X, prior=prior, share=1.0)
        share = count / size
        return cls(
            X=few,
            prior=replace(prior, noise_variance=prior.noise_variance / share),
            share=share,
        )

    def budget(self, budget: Budget) -> Budget:
        """Return the budget that these rows need in the place of one for all."""
        return budget if self.share == 1.0 else scale_noise(budget, factor=self.share)


@dataclass(frozen=True, eq=False)
class LabelForecast:
    """What is known beforehand of a release about classes.

    Attributes
    ----------
    error : float
        How uncertain encoded labels stay: the root mean square sd of their expectation. It compares
        noises, and does not say how well classes can be told apart.
    release : Release
        What would be released, but for its answers: these are zeros, and no label is in it.
    """

    error: float
    release: Release

    @property
    def questions(self) -> int:
        """How many numbers are published with noise."""
        return self.release.measurements[0].answers.values.size

    @property
    def file_bytes(self) -> int:
        """Size of the release's file, without learned hyperparameters."""
        return len(self.release.to_bytes())


def forecast_labels(
    X: Array,
    *,
    prior: ExactPrior | SparsePrior,
    likelihood: Likelihood,
    classes: Classes,
    query: Query,
    budget: Budget,
    criterion: str,
    groups: Groups | None = None,
    gap: float = 1e-2,
) -> LabelForecast:
    """Forecast a release about classes in one stage. Sees no label.

    Under the Gaussian prior over labels by which questions about them are chosen, whatever the
    labels.

    Parameters
    ----------
    X : array of shape (N, D)
        Public inputs.
    prior : ExactPrior or SparsePrior
    likelihood : Likelihood
    classes : Classes
    query : Query
    budget : Budget
    criterion : str
        One for classes.
    groups : array of shape (N,), optional
        As for `forecast_release`.
    gap : float
        Of the design.
    """
    linear = criterion_named(criterion, use="classes").prior_over_outputs(prior, likelihood, X)
    strategy = choose_strategy(
        X,
        prior=prior,
        likelihood=likelihood,
        question=classes,
        query=query,
        budget=budget,
        criterion=criterion,
        groups=groups,
        gap=gap,
    )
    width = unit_noise_sd(classes, budget) / budget.unit_sd()
    asked = expected_measurement(
        strategy,
        np.zeros(strategy.n_answers),
        question=OutputBounds(-width / 2, width / 2),
        budget=budget,
    )
    known = Release(prior=replace(linear, mean=0.0), measurements=(asked,)).posterior
    nothing = np.zeros((strategy.n_answers, classes.channels))
    return LabelForecast(
        error=float(np.sqrt(query_shares(query) @ known.variance(query.X))),
        release=Release(
            prior=prior,
            likelihood=likelihood,
            measurements=(
                expected_measurement(strategy, nothing, question=classes, budget=budget),
            ),
        ),
    )


def forecast_quantiles(
    X: Array,
    *,
    model: Model,
    query: Query,
    budget: Budget,
    groups: Groups | None = None,
    gap: float = 1e-2,
) -> float:
    """Forecast how uncertain the quantile next to the median stays: the root mean square sd.

    After one stage, with the answers that the prior expects. It compares noises. Sees no output.

    Parameters
    ----------
    X : array of shape (N, D)
        Public inputs.
    model : Model
        Of quantiles.
    query : Query
    budget : Budget
    groups : array of shape (N,), optional
        As for `forecast_release`.
    gap : float
        Of the design.
    """
    release = take_steps(
        ExpectedTable(X=X, groups=groups),
        None,
        model,
        [Step(stage=ONE_STAGE[0], budget=budget)],
        settings=DesignSettings(query=query, gap=gap),
    )
    known = release.posteriors[quantile_likelihood(model.likelihood).middle]
    return float(np.sqrt(query_shares(query) @ known.variance(query.X)))


def _of_all_rows(
    found: Forecast, X: Array, *, prior: ExactPrior | SparsePrior, query: Query
) -> Forecast:
    """Return the approximate forecast of a table, from that of its places."""
    inducing = len(prior.inducing) if isinstance(prior, SparsePrior) else None
    points = min(len(query.X), LARGEST_DEFAULT_QUERY)
    cost = fit_cost(len(X), queries=points, inducing=inducing)
    shares = query_shares(query)
    noise = float(shares @ prior.observation_noise(query.X))
    return replace(
        found,
        prior_error=float(np.sqrt(shares @ prior.query_variance(query.X))),
        output_error=float(np.hypot(found.error, np.sqrt(noise))),
        questions=found.stages * min(len(X), 2 * (points + 1), inducing or len(X)),
        memory=cost.memory,
        seconds=cost.seconds * found.stages,
    )


def _summarised(
    release: Release, query: Query, *, budget: Budget, guarantee: Guarantee, others: int
) -> Forecast:
    prior, posterior = release.prior, release.posterior
    weights = query_shares(query)
    latent = float(weights @ posterior.variance(query.X))
    noise = float(weights @ prior.observation_noise(query.X))
    stages = len(release.measurements)
    inducing = len(prior.inducing) if isinstance(prior, SparsePrior) else None
    cost = fit_cost(release.n_rows, queries=len(query.X), inducing=inducing)
    return Forecast(
        epsilon=budget.epsilon,
        delta=budget.delta,
        noise=budget.noise,
        error=float(np.sqrt(latent)),
        output_error=float(np.sqrt(latent + noise)),
        prior_error=float(np.sqrt(weights @ prior.query_variance(query.X))),
        stages=stages,
        questions=sum(measurement.strategy.n_answers for measurement in release.measurements)
        + others,
        memory=cost.memory,
        seconds=cost.seconds * stages,
        guarantee=guarantee,
        release=release,
    )
