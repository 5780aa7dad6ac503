"""One private fit as a function: design, measure, learn, and return what may be published."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from numpy.typing import ArrayLike

from cloakgp.design import Progress
from cloakgp.fitting.remeasure import refine
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.privacy import Guarantee, OutputBounds, measure
from cloakgp.privacy.accounting import check_budget, exact_noise_multiplier
from cloakgp.privacy.checks import already_warned
from cloakgp.privacy.groups import checked_groups
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release import Budget, Hyperprior, Query, Release, choose_questions
from cloakgp.utils.arrays import Array
from cloakgp.utils.passes import Tell, tell_nobody

# Kept back from each stage, so that rounding in two calibrations cannot add up beyond the budget.
STAGE_MARGIN = 1e-6


@forget_on_failure
def release_regression(
    X: Array,
    y: ArrayLike,
    *,
    prior: ExactPrior | SparsePrior,
    query: Query,
    bounds: OutputBounds,
    epsilon: float,
    delta: float,
    groups: Iterable[Hashable] | None = None,
    criterion: str = "bayes",
    gap: float = 1e-3,
    hyperprior: Hyperprior | None = None,
    average: bool = False,
    budget_split: float | None = None,
    input_names: Sequence[str] = (),
    output_name: str = "y",
    progress: Progress | None = None,
    tell: Tell = tell_nobody,
    insecure_seed: int | None = None,
) -> Release:
    """Design, measure, learn from the answers, and return what may be published.

    y is handed to `cloakgp.privacy.gaussian` and touched nowhere else.

    Parameters
    ----------
    X : array of shape (N, D)
        Public inputs.
    y : array-like of shape (N,)
        Private outputs.
    prior : ExactPrior or SparsePrior
    query : Query
    bounds : OutputBounds
    epsilon, delta : float
        The whole budget.
    groups : iterable of N hashables, optional
        Public: whose row it is. All rows of one group are protected together.
    criterion : str
        One of `cloakgp.criteria` for numbers.
    gap : float
    hyperprior : Hyperprior, optional
        What to learn from the answers, at no cost; None to keep the prior as declared.
    average : bool
        Average over the posterior of the hyperparameters rather than take its maximum.
    budget_split : float, optional
        Share of μ² spent on a first stage, from which hyperparameters are learned that the second
        stage is designed with. Both stages' answers are in the release.
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
    check_budget(epsilon, delta)
    if budget_split is None:
        stages: tuple[Budget, ...] = (Budget(epsilon=epsilon, delta=delta),)
    else:
        if not 0 < budget_split < 1:
            raise ValueError(f"budget_split must lie strictly between 0 and 1, got {budget_split}")
        stages = split_budget(epsilon, delta, shares=(budget_split, 1.0 - budget_split))
    units = checked_groups(groups, rows=len(X))
    tell("preparing the design")
    questions = choose_questions(
        X,
        prior=prior,
        query=query,
        bounds=bounds,
        budget=stages[0],
        criterion=criterion,
        groups=units,
        gap=gap,
        progress=progress,
    )
    tell("asking the outputs")
    answers = measure(
        questions.strategy,
        y,
        bounds=(bounds.lo, bounds.hi),
        epsilon=stages[0].epsilon,
        delta=stages[0].delta,
        groups=units,
        insecure_seed=insecure_seed,
    )
    release = Release(
        prior=prior,
        measurements=(questions.answered(answers),),
        input_names=tuple(input_names),
        output_name=output_name,
    )
    if hyperprior is not None:
        tell("learning from the noisy answers")
        release = release.learn(hyperprior, average=average)
    for stage in stages[1:]:
        tell("preparing the second design")
        with already_warned():
            release = refine(
                release,
                y,
                query.X,
                query_weight=query.weights,
                epsilon=stage.epsilon,
                delta=stage.delta,
                gap=gap,
                progress=progress,
                insecure_seed=None if insecure_seed is None else insecure_seed + 1,
            )
    return release


def split_budget(epsilon: float, delta: float, *, shares: Sequence[float]) -> tuple[Budget, ...]:
    """Split a budget so that its parts compose to it: μ² adds up (Dong, Roth and Su 2022).

    Parameters
    ----------
    epsilon, delta : float
        The whole.
    shares : sequence of float
        Of μ²; positive, adding up to 1.

    Raises
    ------
    ValueError
        If a part would have ε = 0 at this δ.

    Examples
    --------
    >>> [round(part.epsilon, 3) for part in split_budget(1.0, 0.01, shares=(0.5, 0.5))]
    [0.629, 0.629]
    """
    mu = (1.0 - STAGE_MARGIN) / exact_noise_multiplier(epsilon, delta)
    whole = Guarantee(epsilon=epsilon, delta=delta, mu=mu)
    parts = [replace(whole, mu=mu * math.sqrt(share)).epsilon_at(delta) for share in shares]
    if min(parts) <= 0:
        raise ValueError(
            "splitting the budget leaves a part with epsilon = 0 at this delta: use a smaller "
            "delta or no split"
        )
    return tuple(Budget(epsilon=part, delta=delta) for part in parts)
