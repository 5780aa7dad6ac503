"""`cloakgp refine` and `extend`: later visits, which spend. `combine`: several visits in one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cloakgp.cli import options
from cloakgp.cli.console import explain, fails_plainly, say, warn
from cloakgp.cli.counting import Counting
from cloakgp.orders import texts
from cloakgp.orders.options import INFERENCE_ROWS, check_missing_output, format_of_table
from cloakgp.orders.origin import with_left_out
from cloakgp.utils.files import reserve_file
from cloakgp.utils.names import DEFAULT_GAP, NoiseChoice

SAME: dict[str, bool | None] = {"auto": None, "same": True, "other": False}

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cloakgp.data import FileRows
    from cloakgp.data.formats import TableFormat
    from cloakgp.data.raw import RawRows
    from cloakgp.fitting.visits import Settings
    from cloakgp.orders.progress import Reporter
    from cloakgp.privacy.cohorts import People
    from cloakgp.release import MultiOutputRelease, Release
    from cloakgp.utils.arrays import Array


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
        float,
        typer.Option(
            help="To how many predicted sds on either side of what is predicted values are "
            "clipped; 0 clips to the bounds alone."
        ),
    ] = 1.0
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
    missing_output: Annotated[
        str, typer.Option(help="Meaning of an empty private cell, as for release.")
    ] = "refuse"
    sql: options.Sql = ""

    @property
    def table_format(self) -> TableFormat | None:
        """The format of the table, where its name is not all."""
        return format_of_table(self.table, self.sql)


@fails_plainly
@options.takes_groups
def refine(
    *,
    release_file: options.ReleaseFile,
    visit: VisitOptions,
    to: options.To,
    counting: Counting,
    overwrite: options.Overwrite = False,
) -> None:
    """Ask the same rows again where a release is uncertain. Spends anew about these people.

    The table must be that of the release, with its rows in the same order (in any order, if the
    release keeps no rows because they are many). Writes a release that combines both visits.
    """
    _pay(release_file, visit, counting, to=to, overwrite=overwrite, ask=_refine)


@fails_plainly
@options.takes_groups
def extend(
    *,
    release_file: options.ReleaseFile,
    visit: VisitOptions,
    to: options.To,
    counting: Counting,
    overwrite: options.Overwrite = False,
) -> None:
    """Ask new rows, starting from a release. Spends about the people in the table.

    Writes a release that combines both tables. Its guarantee sums up both visits, as if everyone
    were in both tables; if these are other people, say --people disjoint: then only their own visit
    counts for each.
    """
    _pay(release_file, visit, counting, to=to, overwrite=overwrite, ask=_extend)


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
    to: Path,
    overwrite: bool,
    ask: Callable[[Release, VisitOptions, NoiseChoice, Reporter], Release],
) -> None:
    """Ask, count and write."""
    from cloakgp.cli.console import showing_warnings
    from cloakgp.cli.progress import reporting
    from cloakgp.fitting.refusals import WrongKindError
    from cloakgp.privacy import compose
    from cloakgp.privacy.noise_choice import check_noise, unused_delta
    from cloakgp.report.guarantee import stated

    noise = texts.noise_choice(visit.noise, option="--noise")
    check_noise(noise, epsilon=visit.epsilon, delta=visit.delta)
    if not 0 <= visit.band < float("inf"):
        raise ValueError(f"--band must be 0 or a number of sds, got {visit.band}")
    known = options.open_release(release_file)
    if visit.missing_output == "drop":
        warn(f"rows without {known.output_name} are left out: which these are becomes public")

    def make() -> Release:
        with reporting("opening the table", gap=DEFAULT_GAP) as reporter, showing_warnings():
            try:
                return counting.origin.kept_in(ask(known, visit, noise, reporter))
            except WrongKindError as error:
                raise ValueError(str(error)) from None

    made = counting.write(
        make,
        to,
        read=[release_file, *([visit.queries] if visit.queries else [])],
        overwrite=overwrite,
        delta=visit.delta,
    )
    say(f"Wrote {to}: predictions of {made.output_name}, from {made.n_rows:,} rows.", style="green")
    say(f"  all visits together: {stated(made.guarantee)}")
    spent = compose(*(each.guarantee for each in made.measurements[len(known.measurements) :]))
    unused = unused_delta(spent, allowed=visit.delta, noise=noise)
    explain(
        f"This visit spent {stated(spent)}. {unused}{' ' * bool(unused)}Another run spends the "
        "same again, unless nobody ever sees the first file."
    )


def _refine(known: Release, visit: VisitOptions, noise: NoiseChoice, reporter: Reporter) -> Release:
    import numpy as np

    from cloakgp.fitting.visits import refine as ask_again
    from cloakgp.release import DenseStrategy

    if visit.by_rows:
        raise ValueError("rows that are asked again keep whose they are: leave out --by-rows")
    if visit.people != "overlapping" or visit.id_column or visit.earlier:
        raise ValueError("--people, --id and --earlier are about new rows: take cloakgp extend")
    raw = _raw_rows(known, visit)
    queries, settings = _query_points(known, visit), _settings(visit, noise, reporter)
    strategy = known.measurements[0].strategy
    if not isinstance(strategy, DenseStrategy):
        return ask_again(known, _file_rows(known, visit, raw, reporter), queries, **settings)
    X, private, settings["groups"], _ = _read(known, visit, raw)
    if not np.array_equal(X, strategy.X):
        raise ValueError(
            f"{visit.table} has other rows than the release was made from, or in another order: "
            "give the same table, or take cloakgp extend for new people"
        )
    return ask_again(known, private, queries, **settings)


def _extend(known: Release, visit: VisitOptions, noise: NoiseChoice, reporter: Reporter) -> Release:
    from cloakgp.fitting.visits import extend as ask_new
    from cloakgp.fitting.visits import protects_persons
    from cloakgp.release import DenseStrategy

    if protects_persons(known) and not (visit.person or visit.by_rows):
        raise ValueError(
            "the release protects all rows of a person together: name the column that says whose "
            "the new rows are, --person, or say --by-rows to protect each row on its own"
        )
    raw, about = _raw_rows(known, visit), _whose(visit)
    queries, settings = _query_points(known, visit), _settings(visit, noise, reporter)
    if not all(isinstance(each.strategy, DenseStrategy) for each in known.measurements):
        rows = _file_rows(known, visit, raw, reporter)
        made = ask_new(known, rows, None, queries, **about, **settings)
        return with_left_out(
            made, without_output=rows.without_output, without_inputs=rows.without_inputs
        )
    X, private, settings["groups"], gone = _read(known, visit, raw)
    return with_left_out(ask_new(known, X, private, queries, **about, **settings), **gone)


def _people(text: str) -> People:
    """Return whether people of a table may be in others."""
    from cloakgp.privacy.cohorts import DISJOINT, OVERLAPPING

    return texts.one_of((OVERLAPPING, DISJOINT), text, option="--people")


def _whose(visit: VisitOptions) -> dict[str, Any]:
    """Return whose the new rows are, beside those of the tables before."""
    from cloakgp.data.tables import read_person_ids

    people = _people(visit.people)
    if bool(visit.id_column) != bool(visit.earlier):
        raise ValueError("--id and --earlier go together: the column, and each table before")
    ids = None
    if visit.id_column:
        ids = [read_person_ids(path, name=visit.id_column) for path in visit.earlier or ()]
        ids.append(
            read_person_ids(visit.table, name=visit.id_column, table_format=visit.table_format)
        )
    return {"by_rows": visit.by_rows, "people": people, "ids": ids}


def _read(
    known: Release, visit: VisitOptions, raw: RawRows
) -> tuple[Array, NDArray[Any], list[Hashable] | None, dict[str, int]]:
    """Return the inputs of the kept rows, their outputs and persons, and how many are left out."""
    from cloakgp.data.tables import read_people

    people = read_people(
        visit.table,
        raw=raw,
        output=known.output_name,
        groups=visit.person or None,
        table_format=visit.table_format,
    )
    encoded = raw.schema.encode(people.columns)
    groups: list[Hashable] | None = None
    if people.groups is not None:
        groups = [each for each, kept in zip(people.groups, encoded.kept, strict=True) if kept]
    gone = {
        "without_output": people.without_output,
        "without_inputs": len(encoded.kept) - len(encoded.X),
    }
    return encoded.X, people.private[encoded.kept], groups, gone


def _raw_rows(known: Release, visit: VisitOptions) -> RawRows:
    """Return the reading of the table by the release's schema."""
    from cloakgp.columns import infer_schema
    from cloakgp.data.raw import RawRows
    from cloakgp.data.tables import read_public
    from cloakgp.report.columns import input_names

    schema = known.schema
    if schema is None:
        names = input_names(known)
        schema = infer_schema(
            read_public(
                visit.table,
                names=names,
                most=INFERENCE_ROWS,
                table_format=visit.table_format,
            ),
            names,
        )
        if not schema.plain:
            raise ValueError("the release was made of numbers alone, and the table holds others")
    decimal, thousands = schema.decimal
    classes = _class_names(known)
    check_missing_output(visit.missing_output, classes=classes)
    return RawRows(
        schema=schema,
        missing_output=visit.missing_output,
        classes=classes,
        decimal=decimal,
        thousands=thousands,
    )


def _class_names(known: Release) -> tuple[str, ...]:
    """Return the declared classes, as a table writes them; none of a release of numbers."""
    labels = known.measurements[0].question.labels or ()
    names = tuple(label for label in labels if isinstance(label, str))
    if len(names) != len(labels):
        raise ValueError(
            "the classes of the release are not texts, as those of a table are: ask it again in "
            "Python, with cloakgp.refine or cloakgp.extend"
        )
    return names


def _file_rows(known: Release, visit: VisitOptions, raw: RawRows, reporter: Reporter) -> FileRows:
    from cloakgp.data import FileRows

    rows = FileRows(
        visit.table,
        output=known.output_name,
        groups=visit.person or None,
        raw=raw,
        table_format=visit.table_format,
    )
    return rows.report_to(reporter.rows)


def _query_points(known: Release, visit: VisitOptions) -> Array | None:
    if visit.queries is None:
        return None
    from cloakgp.data.tables import read_public
    from cloakgp.release.points import complete_points

    return complete_points(known, read_public(visit.queries), name="--queries")


def _settings(visit: VisitOptions, noise: NoiseChoice, reporter: Reporter) -> Settings:
    return {
        "epsilon": visit.epsilon,
        "delta": visit.delta,
        "noise": noise,
        "band": visit.band or None,
        "progress": reporter.gap,
    }
