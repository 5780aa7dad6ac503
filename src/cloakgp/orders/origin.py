"""Origin of a release: purpose, maker and licence."""

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
        """Date, version, maker and purpose of the release."""


StatedRelease = TypeVar("StatedRelease", bound=Stated)


def with_left_out(
    release: StatedRelease, *, without_output: int, without_inputs: int
) -> StatedRelease:
    """Return a release that keeps how many rows of its latest table were left out.

    Parameters
    ----------
    release : release of any kind
    without_output, without_inputs : int
        As `Provenance` has them.
    """
    if release.provenance is None:
        return release
    origin = release.provenance.leave_out(
        without_output=without_output, without_inputs=without_inputs
    )
    made: StatedRelease = replace(release, provenance=origin)  # type: ignore[type-var]
    return made


@dataclass(frozen=True)
class Origin:
    """Statements of a user about a release.

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
