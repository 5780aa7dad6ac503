"""Origin of a release: for what, by whom and under which licence it is made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from cloakgp.release.provenance import Provenance


class Stated(Protocol):
    """A release that keeps where it comes from."""

    def to_bytes(self) -> bytes:
        """Return its file."""

    @property
    def provenance(self) -> Provenance | None:
        """When, with what, by whom and for what it was made."""


StatedRelease = TypeVar("StatedRelease", bound=Stated)


@dataclass(frozen=True)
class Origin:
    """What is said of a release beside what is known of it.

    Attributes
    ----------
    purpose, by, licence : str
        Empty for what was not given.
    """

    purpose: str = ""
    by: str = ""
    licence: str = ""

    def kept_in(self, release: StatedRelease) -> StatedRelease:
        """Return a release that keeps it."""
        if release.provenance is None:
            return release
        origin = release.provenance.with_statement(
            purpose=self.purpose, by=self.by, licence=self.licence
        )
        made: StatedRelease = replace(release, provenance=origin)  # type: ignore[type-var]
        return made
