"""Brute force over all values that one output, or a group's outputs, can take, in every stage."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from recording import Draws, recorded


def squared_moves(one: Draws, other: Draws) -> list[float]:
    """Return, of every draw, how far two data sets are apart: squared, in units of its noise."""
    assert [scale for _, scale in one] == [scale for _, scale in other]
    return [
        sum((int(a) - int(b)) ** 2 for a, b in zip(here, there, strict=True)) / scale**2
        for (here, scale), (there, _) in zip(one, other, strict=True)
    ]


def ends_of(limits: tuple[float, float]) -> Callable[[int], list[float]]:
    """Return for every row both bounds; for the first also values beyond, and between."""
    lo, hi = limits
    more = [1e300, -1e300, -0.37, 1.9, float(np.nextafter(hi, lo))]
    return lambda row: [lo, hi, *(more if row == 0 else ())]


def furthest(
    run: Callable[[np.ndarray], Any],
    y: np.ndarray,
    *,
    values: Callable[[int], Iterable[float]],
    together: Iterable[Sequence[int]] | None = None,
    public: Callable[[Any], Any] = lambda _: None,
) -> tuple[Any, list[float], float]:
    """Try all neighbours, with what is published held equal.

    Returns the result for y, the greatest move of every draw and that of all of them together, in
    units of their noise.

    Parameters
    ----------
    run : callable
        From outputs to a result.
    y : array of shape (N,)
    values : callable
        From a row to the values that its output takes. Any two of them are neighbours.
    together : sequences of rows, optional
        Which outputs change at once; every one on its own if not given.
    public : callable
        From a result to what must be the same for all neighbours, to the last bit.
    """
    result, base = recorded(lambda: run(y), noise="gaussian")
    published = [integers for integers, _ in base]
    shown = pickle.dumps(public(result))
    # What stands in the neighbourhoods of several rows is run once.
    seen = {np.array(y, dtype=np.float64).tobytes(): base}
    alone, all_of_them = np.zeros(len(base)), 0.0
    for rows in [[row] for row in range(len(y))] if together is None else together:
        tried = []
        for taken in itertools.product(*(list(values(row)) for row in rows)):
            neighbour = np.array(y, dtype=np.float64)
            neighbour[list(rows)] = taken
            key = neighbour.tobytes()
            if key not in seen:
                other, seen[key] = recorded(
                    lambda: run(neighbour),  # noqa: B023
                    noise="gaussian",
                    published=published,
                )
                assert pickle.dumps(public(other)) == shown, "it shows outputs"
            tried.append(seen[key])
        for one, other in itertools.combinations(tried, 2):
            squares = squared_moves(one, other)
            alone = np.maximum(alone, squares)
            all_of_them = max(all_of_them, math.fsum(squares))
    return result, list(np.sqrt(alone)), math.sqrt(all_of_them)
