"""Values of options as people write them: names, choices, numbers and ranges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from cloakgp.utils.names import AUTO, NoiseChoice

Name = TypeVar("Name", bound=str)


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
    parts = [name.strip() for name in listed.split(",")]
    if not all(parts):
        raise ValueError(f"{listed!r} is no list of names: write them with commas, as {example}")
    return parts


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


def noise_choice(given: str, *, option: str) -> NoiseChoice:
    """Return the noise that was given by name, one of the registered ones, or the choice of one.

    Parameters
    ----------
    given : str
    option : str
        That it was given for.

    Examples
    --------
    >>> noise_choice("auto", option="--noise")
    'auto'
    """
    if given == AUTO:
        # The usual one: errors in other options come at once, before NumPy is there.
        return AUTO
    from cloakgp.privacy.noise import NOISES

    return one_of((AUTO, *NOISES), given, option=option)


def declared_ranges(given: Sequence[str], *, option: str) -> dict[str, tuple[float, float]]:
    """Return columns with their declared ranges, in the order given.

    Parameters
    ----------
    given : sequence of str
        Each as height=100:220.
    option : str
        That they were given for.

    Examples
    --------
    >>> declared_ranges(["height=100:220", "weight=30:150"], option="--output")
    {'height': (100.0, 220.0), 'weight': (30.0, 150.0)}
    """
    ranges: dict[str, tuple[float, float]] = {}
    for each in given:
        name, _, ends = each.rpartition("=")
        low, _, high = ends.partition(":")
        try:
            pair = float(low), float(high)
        except ValueError:
            pair = (1.0, 0.0)
        if not name or not pair[0] < pair[1]:
            raise ValueError(f"{option} {each}: write a column and its range, as height=100:220")
        if name in ranges:
            raise ValueError(f"{option} names {name} twice")
        ranges[name] = pair
    return ranges


def one_of_or_none(choices: Sequence[Name], given: str, *, option: str) -> Name | None:
    """Return the choice that was given by name, None for an empty text.

    Examples
    --------
    >>> one_of_or_none(("log", "logit"), "", option="--transform")
    """
    return one_of(choices, given, option=option) if given else None


def positive_numbers(listed: str, *, option: str) -> tuple[float, ...]:
    """Return the positive numbers in a list with commas, none of an empty text.

    Examples
    --------
    >>> positive_numbers("15,20", option="--lengthscale")
    (15.0, 20.0)
    """
    if not listed:
        return ()
    try:
        numbers = tuple(float(number) for number in listed.split(","))
    except ValueError:
        numbers = ()
    if not numbers or not all(0 < number < float("inf") for number in numbers):
        raise ValueError(f"{option} takes positive numbers with commas, such as 15 or 15,20")
    return numbers
