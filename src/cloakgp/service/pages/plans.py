"""Pages of plans: sliders for ε and δ, the plan, and the request for a release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast, get_args
from urllib.parse import urlencode

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import ValidationError

from cloakgp.columns import schema_from_text
from cloakgp.fitting.release_plan import NOT_AT_ONCE, plan_budgets
from cloakgp.service.context import Work
from cloakgp.service.credentials import new_file_name
from cloakgp.service.errors import ServiceError
from cloakgp.service.messages import (
    LARGEST_EPSILON,
    AccountView,
    Choices,
    Id,
    NewRequest,
    PlanRequest,
    PlanView,
    TableView,
)
from cloakgp.service.operations import accounts, plans, requests, tables
from cloakgp.service.pages.base import (
    Form,
    Page,
    PageRequest,
    PageRoute,
    attempt,
    problem_of,
    varied,
)
from cloakgp.service.pages.fields import choices_of, fields_of, noise_options, options_for
from cloakgp.utils.formatting import amount

router = APIRouter(route_class=PageRoute)
# The first plan, if the account has room for it.
FIRST_EPSILON, SMALLEST_EPSILON = 1.0, 1e-6
PNG = "image/png"
# Of a plan: what comes at once, or what takes as long as its table is large.
Figures = Literal["rough", "compared", "exact", "full"]


@dataclass(frozen=True)
class Planned:
    """A plan, or the reason why there is none.

    Attributes
    ----------
    plan : PlanView or None
    problem : str
    choices : Choices or None
    address : str
        The choices as a query of an address.
    refused_delta : float
        The δ that was asked for, if there is room without it alone; 0 otherwise.
    """

    plan: PlanView | None
    problem: str
    choices: Choices | None
    address: str
    refused_delta: float = 0.0

    @property
    def facts(self) -> dict[str, str]:
        """The facts of the plan by their labels."""
        return {} if self.plan is None else {each.label: each.text for each in self.plan.facts}

    @property
    def guess(self) -> float:
        """The largest share of right guesses of an attacker."""
        return 0.5 if self.plan is None else float(self.plan.plan["guess"])

    @property
    def forecasts(self) -> list[dict[str, Any]]:
        """The forecasts of budgets."""
        # A later visit has none.
        return [] if self.plan is None else self.plan.plan.get("forecasts", [])

    @property
    def unfinished(self) -> bool:
        """Whether the full plan tells more of this budget's error."""
        if self._own is not None:
            return bool(self._own["within"])
        return self.plan is not None and self.plan.plan.get("no_forecast") == NOT_AT_ONCE

    @property
    def headline(self) -> tuple[str, str] | None:
        """The expected error of this budget as a number, and of what it is the error."""
        own = self._own
        if own is None:
            return None
        error = own["error"] if own["output_error"] is None else own["output_error"]
        whom = (
            "the average of people like each other" if own["output_error"] is None else "a person"
        )
        number = f"≈ {amount(error, 2)}" if own["within"] else f"{amount(error, 3)}"
        return number, f"typical error of predictions for {whom}"

    @property
    def _own(self) -> dict[str, Any] | None:
        if self.plan is None:
            return None
        epsilon = self.plan.plan["epsilon"]
        return next((each for each in self.forecasts if each["epsilon"] == epsilon), None)

    @property
    def comparable(self) -> bool:
        """Whether exact forecasts of other budgets are made, and not only approximate ones."""
        if self.plan is None:
            return False
        plan = self.plan.plan
        return len(plan_budgets(plan["epsilon"], None, seconds=plan["seconds"])) > 1


@router.get("/tables/{table}/plan", name="page: plan")
def show_plan(page: Page, table: Id) -> Response:
    """Show the plan of a release, with a form for others."""
    work = page.work("make_plan")
    row, account = table_and_account(work, table)
    fields = page.request.query_params
    # The page comes at once, and its script fetches the first plan.
    planned = _plan(work, page, row) if "epsilon" in fields else _first(account)
    return page.show(
        "plan.html",
        table=row,
        account=account,
        planned=planned,
        given=fields,
        chosen=fields.getlist("inputs") or ([] if "ticked" in fields else row.inputs),
        criteria=options_for(row),
        noises=noise_options(),
        names=_drawable(row),
        most=LARGEST_EPSILON,
        wanted=varied(page),
        figures=_figures(page),
        varied=_drawn(page, row),
    )


@router.get("/tables/{table}/plan/answer", name="page: plan, answer alone")
def show_plan_alone(page: Page, table: Id) -> Response:
    """Show the plan of some choices, for the script of the page around it."""
    return _show_part(page, table, "plan_answer.html")


@router.get("/tables/{table}/plan/error", name="page: plan, error alone")
def show_plan_error(page: Page, table: Id) -> Response:
    """Show the expected error of some choices, in the place of an approximate one."""
    return _show_part(page, table, "plan_error.html")


@router.get("/tables/{table}/plan/budgets", name="page: plan, budgets alone")
def show_plan_budgets(page: Page, table: Id) -> Response:
    """Show forecasts of other budgets, beside those of some choices."""
    return _show_part(page, table, "plan_budgets.html")


def _show_part(page: PageRequest, table: int, template: str) -> Response:
    work = page.work("make_plan")
    row, account = table_and_account(work, table)
    return page.show(
        template,
        table=row,
        account=account,
        planned=_plan(work, page, row),
        figures=_figures(page),
        pictured="pictured" in page.request.query_params,
        varied=_drawn(page, row),
    )


@router.get("/tables/{table}/plan/picture", name="page: plan, picture")
def show_plan_picture(page: Page, table: Id) -> Response:
    """Draw the expected error over one input, or over two as a map."""
    choices = choices_of(page.request.query_params)
    content = plans.plot_plan(
        page.work("plot_plan"),
        plan_request(table, choices, figures=_figures(page)),
        vary=varied(page),
        suffix=".png",
        dark=page.dark,
    )
    return Response(content, media_type=PNG)


@router.get("/tables/{table}/request", name="page: new request")
def show_new_request(page: Page, table: Id) -> Response:
    """Show the cost of a release and its public parts, before its request."""
    work = page.work("make_request")
    row, account = table_and_account(work, table)
    return page.show(
        "request_new.html",
        table=row,
        account=account,
        planned=_plan(work, page, row),
        fields=[] if (choices := _choices(page)) is None else fields_of(choices),
        once=new_file_name(),
        purpose="",
        problem="",
    )


@router.post("/tables/{table}/request", name="page: new request")
def make_request(form: Form, table: Id) -> Response:
    """Request a release."""
    work = form.work("make_request")

    def request() -> str:
        new = NewRequest(table=table, choices=choices_of(form.fields), purpose=form.text("purpose"))
        made = requests.make_request(work, new, idempotency=form.text("once") or None)
        return f"/requests/{made.id}"

    def retry(*, status: int, problem: str) -> Response:
        row, account = table_and_account(work, table)
        return form.show(
            "request_new.html",
            status=status,
            table=row,
            account=account,
            planned=Planned(plan=None, problem="", choices=None, address=""),
            fields=[],
            once="",
            purpose=form.text("purpose"),
            problem=problem,
        )

    return attempt(request, retry)


def plan_table(
    work: Work, table: TableView, choices: Choices, *, figures: Figures = "rough"
) -> Planned:
    """Return the plan of a release of a table, or the reason why there is none.

    Parameters
    ----------
    work : Work
    table : TableView
    choices : Choices
    figures : str
        As for `plan_request`.
    """
    try:
        plan = plans.make_plan(work, plan_request(table.id, choices, figures=figures))
    except ServiceError as error:
        address = urlencode(fields_of(choices))
        return Planned(plan=None, problem=problem_of(error)[1], choices=choices, address=address)
    return Planned(
        plan=plan,
        problem="",
        choices=plan.choices,
        address=urlencode(fields_of(plan.choices)),
        refused_delta=choices.delta if choices.delta != plan.choices.delta else 0.0,
    )


def plan_request(table: int, choices: Choices, *, figures: Figures) -> PlanRequest:
    """Return the request for a plan.

    Parameters
    ----------
    table : int
    choices : Choices
    figures : {"rough", "compared", "exact", "full"}
        Approximate ones of one budget, or of several; exact ones of one budget, or of several,
        unless these would take long.
    """
    return PlanRequest(
        table=table,
        choices=choices,
        epsilons=[choices.epsilon] if figures in ("rough", "exact") else [],
        approximate={"exact": False, "full": None}.get(figures, True),
    )


def _figures(page: PageRequest) -> Figures:
    asked = page.request.query_params.get("figures", "rough")
    return cast(Figures, asked if asked in get_args(Figures) else "rough")


def _plan(work: Work, page: PageRequest, table: TableView) -> Planned:
    try:
        choices = choices_of(page.request.query_params)
    except (ServiceError, ValidationError) as error:
        return Planned(plan=None, problem=problem_of(error)[1], choices=None, address="")
    return plan_table(work, table, choices, figures=_figures(page))


def _first(account: AccountView) -> Planned:
    """Return the choices of a first plan, with a budget for which the account has room."""
    epsilon = float(f"{min(FIRST_EPSILON, account.left or account.limit.epsilon):.3g}")
    choices = Choices(epsilon=max(SMALLEST_EPSILON, epsilon), delta=account.limit.delta)
    return Planned(plan=None, problem="", choices=choices, address="")


def _choices(page: PageRequest) -> Choices | None:
    try:
        return choices_of(page.request.query_params)
    except (ServiceError, ValidationError):
        return None


def _drawable(table: TableView) -> list[str]:
    """Return the public columns that a picture can be drawn over."""
    return list(schema_from_text(table.table_schema).sources)


def _drawn(page: PageRequest, table: TableView) -> list[str]:
    """Return the columns of the picture of a plan, of those that are predicted from."""
    inputs = page.request.query_params.getlist("inputs") or table.inputs
    return [name for name in varied(page) if name in _drawable(table) and name in inputs]


def table_and_account(work: Work, table: int) -> tuple[TableView, AccountView]:
    """Return a table and its account."""
    row = tables.show_table(work, table)
    account = next(each for each in accounts.list_accounts(work) if each.name == row.account)
    return row, account
