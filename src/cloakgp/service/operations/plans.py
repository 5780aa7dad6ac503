"""Plans of releases, from public columns alone."""

from __future__ import annotations

from cloakgp.fitting.release_plan import ReleasePlan
from cloakgp.orders.estimators import plan_release
from cloakgp.orders.options import Order
from cloakgp.orders.progress import Reporter
from cloakgp.plots.figures import figure_bytes
from cloakgp.plots.plans import PlanDisplay
from cloakgp.service.access import operation
from cloakgp.service.budgets import (
    charges_of_account,
    charges_of_person,
    costs_of,
    needs_approval,
    share_of,
    standing,
)
from cloakgp.service.context import Work
from cloakgp.service.errors import InvalidError
from cloakgp.service.messages import FactView, PlanRequest, PlanView
from cloakgp.service.models import Rules, Table
from cloakgp.service.operations.tables import usable_table
from cloakgp.service.orders import order_of, without_path


@operation
def make_plan(work: Work, request: PlanRequest) -> PlanView:
    """Plan a release, from public columns alone; spends nothing.

    Raises
    ------
    InvalidError
        If the choices make no sense, or planning takes too much time or memory.
    NotFoundError
    TooManyError
        If too many plans are under way.
    EndedError
        If the caller leaves, or the service ends.
    """
    table, plan = _plan(work, request)
    costs = costs_of(request.choices)
    with work.database.reading() as session:
        limit = standing(session, table.account).limit
        account = charges_of_account(session, table.account, table.cohort)
        rules = session.get(Rules, table.account)
        assert rules is not None
        share = share_of(session, rules, work.actor.id)
        mine = charges_of_person(session, table.account, work.actor.id, table.cohort)
        asks = needs_approval(session, rules, work.actor.id, costs, table.cohort)
    return PlanView(
        facts=[FactView(label=label, text=text) for label, text in plan.facts()],
        budgets=[list(line) for line in plan.budgets()],
        plan=plan.to_dict(),
        releases_left=account.releases_left(costs, limit=limit),
        mine_left=None if share is None else mine.releases_left(costs, limit=share),
        needs_approval=asks,
    )


@operation
def plot_plan(
    work: Work, request: PlanRequest, *, vary: list[str], suffix: str, dark: bool = False
) -> bytes:
    """Draw the expected error over one input, or over two.

    Parameters
    ----------
    work : Work
    request : PlanRequest
    vary : list of str
        The inputs; if empty, the first one.
    suffix : {".png", ".svg"}
    dark : bool
        Whether on a dark background.

    Raises
    ------
    InvalidError
        If there is no forecast to draw, or no such input.
    """
    table, plan = _plan(work, request)
    try:
        display = PlanDisplay.of(plan, vary=vary, output=table.output)
        return figure_bytes(display.draw(dark=dark), suffix=suffix)
    except ValueError as error:
        raise InvalidError(without_path(error, table)) from None


def _plan_order(order: Order, epsilons: list[float], *, approximate: bool | None) -> ReleasePlan:
    quiet = Reporter(show=lambda _: None)
    return plan_release(order, epsilons=epsilons or None, reporter=quiet, approximate=approximate)


def _plan(work: Work, request: PlanRequest) -> tuple[Table, ReleasePlan]:
    with work.database.reading() as session:
        table = usable_table(session, request.table)
    order = order_of(table, request.choices, settings=work.service.settings)

    def make() -> ReleasePlan:
        try:
            return work.service.planning.call(
                _plan_order,
                work.stopped,
                order,
                list(request.epsilons),
                approximate=request.approximate,
            )
        except (ValueError, OSError) as error:
            raise InvalidError(without_path(error, table)) from None

    return table, work.service.plans.get(request.model_dump_json(), make)
