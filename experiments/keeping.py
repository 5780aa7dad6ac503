"""Persistent cache: what was computed, kept by key as soon as it is there.

An interrupted run goes on where it was. How things are kept is up to subclasses: one JSON object in
a file (`JsonFile`), a line of JSON for each (`JsonLines`), arrays in a folder (`benchmarks.store`).
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Keeping(ABC, Generic[Key, Value]):
    """Values by key that outlive the process that computed them."""

    @abstractmethod
    def find(self, key: Key) -> Value | None:
        """Return what is kept under a key, or None."""

    @abstractmethod
    def put(self, key: Key, value: Value) -> None:
        """Keep a value, in the place of what was kept under its key."""

    def get(self, key: Key, compute: Callable[[], Value]) -> Value:
        """Return what is kept under a key, or compute and keep it."""
        found = self.find(key)
        if found is None:
            found = compute()
            self.put(key, found)
        return found


class JsonFile(Keeping[str, Any]):
    """JSON values by name, all in one file that is never seen half written.

    Parameters
    ----------
    path : Path or None
        None keeps nothing beyond the process.

    Examples
    --------
    >>> JsonFile(None).get("a", lambda: 2.5)
    2.5
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.known: dict[str, Any] = {}
        if path is not None and path.exists():
            self.known = json.loads(path.read_text(encoding="utf-8"))

    def find(self, key: str) -> Any | None:
        """Return what is kept under a name, or None."""
        return self.known.get(key)

    def put(self, key: str, value: Any) -> None:
        """Keep a value, and write the file."""
        self.known[key] = value
        if self.path is not None:
            write_whole(self.path, self.text())

    def text(self) -> str:
        """Return the file's text: names in order, a line each."""
        lines = (
            f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}"
            for name, value in sorted(self.known.items())
        )
        return "{\n" + ",\n".join(lines) + "\n}\n"


class JsonLines(Keeping[tuple[Any, ...], float]):
    """Figures by key, kept in a file of one JSON list a line, if there is one."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.known: dict[tuple[Any, ...], float] = {}
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                *key, value = json.loads(line)
                self.known[tuple(key)] = value

    def find(self, key: tuple[Any, ...]) -> float | None:
        """Return what is kept for a key, or None."""
        return self.known.get(key)

    def put(self, key: tuple[Any, ...], value: float) -> None:
        """Keep a figure, and add its line."""
        self.known[key] = value
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([*key, value]) + "\n")


def write_whole(path: Path, text: str) -> None:
    """Write a file that is there as a whole or not at all, whatever interrupts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.part")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
