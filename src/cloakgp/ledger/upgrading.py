"""Migrations of tables, by Alembic, on an open connection."""

from __future__ import annotations

from pathlib import Path

from cloakgp.ledger.errors import LedgerError
from cloakgp.utils.extras import extra

with extra("ledger"):
    from alembic import command
    from alembic.config import Config
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory
    from alembic.util import CommandError
    from sqlalchemy import MetaData
    from sqlalchemy.engine import Connection


class NewerTablesError(LedgerError):
    """A newer version of this package made the tables."""

    def __init__(self) -> None:
        super().__init__(
            "the database was made by a newer version of cloakgp, and this one cannot read it: "
            "install that version, or a later one"
        )


def upgrade(
    connection: Connection, *, tables: MetaData, migrations: Path, version_table: str
) -> None:
    """Bring tables to the state of this version of the package.

    A new database gets the tables as they are now, with the mark of the newest migration; an older
    one passes through the migrations that it lacks.

    Parameters
    ----------
    connection : Connection
        Within a transaction.
    tables : MetaData
    migrations : Path
        Folder of the migrations.
    version_table : str
        Name of the table that holds the mark.

    Raises
    ------
    NewerTablesError
        If the mark is of a migration that this version lacks.
    """
    config = Config()
    # Alembic runs `env.py` of this folder.
    config.set_main_option("script_location", _escape(Path(__file__).parent))
    config.set_main_option("version_locations", _escape(migrations))
    config.set_main_option("path_separator", "newline")
    script = ScriptDirectory.from_config(config)
    context = MigrationContext.configure(connection, opts={"version_table": version_table})
    revision = context.get_current_revision()
    if revision is None:
        tables.create_all(connection)
        context.stamp(script, "head")
        return
    if revision == script.get_current_head():
        return
    config.attributes["connection"] = connection
    config.attributes["version_table"] = version_table
    try:
        command.upgrade(config, "head")
    except CommandError:
        raise NewerTablesError from None


def _escape(path: Path) -> str:
    return str(path).replace("%", "%%")
