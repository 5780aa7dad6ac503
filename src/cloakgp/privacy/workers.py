"""Parallel tasks on joblib's workers: threads, processes, or another machine's.

What a task holds travels to a worker, through memory, a pipe, a file or a network, and may stay
there. So a task is made of public things only; what is private is joined to the results by whoever
asked for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from joblib import Parallel, delayed

from cloakgp.utils.threads import suitable_threads

Result = TypeVar("Result")


def in_order(
    tasks: Iterable[Callable[[], Result]], *, n_jobs: int | None = None
) -> Iterator[Result]:
    """Run tasks on workers, and yield their results in the order of the tasks.

    Tasks are made as workers become free. Results are yielded as soon as their turn comes, and not
    kept, unless the backend cannot do so (joblib's "multiprocessing" and Ray's): then all are
    collected first.

    BLAS has one thread in every task, so that on one kind of machine a result has the same bits
    whatever ``n_jobs`` and the backend are.

    Parameters
    ----------
    tasks : iterable of callables without arguments
        Whatever they hold is sent to a worker: nothing private may be in it.
    n_jobs : int, optional
        As in scikit-learn: how many at a time, -1 for as many as there are processors. If not
        given: what ``joblib.parallel_config`` says, or one, in this process.

    Yields
    ------
    object
        What each task returned.

    Raises
    ------
    ValueError
        If ``n_jobs`` is 0 or no number.

    Examples
    --------
    >>> from functools import partial
    >>> list(in_order((partial(divmod, number, 2) for number in (7, 8)), n_jobs=1))
    [(3, 1), (4, 0)]
    """
    try:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    except ValueError:
        # The backend cannot; or n_jobs is wrong, and this says so.
        parallel = Parallel(n_jobs=n_jobs)
    # The cap holds for a whole process: set here as well, threads that leave it one after another
    # find and restore the same.
    with suitable_threads(0.0):
        yield from parallel(delayed(_with_one_thread)(task) for task in tasks)


def _with_one_thread(task: Callable[[], Result]) -> Result:
    with suitable_threads(0.0):
        return task()
