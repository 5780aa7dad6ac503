"""Open a release that the command line predicts from and draws."""

from __future__ import annotations

from pathlib import Path

from cloakgp.columns import AnyRelease
from cloakgp.opening import load
from cloakgp.release import ReleaseFileError


def open_release(path: Path) -> AnyRelease:
    """Return the release in a file, of one number or of a class.

    Parameters
    ----------
    path : Path

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ReleaseFileError
        If it is no release file, or one of another kind.
    """
    release = load(path)
    if not isinstance(release, AnyRelease):
        raise ReleaseFileError(
            f"{path} holds a {type(release).__name__}: the command line shows it, and predicts "
            "from releases of one number or of a class alone"
        )
    return release
