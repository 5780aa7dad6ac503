"""Routes of people, tokens and sessions."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from cloakgp.service.guards import Working, cookie_name, open_browser_session, service_of
from cloakgp.service.messages import (
    ChangedPerson,
    Id,
    IssuedToken,
    Login,
    Me,
    NewPerson,
    NewToken,
    PersonView,
    TokenView,
)
from cloakgp.service.operations import people, sessions

router = APIRouter()


@router.get("/me", name="show_me", tags=["sessions"])
def show_me(work: Working) -> Me:
    """Say who is asking, and what they may do."""
    return people.show_me(work)


@router.post("/session", name="log_in", tags=["sessions"], status_code=201)
def log_in(request: Request, response: Response, login: Login) -> Me:
    """Begin a session of a browser: its cookie is set, and what its forms must hold is answered."""
    opened = open_browser_session(request, response, login.token)
    return Me(
        name=opened.actor.name,
        roles=sorted(opened.actor.roles),
        operations=[],
        form_token=opened.actor.form_token,
    )


@router.delete("/session", name="log_out", tags=["sessions"], status_code=204)
def log_out(request: Request, response: Response, work: Working) -> None:
    """End the session."""
    name = cookie_name(service_of(request))
    sessions.log_out(work, request.cookies.get(name, ""))
    response.delete_cookie(name, path="/")


@router.get("/people", name="list_people", tags=["people"])
def list_people(work: Working) -> list[PersonView]:
    """Return everybody."""
    return people.list_people(work)


@router.post("/people", name="add_person", tags=["people"], status_code=201)
def add_person(work: Working, new: NewPerson) -> PersonView:
    """Add somebody."""
    return people.add_person(work, new)


@router.patch("/people/{person}", name="change_person", tags=["people"])
def change_person(work: Working, person: Id, change: ChangedPerson) -> PersonView:
    """Change somebody's roles, or whether they may use the service."""
    return people.change_person(work, person, change)


@router.get("/people/{person}/tokens", name="list_tokens", tags=["people"])
def list_tokens(work: Working, person: Id) -> list[TokenView]:
    """Return somebody's tokens, without what makes them."""
    return people.list_tokens(work, person)


@router.post("/people/{person}/tokens", name="issue_token", tags=["people"], status_code=201)
def issue_token(work: Working, person: Id, new: NewToken) -> IssuedToken:
    """Issue a token; it is shown this once."""
    return people.issue_token(work, person, new)


@router.delete("/tokens/{token}", name="revoke_token", tags=["people"])
def revoke_token(work: Working, token: Id) -> TokenView:
    """Revoke a token, and end the sessions that began with it."""
    return people.revoke_token(work, token)
