"""Warnings of this package on the command line: the sentences alone, as they are raised."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from cloakgp.checks import PrivacyParameterWarning
from cloakgp.cli.console import warn
from cloakgp.design import DesignGapWarning
from cloakgp.planning import SparseModelWarning

OURS = (PrivacyParameterWarning, SparseModelWarning, DesignGapWarning)


@contextmanager
def showing_warnings() -> Iterator[None]:
    """Write what this package warns of as yellow lines; leave all other warnings as they are."""
    with warnings.catch_warnings():
        for category in OURS:
            warnings.simplefilter("always", category)
        usual = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, OURS):
                warn(str(message))
            else:
                usual(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield
