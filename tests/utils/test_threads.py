"""BLAS threads are capped for small problems, left alone for large ones, and given back."""

from __future__ import annotations

import os
import subprocess
import sys
from threading import Barrier, get_ident

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from cloakgp.utils import threads
from cloakgp.utils.threads import (
    FEW_BLOCKS,
    PARTS,
    SMALL_PASS,
    each_of,
    over_blocks,
    product,
    suitable_threads,
)

BLAS = pytest.mark.usefixtures("two_threads")
SEVERAL = pytest.mark.skipif(joblib.cpu_count() < 2, reason="there is one processor")


def blas_threads():
    return {
        pool["filepath"]: pool["num_threads"]
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    }


@pytest.fixture
def two_threads():
    np.eye(2) @ np.eye(2)
    with threadpool_limits(limits=2, user_api="blas"):
        if set(blas_threads().values()) != {2}:
            pytest.skip("this BLAS has no second thread to take away")
        yield


@BLAS
def test_small_problems_get_one_thread():
    with suitable_threads(SMALL_PASS):
        assert set(blas_threads().values()) == {1}
    assert set(blas_threads().values()) == {2}


@BLAS
def test_large_problems_keep_theirs():
    with suitable_threads(2 * SMALL_PASS):
        assert set(blas_threads().values()) == {2}


@BLAS
def test_threads_come_back_after_an_error():
    with pytest.raises(ZeroDivisionError), suitable_threads(1.0):
        _ = 1 / 0
    assert set(blas_threads().values()) == {2}


@BLAS
@pytest.mark.parametrize("rows", [0, 1, 7, 40])
def test_blocks_come_back_in_order_and_have_one_thread(rows):
    X = np.arange(rows, dtype=float)[:, None]
    seen = []

    def work(block):
        seen.append(set(blas_threads().values()))
        return block.ravel()

    parts = over_blocks(work, X, rows=3)
    np.testing.assert_array_equal(np.concatenate(parts), X.ravel())
    many = len(parts) >= FEW_BLOCKS
    assert all(threads == ({1} if many else {2}) for threads in seen)
    assert set(blas_threads().values()) == {2}


@BLAS
@pytest.mark.parametrize("count", [0, 1, 5])
def test_each_of_some_items_is_worked_on_with_one_thread_of_blas(count):
    threads = each_of(lambda item: (item, set(blas_threads().values())), list(range(count)))
    assert threads == [(item, {1}) for item in range(count)]
    assert set(blas_threads().values()) == {2}


@BLAS
def test_what_an_item_raises_comes_out():
    with pytest.raises(ZeroDivisionError):
        each_of(lambda item: 1 / item, [1, 0])
    assert set(blas_threads().values()) == {2}


@SEVERAL
def test_two_items_are_worked_on_at_once(patience):
    both = Barrier(2, timeout=patience)
    assert sorted(each_of(lambda _: both.wait(), ["one", "other"])) == [0, 1]


@SEVERAL
def test_what_a_thread_of_several_calls_each_of_in_turn_is_done_in_it(patience):
    both = Barrier(2, timeout=patience)

    def inner(_):
        both.wait()
        return each_of(lambda _: get_ident(), [0, 1, 2])

    found = each_of(inner, ["one", "other"])
    assert [len(set(one)) for one in found] == [1, 1]
    assert found[0] != found[1]


@pytest.mark.parametrize("shape", [(0, 3, 2), (1, 2, 3), (3, 4, 0), (37, 11, 5)])
@pytest.mark.parametrize("in_parts", [False, True])
def test_products_are_numpy_s(rng, monkeypatch, shape, in_parts):
    n, m, k = shape
    left, right = rng.normal(size=(n, m)), rng.normal(size=(k, m)).T
    if in_parts:
        monkeypatch.setattr(threads, "LARGE_PRODUCT", 0.0)
    np.testing.assert_allclose(product(left, right), left @ right, rtol=1e-13, atol=1e-13)


def test_the_parts_of_a_product_do_not_depend_on_the_number_of_processors(rng, monkeypatch):
    left, right = rng.normal(size=(37, 11)), rng.normal(size=(11, 5))
    monkeypatch.setattr(threads, "LARGE_PRODUCT", 0.0)
    found = []
    for count in (1, 2, 2 * PARTS):
        monkeypatch.setattr(joblib, "cpu_count", lambda count=count: count)
        found.append(product(left, right))
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


@SEVERAL
def test_what_needs_two_threads_is_tested_in_a_process_that_has_them():
    """In others the environment, or a library of another test, may leave BLAS one."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        pytest.skip("this process has loaded no more than these tests need")
    alone = {name: each for name, each in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", __file__],
        env={**alone, "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "no second thread" not in done.stdout
