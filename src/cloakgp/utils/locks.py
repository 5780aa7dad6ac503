"""Locks of folders: one process at a time goes on with what a folder holds."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cloakgp.utils.files import PERSONAL

LOCK = ".lock"


@contextmanager
def locked_folder(path: Path) -> Iterator[None]:
    """Keep other processes out of a folder, which is made if it is not there.

    Parameters
    ----------
    path : Path

    Raises
    ------
    BlockingIOError
        If another process is in it.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, locked_folder(Path(folder)):
    ...     (Path(folder) / LOCK).exists()
    True
    """
    path.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, PERSONAL)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        # The system frees the lock with it.
        os.close(descriptor)
