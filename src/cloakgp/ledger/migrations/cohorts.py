"""The cohort of every charge: the people whom it is about."""

from __future__ import annotations

from cloakgp.utils.extras import extra

with extra("ledger"):
    import sqlalchemy as sa
    from alembic import op

revision = "2"
down_revision = "1"


def upgrade() -> None:
    """Add it; charges from before are about everybody."""
    added = sa.Column("cohort", sa.Text, nullable=False, server_default="")
    op.add_column("charges", added)
