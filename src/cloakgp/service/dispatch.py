"""Dispatch of jobs to worker processes on Dask, or to a thread of the server.

A worker receives the settings and the number of a job; it reads the database and the table itself.
The loss of a job on its way does no harm: it stays in the database, and the next start of the
service takes it up.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from cloakgp.data.dask.tasks import ALLOCATION
from cloakgp.service.context import Dispatcher
from cloakgp.service.coordinator import coordinate_request
from cloakgp.service.settings import Settings
from cloakgp.service.worker import work_on_job
from cloakgp.utils.extras import extra

with extra("dask"):
    import distributed
    from dask import config

# Pages of schedulers and workers, which tell everyone on this machine about the jobs.
NO_PAGES: dict[str, Any] = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}
# Its functions have no types.
dask: Any = distributed
log = logging.getLogger("cloakgp.service")


def dispatcher_of(settings: Settings) -> Dispatcher:
    """Return the dispatcher of the settings.

    Parameters
    ----------
    settings : Settings
    """
    if settings.scheduler or settings.workers:
        return DaskDispatcher(settings)
    return ThreadDispatcher(settings)


async def _close_page(scheduler: Any) -> None:
    """Close a scheduler's port for browsers, which Dask opens without a choice."""
    scheduler.http_server.stop()


class ThreadDispatcher:
    """Dispatcher to one thread of this process.

    Parameters
    ----------
    settings : Settings
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="job")
        self._ending = threading.Event()

    def submit(self, job: int) -> None:
        """Submit a job."""
        self._pool.submit(work_on_job, self._settings, job, ending=self._ending.is_set)

    def coordinate(self, request: int) -> None:
        """Go on with a joint request."""
        self._pool.submit(coordinate_request, self._settings, request)

    def close(self) -> None:
        """End the running job, or wait for it if noise was drawn; it stays in the database."""
        self._ending.set()
        self._pool.shutdown(cancel_futures=True)


class DaskDispatcher:
    """Dispatcher to worker processes, with one job at a time in each.

    A cluster of its own listens on loopback, with its own certificates.

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
            with config.set(ALLOCATION | NO_PAGES):
                self._cluster = dask.LocalCluster(
                    n_workers=settings.workers,
                    threads_per_worker=1,
                    host="127.0.0.1",
                    dashboard_address=None,
                    # Any free port, at which nothing answers in the end.
                    scheduler_kwargs={"dashboard_address": "127.0.0.1:0", "dashboard": False},
                    security=True,
                )
            self._cluster.sync(_close_page, self._cluster.scheduler)
            self._client = dask.Client(self._cluster)
        self._lock = threading.Lock()
        # Dask forgets work whose future is not held.
        self._futures: dict[str, Any] = {}

    def submit(self, job: int) -> None:
        """Submit a job; if its worker dies, another takes it."""
        self._submit(work_on_job, job)

    def coordinate(self, request: int) -> None:
        """Go on with a joint request; if its worker dies, another does."""
        self._submit(coordinate_request, request)

    def close(self) -> None:
        """End the workers; jobs stay in the database."""
        with self._lock:
            self._futures.clear()
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()

    def _submit(self, work: Callable[[Settings, int], None], number: int) -> None:
        future = self._client.submit(work, self._settings, number, pure=False)
        with self._lock:
            self._futures[future.key] = future
        future.add_done_callback(self._ended)

    def _ended(self, future: Any) -> None:
        if future.status == "error":
            log.error("a worker could not end its job: %s", type(future.exception()).__name__)
        with self._lock:
            self._futures.pop(future.key, None)
