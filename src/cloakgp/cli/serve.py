"""`cloakgp serve`: the service for several people, over HTTP."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloakgp.cli.console import explain, fails_plainly, say, warn

if TYPE_CHECKING:
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
    from cloakgp.service.providers import read_provider
    from cloakgp.service.server import prepare
    from cloakgp.service.server import serve as run
    from cloakgp.service.settings import MIB, Settings

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
    for each in prepared.introduced:
        say(f"  {each.name:<6} {each.role!s:<14} {each.token}")
    if prepared.introduced:
        explain("Tokens of the demonstration's people, valid for a day: enter as any of them.")
    if prepared.administrator is not None:
        say(f"  {prepared.administrator}")
        explain(
            "The first administrator's token is in this file, which you alone can read: keep it "
            "elsewhere, and delete the file. If it is lost, `cloakgp service "
            "recover-administrator` makes another."
        )
    say(f"Serving at {address}", style="green")
