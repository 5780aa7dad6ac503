"""Joint requests, their custodians, and the files that these exchange with the coordinator."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "s2"
down_revision = "s1"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "service_joint_requests",
        sa.Column("id", _number(), primary_key=True),
        _key_of("person_id", "service_people.id"),
        sa.Column("purpose", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("problem", sa.Text, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("closed", sa.BigInteger),
    )
    op.create_table(
        "service_joint_sites",
        _key_of("request_id", "service_joint_requests.id", primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        _key_of("person_id", "service_people.id"),
    )
    op.create_table(
        "service_joint_files",
        _key_of("request_id", "service_joint_requests.id", primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
    )


def _number() -> sa.types.TypeEngine[int]:
    return sa.BigInteger().with_variant(sa.Integer, "sqlite")


def _key_of(name: str, target: str, *, primary_key: bool = False) -> sa.Column[int]:
    reference = sa.ForeignKey(target)
    return sa.Column(name, _number(), reference, primary_key=primary_key, nullable=False)
