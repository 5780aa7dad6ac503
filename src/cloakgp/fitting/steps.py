"""Steps of a fit: design, ask, learn, and again. The same for every kind of table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from cloakgp.fitting.bands import Step
from cloakgp.fitting.table import Count, Design, DesignSettings, Model, Table, design_given
from cloakgp.models.likelihoods import QuantileLikelihood
from cloakgp.privacy.checks import already_warned
from cloakgp.release import Hyperprior, Measurement, Release
from cloakgp.utils.passes import OnStep, ignore_step


@dataclass(frozen=True, eq=False, kw_only=True)
class Learning:
    """The settings of learning from answers.

    Attributes
    ----------
    hyperprior : Hyperprior or None
        None to keep the prior as declared.
    average : bool
        Average over the posterior of the hyperparameters rather than take its maximum.
    """

    hyperprior: Hyperprior | None = None
    average: bool = False

    @property
    def of_noise(self) -> bool:
        """Whether the outputs' own noise is learned."""
        return self.hyperprior is not None and self.hyperprior.noise_variance


NOTHING = Learning()


def take_steps(
    table: Table,
    y: Any,
    model: Model,
    steps: Sequence[Step],
    *,
    settings: DesignSettings,
    learning: Learning = NOTHING,
    counts: Sequence[Count] = (),
    on_step: OnStep = ignore_step,
    insecure_seed: int | None = None,
) -> Release:
    """Ask a table step by step, learn from the answers, and return the release.

    Parameters
    ----------
    table : Table
    y : array-like of shape (N,), or Rows
        Private.
    model : Model
    steps : sequence of Step
    settings : DesignSettings
    learning : Learning
    counts : sequence of Count
        Answers that decided on the model, and on what the steps may spend.
    on_step : callable
        Called with what begins, in a few words.
    insecure_seed : int, optional
        Makes the noise reproducible and the release **not private**.

    Raises
    ------
    ValueError
        If there is nothing to ask, before anything is drawn.
    """
    first, *later = steps
    on_step("preparing the design")
    design = table.design(first, model, settings, known=None)
    if not counts:
        table.check_asks(design.strategy)
    on_step("asking the outputs")
    measurement = table.ask(
        design, y, first.budget, after_answers=bool(counts), insecure_seed=insecure_seed
    )
    asked = [(design, measurement)]
    release = Release(
        prior=model.prior,
        likelihood=model.likelihood,
        inference=table.inference if model.likelihood.linear else "posterior",
        measurements=(measurement, *table.measure_counts(counts, first=measurement.strategy)),
        input_names=table.input_names,
        output_name=table.output_name,
    )

    def learned(release: Release) -> Release:
        hyperprior = learning.hyperprior
        if hyperprior is not None:
            on_step("learning from the noisy answers")
            if any(not one.calibrates for one in later):
                # A stage designed for a smaller scale could not find out that this is wrong.
                hyperprior = replace(hyperprior, scale=False)
        return table.learn(release, asked, hyperprior=hyperprior, average=learning.average)

    def resolved(release: Release) -> Release:
        """Choose inducing inputs anew before each later stage, and once after the last."""
        coming = next((one for one in later if one.stage is not None), None)
        follows = coming is not None and coming is later[0]
        if not follows and (coming is not None or step.stage is None):
            return release
        with already_warned():
            return table.resolve(release, coming, model, settings)

    release, step = learned(release), first
    while later:
        release = resolved(release)
        if step.if_free and not table.needs_stages(
            model, step.if_free[0].budget, settings, known=release
        ):
            later = list(step.if_free)
        step, *later = later
        located = sum(each.question.locates for _, each in asked)
        on_step(_in_words(step, model, before=located, later=later))
        with already_warned():
            design, measurement = take_step(
                table,
                y,
                model,
                step,
                settings=settings,
                known=release,
                insecure_seed=None if insecure_seed is None else insecure_seed + len(asked),
            )
        asked.append((design, measurement))
        release = replace(release, measurements=(*release.measurements, measurement))
        if not step.calibrates:
            release = learned(release)
        elif table.outputs == 1:
            # Predictions stay as they are: how these fit is what was asked.
            release = replace(release, calibration=len(release.measurements) - 1)
    return table.finish(resolved(release))


def _in_words(step: Step, model: Model, *, before: int, later: Sequence[Step]) -> str:
    """Return what a step does, for whoever waits.

    Parameters
    ----------
    step : Step
    model : Model
    before : int
        How many stages there were.
    later : sequence of Step
        What is to come after it.
    """
    if step.calibrates:
        return "asking how outputs fall where they were predicted"
    if step.stage is None:
        return "asking how noisy outputs are"
    if isinstance(model.likelihood, QuantileLikelihood):
        where = "at predicted quantiles"
    else:
        where = "as finely as learned" if step.stage.width is None else "in bands"
    stages = before + 1 + sum(one.stage is not None for one in later)
    return f"asking again, {where} ({before + 1} of {stages})"


def take_step(
    table: Table,
    y: Any,
    model: Model,
    step: Step,
    *,
    settings: DesignSettings,
    known: Release,
    insecure_seed: int | None,
) -> tuple[Design, Measurement]:
    """Ask a table once more, given a release.

    Parameters
    ----------
    table, y, model, step, settings, insecure_seed
        As for `take_steps`.
    known : Release
    """
    _, design = design_given(table, step, model, settings, known=known)
    design = replace(design, decides=bool(step.if_free))
    measurement = table.ask(design, y, step.budget, after_answers=True, insecure_seed=insecure_seed)
    return design, measurement
