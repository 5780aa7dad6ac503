"""`cloakgp show`: a release in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.table import Table

from cloakgp.cli.console import MAX_WIDTH, fails_plainly, plain, stdout
from cloakgp.cli.options import ReleaseFile

if TYPE_CHECKING:
    from cloakgp.report.facts import Section

MAX_LABEL_WIDTH = 20


@fails_plainly
def show(
    release_file: ReleaseFile,
) -> None:
    """Say in words what a release protects, and how well."""
    from cloakgp.release.open import load
    from cloakgp.report.describe import describe

    print_sections(describe(load(release_file)))


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
