"""Access: who may do what. `ACCESS` is the one table of it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from cloakgp.service.errors import ForbiddenError

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Role(StrEnum):
    """What somebody is trusted with."""

    CUSTODIAN = "custodian"
    APPROVER = "approver"
    ANALYST = "analyst"
    READER = "reader"
    AUDITOR = "auditor"
    ADMINISTRATOR = "administrator"


_C, _P, _A, _R, _U, _M = Role
EVERYBODY = frozenset(Role)

# Operation → roles. The names are those of functions in `operations`, and of routes.
ACCESS: Mapping[str, frozenset[Role]] = {
    # Tables: what is in them stays with the custodian; others see what columns there are.
    "upload_table": frozenset({_C}),
    "look_at_table": frozenset({_C}),
    "register_table": frozenset({_C}),
    "withdraw_table": frozenset({_C}),
    "list_tables": frozenset({_C, _P, _A}),
    "show_table": frozenset({_C, _P, _A}),
    # Accounts: the limit of all that is spent about a population, and rules under it.
    "list_accounts": frozenset({_C, _P, _A, _U}),
    "open_account": frozenset({_C}),
    "change_limit": frozenset({_C}),
    "change_rules": frozenset({_C}),
    "set_share": frozenset({_C}),
    # Plans spend nothing.
    "make_plan": frozenset({_C, _P, _A}),
    "plot_plan": frozenset({_C, _P, _A}),
    # Requests, and what is done about them.
    "make_request": frozenset({_A}),
    "list_requests": frozenset({_C, _P, _A}),
    "show_request": frozenset({_C, _P, _A}),
    "approve_request": frozenset({_P}),
    "reject_request": frozenset({_P}),
    "withdraw_request": frozenset({_A}),
    "list_jobs": frozenset({_C, _P, _A}),
    "show_job": frozenset({_C, _P, _A}),
    "watch_job": frozenset({_C, _P, _A}),
    "cancel_job": frozenset({_C, _A}),
    # Releases are what may be published: whoever may read one may predict from it.
    "list_releases": frozenset({_C, _P, _A, _R}),
    "show_release": frozenset({_C, _P, _A, _R}),
    "download_release": frozenset({_C, _P, _A, _R}),
    "report_release": frozenset({_C, _P, _A, _R}),
    "page_release": frozenset({_C, _P, _A, _R}),
    "predict_release": frozenset({_A, _R}),
    "predict_table": frozenset({_A, _R}),
    "plot_release": frozenset({_A, _R}),
    "receipt_release": frozenset({_C, _P, _A, _R, _U}),
    # The ledger, and what was done to the service.
    "list_entries": frozenset({_U}),
    "export_entries": frozenset({_U}),
    "verify_ledger": frozenset({_U}),
    "list_events": frozenset({_U}),
    # People, who never see data by this role.
    "list_people": frozenset({_M}),
    "add_person": frozenset({_M}),
    "change_person": frozenset({_M}),
    "list_tokens": frozenset({_M}),
    "issue_token": frozenset({_M}),
    "revoke_token": frozenset({_M}),
    "show_metrics": frozenset({_U, _M}),
    "show_me": EVERYBODY,
    "log_out": EVERYBODY,
}
# What needs no actor.
OPEN = frozenset({"show_health", "log_in"})


@dataclass(frozen=True)
class Actor:
    """Whoever is asking.

    Attributes
    ----------
    id : int
    name : str
    roles : frozenset of Role
        Those of the person that the token is for as well.
    token : int
        By which they came.
    form_token : str
        Of a session: what its forms must hold; empty for a token.
    """

    id: int
    name: str
    roles: frozenset[Role]
    token: int = 0
    form_token: str = ""

    def may(self, operation: str) -> bool:
        """Return whether their roles allow an operation.

        Examples
        --------
        >>> Actor(1, "anna", frozenset({Role.READER})).may("make_request")
        False
        """
        return not self.roles.isdisjoint(ACCESS[operation])


class HasActor(Protocol):
    """What says who is asking."""

    @property
    def actor(self) -> Actor:
        """Who it is."""


WorkOf = TypeVar("WorkOf", bound=HasActor)


def operation(
    function: Callable[Concatenate[WorkOf, Parameters], Result],
) -> Callable[Concatenate[WorkOf, Parameters], Result]:
    """Make a function an operation of its name, which is done for those alone who may.

    Parameters
    ----------
    function : callable
        Its first parameter has an `actor`; its name is in `ACCESS`.
    """
    name = function.__name__
    assert name in ACCESS, name

    @functools.wraps(function)
    def allowed(work: WorkOf, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        if not work.actor.may(name):
            raise ForbiddenError
        return function(work, *args, **kwargs)

    return allowed
