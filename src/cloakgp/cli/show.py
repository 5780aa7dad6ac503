"""`cloakgp show`: a release in words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.padding import Padding
from rich.table import Table

from cloakgp.cli.console import MAX_WIDTH, fails_plainly, plain, say, stdout
from cloakgp.cli.options import Overwrite, ReleaseFile

if TYPE_CHECKING:
    from cloakgp.report.facts import Section

MAX_LABEL_WIDTH = 20


@fails_plainly
def show(
    release_file: ReleaseFile,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Also the noise, the design and the prior, in technical terms."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="All facts, as JSON.")] = False,
    html: Annotated[
        Path | None,
        typer.Option(help="Write all facts, with pictures, as one page to print to this file."),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Describe in words the accuracy and the protection of a release."""
    from cloakgp.release.open import load
    from cloakgp.report.describe import describe

    if html is not None:
        _write_sheet(release_file, html, overwrite=overwrite)
        return
    sections = describe(load(release_file))
    if as_json:
        told = {
            section.title: {fact.label: fact.text for fact in section.facts} for section in sections
        }
        stdout.print(json.dumps(told, indent=2), soft_wrap=True, markup=False)
        return
    print_sections([each for each in sections if everything or not each.technical])
    if not everything and any(each.technical for each in sections):
        say("The noise, the design and the prior: --all. As a page to print: --html FILE.")


def _write_sheet(release_file: Path, html: Path, *, overwrite: bool) -> None:
    from cloakgp.pages.sheet import sheet_html
    from cloakgp.release.open import load
    from cloakgp.utils.files import reserve_file

    with reserve_file(html, overwrite=overwrite, inputs=[release_file]) as target:
        target.write(sheet_html(load(release_file)).encode())
    say(f"Wrote {html}.", style="green")


def print_sections(sections: Sequence[Section]) -> None:
    """Write sections to the terminal, labels beside their texts."""
    width = min(stdout.width, MAX_WIDTH)
    longest = max(len(fact.label) for section in sections for fact in section.facts)
    for section in sections:
        alarming = section.title == "NOT PRIVATE"
        colour = "red" if alarming else "cyan"
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style=colour, width=min(longest, MAX_LABEL_WIDTH))
        grid.add_column(style="bold red" if alarming else "")
        for fact in section.facts:
            grid.add_row(plain(fact.label), plain(fact.text))
        stdout.print(plain(section.title, style=f"bold {colour}"))
        stdout.print(Padding(grid, (0, 0, 1, 2)), width=width)
