"""Migrations make the tables that the code knows."""

from __future__ import annotations

import sqlalchemy as sa

from cloakgp.ledger import Ledger
from cloakgp.ledger.engines import make_engine, parse_url
from cloakgp.service.database import VERSION_TABLE, ServiceDatabase
from cloakgp.service.models import Base


def looked_at(connection):
    """Columns with their kinds, and keys, of every table of the service."""
    found = sa.inspect(connection)
    return {
        name: (
            [
                (each["name"], type(each["type"]).__name__, each["nullable"])
                for each in found.get_columns(name)
            ],
            found.get_pk_constraint(name)["constrained_columns"],
            sorted(str(each["constrained_columns"]) for each in found.get_foreign_keys(name)),
            sorted(str(each["column_names"]) for each in found.get_unique_constraints(name)),
        )
        for name in found.get_table_names()
        if name.startswith("service_") and name != VERSION_TABLE
    }


def test_migrations_make_the_tables_of_the_models(any_url, tmp_path):
    Ledger.create(any_url).close()
    database = ServiceDatabase(any_url)
    database.prepare()
    # Twice does no harm.
    database.prepare()
    database.close()
    engine = make_engine(parse_url(any_url))
    with engine.connect() as connection:
        made = looked_at(connection)
        dialect = connection.dialect.name
    engine.dispose()
    assert set(made) == set(Base.metadata.tables)
    if dialect == "sqlite":
        expected = sa.create_engine(f"sqlite:///{tmp_path}/expected.db")
        Base.metadata.create_all(expected)
        with expected.connect() as connection:
            assert looked_at(connection) == made
        expected.dispose()
