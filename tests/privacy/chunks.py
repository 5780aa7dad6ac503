"""Tables in passes that a test can hold in its hand: chunks of one array, in this very process."""

from functools import reduce

import numpy as np
from hypothesis import strategies as st

from cloakgp.utils.passes import Chunk


class Chunks:
    """`cloakgp.utils.passes.Passes` over an array, cut wherever a test says.

    Every pass is noted in ``passes``, so that tests can count them.
    """

    def __init__(self, X, *, cuts=(), groups=None):
        self.groups = None if groups is None else np.asarray(groups)
        self.X = np.asarray(X, dtype=np.float64)
        self.edges = [0, *sorted(set(cuts)), len(self.X)]
        self.passes = []

    @classmethod
    def of(cls, X, *, rows):
        """Cut after every so many rows."""
        return cls(X, cuts=range(rows, len(X), rows))

    @property
    def n_inputs(self):
        return self.X.shape[1]

    def over_inputs(self, work, *, what):
        self.passes.append(what)
        pairs = zip(self.edges, self.edges[1:], strict=False)
        parts = [
            # A copy: nothing may depend on, or change, what stands in memory beside a chunk.
            work(
                Chunk(
                    number=number,
                    X=self.X[start:stop].copy(),
                    groups=None if self.groups is None else self.groups[start:stop],
                )
            )
            for number, (start, stop) in enumerate(pairs)
        ]
        return reduce(lambda one, other: one.merge(other), parts)


class LastChunkLost(Chunks):
    """A table that forgets its last chunk in passes of one name."""

    def __init__(self, X, *, cuts=(), what):
        super().__init__(X, cuts=cuts)
        self.what = what

    def over_inputs(self, work, *, what):
        if not what.startswith(self.what):
            return super().over_inputs(work, what=what)
        return Chunks(self.X[: self.edges[-2]], cuts=self.edges[1:-2]).over_inputs(work, what=what)


def cuts(count):
    """All ways to cut a table of so many rows, for hypothesis."""
    return st.sets(st.integers(1, count - 1), max_size=count - 1) if count > 1 else st.just(set())
