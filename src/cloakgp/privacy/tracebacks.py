"""Exceptions that leave a function that was given private values, without those values.

A traceback keeps the frames of all calls that an exception went through, and each frame its local
variables: crash reporters, debuggers and loggers show them. Here the frames stay, so that it can be
seen where something failed, and lose their variables. A function that was defined within another
one, a lambda or a comprehension keeps the variables of that one in cells, and is itself kept by its
frame: so the cells that frames of this package made are emptied too.

What cannot be done: the frames of whoever called keep their own variables, and messages are what
they are; those of this package quote no private value.
"""

from __future__ import annotations

import functools
import gc
import sys
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import CellType, FrameType, FunctionType
from typing import ParamSpec, TypeVar

from cloakgp.privacy.tally import Drawn, describe_spent, is_tallied, tallied

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

# Of others, cells may be in use still: by a cluster's event loop, say.
PACKAGE = __name__.split(".", maxsplit=1)[0]


def forget_on_failure(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Make the exceptions of a function forget its arguments, and all that was made of them.

    If noise was drawn before, a note of the exception says what it spent.

    For every public function and method that is given private values.

    Parameters
    ----------
    function : callable

    Examples
    --------
    >>> @forget_on_failure
    ... def fit(y):
    ...     raise ValueError("y must be numeric")
    >>> try:
    ...     fit([123.456])
    ... except ValueError as error:
    ...     frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    >>> "123.456" in str([frame.f_locals for frame in frames[1:]])
    False
    """

    @functools.wraps(function)
    def guarded(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        # What the caller is handling is the context of what is raised here, and not ours to clear.
        handled = sys.exception()
        # The call that is not within another says what was spent.
        with _outermost_tally() as drawn:
            try:
                return function(*args, **kwargs)
            except BaseException as error:
                # This frame is in the traceback too.
                del args, kwargs
                forget_locals(error, but=handled)
                if drawn:
                    error.add_note(
                        f"Noise had been drawn before this: {describe_spent(drawn)} counts as "
                        "spent, though nothing was returned."
                    )
                raise

    return guarded


def _outermost_tally() -> AbstractContextManager[list[Drawn]]:
    return nullcontext([]) if is_tallied() else tallied()


def forget_locals(error: BaseException, *, but: BaseException | None = None) -> None:
    """Empty the frames of an exception, and of all that led to it.

    Lines of code stay. Frames that are still running keep their variables.

    Parameters
    ----------
    error : BaseException
    but : BaseException, optional
        Is left alone, and what led to it.

    Examples
    --------
    >>> def fail():
    ...     secret = 12.5
    ...     raise ValueError("no")
    >>> try:
    ...     fail()
    ... except ValueError as error:
    ...     forget_locals(error)
    ...     error.__traceback__.tb_next.tb_frame.f_locals
    {}
    """
    pending, seen = [error], {id(but)}
    while pending:
        found = pending.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        for frame, _ in traceback.walk_tb(found.__traceback__):
            _empty(frame)
        # What an attribute was looked for in.
        if isinstance(found, AttributeError):
            found.obj = None
        pending += [one for one in (found.__cause__, found.__context__) if one is not None]
        if isinstance(found, BaseExceptionGroup):
            pending += found.exceptions


def _empty(frame: FrameType) -> None:
    """Take the variables from a frame, and from the functions that it defined."""
    cells = _own_cells(frame)
    try:
        frame.clear()
    except RuntimeError:
        # It is still running.
        return
    for cell in cells:
        # An empty one may be emptied again.
        cell.cell_contents = None


def _own_cells(frame: FrameType) -> list[CellType]:
    """Return the cells that a frame of this package made, rather than found around it."""
    if str(frame.f_globals.get("__name__")).split(".", maxsplit=1)[0] != PACKAGE:
        return []
    held = gc.get_referents(frame)
    around = [
        id(cell)
        for one in held
        if isinstance(one, FunctionType) and one.__code__ is frame.f_code
        for cell in one.__closure__ or ()
    ]
    if len(around) < len(frame.f_code.co_freevars):
        return []
    return [one for one in held if isinstance(one, CellType) and id(one) not in around]
