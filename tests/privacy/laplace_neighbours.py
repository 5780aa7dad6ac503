"""Brute force over all neighbours, for Laplace noise: the largest loss of any outcome."""

import importlib
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

laplace_door = importlib.import_module("cloakgp.privacy.laplace")


def loss_over_neighbours(
    run: Callable[[np.ndarray], float], y: np.ndarray, *, bounds: tuple[float, float]
) -> tuple[Fraction, float]:
    """Return (largest privacy loss over all neighbours of y, claimed ε).

    Replaces the sampler, records the integers to which noise would be added for y and for each data
    set in which one output moved to either bound, and divides their ℓ1 distance by the noise scale:
    some outcome attains that ratio. Python integers and fractions: exact.

    Parameters
    ----------
    run : callable
        Runs the mechanism on outputs and returns the ε that it claims.
    y : array of shape (N,)
    bounds : (float, float)
    """
    seen: list[tuple[np.ndarray, float]] = []

    def record(integers, *, scale, sensitivity):  # noqa: ARG001
        seen.append((integers, scale))
        return integers

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(laplace_door, "add_discrete_laplace", record)
        claimed = run(y)
        for row in range(len(y)):
            for end in bounds:
                neighbour = np.array(y, dtype=np.float64)
                neighbour[row] = end
                run(neighbour)
    base, scale = seen[0]
    moves = [
        sum(abs(int(a) - int(b)) for a, b in zip(base, other, strict=True)) for other, _ in seen[1:]
    ]
    return Fraction(max(moves)) / Fraction(scale), claimed
