"""Client of the service: typed calls by httpx, which need nothing else of this package."""

from cloakgp.client.client import Client
from cloakgp.client.errors import (
    ClientError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    JobFailedError,
    NoAnswerError,
    NoRoomError,
    NotFoundError,
    TooLargeError,
    TooManyError,
    UnavailableError,
    UnknownTokenError,
)
from cloakgp.client.records import (
    Account,
    Job,
    Plan,
    Predictions,
    PrivacyBudget,
    Release,
    Request,
    Table,
)

__all__ = [
    "Account",
    "Client",
    "ClientError",
    "ConflictError",
    "ForbiddenError",
    "InvalidError",
    "Job",
    "JobFailedError",
    "NoAnswerError",
    "NoRoomError",
    "NotFoundError",
    "Plan",
    "Predictions",
    "PrivacyBudget",
    "Release",
    "Request",
    "Table",
    "TooLargeError",
    "TooManyError",
    "UnavailableError",
    "UnknownTokenError",
]
