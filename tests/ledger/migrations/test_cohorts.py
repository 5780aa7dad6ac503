"""A ledger from before cohorts: its charges are about everybody, and it is sound."""

from __future__ import annotations

import sqlalchemy as sa
from spenders import spender

from cloakgp.ledger import Ledger
from cloakgp.privacy.spending import Cost


def test_an_older_ledger_gets_the_column(url):
    ledger = Ledger.create(url)
    people = ledger.open_account("people", epsilon=1.0, delta=0.0)
    charge = people.open_charge(spender())
    charge.reserve(Cost("laplace", epsilon=0.25))
    charge.close(failed=False)
    with ledger.database.writing() as writing:
        writing.connection.execute(sa.text("ALTER TABLE charges DROP COLUMN cohort"))
        writing.connection.execute(sa.text("ALTER TABLE columns DROP COLUMN cohort"))
        writing.connection.execute(sa.text("UPDATE schema_version SET version_num = '1'"))
    ledger.close()
    again = Ledger(url)
    assert again.verify().findings == ()
    assert dict(again.account("people").standing.spent_by) == {"": people.standing.spent}
    again.close()
