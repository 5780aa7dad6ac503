"""Topics: messages of a log that a client keeps, as tables of a stream.

No client is imported here: whatever has the two methods of `Consumer`, which are those of
``confluent_kafka.Consumer``, will do. Offsets are not committed: after a restart the topic is read
from its first message again, and the stream knows what it has seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.utils.extras import extra

if TYPE_CHECKING:
    import pandas as pd

# Messages of one table, and seconds to wait for one.
MESSAGES, PATIENCE = 1000, 1.0


class Message(Protocol):
    """A message of a topic."""

    def error(self) -> object:
        """Return an error, or None."""

    def value(self) -> bytes | None:
        """Return its content."""


class Consumer(Protocol):
    """A client that reads one partition of a topic, assigned from its first offset on."""

    def consume(self, num_messages: int, timeout: float) -> Sequence[Message]:
        """Return the next messages, fewer if there are no more."""


def read_topic(
    consumer: Consumer, *, messages: int = MESSAGES, patience: float = PATIENCE
) -> Iterator[pd.DataFrame]:
    """Yield messages as tables of equal length, each message a row: a JSON object by columns.

    Tables are the same whenever the topic is read from its start, as a stream needs: one partition,
    in order, and no incomplete table. It ends where no complete one is left: to go on later, take a
    new consumer, from the first offset again.

    Parameters
    ----------
    consumer : Consumer
        Assigned to one partition, from its first offset on.
    messages : int
        Of each table.
    patience : float
        Seconds to wait for the next messages.

    Yields
    ------
    pandas.DataFrame

    Raises
    ------
    ValueError
        If a message is no JSON object. Nothing of it is shown.
    OSError
        If the client reports an error.

    Examples
    --------
    >>> class Sent:
    ...     def __init__(self, text):
    ...         self.text = text
    ...     def error(self):
    ...         return None
    ...     def value(self):
    ...         return self.text
    >>> class Log:
    ...     left = [Sent(b'{"day": 1, "age": 30, "pay": 5}'), Sent(b'{"day": 2, "age": 40}')]
    ...     def consume(self, num_messages, timeout):
    ...         taken, self.left = self.left[:num_messages], self.left[num_messages:]
    ...         return taken
    >>> [list(table["day"]) for table in read_topic(Log(), messages=2)]
    [[1, 2]]
    """
    with extra("tables"):
        import pandas as pd
    while rows := _next_rows(consumer, messages=messages, patience=patience):
        yield pd.DataFrame(rows)
        # What the consumer raises next does not find them here.
        del rows


@forget_on_failure
def _next_rows(consumer: Consumer, *, messages: int, patience: float) -> list[dict[str, Any]]:
    """Return the rows of the next table, none if it is incomplete."""
    rows: list[dict[str, Any]] = []
    while len(rows) < messages:
        found = consumer.consume(messages - len(rows), patience)
        if not found:
            return []
        rows += map(_row, found)
    return rows


def _row(message: Message) -> dict[str, Any]:
    if message.error() is not None:
        raise OSError("the client of the topic reports an error: see its own log")
    row = None
    with suppress(ValueError):
        row = json.loads(message.value() or b"")
    if not isinstance(row, dict):
        raise ValueError("a message of the topic is no JSON object of columns")
    return row
