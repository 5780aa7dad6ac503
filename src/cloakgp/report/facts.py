"""Facts in sections: content without layout."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from cloakgp.utils.formatting import printable


@dataclass(frozen=True)
class Fact:
    """One fact, and its label."""

    label: str
    text: str


@dataclass(frozen=True)
class Section:
    """Facts under one heading.

    Attributes
    ----------
    title : str
    facts : tuple of Fact
    technical : bool
        Whether only those need them who know the methods.
    """

    title: str
    facts: tuple[Fact, ...]
    technical: bool = False


def as_text(sections: Sequence[Section], *, width: int = 88) -> str:
    """Return sections as plain text.

    Parameters
    ----------
    sections : sequence of Section
    width : int
        Characters in a line.

    Examples
    --------
    >>> print(as_text([Section("Noise", (Fact("answers", "3"),))]))
    NOISE
      answers: 3
    """
    blocks = []
    for section in sections:
        lines = [printable(section.title.upper())]
        for fact in section.facts:
            lines += textwrap.wrap(
                printable(f"{fact.label}: {fact.text}"),
                width=width,
                initial_indent="  ",
                subsequent_indent="      ",
            )
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)
