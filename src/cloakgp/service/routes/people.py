"""Routes of people, tokens and sessions."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from cloakgp.service.guards import (
    Working,
    cookie_name,
    open_browser_session,
    service_of,
    take_cookie,
)
from cloakgp.service.operations import people, sessions, tokens
from cloakgp.service.people_messages import Login, Me
from cloakgp.service.routes.endpoints import GuardedRoute, add, add_list

router = APIRouter(route_class=GuardedRoute, tags=["people"])

add(router, "GET", "/me", people.show_me)
add_list(router, "/people", people.list_people, cursor="after", key="name")
add(router, "POST", "/people", people.add_person, status=201)
add(router, "PATCH", "/people/{person}", people.change_person)
add(router, "GET", "/people/{person}", people.show_person)
add(router, "POST", "/people/{person}/erase", people.erase_person)
add(router, "POST", "/people/{person}/identities", people.link_identity, status=201)
add(router, "POST", "/people/{person}/identities/unlink", people.unlink_identity)
add(router, "GET", "/people/{person}/tokens", tokens.list_tokens)
add(router, "POST", "/people/{person}/tokens", tokens.issue_token, status=201)
add(router, "POST", "/tokens/{token}/rotate", tokens.rotate_token, status=201)
add(router, "POST", "/me/token/rotate", tokens.rotate_my_token, status=201)
add(router, "DELETE", "/tokens/{token}", tokens.revoke_token)


@router.post("/session", name="log_in", status_code=201)
def log_in(request: Request, response: Response, login: Login) -> Me:
    """Begin a session of a browser: sets its cookie, and returns the token of its forms."""
    opened = open_browser_session(request, response, login.token)
    return Me(
        name=opened.actor.name,
        roles=sorted(opened.actor.roles),
        operations=[],
        form_token=opened.actor.form_token,
    )


@router.delete("/session", name="log_out", status_code=204)
def log_out(request: Request, response: Response, work: Working) -> None:
    """End the session."""
    name = cookie_name(service_of(request))
    sessions.log_out(work, request.cookies.get(name, ""))
    take_cookie(response, service_of(request))
