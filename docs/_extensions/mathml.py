"""Formulas as MathML, which browsers typeset: no script, no font, nothing from elsewhere.

By docutils' own translation of LaTeX, which fails the build where it knows a command not.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.errors import ExtensionError


def translated(text: str, *, block: bool) -> str:
    """Return a formula as MathML.

    Raises
    ------
    ExtensionError
        If it is no LaTeX that docutils knows.
    """
    try:
        return str(latex2mathml.tex2mathml(text, as_block=block))
    except Exception as error:
        raise ExtensionError(f"the formula {text!r} cannot be typeset: {error}") from error


def visit_inline(translator: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    translator.body.append(translated(node.astext(), block=False))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.math_block) -> None:
    """Write a formula of its own line, which scrolls by itself where a screen is narrow."""
    translator.body.append(translator.starttag(node, "div", CLASS="formula"))
    translator.body.append(translated(node.astext(), block=True))
    translator.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(visit_inline, None),
        block_renderers=(visit_block, None),
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
