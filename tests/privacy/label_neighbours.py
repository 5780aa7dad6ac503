"""Brute force over all neighbours that differ in one label."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest


def encoded_of(classes, labels):
    """Return the rows of V that labels become."""
    return classes.encode(classes.read(labels, rows=len(labels)))


def spent_over_labels(run, y, *, classes):
    """Return (largest μ over all neighbours of y, claimed μ).

    Every label is changed to every other class. The integers that noise is added to are recorded,
    over all visits of one run; distances are sums of Python integers, in units of each visit's
    noise. Every visit answers zero, so that later visits are asked the same of neighbours.
    """
    visits: list[tuple[np.ndarray, float]] = []

    def record(integers, *, scale, sensitivity):  # noqa: ARG001
        visits.append((integers, scale))
        return np.zeros_like(integers)

    def seen(labels):
        visits.clear()
        claimed = run(labels)
        return claimed, list(visits)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cloakgp.privacy.noise.gaussian.add_discrete_gaussian", record)
        claimed, base = seen(list(y))
        largest = 0.0
        for row, other in itertools.product(range(len(y)), classes):
            if other == y[row]:
                continue
            neighbour = list(y)
            neighbour[row] = other
            _, moved = seen(neighbour)
            assert [scale for _, scale in moved] == [scale for _, scale in base]
            total = 0.0
            for (one, scale), (two, _) in zip(base, moved, strict=True):
                squared = sum((int(a) - int(b)) ** 2 for a, b in zip(one, two, strict=True))
                total += squared / scale**2
            largest = max(largest, math.sqrt(total))
    return largest, claimed
