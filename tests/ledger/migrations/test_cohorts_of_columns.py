"""A ledger that did not keep whose column an attached one is: its entries say so."""

from __future__ import annotations

import subprocess
import sys

import sqlalchemy as sa

from cloakgp.ledger import Ledger


def forget_cohorts(ledger):
    with ledger.database.writing() as writing:
        writing.connection.execute(sa.text("ALTER TABLE columns DROP COLUMN cohort"))
        writing.connection.execute(sa.text("UPDATE schema_version SET version_num = '2'"))


def test_an_older_ledger_gets_the_cohorts_of_its_columns(url):
    ledger = Ledger.create(url)
    people = ledger.open_account("people", epsilon=1.0, delta=0.0)
    people.attach([1.0, 2.0], column="May: minutes", cohort="May")
    people.attach([3.0, 4.0], column="minutes")
    forget_cohorts(ledger)
    ledger.close()
    again = Ledger(url)
    assert again.verify().findings == ()
    cohorts = {row["name"]: row["cohort"] for row in again.columns()}
    assert cohorts == {"May: minutes": "May", "minutes": ""}
    again.close()


# A process that opens a ledger, and takes its time for the migration.
OPENED = """
import sys, time
import sqlalchemy as sa
from cloakgp.ledger import Ledger

def pause(_connection, _cursor, statement, *_):
    if "ADD COLUMN cohort" in statement:
        time.sleep(1)

sa.event.listen(sa.Engine, "after_cursor_execute", pause)
sys.stdin.readline()
ledger = Ledger(sys.argv[1])
print([row["cohort"] for row in ledger.columns()], ledger.verify().findings)
"""


def test_processes_that_open_it_at_once_find_it_done(url):
    """On several machines with one server, as after all of them got another version."""
    ledger = Ledger.create(url)
    ledger.open_account("people", epsilon=1.0, delta=0.0).attach([1.0], column="x", cohort="May")
    forget_cohorts(ledger)
    ledger.close()
    opening = [
        subprocess.Popen(
            [sys.executable, "-c", OPENED, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in opening:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    told = [process.communicate(timeout=120) for process in opening]
    assert [said.strip() for said, _ in told] == ["['May'] ()"] * 2, told
