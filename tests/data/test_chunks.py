"""Chunks are worked on by several threads, and nobody can tell from what comes of it."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from cloakgp.data import ArrayRows
from cloakgp.data.chunks import AHEAD, merge_in_order
from cloakgp.privacy.tracebacks import forget_locals


@dataclass(frozen=True)
class Path:
    """A part whose merging is neither commutative nor free of rounding."""

    steps: tuple[int, ...]
    total: float

    def merge(self, other):
        return Path(self.steps + other.steps, self.total + other.total)


@dataclass(frozen=True)
class Numbered:
    rows: int
    value: float = 0.0


@dataclass
class Reader:
    """Blocks, with a note of how many were asked for and whether they were closed."""

    count: int
    fails_at: int | None = None
    read: int = 0
    closed: bool = False

    def blocks(self):
        try:
            for number in range(self.count):
                if number == self.fails_at:
                    raise OSError("the disk is gone")
                self.read += 1
                yield Numbered(rows=number + 1, value=0.1 * number)
        finally:
            self.closed = True


def ignore(done):
    pass


@given(
    count=st.integers(1, 30),
    jobs=st.integers(1, 5),
    waits=st.lists(st.sampled_from([0.0, 0.001, 0.003]), min_size=30, max_size=30),
)
def test_parts_are_merge_in_order_whatever_is_finished_first(count, jobs, waits):
    def work(number, block):
        time.sleep(waits[number])
        return Path((number,), block.value)

    done = []
    found = merge_in_order(Reader(count).blocks(), work, jobs=jobs, report=done.append)
    assert found.steps == tuple(range(count))
    total = 0.0
    for number in range(count):
        total += 0.1 * number
    assert found.total == total
    assert done == np.cumsum(np.arange(count) + 1).tolist()


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_results_have_the_same_bits_whatever_the_threads(rng, jobs):
    X, y = rng.normal(size=(1000, 30)), rng.normal(size=1000)

    @dataclass
    class Sums:
        values: np.ndarray

        def merge(self, other):
            return Sums(self.values + other.values)

    def found(jobs):
        rows = ArrayRows(X, y, chunk_rows=64, jobs=jobs)
        return rows.over_rows(lambda chunk, v: Sums((chunk.X.T * v) @ chunk.X), what="").values

    np.testing.assert_array_equal(found(jobs), found(1))


@pytest.mark.parametrize("jobs", [1, 3])
def test_blas_has_one_thread_meanwhile(jobs):
    def widths():
        return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}

    def work(_number, _block):
        return Path(tuple(widths()), 0.0)

    with threadpool_limits(2, user_api="blas"):
        # Some libraries that other tests load have never more than one.
        before = widths()
        assert 2 in before
        found = merge_in_order(Reader(4).blocks(), work, jobs=jobs, report=ignore)
        assert widths() == before
    assert set(found.steps) == {1}


def test_several_threads_are_at_work_at_once(patience):
    both = threading.Barrier(2, timeout=patience)

    def work(number, _block):
        both.wait()
        return Path((number,), 0.0)

    assert merge_in_order(Reader(2).blocks(), work, jobs=2, report=ignore).steps == (0, 1)


def test_one_job_runs_in_plain_sight():
    def work(_number, _block):
        return Path((threading.get_ident(),), 0.0)

    found = merge_in_order(Reader(3).blocks(), work, jobs=1, report=ignore)
    assert set(found.steps) == {threading.get_ident()}


@pytest.mark.parametrize("jobs", [1, 2, 4])
def test_little_is_read_ahead_of_the_work(jobs):
    reader = Reader(60)
    finished = []
    ahead = []

    def work(number, _block):
        time.sleep(0.002)
        ahead.append(reader.read - len(finished))
        finished.append(number)
        return Path((number,), 0.0)

    merge_in_order(reader.blocks(), work, jobs=jobs, report=ignore)
    # joblib fetches one task for every thread at a time, on top of those that wait.
    assert max(ahead) <= (AHEAD + 2) * jobs


@pytest.mark.parametrize("jobs", [2, 4])
def test_nobody_runs_far_ahead_of_a_block_that_takes_long(jobs, wait_until):
    reader = Reader(100)
    started = []
    waited_for = []

    def work(number, _block):
        started.append(number)
        if number == 3:
            wait_until(lambda: max(started) > 3)
            # The others run as far as they can.
            time.sleep(0.1)
            waited_for.append(max(started))
        return Path((number,), 0.0)

    found = merge_in_order(reader.blocks(), work, jobs=jobs, report=ignore)
    assert found.steps == tuple(range(100))
    assert 3 < waited_for[0] <= 3 + AHEAD * jobs


@pytest.mark.parametrize("jobs", [1, 2, 4])
def test_the_first_error_of_the_table_is_the_one_raised(jobs):
    reader = Reader(40)

    def work(number, _block):
        if number == 5:
            time.sleep(0.05)
        if number >= 5:
            raise KeyError(number)
        return Path((number,), 0.0)

    done = []
    with pytest.raises(KeyError) as caught:
        merge_in_order(reader.blocks(), work, jobs=jobs, report=done.append)
    assert caught.value.args == (5,)
    assert len(done) == 5
    assert reader.closed
    assert reader.read < 40


@pytest.mark.parametrize("jobs", [1, 2, 4])
@pytest.mark.parametrize("fails_at", [0, 1, 17])
def test_errors_of_the_reader_come_in_their_turn(jobs, fails_at):
    reader = Reader(40, fails_at=fails_at)
    done = []
    with pytest.raises(OSError, match="disk"):
        merge_in_order(
            reader.blocks(), lambda number, _: Path((number,), 0.0), jobs=jobs, report=done.append
        )
    assert len(done) == fails_at
    assert reader.closed


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, RuntimeError])
def test_whoever_watches_may_stop_a_pass(jobs, kind):
    reader = Reader(40)

    def report(done):
        if done >= 6:
            raise kind

    with pytest.raises(kind):
        merge_in_order(
            reader.blocks(), lambda number, _: Path((number,), 0.0), jobs=jobs, report=report
        )
    assert reader.closed


def test_a_thread_that_wants_to_leave_does_not_hang_the_pass():
    def work(_number, _block):
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        merge_in_order(Reader(4).blocks(), work, jobs=2, report=ignore)


@pytest.mark.parametrize("jobs", [1, 2])
def test_no_blocks_are_no_rows(jobs):
    with pytest.raises(ValueError, match="no rows"):
        merge_in_order(Reader(0).blocks(), lambda *_: Path((), 0.0), jobs=jobs, report=ignore)


@pytest.mark.parametrize(("jobs", "chunk_rows", "times"), [(2, 4, 1), (2, 10, 0), (1, 4, 0)])
def test_what_threads_freed_goes_back_after_each_pass(
    jobs, chunk_rows, times, gather_rows, monkeypatch
):
    returned = []
    monkeypatch.setattr("cloakgp.data.chunks.return_freed_memory", lambda: returned.append(1))
    gather_rows(ArrayRows(np.zeros((10, 1)), np.zeros(10), chunk_rows=chunk_rows, jobs=jobs))
    assert len(returned) == times


@pytest.mark.parametrize("jobs", [1, 3])
def test_watch_is_told_in_order_by_the_thread_that_asked(jobs, gather_rows):
    told = []
    rows = ArrayRows(np.zeros((25, 1)), np.zeros(25), chunk_rows=10, jobs=jobs)
    watched = rows.report_to(lambda *news: told.append((*news, threading.get_ident())))
    gather_rows(watched)
    me = threading.get_ident()
    assert told == [("gathering", done, 25, me) for done in (10, 20, 25)]
    assert rows.watch is None
    gather_rows(rows)
    assert len(told) == 3


@pytest.mark.parametrize("wrong", [{"chunk_rows": 0}, {"jobs": 0}, {"jobs": -1}])
def test_settings_are_checked(wrong):
    with pytest.raises(ValueError, match="at least 1"):
        ArrayRows(np.zeros((2, 1)), np.zeros(2), **wrong)


def test_errors_and_what_is_behind_them_forget_their_variables(held_by):
    def deepest():
        secret = 123.25
        raise KeyError("a") if secret else None

    def below():
        secret = 123.25
        with suppress(ZeroDivisionError):
            try:
                deepest()
            except KeyError as error:
                raise ValueError("b") from error
        return secret

    with pytest.raises(ValueError, match="b") as caught:
        below()
    assert "123.25" in held_by(caught.value.__cause__)
    forget_locals(caught.value)
    assert "123.25" not in held_by(caught.value)
    assert "123.25" not in held_by(caught.value.__cause__)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("where", ["work", "merging", "watching"])
def test_whatever_goes_wrong_errors_hold_no_outputs(held_by, jobs, where):
    secrets = np.full(50, 123.456789)

    class Held:
        def __init__(self, values):
            self.values = values

        def __repr__(self):
            return repr(self.values)

        def merge(self, _other):
            if where == "merging":
                raise RuntimeError("no")
            return self

    def work(chunk, values):
        doubled = values + chunk.number
        if where == "work" and chunk.number == 2:
            raise RuntimeError("no")
        return Held(doubled)

    def watch(*news):
        if where == "watching" and news[1] > 20:
            raise RuntimeError("no")

    rows = ArrayRows(np.zeros((50, 1)), secrets, chunk_rows=10, jobs=jobs).report_to(watch)
    with pytest.raises(RuntimeError) as caught:
        rows.over_rows(work, what="asking")
    assert "123.45" not in held_by(caught.value)
    assert "124.45" not in held_by(caught.value)
    assert caught.value.__context__ is None
