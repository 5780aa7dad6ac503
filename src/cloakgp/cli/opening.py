"""Open a release, whatever kind it is of."""

from __future__ import annotations

from pathlib import Path

from cloakgp.columns import AnyRelease
from cloakgp.release import LabelRelease, ManyRowsRelease, Release, ReleaseFileError
from cloakgp.release.bundle import kind_of
from cloakgp.release.many_rows_archive import KIND as MANY_ROWS_KIND


def open_release(path: Path) -> AnyRelease:
    """Return the release in a file, of regression or of classification.

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
    kind = kind_of(path)
    if kind == "regression":
        return Release.load(path)
    if kind == MANY_ROWS_KIND:
        return ManyRowsRelease.load(path)
    if kind == "classification":
        return LabelRelease.load(path)
    raise ReleaseFileError(
        f"{path} is a release of {kind}: the command line opens those of regression and "
        "classification"
    )
