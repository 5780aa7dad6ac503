"""Public errors: messages about public facts alone, which may be shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class PublicError(Exception):
    """An error about something public, in words that may be shown.

    Attributes
    ----------
    error : type
        Of the exception to be raised where the pass was asked for.
    """

    def __init__(self, message: str, *, error: type[Exception] = ValueError) -> None:
        super().__init__(message)
        self.error = error


@contextmanager
def public_errors() -> Iterator[None]:
    """Show the words of a ``ValueError``, or of a file that is missing: only where they are ours.

    Raises
    ------
    PublicError

    Examples
    --------
    >>> try:
    ...     with public_errors():
    ...         raise ValueError("column 'age' is empty in row 3")
    ... except PublicError as error:
    ...     print(error)
    column 'age' is empty in row 3
    """
    try:
        yield
    except FileNotFoundError as error:
        raise PublicError(str(error), error=FileNotFoundError) from None
    except ValueError as error:
        raise PublicError(str(error)) from None
