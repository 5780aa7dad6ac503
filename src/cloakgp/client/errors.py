"""Errors of the client, by the kinds of the service's refusals."""

from __future__ import annotations


class ClientError(Exception):
    """The service refuses a request, or does not answer."""


class NoAnswerError(ClientError):
    """The service does not answer, or a proxy answers in its place."""


class InvalidError(ClientError):
    """The request makes no sense."""


class UnknownTokenError(ClientError):
    """The token is not valid, or not any more."""


class ForbiddenError(ClientError):
    """The token's roles do not allow this."""


class NotFoundError(ClientError):
    """There is no such thing."""


class ConflictError(ClientError):
    """A row is not in the state for this."""


class NoRoomError(ClientError):
    """A limit leaves no room."""


class TooManyError(ClientError):
    """There were too many requests in a short time."""


class TooLargeError(ClientError):
    """The request is larger than the service takes."""


class UnavailableError(ClientError):
    """The service cannot do this now."""


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
    "too-large": TooLargeError,
    "unavailable": UnavailableError,
}
