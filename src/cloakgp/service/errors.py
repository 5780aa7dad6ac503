"""Errors of the service, with messages for everyone.

No message holds a value of a private column: a message that might (about a table under
registration) goes to its custodian alone, who holds the table.
"""

from __future__ import annotations

from collections.abc import Mapping

from cloakgp.service.rules import as_requested

LEDGER_FAILS = "the ledger cannot do this now: the auditor should verify"


class ServiceError(Exception):
    """A refusal of the service.

    Attributes
    ----------
    status : int
        Status code of HTTP.
    kind : str
        A word for programs.
    fields : mapping of str to str
        What is wrong with single fields of a form, by their names.
    """

    status = 400
    kind = "invalid"
    fields: Mapping[str, str] = {}


class InvalidError(ServiceError):
    """The request makes no sense.

    Parameters
    ----------
    message : str
        Options of the command line in it are told as the fields of a request.
    fields : mapping of str to str
    """

    status, kind = 422, "invalid"

    def __init__(self, message: str, *, fields: Mapping[str, str] | None = None) -> None:
        super().__init__(as_requested(message))
        self.fields = fields or {}


class UnknownActorError(ServiceError):
    """The caller is unknown.

    Attributes
    ----------
    noted : str
        Note for the audit trail alone.
    person : int or None
        The person of the token, if that is known.
    """

    status, kind = 401, "unauthenticated"

    def __init__(self, noted: str = "", *, person: int | None = None) -> None:
        super().__init__("a valid token is needed")
        self.noted, self.person = noted, person


class ForbiddenError(ServiceError):
    """The roles of the caller do not allow this."""

    status, kind = 403, "forbidden"

    def __init__(self, message: str = "your roles do not allow this") -> None:
        super().__init__(message)


class NotFoundError(ServiceError):
    """There is no such row, or the caller may not see it.

    Parameters
    ----------
    called : str
        What it is.
    field : str
        Of a form, in which it was named.
    """

    status, kind = 404, "not-found"

    def __init__(self, called: str, *, field: str = "") -> None:
        super().__init__(f"there is no such {called}")
        self.fields = {field: str(self)} if field else {}


class ConflictError(ServiceError):
    """A row is not, or no longer, in the state for this.

    Parameters
    ----------
    message : str
    fields : mapping of str to str
    """

    status, kind = 409, "conflict"

    def __init__(self, message: str, *, fields: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.fields = fields or {}


class NoRoomError(ServiceError):
    """A limit leaves no room for the request."""

    status, kind = 409, "no-room"


class TooManyError(ServiceError):
    """There were too many requests in a short time.

    Parameters
    ----------
    seconds : int
        Until the next one.
    message : str
    """

    status, kind = 429, "too-many"

    def __init__(self, seconds: int, message: str = "too many requests: wait a little") -> None:
        super().__init__(message)
        self.seconds = max(1, seconds)
