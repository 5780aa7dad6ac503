"""Audits: edits, gaps and rollbacks are found, in the database and by its anchor."""

from __future__ import annotations

import re
import shutil
import sqlite3
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa
from spenders import charge, gaussian

from cloakgp import DPGPRegressor
from cloakgp.ledger import (
    DamagedLedgerError,
    Ledger,
    LedgerError,
    LimitError,
    chain,
    projection,
)
from cloakgp.ledger import schema as tables
from cloakgp.ledger.chain import GENESIS, Anchor, Entry, endorse
from cloakgp.ledger.database import TableStore
from cloakgp.ledger.keys import Key
from cloakgp.privacy.filters import Amount


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
    "a sum": lambda: tables.accounts.update().values(spending=0),
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


# Rows that follow from the entries, and were edited.
EDITED_ROWS = ("a sum", "a limit", "a state", "a charge", "an account")


def rows_of(ledger):
    with ledger.database.reading() as connection:
        return {name: TableStore(connection).all(name) for name in projection.KEYED_BY}


@pytest.mark.parametrize("name", EDITED_ROWS)
def test_edited_rows_are_made_anew_from_the_entries(name, written):
    before = rows_of(written)
    edit(written, EDITS[name]())
    differing = len(written.verify().findings)
    assert rows_of(written) != before
    assert written.rebuild(reason="a test") == differing
    assert rows_of(written) == before
    found = written.verify()
    assert found.sound
    (note,) = found.notes
    assert note == (
        f"before entry {found.entries} the tables were made anew from the entries; rows that were "
        f"not what these make them: {differing}"
    )
    with pytest.raises(LedgerError, match="nothing to rebuild"):
        written.rebuild(reason="again")
    # And it goes on.
    charge(written.account("people"), gaussian(0.01))
    assert written.verify().sound


@pytest.mark.parametrize("name", sorted(EDITS.keys() - EDITED_ROWS))
def test_no_table_is_made_anew_from_entries_that_are_not_sound(name, written):
    edit(written, EDITS[name]())
    edit(written, EDITS["a sum"]())
    before = rows_of(written)
    with pytest.raises(DamagedLedgerError):
        written.rebuild(reason="a test")
    assert rows_of(written) == before


def test_sums_that_were_too_small_leave_no_room_once_they_are_made_anew(ledger):
    """As of an earlier version, whose threads could add up with too few digits."""
    account = ledger.open_account("few", epsilon=1.0, delta=1e-6)
    charge(account, gaussian(0.2))
    small = projection.amount_text(Amount.of(gaussian(0.01)))
    edit(ledger, tables.accounts.update().values(spent=small))
    charge(account, gaussian(0.2))
    assert not ledger.verify().sound
    ledger.rebuild(reason="a test")
    assert ledger.verify().sound
    assert account.standing.beyond
    with pytest.raises(LimitError):
        charge(account, gaussian(0.01))


def test_a_release_that_is_not_what_was_published_is_found(ledger, account):
    model = DPGPRegressor(bounds=(0, 1), epsilon=0.1, delta=1e-7)
    release = account.publish(
        lambda: model.fit([[0.0], [1.0], [2.0]], [0, 1, 1]).release_, key="figure 3"
    )
    assert ledger.verify().sound
    edit(ledger, tables.releases.update().values(content=release.to_bytes() + b"?"))
    (finding,) = ledger.verify().findings
    assert "differs from the published one" in finding


def rewrite(ledger, change, *, key):
    """Write the whole chain anew, as whoever can write to the database could."""
    number, digest = 0, GENESIS
    with ledger.database._engine.begin() as connection:
        for row in connection.execute(ENTRIES.select().order_by(ENTRIES.c.number)).all():
            entry = Entry(*row)
            content = {**entry.content, **change}
            if content != entry.content:
                # Its time may be a later one.
                content.pop("when")
                entry = Entry.after(number, digest, content=content, key=key)
            connection.execute(
                ENTRIES.update()
                .where(ENTRIES.c.number == entry.number)
                .values(body=entry.body, digest=entry.digest, signature=entry.signature)
            )
            number, digest = entry.number, entry.digest
        connection.execute(tables.head.update().values(digest=digest))


def test_a_chain_that_was_written_anew_does_not_meet_the_anchor(written):
    key = written.key_of(written.database.head())
    rewrite(written, {}, key=key)
    assert written.verify().sound
    # Even by somebody who has the key.
    rewrite(written, {"version": "99"}, key=key)
    (finding,) = written.verify().findings
    assert "or is another since then" in finding
    with pytest.raises(DamagedLedgerError, match="not the one that this machine saw"):
        written.open_account("others", epsilon=1.0, delta=1e-6)


# What whoever can write to the database would like to add.
FORGED = {
    "a limit of 1,000": {"kind": "limit", "account": "people", "epsilon": 1000.0, "delta": 1e-6},
    "a charge that was drawn is void": {
        "kind": "voided",
        "charge": 12,
        "account": "people",
        "although_drawn": True,
        "reason": "no",
    },
}
FORGERS = {
    "nobody": Key(secret=bytes(32)),
    "with the signature of another entry": None,
}


@pytest.mark.parametrize("name", FORGED)
@pytest.mark.parametrize("forger", FORGERS)
def test_nobody_without_the_key_appends_an_entry(name, forger, written):
    open_charge = charge(written.account("people"), gaussian(0.01), close=False)
    assert open_charge.number == 12
    last = list(written.entries())[-1]
    who = last.content["who"]
    forged = Entry.after(
        last.number,
        last.digest,
        content={**FORGED[name], "who": who},
        key=FORGERS[forger] or Key(secret=bytes(32)),
    )
    signature = forged.signature if FORGERS[forger] else last.signature
    with written.database._engine.begin() as connection:
        connection.execute(
            ENTRIES.insert().values(
                number=forged.number,
                body=forged.body,
                digest=forged.digest,
                signature=signature,
            )
        )
        projection.project(forged.content, TableStore(connection))
        connection.execute(tables.head.update().values(number=forged.number, digest=forged.digest))
    findings = written.verify().findings
    assert findings == (f"entry {forged.number} was not written with the ledger's key",)
    # And nothing is counted on it.
    with pytest.raises(DamagedLedgerError, match="was not written with its key"):
        charge(written.account("people"), gaussian(0.01))


def test_a_key_of_another_does_not_take_over(written):
    """A rotation to a forger's key, signed by the forger."""
    forger = Key(secret=bytes(32))
    last = list(written.entries())[-1]
    content = {
        "kind": "rotated",
        "who": last.content["who"],
        "key_check": forger.check,
        "public_key": forger.public,
        "endorsement": endorse(last.digest, key=forger),
    }
    forged = Entry.after(last.number, last.digest, content=content, key=forger)
    values = {"number": forged.number, "digest": forged.digest}
    with written.database._engine.begin() as connection:
        connection.execute(
            ENTRIES.insert().values(body=forged.body, signature=forged.signature, **values)
        )
        connection.execute(tables.head.update().values(key_check=forger.check, **values))
    findings = written.verify().findings
    assert "was not written with the ledger's key" in findings[0]
    assert f"the key of entry {forged.number} is not in" in findings[1]
    with pytest.raises(LedgerError, match="key of another ledger"):
        Ledger(written.database.url.render_as_string(hide_password=False))


MEDDLED = {
    "a name": lambda: tables.names.update().values(name="somebody else"),
    "no name": lambda: tables.names.delete(),
    "a note": lambda: tables.notes.update().values(content="{}"),
    "no note": lambda: tables.notes.delete(),
    "another key": lambda: tables.head.update().values(key_check="00"),
}


@pytest.mark.parametrize("name", MEDDLED)
def test_what_is_kept_beside_the_chain_is_looked_at(name, written):
    edit(written, MEDDLED[name]())
    assert not written.verify().sound


def test_a_clock_that_goes_back_is_noted_and_no_damage(ledger, account, monkeypatch):
    class Earlier(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) - timedelta(hours=1)

    monkeypatch.setattr(chain, "datetime", Earlier)
    charge(account, gaussian(0.01))
    found = ledger.verify()
    assert found.sound
    (note,) = found.notes
    assert re.fullmatch(r"the clock went back by 3[56]\d\d seconds before entry 3", note)


def test_a_published_release_that_is_missing_is_found(ledger, account):
    model = DPGPRegressor(bounds=(0, 1), epsilon=0.1, delta=1e-7)
    account.publish(lambda: model.fit([[0.0], [1.0], [2.0]], [0, 1, 1]).release_, key="figure 3")
    edit(ledger, tables.releases.delete())
    assert ledger.verify().findings == ("the release of charge 3 is missing",)


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
    anchor = Anchor(tmp_path / "a.db.anchor")
    assert anchor.read() is None
    anchor.advance(7, "7" * 64)
    anchor.advance(3, "3" * 64)
    assert anchor.read() == (7, "7" * 64)
    anchor.advance(8, "8" * 64)
    assert anchor.read() == (8, "8" * 64)
    anchor.replace(5, "5" * 64)
    assert anchor.read() == (5, "5" * 64)


def test_a_crash_between_the_database_and_its_anchor_is_no_damage(ledger, account, monkeypatch):
    monkeypatch.setattr(Anchor, "advance", lambda *_: None)
    charge(account, gaussian(0.01))
    assert ledger.verify().sound
