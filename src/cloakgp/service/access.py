"""Role-based access control: the table `ACCESS` of operations and roles."""

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
    """A role of a person."""

    CUSTODIAN = "custodian"
    APPROVER = "approver"
    ANALYST = "analyst"
    READER = "reader"
    AUDITOR = "auditor"
    ADMINISTRATOR = "administrator"


_C, _P, _A, _R, _U, _M = Role
ALL = frozenset(Role)

# Operation → roles. The names are those of functions in `operations`, and of routes.
ACCESS: Mapping[str, frozenset[Role]] = {
    # Tables: a file's content stays with the custodian who registered it; others see the columns.
    "upload_table": frozenset({_C}),
    "look_at_table": frozenset({_C}),
    "register_table": frozenset({_C}),
    "withdraw_table": frozenset({_C}),
    "erase_table": frozenset({_C}),
    "erase_upload": frozenset({_C}),
    "list_tables": frozenset({_C, _P, _A}),
    "show_table": frozenset({_C, _P, _A}),
    # Accounts: the limit of all charges about a population, and the rules under it.
    "list_accounts": frozenset({_C, _P, _A, _U}),
    "open_account": frozenset({_C}),
    "change_limit": frozenset({_C}),
    "change_rules": frozenset({_C}),
    "set_share": frozenset({_C}),
    # A change that lets more be spent waits for a second person, who is no analyst either.
    "list_proposals": frozenset({_C, _P, _U}),
    "confirm_proposal": frozenset({_C, _P}),
    "reject_proposal": frozenset({_C, _P}),
    # Plans spend nothing.
    "make_plan": frozenset({_C, _P, _A}),
    "plot_plan": frozenset({_C, _P, _A}),
    # Requests, and decisions about them.
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
    # Joint requests: custodians send files of theirs, never a row; the rows stay with them.
    "begin_joint_request": frozenset({_C, _A}),
    "list_joint_requests": frozenset({_C, _P, _A}),
    "show_joint_request": frozenset({_C, _P, _A}),
    "continue_joint_request": frozenset({_C, _A}),
    "close_joint_request": frozenset({_C, _A}),
    "read_joint_file": frozenset({_C, _A}),
    "send_joint_file": frozenset({_C}),
    # Releases are public: a reader of one may predict from it.
    "list_releases": frozenset({_C, _P, _A, _R}),
    "show_release": frozenset({_C, _P, _A, _R}),
    "download_release": frozenset({_C, _P, _A, _R}),
    "combine_releases": frozenset({_C, _P, _A, _R}),
    "report_release": frozenset({_C, _P, _A, _R}),
    "page_release": frozenset({_C, _P, _A, _R}),
    "predict_release": frozenset({_A, _R}),
    "predict_table": frozenset({_A, _R}),
    "plot_release": frozenset({_A, _R}),
    "receipt_release": frozenset({_C, _P, _A, _R, _U}),
    # The ledger, and the audit trail of the service.
    "list_entries": frozenset({_U}),
    "export_entries": frozenset({_U}),
    "verify_ledger": frozenset({_U}),
    "list_events": frozenset({_U}),
    "export_events": frozenset({_U}),
    # People; this role sees no data.
    "list_people": frozenset({_M}),
    "show_person": frozenset({_M}),
    "add_person": frozenset({_M}),
    "change_person": frozenset({_M}),
    "erase_person": frozenset({_M}),
    "link_identity": frozenset({_M}),
    "unlink_identity": frozenset({_M}),
    "list_tokens": frozenset({_M}),
    "issue_token": frozenset({_M}),
    "rotate_token": frozenset({_M}),
    "revoke_token": frozenset({_M}),
    "show_metrics": frozenset({_U, _M}),
    "show_me": ALL,
    "rotate_my_token": ALL,
    "log_out": ALL,
}
# Operations without an actor.
OPEN = frozenset({"show_health", "show_ready", "log_in"})


@dataclass(frozen=True)
class Actor:
    """The person who calls an operation.

    Attributes
    ----------
    id : int
    name : str
    roles : frozenset of Role
        Roles that both the token and its person have.
    token : int
        Number of the token by which they came.
    form_token : str
        Token for the forms of a session; empty for a program.
    """

    id: int
    name: str
    roles: frozenset[Role]
    token: int = 0
    form_token: str = ""

    @property
    def oversees(self) -> bool:
        """Whether they see the requests of all analysts."""
        return not self.roles.isdisjoint((Role.CUSTODIAN, Role.APPROVER))

    def may(self, operation: str) -> bool:
        """Return whether their roles allow an operation.

        Examples
        --------
        >>> Actor(1, "anna", frozenset({Role.READER})).may("make_request")
        False
        """
        return not self.roles.isdisjoint(ACCESS[operation])


class HasActor(Protocol):
    """An object with an actor."""

    @property
    def actor(self) -> Actor:
        """The actor."""


WorkOf = TypeVar("WorkOf", bound=HasActor)


def operation(
    function: Callable[Concatenate[WorkOf, Parameters], Result],
) -> Callable[Concatenate[WorkOf, Parameters], Result]:
    """Make a function an operation, which refuses actors without a role for it.

    Parameters
    ----------
    function : callable
        Its first parameter has an `actor`; its name stands in `ACCESS`.
    """
    name = function.__name__
    assert name in ACCESS, name

    @functools.wraps(function)
    def allowed(work: WorkOf, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        if not work.actor.may(name):
            raise ForbiddenError
        return function(work, *args, **kwargs)

    return allowed
