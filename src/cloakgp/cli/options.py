"""Options that several commands share, alone or in dataclasses, and the releases that they name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from cloakgp.release import (
        MultiOutputRelease,
        OneOutputRelease,
        Release,
        ReleaseFileError,
    )

# What --interval may be.
INTERVALS = "auto", "off"
# What --calibrate may be, of several columns.
CALIBRATIONS = "auto", "off"
ONE_COLUMN = (
    "this command takes releases of one private column. `cloakgp show` describes every release, "
    "and `cloakgp predict` predicts from all but histograms"
)


def _print_json_schema(context: typer.Context, asked: bool) -> None:
    if asked:
        from cloakgp.report.summary import json_schema

        typer.echo(json_schema("plan" if context.info_name == "plan" else "show"), nl=False)
        raise typer.Exit


ReleaseFile = Annotated[Path, typer.Argument(help="A release.", metavar="RELEASE")]
JsonSchema = Annotated[
    bool,
    typer.Option(
        "--json-schema",
        callback=_print_json_schema,
        is_eager=True,
        help="Print the JSON Schema of what --json writes.",
    ),
]
Sql = Annotated[
    str,
    typer.Option(
        "--sql",
        help="Query that returns the table, for a database (.sqlite, or .url with its address).",
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a file that exists.")]
To = Annotated[Path, typer.Option("--to", "-o", help="Release to write.")]
Person = Annotated[
    str, typer.Option(help="Public column with the id of each row's person, as for release.")
]
Noise = Annotated[str, typer.Option(help="gaussian, laplace or auto, as for release.")]


def takes_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the fields of its dataclasses as parameters, in their place.

    Parameters
    ----------
    command : callable
        Each parameter that is annotated with a dataclass is passed an instance of it.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            parameters += _fields_of(groups[name])
        else:
            parameters.append(_keyword(name, hints[name], parameter.default))

    @functools.wraps(command)
    def filled(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{each.name: given.pop(each.name) for each in fields(group)})
        command(**given)

    filled.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    filled.__annotations__ = {each.name: each.annotation for each in parameters}
    return filled


def _fields_of(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [_keyword(each.name, hints[each.name], each.default) for each in fields(group)]


def _keyword(name: str, annotation: object, default: object) -> inspect.Parameter:
    default = inspect.Parameter.empty if default is MISSING else default
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
    )


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
    from cloakgp.release import Release
    from cloakgp.release.open import load

    release = load(path)
    if not isinstance(release, Release):
        raise _wrong_kind(path, release, ONE_COLUMN)
    return release


def open_drawn(path: Path) -> OneOutputRelease:
    """Return the release in a file, of one output and of any inputs; raise as `open_release`."""
    from cloakgp.release import OneOutputRelease
    from cloakgp.release.open import load

    release = load(path)
    return release if isinstance(release, OneOutputRelease) else open_release(path)


def open_predicting(path: Path) -> OneOutputRelease | MultiOutputRelease:
    """Return the release in a file, of any kind that predicts a table; raise as `open_release`."""
    from cloakgp.release import MultiOutputRelease, OneOutputRelease
    from cloakgp.release.open import load

    release = load(path)
    if not isinstance(release, OneOutputRelease | MultiOutputRelease):
        raise _wrong_kind(path, release, "it predicts no table")
    return release


def open_combinable(path: Path) -> Release | MultiOutputRelease:
    """Return the release in a file, of one private column or several; raise as `open_release`."""
    from cloakgp.release import MultiOutputRelease, Release
    from cloakgp.release.open import load

    release = load(path)
    if not isinstance(release, Release | MultiOutputRelease):
        raise _wrong_kind(path, release, "it is not combined")
    return release


def _wrong_kind(path: Path, release: object, otherwise: str) -> ReleaseFileError:
    from cloakgp.release import ReleaseFileError

    return ReleaseFileError(f"{path} holds a {type(release).__name__}: {otherwise}")
