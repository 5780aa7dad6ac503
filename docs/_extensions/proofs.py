"""The directive ``proofs``: what modules say of their mathematics, from their docstrings."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any, ClassVar

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


class Proofs(SphinxDirective):
    """Lay out the docstrings of the modules that are named, one line each, as sections."""

    has_content: ClassVar[bool] = True

    def run(self) -> list[nodes.Node]:
        """Return a section for each module."""
        made: list[nodes.Node] = []
        for name in filter(None, map(str.strip, self.content)):
            module = import_module(name)
            self.env.note_dependency(inspect.getfile(module))
            # Bars stand for absolute values, and not for substitutions.
            said = (inspect.getdoc(module) or "").replace("|", r"\|")
            title, _, rest = said.partition("\n")
            text = f"{title.rstrip('.')}\n{'=' * len(title)}\n\nIn ``{name}``.\n{rest}"
            made += self.parse_text_to_nodes(text, allow_section_headings=True)
        return made


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("proofs", Proofs)
    return {"parallel_read_safe": True}
