"""Migrations make the tables that the code knows."""

from __future__ import annotations

import sqlalchemy as sa

from cloakgp.ledger import Ledger, schema


def shape(table):
    """Columns with their kinds, and keys."""
    return (
        [
            (column["name"], type(column["type"]).__name__, column["nullable"])
            for column in table[0]
        ],
        table[1]["constrained_columns"],
        sorted(key["constrained_columns"] for key in table[2]),
        sorted(unique["column_names"] for unique in table[3]),
    )


def looked_at(connection):
    found = sa.inspect(connection)
    return {
        name: shape(
            (
                found.get_columns(name),
                found.get_pk_constraint(name),
                found.get_foreign_keys(name),
                found.get_unique_constraints(name),
            )
        )
        for name in found.get_table_names()
    }


def test_migrations_make_the_tables_of_the_schema(url, tmp_path):
    ledger = Ledger.create(url)
    with ledger.database._engine.connect() as connection:
        made = looked_at(connection)
        dialect = connection.dialect.name
    assert set(made) == {*schema.metadata.tables, "schema_version"}
    ledger.close()
    if dialect == "sqlite":
        engine = sa.create_engine(f"sqlite:///{tmp_path}/expected.db")
        schema.metadata.create_all(engine)
        with engine.connect() as connection:
            expected = looked_at(connection)
        engine.dispose()
        assert {name: made[name] for name in expected} == expected
