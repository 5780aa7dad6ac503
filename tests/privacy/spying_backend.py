"""A backend of joblib that keeps what is sent to its workers."""

from __future__ import annotations

import pickle
from contextlib import contextmanager

import numpy as np
from joblib import parallel_config, register_parallel_backend
from joblib._parallel_backends import ThreadingBackend


class _Spy(ThreadingBackend):
    def __init__(self, *, sent, **rest):
        super().__init__(**rest)
        self.sent = sent

    def _seen(self, func):
        task = pickle.dumps(func.items)
        self.sent.append(task)
        # What runs is a copy, as it is elsewhere: it leaves nothing in what is sent next.
        func.items = pickle.loads(task)
        return func

    # What old versions of joblib call `apply_async`, new ones call `submit`.
    if hasattr(ThreadingBackend, "submit"):

        def submit(self, func, callback=None):
            return super().submit(self._seen(func), callback)

    else:

        def apply_async(self, func, callback=None):
            return super().apply_async(self._seen(func), callback)


register_parallel_backend("spying", _Spy)


@contextmanager
def spying():
    """Send every task to a thread, and yield the list of their pickles."""
    sent: list[bytes] = []
    with parallel_config(backend="spying", sent=sent, n_jobs=2):
        yield sent


def holds(task, values):
    """Whether any of the numbers stands in a pickle, in either precision or in words."""
    return any(
        form in task
        for value in np.asarray(values, dtype=np.float64).ravel()
        for form in (
            value.tobytes(),
            value.byteswap().tobytes(),
            np.float32(value).tobytes(),
            repr(float(value)).encode(),
        )
    )
