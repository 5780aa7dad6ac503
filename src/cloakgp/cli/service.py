"""`cloakgp serve` and `service`: the service for several people, run and maintained by its host."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloakgp.cli.console import explain, fails_plainly, say, warn

if TYPE_CHECKING:
    from cloakgp.service.database import ServiceDatabase
    from cloakgp.service.server import Prepared

LOOPBACK = ("127.0.0.1", "::1", "localhost")
# Places that a demonstration has of its own, so that it never writes to others.
OWN = ("ledger", "data", "tables", "scheduler")
# Variables of the environment for ledgers and keys.
ELSEWHERE = (
    "CLOAKGP_LEDGER",
    "CLOAKGP_LEDGER_HOME",
    "CLOAKGP_LEDGER_KEYS",
    "CLOAKGP_LEDGER_ANCHORS",
)


@fails_plainly
def serve(
    context: typer.Context,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo",
            help="Demonstrate with a public table, a person of every role, and a temporary ledger.",
        ),
    ] = False,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen at; 0 for any free one.")
    ] = 8000,
    ledger: Annotated[
        str,
        typer.Option(
            envvar="CLOAKGP_LEDGER",
            help="Ledger of all charges: a file, or postgresql://HOST/NAME. By default in --data.",
        ),
    ] = "",
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of uploaded tables. By default cloakgp-data."),
    ] = None,
    tables: Annotated[
        list[Path] | None,
        typer.Option(help="Folder whose files may be registered as tables. Repeat it for more."),
    ] = None,
    scheduler: Annotated[
        str, typer.Option(help="Address of a Dask scheduler whose workers do the jobs.")
    ] = "",
    workers: Annotated[
        int, typer.Option(min=0, help="Processes for jobs; 0 for a thread of the server.")
    ] = 1,
    name: Annotated[
        list[str] | None,
        typer.Option(help="Host name under which a proxy serves it. Repeat it for more."),
    ] = None,
    secure: Annotated[
        bool,
        typer.Option("--secure", help="Send cookies over TLS alone, for a service behind a proxy."),
    ] = False,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            envvar="CLOAKGP_PROXIES",
            help="Address or network of a trusted proxy, whose X-Forwarded-For counts. Repeat it "
            "for more.",
        ),
    ] = None,
    provider: Annotated[
        Path | None,
        typer.Option(
            envvar="CLOAKGP_PROVIDER", help="File of an identity provider (OpenID Connect)."
        ),
    ] = None,
    memory: Annotated[float | None, typer.Option(help="Memory of a fit, in gigabytes.")] = None,
    max_upload: Annotated[int, typer.Option(min=1, help="Largest upload, in megabytes.")] = 1024,
    verify_hours: Annotated[
        float,
        typer.Option(min=0, help="Hours between two verifications of the ledger; 0 for none."),
    ] = 24.0,
    keep_days: Annotated[
        int,
        typer.Option(min=0, help="Days for which files without a table are kept; 0 for ever."),
    ] = 30,
) -> None:
    """Serve tables, requests and releases to several people; prints the address.

    The ledger counts every release, and refuses requests beyond its limits. The first start
    writes the token of an administrator, who adds people, to a file in --data.
    """
    from cloakgp.service.server import prepare
    from cloakgp.service.server import serve as run
    from cloakgp.service.settings import MIB, Settings, read_provider

    if host not in LOOPBACK and not secure:
        warn(f"{host} is not this machine alone: put a proxy with TLS before it, and add --secure")
    with ExitStack() as ending:
        if demo:
            _check_own(context)
            for variable in ELSEWHERE:
                os.environ.pop(variable, None)
            ledger = ""
            data = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="cloakgp-")))
        data = data or Path("cloakgp-data")
        settings = Settings(
            ledger=ledger or str(data / "ledger.db"),
            data=data.resolve(),
            tables=tuple(tables or ()),
            host=host,
            port=port,
            names=tuple(name or ()),
            scheduler=scheduler,
            workers=workers,
            secure=secure,
            proxies=tuple(proxy or ()),
            provider=None if provider is None else read_provider(provider),
            memory=memory,
            upload=max_upload * MIB,
            verify_hours=verify_hours,
            keep_days=keep_days,
        )
        prepared = prepare(settings, demonstration=demo)
        run(prepared, begun=lambda address: _introduce(prepared, address))


def _check_own(context: typer.Context) -> None:
    sources = {name: context.get_parameter_source(name) for name in OWN}
    named = [name for name, at in sources.items() if at is not None and at.name == "COMMANDLINE"]
    if named:
        raise ValueError(
            "--demo has a ledger, a table and workers of its own, which end with it: leave out "
            + ", ".join(f"--{name}" for name in named)
        )


def _introduce(prepared: Prepared, address: str) -> None:
    shown = prepared.demonstration
    if shown is not None:
        for each in shown.people:
            say(f"  {each.name:<6} {each.role!s:<14} {each.token}")
        explain(
            "Tokens of the demonstration's people, valid for a day, for programs. In a browser, "
            "enter as any of them; whoever has this link can, too:"
        )
        say(f"  {address}{shown.link}", style="green")
    if prepared.administrator is not None:
        say(f"  {prepared.administrator}")
        explain(
            "The first administrator's token is in this file, which you alone can read: keep it "
            "elsewhere, and delete the file. If it is lost, `cloakgp service "
            "recover-administrator` makes another."
        )
    say(f"Serving at {address}", style="green")


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
