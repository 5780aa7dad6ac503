"""Pages of people and their tokens, for administrators."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import ValidationError

from cloakgp.service.access import Role
from cloakgp.service.errors import InvalidError, NotFoundError, ServiceError
from cloakgp.service.messages import ChangedPerson, Id, IssuedToken, NewPerson, NewToken
from cloakgp.service.operations import people
from cloakgp.service.pages.glossary import ROLES
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


@router.get("/people", name="page: people")
def show_people(visit: Visiting) -> Response:
    """List everybody, and ask for somebody new."""
    return _people_page(visit)


@router.post("/people", name="page: people")
def add_person(sent: Sending) -> Response:
    """Add somebody."""
    work = sent.work("add_person")
    try:
        made = people.add_person(work, NewPerson(name=sent.text("name"), roles=_roles(sent)))
    except (ServiceError, ValidationError) as error:
        status, message = problem_of(error)
        return _people_page(sent, status=status, problem=message)
    return gone_to(f"/people/{made.id}")


@router.get("/people/{person}", name="page: person")
def show_person(visit: Visiting, person: Id) -> Response:
    """Show somebody and their tokens."""
    return _person_page(visit, person)


@router.post("/people/{person}", name="page: person")
def change_person(sent: Sending, person: Id) -> Response:
    """Change somebody's roles, or whether they may use the service."""
    work = sent.work("change_person")
    try:
        change = ChangedPerson(roles=_roles(sent), active=sent.text("active") == "yes")
        people.change_person(work, person, change)
    except (ServiceError, ValidationError) as error:
        status, message = problem_of(error)
        return _person_page(sent, person, status=status, problem=message)
    return gone_to(f"/people/{person}")


@router.post("/people/{person}/tokens", name="page: issue token")
def issue_token(sent: Sending, person: Id) -> Response:
    """Issue a token, and show it this once."""
    work = sent.work("issue_token")
    try:
        new = NewToken.model_validate(
            {"label": sent.text("label"), "days": sent.text("days") or None}
        )
        issued = people.issue_token(work, person, new)
    except (ServiceError, ValidationError) as error:
        status, message = problem_of(error)
        return _person_page(sent, person, status=status, problem=message)
    return _person_page(sent, person, status=201, issued=issued)


@router.post("/people/{person}/tokens/{token}/revoke", name="page: revoke token")
def revoke_token(sent: Sending, person: Id, token: Id) -> Response:
    """Revoke a token."""
    people.revoke_token(sent.work("revoke_token"), token)
    return gone_to(f"/people/{person}")


def _roles(sent: Sent) -> list[Role]:
    try:
        return [Role(str(each)) for each in sent.form.getlist("roles")]
    except ValueError:
        raise InvalidError("choose from the roles there are") from None


def _people_page(visit: Visit, *, status: int = 200, problem: str = "") -> Response:
    found = people.list_people(visit.work("list_people"))
    return visit.show("people.html", status=status, people=found, roles=ROLES, problem=problem)


def _person_page(
    visit: Visit,
    person: int,
    *,
    status: int = 200,
    problem: str = "",
    issued: IssuedToken | None = None,
) -> Response:
    work = visit.work("list_tokens")
    found = next((each for each in people.list_people(work) if each.id == person), None)
    if found is None:
        raise NotFoundError("person")
    return visit.show(
        "person.html",
        status=status,
        person=found,
        tokens=people.list_tokens(work, person),
        roles=ROLES,
        days=work.service.settings.token_days,
        problem=problem,
        issued=issued,
    )
