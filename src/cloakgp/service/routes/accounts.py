"""Routes of accounts, and of proposals to let more be spent."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from cloakgp.service.guards import Working
from cloakgp.service.messages import AccountChange, Name, NewLimit, NewRules, PrivacyBudget
from cloakgp.service.operations import accounts, proposals
from cloakgp.service.routes.endpoints import GuardedRoute, add, add_list

router = APIRouter(route_class=GuardedRoute, tags=["accounts"])
PROPOSED: dict[int | str, dict[str, Any]] = {
    202: {"model": AccountChange, "description": "More could be spent: a person must confirm it."}
}

add(router, "GET", "/accounts", accounts.list_accounts)
add(router, "POST", "/accounts", accounts.open_account, status=201)
add_list(router, "/proposals", proposals.list_proposals)
add(router, "POST", "/proposals/{proposal}/confirm", proposals.confirm_proposal)
add(router, "POST", "/proposals/{proposal}/reject", proposals.reject_proposal)


@router.put("/accounts/{account}/limit", name="change_limit", responses=PROPOSED)
def change_limit(work: Working, response: Response, account: Name, new: NewLimit) -> AccountChange:
    """Lower the limit of an account, or propose a higher one; spent privacy stays spent."""
    return _answer(response, accounts.change_limit(work, account, new))


@router.put("/accounts/{account}/rules", name="change_rules", responses=PROPOSED)
def change_rules(work: Working, response: Response, account: Name, new: NewRules) -> AccountChange:
    """Change the threshold of approval and the share of each analyst, or propose to."""
    return _answer(response, accounts.change_rules(work, account, new))


@router.put("/accounts/{account}/shares/{person}", name="set_share", responses=PROPOSED)
def set_share(
    work: Working,
    response: Response,
    account: Name,
    person: Name,
    budget: PrivacyBudget | None = None,
) -> AccountChange:
    """Set the share of one analyst, or propose a larger one; without a budget, the share of all."""
    return _answer(response, accounts.set_share(work, account, person, budget))


def _answer(response: Response, change: AccountChange) -> AccountChange:
    if change.proposal is not None:
        response.status_code = 202
    return change
