"""Tasks on joblib's workers: in order, one BLAS thread each, on any backend."""

from __future__ import annotations

import itertools
import os
import threading
from functools import partial

import pytest
from joblib import parallel_config
from threadpoolctl import threadpool_info, threadpool_limits

from cloakgp.privacy.workers import in_order

BACKENDS = ("threading", "loky", "multiprocessing")


def blas_threads(libraries=None):
    # Tasks are functions of other packages, since processes cannot import a test.
    found = threadpool_info() if libraries is None else libraries
    return {one["num_threads"] for one in found if one["user_api"] == "blas"}


@pytest.mark.parametrize("backend", BACKENDS)
def test_results_come_in_the_order_of_their_tasks(backend):
    with parallel_config(backend=backend):
        found = list(in_order((partial(divmod, number, 7) for number in range(40)), n_jobs=2))
    assert found == [divmod(number, 7) for number in range(40)]


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_task_has_one_blas_thread_and_the_cap_is_taken_off(backend, n_jobs):
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        assert before != {1}
        with parallel_config(backend=backend):
            found = list(in_order([threadpool_info] * 8, n_jobs=n_jobs))
        assert [blas_threads(libraries) for libraries in found] == [{1}] * 8
        assert blas_threads() == before


def test_the_cap_is_taken_off_if_nobody_wants_the_rest():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        results = in_order(itertools.repeat(threadpool_info), n_jobs=1)
        assert blas_threads(next(results)) == {1}
        results.close()
        assert blas_threads() == before


def test_n_jobs_is_scikit_learns():
    """One, here, unless a context says otherwise; what is given goes before the context."""
    here = threading.get_ident()
    assert set(in_order([threading.get_ident] * 4)) == {here}
    with parallel_config(backend="threading", n_jobs=2):
        assert here not in set(in_order([threading.get_ident] * 4))
        assert set(in_order([threading.get_ident] * 4, n_jobs=1)) == {here}
    with parallel_config(backend="loky"):
        assert os.getpid() not in set(in_order([os.getpid] * 4, n_jobs=2))


def test_tasks_are_made_as_they_are_needed():
    made = []

    def tasks():
        for number in range(100):
            made.append(number)
            yield partial(divmod, number, 7)

    assert next(in_order(tasks(), n_jobs=1)) == (0, 0)
    assert len(made) < 10


@pytest.mark.parametrize("n_jobs", [0, "several"])
def test_bad_numbers_of_jobs(n_jobs):
    with pytest.raises(ValueError, match="n_jobs"):
        list(in_order([os.getpid], n_jobs=n_jobs))


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_a_task_raises_is_raised_here(backend):
    with (
        parallel_config(backend=backend),
        pytest.raises(ValueError, match="invalid literal"),
    ):
        list(in_order([partial(int, "x"), partial(int, "1")], n_jobs=2))
