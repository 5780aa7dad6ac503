"""Errors of the service: what it refuses, in words that anybody may read.

No message holds anything of a private column: those that might come from one (of a table that a
custodian registers) are raised for the custodian alone, who holds the table.
"""

from __future__ import annotations


class ServiceError(Exception):
    """The service cannot do what was asked.

    Attributes
    ----------
    status : int
        Of HTTP.
    kind : str
        A word for programs.
    """

    status = 400
    kind = "invalid"


class InvalidError(ServiceError):
    """What was asked makes no sense."""

    status, kind = 422, "invalid"


class UnknownActorError(ServiceError):
    """Nobody knows who is asking."""

    status, kind = 401, "unauthenticated"

    def __init__(self) -> None:
        super().__init__("a valid token is needed")


class ForbiddenError(ServiceError):
    """Whoever is asking may not."""

    status, kind = 403, "forbidden"

    def __init__(self, message: str = "your roles do not allow this") -> None:
        super().__init__(message)


class NotFoundError(ServiceError):
    """There is no such thing, or whoever is asking may not know of it."""

    status, kind = 404, "not-found"

    def __init__(self, what: str) -> None:
        super().__init__(f"there is no such {what}")


class ConflictError(ServiceError):
    """Something is not, or no longer, in the state for this."""

    status, kind = 409, "conflict"


class NoRoomError(ServiceError):
    """A limit leaves no room for what was asked."""

    status, kind = 409, "no-room"


class TooManyError(ServiceError):
    """Too much was asked in too short a time."""

    status, kind = 429, "too-many"

    def __init__(self, seconds: int) -> None:
        super().__init__("too many requests: wait a little")
        self.seconds = max(1, seconds)
