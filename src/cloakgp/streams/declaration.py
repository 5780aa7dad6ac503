"""Declaration of a stream: all that is fixed, and public, before the first row is there."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any

import numpy as np

from cloakgp.privacy.budgets import check_pair
from cloakgp.privacy.cohorts import DISJOINT, People, check_people
from cloakgp.release.io.release_file import SavedRelease
from cloakgp.streams.periods import Calendar, Periods

# Said of every field that another declaration has otherwise.
KEPT = (
    "a stream keeps what was declared, as later periods go on from what was asked of earlier ones. "
    "Name another folder for another stream; people in both pay for both"
)
# Stands for the number of a period in the name of an account.
PERIOD = "{period}"


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
        The estimator that asks first, from `exact_text`.
    schema : str
        That of the inputs, if one was given.
    missing_output : str
        "refuse", or what a missing private cell counts as.
    ledger : str
        The id of the ledger that counts; empty if none does.
    account : str
        In which it does; with "{period}" in it, one for each period.
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
    schema: str
    missing_output: str
    ledger: str
    account: str

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
        if bool(self.account) != bool(self.ledger):
            raise ValueError("ledger and account go together")
        if PERIOD in self.account and not self.disjoint:
            raise ValueError(
                f"an account for each period ({PERIOD}) is for people='disjoint': where anybody "
                "may be in several periods, each account would count a part of what is drawn "
                "about them. Name one account for all periods"
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

    def counted_as(self, other: Declaration) -> bool:
        """Return whether another one is counted in the same place, if in any."""
        return (self.ledger, self.account) == (other.ledger, other.account)

    def check_kept(self, earlier: Declaration) -> None:
        """Refuse to go on with another declaration.

        Raises
        ------
        ValueError
            It names what differs.
        """
        own, theirs = self.to_dict(), earlier.to_dict()
        changed = [name for name in own if own[name] != theirs[name]]
        if not changed:
            return
        told = f"{' and '.join(changed)} differ from before: {KEPT}"
        if {"ledger", "account"} & set(changed):
            told += (
                f". It is counted in the account {earlier.account!r} of the ledger "
                f"{earlier.ledger}: name these again, so that all of it is"
                if earlier.ledger
                else ". It was begun without a ledger: go on without one"
            )
        raise ValueError(told)


def exact_text(value: object) -> str:
    """Return a text that tells a model, or what it is made of, from every other.

    Where `repr` leaves out what is long, and digits of a kernel's numbers. Equal numbers have one
    text, whatever their type, but for bools, and what has no text of its own is told by what it
    holds (releases) or by its name (functions): in another process it is the same. Parameters that
    are what they are by default are left out.

    Parameters
    ----------
    value : object
        An estimator, a kernel, or a parameter of one.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> exact_text(RBF(1 / 3)), repr(RBF(1 / 3))
    ('RBF(length_scale=0.3333333333333333)', 'RBF(length_scale=0.333)')
    >>> exact_text((0, 1.0, True, np.sort))
    '[0.0, 1.0, True, numpy.sort]'
    """
    if isinstance(value, SavedRelease):
        return f"{type(value).__name__}({hashlib.sha256(value.to_bytes()).hexdigest()})"
    if hasattr(value, "get_params") and not isinstance(value, type):
        usual = inspect.signature(type(value)).parameters
        given = {
            name: exact_text(each) for name, each in sorted(value.get_params(deep=False).items())
        }
        told = ", ".join(
            f"{name}={text}"
            for name, text in given.items()
            if name not in usual or text != exact_text(usual[name].default)
        )
        return f"{type(value).__name__}({told})"
    if hasattr(value, "to_numpy"):
        value = value.to_numpy()
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(exact_text, value))}]"
    if isinstance(value, Mapping):
        entries = (f"{exact_text(name)}: {exact_text(each)}" for name, each in value.items())
        return f"{{{', '.join(entries)}}}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _number_text(value)
    if isinstance(value, partial):
        made = (value.func, value.args, value.keywords)
        return f"partial({', '.join(map(exact_text, made))})"
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value)


def _number_text(value: float) -> str:
    """Return one text for all numbers that are equal."""
    try:
        near = float(value)
    except OverflowError:
        return repr(int(value))
    # Beyond 2**53 an int may lie between two floats; -0.0 is 0.
    return repr(int(value)) if near != value == value else repr(near + 0.0)
