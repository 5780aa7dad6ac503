"""One private fit of a table that is read in passes: design, measure, learn, publish."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from sklearn.gaussian_process.kernels import Kernel

from cloakgp.criteria import criterion_named
from cloakgp.data.grouped import GroupedRows
from cloakgp.data.transformed import TransformedRows
from cloakgp.design import Progress
from cloakgp.design.streaming.binning import Cells
from cloakgp.design.streaming.sums import StrategySums
from cloakgp.fitting.bands import Stages, Step, whole_of
from cloakgp.fitting.defaults import LARGEST_DEFAULT_QUERY, choose_prior
from cloakgp.fitting.forecast import choose_noise
from cloakgp.fitting.interval import NO_SEARCH, Counted, decided_by_answers
from cloakgp.fitting.strategies import Budget, Query, design_rows, unit_noise_sd
from cloakgp.fitting.streaming_interval import counts_of, plan_row_search, search_rows
from cloakgp.fitting.streaming_measuring import (
    INDUCING,
    Rows,
    bound_of,
    inducing_inputs,
    streamed_strategy,
)
from cloakgp.fitting.streaming_remeasure import Later, ask_again
from cloakgp.fitting.streaming_spread import ask_row_spread, with_noise_of_rows
from cloakgp.fitting.streaming_stages import privacy_excess, schedule_rows
from cloakgp.models import Approximation, SparsePrior
from cloakgp.models.summary import Summary, summarise
from cloakgp.models.transforms import OutputTransform
from cloakgp.privacy import Answers, OutputBounds
from cloakgp.privacy.checks import warn_of_parameters
from cloakgp.privacy.noise import noise_for
from cloakgp.privacy.spending import hold, one_charge
from cloakgp.privacy.streaming import measure_rows
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release import Hyperprior, Measurement, Release, WeightedPrior
from cloakgp.release.hyperparameters.covariance import gather_sums
from cloakgp.release.hyperparameters.learning import learn_numbers
from cloakgp.release.posterior.clipped_sums import as_kept, restated, under_alone
from cloakgp.release.streamed_strategy import RuleColumns, StreamedStrategy
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import NoiseChoice, NoiseName
from cloakgp.utils.passes import Passes, Tell, tell_nobody

# Of the points that kernels are learned at.
LEARNING_CELLS = 400


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
    stages : "auto", None or sequence of (share, width)
        "auto" is one stage where several are not worth their passes: see
        `cloakgp.fitting.streaming_stages`.
    interval : bool
        Look first for an interval that holds most outputs, where that costs little.
    random_state : int
    blocks : tuple of int or None
        Which block each input is in, where several stand for one column of a table.
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
    stages: Stages = None
    interval: bool = False
    random_state: int = 0
    blocks: tuple[int, ...] | None = None


@forget_on_failure
@one_charge
def release_rows(
    rows: Rows,
    *,
    bounds: OutputBounds,
    epsilon: float,
    delta: float,
    noise: NoiseChoice = "gaussian",
    query: Query | None = None,
    settings: RowSettings | None = None,
    transform: OutputTransform | None = None,
    progress: Progress | None = None,
    tell: Tell = tell_nobody,
    insecure_seed: int | None = None,
) -> Release:
    """Go through a table a few times, and return what may be published.

    Outputs are read in one pass for each round of counts and each stage, by
    `cloakgp.privacy.interval` and `cloakgp.privacy.streaming`, and touched nowhere else.

    Parameters
    ----------
    rows : Rows
        See `cloakgp.data`. If they say whose they are, all rows of a group are protected together.
    bounds : OutputBounds
    epsilon, delta : float
        The whole budget, protecting the output of one row, or all outputs of one group.
    noise : {"auto", "gaussian", "laplace"}
        See `cloakgp.fitting.forecast.choose_noise`.
    query : Query, optional
        Where predictions matter; k-means centres of the rows if not given.
    settings : RowSettings, optional
    transform : OutputTransform, optional
        What is done to outputs first; bounds and settings are then of the transformed.
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
    >>> import numpy as np
    >>> from cloakgp.data import ArrayRows
    >>> X = np.linspace(0, 10, 5000)[:, None]
    >>> release = release_rows(ArrayRows(X, np.sin(X).ravel()), bounds=OutputBounds(-1.0, 1.0),
    ...                        epsilon=1.0, delta=1e-5, settings=RowSettings(inducing=10))
    >>> release.n_rows
    5000
    """
    noise_for(noise, epsilon=epsilon, delta=delta)
    chosen = RowSettings() if settings is None else settings
    criterion_named(chosen.criterion, use="many rows")
    summary = summarise(rows)
    warn_of_parameters(
        epsilon=epsilon,
        delta=delta,
        rows=summary.count,
        bounds=[(bounds.lo, bounds.hi) if transform is None else transform.bounds],
        mean=chosen.mean if transform is None else None,
    )
    rows = TransformedRows.of(rows, transform)
    asking: Rows | GroupedRows = GroupedRows.of(rows) if rows.grouped else rows
    tell("choosing the prior")

    @cache
    def prior_within(within: OutputBounds) -> SparsePrior:
        return _prior(summary, bounds=within, settings=chosen)

    prior = prior_within(bounds)
    tell("choosing where predictions matter")
    points = query or Query(*summary.centres(LARGEST_DEFAULT_QUERY))
    tally = Cells(centres=summary.centres(LEARNING_CELLS)[0], units=summary.units)

    @cache
    def excess(law: NoiseName, within: OutputBounds) -> float:
        return privacy_excess(
            asking,
            summary,
            prior=prior_within(within),
            query=points,
            bounds=within,
            budget=Budget(epsilon, delta, noise=law),
        )

    law = choose_noise(
        noise,
        epsilon=epsilon,
        delta=delta,
        criterion=criterion_named(chosen.criterion, use="many rows"),
        expected_error=lambda law: excess(law, bounds),
    )
    budget, search = Budget(epsilon, delta, noise=law), NO_SEARCH
    if chosen.interval:
        search = plan_row_search(asking, bounds=bounds, budget=budget, count=summary.count)
    if search.rounds:
        budget = decided_by_answers(budget)

    def scheduled(within: OutputBounds, *, rounds: int) -> tuple[Step, ...]:
        return schedule_rows(
            budget,
            rows=summary.count,
            excess=lambda: excess(law, within),
            stages=chosen.stages,
            criterion=chosen.criterion,
            ask_spread=chosen.hyperprior is not None and chosen.hyperprior.noise_variance,
            spent=search.spent(rounds),
            tell=tell,
        )

    steps = scheduled(bounds, rounds=len(search.rounds))
    hold(whole_of(budget, steps=steps, others=search.rounds))
    counted: tuple[Counted, ...] = ()
    if search.rounds:
        tell("looking for where most outputs lie")
        found, counted = search_rows(
            asking, bounds=bounds, plan=search, count=summary.count, insecure_seed=insecure_seed
        )
        # Rounds that were not needed are the stages' budget.
        steps = scheduled(found, rounds=len(counted))
        if found != bounds:
            bounds, prior = found, prior_within(found)
    first = steps[0].budget
    asked = design_rows(
        asking,
        summary,
        prior=prior,
        query=points,
        noise_sd=unit_noise_sd(bounds, first),
        noise=law,
        criterion=chosen.criterion,
        gap=chosen.gap,
        tally=tally,
        progress=progress,
    )
    answers = measure_rows(
        asking,
        RuleColumns(model=prior, rule=asked.rule, grouped=rows.grouped),
        bound=bound_of(asked, noise=law),
        bounds=bounds,
        epsilon=first.epsilon,
        delta=first.delta,
        after_answers=bool(counted),
        insecure_seed=insecure_seed,
    )
    strategy = streamed_strategy(
        asked,
        prior=prior,
        summary=summary,
        query=points,
        sums=[as_kept(prior, asked.sums)],
        noise=law,
    )
    release = Release(
        prior=prior,
        measurements=(
            Measurement(strategy=strategy, answers=answers),
            *counts_of(counted, first=strategy, prior=prior),
        ),
        input_names=tuple(rows.input_names),
        output_name=rows.output_name,
    )
    stages = [(asked.sums, answers)]
    tell("learning from the noisy answers")
    release = _learned(release, asking, stages, tally=tally, settings=chosen)
    bands = sum(step.stage is not None for step in steps)
    for number, step in enumerate(steps[1:], start=1):
        seed = None if insecure_seed is None else insecure_seed + number
        if step.stage is None:
            tell("asking how noisy outputs are")
            measurement = ask_row_spread(
                release,
                asking,
                summary=summary,
                query=points,
                budget=step.budget,
                insecure_seed=seed,
            )
        else:
            tell(f"asking again, in bands ({number + 1} of {bands})")
            later = Later(
                budget=step.budget,
                query=points,
                band=step.stage.width,
                gap=chosen.gap,
                progress=progress,
                insecure_seed=seed,
            )
            measurement, sums = ask_again(
                release, asking, later, summary=summary, table=0, cells=tally
            )
            assert isinstance(measurement.answers, Answers)
            stages.append((sums, measurement.answers))
        release = replace(release, measurements=(*release.measurements, measurement))
        tell("learning from the noisy answers")
        release = _learned(release, asking, stages, tally=tally, settings=chosen)
    for measurement in release.measurements:
        if isinstance(measurement.strategy, StreamedStrategy):
            measurement.strategy.columns.forget()
    return release if transform is None else replace(release, transform=transform)


def _prior(summary: Summary, *, bounds: OutputBounds, settings: RowSettings) -> SparsePrior:
    prior = choose_prior(
        summary.sample,
        bounds=bounds,
        kernel=settings.kernel,
        noise_variance=settings.noise_variance,
        mean=settings.mean,
        inducing=inducing_inputs(summary, settings.inducing, random_state=settings.random_state),
        approximation=settings.approximation,
        blocks=settings.blocks,
    )
    assert isinstance(prior, SparsePrior)
    return prior


def _learned(
    release: Release,
    rows: Passes,
    stages: Sequence[tuple[StrategySums, Answers]],
    *,
    tally: Cells,
    settings: RowSettings,
) -> Release:
    """Return a release with hyperparameters fitted to its answers, in more passes if they moved."""
    prior = release.prior
    assert isinstance(prior, SparsePrior)
    declared = [under_alone(one, prior) for one in release.measurements]
    release = replace(release, measurements=tuple(declared))
    answered = [one for one in stages if one[1].noise_sd > 0]
    learned: tuple[WeightedPrior, ...] = ()
    hyperprior = settings.hyperprior
    if hyperprior is not None and answered:
        asks_spread = declared[-1].about_spread
        # Sums of outputs say little of their noise: where that was asked, it is learned alone.
        noise = hyperprior.noise_variance and not asks_spread
        learned = learn_numbers(
            prior,
            gather_sums(answered, mean=prior.mean, points=tally.centres),
            bounds=stages[0][1].bounds,
            hyperprior=replace(hyperprior, noise_variance=noise),
            average=settings.average,
        )
        if asks_spread:
            learned = with_noise_of_rows(learned, rows, release=release)
    others = [
        one.prior
        for one in learned
        if one.prior is not prior and isinstance(one.prior, SparsePrior)
    ]
    return replace(
        release, learned=learned, measurements=restated(rows, others, measurements=declared)
    )
