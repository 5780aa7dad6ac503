"""Confinement of work to processes with limits of time and memory.

A table or a request can take any time and any memory to unpack, query or plan. Its process, which
can be killed where a thread goes on, has limits of both, and ends with its reason: at its time,
when its caller leaves, and when the service ends. It is forked from a process that has imported
everything and holds nothing, and ends by itself if the service dies.
"""

from __future__ import annotations

import logging
import math
import multiprocessing
import os
import resource
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import connection, forkserver
from typing import Any, Literal, ParamSpec, TypeVar

import psutil
from threadpoolctl import threadpool_limits

from cloakgp.data.limits import TooSlowError
from cloakgp.service.errors import InvalidError, ServiceError, TooManyError
from cloakgp.utils.formatting import kind_and_place

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Ending = Literal["done", "invalid", "slow", "system", "memory", "gone", "unforeseen"]

# Modules that most calls need: imported once, and shared by all processes.
PRELOADED = (
    "__main__",
    "cloakgp.service.operations.plans",
    "cloakgp.service.operations.releases",
    "cloakgp.service.operations.tables",
    # These are imported by others when they are first used.
    "dp_accounting.pld",
    "mpmath",
    "pyarrow.pandas_compat",
    "sklearn.cluster",
)
# Seconds between two looks whether the caller still waits.
LOOK = 0.2
# Seconds for which a call waits for others to end.
PATIENCE = 30.0
# The system's own limit of processor time, in case that no parent is left to kill the process: the
# time of two threads, and some seconds.
THREADS, SPARE = 2, 10
log = logging.getLogger("cloakgp.service")
# Several threads ask at once, and the standard library keeps one list of processes.
_LISTED = threading.Lock()
_context = multiprocessing.get_context("forkserver")


class EndedError(ServiceError):
    """The caller has left, and the work was stopped."""

    status, kind = 503, "unavailable"

    def __init__(self) -> None:
        super().__init__("this was stopped before it was done: ask again")


def never() -> bool:
    """Return False: the caller stays."""
    return False


def prepare_processes() -> None:
    """Begin the imports of calls, so that the first call does not wait for them."""
    _context.set_forkserver_preload(list(PRELOADED))
    forkserver.ensure_running()


class Confinement:
    """Calls in processes of their own, some at once.

    Parameters
    ----------
    slots : int
        Calls at once; others wait a little, and then are refused.
    seconds : float
        Limit of one call.
    memory : float
        Limit of one call, in bytes.
    action : str
        The work, as the beginning of a sentence.
    advice : str
        A smaller request, where a call takes too much.
    """

    def __init__(
        self, *, slots: int, seconds: float, memory: float, action: str, advice: str
    ) -> None:
        self._slots = threading.BoundedSemaphore(slots)
        self._seconds, self._memory = seconds, memory
        self._action, self._advice = action, advice
        self._closed = False

    def close(self) -> None:
        """End all calls; they and further ones raise `EndedError`."""
        self._closed = True

    def call(
        self,
        function: Callable[Parameters, Result],
        stopped: Callable[[], bool],
        /,
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Result:
        """Return the result of a function of a module, called in a process of its own.

        Parameters
        ----------
        function : callable
            It, its arguments and its result are pickled.
        stopped : callable
            Returns whether the caller has left; called again and again.
        *args, **kwargs

        Raises
        ------
        ValueError, OSError
            As the function raises them; of other errors, kind and place are logged.
        InvalidError
            If it takes more time or memory than it may.
        EndedError
            If the caller has left, or the service ends.
        TooManyError
            If other calls take the slots for too long.
        """
        self._wait_for_slot(stopped)
        try:
            return self._called(function, stopped, args, kwargs)  # type: ignore[no-any-return]
        finally:
            self._slots.release()

    def _wait_for_slot(self, stopped: Callable[[], bool]) -> None:
        began = time.monotonic()
        while not self._slots.acquire(timeout=LOOK):
            if self._closed or stopped():
                raise EndedError
            if time.monotonic() - began > PATIENCE:
                raise TooManyError(int(PATIENCE))

    def _called(
        self, function: Callable[..., Any], stopped: Callable[[], bool], args: Any, kwargs: Any
    ) -> Any:
        prepare_processes()
        receiving, sending = _context.Pipe(duplex=False)
        process = _context.Process(
            target=_work,
            args=(sending, self._seconds, self._memory, function, args, kwargs),
            daemon=True,
        )
        with receiving:
            with sending, _LISTED:
                process.start()
            try:
                answer = self._answer(process, receiving, stopped)
            finally:
                process.kill()
                with _LISTED:
                    process.join()
                    process.close()
        return self._opened(answer)

    def _answer(
        self, process: Any, receiving: Any, stopped: Callable[[], bool]
    ) -> tuple[Ending, Any]:
        end = time.monotonic() + self._seconds
        while True:
            ready = connection.wait([receiving, process.sentinel], timeout=LOOK)
            if receiving in ready:
                # Killed by the system, it has sent nothing, or half an answer.
                with suppress(EOFError):
                    answer: tuple[Ending, Any] = receiving.recv()
                    return answer
            if ready:
                return "gone", None
            if self._closed or stopped():
                raise EndedError
            if time.monotonic() > end:
                raise InvalidError(
                    f"{self._action} took longer than {self._seconds:g} seconds, which is the "
                    f"limit here, and was stopped: {self._advice}"
                )

    def _opened(self, answer: tuple[Ending, Any]) -> Any:
        ending, content = answer
        if ending == "done":
            return content
        if ending == "invalid":
            raise ValueError(content)
        if ending == "slow":
            raise TooSlowError(content)
        if ending == "system":
            raise OSError(*content)
        if ending == "memory":
            raise InvalidError(
                f"{self._action} takes more memory than there is for it here: {self._advice}"
            )
        if ending == "gone":
            raise InvalidError(
                f"{self._action} ended without an answer, as where memory is short: {self._advice}"
            )
        log.error("unforeseen: %s", content)
        raise RuntimeError(content)


def _work(
    sending: Any,
    seconds: float,
    memory: float,
    function: Callable[..., Any],
    args: Any,
    kwargs: Any,
) -> None:
    """Call a function in this process, and send its result."""
    _keep_within(seconds, memory)
    answer: tuple[Ending, Any]
    try:
        with threadpool_limits(limits=1):
            answer = "done", function(*args, **kwargs)
    except MemoryError:
        answer = "memory", None
    except TooSlowError as error:
        answer = "slow", str(error)
    except ValueError as error:
        answer = "invalid", str(error)
    except OSError as error:
        answer = "system", (error.errno, error.strerror)
    except Exception as error:
        # Its message might quote a value.
        answer = "unforeseen", kind_and_place(error)
    with suppress(BrokenPipeError):
        sending.send(answer)


def _keep_within(seconds: float, memory: float) -> None:
    """Have the system end this process at its limits, and with its parent."""
    # Ctrl-C is for the service, which kills this process then.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=follow, name="parent", daemon=True).start()
    _limit(resource.RLIMIT_CPU, THREADS * seconds + SPARE)
    # A file that it writes is held in memory elsewhere, or is a copy of one that it reads.
    _limit(resource.RLIMIT_FSIZE, memory)
    _limit(resource.RLIMIT_DATA, memory + _taken())


def _limit(kind: int, most: float) -> None:
    _, hard = resource.getrlimit(kind)
    wanted = math.ceil(most)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    resource.setrlimit(kind, (wanted, hard))


def _taken() -> int:
    """Return the bytes of data of this process."""
    memory = psutil.Process().memory_info()
    # Linux counts reserved memory, too.
    return int(getattr(memory, "data", memory.rss))
