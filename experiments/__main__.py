"""Command line: ``python -m experiments list``, and what to compute."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer
from joblib import parallel_config
from rich.console import Console

from cloakgp import PrivacyParameterWarning
from experiments.datasets import DatasetUnavailableError
from experiments.framework import (
    OutputDir,
    all_experiments,
    command_of,
    console,
    table_titled,
)
from experiments.pages import StaleFigureError, check_pages
from experiments.paper import typeset
from experiments.unmarked import check_marks

app = typer.Typer(
    help="The papers' tables and figures, computed again. Tables are looked for in the folder that "
    "the environment variable CLOAKGP_DATA names, and downloaded without it.",
    no_args_is_help=True,
)
for name, kind in all_experiments().items():
    app.command(name)(command_of(kind))


@app.callback()
def set_jobs(
    context: typer.Context,
    jobs: Annotated[
        int, typer.Option(help="Folds, draws or candidates at a time; -1: one a processor.")
    ] = 1,
) -> None:
    """Compute the papers' tables and figures again."""
    context.with_resource(parallel_config(n_jobs=jobs))


@app.command("list")
def list_experiments() -> None:
    """Print every experiment with what it computes."""
    table = table_titled("Experiments", "name", "what")
    for name, kind in all_experiments().items():
        table.add_row(name, kind.title())
    console.print(table)


@app.command("pages")
def write_pages() -> None:
    """Write the kept tables of all pages anew; name figures that differ, or have no source."""
    check_pages(write=True)
    check_marks()


@app.command("paper")
def typeset_paper(output_dir: OutputDir = Path("output")) -> None:
    """Typeset the paper, with the figures of kept results."""
    console.print(f"wrote {typeset(output_dir)}")


def main() -> None:
    """Run, and say in one line where a missing table can be had."""
    # The papers' budgets are what they are.
    warnings.simplefilter("ignore", PrivacyParameterWarning)
    try:
        app()
    except (DatasetUnavailableError, StaleFigureError) as error:
        Console(stderr=True).print(str(error), style="red", markup=False)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
