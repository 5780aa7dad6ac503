"""Signals that end a process, taken as exceptions: what was begun is cleaned up on the way out."""

from __future__ import annotations

import signal
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGHUP)
# By custom, a command that a signal ended returns this and the signal's number.
ENDED_BY_SIGNAL = 128


def exit_on_signals() -> None:
    """Let SIGTERM and SIGHUP end a command as Ctrl-C does; a second one ends it at once.

    Signals that whoever started the command has it ignore stay ignored.
    """
    for number in ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _exit)


def _exit(number: int, _: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)
    raise SystemExit(ENDED_BY_SIGNAL + number)
