"""Exceptions that leave a function that was given private values, without those values.

A traceback keeps the frames of all calls that an exception went through, and each frame its local
variables: crash reporters, debuggers and loggers show them. Here the frames stay, so that it can be
seen where something failed, and lose their variables.

What cannot be done: the frames of whoever called keep their own variables, and messages are what
they are; those of this package quote no private value.
"""

from __future__ import annotations

import functools
import sys
import traceback
from collections.abc import Callable
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def forget_on_failure(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Make the exceptions of a function forget its arguments, and all that was made of them.

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
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            # This frame is in the traceback too.
            del args, kwargs
            forget_locals(error, but=handled)
            raise

    return guarded


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
        traceback.clear_frames(found.__traceback__)
        # What an attribute was looked for in.
        if isinstance(found, AttributeError):
            found.obj = None
        pending += [one for one in (found.__cause__, found.__context__) if one is not None]
        if isinstance(found, BaseExceptionGroup):
            pending += found.exceptions
