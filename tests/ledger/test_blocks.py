"""Blocks of accounts in the environment: whom a process charges that is started within one."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager

import pytest
from spenders import charge, gaussian

from cloakgp.ledger import LedgerError
from cloakgp.ledger.blocks import SEVERAL, VARIABLES
from cloakgp.ledger.ledger import account_of_environment
from cloakgp.privacy.spending import SpendingError

CHILD = """
import numpy as np
from cloakgp.privacy import OutputBounds, ask

ask(np.ones((1, 2)), [0, 1], question=OutputBounds.checked((0, 1)), epsilon=0.1, delta=1e-7)
"""


def child():
    """A process that draws; its errors."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD], check=False, capture_output=True, text=True, timeout=120
    )
    return done.stderr


def said():
    return {name: os.environ.get(name) for name in VARIABLES.values()}


@pytest.fixture
def others(ledger, account):
    assert account.standing.charges == 0
    return ledger.open_account("others", epsilon=1.0, delta=1e-6)


@contextmanager
def open_in_a_thread(account):
    """The block of an account, in another thread."""
    opened, ended = threading.Event(), threading.Event()

    def run():
        with account:
            opened.set()
            assert ended.wait(60)

    thread = threading.Thread(target=run)
    thread.start()
    assert opened.wait(60)
    try:
        yield
    finally:
        ended.set()
        thread.join()


def charges(*accounts):
    return [each.standing.charges for each in accounts]


def test_a_process_that_is_started_while_two_accounts_are_open_draws_nothing(account, others):
    with account, open_in_a_thread(others):
        told = child()
    assert "several accounts were open in different threads where this process was" in told
    assert "nothing was drawn" in told
    assert charges(account, others) == [0, 0]
    with account:
        with open_in_a_thread(others):
            pass
        child()
    assert charges(account, others) == [1, 0]


def test_a_command_that_is_started_while_two_accounts_are_open_is_refused(
    ledger, account, others, tmp_path
):
    (tmp_path / "people.csv").write_text("age,height\n1,2\n2,3\n3,4\n")
    words = "release people.csv --inputs age --output height --bounds 0 9 --epsilon .1 --delta 1e-7"
    with account, open_in_a_thread(others):
        done = subprocess.run(
            [sys.executable, "-m", "cloakgp", *words.split(), "-o", "made.cloak"],
            check=False,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=120,
        )
    assert done.returncode != 0
    assert "several accounts were open" in " ".join((done.stdout + done.stderr).split())
    assert charges(account, others) == [0, 0]
    assert not (tmp_path / "made.cloak").exists()
    assert ledger.verify().sound


def test_what_a_person_had_set_comes_back_when_no_block_is_open(account, others, monkeypatch):
    monkeypatch.setenv("CLOAKGP_LEDGER", account.database.shown)
    monkeypatch.setenv("CLOAKGP_ACCOUNT", "main")
    before = said()
    first, second = ExitStack(), ExitStack()
    blocks = [open_in_a_thread(each) for each in (account, others)]
    first.enter_context(blocks[0])
    within = said()
    second.enter_context(blocks[1])
    # In the order in which they began.
    first.close()
    assert os.environ["CLOAKGP_ACCOUNT"] == "others"
    second.close()
    assert said() == before
    assert within["CLOAKGP_ACCOUNT"] == "people"


def test_within_another_block_of_one_thread_the_inner_one_counts(account, others):
    before = said()
    with account:
        with others:
            assert os.environ["CLOAKGP_ACCOUNT"] == "others"
            with account:
                assert os.environ["CLOAKGP_ACCOUNT"] == "people"
            assert os.environ["CLOAKGP_ACCOUNT"] == "others"
        assert os.environ["CLOAKGP_ACCOUNT"] == "people"
    assert said() == before


def test_threads_that_are_within_the_same_account_start_processes_for_it(account):
    before = said()
    with account:
        within = said()
        # One object, in two threads.
        with open_in_a_thread(account):
            assert said() == within
        assert said() == within
    assert said() == before


def test_tasks_of_one_thread_that_are_within_different_accounts_start_none(account, others):
    async def opened(account, told):
        with account:
            await asyncio.sleep(0.01)
            told.append(os.environ["CLOAKGP_ACCOUNT"])
            await asyncio.sleep(0.01)

    async def both(told):
        await asyncio.gather(opened(account, told), opened(others, told))

    told, before = [], said()
    # Where a browser was tested, this thread has a loop that runs.
    elsewhere = threading.Thread(target=lambda: asyncio.run(both(told)))
    elsewhere.start()
    elsewhere.join()
    assert told == [SEVERAL, SEVERAL]
    assert said() == before


@pytest.mark.parametrize("about", ["cohort", "purpose", "approved_by"])
def test_several_cohorts_purposes_or_approvers_of_one_account_are_several(ledger, account, about):
    for month in ("May", "June"):
        account.attach([1.0, 2.0], column=month, cohort=month)
    one, other = (ledger.account("people", **{about: each}) for each in ("May", "June"))
    with one, open_in_a_thread(other), pytest.raises(LedgerError, match="or several cohorts"):
        account_of_environment()


def test_where_two_ledgers_are_open_neither_is_named(ledger, account, tmp_path):
    elsewhere = type(ledger).create(tmp_path / "elsewhere.db")
    other = elsewhere.open_account("people", epsilon=1.0, delta=1e-6)
    with account, open_in_a_thread(other):
        assert os.environ["CLOAKGP_LEDGER"] == SEVERAL
        with pytest.raises(LedgerError, match="several accounts were open"):
            type(ledger)()
    elsewhere.close()


def test_no_account_has_the_name_of_several(ledger):
    with pytest.raises(LedgerError, match="can be printed"):
        ledger.open_account(SEVERAL, epsilon=1.0, delta=1e-6)


def test_a_process_charges_the_cohort_of_its_block_and_names_the_approver(ledger, account):
    account.attach([5.0, 6.0], column="May: minutes", cohort="May")
    asked = ledger.account("people", cohort="May", purpose="figure 3", approved_by="Ada")
    with asked:
        told = child()
    assert told == ""
    (reserved,) = (e.content for e in ledger.entries() if e.content["kind"] == "reserved")
    assert (reserved["cohort"], reserved["purpose"]) == ("May", "figure 3")
    assert ledger.names()[reserved["approved_by"]] == "Ada"
    spent = account.standing.spent_by
    assert spent["May"].numbers != spent[""].numbers
    assert spent[""] == type(spent[""])()


def test_a_command_charges_the_cohort_of_its_block_and_names_the_approver(
    ledger, account, tmp_path
):
    account.attach([5.0, 6.0], column="May: minutes", cohort="May")
    (tmp_path / "people.csv").write_text("age,height\n1,2\n2,3\n3,4\n")
    words = "release people.csv --inputs age --output height --bounds 0 9 --epsilon .1 --delta 1e-7"
    with ledger.account("people", cohort="May", approved_by="Ada"):
        subprocess.run(
            [sys.executable, "-m", "cloakgp", *words.split(), "-o", "made.cloak"],
            check=True,
            capture_output=True,
            cwd=tmp_path,
            timeout=120,
        )
    (reserved,) = (e.content for e in ledger.entries() if e.content["kind"] == "reserved")
    assert reserved["cohort"] == "May"
    assert ledger.names()[reserved["approved_by"]] == "Ada"


def test_an_account_that_is_found_by_its_outputs_keeps_approver_and_cohort(ledger, account):
    account.attach([5.0, 6.0], column="May: minutes", cohort="May")
    with ledger.any_account("figure 3", approved_by="Ada", cohort="May"):
        found = account_of_environment()
    assert (found.name, found.purpose, found.cohort, found.approved_by) == (
        *("", "figure 3"),
        *("May", "Ada"),
    )


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_keeps_the_block_of_its_own_thread(account, others):
    with account, open_in_a_thread(others):
        place, written = os.pipe()
        process = os.fork()
        if not process:
            os.write(written, os.environ["CLOAKGP_ACCOUNT"].encode())
            os._exit(0)
        os.waitpid(process, 0)
        assert os.read(place, 100) == b"people"
        os.close(place)
        os.close(written)


def test_a_thread_in_no_block_is_refused_and_one_in_a_block_is_not(account, others):
    failures = []

    def run():
        try:
            charge(account_of_environment(), gaussian(0.01))
        except SpendingError as error:
            failures.append(str(error))

    with account, open_in_a_thread(others):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert "several accounts" in failures[0]
