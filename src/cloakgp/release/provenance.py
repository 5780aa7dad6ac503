"""Provenance of a release: date, version, purpose, and earlier releases."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Self

from cloakgp.privacy import Guarantee
from cloakgp.privacy.composition import MixedGuarantee
from cloakgp.privacy.noise_choice import unused_delta
from cloakgp.release.measurement import Measurement
from cloakgp.utils.arrays import Array
from cloakgp.utils.formatting import left_out

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
        The ids of the releases that it comes from, with commas, if there are any.
    by : str
        Who made it, if somebody said so.
    licence : str
        Under which it may be used, if somebody said so.
    delta : float
        The δ that was allowed; of several visits, the largest.
    noise : str
        The noise that was asked for in the latest visit, "auto" for a choice; empty if unknown.
    without_output : int
        How many rows of its tables were left out as they have no private value: public, since that
        they are left out was declared, with what it tells.
    without_inputs : int
        How many other rows were left out, for a public value.
    """

    made: str
    version: str
    id: str
    purpose: str = ""
    refines: str = ""
    by: str = ""
    licence: str = ""
    delta: float = 0.0
    noise: str = ""
    without_output: int = 0
    without_inputs: int = 0

    @classmethod
    def of(cls, measurements: Sequence[Measurement]) -> Self:
        """Return that of a release made now.

        Parameters
        ----------
        measurements : sequence of Measurement
        """
        return cls.of_values(*(measurement.answers.values for measurement in measurements))

    @classmethod
    def of_values(cls, *published: Array) -> Self:
        """Return that of a release of noisy numbers, made now.

        Parameters
        ----------
        *published : arrays
        """
        from cloakgp import __version__

        made = datetime.now(UTC).isoformat(timespec="seconds")
        digest = hashlib.sha256(made.encode())
        for values in published:
            digest.update(values.tobytes())
        return cls(made=made, version=__version__, id=digest.hexdigest()[:ID_DIGITS])

    def successor(self, measurements: Sequence[Measurement]) -> Self:
        """Return that of a release which was made from this one, now, as it was stated."""
        made = type(self).of(measurements)
        return replace(self, made=made.made, version=made.version, id=made.id, refines=self.id)

    def join(self, others: Sequence[Provenance | None]) -> Self:
        """Return this one, of a release that comes from others, too.

        Parameters
        ----------
        others : sequence of Provenance or None
            Those whose releases were added.
        """
        ids = [self.refines, *(each.id for each in others if each is not None)]
        allowed = max([self.delta, *(each.delta for each in others if each is not None)])
        refines = ", ".join(dict.fromkeys(each for each in ids if each))
        made = replace(self, refines=refines, delta=allowed)
        for each in others:
            if each is not None:
                made = made.leave_out(
                    without_output=each.without_output, without_inputs=each.without_inputs
                )
        return made

    def allow(self, delta: float, *, noise: str) -> Self:
        """Return that of a release for which a visit allowed a δ, and asked for a noise.

        Examples
        --------
        >>> Provenance.of_values().allow(1e-6, noise="auto").delta
        1e-06
        """
        return replace(self, delta=max(self.delta, delta), noise=noise)

    def leave_out(self, *, without_output: int, without_inputs: int) -> Self:
        """Return that of a release of a further table, some rows of which were left out.

        Examples
        --------
        >>> Provenance.of_values().leave_out(without_output=2, without_inputs=0).without_output
        2
        """
        return replace(
            self,
            without_output=self.without_output + without_output,
            without_inputs=self.without_inputs + without_inputs,
        )

    @property
    def left_out(self) -> str:
        """The rows that were left out, in sentences; empty if none was."""
        return left_out(without_output=self.without_output, without_inputs=self.without_inputs)

    def unused_delta(self, guarantee: Guarantee | MixedGuarantee) -> str:
        """Return in a sentence that a δ was allowed and none of it used; empty if that is not so.

        Parameters
        ----------
        guarantee : Guarantee or MixedGuarantee
            Of the release.
        """
        return unused_delta(
            guarantee, allowed=self.delta, noise=self.noise, later=bool(self.refines)
        )

    def with_statement(self, *, purpose: str = "", by: str = "", licence: str = "") -> Self:
        """Return it with statements of a user; empty text keeps the earlier one.

        Examples
        --------
        >>> Provenance.of_values().with_statement(by="A. Custodian", licence="CC BY 4.0").by
        'A. Custodian'
        """
        return replace(
            self,
            purpose=purpose or self.purpose,
            by=by or self.by,
            licence=licence or self.licence,
        )

    def validate(self) -> None:
        """Refuse an invalid provenance.

        Raises
        ------
        ValueError
        """
        texts = (
            self.made,
            self.version,
            self.id,
            self.purpose,
            self.refines,
            self.by,
            self.licence,
            self.noise,
        )
        if any(len(text) > LONGEST_TEXT for text in texts):
            raise ValueError("where it comes from is damaged")
        # Written so that NaN fails.
        if not 0 <= self.delta < 1:
            raise ValueError("the δ that was allowed is damaged")
        if min(self.without_output, self.without_inputs) < 0:
            raise ValueError("the number of rows that were left out is damaged")
        try:
            datetime.fromisoformat(self.made)
        except ValueError:
            raise ValueError("when it was made is damaged") from None
