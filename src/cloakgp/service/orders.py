"""Orders of releases, from registered tables and the choices of analysts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from cloakgp.columns import schema_from_text
from cloakgp.fitting.request import Classification, FitRequest, Regression
from cloakgp.orders.options import Order, SourceTable
from cloakgp.orders.origin import Origin
from cloakgp.service.errors import InvalidError
from cloakgp.service.messages import Choices
from cloakgp.service.models import Table
from cloakgp.service.settings import Settings


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
    try:
        if choices.inputs:
            schema = schema.select(choices.inputs)
        order = Order(
            source=SourceTable(
                path=Path(table.path),
                output=table.output,
                schema=schema,
                person=table.person,
                missing_output=table.missing_output,
                query=table.query,
                limits=replace(settings.table_limits, stopped=stopped),
            ),
            request=request_of(table, choices, memory=settings.memory),
            origin=origin or Origin(),
        )
        order.validate()
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


def _task(table: Table, choices: Choices) -> Regression | Classification:
    of_numbers = (choices.noise_variance, choices.mean, choices.transform)
    of_classes = (choices.class_rates or None, choices.link)
    if table.low is None or table.high is None:
        if any(each is not None for each in of_numbers):
            raise InvalidError("noise_variance, mean and transform go with numbers")
        return Classification(
            classes=tuple(table.classes),
            class_rates=tuple(choices.class_rates) or None,
            link=choices.link,
        )
    if any(each is not None for each in of_classes):
        raise InvalidError("class_rates and link go with classes")
    return Regression(
        bounds=(table.low, table.high),
        noise_variance=choices.noise_variance,
        mean=choices.mean,
        stages="auto" if choices.stages == "auto" else None,
        interval="auto" if choices.interval == "auto" else False,
        output_transform=choices.transform,
    )
