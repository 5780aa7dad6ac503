"""Means over draws with their standard errors, and how tables show both.

From fewer than `FEWEST` draws no standard error is told: that of two is less than half of what it
should be in one case of three.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from cloakgp.utils.arrays import Array

FEWEST = 5


def standard_error(draws: Array) -> float | None:
    """Return the standard error of the mean of draws, None where there are too few to tell.

    Parameters
    ----------
    draws : array of shape (draws,)

    Examples
    --------
    >>> standard_error(np.array([1.0, 3.0, 2.0, 1.0, 3.0])).__round__(3)
    0.447
    >>> standard_error(np.array([1.0, 3.0]))
    """
    if len(draws) < FEWEST:
        return None
    return float(draws.std(ddof=1) / np.sqrt(len(draws)))


def mean_and_error(errors: Array) -> tuple[float, float | None]:
    """Return the mean over tables and draws, and its standard error with the tables as they are.

    Parameters
    ----------
    errors : array of shape (tables, draws)

    Returns
    -------
    float, float or None
        No error where there are too few draws to tell (`experiments.spread`).

    Examples
    --------
    >>> mean_and_error(np.array([[1.0, 3.0, 1.0, 3.0, 2.0], [2.0, 2.0, 2.0, 2.0, 2.0]]))[0]
    2.0
    """
    found = [standard_error(one) for one in errors]
    known = [one for one in found if one is not None]
    error = float(np.sqrt(np.square(known).sum()) / len(found)) if known else None
    return float(errors.mean()), error


def with_error(mean: float, error: float | None, form: str = ".2f") -> str:
    """Return a mean with its standard error in brackets, if there is one to tell.

    Parameters
    ----------
    mean : float
    error : float or None
    form : str
        How the mean is printed; the error likewise, without a sign.

    Examples
    --------
    >>> with_error(0.25, 0.125, "+.2f"), with_error(0.25, None)
    ('+0.25 (0.12)', '0.25')
    """
    return f"{mean:{form}}" if error is None else f"{mean:{form}} ({error:{form.lstrip('+')}})"


Case = TypeVar("Case")


def draw_by_draw(
    cases: Sequence[Case],
    *,
    draws: int,
    measure: Callable[[Case, int], Mapping[str, tuple[float, ...]]],
    tick: Callable[[], object],
) -> dict[tuple[Case, str], list[tuple[float, ...]]]:
    """Return what each way measures of each case, draw by draw.

    Parameters
    ----------
    cases : sequence
    draws : int
    measure : callable
        A case and the number of a draw → the measures of each way.
    tick : callable
        Called after each draw.

    Examples
    --------
    >>> draw_by_draw("a", draws=2, measure=lambda _, draw: {"way": (draw,)}, tick=lambda: None)
    {('a', 'way'): [(0,), (1,)]}
    """
    found: dict[tuple[Case, str], list[tuple[float, ...]]] = {}
    for case in cases:
        for draw in range(draws):
            for way, values in measure(case, draw).items():
                found.setdefault((case, way), []).append(values)
            tick()
    return found


def means_with_errors(draws: Sequence[Sequence[float]]) -> list[str]:
    """Return means of measures over draws, each with its standard error.

    Parameters
    ----------
    draws : sequence of sequences of float
        The measures of each draw.

    Examples
    --------
    >>> means_with_errors([(1.0, 2.0), (3.0, 2.0)])
    ['2.00', '2.00']
    """
    columns = np.array(draws).T
    return [with_error(float(one.mean()), standard_error(one)) for one in columns]
