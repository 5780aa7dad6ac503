"""Console of the command line: output, warnings, failures and signals of a command.

A command fails in one red line, which never shows a private value. Names of columns and classes
come from files. All that is written goes through `plain`, so that none of them is taken for markup,
or obeyed by the terminal. Signals that end a process are taken as exceptions: what was begun is
cleaned up on the way out.
"""

from __future__ import annotations

import functools
import io
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, ParamSpec, TextIO

import typer
from rich.console import Console, ConsoleDimensions
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cloakgp.utils.extras import MissingExtraError
from cloakgp.utils.formatting import kind_and_place, printable
from cloakgp.utils.warned import CloakWarning

if TYPE_CHECKING:
    from cloakgp.report.facts import Section

Parameters = ParamSpec("Parameters")

MIN_WIDTH, MAX_WIDTH = 60, 100
MAX_LABEL_WIDTH = 20
ENDING = (signal.SIGTERM, signal.SIGHUP)
# By custom, a command that a signal ended returns this and the signal's number.
ENDED_BY_SIGNAL = 128


class _Console(Console):
    """A console that wraps words and drops none, however narrow a terminal is."""

    @property  # type: ignore[misc]
    def size(self) -> ConsoleDimensions:
        """The width of the terminal, or the least for labels beside words."""
        width, height = super().size
        return ConsoleDimensions(max(width, MIN_WIDTH), height)


stdout = _Console(highlight=False)
stderr = _Console(stderr=True, highlight=False)


def plain(message: str, *, style: str = "") -> Text:
    r"""Return text without markup, and with escapes for control codes.

    Examples
    --------
    >>> plain("[red]\x1b[31m").plain
    '[red]\\x1b[31m'
    """
    return Text(printable(message), style=style)


def say(message: str, *, style: str = "") -> None:
    """Write one line of text."""
    stdout.print(plain(message, style=style), soft_wrap=True)


def explain(message: str) -> None:
    """Write a paragraph, wrapped to a width that reads well."""
    stdout.print(plain(message), width=min(stdout.width, MAX_WIDTH))


def print_sections(sections: Sequence[Section]) -> None:
    """Write sections to the terminal, labels beside their texts."""
    width = min(stdout.width, MAX_WIDTH)
    longest = max(len(fact.label) for section in sections for fact in section.facts)
    for section in sections:
        alarming = section.title == "NOT PRIVATE"
        colour = "red" if alarming else "cyan"
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style=colour, width=min(longest, MAX_LABEL_WIDTH))
        grid.add_column(style="bold red" if alarming else "")
        for fact in section.facts:
            grid.add_row(plain(fact.label), plain(fact.text))
        stdout.print(plain(section.title, style=f"bold {colour}"))
        stdout.print(Padding(grid, (0, 0, 1, 2)), width=width)


def warn(message: str) -> None:
    """Write one yellow line to standard error."""
    notice(f"Warning: {message}")


def notice(message: str) -> None:
    """Write one yellow line to standard error, on a line of its own."""
    stderr.print(plain(message, style="yellow"), soft_wrap=True)


@contextmanager
def showing_warnings() -> Iterator[None]:
    """Write warnings of this package as yellow lines; leave all other warnings as they are."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", CloakWarning)
        usual = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, CloakWarning):
                warn(str(message))
            else:
                usual(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield


def fails_plainly(command: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Make a command end in one red line and exit code 1 when something is wrong.

    Warnings of this package are lines on the way, whatever the command calls.

    Errors that were foreseen carry advice, and no private value. Of any other only its kind and
    its place are told: its message comes from unknown code, and might quote a value.

    Parameters
    ----------
    command : callable
    """

    @functools.wraps(command)
    def guarded(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        message = ""
        try:
            with showing_warnings():
                command(*args, **kwargs)
        except (typer.Exit, typer.Abort):
            raise
        except MemoryError:
            message = (
                "not enough memory for so many rows: a sparse model takes less, --inducing 200"
            )
        except OSError as error:
            message = _of_system(error)
        except (ValueError, MissingExtraError) as error:
            message = str(error)
        except Exception as error:
            message = _unforeseen(error)
        if message:
            stderr.print(plain(f"Error: {message}", style="bold red"), soft_wrap=True)
            raise typer.Exit(code=1)

    return guarded


def _of_system(error: OSError) -> str:
    """Return the refusal of the system, without its error number."""
    if error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)


def _unforeseen(error: Exception) -> str:
    return (
        f"something unforeseen happened ({kind_and_place(error)}). Nothing more is shown, to show "
        "no private value. Please report it."
    )


def replace_what_cannot_be_shown() -> None:
    """Write ? for letters that a terminal's encoding lacks, such as ε in ASCII."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def exit_on_signals() -> None:
    """Let SIGTERM and SIGHUP end a command as Ctrl-C does; a second one ends it at once.

    Signals that were ignored at the start of the command stay ignored.
    """
    for number in ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _exit)


def _exit(number: int, _: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)
    raise SystemExit(ENDED_BY_SIGNAL + number)
