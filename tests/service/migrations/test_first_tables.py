"""Migrations make the tables that the code knows."""

from __future__ import annotations

import sqlalchemy as sa
from services import looked_at

from cloakgp.ledger import Ledger
from cloakgp.ledger.engines import make_engine, parse_url
from cloakgp.service.database import ServiceDatabase
from cloakgp.service.models import Base


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
