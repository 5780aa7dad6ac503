"""Blocks of accounts in the environment: for whom processes count that are started within them.

A process has one environment, and several threads, each of which may be within a block of its own.
So the variables follow from all blocks that are open, in whatever order they end: of blocks within
one another in one thread the inner one counts; where several threads, or tasks of one, have opened
different ones, nothing tells which of them a new process is started from, and it is refused before
any draw. What a person had set comes back when no block is open.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass

from cloakgp.ledger.errors import LedgerError
from cloakgp.privacy.spending import ENVIRONMENT, this_process

ACCOUNT, PURPOSE = "CLOAKGP_ACCOUNT", "CLOAKGP_PURPOSE"
COHORT, APPROVED_BY = "CLOAKGP_COHORT", "CLOAKGP_APPROVED_BY"
# The process whose block set the others; empty where a person did.
BLOCK = "CLOAKGP_LEDGER_BLOCK"
# Stands for an account, or a ledger, where several are open. No account can have such a name.
SEVERAL = "several\taccounts"


@dataclass(frozen=True)
class Named:
    """What the environment says of the account that counts; empty where it says nothing.

    Attributes
    ----------
    url : str
        Of the ledger.
    account : str
    purpose : str
    cohort : str
    approved_by : str
    process : str
        The process whose block said so; empty where a person did.
    """

    url: str = ""
    account: str = ""
    purpose: str = ""
    cohort: str = ""
    approved_by: str = ""
    process: str = ""

    @classmethod
    def by_environment(cls) -> Named:
        """Return what the environment of this process says."""
        return cls(**{name: os.environ.get(called, "") for name, called in VARIABLES.items()})

    @property
    def variables(self) -> dict[str, str]:
        """The variables that say it."""
        return {VARIABLES[name]: value for name, value in asdict(self).items()}


VARIABLES = {
    "url": ENVIRONMENT,
    "account": ACCOUNT,
    "purpose": PURPOSE,
    "cohort": COHORT,
    "approved_by": APPROVED_BY,
    "process": BLOCK,
}


@dataclass(frozen=True, eq=False)
class _Block:
    """An open block, and the one of the same thread that it is within."""

    named: Named
    thread: int
    around: _Block | None


_innermost: ContextVar[_Block | None] = ContextVar("_innermost", default=None)
_open: list[_Block] = []
# What a person had set; empty while no block is open.
_given: dict[str, str | None] = {}
_lock = threading.RLock()


@contextmanager
def exported(
    *, url: str, account: str, purpose: str, cohort: str, approved_by: str
) -> Iterator[None]:
    """Have processes that are started within a block charge an account as well.

    Parameters
    ----------
    url : str
        Of the ledger.
    account, purpose, cohort, approved_by : str
        Empty for none.

    Examples
    --------
    >>> about = {"purpose": "", "cohort": "", "approved_by": ""}
    >>> with exported(url="people.db", account="patients", **about):
    ...     with exported(url="people.db", account="visitors", **about):
    ...         inner = os.environ["CLOAKGP_ACCOUNT"]
    ...     inner, os.environ["CLOAKGP_ACCOUNT"]
    ('visitors', 'patients')
    >>> "CLOAKGP_ACCOUNT" in os.environ
    False
    """
    named = Named(url, account, purpose, cohort, approved_by, this_process())
    thread, around = threading.get_ident(), _innermost.get()
    if around is not None and around.thread != thread:
        # Threads may begin with the context of another, which goes on beside them.
        around = None
    block = _Block(named, thread, around)
    token = _innermost.set(block)
    with _lock:
        if not _open:
            _given.update({name: os.environ.get(name) for name in VARIABLES.values()})
        _open.append(block)
        _export()
    try:
        yield
    finally:
        with _lock:
            _open.remove(block)
            _export()
        _innermost.reset(token)


def refuse_several(name: str) -> None:
    """Refuse what stands for several accounts, or ledgers, that were open together.

    Parameters
    ----------
    name : str
        Of an account, or the address of a ledger.

    Raises
    ------
    LedgerError

    Examples
    --------
    >>> refuse_several("patients 2024")
    """
    if name == SEVERAL:
        raise LedgerError(
            "several accounts were open in different threads where this process was started, or "
            "several cohorts, purposes or approvers of one, and nothing tells which one is meant: "
            "nothing was drawn. Open the account in this process, or start it while one is open"
        )


def _export() -> None:
    """Have the environment say what follows from the open blocks."""
    values = _wanted().variables if _open else dict(_given)
    if not _open:
        _given.clear()
    if all(os.environ.get(name) == value for name, value in values.items()):
        return
    # A process that another thread starts meanwhile is refused, as it finds parts of two.
    os.environ[ACCOUNT] = SEVERAL
    for name, value in sorted(values.items(), key=lambda pair: pair[0] == ACCOUNT):
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _wanted() -> Named:
    """Return what open blocks say together."""
    around = {id(each.around) for each in _open}
    said = [each.named for each in _open if id(each) not in around]
    if all(each == said[0] for each in said):
        return said[0]
    urls = {each.url for each in said}
    return Named(
        url=urls.pop() if len(urls) == 1 else SEVERAL, account=SEVERAL, process=this_process()
    )


def _after_fork() -> None:
    """Keep the blocks of the only thread that a forked process has; of a thread in none, all."""
    global _lock
    # Another thread may have held it, in the middle of a change.
    _lock = threading.RLock()
    if _given:
        here = threading.get_ident()
        _open[:] = [each for each in _open if each.thread == here] or _open
        _export()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
