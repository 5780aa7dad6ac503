"""Custodians of the rows of a release: against whom its guarantee holds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Custodians:
    """Several custodians, each of whom had some of the rows and none had all.

    Attributes
    ----------
    sites : int
        How many there were.
    colluding : int
        How many of them may have worked together, and with whoever collected the answers: the
        guarantee holds against them, as long as the others kept to the protocol.

    Examples
    --------
    >>> Custodians(sites=10, colluding=2).honest
    8
    """

    sites: int
    colluding: int

    @property
    def honest(self) -> int:
        """How many sites at least have to have kept to the protocol."""
        return self.sites - self.colluding

    @property
    def assumption(self) -> str:
        """What the guarantee assumes, in words."""
        return (
            f"Its rows are of {self.sites} custodians, none of whom showed an output to another. "
            f"The guarantee holds against whoever collected the answers and any {self.colluding} "
            f"of the custodians together, if the other {self.honest} kept to the protocol."
        )

    def validate(self) -> None:
        """Refuse numbers that make no sense.

        Raises
        ------
        ValueError
        """
        if self.sites < 2 or not 0 <= self.colluding < self.sites:
            raise ValueError("its custodians are damaged")
