"""The cohort of every attached column, as its entry says."""

from __future__ import annotations

import json

from cloakgp.utils.extras import extra

with extra("ledger"):
    import sqlalchemy as sa
    from alembic import op

revision = "3"
down_revision = "2"


def upgrade() -> None:
    """Add it, and take it from the entries."""
    op.add_column("columns", sa.Column("cohort", sa.Text, nullable=False, server_default=""))
    connection = op.get_bind()
    columns = sa.table("columns", sa.column("mark"), sa.column("cohort"))
    bodies = connection.execute(sa.text("SELECT body FROM entries")).scalars().all()
    for content in map(json.loads, bodies):
        if content["kind"] == "attached" and content.get("cohort"):
            connection.execute(
                columns.update()
                .where(columns.c.mark == content["mark"])
                .values(cohort=str(content["cohort"]))
            )
