"""A ledger that did not keep whose column an attached one is: its entries say so."""

from __future__ import annotations

import sqlalchemy as sa

from cloakgp.ledger import Ledger


def test_an_older_ledger_gets_the_cohorts_of_its_columns(url):
    ledger = Ledger.create(url)
    people = ledger.open_account("people", epsilon=1.0, delta=0.0)
    people.attach([1.0, 2.0], column="May: minutes", cohort="May")
    people.attach([3.0, 4.0], column="minutes")
    with ledger.database.writing() as writing:
        writing.connection.execute(sa.text("ALTER TABLE columns DROP COLUMN cohort"))
        writing.connection.execute(sa.text("UPDATE schema_version SET version_num = '2'"))
    ledger.close()
    again = Ledger(url)
    assert again.verify().findings == ()
    cohorts = {row["name"]: row["cohort"] for row in again.columns()}
    assert cohorts == {"May: minutes": "May", "minutes": ""}
    again.close()
