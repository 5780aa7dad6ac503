"""Options that several commands share, and how their values are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeVar

import typer

Name = TypeVar("Name", bound=str)

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a file that exists.")]


def names(listed: str, *, example: str = "age,weight") -> list[str]:
    """Return the names in a list with commas.

    Parameters
    ----------
    listed : str
    example : str
        Of such a list, for advice.

    Examples
    --------
    >>> names("age, weight")
    ['age', 'weight']
    """
    found = [name.strip() for name in listed.split(",")]
    if not all(found):
        raise ValueError(f"{listed!r} is no list of names: write them with commas, as {example}")
    return found


def one_of(choices: Sequence[Name], given: str, *, option: str, company: str = "") -> Name:
    """Return the choice that was given by name.

    Parameters
    ----------
    choices : sequence of str
    given : str
    option : str
        That it was given for.
    company : str
        What these choices go with, for advice.

    Examples
    --------
    >>> one_of(("map", "none"), "none", option="--learn")
    'none'
    """
    for choice in choices:
        if given == choice:
            return choice
    raise ValueError(f"{option} must be one of {', '.join(choices)}{company}, got {given!r}")


def positive_numbers(listed: str, *, option: str) -> list[float]:
    """Return the positive numbers in a list with commas.

    Examples
    --------
    >>> positive_numbers("15,20", option="--lengthscale")
    [15.0, 20.0]
    """
    try:
        found = [float(number) for number in listed.split(",")]
    except ValueError:
        found = []
    if not found or not all(0 < number < float("inf") for number in found):
        raise ValueError(f"{option} takes positive numbers with commas, such as 15 or 15,20")
    return found
