"""Rate limits: how often one actor, or one address, may do what."""

from __future__ import annotations

import time
from collections.abc import Mapping

from limits import parse
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from cloakgp.service.errors import TooManyError


class Rates:
    """Moving windows in the memory of the server.

    Parameters
    ----------
    rates : mapping of str to str
        Kind of request → rate, such as 600/minute.

    Examples
    --------
    >>> rates = Rates({"plan": "1/minute"})
    >>> rates.count("plan", "anna")
    >>> rates.count("plan", "bob")
    >>> rates.count("plan", "anna")
    Traceback (most recent call last):
    ...
    cloakgp.service.errors.TooManyError: too many requests: wait a little
    """

    def __init__(self, rates: Mapping[str, str]) -> None:
        self._rates = {kind: parse(rate) for kind, rate in rates.items()}
        self._limiter = MovingWindowRateLimiter(MemoryStorage())

    def count(self, kind: str, who: str) -> None:
        """Count a request.

        Parameters
        ----------
        kind, who : str

        Raises
        ------
        TooManyError
            If there were too many, this one included.
        """
        rate = self._rates[kind]
        if not self._limiter.hit(rate, kind, who):
            reset = self._limiter.get_window_stats(rate, kind, who).reset_time
            raise TooManyError(int(reset - time.time()) + 1)

    def check(self, kind: str, who: str) -> None:
        """Raise TooManyError if the next request would be too many."""
        if not self._limiter.test(self._rates[kind], kind, who):
            raise TooManyError(1)
