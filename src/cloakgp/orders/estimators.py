"""Estimators built from orders, and their releases.

`DPGPRegressor` for a private number in every row, `DPGPClassifier` for a private class. Defaults,
checks and the choice of a sparse model are the estimators' own; here stands what a table adds:
columns by name, and kernels in units of the schema's columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from cloakgp.columns import Schema
from cloakgp.data import FileRows
from cloakgp.data.raw import RawRows, RawTable
from cloakgp.data.tables import (
    People,
    read_people,
    read_public_rows,
)
from cloakgp.estimators.classification import DPGPClassifier
from cloakgp.estimators.quantiles import DPGPQuantileRegressor
from cloakgp.estimators.regression import DPGPRegressor
from cloakgp.fitting.release_plan import ReleasePlan
from cloakgp.fitting.request import FitRequest, QuantileRegression, Regression
from cloakgp.models import matern_kernel
from cloakgp.models.defaults import LATENT_WIDTH, SIGNAL_SD_SHARE
from cloakgp.models.summary import Summary, summarise
from cloakgp.orders.options import Order, SourceTable, kernel_of
from cloakgp.orders.origin import with_left_out
from cloakgp.orders.progress import Reporter
from cloakgp.privacy.noise_choice import check_noise
from cloakgp.privacy.person_ids import PersonIds
from cloakgp.privacy.questions.classes import Classes
from cloakgp.release import Release
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra

with extra("tables"):
    import pandas as pd


def make_release(order: Order, *, reporter: Reporter) -> Release:
    """Ask the private column once.

    Classes keep the order in which they are declared: with two, the latent function is high where
    the second is probable.

    Parameters
    ----------
    order : Order
    reporter : Reporter
        Receives the progress.

    Raises
    ------
    ValueError
        For anything that does not make sense; no message quotes a private value.
    """
    order.validate()
    raw = order.source.raw_rows(classes=order.classes)
    rows = rows_of(order.source, raw).report_to(reporter.rows)
    looked = summarise(rows, size=1)
    model = _estimator(order, schema=raw.schema, ranges=looked.ranges)
    query = order.query_table(raw.schema)
    how = model.plan_fit(
        (looked.count, len(raw.schema.names)), queries=None if query is None else query.shape[0]
    )
    if how.by_passes:
        how.announce()
        exposure = order.source.exposure
        if exposure:
            rows = rows_of(order.source, raw.with_exposure).report_to(reporter.rows)
        model.fit_rows(
            rows,
            query,
            progress=reporter.gap,
            on_step=reporter.step,
            **({"exposure": exposure} if exposure else {}),
        )
    else:
        people = people_of(order.source, raw)
        model.fit(
            people.columns,
            pd.Series(
                people.private, name=order.source.output, dtype=object if order.classes else None
            ),
            query,
            groups=people.groups,
            progress=reporter.gap,
            on_step=reporter.step,
            **({} if people.exposure is None else {"exposure": people.exposure}),
        )
    made = with_left_out(
        replace(model.release_, exposure=raw.exposure),
        without_output=rows.without_output,
        without_inputs=rows.without_inputs,
    )
    return order.origin.kept_in(made)


def plan_release(
    order: Order,
    *,
    epsilons: Sequence[float] | None,
    reporter: Reporter,
    approximate: bool | None = False,
) -> ReleasePlan:
    """Plan a release by `make_release`; the private column is not read.

    Where rows without a private value are left out, which these are is public: then the plan
    reads which cells are empty.

    Parameters
    ----------
    order : Order
    epsilons : sequence of float, optional
        Other budgets, for numbers; some around the order's if not given.
    reporter : Reporter
        Receives the progress.
    approximate : bool or None
        Whether errors are approximate, and come at once; where it is None, those of other budgets
        are if exact ones would take long.

    Raises
    ------
    ValueError
        For what makes no sense.
    """
    *_, plan = plan_releases(order, epsilons=epsilons, reporter=reporter, approximate=approximate)
    return plan


def plan_releases(
    order: Order,
    *,
    epsilons: Sequence[float] | None,
    reporter: Reporter,
    approximate: bool | None = None,
) -> Iterator[ReleasePlan]:
    """Yield plans of one release as they are ready: an approximate one at once, then better.

    Parameters
    ----------
    order, epsilons, reporter
        As for `plan_release`.
    approximate : bool, optional
        Whether to yield approximate plans alone, or exact ones alone; both if not given.

    Yields
    ------
    ReleasePlan
        See `cloakgp.estimators.planning.ForecastMixin.plans`; of other columns than numbers, one.

    Raises
    ------
    ValueError
        For what makes no sense.
    """
    order.validate()
    for epsilon in epsilons or ():
        check_noise(order.request.noise, epsilon=epsilon, delta=order.request.delta)
    known = _look(order, reporter)
    model = _estimator(order, schema=known.schema, ranges=known.looked.ranges)
    if isinstance(model, DPGPRegressor):
        reporter.step("forecasting what predictions will be worth")
    if model.plan_fit(known.shape, queries=known.queries).by_passes:
        yield known.tell(model.plan(known.rows, known.query))
        return
    columns, groups = public_columns(order.source, known.raw)
    if isinstance(model, DPGPRegressor):
        yield from map(
            known.tell,
            model.plans(
                columns, known.query, groups=groups, epsilons=epsilons, approximate=approximate
            ),
        )
    else:
        yield known.tell(model.plan(columns, known.query, groups=groups))


@dataclass(frozen=True, eq=False)
class _Public:
    """Facts about a table without its private column."""

    rows: FileRows
    raw: RawRows
    looked: Summary
    query: RawTable | None

    @property
    def schema(self) -> Schema:
        return self.raw.schema

    def tell(self, plan: ReleasePlan) -> ReleasePlan:
        """Return a plan that says how many rows are left out."""
        table = replace(
            plan.table,
            without_output=self.rows.without_output,
            without_inputs=self.rows.without_inputs,
        )
        return replace(plan, table=table)

    @property
    def shape(self) -> tuple[int, int]:
        return self.looked.count, len(self.schema.names)

    @property
    def queries(self) -> int | None:
        return None if self.query is None else self.query.shape[0]


def _look(order: Order, reporter: Reporter) -> _Public:
    raw = order.source.raw_rows(classes=order.classes)
    rows = rows_of(order.source, raw).report_to(reporter.rows)
    return _Public(
        rows=rows,
        raw=raw,
        looked=summarise(rows, size=1),
        query=order.query_table(raw.schema),
    )


Estimator = DPGPRegressor | DPGPQuantileRegressor | DPGPClassifier


def _estimator(order: Order, *, schema: Schema, ranges: Array) -> Estimator:
    """Return the estimator of an order, for public columns in these ranges."""
    request, task = order.request, order.request.task
    if isinstance(task, Regression | QuantileRegression):
        width = task.limits.width
        if isinstance(task, Regression) and task.of_counts:
            width = task.log_rates
    else:
        width = LATENT_WIDTH
    kernel = kernel_of(
        request,
        ranges,
        variance=(SIGNAL_SD_SHARE * width) ** 2,
        default=partial(matern_kernel, width=width, blocks=schema.groups),
        schema=schema,
    )
    return estimator_of(request, kernel=kernel, schema=schema)


def estimator_of(request: FitRequest, **public: Any) -> Estimator:
    """Return the estimator of a request.

    Parameters
    ----------
    request : FitRequest
    **public
        Parameters of the estimator in the place of the request's: a kernel, a schema.
    """
    task = request.task
    parameters = request.parameters() | public
    if isinstance(task, Regression):
        return DPGPRegressor(**parameters)
    if isinstance(task, QuantileRegression):
        # They know one criterion alone.
        del parameters["criterion"]
        return DPGPQuantileRegressor(**parameters)
    return DPGPClassifier(**parameters | {"classes": Classes.checked(list(parameters["classes"]))})


def public_columns(source: SourceTable, raw: RawRows) -> tuple[RawTable, PersonIds | None]:
    """Return the raw public columns of the rows that are kept, and the persons of these."""
    return read_public_rows(
        source.path,
        names=raw.schema.sources,
        groups=source.person or None,
        raw=raw,
        output=source.output,
        table_format=source.table_format,
    )


def rows_of(source: SourceTable, raw: RawRows) -> FileRows:
    """Return the rows of a table, to be read in passes."""
    return FileRows(
        source.path,
        output=source.output,
        groups=source.person or None,
        raw=raw,
        table_format=source.table_format,
    )


def people_of(source: SourceTable, raw: RawRows) -> People:
    """Return the rows of a table at once, with their private column."""
    return read_people(
        source.path,
        raw=raw,
        output=source.output,
        groups=source.person or None,
        table_format=source.table_format,
    )
