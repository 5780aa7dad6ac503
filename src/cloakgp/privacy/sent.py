"""Sent work: the account that was in force where a call was sent from, for the process it goes to.

Processes that are started within a block of an account find it in their environment. Others do not:
joblib keeps its workers, so that those of an earlier block have an environment that names another
account, and those that were started before any name none. So an estimator that is sent from within
a block has a `Ticket` with it, and its fits count by that: see `cloakgp.estimators.sent`. Nothing
else that is sent has one, such as a function that makes an estimator where it is called.

A ticket is of no use in the process that wrote it, whose own blocks count; nor within a block of
the receiving process, which was opened for what is called there; nor after two days, since what was
sent may have been a file that somebody kept. Whatever of these three is unsure is refused, before
any noise is drawn.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from cloakgp.privacy.spending import (
    Block,
    SendableKeeper,
    SpendingError,
    counted_by,
    is_charged,
    keeper_found,
    open_blocks,
    staying_within,
    this_process,
)

# Seconds. Work waits for a worker for hours at most, and files are kept for years.
DAY = 24 * 3600.0
# A ticket has the date of the day of its block that it is written in, so up to a day before that.
VALID = 2 * DAY


@dataclass(frozen=True)
class Ticket:
    """The account that was in force where something was sent from; no secret.

    Attributes
    ----------
    process : str
        Whose block it was.
    moment : float
        When the day of its block began in which it was written, in seconds since 1970. The same for
        all of that day, so that what is sent twice is the same for those who keep results by it, as
        `joblib.Memory` does.
    directions : mapping of str to str
        Of the account, for other processes.
    refusal : str
        Why there are none; empty if there are.
    """

    process: str
    moment: float
    directions: Mapping[str, str]
    refusal: str = ""

    @property
    def is_late(self) -> bool:
        """Whether it was written so long ago, a day at least, that it is no longer gone by."""
        return not abs(time.time() - self.moment) < VALID


def ticket_in_force(held: Ticket | None = None) -> Ticket | None:
    """Return the ticket for what is sent from here to another process, None if nobody counts.

    Those who send are often threads of a pool, which run in nobody's block: for them the one that
    is open counts, and of several none.

    Parameters
    ----------
    held : Ticket, optional
        That came with what is sent on now. If it is late, a copy is refused as the original is.

    Examples
    --------
    >>> ticket_in_force() is None
    True
    """
    blocks = open_blocks()
    own = [each for each in blocks if each.process == this_process()]
    if not own and held is not None:
        return held
    # A forked process is within its parent's blocks until something says otherwise.
    blocks = tuple(own) or blocks
    if not blocks:
        return None
    if len(blocks) == 1 and isinstance(blocks[0].sent, Ticket):
        return blocks[0].sent
    found: list[Mapping[str, str]] = []
    refusal = ""
    for block in blocks:
        if not isinstance(block.keeper, SendableKeeper):
            refusal = "what counts in the process that sent this counts in that one alone"
            continue
        try:
            directions = dict(block.keeper.directions())
        except SpendingError as error:
            refusal = f"the account could not be read where this was sent from: {error}"
            continue
        if directions not in found:
            found.append(directions)
    if len(found) > 1:
        refusal = (
            "several accounts were open where this was sent from, and nothing tells which one is "
            "meant: open one of them around work that is sent to other processes"
        )
    return Ticket(
        process=blocks[-1].process,
        moment=_day_of(blocks[-1]),
        directions={} if refusal else found[0],
        refusal=refusal,
    )


@contextmanager
def counted_as_sent(ticket: Ticket | None) -> Iterator[None]:
    """Have the account of a ticket count within a block, if this process opened none itself.

    What other threads count by tickets of their own is nothing to this one. Where no ticket counts,
    the account that is open at the beginning counts to the end.

    Parameters
    ----------
    ticket : Ticket or None

    Raises
    ------
    SpendingError
        If several accounts are open, and this thread is within none; or if the account of the
        ticket cannot be found, or the environment names another that it was not given by the block
        that the ticket is of, or the ticket is too old.

    Examples
    --------
    >>> with counted_as_sent(None):
    ...     pass
    """
    if is_charged():
        yield
        return
    here, blocks = this_process(), open_blocks()
    if ticket is None or ticket.process == here or any(each.process == here for each in blocks):
        # By the blocks that were looked at: their threads may leave them before the first charge.
        with staying_within(blocks):
            yield
        return
    if ticket.is_late:
        raise SpendingError(
            "this was sent to another process while an account was open, more than a day ago: open "
            "the account that is to count it, or make the estimator anew from its parameters"
        )
    if ticket.refusal:
        raise SpendingError(ticket.refusal)
    keeper = keeper_found(ticket.directions, process=ticket.process)
    with counted_by(keeper, sent=ticket):
        yield


def _day_of(block: Block) -> float:
    """Return when the present day of a block began: days are counted from its opening."""
    passed = max(0.0, time.time() - block.opened)
    return block.opened + passed // DAY * DAY
