"""Application: its commands, its version, and where it is entered."""

from __future__ import annotations

from typing import Annotated

import typer

from cloakgp import __version__
from cloakgp.cli.console import exit_on_signals, replace_what_cannot_be_shown, say
from cloakgp.cli.custodians import custodians
from cloakgp.cli.demo import demo
from cloakgp.cli.example import example
from cloakgp.cli.kinds import (
    plan_private_inputs,
    release_chosen,
    release_private_inputs,
    release_several,
)
from cloakgp.cli.ledger import ledger
from cloakgp.cli.plan import plan, schema
from cloakgp.cli.predict import predict
from cloakgp.cli.release import release
from cloakgp.cli.service import serve, service
from cloakgp.cli.show import compare, page, plot, show
from cloakgp.cli.stream import stream
from cloakgp.cli.visits import combine, extend, refine

# Tracebacks with local variables would show the private column.
app = typer.Typer(
    name="cloakgp",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    # Lines of a docstring then flow into paragraphs.
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(requested: bool) -> None:
    if requested:
        say(f"cloakgp {__version__}")
        raise typer.Exit


@app.callback()
def cloakgp(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Publish predictions of a private column, under differential privacy.

    The inputs of a table are public, and its output is private. `release` asks the outputs once,
    with noise; all other work uses the published release, and costs no more privacy.
    """


for command in (
    schema,
    plan,
    release,
    predict,
    show,
    plot,
    page,
    refine,
    extend,
    combine,
    stream,
    compare,
    serve,
    demo,
    example,
):
    app.command()(command)
for name, kind in (
    ("release-several", release_several),
    ("plan-private-inputs", plan_private_inputs),
    ("release-private-inputs", release_private_inputs),
    ("release-chosen", release_chosen),
):
    app.command(name)(kind)
app.add_typer(custodians, name="custodians")
app.add_typer(ledger, name="ledger")
app.add_typer(service, name="service")


def main() -> None:
    """Run the command line."""
    exit_on_signals()
    replace_what_cannot_be_shown()
    app()
