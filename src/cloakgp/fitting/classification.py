"""One private fit of a classifier as a function: design, measure, learn, return the release."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.criteria import criterion_named
from cloakgp.data import InputRows
from cloakgp.design import Progress, design_strategy
from cloakgp.fitting.regression import split_budget
from cloakgp.fitting.streaming import MANY_ROWS, design_rows
from cloakgp.models import SparsePrior
from cloakgp.models.likelihoods.classes import LabelPrior
from cloakgp.models.summary import summarise
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.accounting import check_budget, exact_noise_multiplier
from cloakgp.privacy.labels import Classes, measure_labels, signed_width
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release import Budget, Query, Questions, choose_questions
from cloakgp.release.label_measurement import LabelMeasurement
from cloakgp.release.label_release import LabelRelease, Learning
from cloakgp.release.posterior.laplace import NewtonState
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import CriterionName
from cloakgp.utils.passes import Tell, tell_nobody

# The papers' iteration converges in some ten steps without noise.
MOST_STEPS = 100
# Between the insecure seeds of steps, so that runs with consecutive seeds share no noise.
STRIDE = 1_000_003


@forget_on_failure
def release_labels(
    X: Array,
    y: ArrayLike,
    *,
    prior: LabelPrior,
    query: Query,
    classes: Classes,
    epsilon: float,
    delta: float,
    criterion: str = "bayes",
    step_criterion: CriterionName = "logdet",
    steps: int = 1,
    gap: float = 1e-3,
    learning: Learning | None = None,
    learn_means: bool = True,
    input_names: Sequence[str] = (),
    output_name: str = "y",
    progress: Progress | None = None,
    tell: Tell = tell_nobody,
    insecure_seed: int | None = None,
) -> LabelRelease:
    """Design, measure, learn from the answers, and return what may be published.

    y is handed to `cloakgp.privacy.labels.measure_labels` and touched nowhere else.

    Parameters
    ----------
    X : array of shape (N, D)
        Public inputs.
    y : array-like of shape (N,)
        Private labels.
    prior : LabelPrior
    query : Query
    classes : Classes
    epsilon, delta : float
        The whole budget.
    criterion : str
        One of `cloakgp.criteria` for classes.
    step_criterion : {"trace", "logdet"}
        Of the noise on the papers' Newton steps.
    steps : int
        Newton steps of "laplace", which share the budget.
    gap : float
    learning : {"map", "average"} or None
        What to learn from the answers, at no cost.
    learn_means : bool
        Whether that includes the latent means, and so the classes' rates.
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
    LabelRelease

    Raises
    ------
    ValueError
        For anything that does not make sense; no message quotes a label of y.
    """
    check_budget(epsilon, delta)
    if criterion_named(criterion, use="classes").iterates:
        return _iterated(
            X,
            y,
            prior=prior,
            classes=classes,
            budgets=_equal_budgets(epsilon, delta, steps=steps),
            step_criterion=step_criterion,
            gap=gap,
            names=(tuple(input_names), output_name),
            progress=progress,
            tell=tell,
            insecure_seed=insecure_seed,
        )
    tell("preparing the design")
    budget = Budget(epsilon=epsilon, delta=delta)
    questions = choose_label_questions(
        X,
        prior=prior,
        query=query,
        classes=classes,
        budget=budget,
        criterion=criterion,
        gap=gap,
        progress=progress,
    )
    tell("asking the labels")
    measurement = _asked(questions, y, classes=classes, budget=budget, insecure_seed=insecure_seed)
    release = LabelRelease(
        prior=prior,
        measurements=(measurement,),
        learn_means=learn_means,
        input_names=tuple(input_names),
        output_name=output_name,
    )
    if learning is None:
        return release
    tell("learning from the noisy answers")
    return release.learn(learning)


def choose_label_questions(
    X: Array,
    *,
    prior: LabelPrior,
    query: Query,
    classes: Classes,
    budget: Budget,
    criterion: str = "bayes",
    gap: float = 1e-3,
    progress: Progress | None = None,
) -> Questions:
    """Design the questions to put to labels. Sees public arrays only.

    For "bayes", the sharpest release about labels ±1 under the linear prior nearest to the declared
    one; "trace" and "logdet" cloak the linear part of a Newton step at the query points. With a
    sparse prior and more than 5,000 rows, the design goes through the rows in passes.

    Parameters
    ----------
    X : array of shape (N, D)
    prior : LabelPrior
    query : Query
    classes : Classes
    budget : Budget
    criterion : str
        One of `cloakgp.criteria` for classes and for numbers.
    gap : float
    progress : callable, optional

    Returns
    -------
    Questions
    """
    linear = criterion_named(criterion, use="classes").prior_over_labels(prior, X)
    if len(X) > MANY_ROWS and isinstance(linear, SparsePrior):
        return _questions_by_passes(
            X,
            prior=linear,
            query=query,
            noise_sd=signed_width(classes) * exact_noise_multiplier(budget.epsilon, budget.delta),
            criterion=criterion,
            gap=gap,
            progress=progress,
        )
    # Bounds this far apart make the design reckon with the noise that signs will have.
    half = signed_width(classes) / 2.0
    return choose_questions(
        X,
        prior=linear,
        query=query,
        bounds=OutputBounds(-half, half),
        budget=budget,
        criterion=criterion,
        gap=gap,
        progress=progress,
    )


def _questions_by_passes(
    X: Array,
    *,
    prior: SparsePrior,
    query: Query,
    noise_sd: float,
    criterion: str,
    gap: float,
    progress: Progress | None,
) -> Questions:
    """Design for many rows as `cloakgp.fitting.streaming` does, then write every row's column out.

    The numbers that such a design looks for do not grow with N; those of `choose_questions` do.
    """
    rows = InputRows(X)
    design = design_rows(
        rows,
        summarise(rows),
        prior=prior,
        query=query,
        noise_sd=noise_sd,
        criterion=criterion,
        gap=gap,
        progress=progress,
    )
    columns = [design.rule.columns(*prior.features_and_noise(one.X)) for one in rows.chunks()]
    return Questions(
        X=X,
        strategy=np.hstack(columns),
        X_query=query.X,
        reconstruction=design.reconstruction,
        certificate=design.certificate,
        query_weights=query.weights,
    )


def _iterated(
    X: Array,
    y: ArrayLike,
    *,
    prior: LabelPrior,
    classes: Classes,
    budgets: Sequence[Budget],
    step_criterion: CriterionName,
    gap: float,
    names: tuple[tuple[str, ...], str],
    progress: Progress | None,
    tell: Tell,
    insecure_seed: int | None,
) -> LabelRelease:
    """Publish the papers' Newton steps, each designed after the one before it."""
    if classes.channels > 1:
        raise ValueError(
            "criterion='laplace' is the papers', for two classes: use 'bayes' for more"
        )
    state, measurements = NewtonState.start(prior, X), []
    for number, budget in enumerate(budgets):
        tell(f"designing step {number + 1} of {len(budgets)}")
        design = design_strategy(
            state.cloaking_matrix(), criterion=step_criterion, gap=gap, progress=progress
        )
        questions = Questions(
            X=X,
            strategy=design.strategy,
            X_query=X,
            reconstruction=design.reconstruction,
            certificate=design.certificate,
        )
        measurement = _asked(
            questions,
            y,
            classes=classes,
            budget=budget,
            insecure_seed=None if insecure_seed is None else insecure_seed + STRIDE * number,
        )
        measurements.append(measurement)
        state = state.stepped(measurement)
    return LabelRelease(
        prior=prior,
        measurements=tuple(measurements),
        rule="laplace",
        input_names=names[0],
        output_name=names[1],
    )


def _asked(
    questions: Questions,
    y: ArrayLike,
    *,
    classes: Classes,
    budget: Budget,
    insecure_seed: int | None,
) -> LabelMeasurement:
    answers = measure_labels(
        questions.strategy,
        y,
        classes=classes,
        epsilon=budget.epsilon,
        delta=budget.delta,
        insecure_seed=insecure_seed,
    )
    return LabelMeasurement(questions=questions, answers=answers)


def _equal_budgets(epsilon: float, delta: float, *, steps: int) -> tuple[Budget, ...]:
    whole = isinstance(steps, int | np.integer) and not isinstance(steps, bool)
    if not (whole and 1 <= steps <= MOST_STEPS):
        raise ValueError(f"steps must be a whole number from 1 to {MOST_STEPS}, got {steps!r}")
    if steps == 1:
        return (Budget(epsilon=epsilon, delta=delta),)
    return split_budget(epsilon, delta, shares=[1.0 / steps] * int(steps))
