"""Progress: a bar on a terminal, and a line now and then in a log or a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TypeVar

from rich.console import Console
from rich.progress import Progress as Bar

Result = TypeVar("Result")
Tick = Callable[[], None]

# Between two lines.
SECONDS = 20.0


def no_tick() -> None:
    """Count nothing."""


class Progress(Protocol):
    """Something that shows how far a computation is."""

    def __call__(self, what: str, *, steps: int) -> AbstractContextManager[Tick]:
        """Return a context whose callable is to be called after every step."""


@contextmanager
def progress(what: str, *, steps: int) -> Iterator[Tick]:
    """Show on stderr how far something is: a bar on a terminal, lines elsewhere.

    Parameters
    ----------
    what : str
    steps : int

    Yields
    ------
    callable
        To be called after every step.
    """
    if not sys.stderr.isatty():
        yield Lines(what, steps=steps).tick
        return
    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=steps)
        yield lambda: bar.advance(task)


@contextmanager
def quietly(what: str, *, steps: int) -> Iterator[Tick]:
    """Show nothing: for parts of something that shows its own progress.

    Yields
    ------
    callable
    """
    del what, steps
    yield no_tick


class Lines:
    """Lines that say how far something is, the first after a while, and then now and then.

    Parameters
    ----------
    what : str
    steps : int
    seconds : float
        Between two lines.
    clock : callable
        Seconds of some clock.
    """

    def __init__(
        self,
        what: str,
        *,
        steps: int,
        seconds: float = SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.what, self.steps, self.seconds, self.clock = what, steps, seconds, clock
        self.done = 0
        self.started = self.said = clock()

    def tick(self) -> None:
        """Count a step, and say a line if it is time."""
        self.done += 1
        now = self.clock()
        if now - self.said < self.seconds:
            return
        self.said = now
        took = now - self.started
        left = took * max(self.steps - self.done, 0) / self.done
        line = f"{self.what}: {self.done} of {self.steps}, {took:.0f} s, some {left:.0f} s left"
        print(line, file=sys.stderr, flush=True)


def ticked(results: Iterable[Result], *, tick: Tick = no_tick, every: int = 1) -> Iterator[Result]:
    """Yield results, and call `tick` after so many of them.

    Examples
    --------
    >>> ticks = []
    >>> list(ticked("abcde", tick=lambda: ticks.append("tick"), every=2)), ticks
    (['a', 'b', 'c', 'd', 'e'], ['tick', 'tick'])
    """
    for count, result in enumerate(results, start=1):
        yield result
        if count % every == 0:
            tick()
