"""The papers' classification: every step of Newton's iteration is published (2021, section 4)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.design import Progress, design_strategy
from cloakgp.fitting.held import HeldTable
from cloakgp.fitting.strategies import Budget, split_budget
from cloakgp.fitting.table import Design
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.likelihoods import ClassLikelihood
from cloakgp.privacy.budgets import check_budget
from cloakgp.privacy.questions.classes import Classes
from cloakgp.privacy.spending import hold, one_charge
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release import DenseStrategy, Release
from cloakgp.release.posterior.laplace import NewtonState
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import DEFAULT_GAP, CriterionName
from cloakgp.utils.passes import OnStep, ignore_step

# The papers' iteration converges in some ten steps without noise.
MOST_STEPS = 100
# Between the insecure seeds of steps, so that runs with consecutive seeds share no noise.
STRIDE = 1_000_003


@forget_on_failure
@one_charge
def release_iteration(
    X: Array,
    y: ArrayLike,
    *,
    prior: ExactPrior | SparsePrior,
    likelihood: ClassLikelihood,
    classes: Classes,
    epsilon: float,
    delta: float,
    steps: int = 1,
    step_criterion: CriterionName = "logdet",
    gap: float = DEFAULT_GAP,
    input_names: Sequence[str] = (),
    output_name: str = "y",
    progress: Progress | None = None,
    on_step: OnStep = ignore_step,
    insecure_seed: int | None = None,
) -> Release:
    """Publish the papers' Newton steps, each designed after the one before it.

    Parameters
    ----------
    X : array of shape (N, D)
        Public inputs.
    y : array-like of shape (N,)
        Private labels.
    prior : ExactPrior or SparsePrior
    likelihood : ClassLikelihood
        Of two classes.
    classes : Classes
    epsilon, delta : float
        The whole budget, which the steps share.
    steps : int
    step_criterion : {"trace", "logdet"}
        Of the noise on every step.
    gap, input_names, output_name, progress, on_step, insecure_seed
        As for `cloakgp.estimators.DPGPClassifier`.

    Returns
    -------
    Release
        Whose predictions are read off the iteration.

    Raises
    ------
    ValueError
        For anything that does not make sense; no message quotes a label of y.
    """
    check_budget(epsilon, delta)
    if classes.channels > 1:
        raise ValueError("criterion='newton' is the papers', for two classes: use 'bayes' for more")
    budgets = _equal_budgets(epsilon, delta, steps=steps)
    hold((epsilon, delta))
    table = HeldTable(X=X)
    state, measurements = NewtonState.start(prior, likelihood, X), []
    for number, budget in enumerate(budgets):
        on_step(f"designing step {number + 1} of {len(budgets)}")
        design = design_strategy(
            state.cloaking_matrix(), criterion=step_criterion, gap=gap, progress=progress
        )
        strategy = DenseStrategy(
            X=X,
            matrix=design.strategy,
            X_query=X,
            reconstruction=design.reconstruction,
            certificate=design.certificate,
        )
        measurement = table.ask(
            Design(strategy=strategy, question=classes),
            y,
            budget,
            after_answers=number > 0,
            insecure_seed=None if insecure_seed is None else insecure_seed + STRIDE * number,
        )
        measurements.append(measurement)
        state = state.step(measurement)
    return Release(
        prior=prior,
        likelihood=likelihood,
        measurements=tuple(measurements),
        inference="newton",
        input_names=tuple(input_names),
        output_name=output_name,
    )


def _equal_budgets(epsilon: float, delta: float, *, steps: int) -> tuple[Budget, ...]:
    whole = isinstance(steps, int | np.integer) and not isinstance(steps, bool)
    if not (whole and 1 <= steps <= MOST_STEPS):
        raise ValueError(f"steps must be a whole number from 1 to {MOST_STEPS}, got {steps!r}")
    if steps == 1:
        return (Budget(epsilon=epsilon, delta=delta),)
    return split_budget(Budget(epsilon, delta), shares=[1.0 / steps] * int(steps))
