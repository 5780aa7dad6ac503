"""Environment in which Alembic runs migrations, on a connection that it is given."""

from __future__ import annotations

from cloakgp.utils.extras import extra

with extra("ledger"):
    from alembic import context

# Under this name Alembic runs the file.
if __name__ == "env_py":
    context.configure(
        connection=context.config.attributes["connection"],
        version_table=context.config.attributes["version_table"],
    )
    context.run_migrations()
