"""Rows of groups that are protected together, with the sizes of their groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakgp.design.streaming.grouping import GroupedPasses, weighed
from cloakgp.utils.arrays import Array
from cloakgp.utils.passes import Chunk, PartOf


@dataclass(frozen=True, eq=False)
class _OnRows:
    work: Callable[[Chunk, Array], Any]
    counts: NDArray[np.intp]

    def __call__(self, chunk: Chunk, entries: Array) -> Any:
        return self.work(weighed(chunk, self.counts), entries)


@dataclass(frozen=True, eq=False)
class GroupedRows(GroupedPasses):
    """Rows whose inputs have one more column, with the sizes of their groups.

    Attributes
    ----------
    passes : LocalRows
        Whose chunks have groups.
    counts : array of int, shape (GROUP_NUMBERS,)
    """

    passes: Any

    def over_rows(
        self,
        work: Callable[[Chunk, Array], PartOf],
        *,
        what: str,
        labels: tuple[object, ...] | None = None,
    ) -> PartOf:
        """Do some work on every chunk and its private entries: for `cloakgp.privacy`."""
        found: PartOf = self.passes.over_rows(_OnRows(work, self.counts), what=what, labels=labels)
        return found
