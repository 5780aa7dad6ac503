"""Brute force over all neighbours: how much privacy does a mechanism really spend?"""

import importlib
import math
from collections.abc import Callable

import numpy as np
import pytest

# Where every mechanism meets noise.
door = importlib.import_module("cloakgp.privacy.grid")

# The achieved μ must come this near the claimed one: noise beyond it would be waste.
ACHIEVED_SHARE = 0.999


def spent_over_neighbours(
    run: Callable[[np.ndarray], float], y: np.ndarray, *, bounds: tuple[float, float]
) -> tuple[float, float]:
    """Return (largest μ over all neighbours of y, claimed μ).

    Replaces the sampler, records the integers to which noise would be added for y and for each data
    set in which one output moved to either bound, and divides their distance by the noise scale.
    The distances are sums of Python integers: exact.

    Parameters
    ----------
    run : callable
        Runs the mechanism on outputs and returns the μ that it claims.
    y : array of shape (N,)
    bounds : (float, float)
    """
    seen: list[tuple[np.ndarray, float]] = []

    def record(integers, *, scale, sensitivity):  # noqa: ARG001
        seen.append((integers, scale))
        return integers

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cloakgp.privacy.noise.gaussian.add_discrete_gaussian", record)
        claimed = run(y)
        for row in range(len(y)):
            for end in bounds:
                if y[row] == end:
                    continue
                neighbour = np.array(y, dtype=np.float64)
                neighbour[row] = end
                run(neighbour)
    base, scale = seen[0]
    squares = [
        sum((int(a) - int(b)) ** 2 for a, b in zip(base, other, strict=True))
        for other, _ in seen[1:]
    ]
    return math.sqrt(max(squares)) / scale, claimed
