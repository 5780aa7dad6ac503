"""Exchange of files between custodians: each is written once, and never changed.

Nothing secret is in them: whoever reads all of them learns what the coordinator does.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from cloakgp.custodians.errors import CustodiansError
from cloakgp.utils.files import reserve_file

PLAN, ROSTER, RELEASE = "plan.json", "roster.json", "release.cloak"
# Where the system has no such thing, folders hold no pipes either.
NOT_WAITING: int = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class Exchange(Protocol):
    """Files that the coordinator and all sites read and write."""

    def get(self, name: str) -> bytes | None:
        """Return the content of a file, None if there is none yet.

        Parameters
        ----------
        name : str
            A relative path, of letters, digits, dots, hyphens and slashes.
        """

    def has(self, name: str) -> bool:
        """Return whether there is a file."""

    def put(self, name: str, content: bytes) -> None:
        """Write a file, unless it is there with the same content.

        Raises
        ------
        CustodiansError
            If it is there with another; or another error with a sentence, where somebody keeps the
            files for others and does not take this one (`cloakgp.custodians.admission`).
        """


class FolderExchange:
    """Files in a folder that all can reach.

    Parameters
    ----------
    path : str or Path

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     exchange = FolderExchange(folder)
    ...     exchange.put("attempt-1/total.bin", b"5")
    ...     exchange.get("attempt-1/total.bin"), exchange.get("attempt-1/other.bin")
    (b'5', None)
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def get(self, name: str) -> bytes | None:
        """Return the content of a file, None if there is none yet.

        Raises
        ------
        CustodiansError
            If it is no regular file: a named pipe tells each reader something else.
        """
        try:
            # Not waiting for somebody to write into a pipe.
            opened = os.open(self.path / name, os.O_RDONLY | NOT_WAITING)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            os.close(opened)
            raise CustodiansError(f"{name} is no regular file")
        with os.fdopen(opened, "rb") as file:
            return file.read()

    def has(self, name: str) -> bool:
        """Return whether there is a file."""
        return (self.path / name).is_file()

    def put(self, name: str, content: bytes) -> None:
        """Write a file in one step, unless it is there with the same content."""
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with reserve_file(target) as reserved:
                reserved.write(content)
        except FileExistsError:
            if self.get(name) != content:
                raise written_before(name) from None


class MemoryExchange:
    """Files in the memory of this process, to try a plan.

    Parameters
    ----------
    files : mapping of str to bytes, optional
        That are there already.

    Examples
    --------
    >>> exchange = MemoryExchange()
    >>> exchange.put("plan.json", b"{}")
    >>> exchange.put("plan.json", b"[]")
    Traceback (most recent call last):
    ...
    cloakgp.custodians.errors.CustodiansError: plan.json was written before, and is another
    """

    def __init__(self, files: Mapping[str, bytes] | None = None) -> None:
        self.files = dict(files or {})

    def get(self, name: str) -> bytes | None:
        """Return the content of a file, None if there is none yet."""
        return self.files.get(name)

    def has(self, name: str) -> bool:
        """Return whether there is a file."""
        return name in self.files

    def put(self, name: str, content: bytes) -> None:
        """Keep a file, unless it is there with the same content."""
        if self.files.setdefault(name, content) != content:
            raise written_before(name)


class ReadOnce:
    """An exchange of which every file is read once: what was checked is what is gone by.

    Whoever can write to a folder can change a file between two readings of it. A file that is not
    there yet is looked for again.

    Parameters
    ----------
    exchange : Exchange

    Examples
    --------
    >>> files = MemoryExchange()
    >>> once = ReadOnce(files)
    >>> once.get("plan.json")
    >>> files.files["plan.json"] = b"{}"
    >>> first = once.get("plan.json")
    >>> files.files["plan.json"] = b"[]"
    >>> first, once.get("plan.json")
    (b'{}', b'{}')
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._known: dict[str, bytes] = {}

    @classmethod
    def of(cls, exchange: Exchange) -> ReadOnce:
        """Return the same exchange if its files are read once already, or else one of which."""
        return exchange if isinstance(exchange, ReadOnce) else cls(exchange)

    def get(self, name: str) -> bytes | None:
        """Return the content of a file as it was read first, None if there is none yet."""
        if name not in self._known:
            content = self._exchange.get(name)
            if content is None:
                return None
            self._known[name] = content
        return self._known[name]

    def has(self, name: str) -> bool:
        """Return whether there is a file."""
        return self.get(name) is not None

    def put(self, name: str, content: bytes) -> None:
        """Write a file, unless it is there with the same content."""
        if self._known.get(name, content) != content:
            raise written_before(name)
        self._exchange.put(name, content)


def written_before(name: str) -> CustodiansError:
    """Return the error of a file that is there with another content."""
    return CustodiansError(f"{name} was written before, and is another")
