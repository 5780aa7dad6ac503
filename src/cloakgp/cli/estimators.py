"""Estimators built from the options of `cloakgp release`, fitted, and what they released.

`DPGPRegressor` for a private number in every row, `DPGPClassifier` for a private class. Defaults,
checks and the choice of a sparse model are the estimators' own; here stands what a table and
options add: columns by name, kernels in words, advice that names options.
"""

from __future__ import annotations

from functools import partial

import pandas as pd

from cloakgp.cli import options
from cloakgp.cli.console import showing_warnings
from cloakgp.cli.options import ClassOptions, NumberOptions, ReleaseOptions
from cloakgp.cli.progress import reporting
from cloakgp.criteria import Criterion
from cloakgp.criteria.newton import NEWTON
from cloakgp.data import FileRows
from cloakgp.data.raw import RawRows
from cloakgp.data.tables import People, read_people
from cloakgp.estimators.classification import DPGPClassifier
from cloakgp.estimators.regression import DPGPRegressor
from cloakgp.models import default_latent_kernel, matern_kernel
from cloakgp.models.defaults import LATENT_SD, SIGNAL_SD_SHARE
from cloakgp.models.summary import summarise
from cloakgp.models.transforms import OutputTransform
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.labels import Classes
from cloakgp.privacy.transforms import transformed_bounds
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
    transform = OutputTransform.checked(given.transform, (limits.lo, limits.hi))
    if transform is not None:
        limits = transformed_bounds(transform)
    with reporting("opening the table", gap=plan.gap) as reporter, showing_warnings():
        raw = plan.raw_rows()
        schema, rows = raw.schema, _rows(plan, raw)
        rows = rows.watched(reporter.rows)
        looked = summarise(rows, size=1)
        if plan.signal_variance is not None and not plan.lengthscale:
            plan.check_ranges(looked.ranges, schema=schema)
        model = DPGPRegressor(
            plan.kernel(
                looked.ranges,
                variance=(SIGNAL_SD_SHARE * limits.width) ** 2,
                default=partial(matern_kernel, width=limits.width, blocks=schema.groups),
                schema=schema,
            ),
            given.noise_variance,
            schema=schema,
            bounds=given.bounds,
            epsilon=plan.epsilon,
            delta=plan.delta,
            noise=plan.noise,
            criterion=criterion,
            inducing=plan.inducing,
            mean=given.mean,
            learn=plan.learning,
            stages="auto" if given.stages == "auto" else None,
            interval="auto" if given.interval == "auto" else False,
            transform=given.transform,
            gap=plan.gap,
            memory=plan.memory,
        )
        query = plan.query_table(schema)
        how = model.plan(
            (looked.count, len(schema.names)), queries=None if query is None else query.shape[0]
        )
        if how.by_passes:
            how.announce()
            model.fit_rows(rows, query, progress=reporter.gap, tell=reporter.step)
        else:
            people = _people(plan, raw)
            model.fit(
                people.columns,
                pd.Series(people.private, name=plan.output),
                query,
                groups=people.groups,
                progress=reporter.gap,
                tell=reporter.step,
            )
        return plan.origin.kept_in(model.release_)


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
    if plan.person:
        raise ValueError(
            "--person goes with --bounds: how far answers about classes move when several rows of "
            "a person change together has no proof here, so classes are protected row by row"
        )
    rates = None
    if given.class_rates:
        rates = options.positive_numbers(given.class_rates, option="--class-rates")
    with reporting("opening the table", gap=plan.gap) as reporter, showing_warnings():
        raw = plan.raw_rows(classes=names)
        schema, rows = raw.schema, _rows(plan, raw)
        rows = rows.watched(reporter.rows)
        looked = summarise(rows, size=1)
        if not plan.lengthscale:
            plan.check_ranges(looked.ranges, schema=schema)
        model = DPGPClassifier(
            plan.kernel(
                looked.ranges,
                variance=LATENT_SD**2,
                default=partial(default_latent_kernel, blocks=schema.groups),
                schema=schema,
            ),
            schema=schema,
            classes=classes,
            epsilon=plan.epsilon,
            delta=plan.delta,
            noise=plan.noise,
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
        query = plan.query_table(schema)
        how = model.plan(
            (looked.count, len(schema.names)), queries=None if query is None else query.shape[0]
        )
        if how.by_passes:
            how.announce()
            model.fit_rows(rows, query, progress=reporter.gap, tell=reporter.step)
        else:
            people = _people(plan, raw)
            model.fit(
                people.columns,
                pd.Series(people.private, name=plan.output, dtype=object),
                query,
                progress=reporter.gap,
                tell=reporter.step,
            )
        return plan.origin.kept_in(model.release_)


def _rows(plan: ReleaseOptions, raw: RawRows) -> FileRows:
    return FileRows(
        plan.table,
        output=plan.output,
        groups=plan.person or None,
        raw=raw,
        table_format=plan.table_format,
    )


def _people(plan: ReleaseOptions, raw: RawRows) -> People:
    return read_people(
        plan.table,
        raw=raw,
        output=plan.output,
        groups=plan.person or None,
        table_format=plan.table_format,
    )


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
            raise ValueError(f"--steps and --step-criterion go with --criterion {NEWTON.name}")
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
