"""Identifiers: carried through, and never used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cloakgp.columns.base import Column, Missing, Reading
from cloakgp.columns.cells import Cells


@dataclass(frozen=True)
class Identifier(Column):
    """A column that nothing is predicted from: no number stands for it; it may be lacking."""

    kind: ClassVar[str] = "identifier"
    field_type: ClassVar[str] = "string"
    policies: ClassVar[tuple[Missing, ...]] = ("refuse",)
    what: ClassVar[str] = "not used"

    @property
    def sources(self) -> tuple[str, ...]:
        """None: it is not read."""
        return ()

    @property
    def own_blocks(self) -> tuple[tuple[str, ...], ...]:
        """None."""
        return ()

    def read(self, cells: Sequence[Cells], *, codes: frozenset[str]) -> Reading:
        """Read nothing."""
        del cells, codes
        return Reading(values=np.zeros((0, 0)), missing=np.zeros(0, dtype=bool), faults={})
