"""Audits: edits, gaps and rollbacks are found, in the database and by its anchor."""

from __future__ import annotations

import json
import shutil
import sqlite3

import pytest
import sqlalchemy as sa
from spenders import charge, gaussian

from cloakgp.ledger import DamagedLedgerError, Ledger
from cloakgp.ledger import schema as tables
from cloakgp.ledger.chain import GENESIS, canonical, linked
from cloakgp.ledger.keys import Anchor, suffixed


@pytest.fixture
def written(url):
    """A ledger of some charges."""
    ledger = Ledger.create(url)
    account = ledger.open_account("people", epsilon=1.0, delta=1e-6)
    for number in range(3):
        charge(account, gaussian(0.01), draws=[f"digest {number}"])
    assert ledger.verify().sound
    yield ledger
    ledger.close()


def edit(ledger, statement):
    with ledger.database._engine.begin() as connection:
        connection.execute(statement)


ENTRIES = tables.entries
EDITS = {
    "a body": lambda: (
        ENTRIES.update()
        .where(ENTRIES.c.number == 5)
        .values(body=sa.func.replace(ENTRIES.c.body, "people", "nobody"))
    ),
    "one entry less": lambda: ENTRIES.delete().where(ENTRIES.c.number == 5),
    "the last entry": lambda: ENTRIES.delete().where(ENTRIES.c.number == 11),
    "the number of one": lambda: ENTRIES.update().where(ENTRIES.c.number == 11).values(number=12),
    "a sum": lambda: tables.accounts.update().values(gaussian="0"),
    "a limit": lambda: tables.accounts.update().values(epsilon=float(9).hex()),
    "a state": lambda: tables.charges.update().values(state="voided"),
    "a charge": lambda: tables.draws.delete(),
    "an account": lambda: tables.accounts.insert().from_select(
        tables.accounts.c.keys(),
        sa.select(
            *(
                sa.literal("shadow").label("name") if one.name == "name" else one
                for one in tables.accounts.c
            )
        ),
    ),
    "the head": lambda: tables.head.update().values(number=12),
}


@pytest.mark.parametrize("name", EDITS)
def test_edits_and_gaps_are_found(name, written):
    edit(written, EDITS[name]())
    found = written.verify()
    assert not found.sound
    assert all("\n" not in finding for finding in found.findings)


def rewrite(ledger, change):
    """Write the whole chain anew, as whoever can write to the database could."""
    digest = GENESIS
    with ledger.database._engine.begin() as connection:
        for entry in connection.execute(ENTRIES.select().order_by(ENTRIES.c.number)).all():
            body = canonical(change(json.loads(entry.body)))
            digest = linked(digest, body)
            connection.execute(
                ENTRIES.update()
                .where(ENTRIES.c.number == entry.number)
                .values(body=body, digest=digest)
            )
        connection.execute(tables.head.update().values(digest=digest))


def test_a_chain_that_was_written_anew_does_not_meet_the_anchor(written):
    rewrite(written, lambda content: content)
    assert written.verify().sound
    rewrite(written, lambda content: {**content, "who": "somebody else"})
    assert "or is another since then" in written.verify().findings[0]
    with pytest.raises(DamagedLedgerError, match="not the one that this machine saw"):
        written.open_account("others", epsilon=1.0, delta=1e-6)


def test_an_old_copy_is_found_and_nothing_is_spent_on_it(ledger, account, tmp_path):
    charge(account, gaussian(0.01))
    copy = tmp_path / "backup.db"
    with sqlite3.connect(ledger.database.shown) as source, sqlite3.connect(copy) as target:
        source.backup(target)
    charge(account, gaussian(0.01))
    ledger.close()
    for path in tmp_path.glob("people.db*"):
        path.unlink()
    shutil.copy(copy, tmp_path / "people.db")
    old = Ledger(tmp_path / "people.db")
    assert "put back to before entry 8" in old.verify().findings[0]
    with pytest.raises(DamagedLedgerError, match="was an old copy put back"):
        charge(old.account("people"), gaussian(0.01))
    assert old.account("people").standing.charges == 1


def test_without_an_anchor_it_says_that_rollbacks_are_not_seen(ledger, account, home):
    (home / "people.db.anchor").unlink()
    assert "no anchor" in ledger.verify().findings[0]
    charge(account, gaussian(0.01))
    assert ledger.verify().sound


def test_a_damaged_anchor_is_told(ledger, account, home):
    (home / "people.db.anchor").write_bytes(b"?" * 256)
    assert "is damaged" in ledger.verify().findings[0]
    with pytest.raises(DamagedLedgerError):
        charge(account, gaussian(0.01))


def test_an_anchor_never_goes_back(tmp_path):
    anchor = Anchor(suffixed(tmp_path / "a.db", ".anchor"))
    assert anchor.read() is None
    anchor.advance(7, "7" * 64)
    anchor.advance(3, "3" * 64)
    assert anchor.read() == (7, "7" * 64)
    anchor.advance(8, "8" * 64)
    assert anchor.read() == (8, "8" * 64)


def test_a_crash_between_the_database_and_its_anchor_is_no_damage(ledger, account, monkeypatch):
    monkeypatch.setattr(Anchor, "advance", lambda *_: None)
    charge(account, gaussian(0.01))
    assert ledger.verify().sound
