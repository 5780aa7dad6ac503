"""Progress: a bar on a terminal, and a line now and then in a log or a pipe."""

from __future__ import annotations

import sys
import threading
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
# A step that took less was kept from before: it does not tell how long others take.
KEPT = 0.01


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
        lines = Lines(what, steps=steps, seconds=SECONDS)
        with lines.spoken():
            yield lines.tick
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
    """Lines that say how far something is: after a while, now and then, and in the end.

    Parameters
    ----------
    what : str
    steps : int
    seconds : float
        Between two lines.
    """

    def __init__(self, what: str, *, steps: int, seconds: float = SECONDS) -> None:
        self.what, self.steps, self.seconds = what, steps, seconds
        self.done, self.worked, self.started = 0, 0, time.monotonic()
        self._last = self.started
        self._ended = threading.Event()

    def tick(self) -> None:
        """Count a step."""
        now = time.monotonic()
        self.done += 1
        self.worked += now - self._last >= KEPT
        self._last = now

    def line(self) -> str:
        """Return how far it is, in words.

        Examples
        --------
        >>> Lines("folds", steps=14).line()
        'folds: 0 of 14, 0 s'
        """
        took = time.monotonic() - self.started
        said = f"{self.what}: {self.done} of {self.steps}, {took:.0f} s"
        if not self.worked:
            return said
        left = took * max(self.steps - self.done, 0) / self.worked
        return f"{said}, some {left:.0f} s left"

    @contextmanager
    def spoken(self) -> Iterator[None]:
        """Say lines while something runs, however long a step takes."""
        speaker = threading.Thread(target=self._speak, daemon=True)
        speaker.start()
        try:
            yield
        finally:
            self._ended.set()
            speaker.join()
            if time.monotonic() - self.started >= self.seconds:
                self._say()

    def _speak(self) -> None:
        while not self._ended.wait(self.seconds):
            self._say()

    def _say(self) -> None:
        print(self.line(), file=sys.stderr, flush=True)


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
