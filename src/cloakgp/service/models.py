"""Tables of the service, beside the ledger's in one database.

What was spent is in the ledger alone, found by the key of a request; here is who asked for what,
and what came of it. Times are whole seconds since 1970, lists are JSON.
"""

from __future__ import annotations

import time
from typing import Any, ClassVar, Literal

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Float,
    ForeignKey,
    Integer,
    MetaData,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

RequestState = Literal["waiting", "approved", "rejected", "withdrawn"]
JobState = Literal["queued", "running", "drawing", "done", "failed", "cancelled"]


def now() -> int:
    """Return the time, in seconds since 1970."""
    return int(time.time())


class Base(DeclarativeBase):
    """A row."""

    metadata = MetaData()
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        str: Text,
        RequestState: Text,
        JobState: Text,
        int: BigInteger,
        float: Float,
        bool: Boolean,
        list[str]: JSON,
        dict[str, Any]: JSON,
    }


def _key() -> Mapped[int]:
    # SQLite numbers by itself what is an Integer.
    return mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)


class Person(Base):
    """Somebody, and what they are trusted with."""

    __tablename__ = "service_people"

    id: Mapped[int] = _key()
    name: Mapped[str] = mapped_column(unique=True)
    roles: Mapped[list[str]]
    active: Mapped[bool] = mapped_column(default=True)
    created: Mapped[int] = mapped_column(default=now)


class Token(Base):
    """Something by which a person is known; the token itself is kept nowhere."""

    __tablename__ = "service_tokens"

    id: Mapped[int] = _key()
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
    """A browser that somebody has logged in with a token; ends with it."""

    __tablename__ = "service_sessions"

    digest: Mapped[str] = mapped_column(primary_key=True)
    token_id: Mapped[int] = mapped_column(ForeignKey("service_tokens.id"))
    created: Mapped[int] = mapped_column(default=now)
    expires: Mapped[int]

    token: Mapped[Token] = relationship(lazy="joined")


class Upload(Base):
    """A file that a custodian has sent."""

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
    # What one analyst's requests may add up to before somebody else must approve them.
    approval_epsilon: Mapped[float]
    approval_delta: Mapped[float]
    # What they may add up to at all, unless the analyst has a share of their own.
    share_epsilon: Mapped[float | None]
    share_delta: Mapped[float | None]


class Share(Base):
    """What one analyst's requests of an account may add up to."""

    __tablename__ = "service_shares"

    account: Mapped[str] = mapped_column(ForeignKey("service_rules.account"), primary_key=True)
    person_id: Mapped[int] = mapped_column(ForeignKey("service_people.id"), primary_key=True)
    epsilon: Mapped[float]
    delta: Mapped[float]


class Table(Base):
    """A table of which releases can be asked, with all that is declared of it."""

    __tablename__ = "service_tables"

    id: Mapped[int] = _key()
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


class Request(Base):
    """A release that somebody has asked for."""

    __tablename__ = "service_requests"
    __table_args__ = (UniqueConstraint("person_id", "idempotency"),)

    id: Mapped[int] = _key()
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
        """By which the ledger knows its one charge."""
        return f"service request {self.id}"


class Job(Base):
    """The making of a release."""

    __tablename__ = "service_jobs"

    id: Mapped[int] = _key()
    request_id: Mapped[int] = mapped_column(ForeignKey("service_requests.id"), unique=True)
    state: Mapped[JobState]
    step: Mapped[str] = mapped_column(default="")
    share: Mapped[float | None]
    # Whoever is at it, who counts up `beats` while alive.
    runner: Mapped[str] = mapped_column(default="")
    beats: Mapped[int] = mapped_column(default=0)
    attempts: Mapped[int] = mapped_column(default=0)
    failure: Mapped[str] = mapped_column(default="")
    created: Mapped[int] = mapped_column(default=now)
    finished: Mapped[int | None]

    request: Mapped[Request] = relationship(lazy="joined", back_populates="job")


class MadeRelease(Base):
    """A release that was made; its file is in the ledger's table, by its digest."""

    __tablename__ = "service_releases"

    id: Mapped[int] = _key()
    request_id: Mapped[int] = mapped_column(ForeignKey("service_requests.id"), unique=True)
    digest: Mapped[str]
    size: Mapped[int]
    charge: Mapped[int]
    created: Mapped[int] = mapped_column(default=now)

    request: Mapped[Request] = relationship(lazy="joined")


class Event(Base):
    """Something that was done to the service: people, tokens, tables, decisions."""

    __tablename__ = "service_events"

    id: Mapped[int] = _key()
    created: Mapped[int] = mapped_column(default=now)
    who: Mapped[str]
    what: Mapped[str]
    about: Mapped[str]
