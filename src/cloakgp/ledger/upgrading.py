"""Migrations of tables, by Alembic, on a connection that is there."""

from __future__ import annotations

from pathlib import Path

from cloakgp.utils.extras import extra

with extra("ledger"):
    from alembic import command
    from alembic.config import Config
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory
    from alembic.util import CommandError
    from sqlalchemy.engine import Connection


class NewerTablesError(Exception):
    """A newer version of this package has made the tables."""


def upgrade(connection: Connection, *, migrations: Path, version_table: str) -> None:
    """Bring tables to what this version of the package knows.

    Parameters
    ----------
    connection : Connection
        Within a transaction.
    migrations : Path
        Folder of the migrations.
    version_table : str
        Name of the table that says which of them were made.

    Raises
    ------
    NewerTablesError
        If others were made.
    """
    config = Config()
    # Alembic runs `env.py` of this folder.
    config.set_main_option("script_location", _escaped(Path(__file__).parent))
    config.set_main_option("version_locations", _escaped(migrations))
    config.set_main_option("path_separator", "newline")
    newest = ScriptDirectory.from_config(config).get_current_head()
    context = MigrationContext.configure(connection, opts={"version_table": version_table})
    if context.get_current_revision() == newest:
        return
    config.attributes["connection"] = connection
    config.attributes["version_table"] = version_table
    try:
        command.upgrade(config, "head")
    except CommandError:
        raise NewerTablesError from None


def _escaped(path: Path) -> str:
    return str(path).replace("%", "%%")
