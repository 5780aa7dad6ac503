"""Version of the sources: which commit computed what is kept."""

from __future__ import annotations

import subprocess
from pathlib import Path

PROJECT = Path(__file__).parents[1]
SOURCES = ("src", "experiments", "benchmarks")
# Results are no sources.
KEPT = ("experiments/kept", "experiments/reproduction/kept", "experiments/tournament/kept")


def commit_of_sources() -> str:
    """Return the commit that is checked out, with a plus if the sources were changed since."""
    commit = _git("rev-parse", "--short=12", "HEAD")
    if not commit:
        return "unknown"
    changed = _git("status", "--porcelain", "--", *SOURCES, *(f":!{kept}" for kept in KEPT))
    return f"{commit}+" if changed else commit


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=PROJECT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""
