"""`cloakgp ledger`: accounts of privacy budgets, their limits and their entries."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloakgp.cli import options
from cloakgp.cli.console import explain, fails_plainly, plain, say, stderr, stdout, warn
from cloakgp.orders import texts
from cloakgp.utils.files import write_file
from cloakgp.utils.formatting import ceiling

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
Name = Annotated[str, typer.Option("--account", help="Name of the account: a population.")]
Reason = Annotated[str, typer.Option("--reason", help="Reason, which stands in the ledger.")]
Written = Annotated[
    Path | None, typer.Option("--to", "-o", help="File to write. By default the terminal.")
]
UNITS = {
    "row": "row",
    "person": "person",
    "replace": "whole row replaced",
    "add-remove": "whole row added or removed",
}
# Of a line of the log.
SHOWN_AMOUNTS = (("mu", "mu"), ("laplace_epsilon", "epsilon"), ("pure_epsilon", "epsilon"))
# So much of the mark of somebody whose name is erased.
SHOWN_MARK = 12
# Exit codes of `verify`.
DAMAGED, NOT_VERIFIED = 1, 2

ledger = typer.Typer(
    help="Count the privacy budgets of populations, and refuse charges beyond a limit.",
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

    if not url:
        raise LedgerError("name the ledger: --ledger FILE, or postgresql://HOST/NAME")
    made = Ledger.create(url)
    key, anchor, beside = made.database.keys.path, made.database.anchor.path, _beside(made)
    say(f"Made {made.database.shown}.", style="green")
    explain(
        f"Its key is {key}: keep a copy where no backup of the database is, since without it "
        f"the ledger cannot be used. Its anchor, {anchor}, reveals a database that was put "
        f"back to an earlier state. {beside}{' ' * bool(beside)}Next, open an account:"
    )
    say("  cloakgp ledger limit NAME --epsilon 1 --delta 1e-6")


def _beside(made: Ledger) -> str:
    """Say what an anchor that lies beside the database does not reveal; nothing of another."""
    database, anchor = made.database, made.database.anchor.path
    if not database.is_file:
        return ""
    if anchor.parent.resolve() != Path(database.url.database or "").parent.resolve():
        return ""
    return (
        "The anchor lies in the database's folder, and reveals nothing where both are put back "
        "together, with that folder or its disk: CLOAKGP_LEDGER_ANCHORS names another place, best "
        "on another disk."
    )


@ledger.command("limit")
@fails_plainly
def set_limit(
    name: Annotated[str, typer.Argument(help="Name of the account: a population.")],
    epsilon: Annotated[float, typer.Option(help="Limit of all charges about them, for ever.")],
    delta: Annotated[
        float, typer.Option(help="Limit of δ, far below one over the number of people.")
    ],
    unit: Annotated[
        str,
        typer.Option(
            help="Unit of a new account: row (one output), person (all outputs of "
            "one), replace or add-remove (a whole row, where inputs are private); by default row."
        ),
    ] = "",
    reason: Reason = "",
    url: At = "",
) -> None:
    """Open an account, or change the limit of one."""
    from cloakgp.ledger.texts import known_name

    found = _opened(url)
    names = [one.name for one in found.standings()]
    if known_name(name, names) in names:
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
    """Attach a private column, so that it and its copies find their account without a name."""
    from cloakgp.data.tables import read_private

    _opened(url).account(account).attach(read_private(table, output=output), column=output)
    say(f"Column {output} of {table} is attached to {account}.", style="green")


@ledger.command("show")
@fails_plainly
def show(
    epsilon: Annotated[
        float | None, typer.Option(help="State the room for further releases of this budget.")
    ] = None,
    delta: Annotated[float, typer.Option(help="δ of each release.")] = 0.0,
    noise: Annotated[
        str, typer.Option(help="Noise of each release: gaussian, laplace, or auto for either.")
    ] = "auto",
    url: At = "",
) -> None:
    """Show the used share of every account's limit, and the room that is left."""
    found = _opened(url)
    if epsilon is None and delta:
        raise ValueError("--delta goes with --epsilon: give both")
    for standing in found.standings():
        _print_standing(standing)
        if epsilon is not None:
            chosen = texts.noise_choice(noise, option="--noise")
            left = standing.releases_left(epsilon, delta, noise=chosen)
            say(f"  releases of ({epsilon:g}, {delta:g}) left: {left:,}")
        attached = [row["name"] for row in found.columns() if row["account"] == standing.name]
        if attached:
            say(f"  columns: {', '.join(attached)}")


@ledger.command("log")
@fails_plainly
def log(
    account: Annotated[str | None, typer.Option(help="Entries of this account alone.")] = None,
    url: At = "",
) -> None:
    """List the entries, one a line, oldest first."""
    found = _opened(url)
    names, notes = found.names(), found.notes()
    for entry in found.entries(account=account):
        content = entry.content
        who = names.get(content["who"], content["who"][:SHOWN_MARK])
        about = [f"charge {content['charge']}"] if "charge" in content else []
        about += [
            f"{word} {ceiling(content[name], digits=4)}"
            for name, word in SHOWN_AMOUNTS
            if content.get(name)
        ]
        about += [
            str(content[name])
            for name in ("account", "mechanism", "call", "column", "purpose", "people", "reason")
            if content.get(name)
        ]
        about += notes.get(entry.number, {}).get("columns", [])
        when = content["when"][:19]
        say(f"{entry.number:>6}  {when}  {who}  {content['kind']}  {', '.join(about)}")


@ledger.command("void")
@fails_plainly
def void(
    charge: Annotated[int, typer.Argument(help="Number of the charge.")],
    reason: Annotated[str, typer.Option(help="Reason, which stands in the ledger.")],
    although_drawn: Annotated[
        bool,
        typer.Option(
            "--although-drawn",
            help="Void it although noise may have been drawn: its result was never seen, and never "
            "will be.",
        ),
    ] = False,
    url: At = "",
) -> None:
    """Void a charge whose process died."""
    _opened(url).void(charge, reason=reason, although_drawn=although_drawn)
    say(f"Charge {charge} no longer counts.", style="green")


@ledger.command("verify")
@fails_plainly
def verify(
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")] = False,
    url: At = "",
) -> None:
    """Look for edits, forgeries, gaps and rollbacks.

    Exit code 0 if there are none, 1 if there are, 2 if it could not be looked: for timers.
    """
    from cloakgp.ledger import LedgerError

    try:
        opened = _opened(url)
        found = opened.verify()
    except (LedgerError, OSError) as error:
        stderr.print(plain(f"Not verified: {error}", style="bold red"), soft_wrap=True)
        raise typer.Exit(code=NOT_VERIFIED) from None
    for note in found.notes:
        warn(note)
    for finding in found.findings:
        stdout.print(plain(finding, style="bold red"), soft_wrap=True)
    if not found.sound:
        raise typer.Exit(code=DAMAGED)
    if not quiet:
        say(f"{found.entries:,} entries, all as they were written.", style="green")
        say(f"  the last has the digest {found.digest}")
        if beside := _beside(opened):
            explain(beside)


@ledger.command("recover")
@fails_plainly
def recover(
    reason: Annotated[
        str, typer.Option(help="The copy and the reason of its return, which stand in the ledger.")
    ] = "",
    reconciled: Annotated[
        str,
        typer.Option(
            help="Account of the charges missing in the copy, which stands in the ledger. From "
            "then on everything can be done again."
        ),
    ] = "",
    url: At = "",
) -> None:
    """Go on from an older copy of the database that was put back.

    First with --reason: all tokens of the service are revoked, and until --reconciled releases are
    imported and limits lowered, and nothing else.
    """
    if bool(reason) == bool(reconciled):
        raise ValueError(
            "give --reason after an older copy was put back, and --reconciled after all missing "
            "charges are counted"
        )
    found = _opened(url)
    if reconciled:
        found.reconcile(reason=reconciled)
        say("Reconciled: charges are counted again.", style="green")
        return
    found.check_behind()
    # First: if this ends in between, nobody has a token that was revoked.
    revoked = _revoke_tokens(found)
    made = found.recover(reason=reason)
    say(f"The ledger goes on from entry {made.last}.", style="green")
    if made.missing is None:
        explain("It has no anchor: the number of missing entries is unknown.")
    else:
        explain(f"This machine saw entry {made.seen}: at least {made.missing} are missing.")
    if revoked:
        explain(f"All {revoked} tokens of the service were revoked: issue new ones.")
    explain(
        "Now count the releases made meanwhile (cloakgp ledger import), lower the limits of "
        "accounts by charges that cannot be imported (cloakgp ledger limit), erase again the "
        "names that were erased meanwhile (cloakgp ledger erase), and then describe your steps:"
    )
    say('  cloakgp ledger recover --reconciled "..."')


@ledger.command("rebuild")
@fails_plainly
def rebuild(reason: Reason = "", url: At = "") -> None:
    """Make the tables anew from the entries, which alone say what was spent.

    Where `cloakgp ledger verify` says that accounts or charges are not what the entries make them.
    """
    changed = _opened(url).rebuild(reason=reason)
    say(f"Rebuilt. Rows that were not what the entries make them: {changed}.", style="green")
    explain("An account may have spent more by its entries than it seemed: cloakgp ledger show.")


@ledger.command("rotate-key")
@fails_plainly
def rotate_key(reason: Reason = "", url: At = "") -> None:
    """Sign entries and receipts with a new key from now on."""
    found = _opened(url)
    found.rotate_keys(reason=reason)
    say(f"Rotated: {found.database.keys.path} has another key.", style="green")
    explain(
        "Keep a new copy of the file; other machines need one, too. Old keys stay in it: columns "
        f"that were attached before are recognised by them. Its public key is {found.public_key}."
    )


@ledger.command("erase")
@fails_plainly
def erase(
    names: Annotated[
        list[str] | None, typer.Argument(help="Names, as `cloakgp ledger log` shows them.")
    ] = None,
    unused_since: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="All persons without an entry since that day."),
    ] = None,
    reason: Reason = "",
    url: At = "",
) -> None:
    """Erase names of persons; their entries keep a mark that identifies no one."""
    if bool(names) == (unused_since is not None):
        raise ValueError("name a person, or give --unused-since")
    found = _opened(url)
    chosen = names or []
    if unused_since is not None:
        chosen = found.names_unused_since(unused_since.replace(tzinfo=UTC))
    missing = sorted(set(chosen) - set(found.names().values()))
    if missing:
        raise ValueError(f"the ledger has no person called {', '.join(missing)}")
    say(f"Erased: {found.erase(chosen, reason=reason)}.", style="green")


@ledger.command("export")
@fails_plainly
def export(
    kind: Annotated[
        str, typer.Option("--as", help="csv, json, or lines (of JSON, one for each entry).")
    ] = "json",
    receipt: Annotated[
        int | None, typer.Option(help="Number of a charge, to write its signed receipt instead.")
    ] = None,
    account: Annotated[str | None, typer.Option(help="Entries of this account alone.")] = None,
    after: Annotated[
        int, typer.Option(min=0, help="With lines: number of the last known entry.")
    ] = 0,
    names: Annotated[
        bool,
        typer.Option(
            "--names", help="Include names of persons, which cannot be erased from the export."
        ),
    ] = False,
    to: Written = None,
    overwrite: options.Overwrite = False,
    url: At = "",
) -> None:
    """Write the entries with their digests and signatures, or a signed receipt."""
    from cloakgp.ledger import exports

    found = _opened(url)
    chosen = texts.one_of(("csv", "json", "lines"), kind, option="--as")
    if after and chosen != "lines":
        raise ValueError("--after goes with --as lines")
    if receipt is not None:
        text = exports.receipt_of(found, receipt)
    elif chosen == "csv":
        text = exports.entries_as_csv(found, account=account, names=names)
    elif chosen == "json":
        text = exports.entries_as_json(found, account=account, names=names)
    else:
        text = "".join(exports.entries_as_lines(found, account=account, after=after, names=names))
    if to is None:
        stdout.out(text, end="", highlight=False)
    else:
        write_file(to, text.encode(), overwrite=overwrite)
        say(f"Wrote {to}.", style="green")


@ledger.command("import")
@fails_plainly
def import_files(
    files: Annotated[list[Path], typer.Argument(help="Files of releases.", metavar="RELEASE...")],
    account: Name,
    reason: Annotated[
        str, typer.Option(help="Origin of the releases, which stands in the ledger.")
    ],
    people: Annotated[
        str,
        typer.Option(
            help="overlapping, if anybody may be in all tables of a release, or disjoint, if "
            "nobody is in tables that the release says to have nobody in common: then the dearest "
            "counts, and not the sum. That is your word, and the ledger notes it."
        ),
    ] = "overlapping",
    url: At = "",
) -> None:
    """Charge releases that are older than the ledger.

    What the account has counted already is not counted again, whatever other accounts have.
    """
    from cloakgp.ledger.imports import import_releases
    from cloakgp.privacy.cohorts import DISJOINT, OVERLAPPING

    said = texts.one_of((OVERLAPPING, DISJOINT), people, option="--people")
    found = _opened(url).account(account)
    for one in import_releases(found, files, reason=reason, people=said):
        counted = "known already" if one.charge is None else f"charge {one.charge}"
        pair = f"({ceiling(one.epsilon)}, {ceiling(one.delta, digits=4)})"
        say(f"{one.path}: {pair}, {counted}")


def _revoke_tokens(found: Ledger) -> int:
    """Revoke all tokens of a service whose tables are in the ledger's database."""
    if not found.database.has_table("service_tokens"):
        return 0
    from cloakgp.service.maintenance import revoke_all_tokens

    return revoke_all_tokens(found.database.url.render_as_string(hide_password=False))


def _print_standing(standing: Standing) -> None:
    epsilon, delta = standing.limit
    stdout.print(plain(standing.name, style="bold cyan"))
    say(f"  protects: one {standing.unit}")
    say(f"  limit: epsilon {epsilon:g}, delta {delta:g}, of all charges together")
    say(f"  used: {standing.used_in_words}")
    if standing.charges:
        say(
            f"  had every price been fixed before any answer: epsilon "
            f"{ceiling(standing.epsilon_if_fixed, digits=4)}, at delta {delta:g}"
        )
    say(f"  charges: {standing.charges:,}")
    if standing.open:
        listed = ", ".join(map(str, standing.open))
        say(f"  not closed, and counted: {listed} (running, or died; see cloakgp ledger void)")
