"""Provenance of a release: when, with what and for what it was made, and what it comes from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Self

from cloakgp.release.measurement import Measurement

# Hexadecimal digits of an id: enough that no two releases share one.
ID_DIGITS = 16
LONGEST_TEXT = 10_000


@dataclass(frozen=True)
class Provenance:
    """Where a release comes from. All of it is public.

    Attributes
    ----------
    made : str
        When, in universal time, after ISO 8601.
    version : str
        Of cloakgp.
    id : str
        Of this release: a digest of its noisy answers and of the time.
    purpose : str
        What it was made for, if somebody said so.
    refines : str
        The id of the release that it comes from, if there is one.
    """

    made: str
    version: str
    id: str
    purpose: str = ""
    refines: str = ""

    @classmethod
    def of(cls, measurements: Sequence[Measurement], *, purpose: str = "") -> Self:
        """Return that of a release made now.

        Parameters
        ----------
        measurements : sequence of Measurement
        purpose : str
        """
        from cloakgp import __version__

        made = datetime.now(UTC).isoformat(timespec="seconds")
        digest = hashlib.sha256(made.encode())
        for measurement in measurements:
            digest.update(measurement.answers.values.tobytes())
        return cls(
            made=made, version=__version__, id=digest.hexdigest()[:ID_DIGITS], purpose=purpose
        )

    def successor(self, measurements: Sequence[Measurement]) -> Self:
        """Return that of a release which was made from this one, now."""
        return replace(type(self).of(measurements, purpose=self.purpose), refines=self.id)

    def validate(self) -> None:
        """Refuse what is no provenance.

        Raises
        ------
        ValueError
        """
        texts = (self.made, self.version, self.id, self.purpose, self.refines)
        if any(len(text) > LONGEST_TEXT for text in texts):
            raise ValueError("where it comes from is damaged")
        try:
            datetime.fromisoformat(self.made)
        except ValueError:
            raise ValueError("when it was made is damaged") from None
