"""`cloakgp service`: maintenance of a service by its host."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloakgp.cli.console import explain, fails_plainly, say

if TYPE_CHECKING:
    from cloakgp.service.database import ServiceDatabase

At = Annotated[
    str,
    typer.Option(
        "--ledger",
        envvar="CLOAKGP_LEDGER",
        help="Its ledger: a file, or postgresql://HOST/NAME. By default in --data.",
        show_default=False,
    ),
]
Data = Annotated[Path, typer.Option(help="Folder of the service.")]

service = typer.Typer(
    help="Maintain a service, as its host.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@service.command("recover-administrator")
@fails_plainly
def recover(
    ledger: At = "",
    data: Data = Path("cloakgp-data"),
    days: Annotated[
        int, typer.Option(min=1, max=3650, help="Days for which the token is valid.")
    ] = 90,
) -> None:
    """Make a new token of an administrator, and revoke all their other tokens.

    For a token that was lost, has expired, or is in wrong hands. The audit trail notes it. A
    terminal shows the token; otherwise a file that its owner alone can read receives it.
    """
    from cloakgp.service.maintenance import TOKEN_FILE, recover_administrator, write_token

    with _opened(ledger, data) as database:
        token, name = recover_administrator(database, days=days)
    if sys.stdout.isatty():
        say(f"  {name}  {token}")
        explain("It is shown once: keep it. Older tokens of administrators are revoked.")
        return
    path = data / TOKEN_FILE
    write_token(path, token)
    say(str(path))
    explain(f"The token of {name} is in this file: keep it elsewhere, and delete the file.")


@service.command("events")
@fails_plainly
def events(
    ledger: At = "",
    data: Data = Path("cloakgp-data"),
    after: Annotated[int, typer.Option(min=0, help="Number of the last known event.")] = 0,
) -> None:
    """Write the audit trail, a line of JSON for each event."""
    from cloakgp.service.operations.audits import events_as_lines

    with _opened(ledger, data) as database:
        for line in events_as_lines(database, after=after):
            sys.stdout.write(line)


@service.command("retain")
@fails_plainly
def retain(
    days: Annotated[int, typer.Option(min=0, help="Days for which names and addresses are kept.")],
    ledger: At = "",
    data: Data = Path("cloakgp-data"),
) -> None:
    """Erase names of people who left, and addresses of events, after some days.

    A pseudonym takes the place of a name; events and charges stay.
    """
    from cloakgp.ledger import Ledger
    from cloakgp.service.maintenance import apply_retention

    with _opened(ledger, data) as database, closing(Ledger(_url(ledger, data))) as of_spending:
        erased = apply_retention(of_spending, database, days=days)
    say(f"erased {erased.names} names and {erased.addresses} addresses")


@contextmanager
def _opened(ledger: str, data: Path) -> Iterator[ServiceDatabase]:
    from cloakgp.ledger.engines import parse_url
    from cloakgp.service.database import ServiceDatabase
    from cloakgp.service.errors import ServiceError

    url = _url(ledger, data)
    place = parse_url(url)
    if place.get_backend_name() == "sqlite" and not Path(place.database or "").exists():
        raise ValueError(f"there is no service at {url}: name its --data or its --ledger")
    database = ServiceDatabase(url)
    try:
        yield database
    except ServiceError as error:
        raise ValueError(str(error)) from None
    finally:
        database.close()


def _url(ledger: str, data: Path) -> str:
    return ledger or str(data / "ledger.db")
