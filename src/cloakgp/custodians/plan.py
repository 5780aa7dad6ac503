"""Plan of a release of several custodians, and the roster of those who joined: public, and agreed.

All sites compare the digest of the plan, and of the roster, which has their public keys and their
numbers of rows. What is agreed is never changed: a site that finds another plan in the place of the
one that it joined does nothing.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self

from sklearn.gaussian_process.kernels import Kernel

from cloakgp.columns import Number, Schema
from cloakgp.columns.reading import declared_exposure
from cloakgp.columns.table_schema import schema_from_text, schema_to_text
from cloakgp.custodians.errors import CustodiansError
from cloakgp.data.entries import RowReading
from cloakgp.estimators import (
    DPGPClassifier,
    DPGPMultiOutputRegressor,
    DPGPQuantileRegressor,
    DPGPRegressor,
)
from cloakgp.privacy.questions.base import Question
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.privacy.questions.classes import Classes
from cloakgp.privacy.several_outputs import OutputColumns
from cloakgp.privacy.spending import Budget
from cloakgp.release.io.kernel_tree import kernel_from_tree, kernel_to_tree
from cloakgp.utils.names import NoiseChoice

# Names are parts of the names of files.
SITE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
KEY = re.compile(r"[0-9a-f]{64}")
# Of a digest, as people read it to each other: so many digits that no two plans or rosters can be
# found with the same ones. Whoever makes them chooses what is in them, so that pairs count.
AGREED_DIGITS = 40
# Of Curve25519: the field, and the points with which every key has the same secret, nothing.
FIELD = 2**255 - 19
LOW_ORDER = {
    *(0, 1, FIELD - 1),
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
}
Estimator = DPGPRegressor | DPGPQuantileRegressor | DPGPMultiOutputRegressor | DPGPClassifier
Kind = Literal["numbers", "counts", "quantiles", "several", "classes"]
# Of what outputs are, and what is stated of a fit; all other settings are as a new estimator has
# them.
ESTIMATORS: Mapping[str, type[Estimator]] = {
    "numbers": DPGPRegressor,
    "counts": DPGPRegressor,
    "quantiles": DPGPQuantileRegressor,
    "several": DPGPMultiOutputRegressor,
    "classes": DPGPClassifier,
}
OF_ALL = (
    "kernel",
    "epsilon",
    "delta",
    "noise",
    "inducing",
    "learn",
    "stages",
    "gap",
    "random_state",
)
OF_NUMBERS = (*OF_ALL, "bounds", "mean", "interval")
STATED: Mapping[str, tuple[str, ...]] = {
    "numbers": (*OF_NUMBERS, "criterion", "noise_variance", "calibrate", "output_transform"),
    "counts": (*OF_NUMBERS, "criterion", "calibrate", "likelihood", "overdispersion"),
    "quantiles": (*OF_NUMBERS, "quantiles", "output_transform"),
    "several": (
        *OF_ALL,
        *("bounds", "interval", "criterion", "noise_variance", "calibrate", "coregion"),
    ),
    "classes": (*OF_ALL, "criterion", "classes", "class_rates", "link"),
}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is to be released, of whom, and whom it protects from whom.

    Attributes
    ----------
    sites : tuple of str
        Names of the custodians.
    colluding : int
        How many of them may work together, and with the coordinator, to learn of the others'
        outputs: the guarantee holds against them.
    input_names : tuple of str
        Names of the public columns, in order.
    output_name : str
        Name of the private column.
    outputs : {"numbers", "counts", "quantiles", "several", "classes"}
        What the private column holds, or, of quantiles, what is released of its numbers; "several"
        of several private columns of numbers.
    settings : mapping
        Of the estimator, as JSON can hold them.
    schema : str
        File of the schema of raw public columns; empty where all are numbers already.
    person_name : str
        Name of the column that says whose rows they are: all rows of a person are protected
        together. Empty where rows are protected each on its own.
    rows_of_person : int
        The most rows of a person at one site; every site verifies it of its own.
    sites_of_person : int
        At how many sites a person may have rows. No site can verify it: it is a promise of all,
        unless it is the number of sites. Noise is by this number whoever joins, as whoever makes
        the roster may make several of one plan.
    exposure_name : str
        Of counts: the public column that says in how much each row was counted; empty if in 1.
    more_outputs : tuple of str
        Of several private columns: the names of all but the first.

    Examples
    --------
    >>> plan = Plan.of(DPGPRegressor(bounds=(0, 1), epsilon=1.0), sites=["north", "south"],
    ...                input_names=["age"])
    >>> plan.colluding, Plan.from_bytes(plan.to_bytes()) == plan
    (1, True)
    """

    sites: tuple[str, ...]
    colluding: int
    input_names: tuple[str, ...]
    output_name: str
    outputs: Kind
    settings: Mapping[str, Any]
    schema: str = ""
    person_name: str = ""
    rows_of_person: int = 1
    sites_of_person: int = 1
    exposure_name: str = ""
    more_outputs: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        estimator: Estimator,
        *,
        sites: Sequence[str],
        input_names: Sequence[str] = (),
        schema: Schema | None = None,
        output_name: str = "y",
        colluding: int = 1,
        person_name: str = "",
        rows_of_person: int = 1,
        sites_of_person: int | None = None,
        exposure_name: str = "",
        more_outputs: Sequence[str] = (),
    ) -> Plan:
        """Return the plan of fitting an estimator.

        Parameters
        ----------
        estimator : DPGPRegressor, DPGPQuantileRegressor, DPGPMultiOutputRegressor or DPGPClassifier
        sites : sequence of str
            Names of the custodians, of letters, digits, hyphens and underscores.
        input_names : sequence of str
            Of public columns of numbers.
        schema : Schema, optional
            Of raw public columns, in the place of names.
        output_name : str
        colluding : int
            From 0. The noise of the release has as many n-ths more variance, of n sites, as the
            noise of n − colluding sites has to suffice.
        person_name : str
            Of the column that says whose rows they are, if all rows of a person are to be
            protected together.
        rows_of_person : int
            The most rows of a person at one site; with ``person_name`` only.
        sites_of_person : int, optional
            At how many sites a person may have rows: 1 if all custodians promise that nobody is at
            two. If not given, at all of them, which nobody need promise; noise is larger by this
            factor.
        exposure_name : str
            Of counts: which of the public columns is no input but says in how much each row was
            counted.
        more_outputs : sequence of str
            Of `DPGPMultiOutputRegressor`: names of the private columns after the first.

        Raises
        ------
        CustodiansError, ValueError
            If the estimator has settings that a plan cannot state, or the plan makes no sense.
        """
        outputs = _kind_of(estimator)
        given, usual = estimator.get_params(deep=False), _usual(type(estimator))
        for name, value in given.items():
            if name not in STATED[outputs] and value != usual[name]:
                raise CustodiansError(f"several custodians do not fit with {name}={value!r}")
        plan = cls(
            sites=tuple(sites),
            colluding=colluding,
            input_names=tuple(input_names if schema is None else schema.names),
            output_name=output_name,
            schema="" if schema is None else schema_to_text(schema),
            outputs=outputs,
            person_name=person_name,
            exposure_name=exposure_name,
            more_outputs=tuple(more_outputs),
            rows_of_person=rows_of_person,
            sites_of_person=(len(sites) if person_name else 1)
            if sites_of_person is None
            else sites_of_person,
            settings={name: _to_json(name, given[name]) for name in STATED[outputs]},
        )
        plan.validate()
        return plan

    def validate(self) -> None:
        """Refuse a plan that makes no sense.

        Raises
        ------
        CustodiansError, ValueError
        """
        if len(self.sites) < 2 or len(set(self.sites)) < len(self.sites):
            raise CustodiansError("a plan needs two sites or more, each with a name of its own")
        for name in self.sites:
            if not SITE_NAME.fullmatch(name):
                raise CustodiansError(
                    f"{name!r} is no name of a site: take letters, digits, - and _, 64 at most"
                )
        # On some disks such names are of one file.
        if len({name.lower() for name in self.sites}) < len(self.sites):
            raise CustodiansError("names of two sites differ in capital letters alone")
        check_colluding(self.colluding, sites=len(self.sites))
        if not self.input_names or len(set(self.input_names)) < len(self.input_names):
            raise CustodiansError("name every public column once")
        if set(self.output_names) & {*self.input_names, *self.public_columns}:
            raise CustodiansError("the private column is no public one")
        self._check_persons()
        if self.exposure_name and (
            self.outputs != "counts" or self.exposure_name not in self.input_names
        ):
            raise CustodiansError("an exposure is a public column, of rows with counts")
        found = self.read_schema()
        if found is not None and found.names != self.input_names:
            raise CustodiansError("the plan's columns are not those of its schema")
        # What an estimator does before it looks at a table.
        self.estimator()._request().validate()
        names = self.output_names
        if len(names) != self.reading.together or len(set(names)) < len(names):
            raise CustodiansError(
                f"name every private column once: there are bounds for {self.reading.together}, "
                f"and {len(names)} names"
            )

    def _check_persons(self) -> None:
        counts = (self.rows_of_person, self.sites_of_person)
        if not isinstance(self.person_name, str) or any(type(one) is not int for one in counts):
            raise CustodiansError("the plan does not say whose rows are protected together")
        if not self.grouped and counts != (1, 1):
            raise CustodiansError("name the column that says whose rows they are")
        if self.person_name in (*self.input_names, *self.output_names):
            raise CustodiansError("the column of persons says whose rows they are, and no more")
        if not (self.rows_of_person >= 1 and 1 <= self.sites_of_person <= len(self.sites)):
            raise CustodiansError(
                f"a person has 1 row or more, at 1 to {len(self.sites)} sites, got "
                f"{self.rows_of_person} at {self.sites_of_person}"
            )

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the private columns, in order."""
        return (self.output_name, *self.more_outputs)

    @property
    def reading(self) -> RowReading:
        """How sites read their rows; a question may state other units of several outputs."""
        named = self.exposure_name
        several = self.outputs == "several"
        return RowReading(
            exposure=self.input_names.index(named) if named else None,
            transform=self.estimator()._request().task.transform,
            columns=OutputColumns.checked(self.settings["bounds"]) if several else None,
            grouped=self.grouped,
        )

    @property
    def grouped(self) -> bool:
        """Whether all rows of a person are protected together."""
        return bool(self.person_name)

    @property
    def persons(self) -> str:
        """Who is protected, in words; empty where rows are, each on its own.

        Examples
        --------
        >>> Plan.of(DPGPRegressor(bounds=(0, 1), epsilon=1.0), sites="abc", input_names=["age"],
        ...         person_name="who", rows_of_person=5, sites_of_person=1).persons
        'all rows of a person by who, up to 5 at a site; nobody is at two sites, as all promise'
        """
        if not self.grouped:
            return ""
        most = self.sites_of_person
        where = {
            1: "nobody is at two sites, as all promise",
            len(self.sites): "at any of the sites",
        }
        return (
            f"all rows of a person by {self.person_name}, up to {self.rows_of_person} at a site; "
            f"{where.get(most, f'nobody is at more than {most} sites, as all promise')}"
        )

    @property
    def public_columns(self) -> tuple[str, ...]:
        """Names of the columns of a table that are read as public ones."""
        read = self.read_schema()
        return self.input_names if read is None else read.sources

    @property
    def columns(self) -> str:
        """What of a site's rows is sent to all, and what is private, in words.

        Examples
        --------
        >>> Plan.of(DPGPRegressor(bounds=(0, 1), epsilon=1.0), sites="abc", input_names=["age"],
        ...         output_name="height").columns
        'sent to all, row by row: age; private: height'
        """
        whose = f", and which rows are of one person, by {self.person_name}" if self.grouped else ""
        return (
            f"sent to all, row by row: {', '.join(self.public_columns)}{whose}; "
            f"private: {', '.join(self.output_names)}"
        )

    @property
    def declared(self) -> str:
        """What is declared of the private columns, in words.

        Examples
        --------
        >>> Plan.of(DPGPRegressor(bounds=(0, 1), epsilon=1.0), sites="abc",
        ...         input_names=["age"]).declared
        'bounds of y: 0 to 1'
        """
        if self.outputs == "classes":
            return (
                f"classes of {self.output_name}: {', '.join(map(str, self.question.labels or ()))}"
            )
        given = self.settings["bounds"]
        each = given if self.outputs == "several" else [given]
        return "; ".join(
            f"bounds of {name}: {lowest:g} to {highest:g}"
            for name, (lowest, highest) in zip(self.output_names, each, strict=True)
        )

    @property
    def noise(self) -> NoiseChoice:
        """The noise of all questions; "auto" where the first question chooses it."""
        named: NoiseChoice = self.settings["noise"]
        return named

    @property
    def asks_once(self) -> bool:
        """Whether it is sure that all is a single question."""
        settings = self.settings
        return (
            self.outputs in ("numbers", "classes")
            and settings["stages"] is None
            and settings.get("interval", False) is False
        )

    @property
    def question(self) -> Question:
        """What a private cell may be: a label that the plan declares, or else any number."""
        if self.outputs == "classes":
            return Classes.checked(_as_tuples(self.settings["classes"]))
        return OutputBounds(0.0, 1.0)

    @property
    def sent_columns(self) -> int:
        """How many numbers of a row are sent: its inputs, and which of its site's persons it is."""
        return len(self.input_names) + self.grouped

    def estimator(self) -> Estimator:
        """Return the estimator that is fitted."""
        return ESTIMATORS[self.outputs](
            **{name: _from_json(name, value) for name, value in self.settings.items()}
        )

    def read_exposure(self) -> Number | None:
        """Return what the column of exposures is; None without one, and without a schema."""
        schema = self.read_schema()
        return None if schema is None else declared_exposure(schema, self.exposure_name)

    def read_schema(self) -> Schema | None:
        """Return the schema of raw public columns; None where all are numbers already."""
        return schema_from_text(self.schema) if self.schema else None

    @property
    def budget(self) -> Budget:
        """(ε, δ) of all questions together."""
        return float(self.settings["epsilon"]), float(self.settings["delta"])

    @property
    def digest(self) -> str:
        """SHA-256 of the plan."""
        return digest_of(self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return the file; equal plans have equal files."""
        return json.dumps(asdict(self), indent=1, sort_keys=True).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Plan:
        """Return the plan of a file, and check it.

        Raises
        ------
        CustodiansError
            If it is none.
        """
        found = read_json(content, cls)
        plan = cls(
            **{
                **found,
                "sites": _texts(found["sites"]),
                "input_names": _texts(found["input_names"]),
                "more_outputs": _texts(found["more_outputs"]),
            }
        )
        stated = (
            isinstance(plan.outputs, str)
            and plan.outputs in ESTIMATORS
            and isinstance(plan.settings, dict)
            and set(plan.settings) == set(STATED[plan.outputs])
        )
        if not stated or not isinstance(plan.schema, str):
            raise CustodiansError("the plan is damaged, or of another version of this package")
        try:
            plan.validate()
        except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError) as error:
            raise CustodiansError(f"the plan is damaged: {error}") from None
        return plan


def _kind_of(estimator: Estimator) -> Kind:
    if isinstance(estimator, DPGPClassifier):
        return "classes"
    if isinstance(estimator, DPGPQuantileRegressor):
        return "quantiles"
    if isinstance(estimator, DPGPMultiOutputRegressor):
        return "several"
    return "counts" if estimator.likelihood == "counts" else "numbers"


def check_colluding(colluding: int, *, sites: int) -> None:
    """Refuse sites that are too few, alone or without those that may work together.

    Raises
    ------
    CustodiansError
    """
    if sites < 2:
        raise CustodiansError("a question is put to two sites or more")
    if type(colluding) is not int or not 0 <= colluding < sites:
        raise CustodiansError(
            f"of {sites} sites at least 0 and at most {sites - 1} may work together, got "
            f"{colluding!r}"
        )


@dataclass(frozen=True, kw_only=True)
class Member:
    """A site that joined. All of it is public.

    Attributes
    ----------
    name : str
    key : str
        Its public key, in hexadecimal.
    rows : int
    inputs : str
        Digest of its public inputs.
    plan : str
        Digest of the plan that it joined.
    """

    name: str
    key: str
    rows: int
    inputs: str
    plan: str

    def to_bytes(self) -> bytes:
        """Return the file."""
        return json.dumps(asdict(self), indent=1, sort_keys=True).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Return the member of a file, and check it.

        Raises
        ------
        CustodiansError
            If it is none.
        """
        found = cls(**read_json(content, cls))
        texts = (found.name, found.key, found.inputs, found.plan)
        if not all(isinstance(each, str) for each in texts):
            raise CustodiansError("the file of a site is damaged")
        if not KEY.fullmatch(found.key) or found.point in LOW_ORDER:
            raise CustodiansError(f"the public key of {found.name} is none")
        if type(found.rows) is not int or found.rows < 1:
            raise CustodiansError(f"{found.name} joined with no rows")
        return found

    @property
    def point(self) -> int:
        """The public key as the number that X25519 takes it for: several texts may be of one."""
        return (int.from_bytes(bytes.fromhex(self.key), "little") % 2**255) % FIELD


@dataclass(frozen=True)
class Roster:
    """The sites that joined a plan.

    Attributes
    ----------
    members : tuple of Member
        In the order of the plan.
    """

    members: tuple[Member, ...]

    def check(self, plan: Plan) -> None:
        """Refuse a roster that is not of a plan: sites that it does not name, or of another.

        How much noise each site adds is decided by how many there are, so that whoever makes the
        roster could otherwise invent some.

        Raises
        ------
        CustodiansError
        """
        names = [each.name for each in self.members]
        if len(set(names)) < len(names) or not set(names) <= set(plan.sites):
            raise CustodiansError("the roster has sites that the plan does not name, or one twice")
        check_colluding(plan.colluding, sites=len(names))
        for each in self.members:
            if each.plan != plan.digest:
                raise CustodiansError(f"{each.name} joined another plan")
        if len({each.point for each in self.members}) < len(names):
            raise CustodiansError("two sites of the roster have one key")

    @property
    def digest(self) -> str:
        """SHA-256 of the roster: sites compare it by another way, a telephone, to know the keys."""
        return digest_of(self.to_bytes())

    def of(self, name: str) -> Member:
        """Return the member of a name.

        Raises
        ------
        CustodiansError
            If there is none.
        """
        for member in self.members:
            if member.name == name:
                return member
        raise CustodiansError(f"{name} is not among the sites that joined")

    def to_bytes(self) -> bytes:
        """Return the file."""
        return json.dumps([asdict(each) for each in self.members], indent=1).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Roster:
        """Return the roster of a file.

        Raises
        ------
        CustodiansError
            If it is none.
        """
        try:
            found = json.loads(content)
            members = tuple(Member.from_bytes(json.dumps(each).encode()) for each in found)
        except (ValueError, TypeError, RecursionError):
            raise CustodiansError("the roster is damaged") from None
        return cls(members)


def digest_of(content: bytes) -> str:
    """Return SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def digits_to_compare(digest: str) -> str:
    """Return the beginning of a digest, as people read it to each other.

    Examples
    --------
    >>> digits_to_compare(digest_of(b"a plan"))
    'a27f a2ba cd57 96b8 2680 016a 6b88 65a6 16a9 e4f6'
    """
    return " ".join(digest[place : place + 4] for place in range(0, AGREED_DIGITS, 4))


def read_json(
    content: bytes, kind: type[Any], *, later: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the fields of a dataclass from a file.

    Parameters
    ----------
    content : bytes
    kind : type
    later : mapping, optional
        What fields are in files of versions that did not have them.

    Raises
    ------
    CustodiansError
        If they are others.
    """
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict) and later is not None:
        found = {**later, **found}
    if not isinstance(found, dict) or set(found) != {each.name for each in fields(kind)}:
        raise CustodiansError(
            f"the file of a {kind.__name__.lower()} is damaged, or of another version of this "
            "package"
        )
    return found


def _usual(kind: type[Any]) -> dict[str, Any]:
    parameters = inspect.signature(kind).parameters
    return {name: parameter.default for name, parameter in parameters.items()}


def _to_json(name: str, value: Any) -> Any:
    if isinstance(value, Kernel):
        return kernel_to_tree(value)
    if isinstance(value, Classes):
        value = value.labels
    try:
        return json.loads(json.dumps(value))
    except TypeError:
        raise CustodiansError(f"a plan cannot state {name}={value!r}") from None


def _from_json(name: str, value: Any) -> Any:
    if name == "kernel" and value is not None:
        return kernel_from_tree(value)
    return _as_tuples(value)


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise CustodiansError("the plan is damaged")
    return tuple(value)
