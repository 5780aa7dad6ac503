"""Counting of what a command spends, in a ledger, if one is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Protocol, TypeVar

import typer

# Of the disk, before anything is asked; few releases are larger.
RESERVED_BYTES = 2**24

LedgerAt = Annotated[
    str,
    typer.Option(
        "--ledger",
        envvar="CLOAKGP_LEDGER",
        help="Count it in this ledger, and refuse what is beyond the account's limit: a file, or "
        "postgresql://HOST/NAME.",
    ),
]
AccountName = Annotated[
    str,
    typer.Option(
        "--account",
        envvar="CLOAKGP_ACCOUNT",
        help="Of the ledger; the one that the private column is attached to if not given.",
    ),
]
ChargeKey = Annotated[
    str,
    typer.Option(
        "--key",
        help="With --ledger and --account: name this one release. Run again with the same key, the "
        "same release is written, and nothing is spent.",
    ),
]
Purpose = Annotated[
    str,
    typer.Option(
        "--purpose",
        envvar="CLOAKGP_PURPOSE",
        help="What the release is for; kept in it, and in the ledger.",
    ),
]


By = Annotated[
    str, typer.Option("--by", envvar="CLOAKGP_BY", help="Who makes the release; kept in it.")
]
Licence = Annotated[
    str, typer.Option("--licence", help="Under which the release may be used; kept in it.")
]


class Published(Protocol):
    """A release."""

    def to_bytes(self) -> bytes:
        """Return its file."""


Made = TypeVar("Made", bound=Published)


@dataclass(frozen=True)
class Counting:
    """In which ledger a release is counted, and how; in none if there is no name.

    Attributes
    ----------
    ledger, account, purpose, key : str
        Empty for what was not given.
    """

    ledger: str = ""
    account: str = ""
    purpose: str = ""
    key: str = ""

    def check(self) -> None:
        """Raise ValueError for what has no meaning without a ledger."""
        if not self.ledger and (self.account or self.key):
            raise ValueError("--account and --key go with --ledger")

    def publish(self, make: Callable[[], Made]) -> Made:
        """Ask private columns, within what their account has left.

        Parameters
        ----------
        make : callable
            Fits once, and returns a release.
        """
        if not self.ledger:
            return make()
        from cloakgp.ledger import Ledger

        ledger = Ledger(self.ledger)
        account = (
            ledger.account(self.account, purpose=self.purpose)
            if self.account
            else ledger.any_account(self.purpose)
        )
        return account.publish(make, key=self.key or None)
