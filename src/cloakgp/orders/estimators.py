"""Estimators built from the options of `cloakgp release`, fitted, and what they released.

`DPGPRegressor` for a private number in every row, `DPGPClassifier` for a private class. Defaults,
checks and the choice of a sparse model are the estimators' own; here stands what a table and
options add: columns by name, kernels in words, advice that names options.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from cloakgp.columns import Schema
from cloakgp.criteria import Criterion
from cloakgp.criteria.newton import NEWTON
from cloakgp.data import FileRows
from cloakgp.data.raw import REFUSE, RawRows, RawTable
from cloakgp.data.tables import People, read_people, read_public
from cloakgp.estimators.classification import DPGPClassifier
from cloakgp.estimators.regression import DPGPRegressor
from cloakgp.fitting.release_plan import ReleasePlan
from cloakgp.models import default_latent_kernel, matern_kernel
from cloakgp.models.defaults import LATENT_SD, SIGNAL_SD_SHARE
from cloakgp.models.summary import Summary, summarise
from cloakgp.models.transforms import OutputTransform
from cloakgp.orders import texts
from cloakgp.orders.options import ClassOptions, NumberOptions, ReleaseOptions
from cloakgp.orders.progress import Reporter
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.labels import Classes
from cloakgp.privacy.noise import noise_for
from cloakgp.privacy.transforms import transformed_bounds
from cloakgp.release import Release
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra
from cloakgp.utils.names import CRITERIA, LINKS, CriterionName, LinkName

with extra("tables"):
    import pandas as pd


def make_release(
    plan: ReleaseOptions, given: NumberOptions | ClassOptions, *, reporter: Reporter
) -> Release:
    """Ask the private column once.

    Parameters
    ----------
    plan : ReleaseOptions
    given : NumberOptions or ClassOptions
    reporter : Reporter
        Is told what is done.

    Raises
    ------
    ValueError
        For anything that does not make sense; no message quotes a private value.
    """
    noise_for(plan.noise, epsilon=plan.epsilon, delta=plan.delta)
    if isinstance(given, NumberOptions):
        return release_numbers(plan, given, reporter=reporter)
    return release_classes(plan, given, reporter=reporter)


def plan_release(
    plan: ReleaseOptions,
    given: NumberOptions | ClassOptions,
    *,
    epsilons: Sequence[float] | None,
    reporter: Reporter,
) -> ReleasePlan:
    """Plan what `make_release` would do; the private column is not read.

    Parameters
    ----------
    plan : ReleaseOptions
    given : NumberOptions or ClassOptions
    epsilons : sequence of float, optional
        Other budgets; some around the asked one if not given.
    reporter : Reporter
        Is told what is done.

    Raises
    ------
    ValueError
        For what makes no sense.
    """
    for epsilon in (plan.epsilon, *(epsilons or ())):
        noise_for(plan.noise, epsilon=epsilon, delta=plan.delta)
    if isinstance(given, NumberOptions):
        return plan_numbers(plan, given, epsilons=epsilons, reporter=reporter)
    return plan_classes(plan, given, reporter=reporter)


def check_order(plan: ReleaseOptions, given: NumberOptions | ClassOptions) -> None:
    """Check all of an order that needs no table.

    Parameters
    ----------
    plan : ReleaseOptions
    given : NumberOptions or ClassOptions

    Raises
    ------
    ValueError
        For what makes no sense.
    """
    plan.check()
    noise_for(plan.noise, epsilon=plan.epsilon, delta=plan.delta)
    if isinstance(given, NumberOptions):
        plan.criterion_for("numbers")
        _limits(given)
    else:
        _declared_classes(plan, given)


def release_numbers(plan: ReleaseOptions, given: NumberOptions, *, reporter: Reporter) -> Release:
    """Ask a private column of numbers once, as `DPGPRegressor` does.

    Parameters
    ----------
    plan : ReleaseOptions
    given : NumberOptions
    reporter : Reporter
        Is told what is done.

    Raises
    ------
    ValueError
        For anything that does not make sense; no message quotes a private value.
    """
    plan.criterion_for("numbers")
    _limits(given)
    return _asked(plan, plan.raw_rows(), partial(_number_model, plan, given), reporter=reporter)


def plan_numbers(
    plan: ReleaseOptions,
    given: NumberOptions,
    *,
    epsilons: Sequence[float] | None,
    reporter: Reporter,
) -> ReleasePlan:
    """Plan what `release_numbers` would do; the private column is not read.

    Parameters
    ----------
    plan : ReleaseOptions
    given : NumberOptions
    epsilons : sequence of float, optional
        As for `DPGPRegressor.plan`.
    reporter : Reporter
        Is told what is done.

    Raises
    ------
    ValueError
        For anything that does not make sense.
    """
    plan.criterion_for("numbers")
    _limits(given)
    found = _look(plan, reporter)
    model = _number_model(plan, given, schema=found.schema, ranges=found.looked.ranges)
    reporter.step("forecasting what predictions will be worth")
    if model.plan_fit(found.shape, queries=found.queries).by_passes:
        return model.plan(found.rows, found.query)
    columns, groups = _public_columns(plan, found.schema)
    return model.plan(columns, found.query, groups=groups, epsilons=epsilons)


def release_classes(plan: ReleaseOptions, given: ClassOptions, *, reporter: Reporter) -> Release:
    """Ask a private column of classes once, as `DPGPClassifier` does.

    Classes keep the order in which they are declared: with two, the latent function is high where
    the second is probable.

    Parameters
    ----------
    plan : ReleaseOptions
    given : ClassOptions
    reporter : Reporter
        Is told what is done.

    Raises
    ------
    ValueError
        For anything that does not make sense; no message quotes a label.
    """
    names, classes = _declared_classes(plan, given)
    make = partial(_class_model, plan, given, classes)
    return _asked(plan, plan.raw_rows(classes=names), make, reporter=reporter, dtype=object)


def plan_classes(plan: ReleaseOptions, given: ClassOptions, *, reporter: Reporter) -> ReleasePlan:
    """Plan what `release_classes` would do; the private column is not read.

    Parameters
    ----------
    plan : ReleaseOptions
    given : ClassOptions
    reporter : Reporter
        Is told what is done.

    Raises
    ------
    ValueError
        For anything that does not make sense.
    """
    names, classes = _declared_classes(plan, given)
    found = _look(plan, reporter, classes=names)
    model = _class_model(plan, given, classes, schema=found.schema, ranges=found.looked.ranges)
    if model.plan_fit(found.shape, queries=found.queries).by_passes:
        return model.plan(found.rows, found.query)
    columns, groups = _public_columns(plan, found.schema)
    return model.plan(columns, found.query, groups=groups)


def _asked(
    plan: ReleaseOptions,
    raw: RawRows,
    make: Callable[..., DPGPRegressor | DPGPClassifier],
    *,
    reporter: Reporter,
    dtype: type | None = None,
) -> Release:
    """Fit a model to a table, in passes or at once; ``make`` takes the schema and the ranges."""
    schema, rows = raw.schema, _rows(plan, raw).watched(reporter.rows)
    looked = summarise(rows, size=1)
    model = make(schema=schema, ranges=looked.ranges)
    query = plan.query_table(schema)
    how = model.plan_fit(
        (looked.count, len(schema.names)), queries=None if query is None else query.shape[0]
    )
    if how.by_passes:
        how.announce()
        model.fit_rows(rows, query, progress=reporter.gap, tell=reporter.step)
    else:
        people = _people(plan, raw)
        model.fit(
            people.columns,
            pd.Series(people.private, name=plan.output, dtype=dtype),
            query,
            groups=people.groups,
            progress=reporter.gap,
            tell=reporter.step,
        )
    return plan.origin.kept_in(model.release_)


@dataclass(frozen=True, eq=False)
class _Public:
    """What is known of a table whose private column nobody has read."""

    rows: FileRows
    schema: Schema
    looked: Summary
    query: RawTable | None

    @property
    def shape(self) -> tuple[int, int]:
        return self.looked.count, len(self.schema.names)

    @property
    def queries(self) -> int | None:
        return None if self.query is None else self.query.shape[0]


def _look(plan: ReleaseOptions, reporter: Reporter, *, classes: Sequence[str] = ()) -> _Public:
    # Which rows lack a private value is private: nothing is left out here.
    raw = replace(plan.raw_rows(classes=classes), missing_output=REFUSE)
    rows = _rows(plan, raw).watched(reporter.rows)
    return _Public(
        rows=rows,
        schema=raw.schema,
        looked=summarise(rows, size=1),
        query=plan.query_table(raw.schema),
    )


def _limits(given: NumberOptions) -> OutputBounds:
    """Return the bounds of what is asked: of outputs, or of transformed ones."""
    limits = OutputBounds.checked(given.bounds)
    transform = OutputTransform.checked(given.transform, (limits.lo, limits.hi))
    return limits if transform is None else transformed_bounds(transform)


def _number_model(
    plan: ReleaseOptions, given: NumberOptions, *, schema: Schema, ranges: Array
) -> DPGPRegressor:
    limits = _limits(given)
    return DPGPRegressor(
        plan.kernel(
            ranges,
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
        criterion=plan.criterion_for("numbers").name,
        inducing=plan.inducing,
        mean=given.mean,
        learn=plan.learning,
        stages="auto" if given.stages == "auto" else None,
        interval="auto" if given.interval == "auto" else False,
        output_transform=given.transform,
        gap=plan.gap,
        memory=plan.memory,
    )


def _class_model(
    plan: ReleaseOptions, given: ClassOptions, classes: Classes, *, schema: Schema, ranges: Array
) -> DPGPClassifier:
    rates = None
    if given.class_rates:
        rates = texts.positive_numbers(given.class_rates, option="--class-rates")
    return DPGPClassifier(
        plan.kernel(
            ranges,
            variance=LATENT_SD**2,
            default=partial(default_latent_kernel, blocks=schema.groups),
            schema=schema,
        ),
        schema=schema,
        classes=classes,
        epsilon=plan.epsilon,
        delta=plan.delta,
        noise=plan.noise,
        criterion=plan.criterion_for("classes").name,
        link=_link(given),
        class_rates=rates,
        inducing=plan.inducing,
        learn=plan.learning,
        step_criterion=_step_criterion(given),
        steps=given.steps,
        gap=plan.gap,
        memory=plan.memory,
    )


def _declared_classes(plan: ReleaseOptions, given: ClassOptions) -> tuple[list[str], Classes]:
    """Return the classes in the order of their declaration, after checking what goes with them."""
    names = texts.names(given.classes, example="yes,no")
    if len(names) == 1:
        raise ValueError(
            f"--classes names one class, {names[0]}: name every class that can occur, at least two"
        )
    classes = Classes.checked(names)
    _check_options(plan, given, chosen=plan.criterion_for("classes"), classes=classes)
    if plan.person and plan.criterion_for("classes").iterates:
        raise ValueError(f"--person goes with other criteria than {plan.criterion!r}")
    if given.class_rates:
        texts.positive_numbers(given.class_rates, option="--class-rates")
    return names, classes


def _public_columns(plan: ReleaseOptions, schema: Schema) -> tuple[RawTable, list[str] | None]:
    """Return the raw public columns of a table, and whose rows they are."""
    whose = [plan.person] if plan.person else []
    names = list(schema.sources)
    table = read_public(plan.table, names=[*names, *whose], table_format=plan.table_format)
    columns = RawTable({name: table[name] for name in names})
    return columns, table[plan.person].texts().tolist() if plan.person else None


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
    return texts.one_of(LINKS, given.link, option="--link") if given.link else None


def _step_criterion(given: ClassOptions) -> CriterionName | None:
    if not given.step_criterion:
        return None
    return texts.one_of(CRITERIA, given.step_criterion, option="--step-criterion")


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
