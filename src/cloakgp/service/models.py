"""Tables of the service, beside the ledger's in one database.

The ledger alone holds spent budgets, under the key of each request; these tables hold the people,
their requests and the results. Times are whole seconds since 1970, lists are JSON.
"""

from __future__ import annotations

import time
from typing import Any, ClassVar, Literal

from sqlalchemy import (
    DDL,
    JSON,
    BigInteger,
    Boolean,
    Float,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    Text,
    UniqueConstraint,
    event,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

RequestState = Literal["waiting", "approved", "rejected", "withdrawn"]
JobState = Literal["queued", "running", "drawing", "done", "failed", "cancelled"]
TablePeople = Literal["overlapping", "disjoint"]
ProposalKind = Literal["limit", "rules", "share"]
ProposalState = Literal["waiting", "confirmed", "rejected", "replaced"]
# A job in one of the first states may still spend.
UNFINISHED: tuple[JobState, ...] = ("queued", "running", "drawing")
FINISHED: tuple[JobState, ...] = ("done", "failed", "cancelled")


def now() -> int:
    """Return the time, in seconds since 1970."""
    return int(time.time())


class Base(DeclarativeBase):
    """A row of the service."""

    metadata = MetaData()
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        str: Text,
        RequestState: Text,
        JobState: Text,
        ProposalKind: Text,
        TablePeople: Text,
        ProposalState: Text,
        int: BigInteger,
        float: Float,
        bool: Boolean,
        bytes: LargeBinary,
        list[str]: JSON,
        dict[str, Any]: JSON,
    }


class Numbered(Base):
    """A row with a number, which the database gives it."""

    __abstract__ = True

    # SQLite numbers the rows of an Integer alone.
    id: Mapped[int] = mapped_column(
        BigInteger().with_variant(Integer, "sqlite"), primary_key=True, sort_order=-1
    )


class Person(Numbered):
    """A person, and the roles they are trusted with."""

    __tablename__ = "service_people"

    # A pseudonym once the name is erased.
    name: Mapped[str] = mapped_column(unique=True)
    roles: Mapped[list[str]]
    active: Mapped[bool] = mapped_column(default=True)
    created: Mapped[int] = mapped_column(default=now)
    # When they last lost the use of the service.
    left: Mapped[int | None]
    erased: Mapped[int | None]

    def may_ask(self) -> bool:
        """Return whether their requests may still be carried out."""
        return self.active and "analyst" in self.roles


class Identity(Base):
    """An account at an identity provider by which a person signs in."""

    __tablename__ = "service_identities"

    issuer: Mapped[str] = mapped_column(primary_key=True)
    subject: Mapped[str] = mapped_column(primary_key=True)
    person_id: Mapped[int] = mapped_column(ForeignKey("service_people.id"))

    person: Mapped[Person] = relationship(lazy="joined")


class Token(Numbered):
    """A token by which the service knows a person; the token itself is kept nowhere."""

    __tablename__ = "service_tokens"

    person_id: Mapped[int] = mapped_column(ForeignKey("service_people.id"))
    digest: Mapped[str] = mapped_column(unique=True)
    hint: Mapped[str]
    label: Mapped[str]
    roles: Mapped[list[str]]
    created: Mapped[int] = mapped_column(default=now)
    expires: Mapped[int]
    revoked: Mapped[int | None]
    used: Mapped[int | None]

    person: Mapped[Person] = relationship(lazy="joined")


class BrowserSession(Base):
    """A session of a browser; it ends with the token by which it began, if there was one."""

    __tablename__ = "service_sessions"

    digest: Mapped[str] = mapped_column(primary_key=True)
    person_id: Mapped[int] = mapped_column(ForeignKey("service_people.id"))
    token_id: Mapped[int | None] = mapped_column(ForeignKey("service_tokens.id"))
    roles: Mapped[list[str]]
    created: Mapped[int] = mapped_column(default=now)
    expires: Mapped[int]

    person: Mapped[Person] = relationship(lazy="joined")
    token: Mapped[Token | None] = relationship(lazy="joined")


class Upload(Base):
    """A file that a custodian sent."""

    __tablename__ = "service_uploads"

    id: Mapped[str] = mapped_column(primary_key=True)
    person_id: Mapped[int] = mapped_column(ForeignKey("service_people.id"))
    name: Mapped[str]
    size: Mapped[int]
    created: Mapped[int] = mapped_column(default=now)


class Rules(Base):
    """Rules of an account of the ledger, under its limit."""

    __tablename__ = "service_rules"

    account: Mapped[str] = mapped_column(primary_key=True)
    # The most that one analyst's requests may add up to without the approval of another person.
    approval_epsilon: Mapped[float]
    approval_delta: Mapped[float]
    # The most that they may add up to at all, unless the analyst has a share of their own.
    share_epsilon: Mapped[float | None]
    share_delta: Mapped[float | None]


class Share(Base):
    """The largest sum of one analyst's requests of an account."""

    __tablename__ = "service_shares"

    account: Mapped[str] = mapped_column(ForeignKey("service_rules.account"), primary_key=True)
    person_id: Mapped[int] = mapped_column(ForeignKey("service_people.id"), primary_key=True)
    epsilon: Mapped[float]
    delta: Mapped[float]


class Proposal(Numbered):
    """A change of an account that lets more be spent, for a second person to confirm."""

    __tablename__ = "service_proposals"

    account: Mapped[str] = mapped_column(ForeignKey("service_rules.account"))
    kind: Mapped[ProposalKind]
    # The change as it was sent, and the state that it would replace.
    content: Mapped[dict[str, Any]]
    before: Mapped[dict[str, Any]]
    # The person whose share it changes.
    about_id: Mapped[int | None] = mapped_column(ForeignKey("service_people.id"))
    proposed_by_id: Mapped[int] = mapped_column(ForeignKey("service_people.id"))
    state: Mapped[ProposalState] = mapped_column(default="waiting")
    decided_by_id: Mapped[int | None] = mapped_column(ForeignKey("service_people.id"))
    decided: Mapped[int | None]
    created: Mapped[int] = mapped_column(default=now)

    about: Mapped[Person | None] = relationship(lazy="joined", foreign_keys=[about_id])
    proposed_by: Mapped[Person] = relationship(lazy="joined", foreign_keys=[proposed_by_id])
    decided_by: Mapped[Person | None] = relationship(lazy="joined", foreign_keys=[decided_by_id])


class Table(Numbered):
    """A table for releases, with its declarations."""

    __tablename__ = "service_tables"

    name: Mapped[str] = mapped_column(unique=True)
    account: Mapped[str] = mapped_column(ForeignKey("service_rules.account"))
    note: Mapped[str]
    path: Mapped[str]
    query: Mapped[str]
    schema: Mapped[str]
    output: Mapped[str]
    low: Mapped[float | None]
    high: Mapped[float | None]
    classes: Mapped[list[str]]
    person: Mapped[str]
    missing_output: Mapped[str]
    rows: Mapped[int]
    registered_by: Mapped[str]
    created: Mapped[int] = mapped_column(default=now)
    withdrawn: Mapped[int | None]
    # Whether its people may be in other tables of the account, as its custodian says.
    people: Mapped[TablePeople]
    # Public columns that everybody may know, whatever private column has the same values.
    declared_public: Mapped[list[str]]

    @property
    def cohort(self) -> str:
        """The cohort of the account that its people are, empty if they may be any."""
        return self.name if self.people == "disjoint" else ""


class Request(Numbered):
    """A request for a release."""

    __tablename__ = "service_requests"
    __table_args__ = (UniqueConstraint("person_id", "idempotency"),)

    table_id: Mapped[int] = mapped_column(ForeignKey("service_tables.id"))
    person_id: Mapped[int] = mapped_column(ForeignKey("service_people.id"))
    idempotency: Mapped[str | None]
    purpose: Mapped[str]
    choices: Mapped[dict[str, Any]]
    epsilon: Mapped[float]
    delta: Mapped[float]
    needs_approval: Mapped[bool]
    state: Mapped[RequestState]
    decided_by: Mapped[str | None]
    decided: Mapped[int | None]
    remark: Mapped[str] = mapped_column(default="")
    created: Mapped[int] = mapped_column(default=now)

    table: Mapped[Table] = relationship(lazy="joined")
    person: Mapped[Person] = relationship(lazy="joined")
    job: Mapped[Job | None] = relationship(lazy="joined", back_populates="request")

    @property
    def key(self) -> str:
        """The key of its one charge in the ledger."""
        return f"service request {self.id}"


class Job(Numbered):
    """The making of a release."""

    __tablename__ = "service_jobs"

    request_id: Mapped[int] = mapped_column(ForeignKey("service_requests.id"), unique=True)
    state: Mapped[JobState]
    step: Mapped[str] = mapped_column(default="")
    share: Mapped[float | None]
    # The process that works on it, which counts up `beats` while it lives.
    runner: Mapped[str] = mapped_column(default="")
    beats: Mapped[int] = mapped_column(default=0)
    attempts: Mapped[int] = mapped_column(default=0)
    failure: Mapped[str] = mapped_column(default="")
    created: Mapped[int] = mapped_column(default=now)
    finished: Mapped[int | None]

    request: Mapped[Request] = relationship(lazy="joined", back_populates="job")


class MadeRelease(Numbered):
    """A published release; its file is in the ledger's table, under its digest."""

    __tablename__ = "service_releases"

    request_id: Mapped[int] = mapped_column(ForeignKey("service_requests.id"), unique=True)
    digest: Mapped[str]
    size: Mapped[int]
    charge: Mapped[int]
    created: Mapped[int] = mapped_column(default=now)

    request: Mapped[Request] = relationship(lazy="joined")


class JointRequest(Numbered):
    """A request for one release of the rows of several custodians, which are not here."""

    __tablename__ = "service_joint_requests"

    person_id: Mapped[int] = mapped_column(ForeignKey("service_people.id"))
    purpose: Mapped[str]
    # Of its plan.
    digest: Mapped[str]
    # Why the coordinator cannot go on; empty if it can.
    problem: Mapped[str] = mapped_column(default="")
    created: Mapped[int] = mapped_column(default=now)
    closed: Mapped[int | None]

    person: Mapped[Person] = relationship(lazy="joined")
    sites: Mapped[list[JointSite]] = relationship(order_by="JointSite.name")


class JointSite(Base):
    """A custodian of a joint request, by the name that its plan has for them."""

    __tablename__ = "service_joint_sites"

    request_id: Mapped[int] = mapped_column(
        ForeignKey("service_joint_requests.id"), primary_key=True
    )
    name: Mapped[str] = mapped_column(primary_key=True)
    person_id: Mapped[int] = mapped_column(ForeignKey("service_people.id"))

    person: Mapped[Person] = relationship(lazy="joined")


class JointFile(Base):
    """A file that custodians and coordinator of a joint request exchange; it is never changed."""

    __tablename__ = "service_joint_files"

    request_id: Mapped[int] = mapped_column(
        ForeignKey("service_joint_requests.id"), primary_key=True
    )
    name: Mapped[str] = mapped_column(primary_key=True)
    content: Mapped[bytes]
    created: Mapped[int] = mapped_column(default=now)


class Probe(Numbered):
    """One row, which a check of readiness writes."""

    __tablename__ = "service_probes"

    written: Mapped[int]


class Event(Numbered):
    """An event of the service's audit trail: people, tokens, tables, decisions.

    People are named by their rows alone, so that erasing a name erases it here too.
    """

    __tablename__ = "service_events"

    created: Mapped[int] = mapped_column(default=now)
    # Empty for a person, or one of the words "service", "host" and "unknown".
    who: Mapped[str]
    who_id: Mapped[int | None] = mapped_column(ForeignKey("service_people.id"))
    what: Mapped[str]
    about: Mapped[str]
    person_id: Mapped[int | None] = mapped_column(ForeignKey("service_people.id"))
    address: Mapped[str] = mapped_column(default="")

    actor: Mapped[Person | None] = relationship(lazy="joined", foreign_keys=[who_id])
    person: Mapped[Person | None] = relationship(lazy="joined", foreign_keys=[person_id])


class Count(Base):
    """Requests of one kind within a window of time, counted for several servers."""

    __tablename__ = "service_counts"

    key: Mapped[str] = mapped_column(primary_key=True)
    count: Mapped[int]
    expires: Mapped[float]


# No crash matters to counts, and so no request waits for a disk.
event.listen(
    Count.__table__,
    "after_create",
    DDL("ALTER TABLE service_counts SET UNLOGGED").execute_if(dialect="postgresql"),  # type: ignore[no-untyped-call]
)
