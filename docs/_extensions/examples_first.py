"""Examples at the head of a class's page: right after its first words, before what it takes."""

from __future__ import annotations

from typing import Any

RUBRIC, EXAMPLES = ".. rubric:: ", ".. rubric:: Examples"
# What numpydoc writes before the parameters.
PARAMETERS = ":Parameters:"
# After numpydoc, which writes sections in an order of its own.
LATER = 900


def with_examples_first(lines: list[str]) -> list[str]:
    """Return the lines of a docstring, as numpydoc wrote them, with its examples moved up."""
    if EXAMPLES not in lines or PARAMETERS not in lines:
        return lines
    start = lines.index(EXAMPLES)
    ends = (place for place in range(start + 1, len(lines)) if lines[place].startswith(RUBRIC))
    end = next(ends, len(lines))
    moved, rest = lines[start:end], lines[:start] + lines[end:]
    head = rest.index(PARAMETERS)
    return [*rest[:head], *moved, "", *rest[head:]]


def move(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Move the examples of a class, in place."""
    del app, name, thing, options
    if what == "class":
        lines[:] = with_examples_first(lines)


def setup(app: Any) -> dict[str, bool]:
    """Register it."""
    app.connect("autodoc-process-docstring", move, priority=LATER)
    return {"parallel_read_safe": True}
