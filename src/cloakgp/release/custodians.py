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
    sites_of_person : int or None
        At how many of them a person may have rows, all of which are protected together; None where
        every row is protected on its own.

    Examples
    --------
    >>> Custodians(sites=10, colluding=2).honest
    8
    """

    sites: int
    colluding: int
    sites_of_person: int | None = None

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
            f"{self._persons}"
        )

    @property
    def _persons(self) -> str:
        """Say for which persons it holds, if it is one for persons."""
        most = self.sites_of_person
        if most is None:
            return ""
        if most == self.sites:
            return " All rows of a person are protected together, at however many custodians."
        where = "two of the custodians" if most == 1 else f"more than {most} of the custodians"
        return (
            f" All rows of a person are protected together, if nobody has rows at {where}: that "
            "they promised, and nothing here verifies it."
        )

    def validate(self) -> None:
        """Refuse numbers that make no sense.

        Raises
        ------
        ValueError
        """
        if (
            self.sites < 2
            or not 0 <= self.colluding < self.sites
            or not 1 <= (self.sites_of_person or 1) <= self.sites
        ):
            raise ValueError("its custodians are damaged")
