"""Identifiers: carried through, and never used."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cloakgp.columns.base import Column, Missing, Reading
from cloakgp.columns.cells import Cells

# Names of columns that say whose a row is, in whole or at their end.
PERSONS = (
    "id|uuid|guid|key|person|people|patient|household|family|customer|client|user|member|rider|"
    "subject|participant|respondent|employee|student|pupil"
)
_PERSON = re.compile(rf"(?i)(?:.*[_. -])?(?:{PERSONS})(?:[_. -]?(?:id|no|nr|number|key|code))?")


def may_name_persons(name: str) -> bool:
    """Return whether a column may say whose a row is, by its name.

    Examples
    --------
    >>> [may_name_persons(name) for name in ("household", "patient_id", "age", "paid")]
    [True, True, False, False]
    """
    return _PERSON.fullmatch(name) is not None


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
