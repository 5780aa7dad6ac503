"""Formulas as MathML, which browsers typeset: no script, and nothing from elsewhere.

By docutils' own translation of LaTeX; a command that it does not know fails the build. The font is
STIX Two Math (SIL Open Font License), which ziamath ships: not every system has one for formulas.
"""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from fontTools.ttLib import TTFont
from sphinx.errors import ExtensionError

FONT, KEPT = "STIXTwoMath-Regular.ttf", "formulas.woff"


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


def write_font(app: Any, exception: Exception | None) -> None:
    """Put the font beside the style sheet that names it."""
    if exception is not None or app.builder.format != "html":
        return
    with as_file(files("ziamath") / "fonts" / FONT) as path:
        font = TTFont(path)
        font.flavor = "woff"
        font.save(Path(app.outdir) / "_static" / KEPT)


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(visit_inline, None),
        block_renderers=(visit_block, None),
    )
    app.connect("build-finished", write_font)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
