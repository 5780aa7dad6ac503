"""One private fit as a function: design, measure, learn, and return what may be published."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.design import Progress
from cloakgp.fitting.bands import ONE_STAGE, Stage, Step, schedule_stages, whole_of
from cloakgp.fitting.interval import (
    NO_SEARCH,
    decided_by_answers,
    plan_search,
    search_outputs,
)
from cloakgp.fitting.measuring import measured
from cloakgp.fitting.remeasure import ask_spread, refine
from cloakgp.fitting.strategies import Budget, Encoding, Query, choose_strategy
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.likelihoods import NUMBERS, Likelihood
from cloakgp.models.transforms import OutputTransform
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.checks import already_warned
from cloakgp.privacy.groups import Groups, checked_groups
from cloakgp.privacy.noise import noise_named
from cloakgp.privacy.spending import hold, one_charge
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.privacy.transforms import transform_outputs
from cloakgp.release import Hyperprior, Measurement, Release
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import NoiseName
from cloakgp.utils.passes import Tell, tell_nobody


@dataclass(frozen=True, eq=False)
class StageSettings:
    """What all stages of a fit have in common; see `release_outputs`.

    Attributes
    ----------
    query : Query
    criterion : str
    gap : float
    hyperprior : Hyperprior or None
    average : bool
    input_names : tuple of str
    output_name : str
    progress : callable or None
    tell : callable
    insecure_seed : int or None
    """

    query: Query
    criterion: str = "bayes"
    gap: float = 1e-3
    hyperprior: Hyperprior | None = None
    average: bool = False
    input_names: tuple[str, ...] = ()
    output_name: str = "y"
    progress: Progress | None = None
    tell: Tell = tell_nobody
    insecure_seed: int | None = None

    @property
    def learns_noise(self) -> bool:
        """Whether how noisy outputs are is learned."""
        return self.hyperprior is not None and self.hyperprior.noise_variance


@forget_on_failure
@one_charge
def release_outputs(
    X: Array,
    y: ArrayLike,
    *,
    prior: ExactPrior | SparsePrior,
    likelihood: Likelihood = NUMBERS,
    encoding: Encoding,
    query: Query,
    epsilon: float,
    delta: float,
    noise: NoiseName = "gaussian",
    groups: Iterable[Hashable] | None = None,
    criterion: str = "bayes",
    gap: float = 1e-3,
    hyperprior: Hyperprior | None = None,
    average: bool = False,
    stages: Sequence[Stage] = ONE_STAGE,
    prior_within: Callable[[OutputBounds], ExactPrior | SparsePrior] | None = None,
    transform: OutputTransform | None = None,
    input_names: Sequence[str] = (),
    output_name: str = "y",
    progress: Progress | None = None,
    tell: Tell = tell_nobody,
    insecure_seed: int | None = None,
) -> Release:
    """Design, measure, learn from the answers, and return what may be published.

    y is handed to `cloakgp.privacy` and touched nowhere else.

    Parameters
    ----------
    X : array of shape (N, D)
        Public inputs.
    y : array-like of shape (N,)
        Private outputs.
    prior : ExactPrior or SparsePrior
        Of the latent functions.
    likelihood : Likelihood
        How outputs depend on them.
    encoding : OutputBounds or Classes
        How outputs are encoded before they are asked, and so how far one can move.
    query : Query
    epsilon, delta : float
        The whole budget.
    noise : {"gaussian", "laplace"}
        δ may be 0 with Laplace noise.
    groups : iterable of N hashables, optional
        Public: whose row it is. All rows of one group are protected together.
    criterion : str
        One of `cloakgp.criteria` for such outputs.
    gap : float
    hyperprior : Hyperprior, optional
        What to learn from the answers, at no cost; None to keep the prior as declared.
    average : bool
        Average over the posterior of the hyperparameters rather than take its maximum.
    stages : sequence of Stage
        How the budget is spread over measurements, each designed with what those before taught, and
        about outputs in bands that these leave open. For numbers, and criterion "bayes".
    prior_within : callable, optional
        Returns the prior of numbers within an interval. If it is given, an interval that holds most
        outputs is looked for first, where that costs little, and everything after goes by it; None
        goes by the declared bounds.
    transform : OutputTransform, optional
        What is done to outputs first; prior, encoding and bounds are then of the transformed.
    input_names, output_name
        What the release calls its columns.
    progress : callable, optional
        Called with the certified gap while the design improves.
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
    """
    settings = StageSettings(
        query=query,
        criterion=criterion,
        gap=gap,
        hyperprior=hyperprior,
        average=average,
        input_names=tuple(input_names),
        output_name=output_name,
        progress=progress,
        tell=tell,
        insecure_seed=insecure_seed,
    )
    law = noise_named(noise)
    budget = Budget(*law.check(epsilon, delta), noise=law.name)
    units = checked_groups(groups, rows=len(X))
    if transform is not None:
        y = transform_outputs(y, transform=transform, rows=len(X))
    search = NO_SEARCH
    counted: tuple[Measurement, ...] = ()
    if prior_within is not None and isinstance(encoding, OutputBounds):
        search = plan_search(
            encoding,
            budget=decided_by_answers(budget),
            rows=len(X),
            largest_group=1 if units is None else int(np.bincount(units).max()),
        )
    if search.rounds:
        budget = decided_by_answers(budget)
    scheduled = partial(
        schedule_stages,
        stages,
        budget=budget,
        rows=len(X),
        ask_spread=settings.learns_noise,
    )
    steps = scheduled(spent=search.spent(len(search.rounds)))
    hold(whole_of(budget, steps=steps, others=search.rounds))
    if search.rounds and prior_within is not None and isinstance(encoding, OutputBounds):
        tell("looking for where most outputs lie")
        found, counted = search_outputs(
            X,
            y,
            query=query,
            bounds=encoding,
            plan=search,
            groups=units,
            insecure_seed=insecure_seed,
        )
        # Rounds that were not needed are the stages' budget.
        steps = scheduled(spent=search.spent(len(counted)))
        if found != encoding:
            encoding, prior = found, prior_within(found)
    release = ask_in_stages(
        X,
        y,
        prior=prior,
        likelihood=likelihood,
        encoding=encoding,
        steps=steps,
        counted=counted,
        groups=units,
        settings=settings,
    )
    return release if transform is None else replace(release, transform=transform)


@forget_on_failure
def ask_in_stages(
    X: Array,
    y: ArrayLike,
    *,
    prior: ExactPrior | SparsePrior,
    likelihood: Likelihood = NUMBERS,
    encoding: Encoding,
    steps: Sequence[Step],
    counted: Sequence[Measurement] = (),
    groups: Groups | None,
    settings: StageSettings,
) -> Release:
    """Ask a table step by step, learn from the answers, and return what may be published.

    y is handed to `cloakgp.privacy` and touched nowhere else.

    Parameters
    ----------
    X : array of shape (N, D)
        Public inputs.
    y : array-like of shape (N,)
        Private outputs.
    prior : ExactPrior or SparsePrior
    likelihood : Likelihood
    encoding : OutputBounds or Classes
        How outputs are encoded before they are asked first.
    steps : sequence of Step
        What each may spend.
    counted : sequence of Measurement
        What was counted before, and decided what the steps may spend.
    groups : array of shape (N,) or None
        From `cloakgp.privacy.groups.checked_groups`.
    settings : StageSettings
    """
    query, tell = settings.query, settings.tell
    gap, insecure_seed = settings.gap, settings.insecure_seed
    first = steps[0].budget
    tell("preparing the design")
    strategy = choose_strategy(
        X,
        prior=prior,
        likelihood=likelihood,
        encoding=encoding,
        query=query,
        budget=first,
        criterion=settings.criterion,
        groups=groups,
        gap=gap,
        progress=settings.progress,
    )
    tell("asking the outputs")
    release = Release(
        prior=prior,
        likelihood=likelihood,
        inference="iterated" if likelihood.linear else "posterior",
        measurements=(
            measured(
                strategy,
                y,
                encoding=encoding,
                budget=first,
                after_answers=bool(counted),
                insecure_seed=insecure_seed,
            ),
            *counted,
        ),
        input_names=settings.input_names,
        output_name=settings.output_name,
    )
    if settings.hyperprior is not None:
        tell("learning from the noisy answers")
        release = release.learn(settings.hyperprior, average=settings.average)
    asked, stages = 1, sum(step.stage is not None for step in steps)
    for number, step in enumerate(steps[1:], start=1):
        seed = None if insecure_seed is None else insecure_seed + number
        if step.stage is None:
            tell("asking how noisy outputs are")
            release = ask_spread(release, y, budget=step.budget, insecure_seed=seed)
            continue
        asked += 1
        tell(f"asking again, in bands ({asked} of {stages})")
        with already_warned():
            release = refine(
                release,
                y,
                query.X,
                query_weight=query.weights,
                epsilon=step.budget.epsilon,
                delta=step.budget.delta,
                noise=step.budget.noise,
                band=step.stage.width,
                gap=gap,
                progress=settings.progress,
                insecure_seed=seed,
            )
    return release
