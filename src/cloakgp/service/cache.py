"""Cache of the latest values: plans, and opened releases."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class LatestValues(Generic[Value]):
    """The latest values by their keys, as many as fit.

    Parameters
    ----------
    most : int

    Examples
    --------
    >>> latest = LatestValues[int](1)
    >>> latest.get("a", lambda: 1), latest.get("a", lambda: 2), latest.get("b", lambda: 3)
    (1, 1, 3)
    >>> latest.get("a", lambda: 4)
    4
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._values: OrderedDict[str, Value] = OrderedDict()

    def get(self, key: str, make: Callable[[], Value]) -> Value:
        """Return the value of a key, or make it."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        made = make()
        with self._lock:
            self._values[key] = made
            while len(self._values) > self._most:
                self._values.popitem(last=False)
        return made
