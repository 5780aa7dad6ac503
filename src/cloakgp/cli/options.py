"""Options that several commands share, and the releases that they name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from cloakgp.release import MultiOutputRelease, Release, StatisticsRelease

# What --interval may be.
INTERVALS = "auto", "off"

ReleaseFile = Annotated[Path, typer.Argument(help="A release.", metavar="RELEASE")]
Sql = Annotated[
    str,
    typer.Option(
        "--sql",
        help="Query that returns the table, for a database (.sqlite, or .url with its address).",
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a file that exists.")]


def open_release(path: Path) -> Release:
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
    from cloakgp.release import Release, ReleaseFileError
    from cloakgp.release.open import load

    release = load(path)
    if not isinstance(release, Release):
        raise ReleaseFileError(
            f"{path} holds a {type(release).__name__}: the command line shows it, and predicts "
            "from releases of one number or of a class alone"
        )
    return release


def open_predicting(path: Path) -> Release | MultiOutputRelease | StatisticsRelease:
    """Return the release in a file, of any kind that predicts a table.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ReleaseFileError
        If it is no release file, or one of another kind.
    """
    from cloakgp.release import (
        MultiOutputRelease,
        Release,
        ReleaseFileError,
        StatisticsRelease,
    )
    from cloakgp.release.open import load

    release = load(path)
    if not isinstance(release, Release | MultiOutputRelease | StatisticsRelease):
        raise ReleaseFileError(f"{path} holds a {type(release).__name__}: it predicts no table")
    return release


def open_combinable(path: Path) -> Release | MultiOutputRelease:
    """Return the release in a file, of one private column or of several.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ReleaseFileError
        If it is no release file, or one of another kind.
    """
    from cloakgp.release import MultiOutputRelease, Release, ReleaseFileError
    from cloakgp.release.open import load

    release = load(path)
    if not isinstance(release, Release | MultiOutputRelease):
        raise ReleaseFileError(f"{path} holds a {type(release).__name__}: it is not combined")
    return release
