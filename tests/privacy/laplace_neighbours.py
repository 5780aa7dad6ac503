"""Brute force over all neighbours, for Laplace noise: the largest loss of any outcome."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from recording import Draws, recorded


def losses_between(one: Draws, other: Draws) -> list[Fraction]:
    """Return, of every draw, the ℓ1 distance of the integers over the noise scale: exact.

    Some outcome attains that ratio of probabilities.
    """
    assert [scale for _, scale in one] == [scale for _, scale in other]
    return [
        sum(abs(int(a) - int(b)) for a, b in zip(here, there, strict=True)) / Fraction(scale)
        for (here, scale), (there, _) in zip(one, other, strict=True)
    ]


def furthest(
    run: Callable[[Any], Any],
    neighbourhoods: Iterable[Sequence[Any]],
    *,
    public: Callable[[Any], Any] = lambda _: None,
) -> tuple[Any, list[Fraction], Fraction]:
    """Try all neighbours, with what is published held equal.

    Returns the result for the first data set, the greatest loss of every draw, and the greatest of
    all draws together.

    Parameters
    ----------
    run : callable
        From a data set to a result.
    neighbourhoods : iterable of sequences of data sets
        Any two of one sequence are neighbours.
    public : callable
        From a result to what must be the same for all neighbours, to the last bit.
    """
    result: Any = None
    published: list[np.ndarray] | None = None
    shown = b""
    alone: list[Fraction] = []
    together = Fraction(0)
    # What stands in several neighbourhoods is run once.
    seen: dict[bytes, Draws] = {}
    for neighbourhood in neighbourhoods:
        tried = []
        for data in neighbourhood:
            key = pickle.dumps(data)
            if key not in seen:
                found, draws = recorded(lambda: run(data), noise="laplace", published=published)  # noqa: B023
                if published is None:
                    result, published = found, [integers for integers, _ in draws]
                    alone = [Fraction(0)] * len(draws)
                    shown = pickle.dumps(public(result))
                assert pickle.dumps(public(found)) == shown, "it shows outputs"
                seen[key] = draws
            tried.append(seen[key])
        for one, other in itertools.combinations(tried, 2):
            losses = losses_between(one, other)
            alone = [max(pair) for pair in zip(alone, losses, strict=True)]
            together = max(together, sum(losses, Fraction(0)))
    assert alone, "no noise was drawn"
    return result, alone, together


def loss_over_neighbours(
    run: Callable[[np.ndarray], float], y: np.ndarray, *, bounds: tuple[float, float]
) -> tuple[Fraction, float]:
    """Return (largest privacy loss over all neighbours of y, claimed ε): every row to either bound.

    Parameters
    ----------
    run : callable
        Runs the mechanism on outputs and returns the ε that it claims.
    y : array of shape (N,)
    bounds : (float, float)
    """
    outputs = np.array(y, dtype=np.float64)
    claimed, _, spent = furthest(
        run, ([outputs, *moved(outputs, [row], bounds=bounds)] for row in range(len(outputs)))
    )
    return spent, claimed


def moved(
    y: np.ndarray, rows: Sequence[int], *, bounds: Sequence[float] | Sequence[Sequence[float]]
) -> list[np.ndarray]:
    """Return y with some rows at every corner of their bounds."""
    limits = np.broadcast_to(bounds, (len(y), 2))
    found = []
    for corner in itertools.product((0, 1), repeat=len(rows)):
        changed = np.array(y, dtype=np.float64)
        changed[list(rows)] = limits[list(rows), list(corner)]
        found.append(changed)
    return found
