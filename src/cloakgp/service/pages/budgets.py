"""Pages of budgets: accounts with their tables, limits, rules and shares."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from urllib.parse import quote

from fastapi import APIRouter
from fastapi.responses import Response

from cloakgp.service.context import Work
from cloakgp.service.errors import NotFoundError
from cloakgp.service.messages import Id, NewAccount, NewLimit, NewRules, ProposalView, TableView
from cloakgp.service.operations import accounts, proposals, tables
from cloakgp.service.pages.base import (
    Form,
    FormRequest,
    Page,
    PageRequest,
    PageRoute,
    attempt,
    given_in,
)
from cloakgp.service.pages.fields import budget_of

router = APIRouter(route_class=PageRoute)
# Waiting proposals on one page; each budget has one at most.
MOST_WAITING = 1000


@router.get("/budgets", name="page: budgets")
def show_budgets(page: Page) -> Response:
    """Show the use of each account, its tables and its waiting proposals."""
    work = page.work("list_accounts")
    return page.show(
        "budgets.html",
        accounts=accounts.list_accounts(work),
        tables=_tables(page, work),
        proposals=_waiting(page, work),
    )


@router.get("/budgets/new", name="page: new account")
def show_new_account(page: Page) -> Response:
    """Show the form of a new account."""
    page.work("open_account")
    return page.show("account_new.html", given={}, problem="")


@router.post("/budgets/new", name="page: new account")
def add_account(form: Form) -> Response:
    """Open an account."""
    work = form.work("open_account")

    def open_account() -> str:
        accounts.open_account(work, new_account(form))
        return "/budgets"

    return attempt(open_account, partial(form.show, "account_new.html", given=form.fields))


@router.get("/budgets/{account}", name="page: account")
def show_account(page: Page, account: str) -> Response:
    """Show an account, and to custodians the forms of its changes."""
    return _account_page(page, account)


@router.post("/budgets/{account}/limit", name="page: limit")
def change_limit(form: Form, account: str) -> Response:
    """Lower the limit, or propose a higher one."""
    work = form.work("change_limit")

    def change() -> object:
        values = {"limit": budget_of(form.fields, "limit"), "reason": form.text("reason")}
        return accounts.change_limit(work, account, NewLimit.model_validate(values))

    return _change(form, account, change)


@router.post("/budgets/{account}/rules", name="page: rules")
def change_rules(form: Form, account: str) -> Response:
    """Change the threshold of approval and the share of each analyst, or propose to."""
    work = form.work("change_rules")

    def change() -> object:
        approval, share = (budget_of(form.fields, name) for name in ("approval", "share"))
        return accounts.change_rules(work, account, NewRules(approval=approval, share=share))

    return _change(form, account, change)


@router.post("/budgets/{account}/share", name="page: share")
def set_share(form: Form, account: str) -> Response:
    """Change the share of one analyst, or propose to."""
    work = form.work("set_share")

    def change() -> object:
        return accounts.set_share(work, account, form.text("person"), budget_of(form.fields, "own"))

    return _change(form, account, change)


@router.post("/budgets/{account}/proposals/{proposal}/confirm", name="page: confirm")
def confirm_proposal(form: Form, account: str, proposal: Id) -> Response:
    """Confirm the proposal of another person."""
    work = form.work("confirm_proposal")
    return _change(form, account, lambda: proposals.confirm_proposal(work, proposal))


@router.post("/budgets/{account}/proposals/{proposal}/reject", name="page: reject proposal")
def reject_proposal(form: Form, account: str, proposal: Id) -> Response:
    """Reject the proposal of another person, or take back one's own."""
    work = form.work("reject_proposal")
    return _change(form, account, lambda: proposals.reject_proposal(work, proposal))


def new_account(form: FormRequest, *, name: str = "", unit: str = "") -> NewAccount:
    """Return the account of a form.

    Parameters
    ----------
    form : FormRequest
    name, unit : str
        In the place of fields.

    Raises
    ------
    InvalidError, ValidationError
    """
    budgets = {each: budget_of(form.fields, each) for each in ("limit", "approval", "share")}
    values = {
        "name": name or form.text("name"),
        "unit": unit or form.text("unit") or "row",
        **budgets,
    }
    return NewAccount.model_validate(values)


def _change(form: FormRequest, account: str, change: Callable[[], object]) -> Response:
    def changed() -> str:
        change()
        return f"/budgets/{quote(account, safe='')}"

    return attempt(changed, partial(_account_page, form, account))


def _tables(page: PageRequest, work: Work) -> list[TableView]:
    return tables.list_tables(work) if page.actor.may("list_tables") else []


def _waiting(page: PageRequest, work: Work) -> list[ProposalView]:
    if not page.actor.may("list_proposals"):
        return []
    return proposals.list_proposals(work, waiting=True, most=MOST_WAITING)


def _account_page(
    page: PageRequest, account: str, *, status: int = 200, problem: str = ""
) -> Response:
    work = page.work("list_accounts")
    named = [each for each in accounts.list_accounts(work) if each.name == account]
    if not named:
        raise NotFoundError("account")
    return page.show(
        "account.html",
        status=status,
        account=named[0],
        tables=[table for table in _tables(page, work) if table.account == account],
        proposals=[each for each in _waiting(page, work) if each.account == account],
        given=given_in(page),
        problem=problem,
    )
