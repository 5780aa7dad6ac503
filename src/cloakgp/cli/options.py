"""Options that several commands share, and how their values are written."""

from __future__ import annotations

from typing import Annotated

import typer

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
