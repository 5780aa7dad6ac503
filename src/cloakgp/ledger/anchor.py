"""Anchor of a ledger: the last entry of the chain that this machine saw.

The anchor is a file outside of the database, which an older copy of the database does not reach.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from cloakgp.ledger.errors import DamagedLedgerError

# The constant length of an anchor, so that it is overwritten at once.
ANCHOR_BYTES = 256


@dataclass(frozen=True)
class Anchor:
    """The last entry of the chain that this machine saw.

    Attributes
    ----------
    path : Path
    """

    path: Path

    def read(self) -> tuple[int, str] | None:
        """Return the number and digest of an entry, or None if there is no anchor yet.

        Raises
        ------
        DamagedLedgerError
            If it cannot be read.
        """
        try:
            with self.path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH)
                return self._parsed(file)
        except FileNotFoundError:
            return None

    def advance(self, number: int, digest: str) -> None:
        """Note an entry, unless a later one is noted."""
        with self._locked() as file:
            noted = self._parsed(file)
            if noted is None or noted[0] < number:
                _write(file, number, digest)

    def replace(self, number: int, digest: str) -> None:
        """Note an entry, although a later one is noted: the chain goes on from an older copy."""
        with self._locked() as file:
            _write(file, number, digest)

    @contextmanager
    def _locked(self) -> Iterator[IO[bytes]]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "r+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file

    def _parsed(self, file: IO[bytes]) -> tuple[int, str] | None:
        content = file.read(ANCHOR_BYTES)
        if not content:
            return None
        try:
            noted: Mapping[str, object] = json.loads(content)
            number, digest = noted["number"], noted["digest"]
        except (ValueError, KeyError, TypeError):
            number, digest = None, None
        if isinstance(number, int) and isinstance(digest, str):
            return number, digest
        raise DamagedLedgerError(f"the anchor {self.path} is damaged")


def _write(file: IO[bytes], number: int, digest: str) -> None:
    content = json.dumps({"number": number, "digest": digest})
    os.pwrite(file.fileno(), content.ljust(ANCHOR_BYTES).encode(), 0)
