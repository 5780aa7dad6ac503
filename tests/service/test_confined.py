"""Confined work: what it returns and raises, and that nothing of it goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from cloakgp.data.limits import TooSlowError
from cloakgp.service import confined
from cloakgp.service.confined import Confinement, EndedError, never
from cloakgp.service.errors import InvalidError, TooManyError

MIB = 2**20


@pytest.fixture
def small():
    return confinement()


def confinement(**changed):
    asked = {
        "slots": 2,
        # No limit of these tests, however busy the machine is.
        "seconds": 600.0,
        "memory": 512 * MIB,
        "action": "this",
        "advice": "ask less",
    }
    return Confinement(**(asked | changed))


def total(numbers, *, times=1):
    return times * sum(numbers)


def fail(error):
    raise error


def sleep(place, seconds=600.0):
    """Say who works, and go on where no signal but the last reaches."""
    Path(place).write_text(str(os.getpid()))
    time.sleep(seconds)


def spin(place):
    Path(place).write_text(str(os.getpid()))
    while True:
        pass


def fill(size):
    return np.ones(size, dtype=np.uint8).sum()


def write(place, size):
    with Path(place).open("wb") as file:
        for _ in range(size // MIB):
            file.write(bytes(MIB))


def worker_at(place):
    """The process that has begun to work at a place; None if there is none."""
    text = place.read_text() if place.exists() else ""
    return int(text) if text else None


@pytest.fixture
def begun(wait_until):
    """Wait for the process that begins to work at a place; return it."""
    return lambda place: wait_until(lambda: worker_at(place), told=lambda: "nobody began")


@pytest.fixture
def wait_until_gone(wait_until):
    return lambda process: wait_until(
        lambda: not psutil.pid_exists(process), told=lambda: "it goes on"
    )


def test_what_is_returned(small):
    assert small.call(total, never, [1, 2], times=2) == 6
    assert small.call(os.getpid, never) != os.getpid()


@pytest.mark.parametrize(
    ("raised", "kind", "message"),
    [
        (ValueError("no such column"), ValueError, "no such column"),
        (TooSlowError("a slow query"), TooSlowError, "a slow query"),
        (FileNotFoundError(2, "No such file", "/secret"), OSError, "No such file"),
        (MemoryError("secret"), InvalidError, "more memory than there is"),
        (KeyError("secret"), RuntimeError, "KeyError at test_confined.py"),
    ],
)
def test_what_is_raised(small, raised, kind, message):
    with pytest.raises(kind, match=message) as error:
        small.call(fail, never, raised)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("work", [sleep, spin])
def test_what_takes_too_long_is_killed(tmp_path, work, wait_until_gone):
    place = tmp_path / "begun"
    # On a busy machine a process may reach its limit before it begins to work.
    for seconds in (3, 12, 48, 192):
        with pytest.raises(InvalidError, match=rf"took longer than {seconds} seconds.*: ask less"):
            confinement(seconds=float(seconds)).call(work, never, place)
        if worker_at(place):
            break
    wait_until_gone(worker_at(place))


@pytest.mark.parametrize("how", ["asker", "service"])
def test_what_nobody_waits_for_is_killed(tmp_path, how, begun, wait_until_gone):
    place, left = tmp_path / "begun", threading.Event()
    one = confinement()

    def leave():
        begun(place)
        left.set() if how == "asker" else one.close()

    leaving = threading.Thread(target=leave)
    leaving.start()
    with pytest.raises(EndedError, match="ask again"):
        one.call(spin, left.is_set, place)
    leaving.join()
    wait_until_gone(begun(place))
    if how == "service":
        with pytest.raises(EndedError):
            one.call(sleep, never, place)


def test_memory_is_limited(small):
    assert small.call(fill, never, 64 * MIB) == 64 * MIB
    with pytest.raises(InvalidError, match="more memory than there is for it here: ask less"):
        small.call(fill, never, 1024 * MIB)


def test_files_are_limited(tmp_path):
    place = tmp_path / "written"
    with pytest.raises(OSError, match="too large"):
        confinement(memory=64 * MIB).call(write, never, place, 65 * MIB)


def test_a_process_that_the_system_kills(small):
    with pytest.raises(InvalidError, match="without an answer, as where memory is short: ask less"):
        small.call(os.abort, never)


def test_others_wait_and_not_for_ever(tmp_path, monkeypatch, begun):
    monkeypatch.setattr(confined, "PATIENCE", 0.3)
    one, place = confinement(slots=1), tmp_path / "begun"

    def hold():
        with pytest.raises(EndedError):
            one.call(sleep, never, place)

    holding = threading.Thread(target=hold)
    holding.start()
    begun(place)
    with pytest.raises(TooManyError):
        one.call(os.getpid, never)
    one.close()
    holding.join()


SERVICE = """
import sys
sys.path.insert(0, {tests!r})
from test_confined import confinement, never, spin
if __name__ == "__main__":
    confinement().call(spin, never, {place!r})
"""


def test_it_ends_with_a_service_that_is_killed(tmp_path, begun, wait_until_gone):
    place, program = tmp_path / "begun", tmp_path / "program.py"
    tests = str(Path(__file__).parent)
    program.write_text(SERVICE.format(tests=tests, place=str(place)))
    service = subprocess.Popen([sys.executable, str(program)])
    process = begun(place)
    service.kill()
    service.wait()
    wait_until_gone(process)
