"""Values of options as people write them: names, choices, numbers and ranges."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from math import isfinite
from typing import Literal, TypeVar

from cloakgp.utils.names import AUTO, BandChoice, NoiseChoice

Name = TypeVar("Name", bound=str)


def names(listed: str, *, example: str = "age,weight") -> list[str]:
    """Return the names in a list with commas; one that has commas itself stands in quotes.

    Parameters
    ----------
    listed : str
    example : str
        Of such a list, for advice.

    Examples
    --------
    >>> names("age, weight")
    ['age', 'weight']
    >>> names('age,"income, in EUR"')
    ['age', 'income, in EUR']
    """
    rows = list(csv.reader([listed], skipinitialspace=True))
    parts = [name.strip() for name in rows[0]] if len(rows) == 1 else []
    if not parts or not all(parts):
        raise ValueError(
            f"{listed!r} is no list of names: write them with commas, as {example}, and one that "
            "has commas in quotes, as 'age,\"income, in EUR\"'"
        )
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


def count_or_auto(given: str | None, *, option: str) -> int | str | None:
    """Return a whole number, "auto", or None if nothing was given.

    Parameters
    ----------
    given : str or None
    option : str
        That it was given for.

    Examples
    --------
    >>> count_or_auto("200", option="--inducing"), count_or_auto("auto", option="--inducing")
    (200, 'auto')
    """
    if given is None or given == AUTO:
        return given
    try:
        return int(given)
    except ValueError:
        raise ValueError(f"{option} must be a whole number or {AUTO}, got {given!r}") from None


def band(given: str, *, option: str) -> BandChoice:
    """Return to how many sds a later visit clips: "auto", a number, or None for the bounds alone.

    Parameters
    ----------
    given : str
    option : str
        That it was given for.

    Examples
    --------
    >>> [band(given, option="--band") for given in ("auto", "2", "0")]
    ['auto', 2.0, None]
    """
    if given == "auto":
        return "auto"
    try:
        width = float(given)
    except ValueError:
        width = -1.0
    if not 0 <= width < float("inf"):
        raise ValueError(f"{option} must be {AUTO}, 0 or a number of sds, got {given}")
    return width or None


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


def calibration(given: str, *, option: str) -> Literal["auto", False] | float:
    """Return how intervals are calibrated: by itself, not, or by a share of the rows.

    Parameters
    ----------
    given : str
    option : str

    Examples
    --------
    >>> calibration("off", option="--calibrate"), calibration("0.1", option="--calibrate")
    (False, 0.1)
    """
    if given == "auto":
        return "auto"
    if given == "off":
        return False
    try:
        share = float(given)
    except ValueError:
        raise ValueError(
            f"{option} is auto, off, or a share of the rows such as 0.1, not {given!r}"
        ) from None
    from cloakgp.fitting.margins import kept_share

    return kept_share(share)


def positive_numbers(listed: str, *, option: str) -> tuple[float, ...]:
    """Return the positive numbers in a list with commas, none of an empty text.

    Examples
    --------
    >>> positive_numbers("15,20", option="--lengthscale")
    (15.0, 20.0)
    """
    if not listed:
        return ()
    numbers = _numbers(listed)
    if not numbers or not all(0 < number < float("inf") for number in numbers):
        raise ValueError(f"{option} takes positive numbers with commas, such as 15 or 15,20")
    return numbers


def shares(listed: str, *, option: str) -> tuple[float, ...]:
    """Return the shares in a list with commas, each between 0 and 1; none of an empty text.

    Examples
    --------
    >>> shares("0.1,0.5", option="--quantiles")
    (0.1, 0.5)
    """
    if not listed:
        return ()
    numbers = _numbers(listed)
    if not numbers or not all(0 < number < 1 for number in numbers):
        raise ValueError(
            f"{option} takes numbers between 0 and 1 with commas, such as 0.9 for 90 %, "
            f"got {listed!r}"
        )
    return numbers


def thresholds(listed: str, *, option: str) -> tuple[float, ...] | dict[str, tuple[float, ...]]:
    """Return the thresholds in a list with commas, by output where they name one.

    Parameters
    ----------
    listed : str
        As 180,200 or height=180,weight=80.
    option : str
        That they were given for.

    Examples
    --------
    >>> thresholds("180,200", option="--above")
    (180.0, 200.0)
    >>> thresholds("height=180,weight=80,height=200", option="--above")
    {'height': (180.0, 200.0), 'weight': (80.0,)}
    """
    if not listed:
        return ()
    if "=" not in listed:
        if numbers := _numbers(listed):
            return numbers
        raise ValueError(f"{option} takes numbers with commas, such as 180, got {listed!r}")
    found: dict[str, tuple[float, ...]] = {}
    for each in listed.split(","):
        name, _, number = each.rpartition("=")
        name, numbers = name.strip(), _numbers(number)
        if not name or not numbers:
            raise ValueError(
                f"{option} takes numbers, or outputs with numbers, such as height=180,weight=80, "
                f"got {listed!r}"
            )
        found[name] = (*found.get(name, ()), *numbers)
    return found


def _numbers(listed: str) -> tuple[float, ...]:
    """Return the numbers in a list with commas; none if these are not all numbers."""
    try:
        numbers = tuple(map(float, listed.split(",")))
    except ValueError:
        return ()
    return numbers if all(map(isfinite, numbers)) else ()
