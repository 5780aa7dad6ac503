"""Client of the service: typed calls by httpx, which need nothing else of this package."""

from cloakgp.client.client import Client
from cloakgp.client.errors import (
    ClientError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    JobFailedError,
    NoRoomError,
    NotFoundError,
    TooManyError,
    UnknownTokenError,
)
from cloakgp.client.records import (
    Account,
    Budget,
    Job,
    Plan,
    Predictions,
    Release,
    Request,
    Table,
)

__all__ = [
    "Account",
    "Budget",
    "Client",
    "ClientError",
    "ConflictError",
    "ForbiddenError",
    "InvalidError",
    "Job",
    "JobFailedError",
    "NoRoomError",
    "NotFoundError",
    "Plan",
    "Predictions",
    "Release",
    "Request",
    "Table",
    "TooManyError",
    "UnknownTokenError",
]
