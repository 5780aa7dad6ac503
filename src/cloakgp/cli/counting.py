"""Counting of what a command spends, in a ledger, if one is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Protocol, TypeVar

import typer

from cloakgp.cli.console import notice
from cloakgp.orders.origin import Origin

if TYPE_CHECKING:
    from cloakgp.privacy.tally import Drawn

# Of the disk, before anything is asked; few releases are larger.
RESERVED_BYTES = 2**24


class AnyRelease(Protocol):
    """A release."""

    def to_bytes(self) -> bytes:
        """Return its file."""


Made = TypeVar("Made", bound=AnyRelease)


@dataclass
class Progress:
    """How far a command has come.

    Attributes
    ----------
    made : bool
        Whether there is a release, which may or may not have been written.
    """

    made: bool = False


@dataclass(frozen=True, kw_only=True)
class Counting:
    """Options about where a release comes from, and in which ledger it is counted, if in any.

    Attributes
    ----------
    purpose, by, licence, ledger, account, key : str
        Empty for what was not given.
    """

    purpose: Annotated[
        str,
        typer.Option(
            "--purpose",
            envvar="CLOAKGP_PURPOSE",
            help="What the release is for; kept in it, and in the ledger.",
        ),
    ] = ""
    by: Annotated[
        str, typer.Option("--by", envvar="CLOAKGP_BY", help="Who makes the release; kept in it.")
    ] = ""
    licence: Annotated[
        str,
        typer.Option("--licence", help="Under which the release may be used; kept in it."),
    ] = ""
    ledger: Annotated[
        str,
        typer.Option(
            "--ledger",
            envvar="CLOAKGP_LEDGER",
            help="Count it in this ledger, and refuse what is beyond the account's limit: a file, "
            "or postgresql://HOST/NAME.",
        ),
    ] = ""
    account: Annotated[
        str,
        typer.Option(
            "--account",
            envvar="CLOAKGP_ACCOUNT",
            help="Of the ledger; the one that the private column is attached to if not given.",
        ),
    ] = ""
    key: Annotated[
        str,
        typer.Option(
            "--key",
            help="With --ledger and --account: name this one release. Run again with the same key, "
            "the same release is written, and nothing is spent.",
        ),
    ] = ""

    @property
    def origin(self) -> Origin:
        """What the release keeps of it."""
        return Origin(self.purpose, self.by, self.licence)

    def check(self) -> None:
        """Raise ValueError for what has no meaning without a ledger."""
        if not self.ledger and (self.account or self.key):
            raise ValueError("--account and --key go with --ledger")

    @contextmanager
    def telling(self, *, delta: float = 0.0) -> Iterator[Progress]:
        """Say what was spent, by what was really drawn, where a block is interrupted or fails.

        Parameters
        ----------
        delta : float
            That was asked for: at which what Gaussian noise spends is told.

        Yields
        ------
        Progress
            To be told when a release is made, and being written.
        """
        drawn: Sequence[Drawn] = ()
        progress = Progress()
        try:
            from cloakgp.privacy.tally import tallied

            with tallied() as drawn:
                yield progress
        except BaseException as error:
            interrupted = isinstance(error, KeyboardInterrupt | SystemExit | typer.Abort)
            if drawn:
                from cloakgp.privacy.tally import describe_spent

                counted = ", which the ledger has counted" if self.ledger else ""
                notice(
                    f"{'Interrupted' if interrupted else 'It failed'} after noise was drawn: "
                    f"{describe_spent(drawn, delta=delta)} is spent{counted}"
                    f"{'' if progress.made else '; no release was made'}."
                )
            elif interrupted:
                notice("Interrupted: nothing was drawn, so nothing is spent.")
            raise

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
