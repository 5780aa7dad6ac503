"""Arithmetic of 80 digits: nobody else's precision, threads or forks change what comes of it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import mpmath
import pytest

from cloakgp.privacy import filters
from cloakgp.privacy.accounting import gaussian_delta
from cloakgp.utils.precision import DIGITS, many_digits


@pytest.fixture(autouse=True)
def precision_as_before():
    with mpmath.workdps(15):
        yield


class Meddling(tuple):
    """Orders among which another thread leaves mpmath's precision at its own."""

    def __iter__(self):
        for each in super().__iter__():
            mpmath.mp.dps = 15
            yield each


class MeddlingFloat(float):
    def __float__(self):
        mpmath.mp.dps = 15
        return super().__float__()


@pytest.mark.parametrize("laplace", [False, True])
def test_divergences_are_those_of_80_digits_whatever_others_do(monkeypatch, laplace):
    divergences = filters.renyi_divergences.__wrapped__
    alone = divergences(1e-6, laplace=laplace)
    monkeypatch.setattr(filters, "ORDERS", Meddling(filters.ORDERS))
    assert divergences(1e-6, laplace=laplace) == alone


def test_the_closed_form_is_that_of_80_digits_whatever_others_do():
    delta = gaussian_delta.__wrapped__
    assert delta(0.01, MeddlingFloat(0.05)) == delta(0.01, 0.05)


def test_what_others_compute_has_their_digits():
    with many_digits() as exact:
        assert (exact.dps, mpmath.mp.dps) == (DIGITS, 15)


def test_who_was_interrupted_leaves_nobody_other_digits():
    """Functions of mpmath's take ten bits more, which an interrupt can keep from going."""

    def interrupted():
        with many_digits() as exact:
            exact.prec += 10
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with many_digits() as exact:
        assert exact.dps == DIGITS


def test_one_thread_at_a_time_has_it():
    """Its functions set its precision while they work."""
    began, got = threading.Event(), threading.Event()

    def other():
        began.set()
        with many_digits():
            got.set()

    thread = threading.Thread(target=other)
    with many_digits():
        thread.start()
        began.wait()
        assert not got.wait(0.05)
    thread.join(30)
    assert got.is_set()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_process_that_is_forked_meanwhile_waits_for_nobody():
    """A thread of the parent has the digits; of the child nobody would return them."""
    code = """
import os, threading
from cloakgp.privacy.accounting import gaussian_delta
from cloakgp.utils.precision import many_digits
held, done = threading.Event(), threading.Event()
def hold():
    with many_digits():
        held.set()
        done.wait()
threading.Thread(target=hold).start()
held.wait()
child = os.fork()
if not child:
    gaussian_delta(1.0, 1.0)
    os._exit(7)
ended = os.waitpid(child, 0)[1]
done.set()
print(os.waitstatus_to_exitcode(ended))
"""
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert ran.stdout.strip() == "7"
