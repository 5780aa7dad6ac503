"""Chaos: charges of one ledger by processes that are killed, cut off, and short of disk.

Every process reserves, notes in a journal of its own that it drew, and closes, again and again;
some of its calls fail on purpose, before their draw or after it. Meanwhile processes are killed
(SIGKILL) and started anew, connections to a server are terminated, files of SQLite's meet a limit
of their size in the middle of a transaction, as on a full disk, and every process's clock jumps by
years. In the end the ledger is compared with the journals, which know what was really drawn.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from multiprocessing import get_context
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import BinaryIO

import sqlalchemy as sa

from benchmarks.tables import Cell, Table
from cloakgp.ledger import Ledger, LedgerError, LimitError, chain, projection
from cloakgp.ledger.accounts import Account
from cloakgp.ledger.database import TableStore
from cloakgp.privacy.filters import LARGEST_LIMIT, Amount, filter_of
from cloakgp.privacy.spending import Cost, Spender

NAME, DELTA = "people", 1e-6
DATABASES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
MU = 0.01
# Of all charges, so many fit within the limit: the rest must be refused.
ROOM = 0.6
# How many charges a process is let try, until it is killed; how often that is looked at, in
# seconds, and how often then connections are broken; how many calls fail before and after their
# draw, and how many hold a budget first.
LIFE = (10, 200)
PAUSE, BREAKING = 0.05, 0.05
FAILING_BEFORE, FAILING_AFTER, HOLDING = 0.05, 0.05, 0.3
# How many charges find the disk full, how many bytes further at most, and how many are always left,
# for what overwrites itself. By how many days clocks jump, either way.
FULL, ROOM_LEFT, ALWAYS_LEFT = 0.05, 50_000, 5_000
JUMP_DAYS = 3650.0


@dataclass(frozen=True)
class Count:
    """What was found in the end.

    Attributes
    ----------
    database : str
        SQLite or PostgreSQL.
    attempts : int
        Charges that were tried.
    drawn : int
        Draws in the journals.
    refused : int
        At the limit.
    kills, breaks, full : int
        Processes killed, connections terminated, and charges tried on a full disk.
    failed : int
        Calls that heard of a database that failed.
    lost : int
        Draws in a journal for which no charge counts.
    unfinished : int
        Charges that were left open, and count.
    spent, limit : float
        ε at δ = 1e-6.
    sound : bool
        Whether the audit finds nothing.
    seconds : float
    """

    database: str
    attempts: int
    drawn: int
    refused: int
    kills: int
    breaks: int
    full: int
    failed: int
    lost: int
    unfinished: int
    spent: float
    limit: float
    sound: bool
    seconds: float


def report(found: Sequence[Count], *, processes: int) -> Table:
    """Lay out what was found in one run of each database, a column each.

    Parameters
    ----------
    found : sequence of Count
    processes : int
        That charged at once.
    """
    said: dict[str, list[Cell]] = {
        "charges tried": [each.attempts for each in found],
        "draws in the journals": [each.drawn for each in found],
        "refused at the limit": [each.refused for each in found],
        "processes killed": [each.kills for each in found],
        "connections broken": [each.breaks for each in found],
        "charges tried on a full disk": [each.full for each in found],
        "calls that heard of a database that failed": [each.failed for each in found],
        "left open, and counted": [each.unfinished for each in found],
        "draws that no charge counts for": [each.lost for each in found],
        f"the limit: ε, at δ = {DELTA:g}": [f"{each.limit:.5f}" for each in found],
        "the ε of all, as if prices had been fixed beforehand": [
            f"{each.spent:.5f}" for each in found
        ],
        "the audit finds": ["nothing" if each.sound else "errors" for each in found],
    }
    names = [each.database for each in found]
    rows = [{"": name} | dict(zip(names, cells, strict=True)) for name, cells in said.items()]
    return Table(f"Charges by {processes} processes, one run each", ("", *names), rows)


def wreak(url: str, *, charges: int, processes: int, folder: Path, seed: int = 1) -> Count:
    """Make a ledger, let processes charge it and kill them, and compare.

    Parameters
    ----------
    url : str
        Where there is no ledger yet.
    charges : int
        To be tried, by all processes together.
    processes : int
    folder : Path
        For journals.
    seed : int
        Of what fails and what is killed; when that happens depends on the machine.
    """
    chance = random.Random(seed)
    ledger = Ledger.create(url)
    room = Amount.of(cost()).times(int(ROOM * charges))
    limit = _least_limit(room)
    ledger.open_account(NAME, epsilon=limit, delta=DELTA)
    server = ledger.database.url.get_backend_name() == "postgresql"
    journals = [folder / f"journal-{number}" for number in range(processes)]
    for journal in journals:
        journal.touch()
    quota = -(-charges // processes)
    began, kills, breaks = time.monotonic(), 0, 0
    running = {journal: _start(url, journal, quota) for journal in journals}
    # How many attempts each is let live for.
    lives = {journal: chance.randint(*LIFE) for journal in journals}
    while running:
        time.sleep(PAUSE)
        for journal, process in sorted(running.items()):
            if _tried(journal) >= lives[journal] and process.is_alive():
                process.kill()
                process.join()
                kills += process.exitcode == -signal.SIGKILL
            if process.is_alive():
                continue
            process.join()
            del running[journal]
            tried = _tried(journal)
            if tried < quota:
                running[journal] = _start(url, journal, quota)
                lives[journal] = tried + chance.randint(*LIFE)
        if server and chance.random() < BREAKING:
            breaks += _terminate(ledger)
    seconds = time.monotonic() - began
    return _compared(ledger, journals, kills=kills, breaks=breaks, limit=limit, seconds=seconds)


def cost() -> Cost:
    """Return what each draw costs."""
    return Cost(mechanism="gaussian", mu=MU, answers=1, coarseness=2.0**-80)


def charge_on(url: str, journal: Path, quota: int) -> None:
    """Charge until the journal has so many attempts; what a process does.

    Parameters
    ----------
    url : str
    journal : Path
    quota : int
    """
    chance = random.Random(f"{journal.name} {os.getpid()}")
    try:
        ledger = Ledger(url)
        account = ledger.account(NAME, purpose="chaos")
    except LedgerError:
        # Its connection was broken: the next process tries.
        return
    server = ledger.database.url.get_backend_name() == "postgresql"
    log = Path(f"{ledger.database.url.database}-wal")
    chain.datetime = _jumping(chance)
    spender = Spender(
        call="chaos", unit="row", epsilon=None, delta=None, fingerprint=lambda _: None
    )
    # Written at once: a killed process loses nothing that it wrote.
    with journal.open("ab", buffering=0) as noted:
        for _ in range(quota - _tried(journal)):
            noted.write(b"tried\n")
            full = not server and chance.random() < FULL
            if full:
                noted.write(b"full\n")
            with _full_disk(chance, log, journal) if full else nullcontext():
                _charge_once(account, spender, chance=chance, noted=noted)


def _charge_once(
    account: Account, spender: Spender, *, chance: random.Random, noted: BinaryIO
) -> None:
    luck = chance.random()
    try:
        charge = account.open_charge(spender)
        if chance.random() < HOLDING:
            charge.hold([(0.03, DELTA)])
        if luck >= FAILING_BEFORE:
            charge.reserve(cost())
            # Here noise is drawn.
            noted.write(f"drawn {charge.number}\n".encode())
        charge.close(failed=luck < FAILING_BEFORE + FAILING_AFTER)
    except LimitError:
        noted.write(b"refused\n")
        with suppress(LedgerError):
            charge.close(failed=True)
    except LedgerError:
        noted.write(b"broken\n")


@contextmanager
def _full_disk(chance: random.Random, log: Path, journal: Path) -> Iterator[None]:
    """Let no file grow beyond a size near that of SQLite's log, within a block."""
    least = journal.stat().st_size + ALWAYS_LEFT
    size = log.stat().st_size if log.exists() else 0
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(
        resource.RLIMIT_FSIZE, (chance.randint(least, max(least, size) + ROOM_LEFT), most)
    )
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def _jumping(chance: random.Random) -> type[datetime]:
    """Return a clock that jumps whenever it is read."""

    class Jumping(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime.now(tz) + timedelta(days=chance.uniform(-JUMP_DAYS, JUMP_DAYS))

    return Jumping


def _least_limit(room: Amount) -> float:
    """Return the least ε, to a millionth, of a limit whose filter has room for an amount."""
    low, high = 0.0, LARGEST_LIMIT
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        fits = filter_of((middle, DELTA)).accepts(room)
        low, high = (low, middle) if fits else (middle, high)
    return high


def _start(url: str, journal: Path, quota: int) -> ForkProcess:
    process = get_context("fork").Process(target=charge_on, args=(url, journal, quota))
    process.start()
    return process


def _terminate(ledger: Ledger) -> int:
    """Terminate the server's connections of all others that are at this ledger."""
    with ledger.database.reading() as connection:
        ended = connection.execute(
            sa.text(
                "SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity a "
                "JOIN pg_locks l ON l.pid = a.pid "
                "WHERE l.relation = to_regclass('head') AND a.pid <> pg_backend_pid()"
            )
        ).all()
    return len(ended)


def _lines(journal: Path) -> Iterator[list[str]]:
    for line in journal.read_text().splitlines():
        yield line.split()


def _tried(journal: Path) -> int:
    return journal.read_bytes().count(b"tried")


def _compared(
    ledger: Ledger,
    journals: list[Path],
    *,
    kills: int,
    breaks: int,
    limit: float,
    seconds: float,
) -> Count:
    lines = [words for journal in journals for words in _lines(journal)]
    kinds = Counter(words[0] for words in lines)
    standing = ledger.account(NAME).standing
    lost = 0
    with ledger.database.reading() as connection:
        rows = {row["number"]: row for row in TableStore(connection).all("charges")}
        for words in lines:
            if words[0] == "drawn":
                row = rows.get(int(words[1]))
                counted = Amount() if row is None else projection.counted(row)
                lost += counted.gaussian < Amount.of(cost()).gaussian
    return Count(
        database=DATABASES[ledger.database.url.get_backend_name()],
        attempts=kinds["tried"],
        drawn=kinds["drawn"],
        refused=kinds["refused"],
        kills=kills,
        breaks=breaks,
        full=kinds["full"],
        failed=kinds["broken"],
        lost=lost,
        unfinished=len(standing.open),
        spent=standing.epsilon_if_fixed,
        limit=limit,
        sound=ledger.verify().sound,
        seconds=seconds,
    )
