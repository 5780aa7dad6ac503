"""Encoding of private entries: which numbers stand for one, and how far they go."""

from __future__ import annotations

from typing import Protocol

from cloakgp.utils.arrays import Array


class Encoding(Protocol):
    """How private entries become the rows of V, which questions are asked about.

    `cloakgp.privacy.bounds.OutputBounds` and `cloakgp.privacy.labels.Classes` are encodings: an
    output is clipped and centred; a label becomes a sign, or an indicator of its class.
    """

    @property
    def labels(self) -> tuple[object, ...] | None:
        """The labels that an entry can be; None where entries are numbers."""

    @property
    def channels(self) -> int:
        """C, the number of columns of V."""

    @property
    def distance(self) -> float:
        """At least how far a row of V moves when its entry changes to any other, in ℓ2 norm."""

    @property
    def absolute_distance(self) -> float:
        """The same in ℓ1 norm."""

    @property
    def largest(self) -> float:
        """At least the magnitude of every entry of V."""

    @property
    def complaints(self) -> tuple[str, ...]:
        """What can be wrong with entries, the first of which is told. None quotes an entry."""

    def faults(self, entries: Array) -> tuple[bool, ...]:
        """Return which of the complaints there are about some entries.

        Parameters
        ----------
        entries : array of shape (n,)
            Private: numbers, or places among the labels; NaN for what is neither.
        """

    def encoded(self, entries: Array) -> Array:
        """Return the rows of V of entries without fault, shape (n, C).

        Parameters
        ----------
        entries : array of shape (n,)
            Private, as for `faults`.
        """
