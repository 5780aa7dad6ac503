"""Pages of plans: sliders for ε and δ, what comes of them, and the request for a release."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import ValidationError

from cloakgp.columns import schema_from_text
from cloakgp.service.context import Work
from cloakgp.service.credentials import new_file_name
from cloakgp.service.errors import ServiceError
from cloakgp.service.messages import (
    AccountView,
    Choices,
    Id,
    NewRequest,
    PlanRequest,
    PlanView,
    TableView,
)
from cloakgp.service.operations import accounts, plans, requests, tables
from cloakgp.service.pages.fields import choices_of, fields_of, options_for, text_of
from cloakgp.service.pages.visits import (
    PageRoute,
    Sending,
    Visit,
    Visiting,
    gone_to,
    problem_of,
    varied,
)

router = APIRouter(route_class=PageRoute)
# What is planned first, if there is room for it.
FIRST_EPSILON, SMALLEST_EPSILON = 1.0, 1e-6
PNG = "image/png"


@dataclass(frozen=True)
class Planned:
    """A plan, or why there is none.

    Attributes
    ----------
    plan : PlanView or None
    problem : str
    choices : Choices or None
    address : str
        The choices as an address has them.
    """

    plan: PlanView | None
    problem: str
    choices: Choices | None
    address: str

    @property
    def facts(self) -> dict[str, str]:
        """What is said of it, by what it is called."""
        return {} if self.plan is None else {each.label: each.text for each in self.plan.facts}

    @property
    def guess(self) -> float:
        """How often an attacker is right at most."""
        return 0.5 if self.plan is None else float(self.plan.plan["guess"])


@router.get("/tables/{table}/plan", name="page: plan")
def show_plan(visit: Visiting, table: Id) -> Response:
    """Show what a release would be worth, and let somebody choose another."""
    work = visit.work("make_plan")
    found, account = _about(work, table)
    fields = visit.request.query_params
    # A plan takes its time: the page is there at once, and its script asks for the first one.
    planned = _plan(work, visit, found) if "epsilon" in fields else _first(account)
    return visit.show(
        "plan.html",
        table=found,
        account=account,
        planned=planned,
        given=fields,
        chosen=fields.getlist("inputs") or found.inputs,
        criteria=options_for(found),
        names=schema_from_text(found.table_schema).names,
        wanted=varied(visit),
        varied=_drawn(visit, planned),
    )


@router.get("/tables/{table}/plan/answer", name="page: plan, answer alone")
def show_plan_alone(visit: Visiting, table: Id) -> Response:
    """Show what would come of the choices, for the script of the page around it."""
    work = visit.work("make_plan")
    found, account = _about(work, table)
    planned = _plan(work, visit, found)
    return visit.show(
        "plan_answer.html",
        table=found,
        account=account,
        planned=planned,
        varied=_drawn(visit, planned),
    )


@router.get("/tables/{table}/plan/picture", name="page: plan, picture")
def show_plan_picture(visit: Visiting, table: Id) -> Response:
    """Draw the expected error over one input, or over two as a map."""
    choices = choices_of(visit.request.query_params)
    asked = plan_request(table, choices, compares=bool(visit.request.query_params.get("compare")))
    content = plans.plot_plan(visit.work("plot_plan"), asked, vary=varied(visit), suffix=".png")
    return Response(content, media_type=PNG)


@router.get("/tables/{table}/request", name="page: new request")
def show_new_request(visit: Visiting, table: Id) -> Response:
    """Say what a release would cost and make public, before it is asked for."""
    work = visit.work("make_request")
    found, account = _about(work, table)
    return visit.show(
        "request_new.html",
        table=found,
        account=account,
        planned=_plan(work, visit, found),
        fields=[] if (choices := _choices(visit)) is None else fields_of(choices),
        once=new_file_name(),
        purpose="",
        problem="",
    )


@router.post("/tables/{table}/request", name="page: new request")
def make_request(sent: Sending, table: Id) -> Response:
    """Ask for a release."""
    work = sent.work("make_request")
    try:
        choices = choices_of(sent.form)
        new = NewRequest.model_validate(
            {"table": table, "choices": choices, "purpose": sent.text("purpose")}
        )
        made = requests.make_request(work, new, idempotency=sent.text("once") or None)
    except (ServiceError, ValidationError) as error:
        status, message = problem_of(error)
        found, account = _about(work, table)
        return sent.show(
            "request_new.html",
            status=status,
            table=found,
            account=account,
            planned=Planned(plan=None, problem="", choices=None, address=""),
            fields=[],
            once="",
            purpose=text_of(sent.form, "purpose"),
            problem=message,
        )
    return gone_to(f"/requests/{made.id}")


def planned_of(
    work: Work, table: TableView, choices: Choices, *, compares: bool = False
) -> Planned:
    """Return the plan of a release of a table, or why there is none.

    Parameters
    ----------
    work : Work
    table : TableView
    choices : Choices
    compares : bool
        Whether other budgets are planned, too.
    """
    address = urlencode(fields_of(choices))
    try:
        plan = plans.make_plan(work, plan_request(table.id, choices, compares=compares))
    except ServiceError as error:
        return Planned(plan=None, problem=str(error), choices=choices, address=address)
    return Planned(plan=plan, problem="", choices=choices, address=address)


def plan_request(table: int, choices: Choices, *, compares: bool) -> PlanRequest:
    """Return what is planned: the budget itself, which is quick, or some around it, too."""
    epsilons = [] if compares else [choices.epsilon]
    return PlanRequest(table=table, choices=choices, epsilons=epsilons)


def _plan(work: Work, visit: Visit, table: TableView) -> Planned:
    try:
        choices = choices_of(visit.request.query_params)
    except (ServiceError, ValidationError) as error:
        return Planned(plan=None, problem=problem_of(error)[1], choices=None, address="")
    compares = bool(visit.request.query_params.get("compare"))
    return planned_of(work, table, choices, compares=compares)


def _first(account: AccountView) -> Planned:
    """Return no plan yet, of a budget that there is room for."""
    epsilon = float(f"{min(FIRST_EPSILON, account.left or account.limit.epsilon):.3g}")
    choices = Choices(epsilon=max(SMALLEST_EPSILON, epsilon), delta=account.limit.delta)
    return Planned(plan=None, problem="", choices=choices, address="")


def _choices(visit: Visit) -> Choices | None:
    try:
        return choices_of(visit.request.query_params)
    except (ServiceError, ValidationError):
        return None


def _drawn(visit: Visit, planned: Planned) -> list[str]:
    """Return the inputs that the picture of a plan is drawn over, if it has them."""
    names = [] if planned.plan is None else planned.plan.plan["names"]
    return [name for name in varied(visit) if name in names]


def _about(work: Work, table: int) -> tuple[TableView, AccountView]:
    found = tables.show_table(work, table)
    account = next(each for each in accounts.list_accounts(work) if each.name == found.account)
    return found, account
