"""Keep every measurement as soon as it is made, so that an interrupted run can go on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import FAILED, NOT_INSTALLED, Outcome
from benchmarks.runners import protocol
from experiments.keeping import Keeping


def slug(name: str) -> str:
    """Return a name that a file can have.

    Examples
    --------
    >>> slug("!Kung age, P=100: dp4gp")
    'kung-age-p-100-dp4gp'
    """
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")


@dataclass(frozen=True)
class Store(Keeping[str, Outcome]):
    """A folder of outcomes.

    Attributes
    ----------
    folder : Path
    resume : bool
        Take what is there instead of measuring again, unless it had failed.
    """

    folder: Path
    resume: bool = False

    def find(self, key: str) -> Outcome | None:
        """Return what was kept under a name, if that is wanted and had not failed."""
        path = self._path(key)
        if not self.resume or not path.exists():
            return None
        arrays, rest = protocol.read(path)
        if rest["status"] in (FAILED, NOT_INSTALLED):
            return None
        return Outcome(rest["status"], rest["reason"], arrays=arrays, report=rest["report"])

    def put(self, key: str, value: Outcome) -> None:
        """Keep an outcome under a name."""
        self.folder.mkdir(parents=True, exist_ok=True)
        rest = {"status": value.status, "reason": value.reason, "report": dict(value.report)}
        protocol.write(self._path(key), value.arrays, rest)

    def _path(self, name: str) -> Path:
        return self.folder / f"{slug(name)}.npz"
