"""Limits of reading: the size of a table, and the time of a query.

A file of a kilobyte can unpack to gigabytes, and a query can go on for ever. Both are limited while
they are read, and not by what a file says of itself. Nothing is limited if nobody says so: whoever
reads their own tables decides themselves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


class RefusedError(ValueError):
    """A table is not read any further, for a reason without any of its content."""


class TooSlowError(RefusedError):
    """A query takes longer than it may here."""


@dataclass(frozen=True)
class ReadingLimits:
    """Limits of the size of one table.

    Attributes
    ----------
    rows : int or None
    size : int or None
        In bytes, once it is unpacked.
    seconds : float or None
        That a database may take over a query, without the time that is spent on its rows.
    stopped : callable or None
        Asked again and again during a query: whether nobody wants its rows any more.

    Examples
    --------
    >>> ReadingLimits(rows=20_000).check_rows(20_001)
    Traceback (most recent call last):
    ...
    cloakgp.data.limits.RefusedError: the table has more than 20,000 rows, which is the limit here
    """

    rows: int | None = None
    size: int | None = None
    seconds: float | None = None
    stopped: Callable[[], bool] | None = None

    def check_rows(self, rows: int | None) -> None:
        """Raise `RefusedError` for more rows than the limit; None for an unknown number."""
        if self.rows is not None and rows is not None and rows > self.rows:
            raise RefusedError(
                f"the table has more than {self.rows:,} rows, which is the limit here"
            )

    def check_size(self, size: int) -> None:
        """Raise `RefusedError` for more bytes than are read."""
        if self.size is not None and size > self.size:
            raise RefusedError(
                f"the table is larger than {self.size:,} bytes once it is unpacked, which is the "
                "limit here"
            )


UNLIMITED = ReadingLimits()


class Stopwatch:
    """A clock of a query, with a limit.

    Parameters
    ----------
    limits : ReadingLimits

    Examples
    --------
    >>> watch = Stopwatch(ReadingLimits(seconds=60))
    >>> with watch.running():
    ...     watch.is_over()
    False
    >>> Stopwatch(ReadingLimits(stopped=lambda: True)).is_over()
    True
    """

    def __init__(self, limits: ReadingLimits) -> None:
        self._limits = limits
        self._spent = 0.0
        self._began: float | None = None
        self.over = False

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time that the block takes."""
        self._began = time.monotonic()
        try:
            yield
        finally:
            self._spent += time.monotonic() - self._began
            self._began = None

    def is_over(self) -> bool:
        """Return whether the query is to end; once it is, it stays so."""
        limits, began = self._limits, self._began
        spent = self._spent + (0.0 if began is None else time.monotonic() - began)
        late = limits.seconds is not None and spent > limits.seconds
        self.over = self.over or late or (limits.stopped is not None and limits.stopped())
        return self.over

    def refusal(self) -> RefusedError:
        """Return the error with the reason of the query's end."""
        if self._limits.seconds is None or self._spent <= self._limits.seconds:
            return RefusedError("the query was stopped: its caller has left")
        return TooSlowError(
            f"the query took longer than {self._limits.seconds:g} seconds, which is the limit "
            "here: it was stopped"
        )
