"""Running jobs: what is missing is computed and kept at once; nothing is replaced unasked."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from io import BytesIO

from joblib import Parallel, delayed
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from cloakgp import PrivacyParameterWarning
from experiments.commits import commit_of_sources
from experiments.datasets import DatasetUnavailableError
from experiments.progress import Progress
from experiments.reproduction.jobs.base import Found, Job
from experiments.reproduction.results import (
    Kept,
    Results,
    today,
    versions,
)

DPI = 100
QUALITY = 80


@dataclass(frozen=True, eq=False)
class Done:
    """What came of a job: what was found with its pictures as bytes, or why nothing was.

    Attributes
    ----------
    job : Job
    draws : int
    found : Found or None
    pictures : mapping of str to bytes
    seconds : float
    reason : str
        Empty unless a table is missing.
    """

    job: Job
    draws: int
    found: Found | None
    pictures: Mapping[str, bytes]
    seconds: float
    reason: str = ""


def missing(jobs: Mapping[str, Job], results: Results) -> list[Job]:
    """Return the jobs whose results are not kept, those that take longest first."""
    wanted = [job for name, job in jobs.items() if results.find(name) is None]
    return sorted(wanted, key=lambda job: -job.minutes)


def changed(jobs: Mapping[str, Job], results: Results) -> list[str]:
    """Return the jobs that are kept with other settings in words than they have now."""
    kept = {name: results.find(name) for name in jobs}
    return [
        name
        for name, one in kept.items()
        if one is not None and one.settings != jobs[name].told(one.draws)
    ]


def run(
    jobs: Iterable[Job],
    results: Results,
    *,
    progress: Progress,
    draws: int | None = None,
    n_jobs: int = 1,
) -> list[Done]:
    """Compute jobs and keep what each found as soon as it is there.

    Parameters
    ----------
    jobs : iterable of Job
    results : Results
    progress : Progress
    draws : int, optional
        Instead of each job's own number, where it draws at all.
    n_jobs : int
        How many at a time, each on one core.

    Returns
    -------
    list of Done
        Those for which a table is missing, of which nothing is kept.
    """
    wanted = list(jobs)
    commit, versioned, failed = commit_of_sources(), versions(), []
    with progress("report", steps=len(wanted)) as tick:
        for done in computed(wanted, draws=draws, n_jobs=n_jobs):
            if done.found is None:
                failed.append(done)
            else:
                keep(done, results, commit=commit, versioned=versioned)
            tick()
    return failed


def computed(jobs: Iterable[Job], *, draws: int | None = None, n_jobs: int = 1) -> Iterator[Done]:
    """Compute jobs and yield what came of each, in the order in which they end."""
    tasks = (
        delayed(compute)(job, draws=draws if draws is not None and job.draws else job.draws)
        for job in jobs
    )
    yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered")(tasks)


def computed_as_kept(jobs: Iterable[Job], results: Results, *, n_jobs: int = 1) -> Iterator[Done]:
    """Compute jobs again, with as many draws as what is kept has."""
    tasks = []
    for job in jobs:
        kept = results.find(job.name)
        tasks.append(delayed(compute)(job, draws=job.draws if kept is None else kept.draws))
    yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered")(tasks)


def compute(job: Job, *, draws: int) -> Done:
    """Compute a job on one core."""
    started = time.process_time()
    made = partial(Done, job=job, draws=draws)
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        # The papers' budgets are what they are.
        warnings.simplefilter("ignore", PrivacyParameterWarning)
        try:
            found = job.compute(draws)
        except DatasetUnavailableError as error:
            return made(found=None, pictures={}, seconds=0.0, reason=str(error))
        pictures = {name: encoded(figure) for name, figure in found.pictures.items()}
    # Figures are not sent from one process to another.
    found = Found(quantities=found.quantities)
    return made(found=found, pictures=pictures, seconds=time.process_time() - started)


def encoded(figure: Figure) -> bytes:
    """Return a picture as a small WebP."""
    file = BytesIO()
    figure.savefig(file, format="webp", dpi=DPI, pil_kwargs={"quality": QUALITY})
    return file.getvalue()


def keep(done: Done, results: Results, *, commit: str, versioned: str) -> None:
    """Keep what a job found, with its pictures."""
    if done.found is None:
        raise ValueError(f"{done.job.name} found nothing")
    files = []
    for name, content in done.pictures.items():
        file = f"{done.job.name}-{name}.webp"
        path = results.picture(file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        files.append(file)
    kept = Kept(
        quantities=done.found.quantities,
        pictures=tuple(files),
        settings=done.job.told(done.draws),
        draws=done.draws,
        seconds=round(done.seconds, 1),
        commit=commit,
        date=today(),
        versions=versioned,
    )
    results.put(done.job.name, kept)
