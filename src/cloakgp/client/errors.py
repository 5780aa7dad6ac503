"""Errors of the client: what the service refuses, by kind."""

from __future__ import annotations


class ClientError(Exception):
    """The service refuses, or does not answer as it should."""


class InvalidError(ClientError):
    """What was asked makes no sense."""


class UnknownTokenError(ClientError):
    """The token is none, or not any more."""


class ForbiddenError(ClientError):
    """The token's roles do not allow this."""


class NotFoundError(ClientError):
    """There is no such thing."""


class ConflictError(ClientError):
    """Something is not in the state for this."""


class NoRoomError(ClientError):
    """A limit leaves no room."""


class TooManyError(ClientError):
    """Too much was asked in too short a time."""


class JobFailedError(ClientError):
    """A job has failed, or was cancelled."""


KINDS: dict[str, type[ClientError]] = {
    "invalid": InvalidError,
    "unauthenticated": UnknownTokenError,
    "forbidden": ForbiddenError,
    "not-found": NotFoundError,
    "conflict": ConflictError,
    "no-room": NoRoomError,
    "too-many": TooManyError,
}
