"""Dispatch of jobs: to worker processes on Dask, or to a thread of the server.

Only the settings and the number of a job are sent to a worker; it reads the database and the table
itself. That a job was lost on its way does no harm: it is in the database, and taken up again when
the service starts.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from cloakgp.data.dask.memory import ALLOCATION
from cloakgp.service.context import Dispatcher
from cloakgp.service.settings import Settings
from cloakgp.service.working import work_on_job
from cloakgp.utils.extras import extra

with extra("dask"):
    import distributed
    from dask import config

# Its functions have no types.
dask: Any = distributed
log = logging.getLogger("cloakgp.service")


def dispatcher_of(settings: Settings) -> Dispatcher:
    """Return who does jobs, as the settings have it.

    Parameters
    ----------
    settings : Settings
    """
    if settings.scheduler or settings.workers:
        return DaskDispatcher(settings)
    return ThreadDispatcher(settings)


class ThreadDispatcher:
    """Does jobs one after another, in a thread of this process.

    Parameters
    ----------
    settings : Settings
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="job")

    def submit(self, job: int) -> None:
        """Have a job done."""
        self._pool.submit(work_on_job, self._settings, job)

    def close(self) -> None:
        """Wait for the job that runs; others stay in the database."""
        self._pool.shutdown(cancel_futures=True)


class DaskDispatcher:
    """Does jobs in worker processes, one at a time in each.

    A cluster of its own listens on loopback, with certificates that nobody else has.

    Parameters
    ----------
    settings : Settings
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._cluster: Any = None
        if settings.scheduler:
            self._client: Any = dask.Client(settings.scheduler)
        else:
            with config.set(ALLOCATION):
                self._cluster = dask.LocalCluster(
                    n_workers=settings.workers,
                    threads_per_worker=1,
                    host="127.0.0.1",
                    dashboard_address=None,
                    security=True,
                )
            self._client = dask.Client(self._cluster)
        self._lock = threading.Lock()
        # Dask forgets work of which nobody holds the future.
        self._futures: dict[str, Any] = {}

    def submit(self, job: int) -> None:
        """Have a job done; if its worker dies, by another."""
        future = self._client.submit(work_on_job, self._settings, job, pure=False)
        with self._lock:
            self._futures[future.key] = future
        future.add_done_callback(self._ended)

    def close(self) -> None:
        """End the workers; jobs stay in the database."""
        with self._lock:
            self._futures.clear()
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()

    def _ended(self, future: Any) -> None:
        if future.status == "error":
            log.error("a worker could not end its job: %s", type(future.exception()).__name__)
        with self._lock:
            self._futures.pop(future.key, None)
