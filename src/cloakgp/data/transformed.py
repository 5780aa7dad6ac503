"""Rows whose private outputs are clipped and transformed as they are read, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cloakgp.models.transforms import OutputTransform
from cloakgp.privacy.transforms import transform_entries
from cloakgp.utils.arrays import Array
from cloakgp.utils.passes import Chunk, PartOf


@dataclass(frozen=True, eq=False)
class _OnTransformed:
    work: Callable[[Chunk, Array], Any]
    transform: OutputTransform

    def __call__(self, chunk: Chunk, entries: Array) -> Any:
        return self.work(chunk, transform_entries(entries, self.transform))


@dataclass(frozen=True, eq=False, repr=False)
class TransformedRows:
    """Rows that give transformed outputs; see `cloakgp.privacy.transforms`.

    Attributes
    ----------
    passes : LocalRows or DaskRows
    transform : OutputTransform

    Examples
    --------
    >>> import numpy as np
    >>> from cloakgp.data import ArrayRows
    >>> rows = ArrayRows(np.zeros((2, 1)), [1.0, 10.0])
    >>> TransformedRows(rows, OutputTransform(name="log", bounds=(1.0, 100.0))).n_inputs
    1
    """

    passes: Any
    transform: OutputTransform

    @classmethod
    def of(cls, rows: Any, transform: OutputTransform | None) -> Any:
        """Return rows that give transformed outputs, or the rows themselves."""
        return rows if transform is None else cls(rows, transform)

    @property
    def n_inputs(self) -> int:
        """D, the number of public inputs."""
        return int(self.passes.n_inputs)

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the public columns, if there are any."""
        return tuple(self.passes.input_names)

    @property
    def output_name(self) -> str:
        """Name of the private column."""
        return str(self.passes.output_name)

    @property
    def grouped(self) -> bool:
        """Whether rows have groups, to be protected together."""
        return bool(self.passes.grouped)

    def over_inputs(self, work: Callable[[Chunk], PartOf], *, what: str) -> PartOf:
        """Do some work on every chunk, and merge the parts in the order of the table."""
        found: PartOf = self.passes.over_inputs(work, what=what)
        return found

    def over_rows(
        self,
        work: Callable[[Chunk, Array], PartOf],
        *,
        what: str,
        labels: tuple[object, ...] | None = None,
    ) -> PartOf:
        """Do some work on every chunk and its private entries: for `cloakgp.privacy`."""
        found: PartOf = self.passes.over_rows(
            _OnTransformed(work, self.transform), what=what, labels=labels
        )
        return found
