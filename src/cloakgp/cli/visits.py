"""`cloakgp refine` and `cloakgp extend`: later visits, which touch private outputs and spend."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cloakgp.cli import options
from cloakgp.cli.console import explain, fails_plainly, say, warn
from cloakgp.cli.counting import RESERVED_BYTES, Counting
from cloakgp.cli.signature import takes_groups
from cloakgp.orders import texts
from cloakgp.orders.options import INFERENCE_ROWS, check_missing_output, format_of_table
from cloakgp.utils.files import reserve_file
from cloakgp.utils.names import DEFAULT_GAP, NoiseChoice

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cloakgp.data import FileRows
    from cloakgp.data.raw import RawRows
    from cloakgp.fitting.visits import Settings
    from cloakgp.orders.progress import Reporter
    from cloakgp.release import Release
    from cloakgp.utils.arrays import Array


Table = Annotated[Path, typer.Argument(help="Table of people, with the private column.")]
Epsilon = Annotated[float, typer.Option(help="Budget of this visit, on top of earlier spending.")]
Delta = Annotated[float, typer.Option(help="δ of this visit.")]
To = Annotated[Path, typer.Option("--to", "-o", help="Release to write.")]
Queries = Annotated[Path | None, typer.Option(help="Table of inputs to predict at from now on.")]
NoiseName = Annotated[str, typer.Option(help="gaussian, laplace or auto, as for release.")]
Band = Annotated[
    float,
    typer.Option(
        help="Half-width of the bands to which values are clipped, in predicted sds around the "
        "prediction; 0 clips to the bounds alone."
    ),
]
Person = Annotated[
    str, typer.Option(help="Public column with the id of each row's person, as for release.")
]
ByRows = Annotated[
    bool,
    typer.Option(
        "--by-rows",
        help="With extend: protect each new row on its own, though the release protects persons.",
    ),
]
MissingOutput = Annotated[
    str, typer.Option(help="Meaning of an empty private cell, as for release.")
]


def visit_command(
    name: str, words: str, *, ask: Callable[[Release, VisitOptions, Reporter], Release]
) -> Callable[..., None]:
    """Return the command of a later visit.

    Parameters
    ----------
    name, words : str
        Its name and its help.
    ask : callable
        Asks, given what a release knows, and returns one that knows both.
    """

    def visit(
        *,
        release_file: options.ReleaseFile,
        table: Table,
        epsilon: Epsilon,
        to: To,
        delta: Delta = 0.0,
        queries: Queries = None,
        noise: NoiseName = "auto",
        band: Band = 1.0,
        person: Person = "",
        by_rows: ByRows = False,
        missing_output: MissingOutput = "refuse",
        sql: options.Sql = "",
        counting: Counting,
        overwrite: options.Overwrite = False,
    ) -> None:
        planned = VisitOptions(
            table=table,
            epsilon=epsilon,
            delta=delta,
            noise=texts.noise_choice(noise, option="--noise"),
            band=band,
            person=person,
            by_rows=by_rows,
            missing_output=missing_output,
            query=sql,
            queries=queries,
        )
        _pay(release_file, planned, counting, to=to, overwrite=overwrite, ask=ask)

    visit.__name__, visit.__qualname__, visit.__doc__ = name, name, words
    return fails_plainly(takes_groups(visit))


@dataclass(frozen=True)
class VisitOptions:
    """A later visit.

    Attributes
    ----------
    table : Path
    epsilon, delta : float
        On top of earlier spending.
    noise : {"auto", "gaussian", "laplace"}
    band : float
        0 for none.
    person, missing_output, query : str
        As for `cloakgp release`.
    by_rows : bool
        Whether new rows are protected one by one, whomever the release protects.
    queries : Path or None
    """

    table: Path
    epsilon: float
    delta: float
    noise: NoiseChoice
    band: float
    person: str
    by_rows: bool
    missing_output: str
    query: str
    queries: Path | None


def _pay(
    release_file: Path,
    visit: VisitOptions,
    counting: Counting,
    *,
    to: Path,
    overwrite: bool,
    ask: Callable[[Release, VisitOptions, Reporter], Release],
) -> None:
    """Ask, count and write."""
    from cloakgp.cli.console import showing_warnings
    from cloakgp.cli.progress import reporting
    from cloakgp.fitting.refusals import WrongKindError
    from cloakgp.privacy import compose
    from cloakgp.privacy.noise_choice import check_noise
    from cloakgp.report.guarantee import stated

    counting.check()
    check_noise(visit.noise, epsilon=visit.epsilon, delta=visit.delta)
    if not 0 <= visit.band < float("inf"):
        raise ValueError(f"--band must be 0 or a number of sds, got {visit.band}")
    read = [release_file, *([visit.queries] if visit.queries else [])]
    with reserve_file(to, overwrite=overwrite, inputs=read, size=RESERVED_BYTES) as target:
        known = options.open_release(release_file)
        if visit.missing_output == "drop":
            warn(f"rows without {known.output_name} are left out: which these are becomes public")

        def make() -> Release:
            with reporting("opening the table", gap=DEFAULT_GAP) as reporter, showing_warnings():
                try:
                    return counting.origin.kept_in(ask(known, visit, reporter))
                except WrongKindError as error:
                    raise ValueError(str(error)) from None

        with counting.telling(delta=visit.delta) as progress:
            made = counting.publish(make)
            content, progress.made = made.to_bytes(), True
            target.write(content, keep=True)
    say(f"Wrote {to}: predictions of {made.output_name}, from {made.n_rows:,} rows.", style="green")
    say(f"  all visits together: {stated(made.guarantee)}")
    spent = compose(*(each.guarantee for each in made.measurements[len(known.measurements) :]))
    explain(
        f"This visit spent {stated(spent)}. Another run spends the same again, unless nobody ever "
        "sees the first file."
    )


def _refine(known: Release, visit: VisitOptions, reporter: Reporter) -> Release:
    import numpy as np

    from cloakgp.fitting.visits import refine as ask_again
    from cloakgp.release import DenseStrategy

    if visit.by_rows:
        raise ValueError("rows that are asked again keep whose they are: leave out --by-rows")
    raw = _raw_rows(known, visit)
    queries, settings = _query_points(known, visit), _settings(visit, reporter)
    strategy = known.measurements[0].strategy
    if not isinstance(strategy, DenseStrategy):
        return ask_again(known, _file_rows(known, visit, raw, reporter), queries, **settings)
    X, private, settings["groups"] = _read(known, visit, raw)
    if not np.array_equal(X, strategy.X):
        raise ValueError(
            f"{visit.table} has other rows than the release was made from, or in another order: "
            "give the same table, or take cloakgp extend for new people"
        )
    return ask_again(known, private, queries, **settings)


def _extend(known: Release, visit: VisitOptions, reporter: Reporter) -> Release:
    from cloakgp.fitting.visits import extend as ask_new
    from cloakgp.fitting.visits import protects_persons
    from cloakgp.release import DenseStrategy

    if protects_persons(known) and not (visit.person or visit.by_rows):
        raise ValueError(
            "the release protects all rows of a person together: name the column that says whose "
            "the new rows are, --person, or say --by-rows to protect each row on its own"
        )
    raw = _raw_rows(known, visit)
    queries, settings = _query_points(known, visit), _settings(visit, reporter)
    if not all(isinstance(each.strategy, DenseStrategy) for each in known.measurements):
        rows = _file_rows(known, visit, raw, reporter)
        return ask_new(known, rows, None, queries, by_rows=visit.by_rows, **settings)
    X, private, settings["groups"] = _read(known, visit, raw)
    return ask_new(known, X, private, queries, by_rows=visit.by_rows, **settings)


def _read(
    known: Release, visit: VisitOptions, raw: RawRows
) -> tuple[Array, NDArray[Any], list[Hashable] | None]:
    """Return the inputs of the kept rows, their private outputs, and their persons."""
    from cloakgp.data.tables import read_people

    people = read_people(
        visit.table,
        raw=raw,
        output=known.output_name,
        groups=visit.person or None,
        table_format=format_of_table(visit.table, visit.query),
    )
    encoded = raw.schema.encode(people.columns)
    groups: list[Hashable] | None = None
    if people.groups is not None:
        groups = [each for each, kept in zip(people.groups, encoded.kept, strict=True) if kept]
    return encoded.X, people.private[encoded.kept], groups


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
                table_format=format_of_table(visit.table, visit.query),
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
        table_format=format_of_table(visit.table, visit.query),
    )
    return rows.report_to(reporter.rows)


def _query_points(known: Release, visit: VisitOptions) -> Array | None:
    if visit.queries is None:
        return None
    from cloakgp.data.tables import read_public
    from cloakgp.release.predictions import complete_points

    return complete_points(known, read_public(visit.queries), name="--queries")


def _settings(visit: VisitOptions, reporter: Reporter) -> Settings:
    return {
        "epsilon": visit.epsilon,
        "delta": visit.delta,
        "noise": visit.noise,
        "band": visit.band or None,
        "progress": reporter.gap,
    }


refine = visit_command(
    "refine",
    """Ask the same rows again where a release is uncertain. Spends anew about these people.

    The table must be that of the release, with its rows in the same order (in any order, if the
    release keeps no rows because they are many). Writes a release that combines both visits.
    """,
    ask=_refine,
)
extend = visit_command(
    "extend",
    """Ask new rows, starting from a release. Spends about the people in the table.

    Writes a release that combines both tables. Its guarantee sums up both visits, as if everyone
    were in both tables; if these are other people, only their own visit counts for each.
    """,
    ask=_extend,
)
