"""One private fit as a function: design, measure, learn, and return what may be published."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.design import Progress
from cloakgp.fitting.bands import ONE_STAGE, Stage, schedule_stages, whole_of
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
from cloakgp.privacy.groups import checked_groups
from cloakgp.privacy.noise import noise_named
from cloakgp.privacy.spending import hold, one_charge
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.privacy.transforms import transform_outputs
from cloakgp.release import Hyperprior, Measurement, Release
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import NoiseName
from cloakgp.utils.passes import Tell, tell_nobody


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
        ask_spread=hyperprior is not None and hyperprior.noise_variance,
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
    first = steps[0].budget
    tell("preparing the design")
    strategy = choose_strategy(
        X,
        prior=prior,
        likelihood=likelihood,
        encoding=encoding,
        query=query,
        budget=first,
        criterion=criterion,
        groups=units,
        gap=gap,
        progress=progress,
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
        input_names=tuple(input_names),
        output_name=output_name,
    )
    if hyperprior is not None:
        tell("learning from the noisy answers")
        release = release.learn(hyperprior, average=average)
    asked = 1
    for number, step in enumerate(steps[1:], start=1):
        seed = None if insecure_seed is None else insecure_seed + number
        if step.stage is None:
            tell("asking how noisy outputs are")
            release = ask_spread(release, y, budget=step.budget, insecure_seed=seed)
            continue
        asked += 1
        tell(f"asking again, in bands ({asked} of {len(stages)})")
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
                progress=progress,
                insecure_seed=seed,
            )
    return release if transform is None else replace(release, transform=transform)
