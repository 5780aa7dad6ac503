"""First tables of the service."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision = "s1"
down_revision = None
branch_labels = None
depends_on = None

# SQLite numbers by itself what is an Integer.
NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "service_people",
        _id(),
        *_texts("name"),
        _json("roles"),
        _flag("active"),
        *_numbers("created"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "service_tokens",
        _id(),
        _to("person_id", "service_people.id"),
        *_texts("digest", "hint", "label"),
        _json("roles"),
        *_numbers("created", "expires"),
        *_numbers("revoked", "used", nullable=True),
        sa.UniqueConstraint("digest"),
    )
    op.create_table(
        "service_sessions",
        sa.Column("digest", sa.Text, primary_key=True),
        _to("token_id", "service_tokens.id"),
        *_numbers("created", "expires"),
    )
    op.create_table(
        "service_uploads",
        sa.Column("id", sa.Text, primary_key=True),
        _to("person_id", "service_people.id"),
        *_texts("name"),
        *_numbers("size", "created"),
    )
    op.create_table(
        "service_rules",
        sa.Column("account", sa.Text, primary_key=True),
        *_floats("approval_epsilon", "approval_delta"),
        *_floats("share_epsilon", "share_delta", nullable=True),
    )
    op.create_table(
        "service_shares",
        sa.Column("account", sa.Text, sa.ForeignKey("service_rules.account"), primary_key=True),
        sa.Column(
            "person_id",
            NUMBER,
            sa.ForeignKey("service_people.id"),
            primary_key=True,
            autoincrement=False,
        ),
        *_floats("epsilon", "delta"),
    )
    op.create_table(
        "service_tables",
        _id(),
        *_texts("name"),
        sa.Column("account", sa.Text, sa.ForeignKey("service_rules.account"), nullable=False),
        *_texts("note", "path", "query", "schema", "output"),
        *_floats("low", "high", nullable=True),
        _json("classes"),
        *_texts("person", "missing_output"),
        *_numbers("rows"),
        *_texts("registered_by"),
        *_numbers("created"),
        *_numbers("withdrawn", nullable=True),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "service_requests",
        _id(),
        _to("table_id", "service_tables.id"),
        _to("person_id", "service_people.id"),
        *_texts("idempotency", nullable=True),
        *_texts("purpose"),
        _json("choices"),
        *_floats("epsilon", "delta"),
        _flag("needs_approval"),
        *_texts("state"),
        *_texts("decided_by", nullable=True),
        *_numbers("decided", nullable=True),
        *_texts("remark"),
        *_numbers("created"),
        sa.UniqueConstraint("person_id", "idempotency"),
    )
    op.create_table(
        "service_jobs",
        _id(),
        _to("request_id", "service_requests.id"),
        *_texts("state", "step"),
        *_floats("share", nullable=True),
        *_texts("runner"),
        *_numbers("beats", "attempts"),
        *_texts("failure"),
        *_numbers("created"),
        *_numbers("finished", nullable=True),
        sa.UniqueConstraint("request_id"),
    )
    op.create_table(
        "service_releases",
        _id(),
        _to("request_id", "service_requests.id"),
        *_texts("digest"),
        *_numbers("size", "charge", "created"),
        sa.UniqueConstraint("request_id"),
    )
    op.create_table("service_events", _id(), *_numbers("created"), *_texts("who", "what", "about"))


def _id() -> sa.Column[int]:
    return sa.Column("id", NUMBER, primary_key=True)


def _to(name: str, place: str) -> sa.Column[int]:
    return sa.Column(name, NUMBER, sa.ForeignKey(place), nullable=False)


def _json(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.JSON, nullable=False)


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean, nullable=False)


def _texts(*names: str, nullable: bool = False) -> Sequence[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=nullable) for name in names]


def _numbers(*names: str, nullable: bool = False) -> Sequence[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger, nullable=nullable) for name in names]


def _floats(*names: str, nullable: bool = False) -> Sequence[sa.Column[float]]:
    return [sa.Column(name, sa.Float, nullable=nullable) for name in names]
