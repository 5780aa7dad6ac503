"""Public columns of a table that its custodian declared to be public, whatever is private."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "s4"
down_revision = "s3"


def upgrade() -> None:
    """Add them; none of tables from before."""
    added = sa.Column("declared_public", sa.JSON, nullable=False, server_default="[]")
    op.add_column("service_tables", added)
