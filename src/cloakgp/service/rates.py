"""Rate limits of actors and of network addresses."""

from __future__ import annotations

import time
from collections.abc import Mapping

from limits import parse
from limits.storage import MemoryStorage, Storage
from limits.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter, RateLimiter

from cloakgp.service.errors import TooManyError
from cloakgp.service.settings import RATES


class Rates:
    """Counts of requests in the memory of one server, or shared by several.

    Windows move in memory. Shared windows have fixed beginnings, so that each request takes one
    statement of the database; around such a beginning, twice the rate is possible.

    Parameters
    ----------
    rates : mapping of str to str
        Kind of request → rate, such as 600/minute; `RATES` has the rates of other kinds.
    shared : Storage, optional
        Storage of several servers; by default, the memory of this one.

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

    def __init__(self, rates: Mapping[str, str], shared: Storage | None = None) -> None:
        self._rates = {kind: parse(rate) for kind, rate in {**RATES, **rates}.items()}
        self._limiter: RateLimiter = (
            MovingWindowRateLimiter(MemoryStorage())
            if shared is None
            else FixedWindowRateLimiter(shared)
        )

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

    def left(self, kind: str, who: str) -> int | None:
        """Count a request; return the number of further ones, or None if it is one too many.

        Examples
        --------
        >>> rates = Rates({"noted": "2/hour"})
        >>> [rates.left("noted", "10.0.0.7") for _ in range(3)]
        [1, 0, None]
        """
        rate = self._rates[kind]
        if not self._limiter.hit(rate, kind, who):
            return None
        return self._limiter.get_window_stats(rate, kind, who).remaining
