"""Keep every measurement as soon as it is made, so that an interrupted run can go on."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import FAILED, NOT_INSTALLED, Outcome
from benchmarks.runners import protocol


def slug(name: str) -> str:
    """Return a name that a file can have.

    Examples
    --------
    >>> slug("!Kung age, P=100: dp4gp")
    'kung-age-p-100-dp4gp'
    """
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")


@dataclass(frozen=True)
class Store:
    """A folder of outcomes.

    Attributes
    ----------
    folder : Path
    resume : bool
        Take what is there instead of measuring again, unless it had failed.
    """

    folder: Path
    resume: bool = False

    def outcome(self, name: str, measure: Callable[[], Outcome]) -> Outcome:
        """Return what was kept under a name, if that is wanted, or measure and keep it.

        Parameters
        ----------
        name : str
        measure : callable
        """
        path = self.folder / f"{slug(name)}.npz"
        if self.resume and path.exists():
            arrays, rest = protocol.read(path)
            if rest["status"] not in (FAILED, NOT_INSTALLED):
                return Outcome(rest["status"], rest["reason"], arrays=arrays, report=rest["report"])
        found = measure()
        self.folder.mkdir(parents=True, exist_ok=True)
        rest = {"status": found.status, "reason": found.reason, "report": dict(found.report)}
        protocol.write(path, found.arrays, rest)
        return found
