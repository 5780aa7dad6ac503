"""A database of the first revision gets what it lacks, as a new one has it."""

from __future__ import annotations

import sqlalchemy as sa
from services import looked_at

from cloakgp.ledger import Ledger
from cloakgp.ledger.engines import make_engine, parse_url
from cloakgp.service.database import VERSION_TABLE, ServiceDatabase
from cloakgp.service.models import Base

NEW = ("service_joint_files", "service_joint_sites", "service_joint_requests")


def test_older_databases_get_tables_and_columns(any_url):
    Ledger.create(any_url).close()
    database = ServiceDatabase(any_url)
    database.prepare()
    engine = make_engine(parse_url(any_url))
    with engine.connect() as connection:
        expected = looked_at(connection)
    with engine.execution_options(writing=True).begin() as connection:
        for name in NEW:
            connection.execute(sa.schema.DropTable(Base.metadata.tables[name]))
        for name in ("people", "declared_public"):
            connection.execute(sa.text(f"ALTER TABLE service_tables DROP COLUMN {name}"))
        connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = 's1'"))
    with engine.connect() as connection:
        assert set(looked_at(connection)) == set(expected) - set(NEW)
    database.prepare()
    database.close()
    with engine.connect() as connection:
        assert looked_at(connection) == expected
    engine.dispose()
