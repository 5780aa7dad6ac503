"""The directive ``refusals``: the table of what no fit asks, from `cloakgp.fitting.refusals`."""

from __future__ import annotations

import inspect

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from cloakgp.fitting import refusals


class Refusals(SphinxDirective):
    """Lay out the refusals as a table: what, of which releases or rows, and why."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        self.env.note_dependency(inspect.getfile(refusals))
        rows = [(each.what, each.of, each.why) for each in refusals.REFUSALS.values()]
        return [_table(("refused", "of", "why"), rows)]


def _table(head: tuple[str, ...], rows: list[tuple[str, str, str]]) -> nodes.table:
    group = nodes.tgroup(cols=len(head))
    group += [nodes.colspec(colwidth=width) for width in (20, 25, 55)]
    group += nodes.thead("", _row(head))
    group += nodes.tbody("", *map(_row, rows))
    return nodes.table("", group)


def _row(cells: tuple[str, ...]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph(text=cell)) for cell in cells))


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("refusals", Refusals)
    return {"parallel_read_safe": True}
