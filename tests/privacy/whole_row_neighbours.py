"""Neighbours of a table of whole rows, and how far they move the integers that get noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloakgp.models.features import InputBox

BOX = InputBox((-1.0, 10.0), (3.0, 20.0))
BOUNDS = (100.0, 180.0)
# Of inputs, as shares of the range of each, and of outputs: ends, the middle, and far beyond.
PLACES = (0.0, 0.13, 0.5, 1.0, -1e9, 1e9)
OUTPUTS = (*BOUNDS, 140.0, 117.3, -1e300, 1e300)


def table(rng, rows=12, *, box=BOX):
    """Inputs and outputs inside and well outside their ranges."""
    lo, hi = np.asarray(box.lo), np.asarray(box.hi)
    X = lo + rng.uniform(-0.5, 1.5, size=(rows, len(lo))) * (hi - lo)
    return X, rng.uniform(60.0, 220.0, size=rows)


def extreme_rows(rng, *, outputs=OUTPUTS):
    """Rows at ends, in the middle and far beyond, and some at random."""
    lo, hi = np.asarray(BOX.lo), np.asarray(BOX.hi)
    shares = [np.array([one, other]) for one in PLACES for other in PLACES]
    shares += list(rng.uniform(size=(10, 2)))
    return [(lo + share * (hi - lo), output) for share in shares for output in outputs]


def neighbours_of(X, y, *, neighbours, rng, outputs=OUTPUTS):
    """Replace row 0 by each of these; or add it, or remove any row."""
    rows = extreme_rows(rng, outputs=outputs)
    if neighbours == "replace":
        return [
            (np.vstack([row, X[1:]]), np.concatenate([[output], y[1:]])) for row, output in rows
        ]
    added = [(np.vstack([row, X]), np.concatenate([[output], y])) for row, output in rows]
    removed = [(np.delete(X, row, axis=0), np.delete(y, row)) for row in range(len(X))]
    return added + removed


def spent(measure, tables):
    """Return (largest μ between the first table and the others, claimed μ), from the integers."""
    seen = []

    def record(integers, *, scale, sensitivity):
        seen.append((integers, scale, sensitivity))
        return integers

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cloakgp.privacy.noise.gaussian.add_discrete_gaussian", record)
        claims = {measure(*one).guarantee.mu for one in tables}
    assert len(claims) == 1
    assert len({(scale, sensitivity) for _, scale, sensitivity in seen}) == 1
    base, scale, _ = seen[0]
    moves = [
        math.sqrt(sum((int(a) - int(b)) ** 2 for a, b in zip(base, other, strict=True)))
        for other, _, _ in seen[1:]
    ]
    return max(moves) / scale, claims.pop()
