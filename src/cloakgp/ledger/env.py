"""Environment in which Alembic runs the migrations, on a connection that it is given."""

from __future__ import annotations

from cloakgp.ledger.schema import metadata
from cloakgp.utils.extras import extra

with extra("ledger"):
    from alembic import context

VERSION_TABLE = "schema_version"

# Under this name Alembic runs the file.
if __name__ == "env_py":
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=metadata,
        version_table=VERSION_TABLE,
    )
    context.run_migrations()
