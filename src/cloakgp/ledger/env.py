"""Environment of Alembic's migrations, on an open connection."""

from __future__ import annotations

from cloakgp.utils.extras import extra

with extra("ledger"):
    from alembic import context

# The name under which Alembic runs this file.
if __name__ == "env_py":
    context.configure(
        connection=context.config.attributes["connection"],
        version_table=context.config.attributes["version_table"],
    )
    context.run_migrations()
