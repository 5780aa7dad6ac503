"""Topics as a stream reads them, from a log that grows and is read again."""

from __future__ import annotations

import json
import traceback

import pytest
from stream_tables import months, stream

from cloakgp.streams.topics import read_topic


class Sent:
    def __init__(self, value, error=None):
        self._value, self._error = value, error

    def error(self):
        return self._error

    def value(self):
        return self._value


class Log:
    """A partition; a consumer of it begins at the first message."""

    def __init__(self):
        self.messages = []

    def add(self, table):
        self.messages += [Sent(json.dumps(row).encode()) for row in table.to_dict("records")]

    def consumer(self):
        log = self

        class Consumer:
            offset = 0

            def consume(self, num_messages, timeout):
                assert timeout > 0
                taken = log.messages[self.offset : self.offset + min(num_messages, 2)]
                self.offset += len(taken)
                return taken

        return Consumer()


def test_a_topic_is_read_again_after_a_restart(tmp_path):
    log, tables = Log(), months(3)
    go_on = lambda: stream(read_topic(log.consumer(), messages=4), tmp_path)  # noqa: E731
    asked = []
    for table in tables:
        log.add(table)
        asked += [each.number for each in go_on().advance()]
    assert asked == [0, 1, 2]
    for measurement, table in zip(go_on().release.measurements, tables, strict=False):
        assert measurement.strategy.X[:, 0].tolist() == table["age"].tolist()


def test_incomplete_tables_wait():
    log = Log()
    log.add(months(1)[0])
    assert [len(table) for table in read_topic(log.consumer(), messages=4)] == [4]


@pytest.mark.parametrize("value", [b"987654", b"[987654]", b"987654,", None])
def test_what_is_no_row_is_refused_and_not_shown(value):
    log = Log()
    log.messages = [Sent(value)]
    with pytest.raises(ValueError, match="no JSON object") as caught:
        next(read_topic(log.consumer(), messages=1))
    assert "987654" not in str(caught.value)
    assert caught.value.__context__ is None


def test_errors_of_the_client_are_told():
    log = Log()
    log.messages = [Sent(b"{}", error="broker 7 is down")]
    with pytest.raises(OSError, match="reports an error"):
        next(read_topic(log.consumer(), messages=1))


@pytest.mark.parametrize(
    "last", [Sent(b"[77777.5]"), Sent(b"\xff77777"), Sent(b"{}", error="broker 7 is down")]
)
@pytest.mark.parametrize("messages", [2, 10])
def test_no_row_is_left_in_a_traceback(last, messages):
    log = Log()
    log.add(months(1)[0].iloc[:4].assign(pay=77777.125))
    log.messages.append(last)
    tables = read_topic(log.consumer(), messages=messages)
    with pytest.raises((ValueError, OSError)) as caught:
        list(tables)
    frames = [frame for frame, _ in traceback.walk_tb(caught.value.__traceback__)][1:]
    assert frames
    assert "77777" not in str([frame.f_locals for frame in frames])
