"""The directive ``reproduction``: the report on the papers, from its kept results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from experiments.reproduction import page
from experiments.reproduction.results import Results


def address(path: Path) -> str:
    """Return where the site has a picture: conf.py has their folder copied there."""
    return f"_static/{path.name}"


class Reproduction(SphinxDirective):
    """Lay the report out, a section for each paper and each item; nothing is computed."""

    def run(self) -> list[nodes.Node]:
        """Return an introduction, and the sections."""
        results = Results()
        self.env.note_dependency(str(results.folder / "results.json"))
        parts: Any = page.pieces(results, source_of=address)
        made: list[nodes.Node] = [_raw(f"<style>{page.css()}</style>")]
        made += [nodes.paragraph(text=words) for words in page.introduction(results)]
        made.append(_raw(parts["counted"]))
        made.append(self._section("What does not hold", _raw(parts["unsound"])))
        for source, items in parts["sources"]:
            section = self._section(source.name, nodes.paragraph(text=f"{source.reference}."))
            section += [self._section(title, _raw(text)) for title, text in items]
            made.append(section)
        return made

    def _section(self, title: str, *inside: nodes.Node) -> nodes.section:
        section = nodes.section(names=[nodes.fully_normalize_name(title)])
        section += nodes.title(text=title)
        section += list(inside)
        self.state.document.note_implicit_target(section, section)
        return section


def _raw(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("reproduction", Reproduction)
    return {"parallel_read_safe": True}
