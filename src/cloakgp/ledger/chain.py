"""Hash chain of entries, and its anchor.

Each entry has the digest of all before it, so that none can be changed unseen, and is signed with a
key outside of the database: write access to the database is not enough to add one. The anchor, the
last entry that this machine saw, is a file outside of the database, which an older copy of the
database does not reach.
"""

from __future__ import annotations

import fcntl
import getpass
import hashlib
import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from cloakgp import __version__
from cloakgp.ledger.errors import DamagedLedgerError
from cloakgp.ledger.keys import Key, is_signed

# Digest before the first entry.
GENESIS = "0" * 64
USER = "CLOAKGP_USER"

Body = Mapping[str, Any]

_acting: ContextVar[str] = ContextVar("_acting", default="")


@dataclass(frozen=True)
class Entry:
    """One entry.

    Attributes
    ----------
    number : int
        From 1, without gaps.
    body : str
        Canonical JSON.
    digest : str
        SHA-256 of the digest before it and of the body.
    signature : str
        Of the digest, in base 64, with the ledger's key of that time.
    """

    number: int
    body: str
    digest: str
    signature: str

    @classmethod
    def after(cls, number: int, digest: str, *, content: Body, key: Key) -> Entry:
        """Return the entry that follows another.

        Parameters
        ----------
        number, digest
            Of the one before it; 0 and `GENESIS` for the first.
        content : mapping
            The event, and its actor.
        key : Key

        Examples
        --------
        >>> key = Key(secret=bytes(32))
        >>> first = Entry.after(0, GENESIS, content={"kind": "void"}, key=key)
        >>> first.number, first.content["kind"], first.is_signed(public=key.public)
        (1, 'void', True)
        """
        stamped = {
            **content,
            "number": number + 1,
            "when": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "version": __version__,
        }
        body = canonical(stamped)
        linking = linked(digest, body)
        signature = key.sign(_signed(linking))
        return cls(number=number + 1, body=body, digest=linking, signature=signature)

    def is_signed(self, *, public: str) -> bool:
        """Return whether the digest was signed with a key.

        Parameters
        ----------
        public : str
            Of `Key.public`.
        """
        return is_signed(_signed(self.digest), self.signature, public=public)

    @property
    def content(self) -> dict[str, Any]:
        """The event, its time and its actor."""
        content: dict[str, Any] = json.loads(self.body)
        return content


def endorse(digest: str, *, key: Key) -> str:
    """Return the signature by which a new key takes over the chain up to an entry.

    Parameters
    ----------
    digest : str
        Of that entry.
    key : Key
        The new one.
    """
    return key.sign(_endorsed(digest))


def is_endorsed(digest: str, endorsement: str, *, public: str) -> bool:
    """Return whether a key took over the chain up to an entry."""
    return is_signed(_endorsed(digest), endorsement, public=public)


def _signed(digest: str) -> bytes:
    # Receipts begin otherwise, so that neither passes for the other.
    return f"cloakgp entry {digest}".encode()


def _endorsed(digest: str) -> bytes:
    return f"cloakgp rotation {digest}".encode()


def linked(before: str, body: str) -> str:
    """Return the digest of an entry."""
    return hashlib.sha256(f"{before}\n{body}".encode()).hexdigest()


def canonical(content: Body) -> str:
    """Return the canonical JSON of a value.

    Examples
    --------
    >>> canonical({"b": 0.1, "a": None})
    '{"a":null,"b":0.1}'
    """
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


@contextmanager
def acting_as(name: str) -> Iterator[None]:
    """Name a person in the entries of a block, for programs that act for several people.

    Parameters
    ----------
    name : str

    Examples
    --------
    >>> with acting_as("anna"):
    ...     acting_person()
    'anna'
    """
    token = _acting.set(name)
    try:
        yield
    finally:
        _acting.reset(token)


def acting_person() -> str:
    """Return the person of a block, of ``CLOAKGP_USER``, or the system's user and host."""
    named = _acting.get() or os.environ.get(USER)
    if named:
        return named
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


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
