"""Orders of releases, from registered tables and the choices of analysts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from cloakgp.columns import schema_from_text
from cloakgp.fitting.request import Classification, FitRequest, QuantileRegression, Regression
from cloakgp.orders.options import Order, SourceTable
from cloakgp.orders.origin import Origin
from cloakgp.service.errors import InvalidError
from cloakgp.service.messages import Choices
from cloakgp.service.models import Table
from cloakgp.service.settings import Settings

# Choices that go with some outputs only.
OF_QUANTILES = ("quantiles",)
OF_COUNTS = ("counts", "overdispersion", "exposure")
OF_NUMBERS = ("noise_variance", "mean", "transform", "calibrate", *OF_QUANTILES, *OF_COUNTS)
OF_CLASSES = ("class_rates", "link")
NOT_OF_QUANTILES = ("noise_variance", "calibrate", *OF_COUNTS)


def order_of(
    table: Table,
    choices: Choices,
    *,
    settings: Settings,
    origin: Origin | None = None,
    stopped: Callable[[], bool] | None = None,
) -> Order:
    """Return the order of a release.

    Parameters
    ----------
    table : Table
    choices : Choices
    settings : Settings
        Limits of memory, and of the table.
    origin : Origin, optional
    stopped : callable, optional
        Returns whether its caller has left, during a query.

    Raises
    ------
    InvalidError
        If the choices make no sense for the table.
    """
    schema = schema_from_text(table.schema)
    public = schema.sources
    if choices.exposure and choices.exposure not in public:
        # Other columns of the file were not declared to be public.
        raise InvalidError(f"exposure must be one of {', '.join(public)}")
    try:
        inputs = schema.select(choices.inputs) if choices.inputs else schema
        inputs = inputs.without(choices.exposure)
        order = Order(
            source=SourceTable(
                path=Path(table.path),
                output=table.output,
                inputs=[each.name for each in inputs.used],
                schema=schema,
                person=table.person,
                exposure=choices.exposure,
                missing_output=table.missing_output,
                query=table.query,
                limits=replace(settings.table_limits, stopped=stopped),
            ),
            request=request_of(table, choices, memory=settings.memory),
            origin=origin or Origin(),
        )
        order.validate()
        inputs.validate()
    except ValueError as error:
        raise InvalidError(without_path(error, table)) from None
    return order


def without_path(error: Exception, table: Table) -> str:
    """Return the message of an error, without the place of the table on the server."""
    return str(error).replace(table.path, table.name)


def request_of(table: Table, choices: Choices, *, memory: float | None) -> FitRequest:
    """Return an analyst's choices as a request.

    Raises
    ------
    InvalidError
        If some go with the other kind of column.
    """
    return FitRequest(
        task=_task(table, choices),
        epsilon=choices.epsilon,
        delta=choices.delta,
        noise=choices.noise,
        criterion=choices.criterion,
        inducing=choices.inducing,
        learn=None if choices.learn == "none" else choices.learn,
        lengthscale=tuple(choices.lengthscale),
        signal_variance=choices.signal_variance,
        memory=memory,
    )


def _task(table: Table, choices: Choices) -> Regression | QuantileRegression | Classification:
    if table.low is None or table.high is None:
        _refuse(choices, OF_NUMBERS, "go with numbers")
        return Classification(
            classes=tuple(table.classes),
            class_rates=tuple(choices.class_rates) or None,
            link=choices.link,
        )
    _refuse(choices, OF_CLASSES, "go with classes")
    bounds = table.low, table.high
    stages: Literal["auto"] | None = "auto" if choices.stages == "auto" else None
    interval: Literal["auto", False] = "auto" if choices.interval == "auto" else False
    if choices.quantiles:
        _refuse(choices, NOT_OF_QUANTILES, "have no meaning with quantiles")
        return QuantileRegression(
            bounds=bounds,
            quantiles=tuple(choices.quantiles),
            mean=choices.mean,
            stages=stages,
            interval=interval,
            output_transform=choices.transform or "auto",
        )
    return Regression(
        bounds=bounds,
        noise_variance=choices.noise_variance,
        mean=choices.mean,
        stages=stages,
        interval=interval,
        calibrate=False if choices.calibrate == "off" else choices.calibrate,
        output_transform=choices.transform,
        likelihood="counts" if choices.counts else "normal",
        overdispersion=choices.overdispersion,
    )


def _refuse(choices: Choices, names: Sequence[str], why: str) -> None:
    """Refuse choices that differ from their defaults."""
    if any(getattr(choices, name) != Choices.model_fields[name].default for name in names):
        raise InvalidError(f"{', '.join(names[:-1])} and {names[-1]} {why}")
