"""Whether the people of a table may be in other tables of its account."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "s3"
down_revision = "s2"


def upgrade() -> None:
    """Add it; those of tables from before may be."""
    added = sa.Column("people", sa.Text, nullable=False, server_default="overlapping")
    op.add_column("service_tables", added)
