"""Messages about people: their roles, tokens, linked accounts and sessions."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from cloakgp.service.access import Role
from cloakgp.service.messages import Line, Message, Name, View


class NewPerson(Message):
    """A person to add."""

    name: Name
    roles: list[Role]


class ChangedPerson(Message):
    """Changes of a person; fields without a value stay as they are."""

    roles: list[Role] | None = None
    active: bool | None = None


class IdentityView(View):
    """An account at an identity provider."""

    issuer: str
    subject: str


class NewIdentity(Message):
    """An account at an identity provider, by which a person signs in."""

    issuer: Annotated[Line, StringConstraints(min_length=1, max_length=255)] = Field(
        description="Address of the provider, as its configuration states it."
    )
    subject: Annotated[Line, StringConstraints(min_length=1, max_length=255)] = Field(
        description="The provider's claim `sub`, which stays when names change."
    )


class PersonView(View):
    """A person of the service."""

    id: int
    name: str
    roles: list[Role]
    active: bool
    erased: bool = Field(description="Whether a pseudonym stands in the place of the name.")
    created: datetime
    identities: list[IdentityView]


class NewToken(Message):
    """A token to issue."""

    label: Line = ""
    roles: list[Role] | None = Field(
        default=None, description="If missing, all roles of the person."
    )
    days: Annotated[int, Field(ge=1, le=3650)] | None = None


class TokenView(View):
    """A token without its secret."""

    id: int
    person: str
    hint: str
    label: str
    roles: list[Role]
    created: datetime
    expires: datetime
    revoked: bool
    used: datetime | None


class RotatedToken(Message):
    """The replacement of a token."""

    grace_hours: Annotated[int, Field(ge=0, le=24 * 30)] = Field(
        default=0, description="Hours for which the old token stays valid; 0 to end it at once."
    )
    days: Annotated[int, Field(ge=1, le=3650)] | None = Field(
        default=None, description="Days for which the new token is valid. For administrators."
    )


class IssuedToken(Message):
    """A new token, which is shown once."""

    token: str
    about: TokenView


class Login(Message):
    """The token by which a browser logs in."""

    token: Annotated[str, StringConstraints(max_length=200)]


class Me(Message):
    """The caller."""

    name: str
    roles: list[Role]
    operations: list[str]
    form_token: str
