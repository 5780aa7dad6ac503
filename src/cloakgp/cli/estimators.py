"""Estimators built from the options of `cloakgp release`, fitted, and what they released.

`DPGPRegressor` for a private number in every row, `DPGPClassifier` for a private class. Defaults,
checks and the choice of a sparse model are the estimators' own; here stands what a table and
options add: columns by name, kernels in words, advice that names options.
"""

from __future__ import annotations

from functools import partial

from cloakgp.cli import options
from cloakgp.cli.console import showing_warnings
from cloakgp.cli.options import ClassOptions, NumberOptions, ReleaseOptions, as_table
from cloakgp.cli.progress import reporting
from cloakgp.criteria import Criterion
from cloakgp.criteria.laplace import LAPLACE
from cloakgp.data import FileRows
from cloakgp.data.tables import read_labelled_rows, read_rows
from cloakgp.estimators.classification import DPGPClassifier
from cloakgp.estimators.regression import DPGPRegressor
from cloakgp.models import default_latent_kernel, matern_kernel
from cloakgp.models.defaults import LATENT_SD, SIGNAL_SD_SHARE
from cloakgp.models.summary import summarise
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.labels import Classes
from cloakgp.release import Release
from cloakgp.utils.names import CRITERIA, LINKS, CriterionName, LinkName


def release_numbers(plan: ReleaseOptions, given: NumberOptions) -> Release:
    """Ask a private column of numbers once, as `DPGPRegressor` does.

    Parameters
    ----------
    plan : ReleaseOptions
    given : NumberOptions

    Raises
    ------
    ValueError
        For anything that does not make sense; no message quotes a private value.
    """
    criterion, limits = plan.criterion_for("numbers").name, OutputBounds.checked(given.bounds)
    rows = FileRows(plan.table, inputs=plan.inputs, output=plan.output)
    with reporting("opening the table", gap=plan.gap) as reporter, showing_warnings():
        rows = rows.watched(reporter.rows)
        looked = summarise(rows, size=1)
        if plan.signal_variance is not None and not plan.lengthscale:
            plan.check_ranges(looked.ranges)
        model = DPGPRegressor(
            plan.kernel(
                looked.ranges,
                variance=(SIGNAL_SD_SHARE * limits.width) ** 2,
                default=partial(matern_kernel, width=limits.width),
            ),
            given.noise_variance,
            bounds=given.bounds,
            epsilon=plan.epsilon,
            delta=plan.delta,
            criterion=criterion,
            inducing=plan.inducing,
            mean=given.mean,
            learn=plan.learning,
            stages="auto" if given.stages == "auto" else None,
            gap=plan.gap,
            memory=plan.memory,
        )
        query = plan.query_table()
        how = model.plan(
            (looked.count, len(plan.inputs)), queries=None if query is None else len(query)
        )
        if how.by_passes:
            how.announce()
            model.fit_rows(rows, query, progress=reporter.gap, tell=reporter.step)
        else:
            X, y = read_rows(plan.table, inputs=plan.inputs, output=plan.output)
            table, outputs = as_table(X, y, inputs=plan.inputs, output=plan.output)
            model.fit(table, outputs, query, progress=reporter.gap, tell=reporter.step)
        return model.release_


def release_classes(plan: ReleaseOptions, given: ClassOptions) -> Release:
    """Ask a private column of classes once, as `DPGPClassifier` does.

    Classes keep the order in which they are declared: with two, the latent function is high where
    the second is probable.

    Parameters
    ----------
    plan : ReleaseOptions
    given : ClassOptions

    Raises
    ------
    ValueError
        For anything that does not make sense; no message quotes a label.
    """
    names = options.names(given.classes, example="yes,no")
    if len(names) == 1:
        raise ValueError(
            f"--classes names one class, {names[0]}: name every class that can occur, at least two"
        )
    # In the order of the declaration.
    classes = Classes.checked(names)
    chosen = plan.criterion_for("classes")
    _check_options(plan, given, chosen=chosen, classes=classes)
    rates = None
    if given.class_rates:
        rates = options.positive_numbers(given.class_rates, option="--class-rates")
    rows = FileRows(plan.table, inputs=plan.inputs, output=plan.output)
    with reporting("opening the table", gap=plan.gap) as reporter, showing_warnings():
        rows = rows.watched(reporter.rows)
        looked = summarise(rows, size=1)
        if not plan.lengthscale:
            plan.check_ranges(looked.ranges)
        model = DPGPClassifier(
            plan.kernel(looked.ranges, variance=LATENT_SD**2, default=default_latent_kernel),
            classes=classes,
            epsilon=plan.epsilon,
            delta=plan.delta,
            criterion=chosen.name,
            link=_link(given),
            class_rates=rates,
            inducing=plan.inducing,
            learn=plan.learning,
            step_criterion=_step_criterion(given),
            steps=given.steps,
            gap=plan.gap,
            memory=plan.memory,
        )
        query = plan.query_table()
        how = model.plan(
            (looked.count, len(plan.inputs)), queries=None if query is None else len(query)
        )
        if how.by_passes:
            how.announce()
            model.fit_rows(rows, query, progress=reporter.gap, tell=reporter.step)
        else:
            X, y = read_labelled_rows(
                plan.table, inputs=plan.inputs, output=plan.output, classes=names
            )
            table, labels = as_table(X, y, inputs=plan.inputs, output=plan.output)
            model.fit(table, labels, query, progress=reporter.gap, tell=reporter.step)
        return model.release_


def _link(given: ClassOptions) -> LinkName | None:
    return options.one_of(LINKS, given.link, option="--link") if given.link else None


def _step_criterion(given: ClassOptions) -> CriterionName | None:
    if not given.step_criterion:
        return None
    return options.one_of(CRITERIA, given.step_criterion, option="--step-criterion")


def _check_options(
    plan: ReleaseOptions, given: ClassOptions, *, chosen: Criterion, classes: Classes
) -> None:
    """Raise ValueError, in the words of options, for what `DPGPClassifier` would refuse."""
    _link(given)
    _step_criterion(given)
    if given.steps is not None and given.steps < 1:
        raise ValueError(f"--steps must be at least 1, got {given.steps}")
    if not chosen.iterates:
        if given.steps is not None or given.step_criterion:
            raise ValueError(f"--steps and --step-criterion go with --criterion {LAPLACE.name}")
        return
    option = f"--criterion {chosen.name}"
    if classes.channels > 1:
        raise ValueError(f"{option} is for two classes: take bayes for more")
    if plan.queries is not None:
        raise ValueError(f"{option} asks at the rows: --queries goes with the others")
    if given.link and given.link != chosen.link:
        raise ValueError(
            f"{option} knows the {chosen.link} link alone: --link {given.link} goes with others"
        )
