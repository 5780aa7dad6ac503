"""Facts in sections: what is said, before anybody decides how it looks."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

# Control codes, invisible and directional characters, halves of characters, ends of lines.
UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


@dataclass(frozen=True)
class Fact:
    """One thing to know, and what it is called."""

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


def printable(text: str) -> str:
    r"""Return text with escapes for whatever a terminal would not show but obey.

    Names in a release come from whoever made the file: they could move the cursor, and write over
    what was said before.

    Examples
    --------
    >>> printable("age\x1b[2J")
    'age\\x1b[2J'
    """
    return "".join(
        character.encode("unicode_escape").decode("ascii")
        if unicodedata.category(character) in UNPRINTABLE
        else character
        for character in text
    )


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
