"""Brute force over all neighbours that differ in a whole unit: every vertex, and inner points."""

import itertools
import math

import numpy as np
import pytest


def spent_over_units(run, y, *, members, bounds, seed=0, inner=5):
    """Return (largest μ between data sets that differ in one unit's entries, claimed μ).

    As `neighbours.spent_over_neighbours`, for neighbours in which all the named entries change at
    once: from every vertex of the bounds to the opposite one (by convexity the furthest), and
    between random inner points.

    Parameters
    ----------
    run : callable
        Runs the mechanism on flat outputs and returns the μ that it claims.
    y : array of shape (N,)
    members : sequence of arrays
        The entries of each unit.
    bounds : array of shape (N, 2)
        Of each entry.
    """
    seen = []

    def record(integers, *, scale, sensitivity):  # noqa: ARG001
        seen.append((integers, scale))
        return integers

    rng = np.random.default_rng(seed)
    largest = 0.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cloakgp.privacy.noise.gaussian.add_discrete_gaussian", record)
        claimed = run(y)
        for entries in members:
            lo, hi = bounds[entries].T
            corners = [np.array(one) for one in itertools.product((0.0, 1.0), repeat=len(entries))]
            pairs = [(corner, 1 - corner) for corner in corners]
            pairs += [tuple(rng.uniform(size=(2, len(entries)))) for _ in range(inner)]
            for pair in pairs:
                for share in pair:
                    changed = np.array(y, dtype=np.float64)
                    changed[entries] = lo + share * (hi - lo)
                    run(changed)
                (one, scale), (other, _) = seen[-2:]
                square = sum((int(a) - int(b)) ** 2 for a, b in zip(one, other, strict=True))
                largest = max(largest, math.sqrt(square) / scale)
    return largest, claimed
