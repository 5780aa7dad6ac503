"""Declaration of a stream: all that is fixed, and public, before the first row is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from cloakgp.privacy.budgets import check_pair
from cloakgp.privacy.cohorts import DISJOINT, People, check_people
from cloakgp.streams.periods import Calendar, Periods

# Said of every field that another declaration has otherwise.
KEPT = (
    "a stream keeps what was declared: other periods would overlap those that were asked. "
    "Name another folder for another stream; people in both pay for both"
)


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """What a stream asks, of whom, when, and at what price.

    Attributes
    ----------
    output : str
        Name of the private column.
    inputs : tuple of str
        Names of the public columns that predict it, without the time; empty for all of the schema.
    time : str
        Name of the public column that says when.
    person : str
        Name of the public column that says whose row it is; empty if rows are people.
    origin : str
        The start of the first period, as it was written.
    length : float, "month" or "year"
        Of each period.
    horizon : int
        How many periods will be asked at most.
    lateness : float
        How long after the end of a period its rows are waited for.
    people : {"disjoint", "overlapping"}
        Whether anybody may be in several periods.
    epsilon, delta : float
        The budget of each period.
    forgetting : float or None
        ℓ of `cloakgp.models.kernels.forgetting`, in units of the time; None if the time is no
        input.
    lasting : float
        The share of the variance that does not drift.
    model : str
        The estimator that asks first.
    """

    output: str
    inputs: tuple[str, ...]
    time: str
    person: str
    origin: str
    length: float | Calendar
    horizon: int
    lateness: float
    people: People
    epsilon: float
    delta: float
    forgetting: float | None
    lasting: float
    model: str

    def __post_init__(self) -> None:
        self.validate()

    def validate(self) -> None:
        """Refuse contradictions.

        Raises
        ------
        ValueError
        """
        check_people(self.people)
        check_pair(self.epsilon, self.delta, pure=True)
        # Lengths that are no lengths, before there is an origin.
        Periods.declared(0.0, length=self.length, horizon=self.horizon, lateness=self.lateness)
        if not self.time:
            raise ValueError("name the column that says when a row was: time")
        if len({self.time, self.output, self.person or self.time + self.output}) < 3:
            raise ValueError("time, output and person are three columns")
        if {self.output, self.time, self.person} & set(self.inputs):
            raise ValueError(
                "the private column, the time and the persons are no inputs; the time becomes one "
                "by forgetting"
            )
        # Written so that NaN fails.
        if self.forgetting is not None and not 0 < self.forgetting < float("inf"):
            raise ValueError(f"forgetting must be a positive length, got {self.forgetting!r}")
        if not 0 <= self.lasting <= 1:
            raise ValueError(f"lasting must be a share from 0 to 1, got {self.lasting!r}")

    @property
    def disjoint(self) -> bool:
        """Whether nobody is in two periods."""
        return self.people == DISJOINT

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Declaration:
        """Return a declaration from `to_dict`.

        Raises
        ------
        ValueError
            If it is none.
        """
        names = {each.name for each in fields(cls)}
        if set(content) != names:
            raise ValueError("the declaration of the stream is damaged")
        return cls(**{**content, "inputs": tuple(content["inputs"])})

    def check_kept(self, earlier: Declaration) -> None:
        """Refuse to go on with another declaration.

        Raises
        ------
        ValueError
            It names what differs.
        """
        own, theirs = self.to_dict(), earlier.to_dict()
        changed = [name for name in own if own[name] != theirs[name]]
        if changed:
            raise ValueError(f"{' and '.join(changed)} differ from before: {KEPT}")
