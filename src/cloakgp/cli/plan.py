"""`cloakgp schema` and `plan`: what comes before a release, from public columns only."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloakgp.cli import options
from cloakgp.cli.console import explain, fails_plainly, print_sections, say, stdout
from cloakgp.cli.counting import Counting
from cloakgp.cli.fit_options import FitOptions, TableOptions
from cloakgp.orders import texts
from cloakgp.orders.options import INFERENCE_ROWS, SCHEMA_SUFFIX, Order, format_of_table
from cloakgp.utils.files import reserve_file, write_file

if TYPE_CHECKING:
    from cloakgp.fitting.forecast import Forecast
    from cloakgp.fitting.plan import Plan
    from cloakgp.fitting.release_plan import ReleasePlan
    from cloakgp.orders.progress import State


def plan_release(order: Order) -> ReleasePlan:
    """Return an approximate plan of a release; the private column is not read.

    Parameters
    ----------
    order : Order

    Raises
    ------
    ValueError
        For what makes no sense.
    """
    [found] = _plans(order, epsilons=(), approximate=True)
    return found


def _plans(
    order: Order, *, epsilons: Sequence[float] | None, approximate: bool | None
) -> Iterator[ReleasePlan]:
    """Yield better and better plans, with a moving line while one is made."""
    from cloakgp.cli.progress import reporting
    from cloakgp.orders import estimators
    from cloakgp.orders.progress import Reporter

    shown: list[Callable[[State], None]] = []
    plans = estimators.plan_releases(
        order,
        epsilons=epsilons,
        reporter=Reporter(show=lambda state: shown[-1](state)),
        approximate=approximate,
    )
    first_step = "looking at the public columns"
    while True:
        with reporting(first_step) as reporter:
            shown.append(reporter.show)
            found = next(plans, None)
        if found is None:
            return
        yield found
        first_step = "forecasting what predictions will be worth"


def print_plan(found: Plan, *, output: str, only: Sequence[str] = ()) -> None:
    """Write a plan to the terminal, without its table over ε.

    Parameters
    ----------
    found : Plan
    output : str
        Name of the private column.
    only : sequence of str
        Labels of the facts to write; by default all.
    """
    _print_facts(found.facts(), title=f"Plan of {found.subject} of {output}", only=only)


def _print_facts(facts: Sequence[tuple[str, str]], *, title: str, only: Sequence[str]) -> None:
    from cloakgp.report.facts import Fact, Section

    chosen = [Fact(*told) for told in facts if not only or told[0] in only]
    print_sections([Section(title, tuple(chosen))])


def _show(plans: Iterator[ReleasePlan], *, output: str) -> ReleasePlan:
    """Write better and better plans, each time what is new, and return the last."""
    from cloakgp.fitting.release_plan import REFINED

    found = next(plans)
    print_plan(found, output=output)
    told, written = found, 0
    for found in plans:
        if told.forecast is not found.forecast:
            new = [fact for fact in found.facts() if fact not in told.facts()]
            _print_facts(new, title="In full", only=REFINED)
            told = found
        # Others come in order; the budget itself is known before them.
        others = [each.epsilon for each in found.forecasts if each.epsilon != found.epsilon]
        ready = [each for each in found.forecasts if others and each.epsilon <= others[-1]]
        written = _print_lines(found, ready, written=written)
    if written:
        written = _print_lines(found, found.forecasts, written=written)
        say("")
    return found


def _print_lines(found: ReleasePlan, ready: Sequence[Forecast], *, written: int) -> int:
    """Write further lines of the table over ε, and before the first its heads."""
    from cloakgp.fitting.release_plan import BUDGETS

    widths = [max(len(head), 5) for head in BUDGETS]

    def write(cells: Sequence[str], style: str) -> None:
        padded = (cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
        say(f"  {'  '.join(padded)}", style=style)

    if ready and not written:
        say("Over budgets", style="bold cyan")
        write(BUDGETS, "underline")
    for each in ready[written:]:
        write(found.budget(each), "bold" if each.epsilon == found.epsilon else "")
    return max(written, len(ready))


@fails_plainly
@options.takes_groups
def plan(
    table: TableOptions,
    epsilon: Annotated[
        list[float],
        typer.Option(
            help="Privacy budget; 1 is usual. Repeat the option to compare budgets; by default the "
            "plan shows a few around it."
        ),
    ],
    fit: FitOptions,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Only the approximate figures that come at once."),
    ] = False,
    picture: Annotated[
        Path | None,
        typer.Option(help="Draw the expected error over the inputs: .png, .pdf or .svg."),
    ] = None,
    vary: Annotated[str, typer.Option(help="With --picture: one input to draw over, or two.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    json_schema: options.JsonSchema = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a picture that exists.")
    ] = False,
) -> None:
    """Describe a release before it is made: error, protection and cost. Spends nothing.

    Takes the options of `cloakgp release`. Only public columns are read (with --missing-output
    drop, which private cells are empty, too): expected error, what becomes public, how much noise
    protects whom, and what it takes, over several budgets.
    Approximate errors come at once, and those of the full plan as they are ready.
    """
    del json_schema
    order = fit.order(table, epsilon=epsilon[0])
    if vary and picture is None:
        raise ValueError("--vary goes with --picture")
    with Counting().telling():
        plans = _plans(order, epsilons=epsilon[1:] or None, approximate=_wanted(quick, as_json))
        if as_json:
            *_, found = plans
        else:
            found = _show(plans, output=table.output)
    if as_json:
        stdout.print(json.dumps(found.to_dict(), indent=2), soft_wrap=True, markup=False)
    else:
        read = (
            "Of the private column was read which cells are empty"
            if table.missing_output == "drop"
            else "Nothing of the private column was read"
        )
        say(f"{read}, and nothing spent.", style="green")
    if picture is not None:
        _draw(found, picture, vary=vary, output=table.output, overwrite=overwrite)
        if not as_json:
            say(f"Drew {picture}.", style="green")


def _wanted(quick: bool, as_json: bool) -> bool | None:
    """Return whether plans are wanted that are approximate; both kinds where it is None."""
    return True if quick else False if as_json else None


def _draw(found: ReleasePlan, path: Path, *, vary: str, output: str, overwrite: bool) -> None:
    from cloakgp.orders.texts import names
    from cloakgp.plots.figures import figure_bytes, picture_suffix
    from cloakgp.plots.plans import PlanDisplay

    suffix = picture_suffix(path)
    with reserve_file(path, overwrite=overwrite, inputs=[]) as target:
        display = PlanDisplay.of(found, vary=names(vary) if vary else (), output=output)
        target.write(figure_bytes(display.draw(), suffix=suffix))


@fails_plainly
def schema(
    table: Annotated[Path, typer.Argument(help="Table of people.")],
    output: Annotated[
        str,
        typer.Option(
            help="The private column, or several with commas: the command reads none of them."
        ),
    ] = "",
    inputs: Annotated[
        str, typer.Option(help="Public columns, with commas; by default all but the private ones.")
    ] = "",
    to: Annotated[
        Path | None,
        typer.Option("--to", "-o", help="File to write; by default people.schema.json."),
    ] = None,
    sql: options.Sql = "",
    overwrite: options.Overwrite = False,
) -> None:
    """Write a first schema: the kinds of a table's public columns, in a file to check and edit.

    Kinds are number, category, ordered category, date, boolean, place and identifier (never used).
    The file is a Table Schema of Frictionless Data, as JSON.
    """
    if not output and not inputs:
        raise ValueError("name the private column, which is not looked at: --output height")
    from cloakgp.columns import infer_schema, schema_to_text
    from cloakgp.columns.remarks import remarks_on
    from cloakgp.data.formats import format_of
    from cloakgp.data.schema import check_header, table_suffix
    from cloakgp.data.tables import column_names_of, read_public

    target = to or table.with_name(table.name[: -len(table_suffix(table))] + SCHEMA_SUFFIX)
    private = texts.names(output) if output else []
    table_format = format_of_table(table, sql)
    if inputs:
        names = texts.names(inputs)
    else:
        present = column_names_of(table, table_format=table_format)
        check_header(table, present, names=private, certain=format_of(table).certain_names)
        names = [name for name in present if name and name not in private]
    if set(names) & set(private):
        raise ValueError("a column is an input, or private")
    public = read_public(table, names=names, most=INFERENCE_ROWS, table_format=table_format)
    made = infer_schema(public, names)
    write_file(target, schema_to_text(made).encode(), overwrite=overwrite)
    remarks = remarks_on(made, public)
    for column in made.columns:
        gaps = "" if column.missing == "refuse" else f"; missing: {column.missing}"
        say(f"  {column.name}: {column.describe()}{gaps}")
        for remark in remarks.get(column.name, ()):
            say(f"    {remark}", style="yellow")
    say(f"Wrote {target}.", style="green")
    explain("Check it, and correct any mistake: `cloakgp release` will use it.")
