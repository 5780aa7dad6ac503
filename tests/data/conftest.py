"""Passes that gather everything, and a look at whatever an error still holds."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
import pytest


@dataclass(frozen=True, eq=False)
class Gathered:
    """All chunks, in the order of merging."""

    numbers: tuple[int, ...]
    X: tuple[np.ndarray, ...]
    outputs: tuple[np.ndarray, ...] = ()

    def merge(self, other):
        return Gathered(
            self.numbers + other.numbers, self.X + other.X, self.outputs + other.outputs
        )


@pytest.fixture(scope="session")
def gather_inputs():
    return lambda rows: rows.over_inputs(
        lambda chunk: Gathered((chunk.number,), (chunk.X,)), what="gathering"
    )


@pytest.fixture(scope="session")
def gather_rows():
    return lambda rows: rows.over_rows(
        lambda chunk, outputs: Gathered((chunk.number,), (chunk.X,), (outputs,)), what="gathering"
    )


def _behind(error):
    seen = []
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and one not in seen:
            seen.append(one)
            waiting += [one.__cause__, one.__context__]
    return seen


@pytest.fixture
def held_by():
    """Tell all that an error says and holds, in the frames below the test's own."""

    def held(error):
        told = []
        for one in _behind(error):
            told += [repr(one), repr(vars(one))]
            step = one.__traceback__
            while step is not None:
                if "/tests/" not in step.tb_frame.f_code.co_filename or step.tb_next is None:
                    told += [f"{name}={value!r}" for name, value in step.tb_frame.f_locals.items()]
                step = step.tb_next
        return "\n".join(told)

    with np.printoptions(threshold=10**9, precision=17):
        yield held


@pytest.fixture(autouse=True)
def no_threads_are_left(patience):
    before = set(threading.enumerate())
    yield
    # joblib tells its threads to go, and does not wait.
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=patience)
    assert set(threading.enumerate()) <= before
