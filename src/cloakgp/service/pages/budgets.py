"""Pages of budgets: accounts with their tables as cards, limits, rules and shares."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import ValidationError

from cloakgp.service.errors import NotFoundError, ServiceError
from cloakgp.service.messages import NewAccount, NewLimit, NewRules
from cloakgp.service.operations import accounts, tables
from cloakgp.service.pages.fields import budget_of
from cloakgp.service.pages.visits import (
    PageRoute,
    Sending,
    Sent,
    Visit,
    Visiting,
    gone_to,
    problem_of,
)

router = APIRouter(route_class=PageRoute)


@router.get("/budgets", name="page: budgets")
def show_budgets(visit: Visiting) -> Response:
    """Show what is spent, reserved and left of each account, and its tables."""
    work = visit.work("list_accounts")
    found = tables.list_tables(work) if visit.actor.may("list_tables") else []
    return visit.show("budgets.html", accounts=accounts.list_accounts(work), tables=found)


@router.get("/budgets/new", name="page: new account")
def show_new_account(visit: Visiting) -> Response:
    """Ask for an account."""
    visit.work("open_account")
    return visit.show("account_new.html", given={}, problem="")


@router.post("/budgets/new", name="page: new account")
def add_account(sent: Sending) -> Response:
    """Open an account."""
    work = sent.work("open_account")
    try:
        accounts.open_account(work, new_account(sent))
    except (ServiceError, ValidationError) as error:
        status, message = problem_of(error)
        return sent.show("account_new.html", status=status, given=sent.form, problem=message)
    return gone_to("/budgets")


@router.get("/budgets/{account}", name="page: account")
def show_account(visit: Visiting, account: str) -> Response:
    """Show an account, and for custodians what may be changed about it."""
    return _account_page(visit, account)


@router.post("/budgets/{account}/limit", name="page: limit")
def change_limit(sent: Sending, account: str) -> Response:
    """Change the limit."""
    work = sent.work("change_limit")

    def change() -> None:
        limit = budget_of(sent.form, "limit")
        new = NewLimit.model_validate({"limit": limit, "reason": sent.text("reason")})
        accounts.change_limit(work, account, new)

    return _changed(sent, account, change)


@router.post("/budgets/{account}/rules", name="page: rules")
def change_rules(sent: Sending, account: str) -> Response:
    """Change what needs approval, and what each analyst may spend."""
    work = sent.work("change_rules")

    def change() -> None:
        new = NewRules(
            approval=budget_of(sent.form, "approval"), share=budget_of(sent.form, "share")
        )
        accounts.change_rules(work, account, new)

    return _changed(sent, account, change)


@router.post("/budgets/{account}/share", name="page: share")
def set_share(sent: Sending, account: str) -> Response:
    """Change what one analyst may spend."""
    work = sent.work("set_share")

    def change() -> None:
        accounts.set_share(work, account, sent.text("person"), budget_of(sent.form, "own"))

    return _changed(sent, account, change)


def new_account(sent: Sent) -> NewAccount:
    """Return the account that a form describes.

    Raises
    ------
    ValidationError
    """
    return NewAccount.model_validate(
        {
            "name": sent.text("name"),
            "unit": sent.text("unit") or "row",
            "limit": budget_of(sent.form, "limit"),
            "approval": budget_of(sent.form, "approval"),
            "share": budget_of(sent.form, "share"),
        }
    )


def _changed(sent: Sent, account: str, change: Callable[[], None]) -> Response:
    try:
        change()
    except (ServiceError, ValidationError) as error:
        status, message = problem_of(error)
        return _account_page(sent, account, status=status, problem=message)
    return gone_to(sent.request.url.path.rpartition("/")[0])


def _account_page(visit: Visit, account: str, *, status: int = 200, problem: str = "") -> Response:
    work = visit.work("list_accounts")
    found = next((each for each in accounts.list_accounts(work) if each.name == account), None)
    if found is None:
        raise NotFoundError("account")
    listed = tables.list_tables(work) if visit.actor.may("list_tables") else []
    mine = [table for table in listed if table.account == account]
    return visit.show("account.html", status=status, account=found, tables=mine, problem=problem)
