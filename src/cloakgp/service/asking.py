"""Orders of releases, from a registered table and an analyst's choices."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cloakgp.columns import schema_from_text
from cloakgp.fitting.release_plan import ReleasePlan
from cloakgp.orders import estimators
from cloakgp.orders.options import ClassOptions, NumberOptions, ReleaseOptions
from cloakgp.orders.origin import Origin
from cloakgp.orders.progress import Reporter
from cloakgp.release import Release
from cloakgp.service.errors import InvalidError
from cloakgp.service.messages import Choices
from cloakgp.service.models import Table


@dataclass(frozen=True)
class Order:
    """What is asked of which table.

    Attributes
    ----------
    options : ReleaseOptions
    given : NumberOptions or ClassOptions
    """

    options: ReleaseOptions
    given: NumberOptions | ClassOptions

    def check(self) -> None:
        """Check all that needs no table.

        Raises
        ------
        ValueError
        """
        estimators.check_order(self.options, self.given)

    def plan(self, epsilons: list[float]) -> ReleasePlan:
        """Plan it; the private column is not read."""
        quiet = Reporter(show=lambda _: None)
        return estimators.plan_release(
            self.options, self.given, epsilons=epsilons or None, reporter=quiet
        )

    def make(self, reporter: Reporter) -> Release:
        """Ask the private column once."""
        return estimators.make_release(self.options, self.given, reporter=reporter)


def order_of(
    table: Table, choices: Choices, *, memory: float | None, origin: Origin | None = None
) -> Order:
    """Return an order.

    Parameters
    ----------
    table : Table
    choices : Choices
    memory : float or None
        Gigabytes that it may take.
    origin : Origin, optional

    Raises
    ------
    InvalidError
        If the choices make no sense for the table.
    """
    schema = schema_from_text(table.schema)
    try:
        if choices.inputs:
            schema = schema.select(choices.inputs)
        options = ReleaseOptions(
            table=Path(table.path),
            inputs=[],
            output=table.output,
            epsilon=choices.epsilon,
            delta=choices.delta,
            noise=choices.noise,
            inducing=choices.inducing,
            criterion=choices.criterion,
            learn=choices.learn,
            lengthscale=",".join(map(repr, choices.lengthscale)),
            signal_variance=choices.signal_variance,
            memory=memory,
            schema=schema,
            person=table.person,
            missing_output=table.missing_output,
            query=table.query,
            origin=origin or Origin(),
        )
        order = Order(options=options, given=_given(table, choices))
        order.check()
    except ValueError as error:
        raise InvalidError(plain_words(error, table)) from None
    return order


def plain_words(error: Exception, table: Table) -> str:
    """Return what is wrong, without telling where on the server the table lies."""
    return str(error).replace(table.path, table.name)


def _given(table: Table, choices: Choices) -> NumberOptions | ClassOptions:
    of_numbers = (choices.noise_variance, choices.mean, choices.transform)
    of_classes = (choices.class_rates or None, choices.link)
    if table.low is None or table.high is None:
        if any(each is not None for each in of_numbers):
            raise InvalidError("noise_variance, mean and transform go with numbers")
        return ClassOptions(
            classes=",".join(table.classes),
            class_rates=",".join(map(repr, choices.class_rates)),
            link=choices.link or "",
            step_criterion="",
            steps=None,
        )
    if any(each is not None for each in of_classes):
        raise InvalidError("class_rates and link go with classes")
    return NumberOptions(
        bounds=(table.low, table.high),
        noise_variance=choices.noise_variance,
        mean=choices.mean,
        stages=choices.stages,
        interval=choices.interval,
        transform=choices.transform,
    )
