"""`cloakgp refine` and `extend`: later visits, which spend. `combine`: several visits in one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloakgp.cli import options
from cloakgp.cli.console import explain, fails_plainly, notice, say, warn
from cloakgp.cli.counting import Counting
from cloakgp.orders import texts
from cloakgp.orders.options import SourceTable
from cloakgp.utils.files import reserve_file
from cloakgp.utils.names import AUTO, DEFAULT_GAP

ToUnlessPlanned = Annotated[
    Path | None, typer.Option("--to", "-o", help="Release to write; of no use with --plan.")
]
SAME: dict[str, bool | None] = {"auto": None, "same": True, "other": False}

if TYPE_CHECKING:
    from cloakgp.privacy.cohorts import People
    from cloakgp.release import MultiOutputRelease, Release


@dataclass(frozen=True, kw_only=True)
class VisitOptions:
    """Options of a later visit, on top of what was spent."""

    table: Annotated[Path, typer.Argument(help="Table of people, with the private column.")]
    epsilon: Annotated[float, typer.Option(help="Of this visit, on top of what was spent.")]
    delta: Annotated[float, typer.Option(help="Of this visit.")] = 0.0
    queries: Annotated[
        Path | None, typer.Option(help="Table of inputs at which predictions are to be good now.")
    ] = None
    noise: options.Noise = "auto"
    band: Annotated[
        str,
        typer.Option(
            help="To how many predicted sds on either side of what is predicted values are "
            "clipped; 0 clips to the bounds alone. auto (the default) is 1, and 0 where by "
            "counts most values may be the same."
        ),
    ] = AUTO
    person: options.Person = ""
    by_rows: Annotated[
        bool,
        typer.Option(
            "--by-rows",
            help="With extend: protect each new row on its own, though the release protects "
            "persons.",
        ),
    ] = False
    people: Annotated[
        str,
        typer.Option(
            help="With extend: overlapping, if anybody in the tables so far may be in the new one, "
            "or disjoint, if nobody is: then each person pays for their own table alone. That is "
            "your word, and a ledger notes it."
        ),
    ] = "overlapping"
    id_column: Annotated[
        str,
        typer.Option(
            "--id",
            help="With extend: column of ids of people, in the table and in all of --earlier. Ids "
            "are compared and not kept; visits add up by person.",
        ),
    ] = ""
    earlier: Annotated[
        list[Path] | None,
        typer.Option(
            help="With --id: a table that was asked before. Once for each, in their order."
        ),
    ] = None
    exposure: Annotated[
        str,
        typer.Option(help="With extend, of counts: public column with the exposure of each count."),
    ] = ""
    missing_output: Annotated[
        str, typer.Option(help="Meaning of an empty private cell, as for release.")
    ] = "refuse"
    sql: options.Sql = ""
    plan: Annotated[
        bool,
        typer.Option(
            "--plan",
            help="Say what it would spend, and what it is expected to be worth; ask nothing.",
        ),
    ] = False

    def source_of(self, known: Release) -> SourceTable:
        """Return the table, with the private column of a release."""
        return SourceTable(
            path=self.table,
            output=known.output_name,
            person=self.person,
            exposure=self.exposure,
            missing_output=self.missing_output,
            query=self.sql,
        )


@fails_plainly
@options.takes_groups
def refine(
    *,
    release_file: options.ReleaseFile,
    visit: VisitOptions,
    counting: Counting,
    to: ToUnlessPlanned = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Ask the same rows again where a release is uncertain. Spends anew about these people.

    The table must be that of the release, with its rows in the same order (in any order, if the
    release keeps no rows because they are many). Writes a release that combines both visits.
    """
    _pay(release_file, visit, counting, to=to, overwrite=overwrite, new_rows=False)


@fails_plainly
@options.takes_groups
def extend(
    *,
    release_file: options.ReleaseFile,
    visit: VisitOptions,
    counting: Counting,
    to: ToUnlessPlanned = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Ask new rows, starting from a release. Spends about the people in the table.

    Writes a release that combines both tables. Its guarantee sums up both visits, as if everyone
    were in both tables; if these are other people, say --people disjoint: then only their own visit
    counts for each.
    """
    _pay(release_file, visit, counting, to=to, overwrite=overwrite, new_rows=True)


@fails_plainly
def combine(
    releases: Annotated[
        list[Path], typer.Argument(help="Two releases or more.", metavar="RELEASE...")
    ],
    to: options.To,
    rows: Annotated[
        str,
        typer.Option(
            help="Whether tables with equal inputs hold the same people (same) or others at the "
            "same places (other); auto compares inputs."
        ),
    ] = "auto",
    people: Annotated[
        str,
        typer.Option(
            help="overlapping, if anybody may be in the tables of several, or disjoint, if nobody "
            "is. That is your word: the file cannot show it."
        ),
    ] = "overlapping",
    overwrite: options.Overwrite = False,
) -> None:
    """Combine releases with the same prior and columns into one. Costs no privacy.

    Its guarantee covers all of them together, for a person who is in every one; with --people
    disjoint, for a person who is in one.
    """
    if len(releases) < 2:
        raise ValueError("name two releases at least")
    said = texts.one_of(tuple(SAME), rows, option="--rows")
    with reserve_file(to, overwrite=overwrite, inputs=releases) as target:
        made = _together(
            [options.open_combinable(path) for path in releases],
            same_rows=SAME[said],
            people=_people(people),
        )
        target.write(made.to_bytes())
    say(f"Wrote {to}, of {len(releases)} releases.", style="green")
    say(f"  all together: {made.guarantee}")


def _together(
    releases: Sequence[Release | MultiOutputRelease], *, same_rows: bool | None, people: People
) -> Release | MultiOutputRelease:
    """Return one release that combines all."""
    from cloakgp.release import MultiOutputRelease, Release

    single = [each for each in releases if isinstance(each, Release)]
    several = [each for each in releases if isinstance(each, MultiOutputRelease)]
    if single and several:
        raise ValueError("releases of one private column and of several are not combined")
    if single:
        return single[0].combine(*single[1:], same_rows=same_rows, people=people)
    return several[0].combine(*several[1:], same_rows=same_rows, people=people)


def _pay(
    release_file: Path,
    visit: VisitOptions,
    counting: Counting,
    *,
    to: Path | None,
    overwrite: bool,
    new_rows: bool,
) -> None:
    """Ask, count and write."""
    from cloakgp.cli.plan import print_plan
    from cloakgp.cli.progress import reporting
    from cloakgp.orders.choices import digest_file
    from cloakgp.orders.visits import (
        VisitOrder,
        inputs_of_visit,
        make_visit,
        plan_visit,
        remarks_of_visit,
    )
    from cloakgp.privacy import compose
    from cloakgp.privacy.noise_choice import unused_delta
    from cloakgp.report.guarantee import stated

    noise = texts.noise_choice(visit.noise, option="--noise")
    band = texts.band(visit.band, option="--band")
    if band != AUTO:
        # Of one number there are several texts, and a ledger is to know one choice.
        visit = replace(visit, band=str(band or 0.0))
    known = options.open_release(release_file)
    if visit.missing_output == "drop":
        warn(f"rows without {known.output_name} are left out: which these are becomes public")

    order = VisitOrder(
        known=known,
        source=visit.source_of(known),
        epsilon=visit.epsilon,
        delta=visit.delta,
        noise=noise,
        band=band,
        new_rows=new_rows,
        queries=visit.queries,
        by_rows=visit.by_rows,
        people=_people(visit.people),
        person_ids=visit.id_column,
        earlier=visit.earlier or (),
        origin=counting.origin,
    )
    order.validate()
    with suppress(ValueError, OSError):
        # What is wrong with a table is for whoever asks it.
        for remark in remarks_of_visit(order):
            notice(remark)
    if visit.plan:
        with reporting("opening the table") as reporter:
            found = plan_visit(order, reporter=reporter)
        print_plan(found, output=known.output_name)
        explain("Nothing was asked, and nothing is spent.")
        return
    if to is None:
        raise ValueError("name the file of the release, -o, or say --plan")

    def make() -> Release:
        with reporting("opening the table", gap=DEFAULT_GAP) as reporter:
            return make_visit(order, reporter=reporter)

    made = counting.write(
        make,
        to,
        choices={
            "command": "extend" if new_rows else "refine",
            "release": digest_file(release_file),
            "visit": visit,
            "queries": digest_file(visit.queries) if visit.queries else None,
        },
        # Inputs of rows that are asked again are public already.
        inputs=(lambda: inputs_of_visit(order)) if new_rows else None,
        read=[release_file, *([visit.queries] if visit.queries else [])],
        overwrite=overwrite,
        delta=visit.delta,
    )
    if made is None:
        return
    say(f"Wrote {to}: predictions of {made.output_name}, from {made.n_rows:,} rows.", style="green")
    say(f"  all visits together: {stated(made.guarantee)}")
    spent = compose(*(each.guarantee for each in made.measurements[len(known.measurements) :]))
    unused = unused_delta(spent, allowed=visit.delta, noise=noise, later=True)
    explain(f"This visit spent {stated(spent)}. {unused}{' ' * bool(unused)}{counting.another_run}")


def _people(text: str) -> People:
    """Return whether people of a table may be in others."""
    from cloakgp.privacy.cohorts import DISJOINT, OVERLAPPING

    return texts.one_of((OVERLAPPING, DISJOINT), text, option="--people")
