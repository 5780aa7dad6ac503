"""Plans of releases, from public columns alone."""

from __future__ import annotations

from cloakgp.data.limits import TooSlowError
from cloakgp.fitting.plan import Plan
from cloakgp.fitting.release_plan import ReleasePlan
from cloakgp.fitting.visit_plan import VisitPlan
from cloakgp.orders.estimators import plan_release, plan_releases
from cloakgp.orders.options import Order
from cloakgp.orders.progress import Reporter
from cloakgp.orders.visits import VisitOrder, plan_visit
from cloakgp.plots.figures import figure_bytes
from cloakgp.plots.plans import PlanDisplay
from cloakgp.service.access import operation
from cloakgp.service.budgets import Room, costs_of, needs_approval
from cloakgp.service.context import Work
from cloakgp.service.errors import InvalidError
from cloakgp.service.messages import Choices, FactView, PlanRequest, PlanView
from cloakgp.service.models import Rules, Table
from cloakgp.service.operations.tables import usable_table
from cloakgp.service.orders import without_path
from cloakgp.service.visits import asked_of


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
    with work.database.reading() as session:
        table = usable_table(session, request.table)
        rules = session.get(Rules, table.account)
        assert rules is not None
        room = Room.of(session, rules, work.actor.id, table.cohort)
        choices = room.choose(request.choices)
        costs = costs_of(choices)
        asks = needs_approval(session, rules, work.actor.id, costs, table.cohort)
    _, plan = _plan(work, request.model_copy(update={"choices": choices}))
    return PlanView(
        choices=choices,
        facts=[FactView(label=label, text=text) for label, text in plan.facts()],
        budgets=[list(line) for line in plan.budgets()],
        plan=plan.to_dict(),
        releases_left=room.account.releases_left(costs, limit=room.limit),
        mine_left=None if room.share is None else room.mine.releases_left(costs, limit=room.share),
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
    if not isinstance(plan, ReleasePlan):
        raise InvalidError(f"there is no picture of {plan.subject}")
    try:
        display = PlanDisplay.of(plan, vary=vary, output=table.output)
        return figure_bytes(display.draw(dark=dark), suffix=suffix)
    except ValueError as error:
        raise InvalidError(without_path(error, table)) from None


def check_choices(work: Work, table: Table, order: Order | VisitOrder, choices: Choices) -> None:
    """Refuse a request that its plan refuses, before anybody approves it or a job begins.

    The plan is the roughest that there is. One that takes more time or memory than plans may is
    refused no more for that: a job may have more.

    Parameters
    ----------
    work : Work
    table : Table
    order : Order or VisitOrder
        Of the choices.
    choices : Choices

    Raises
    ------
    InvalidError
        In the words of the plan.
    TooManyError
        If too many plans are under way.
    EndedError
        If the caller leaves, or the service ends.
    """

    def make() -> Plan:
        if isinstance(order, VisitOrder):
            return work.service.planning.call(_plan_visit, work.stopped, order)
        return work.service.planning.call(_plan_roughly, work.stopped, order)

    rough = PlanRequest(
        table=table.id, choices=choices, epsilons=[choices.epsilon], approximate=True
    )
    try:
        work.service.plans.get(f"rough: {rough.model_dump_json()}", make)
    except (InvalidError, TooSlowError):
        # It took too much, of planning or of reading.
        return
    except (ValueError, OSError) as error:
        raise InvalidError(without_path(error, table)) from None


def _plan_roughly(order: Order) -> ReleasePlan:
    """Return the first plan of an order, which comes at once."""
    quiet = Reporter(show=lambda _: None)
    return next(iter(plan_releases(order, epsilons=[order.request.epsilon], reporter=quiet)))


def _plan_order(order: Order, epsilons: list[float], *, approximate: bool | None) -> ReleasePlan:
    quiet = Reporter(show=lambda _: None)
    return plan_release(order, epsilons=epsilons or None, reporter=quiet, approximate=approximate)


def _plan_visit(order: VisitOrder) -> VisitPlan:
    return plan_visit(order, reporter=Reporter(show=lambda _: None))


def _plan(work: Work, request: PlanRequest) -> tuple[Table, Plan]:
    planning = work.service.planning
    with work.database.reading() as session:
        table = usable_table(session, request.table)
        order = asked_of(work.service, session, table, request.choices)

    def make() -> Plan:
        try:
            if isinstance(order, VisitOrder):
                return planning.call(_plan_visit, work.stopped, order)
            return planning.call(
                _plan_order,
                work.stopped,
                order,
                list(request.epsilons),
                approximate=request.approximate,
            )
        except (ValueError, OSError) as error:
            raise InvalidError(without_path(error, table)) from None

    return table, work.service.plans.get(request.model_dump_json(), make)
