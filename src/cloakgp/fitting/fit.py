"""One private fit: a schedule of questions put to a table, each designed from earlier answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from cloakgp.criteria import criterion_named
from cloakgp.design import Progress
from cloakgp.fitting.bands import (
    ONE_STAGE,
    RESOLVING_STAGES,
    Stages,
    Step,
    schedule_by_spread,
    schedule_stages,
    stages_for,
    whole_of,
)
from cloakgp.fitting.calibration import calibration_share
from cloakgp.fitting.interval import (
    NO_SEARCH,
    SEEDS_APART,
    adaptive_budget,
    find_intervals,
)
from cloakgp.fitting.margins import check_kept
from cloakgp.fitting.request import FitRequest
from cloakgp.fitting.steps import NOTHING, Learning, take_steps
from cloakgp.fitting.strata import keep_strata, plan_checked_search
from cloakgp.fitting.strategies import Budget, Query
from cloakgp.fitting.table import Count, DesignSettings, Model, Table
from cloakgp.models.transforms import OutputTransform
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.cohorts import largest_cohorts
from cloakgp.privacy.noise import NOISES
from cloakgp.privacy.spending import asking_cohort, hold, one_charge
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release import Release
from cloakgp.release.common_values import mostly_alike, rounds_of
from cloakgp.release.hyperparameters.gradients import check_gradient
from cloakgp.release.measurement import tables_of
from cloakgp.utils.names import NoiseName
from cloakgp.utils.passes import OnStep, ignore_step

ModelWithin = Callable[[Sequence[OutputBounds] | None], Model]
"""The model of outputs within the intervals that were found; within the declared bounds if None."""
# Of a fit: rows that are kept out for margins are in no question that others are in.
KEPT_OUT = 1
# Of persons times ε: where there are less, answers do not tell how wide bounds are.
FEW_ANSWERS = 150.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """How a table is to be fitted: all public.

    Attributes
    ----------
    budget : Budget
        The whole.
    model : callable
        Gives the model, within intervals that were found.
    settings : DesignSettings
    learning : Learning
    default_prior : bool
        Whether numbers have the default prior, of which smaller scales are weighed where answers
        are few.
    stages : "auto", None, or sequence of (share, width)
    searched : tuple of OutputBounds
        The declared bounds of each output of which an interval is looked for that holds most of
        it, where that costs little; empty if none is.
    calibrated : bool
        Whether outputs are counted in cells of their predicted distributions, where that can tell.
    kept : float
        The share of the rows that is kept out of all questions but one, which tells margins.
    random_state : int
        Of the draw of these rows.
    transform : OutputTransform or None
        Of outputs; everything else is about the transformed.
    on_step : callable
        Called with what begins, in a few words.
    insecure_seed : int or None
        Makes the noise reproducible and the release **not private**.
    """

    budget: Budget
    model: ModelWithin
    settings: DesignSettings
    learning: Learning = NOTHING
    default_prior: bool = False
    stages: Stages = None
    searched: tuple[OutputBounds, ...] = ()
    calibrated: bool = False
    kept: float = 0.0
    random_state: int = 0
    transform: OutputTransform | None = None
    on_step: OnStep = ignore_step
    insecure_seed: int | None = None

    @classmethod
    def of(
        cls,
        request: FitRequest,
        model: ModelWithin,
        *,
        query: Query,
        noise: NoiseName,
        progress: Progress | None = None,
        on_step: OnStep = ignore_step,
    ) -> Plan:
        """Resolve a request for one table.

        Parameters
        ----------
        request : FitRequest
        model : callable
            Gives the model of the table, within intervals that were found.
        query : Query
            Query points.
        noise : {"gaussian", "laplace"}
            Chosen for the table.
        progress, on_step : callable, optional
        """
        return cls(
            budget=Budget(*NOISES[noise].check(request.epsilon, request.delta), noise=noise),
            model=model,
            settings=DesignSettings(
                query=query, criterion=request.criterion, gap=request.gap, progress=progress
            ),
            learning=Learning(hyperprior=request.hyperprior, average=request.learn == "average"),
            default_prior=request.has_default_prior,
            stages=request.task.stages,
            searched=request.task.bounds_to_search(request.chosen_criterion()),
            calibrated=request.task.asks_calibration(request.chosen_criterion()),
            kept=request.task.kept,
            random_state=request.random_state,
            transform=request.task.transform,
            on_step=on_step,
            insecure_seed=request.insecure_seed,
        )


@forget_on_failure
@one_charge
def fit(table: Table, y: Any, plan: Plan) -> Release:
    """Ask a table as planned, and return the release.

    Parameters
    ----------
    table : Table
    y : array-like of shape (N,), or Rows
        Private outputs, or the rows from which they are read: handed to `cloakgp.privacy.ask`, and
        touched nowhere else.
    plan : Plan

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
    >>> from cloakgp.fitting.defaults import choose_prior, choose_query
    >>> from cloakgp.fitting.held import HeldTable
    >>> X = np.linspace(0.0, 10.0, 50)[:, None]
    >>> bounds = OutputBounds(-1.0, 1.0)
    >>> model = Model(prior=choose_prior(X, bounds=bounds), question=bounds)
    >>> plan = Plan(budget=Budget(1.0, 1e-3), model=lambda found: model,
    ...             settings=DesignSettings(query=choose_query(X)))
    >>> fit(HeldTable.of(X), np.sin(X).ravel(), plan).n_rows
    50
    """
    checked = plan.budget.law.check(*plan.budget.pair)
    budget = replace(plan.budget.of(checked), added=table.added_noise)
    search, model = NO_SEARCH, plan.model(None)
    if plan.learning.hyperprior is not None:
        check_gradient(model.prior.kernel, plan.settings.query.X)
    kept, declared_model = None, model
    if plan.kept:
        table, kept = table.keep_out(plan.kept, random_state=plan.random_state)
        # Of parts without δ only the sum counts, beside others.
        budget = adaptive_budget(budget)
        check_kept(budget, rows=kept.rows)
    if plan.searched:
        search = plan_checked_search(
            plan.searched[0],
            budget=adaptive_budget(budget),
            rows=table.counted,
            largest_group=table.most_counted,
            outputs=table.outputs,
        )
    if search.rounds:
        budget = adaptive_budget(budget)
    spent = search.spent(len(search.rounds), checks=len(search.checks))
    steps = _schedule(table, plan, model, budget=budget, spent=spent)
    if search.rounds:
        # The first design is made after counts, within what they find: too late to refuse it.
        table.check_first(steps[0], model, plan.settings)
    if kept is None:
        hold(whole_of(budget, steps=steps, others=search.parts))
    else:
        # Nobody is in both a question of the fit and that about margins, which takes the whole
        # budget at once: no less than its shares.
        hold(whole_of(budget, steps=[Step(stage=None, budget=budget)]))
    counts: tuple[Count, ...] = ()
    if search.rounds:
        plan.on_step("looking for where most outputs lie")
        found, counts = find_intervals(
            partial(table.count, y=y),
            bounds=plan.searched,
            rows=table.counted,
            plan=search,
            insecure_seed=plan.insecure_seed,
        )
        asked = [
            keep_strata(
                partial(table.count, y=y),
                found=interval,
                declared=declared,
                plan=search,
                strata=partial(table.strata, search.strata, output=output),
                output=output,
                insecure_seed=plan.insecure_seed,
            )
            for output, (interval, declared) in enumerate(zip(found, plan.searched, strict=True))
        ]
        found = tuple(interval for interval, _ in asked)
        outside = tuple(one for _, counts_outside in asked for one in counts_outside)
        alike = any(
            mostly_alike(
                rounds_of([one for one in counts if one.output == output]), rows=table.counted
            )
            for output in range(table.outputs)
        )
        if found != plan.searched:
            model = plan.model(found)
        table = table.within(found)
        # What was not needed is the stages' budget.
        spent = search.spent(len(counts), checks=len(outside))
        steps = _schedule(table, plan, model, budget=budget, spent=spent, alike=alike)
        counts += outside
    release = take_steps(
        table,
        y,
        model,
        steps,
        settings=plan.settings,
        learning=_learning(table, plan),
        counts=counts,
        on_step=plan.on_step,
        insecure_seed=plan.insecure_seed,
    )
    if kept is not None:
        plan.on_step("asking the rows that were kept out how far predictions are off")
        release = _with_margins(kept, y, release, budget=budget, model=declared_model, plan=plan)
    return release if plan.transform is None else replace(release, transform=plan.transform)


def _learning(table: Table, plan: Plan) -> Learning:
    """Return the settings of learning from the answers of a table."""
    if not plan.default_prior:
        return plan.learning
    persons = table.counted / table.most_counted
    return learning_of_default_prior(plan.learning, epsilon=plan.budget.epsilon, persons=persons)


def learning_of_default_prior(chosen: Learning, *, epsilon: float, persons: float) -> Learning:
    """Return the settings of learning: with smaller scales of the prior where answers are few.

    Parameters
    ----------
    chosen : Learning
    epsilon : float
        Of the whole fit.
    persons : float
        How often the rows of the largest group, or single rows, fit into all rows.

    Examples
    --------
    >>> from cloakgp.release import Hyperprior
    >>> chosen = Learning(hyperprior=Hyperprior())
    >>> [learning_of_default_prior(chosen, epsilon=1.0, persons=count).hyperprior.scale
    ...  for count in (149, 150)]
    [True, False]
    """
    if chosen.hyperprior is None or epsilon * persons >= FEW_ANSWERS:
        return chosen
    return replace(chosen, hyperprior=replace(chosen.hyperprior, scale=True))


def _with_margins(
    kept: Table, y: Any, release: Release, *, budget: Budget, model: Model, plan: Plan
) -> Release:
    """Ask rows that were kept out how far predictions are off, with the whole budget."""
    design = kept.design_margins(model, plan.settings, known=release)
    seed = plan.insecure_seed
    with asking_cohort(KEPT_OUT):
        measurement = kept.ask(
            design,
            y,
            budget,
            after_answers=True,
            insecure_seed=None if seed is None else seed + SEEDS_APART - 1,
        )
    asked = (*release.measurements, measurement)
    apart = (tables_of(release.measurements), (measurement.strategy.table,))
    return replace(release, measurements=asked, kept=len(asked) - 1, cohorts=largest_cohorts(apart))


def _schedule(
    table: Table, plan: Plan, model: Model, *, budget: Budget, spent: float, alike: bool = False
) -> tuple[Step, ...]:
    """Split a budget over the stages, after counts that spent a share of it.

    Where these found most outputs at single values, there are no bands, unless stages are given,
    and nothing is calibrated, as distances of such outputs have no smooth law.
    """
    in_stages = model.likelihood.in_stages
    criterion = criterion_named(plan.settings.criterion, use="numbers" if in_stages else "classes")
    stages = stages_for(plan.stages, criterion=criterion, noise=budget.noise)
    chosen_here = isinstance(plan.stages, str) and len(stages) > 1
    if chosen_here and not in_stages:
        stages, chosen_here = ONE_STAGE, False
    share = 0.0
    if plan.calibrated and not alike and table.calibrates(model, average=plan.learning.average):
        share = calibration_share(
            budget,
            rows=table.counted,
            largest_group=table.most_counted,
            outputs=table.outputs,
        )
    unbanded = ONE_STAGE if plan.learning.hyperprior is None else RESOLVING_STAGES
    by_counts = alike and chosen_here
    if by_counts:
        stages, chosen_here = unbanded, False
    if chosen_here and plan.learning.of_noise and table.goes_by_spread(model):
        table.check_stages(stages, model)
        by_spread = schedule_by_spread(
            budget=adaptive_budget(budget),
            rows=table.rows,
            spent=spent,
            calibration=share,
            outputs=table.outputs,
        )
        if by_spread is not None:
            return by_spread
    if chosen_here and not table.needs_stages(model, budget, plan.settings):
        stages = unbanded
    table.check_stages(stages, model)
    return schedule_stages(
        stages,
        budget=budget,
        rows=table.rows,
        ask_spread=plan.learning.of_noise,
        # Whoever declares one stage has one; of raw predictions nobody learns. Where most outputs
        # are alike, it takes as much as beside bands to tell how far the others lie.
        beside_one=isinstance(plan.stages, str) and "stages" in criterion.uses and not by_counts,
        spent=spent,
        calibration=share,
        outputs=table.outputs,
    )
