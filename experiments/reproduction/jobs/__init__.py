"""All jobs of the report, by name."""

from __future__ import annotations

from experiments.reproduction.jobs import (
    both_private,
    choices,
    classes,
    functions,
    outlook,
    prices,
    statements,
    trips,
    women,
)
from experiments.reproduction.jobs.base import Job, named

MODULES = (
    functions,
    statements,
    women,
    prices,
    trips,
    choices,
    classes,
    both_private,
    outlook,
)


def all_jobs() -> dict[str, Job]:
    """Return the jobs of all modules, by name.

    Examples
    --------
    >>> all_jobs()["four-points"].draws
    0
    """
    return named(job for module in MODULES for job in module.JOBS)
