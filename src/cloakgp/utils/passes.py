"""Passes over tables in chunks, for rows that do not fit in memory.

A pass does the same work on every chunk and merges what comes back, which is small: sums, extremes,
a few rows. Where the chunks are (an array, files, a cluster) is the affair of `cloakgp.data`; here
stands what designs may ask of them. They are given public inputs and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from cloakgp.utils.arrays import Array

# Groups of rows are told apart by numbers below this; sums over them are kept by number.
GROUP_NUMBERS = 2**20

OnStep = Callable[[str], None]
"""Called with the name of a step, in a few words, as it begins."""


def ignore_step(what: str) -> None:
    """Do nothing at the start of a step."""


class Part(Protocol):
    """The result of one chunk, or of several together."""

    def merge(self, other: Self) -> Self:
        """Return the joint result of this and the chunks after it."""


PartOf = TypeVar("PartOf", bound=Part)


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows of a table, always the same ones under the same number.

    Attributes
    ----------
    number : int
        From 0, in the order of the table.
    X : array of shape (n, D)
        Public inputs.
    groups : array of int, shape (n,), or None
        Whose rows these are, if the table says so: numbers from 0, below `GROUP_NUMBERS`. All rows
        of one group have the same number, in whatever chunk; so may those of several groups.
    """

    number: int
    X: Array
    groups: NDArray[np.intp] | None = None


def group_number(person: str) -> int:
    """Return the number of a group, the same in every process and on every machine.

    Parameters
    ----------
    person : str
        Whose rows they are, in the form in which ids are compared
        (`cloakgp.privacy.person_ids`).

    Examples
    --------
    >>> group_number("eve") == group_number("eve"), group_number("1") == group_number("01")
    (True, False)
    """
    return crc32(person.encode("utf-8", "surrogatepass")) % GROUP_NUMBERS


class Passes(Protocol):
    """A table whose public inputs can be gone through, again and again."""

    @property
    def n_inputs(self) -> int:
        """D, the number of public inputs."""

    def over_inputs(self, work: Callable[[Chunk], PartOf], *, what: str) -> PartOf:
        """Do some work on every chunk, and merge the parts in the order of the table.

        Parameters
        ----------
        work : callable
            Called with a chunk. Must be picklable: chunks may lie on other machines.
        what : str
            What this pass is for, to be shown to whoever waits.

        Raises
        ------
        ValueError
            If an input is missing, not a number, or infinite; or there are no rows.
        """
