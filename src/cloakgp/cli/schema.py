"""`cloakgp schema`: a first schema of a table's public columns, to be edited."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cloakgp.cli import options
from cloakgp.cli.console import explain, fails_plainly, say
from cloakgp.orders import texts
from cloakgp.orders.options import INFERENCE_ROWS, SCHEMA_SUFFIX
from cloakgp.utils.files import write_file


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
    overwrite: options.Overwrite = False,
) -> None:
    """Write a first schema: the kinds of a table's public columns, in a file to check and edit.

    Kinds are number, category, ordered category, date, boolean, place and identifier (never used).
    The file is a Table Schema of Frictionless Data, as JSON.
    """
    if not output and not inputs:
        raise ValueError("name the private column, which is not looked at: --output height")
    from cloakgp.columns import infer_schema, schema_to_text
    from cloakgp.data.schema import table_suffix
    from cloakgp.data.tables import column_names_of, read_public

    target = to or table.with_name(table.name[: -len(table_suffix(table))] + SCHEMA_SUFFIX)
    private = texts.names(output) if output else []
    if inputs:
        names = texts.names(inputs)
    else:
        present = column_names_of(table)
        if missing := [name for name in private if name not in present]:
            raise ValueError(f"{table} has no column {', '.join(missing)}")
        names = [name for name in present if name and name not in private]
    if set(names) & set(private):
        raise ValueError("a column is an input, or private")
    public = read_public(table, names=names, most=INFERENCE_ROWS)
    made = infer_schema(public, names)
    write_file(target, schema_to_text(made).encode(), overwrite=overwrite)
    for column in made.columns:
        gaps = "" if column.missing == "refuse" else f"; missing: {column.missing}"
        say(f"  {column.name}: {column.describe()}{gaps}")
    say(f"Wrote {target}.", style="green")
    explain("Check it, and correct any mistake: `cloakgp release` will use it.")
