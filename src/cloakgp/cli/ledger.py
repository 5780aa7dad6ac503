"""`cloakgp ledger`: what was spent about whom, and who may spend how much more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloakgp.cli import options
from cloakgp.cli.console import explain, fails_plainly, plain, say, stdout
from cloakgp.orders import texts
from cloakgp.utils.files import write_file

if TYPE_CHECKING:
    from cloakgp.ledger import Ledger, Standing

At = Annotated[
    str,
    typer.Option(
        "--ledger",
        envvar="CLOAKGP_LEDGER",
        help="A file, or postgresql://HOST/NAME.",
        show_default=False,
    ),
]
Name = Annotated[str, typer.Option("--account", help="Of whom it is: a population.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; written into the ledger.")]
Written = Annotated[
    Path | None, typer.Option("--to", "-o", help="File to write; the terminal if not given.")
]
UNITS = {
    "row": "row",
    "person": "person",
    "replace": "whole row replaced",
    "add-remove": "whole row added or removed",
}
# Of a line of the log.
SHOWN_AMOUNTS = (("mu", "mu"), ("pure_epsilon", "epsilon"))

ledger = typer.Typer(
    help="What was spent about whom, remembered, and refused at a limit.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


def _opened(url: str) -> Ledger:
    from cloakgp.ledger import Ledger

    return Ledger(url)


@ledger.command("init")
@fails_plainly
def make(url: At = "") -> None:
    """Make a ledger, its key and its anchor."""
    from cloakgp.ledger import Ledger
    from cloakgp.ledger.errors import LedgerError
    from cloakgp.ledger.keys import files_of

    if not url:
        raise LedgerError("name the ledger: --ledger FILE, or postgresql://HOST/NAME")
    made = Ledger.create(url)
    files = files_of(made.database.url)
    say(f"Made {made.database.shown}.", style="green")
    explain(
        f"Its key is {files}.key: keep a copy where no backup of the database is, since without it "
        f"the ledger cannot be used. Its anchor, {files}.anchor, tells if the database is put back "
        "to an earlier state. Next, open an account:"
    )
    say("  cloakgp ledger limit NAME --epsilon 1 --delta 1e-6")


@ledger.command("limit")
@fails_plainly
def set_limit(
    name: Annotated[str, typer.Argument(help="Of the account: a population.")],
    epsilon: Annotated[float, typer.Option(help="Of all that is ever spent about them.")],
    delta: Annotated[float, typer.Option(help="Well below one over the number of people.")],
    unit: Annotated[
        str,
        typer.Option(
            help="Of a new account, whom it protects: row (one output), person (all outputs of "
            "one), replace or add-remove (a whole row, where inputs are private); row if not given."
        ),
    ] = "",
    reason: Reason = "",
    url: At = "",
) -> None:
    """Open an account, or change the limit of one."""
    found = _opened(url)
    if name in {one.name for one in found.standings()}:
        if unit:
            raise ValueError("whom an account protects is settled when it is opened: omit --unit")
        found.change_limit(name, epsilon=epsilon, delta=delta, reason=reason)
    else:
        chosen = texts.one_of(tuple(UNITS), unit or "row", option="--unit")
        found.open_account(name, epsilon=epsilon, delta=delta, unit=UNITS[chosen])  # type: ignore[arg-type]
    _print_standing(found.account(name).standing)


@ledger.command("attach")
@fails_plainly
def attach(
    table: Annotated[Path, typer.Argument(help="Table of people: .csv, .csv.gz or .parquet.")],
    output: Annotated[str, typer.Option(help="The private column.")],
    account: Name,
    url: At = "",
) -> None:
    """Recognise a private column, and copies of it, and count it for one account only."""
    from cloakgp.data.tables import read_private

    _opened(url).account(account).attach(read_private(table, output=output), column=output)
    say(f"Column {output} of {table} is attached to {account}.", style="green")


@ledger.command("show")
@fails_plainly
def show(
    epsilon: Annotated[
        float | None, typer.Option(help="Say how many more releases of this budget there may be.")
    ] = None,
    delta: Annotated[float | None, typer.Option(help="Of each of them.")] = None,
    url: At = "",
) -> None:
    """Say what was spent of every account, and what is left."""
    found = _opened(url)
    if (epsilon is None) != (delta is None):
        raise ValueError("--epsilon and --delta go together")
    for standing in found.standings():
        _print_standing(standing)
        if epsilon is not None and delta is not None:
            left = standing.releases_left(epsilon, delta)
            say(f"  releases of ({epsilon:g}, {delta:g}) left: {left:,}")
        attached = [row["name"] for row in found.columns() if row["account"] == standing.name]
        if attached:
            say(f"  columns: {', '.join(attached)}")


@ledger.command("log")
@fails_plainly
def log(
    account: Annotated[str | None, typer.Option(help="Of this account alone.")] = None,
    url: At = "",
) -> None:
    """List the entries, one a line, oldest first."""
    for entry in _opened(url).entries(account=account):
        content = entry.content
        about = [f"charge {content['charge']}"] if "charge" in content else []
        about += [
            f"{word} {content[name]:.4g}" for name, word in SHOWN_AMOUNTS if content.get(name)
        ]
        about += [
            str(content[name])
            for name in ("account", "mechanism", "call", "column", "purpose", "reason")
            if content.get(name)
        ]
        when = content["when"][:19]
        say(f"{entry.number:>6}  {when}  {content['who']}  {content['kind']}  {', '.join(about)}")


@ledger.command("void")
@fails_plainly
def void(
    charge: Annotated[int, typer.Argument(help="Its number.")],
    reason: Annotated[str, typer.Option(help="Why; written into the ledger.")],
    although_drawn: Annotated[
        bool,
        typer.Option(
            "--although-drawn",
            help="Noise may have been drawn, and you know that nobody saw or will see its result.",
        ),
    ] = False,
    url: At = "",
) -> None:
    """Give back a charge whose process died."""
    _opened(url).void(charge, reason=reason, although_drawn=although_drawn)
    say(f"Charge {charge} no longer counts.", style="green")


@ledger.command("verify")
@fails_plainly
def verify(url: At = "") -> None:
    """Look for edits, gaps and rollbacks; exit code 1 if there are any."""
    found = _opened(url).verify()
    if found.sound:
        say(f"{found.entries:,} entries, all as they were written.", style="green")
        say(f"  the last has the digest {found.digest}")
        return
    for finding in found.findings:
        stdout.print(plain(finding, style="bold red"), soft_wrap=True)
    raise typer.Exit(code=1)


@ledger.command("export")
@fails_plainly
def export(
    kind: Annotated[str, typer.Option("--as", help="csv or json.")] = "json",
    receipt: Annotated[
        int | None, typer.Option(help="Instead a signed receipt of the charge of this number.")
    ] = None,
    account: Annotated[str | None, typer.Option(help="Entries of this account alone.")] = None,
    to: Written = None,
    overwrite: options.Overwrite = False,
    url: At = "",
) -> None:
    """Write the entries with their digests, or a signed receipt."""
    from cloakgp.ledger.exports import entries_as_csv, entries_as_json, receipt_of

    found = _opened(url)
    if receipt is not None:
        text = receipt_of(found, receipt)
    elif texts.one_of(("csv", "json"), kind, option="--as") == "csv":
        text = entries_as_csv(found, account=account)
    else:
        text = entries_as_json(found, account=account)
    if to is None:
        stdout.out(text, end="", highlight=False)
    else:
        write_file(to, text.encode(), overwrite=overwrite)
        say(f"Wrote {to}.", style="green")


@ledger.command("import")
@fails_plainly
def import_files(
    files: Annotated[list[Path], typer.Argument(help="Releases.", metavar="RELEASE...")],
    account: Name,
    reason: Annotated[str, typer.Option(help="Where they are from; written into the ledger.")],
    url: At = "",
) -> None:
    """Count releases that were made before there was a ledger."""
    from cloakgp.ledger.imports import import_releases

    for one in import_releases(_opened(url).account(account), files, reason=reason):
        counted = "known already" if one.charge is None else f"charge {one.charge}"
        say(f"{one.path}: ({one.epsilon:.4g}, {one.delta:.4g}), {counted}")


def _print_standing(standing: Standing) -> None:
    epsilon, delta = standing.limit
    stdout.print(plain(standing.name, style="bold cyan"))
    say(f"  protects: one {standing.unit}")
    say(f"  spent: epsilon {standing.epsilon:.4g} of {epsilon:g}, at delta {delta:g}")
    say(f"  charges: {standing.charges:,}")
    if standing.open:
        listed = ", ".join(map(str, standing.open))
        say(f"  not closed, and counted: {listed} (running, or died; see cloakgp ledger void)")
