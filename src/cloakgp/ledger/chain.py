"""Chain of entries: each has the digest of all before it, so that none can be changed unseen."""

from __future__ import annotations

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
from typing import Any

from cloakgp import __version__

# Of the entry before the first.
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
    """

    number: int
    body: str
    digest: str

    @classmethod
    def after(cls, number: int, digest: str, *, content: Body) -> Entry:
        """Return the entry that follows another.

        Parameters
        ----------
        number, digest
            Of the one before it; 0 and `GENESIS` for the first.
        content : mapping
            What happened.

        Examples
        --------
        >>> first = Entry.after(0, GENESIS, content={"kind": "void"})
        >>> first.number, first.content["kind"]
        (1, 'void')
        """
        stamped = {
            **content,
            "number": number + 1,
            "when": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "who": whoever(),
            "version": __version__,
        }
        body = canonical(stamped)
        return cls(number=number + 1, body=body, digest=linked(digest, body))

    @property
    def content(self) -> dict[str, Any]:
        """What happened, when, and by whom."""
        content: dict[str, Any] = json.loads(self.body)
        return content


def linked(before: str, body: str) -> str:
    """Return the digest of an entry."""
    return hashlib.sha256(f"{before}\n{body}".encode()).hexdigest()


def canonical(content: Body) -> str:
    """Return the one way in which something is written as JSON.

    Examples
    --------
    >>> canonical({"b": 0.1, "a": None})
    '{"a":null,"b":0.1}'
    """
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


@contextmanager
def acting_as(name: str) -> Iterator[None]:
    """Have entries say that somebody made them, within a block.

    For programs that act for several people.

    Parameters
    ----------
    name : str

    Examples
    --------
    >>> with acting_as("anna"):
    ...     whoever()
    'anna'
    """
    token = _acting.set(name)
    try:
        yield
    finally:
        _acting.reset(token)


def whoever() -> str:
    """Return who this is: of a block, ``CLOAKGP_USER``, or the system's user and host."""
    named = _acting.get() or os.environ.get(USER)
    if named:
        return named
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
