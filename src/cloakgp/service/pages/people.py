"""Pages of people and their tokens, for administrators."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fastapi import APIRouter
from fastapi.responses import Response

from cloakgp.service.access import Role
from cloakgp.service.errors import InvalidError
from cloakgp.service.messages import (
    ChangedPerson,
    Id,
    IssuedToken,
    NewIdentity,
    NewPerson,
    NewToken,
    RotatedToken,
)
from cloakgp.service.operations import people, tokens
from cloakgp.service.pages.base import (
    SHOWN,
    Form,
    FormRequest,
    Page,
    PageRequest,
    PageRoute,
    attempt,
    given_in,
    go_to,
)
from cloakgp.service.pages.glossary import ROLES

router = APIRouter(route_class=PageRoute)


@router.get("/people", name="page: people")
def show_people(page: Page, after: people.AfterName = "") -> Response:
    """List people by their names, with a form for a new person."""
    return _people_page(page, after=after)


@router.post("/people", name="page: people")
def add_person(form: Form) -> Response:
    """Add a person."""
    work = form.work("add_person")

    def add() -> str:
        new = NewPerson(name=form.text("name"), roles=_roles(form))
        return f"/people/{people.add_person(work, new).id}"

    return attempt(add, partial(_people_page, form))


@router.get("/people/{person}", name="page: person")
def show_person(page: Page, person: Id) -> Response:
    """Show a person and their tokens."""
    return _person_page(page, person)


@router.post("/people/{person}", name="page: person")
def change_person(form: Form, person: Id) -> Response:
    """Change the roles of a person, or whether they may use the service."""
    work = form.work("change_person")

    def change() -> object:
        new = ChangedPerson(roles=_roles(form), active=form.text("active") == "yes")
        return people.change_person(work, person, new)

    return _change(form, person, change)


@router.post("/people/{person}/tokens", name="page: issue token")
def issue_token(form: Form, person: Id) -> Response:
    """Issue a token, and show it once."""
    work = form.work("issue_token")

    def issue() -> IssuedToken:
        values = {"label": form.text("label"), "days": form.text("days") or None}
        return tokens.issue_token(work, person, NewToken.model_validate(values))

    return _issue(form, person, issue)


@router.post("/people/{person}/tokens/{token}/revoke", name="page: revoke token")
def revoke_token(form: Form, person: Id, token: Id) -> Response:
    """Revoke a token."""
    tokens.revoke_token(form.work("revoke_token"), token)
    return go_to(f"/people/{person}")


@router.post("/people/{person}/tokens/{token}/rotate", name="page: rotate token")
def rotate_token(form: Form, person: Id, token: Id) -> Response:
    """Issue a token in place of another, and show it once."""
    work = form.work("rotate_token")

    def rotate() -> IssuedToken:
        replacement = RotatedToken.model_validate({"grace_hours": form.text("grace") or 0})
        return tokens.rotate_token(work, token, replacement)

    return _issue(form, person, rotate)


@router.post("/people/{person}/erase", name="page: erase")
def erase_person(form: Form, person: Id) -> Response:
    """Erase the name of a person."""
    work = form.work("erase_person")
    return _change(form, person, lambda: people.erase_person(work, person))


@router.post("/people/{person}/identities", name="page: link identity")
def link_identity(form: Form, person: Id) -> Response:
    """Link an account at an identity provider."""
    work = form.work("link_identity")
    return _change(form, person, lambda: people.link_identity(work, person, _identity(form)))


@router.post("/people/{person}/identities/unlink", name="page: unlink identity")
def unlink_identity(form: Form, person: Id) -> Response:
    """Unlink an account at an identity provider."""
    work = form.work("unlink_identity")
    return _change(form, person, lambda: people.unlink_identity(work, person, _identity(form)))


def _change(form: FormRequest, person: int, change: Callable[[], object]) -> Response:
    def changed() -> str:
        change()
        return f"/people/{person}"

    return attempt(changed, partial(_person_page, form, person))


def _issue(form: FormRequest, person: int, issue: Callable[[], IssuedToken]) -> Response:
    retry = partial(_person_page, form, person)
    return attempt(lambda: retry(status=201, issued=issue()), retry)


def _identity(form: FormRequest) -> NewIdentity:
    return NewIdentity(issuer=form.text("issuer"), subject=form.text("subject"))


def _roles(form: FormRequest) -> list[Role]:
    try:
        return [Role(str(each)) for each in form.fields.getlist("roles")]
    except ValueError:
        told = "choose from the roles of the list"
        raise InvalidError(told, fields={"roles": told}) from None


def _people_page(
    page: PageRequest, *, after: str = "", status: int = 200, problem: str = ""
) -> Response:
    listed = people.list_people(page.work("list_people"), after=after, most=SHOWN + 1)
    shown, last = page.page_of(listed)
    return page.show(
        "people.html",
        status=status,
        people=shown,
        last=last and last.name,
        roles=ROLES,
        given=given_in(page),
        chosen=[] if not isinstance(page, FormRequest) else page.fields.getlist("roles"),
        problem=problem,
    )


def _person_page(
    page: PageRequest,
    person: int,
    *,
    status: int = 200,
    problem: str = "",
    issued: IssuedToken | None = None,
) -> Response:
    work = page.work("list_tokens")
    return page.show(
        "person.html",
        status=status,
        person=people.show_person(work, person),
        tokens=tokens.list_tokens(work, person),
        roles=ROLES,
        days=work.service.settings.token_days,
        provider=work.service.settings.provider,
        given={} if issued else given_in(page),
        problem=problem,
        issued=issued,
    )
