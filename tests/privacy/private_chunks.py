"""Private columns in chunks that a test can hold in its hand, cut and merged at will."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from cloakgp.privacy.ask import StrategyBound
from cloakgp.privacy.entries import read_labels
from cloakgp.utils.passes import Chunk


@dataclass(frozen=True)
class PrivateChunks:
    """Rows whose only input is their number.

    Attributes
    ----------
    entries : array of shape (N,)
        Outputs, or labels of any type.
    cuts : tuple of int
    order : tuple of int or None
        In which chunks are merged.
    groups : array of int, shape (N,), or None
        Numbers of the rows' groups.
    """

    entries: Any
    cuts: tuple[int, ...] = ()
    order: tuple[int, ...] | None = None
    groups: Any = None

    @property
    def numbers(self):
        return np.split(np.arange(len(self.entries)), self.cuts)

    def over_rows(self, work, *, what, labels=None):
        assert what
        entries = self.entries if labels is None else read_labels(self.entries, labels)
        parts = [
            work(
                Chunk(
                    number=number,
                    X=rows[:, None].astype(np.float64),
                    groups=None if self.groups is None else np.asarray(self.groups)[rows],
                ),
                entries[rows],
            )
            for number, rows in enumerate(self.numbers)
        ]
        taken = range(len(parts)) if self.order is None else self.order
        return reduce(lambda one, other: one.merge(other), (parts[number] for number in taken))


class Unread:
    """Rows whose private column must not be read."""

    def over_rows(self, work, *, what, labels=None):  # noqa: ARG002
        pytest.fail("the private column was read")


@dataclass(frozen=True)
class Picked:
    """The columns of a strategy, by the numbers of rows."""

    strategy: np.ndarray

    def __call__(self, X):
        return self.strategy[:, X[:, 0].astype(int)]


def bound_of(strategy, cuts=(), **changes):
    """Return what is true of a strategy and of chunks, but for what a test changes."""
    count = strategy.shape[1]
    chunks = np.split(np.arange(count), cuts)
    return replace(
        StrategyBound(
            answers=len(strategy),
            longest=float(np.sqrt(np.square(strategy).sum(axis=0).max())),
            chunk_rows=max(map(len, chunks)),
            count=count,
        ),
        **changes,
    )


def all_cuts(rows):
    """Every way to cut a table into chunks of consecutive rows."""
    inner = range(1, rows)
    return [cut for size in range(rows) for cut in combinations(inner, size)]
