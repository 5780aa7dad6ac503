"""`cloakgp stream`: asks a table that grows, period by period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloakgp.cli import options
from cloakgp.cli.console import explain, fails_plainly, say
from cloakgp.cli.counting import Counting
from cloakgp.cli.fit_options import FitOptions
from cloakgp.cli.plan import print_plan
from cloakgp.fitting.request import as_option
from cloakgp.orders import texts

if TYPE_CHECKING:
    from cloakgp.fitting.request import FitRequest
    from cloakgp.ledger import Ledger
    from cloakgp.privacy.cohorts import People
    from cloakgp.streams.periods import Calendar
    from cloakgp.streams.state import PeriodRecord
    from cloakgp.streams.stream import Stream

CALENDAR = ("month", "year")


@dataclass(frozen=True, kw_only=True)
class StreamOptions:
    """The declaration of a stream, and the clock."""

    source: Annotated[
        Path,
        typer.Argument(
            help="Folder to which files of rows are moved, each of which is read once; or a "
            "database (.sqlite, or .url with its address) that grows.",
            metavar="SOURCE",
        ),
    ]
    output: Annotated[str, typer.Option(help="The private column, of numbers or of classes.")]
    time: Annotated[
        str, typer.Option(help="Public column that says when each row was: dates or numbers.")
    ]
    origin: Annotated[
        str,
        typer.Option(
            help="Start of the first period, written as the times are: 2026-01-01. Times with a "
            "zone are turned into universal time, and so is this, if it has one."
        ),
    ]
    length: Annotated[
        str,
        typer.Option(help="Length of each period: month, year, or a number (of days, for dates)."),
    ]
    horizon: Annotated[int, typer.Option(help="Number of periods that are asked at most.")]
    to: Annotated[
        Path, typer.Option("--to", "-o", help="Folder for the stream's state and its releases.")
    ]
    inputs: Annotated[
        str,
        typer.Option(
            help="Public columns that predict, with commas; by default all columns of the schema."
        ),
    ] = ""
    schema: Annotated[
        Path | None,
        typer.Option(help="Kinds of the public columns; by default inferred from the first rows."),
    ] = None
    people: Annotated[
        str,
        typer.Option(
            help="overlapping, if anybody may be in several periods: they pay for each. disjoint, "
            "if nobody is: each pays for one. That is your word, unless --person is given."
        ),
    ] = "overlapping"
    person: Annotated[
        str,
        typer.Option(
            help="Public column with the id of each row's person: their rows of a period are "
            "protected together, they are found again in other periods, and a later row of the "
            "same person and time replaces an earlier one."
        ),
    ] = ""
    lateness: Annotated[
        float,
        typer.Option(
            help="How long after its end a period waits for its rows, in units of the time; later "
            "rows are left out."
        ),
    ] = 0.0
    forgetting: Annotated[
        float | None,
        typer.Option(
            help="For what drifts: a length of time. What is known fades by a factor e after each."
        ),
    ] = None
    lasting: Annotated[
        float, typer.Option(help="With --forgetting: share of the variance that does not drift.")
    ] = 0.5
    missing_output: Annotated[
        str,
        typer.Option(
            help="Meaning of an empty private cell: refuse, or the number or class that it counts "
            "as."
        ),
    ] = "refuse"
    now: Annotated[
        str,
        typer.Option(help="Time of the clock; by default the latest time in the rows so far."),
    ] = ""
    sql: options.Sql = ""

    def span(self) -> float | Calendar:
        """Return the length of a period."""
        if self.length in CALENDAR:
            found: Calendar = "month" if self.length == "month" else "year"
            return found
        numbers = texts.positive_numbers(self.length, option="--length")
        if len(numbers) != 1:
            raise ValueError(f"--length is one number, month or year, got {self.length}")
        return numbers[0]

    def whose(self) -> People:
        """Return whether anybody may be in several periods."""
        from cloakgp.privacy.cohorts import DISJOINT, OVERLAPPING

        return texts.one_of((OVERLAPPING, DISJOINT), self.people, option="--people")


@fails_plainly
@options.takes_groups
def stream(
    table: StreamOptions,
    epsilon: Annotated[float, typer.Option(help="Privacy budget of each period.")],
    fit: FitOptions,
    counting: Counting,
    plan: Annotated[
        bool,
        typer.Option("--plan", help="Show what people spend in all, and expected errors; stop."),
    ] = False,
) -> None:
    """Ask a table that grows: each period once, when it has closed. Run it again and again.

    Periods, their number, the budget of each and whether people recur are declared beforehand and
    kept in the folder; once a period was asked, a run with others is refused. A run reads what is
    new, asks the periods that have closed, and writes a release after each, which predicts from
    everything till then. If a run is killed, the next one goes on, and spends nothing twice.

    With `--ledger`, name an account, of all periods. With `--people disjoint`, too, `--account
    "patients {period}"` opens one for each period. Later runs name the same ones.
    """
    made = _stream(table, fit.request(epsilon), fit, counting)
    if plan:
        _plan(made, output=table.output)
        return

    with counting.telling(delta=fit.delta):
        settled = made.advance(now=table.now or None)
    _tell(made, settled)


def _stream(
    table: StreamOptions, request: FitRequest, fit: FitOptions, counting: Counting
) -> Stream:
    """Return the stream of options.

    Raises
    ------
    ValueError
        For options that have no meaning here, or contradict each other.
    """
    request.validate(spelled=as_option)
    strangers = {
        "--queries": fit.queries is not None,
        "--lengthscale": bool(request.lengthscale),
        "--signal-variance": request.signal_variance is not None,
        "--key": bool(counting.key),
    }
    for name, given in strangers.items():
        if given:
            raise ValueError(f"{name} has no meaning for a stream: leave it out")
    length, people = table.span(), table.whose()
    counting.check()
    if counting.ledger and not counting.account:
        raise ValueError(
            "name the account of the people, --account: a period is a part of a column, which a "
            'ledger does not know. With --people disjoint, --account "NAME {period}" opens one for '
            "each period"
        )
    from cloakgp.orders.estimators import estimator_of
    from cloakgp.orders.options import declared_schema
    from cloakgp.streams.stream import Statement, Stream

    return Stream(
        estimator_of(request, kernel=None, schema=None),
        table.source,
        folder=table.to,
        output=table.output,
        inputs=texts.names(table.inputs) if table.inputs else (),
        schema=declared_schema(table.schema),
        time=table.time,
        origin=table.origin,
        length=length,
        horizon=table.horizon,
        people=people,
        person=table.person,
        lateness=table.lateness,
        forgetting=table.forgetting,
        lasting=table.lasting,
        query=table.sql,
        missing_output=table.missing_output,
        ledger=_ledger(counting),
        account=counting.account,
        statement=Statement(counting.purpose, counting.by, counting.licence),
    )


def _ledger(counting: Counting) -> Ledger | None:
    if not counting.ledger:
        return None
    from cloakgp.ledger import Ledger

    return Ledger(counting.ledger)


def _plan(made: Stream, *, output: str) -> None:
    """Show the plan of a stream."""
    from cloakgp.cli.progress import reporting
    from cloakgp.utils.names import DEFAULT_GAP

    with reporting("looking at the public columns", gap=DEFAULT_GAP):
        found = made.plan()
    print_plan(found, output=output)
    say("Nothing of the private column was read, and nothing spent.", style="green")


def _tell(made: Stream, settled: Sequence[PeriodRecord]) -> None:
    """Say what became of periods, what is released, and what was spent."""
    from cloakgp.report.guarantee import stated
    from cloakgp.utils.formatting import pair_in_words

    for each in settled:
        span = f"{made.describe(each.start)} to {made.describe(each.end)}"
        told = f"period {each.number + 1}, {span}: {each.rows:,} rows"
        told += f", {each.repeated:,} repeated ones replaced" * bool(each.repeated)
        if each.stage == "released":
            say(f"Wrote {made.folder.path / each.release}: {told}.", style="green")
        elif each.stage == "empty":
            if each.late and not each.rows:
                told = f"period {each.number + 1}, {span}: {each.late:,} rows, all of them too late"
                say(f"Nothing asked of {told}.")
            else:
                say(f"Nothing asked of {told}: too few.")
        else:
            say(f"Left out {told}: noise was drawn, and no release was made.", style="yellow")
    if late := sum(each.late for each in made.periods):
        say(f"  rows that came too late, and are left out: {late:,}")
    if early := made.rows_before:
        say(f"  rows before the first period, {made.describe(made.periods[0].start)}: {early:,}")
    if after := made.rows_after:
        say(f"  rows after the last period, {made.describe(made.periods[-1].end)}: {after:,}")
    waiting = [each for each in made.periods if not each.settled]
    if not settled:
        say("Nothing was asked: no period has closed.")
    if waiting:
        lateness = made.declaration.lateness
        when = made.describe(waiting[0].end + lateness)
        say(f"  period {waiting[0].number + 1} closes at {when}")
    release = made.release
    if release is None:
        return
    declared = made.declaration
    most = pair_in_words(
        made.spent, declared.delta, pure=made.spent if not declared.delta else float("inf")
    )
    say(f"  all releases together: {stated(release.guarantee)}")
    say(f"  most that was drawn about one {'person' if declared.person else 'row'}: {most}")
    if any(each.stage == "lost" for each in made.periods):
        explain("The release does not know of periods that were left out; the last line does.")
