"""BLAS threads are capped for small problems, left alone for large ones, and given back."""

from __future__ import annotations

from threading import Barrier

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from cloakgp.utils.threads import FEW_BLOCKS, SMALL_PASS, each_of, over_blocks, suitable_threads


def blas_threads():
    return {
        pool["filepath"]: pool["num_threads"]
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    }


@pytest.fixture
def allowed():
    """How many threads BLAS has: two, or one where the environment allows no more."""
    np.eye(2) @ np.eye(2)
    with threadpool_limits(limits=2, user_api="blas"):
        yield blas_threads()


def test_small_problems_get_one_thread(allowed):
    with suitable_threads(SMALL_PASS):
        assert set(blas_threads().values()) == {1}
    assert blas_threads() == allowed


def test_large_problems_keep_theirs(allowed):
    with suitable_threads(2 * SMALL_PASS):
        assert blas_threads() == allowed


def test_threads_come_back_after_an_error(allowed):
    with pytest.raises(ZeroDivisionError), suitable_threads(1.0):
        _ = 1 / 0
    assert blas_threads() == allowed


@pytest.mark.parametrize("rows", [0, 1, 7, 40])
def test_blocks_come_back_in_order_and_have_one_thread(rows, allowed):
    X = np.arange(rows, dtype=float)[:, None]
    seen = []

    def work(block):
        seen.append(blas_threads())
        return block.ravel()

    parts = over_blocks(work, X, rows=3)
    np.testing.assert_array_equal(np.concatenate(parts), X.ravel())
    many = len(parts) >= FEW_BLOCKS
    assert all(threads == (dict.fromkeys(allowed, 1) if many else allowed) for threads in seen)
    assert blas_threads() == allowed


@pytest.mark.parametrize("count", [0, 1, 5])
def test_each_of_some_items_is_worked_on_with_one_thread_of_blas(count, allowed):
    threads = each_of(lambda item: (item, blas_threads()), list(range(count)))
    assert threads == [(item, dict.fromkeys(allowed, 1)) for item in range(count)]
    assert blas_threads() == allowed


@pytest.mark.skipif(joblib.cpu_count() < 2, reason="one processor works on one item at a time")
def test_two_items_are_worked_on_at_once():
    both = Barrier(2, timeout=60)
    assert sorted(each_of(lambda _: both.wait(), ["one", "other"])) == [0, 1]


def test_what_an_item_raises_comes_out(allowed):
    with pytest.raises(ZeroDivisionError):
        each_of(lambda item: 1 / item, [1, 0])
    assert blas_threads() == allowed
