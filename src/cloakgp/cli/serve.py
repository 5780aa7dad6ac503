"""`cloakgp serve`: releases for several people, over HTTP."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloakgp.cli.console import explain, fails_plainly, say, warn

if TYPE_CHECKING:
    from cloakgp.service.serving import Prepared

LOOPBACK = ("127.0.0.1", "::1", "localhost")


@fails_plainly
def serve(
    demo: Annotated[
        bool,
        typer.Option("--demo", help="With a public table, and somebody of every role."),
    ] = False,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")] = 8000,
    ledger: Annotated[
        str,
        typer.Option(
            envvar="CLOAKGP_LEDGER",
            help="Of all that is spent: a file, or postgresql://HOST/NAME; in --data if not given.",
        ),
    ] = "",
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder of uploaded tables. If not given: cloakgp-data; with --demo, a temporary "
            "one."
        ),
    ] = None,
    tables: Annotated[
        list[Path] | None,
        typer.Option(help="Folder whose files may be registered as tables. Say it again for more."),
    ] = None,
    scheduler: Annotated[
        str, typer.Option(help="Address of a Dask scheduler whose workers do the jobs.")
    ] = "",
    workers: Annotated[
        int, typer.Option(min=0, help="Processes of its own that do jobs; 0 for a thread.")
    ] = 1,
    name: Annotated[
        list[str] | None,
        typer.Option(help="Host name under which a proxy serves it. Say it again for more."),
    ] = None,
    secure: Annotated[
        bool, typer.Option("--secure", help="Sessions over TLS alone, which a proxy speaks.")
    ] = False,
    memory: Annotated[float | None, typer.Option(help="Gigabytes that a fit may take.")] = None,
    max_upload: Annotated[int, typer.Option(min=1, help="Of a table, in megabytes.")] = 1024,
) -> None:
    """Serve tables, requests and releases to several people; prints the address.

    What is spent is counted in the ledger, about which nobody can ask more than its limits. The
    first time, a token of an administrator is printed, who adds people.
    """
    from cloakgp.service.serving import prepare
    from cloakgp.service.serving import serve as run
    from cloakgp.service.settings import MIB, Settings

    if host not in LOOPBACK and not secure:
        warn(f"{host} is not this machine alone: put a proxy with TLS before it, and say --secure")
    with ExitStack() as ending:
        if data is None:
            data = (
                Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="cloakgp-")))
                if demo
                else Path("cloakgp-data")
            )
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
            memory=memory,
            upload=max_upload * MIB,
        )
        prepared = prepare(settings, demonstration=demo)
        run(prepared, begun=lambda address: _introduce(prepared, address))


def _introduce(prepared: Prepared, address: str) -> None:
    for each in prepared.introduced:
        say(f"  {each.name:<6} {each.role!s:<14} {each.token}")
    if prepared.introduced:
        explain("Tokens of the demonstration's people, who all are you, for a day.")
    if prepared.administrator is not None:
        say(f"  admin  administrator  {prepared.administrator}")
        explain("The first administrator's token. It is shown this once: keep it.")
    say(f"Serving at {address}", style="green")
