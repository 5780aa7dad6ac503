"""Rate limits of actors and of network addresses, counted by one server or by several.

Several servers count as one in PostgreSQL. A count is one row, which one statement makes, adds to,
or begins anew at the end of its window; two servers that count at the same moment both count. The
table is unlogged: a crash of the database forgets the counts, and no request waits for a disk.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from limits import parse
from limits.storage import MemoryStorage, Storage
from limits.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter, RateLimiter
from sqlalchemy import case, delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import SQLAlchemyError

from cloakgp.service.database import ServiceDatabase
from cloakgp.service.errors import TooManyError
from cloakgp.service.models import Count
from cloakgp.service.settings import RATES

# Seconds between two cleanings.
CLEANED_EVERY = 600.0


class SharedCounters(Storage):
    """Storage of the package `limits` in the service's database.

    Parameters
    ----------
    database : ServiceDatabase
        On PostgreSQL.
    """

    STORAGE_SCHEME = None

    def __init__(self, database: ServiceDatabase) -> None:
        super().__init__()
        self._database = database
        self._lock = threading.Lock()
        self._cleaned = time.monotonic()

    @property
    def base_exceptions(self) -> type[Exception]:
        """The errors of a database that fails."""
        return SQLAlchemyError

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Add to a count, and return it."""
        now = time.time()
        over = Count.expires <= now
        added = insert(Count).values(key=key, count=amount, expires=now + expiry)
        statement = added.on_conflict_do_update(
            index_elements=[Count.key],
            set_={
                "count": case((over, amount), else_=Count.count + amount),
                "expires": case((over, now + expiry), else_=Count.expires),
            },
        ).returning(Count.count)
        with self._database.writing() as session:
            counted: int = session.execute(statement).scalar_one()
        self._clean(now)
        return counted

    def get(self, key: str) -> int:
        """Return a count."""
        with self._database.reading() as session:
            row = session.get(Count, key)
        return 0 if row is None or row.expires <= time.time() else row.count

    def get_expiry(self, key: str) -> float:
        """Return the time at which a count begins anew, in seconds since 1970."""
        with self._database.reading() as session:
            expires = session.scalar(select(Count.expires).where(Count.key == key))
        return time.time() if expires is None else expires

    def check(self) -> bool:
        """Return whether the database answers."""
        with self._database.reading() as session:
            session.execute(select(1))
        return True

    def reset(self) -> int | None:
        """Forget all counts; return their number."""
        with self._database.writing() as session:
            return len(session.scalars(delete(Count).returning(Count.key)).all())

    def clear(self, key: str) -> None:
        """Forget a count."""
        with self._database.writing() as session:
            session.execute(delete(Count).where(Count.key == key))

    def _clean(self, now: float) -> None:
        """Forget counts whose windows have ended, from time to time."""
        with self._lock:
            if time.monotonic() - self._cleaned < CLEANED_EVERY:
                return
            self._cleaned = time.monotonic()
        with self._database.writing() as session:
            session.execute(delete(Count).where(Count.expires <= now))


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

    def count(self, kind: str, who: str, *, many: int = 1) -> None:
        """Count a request, or several at once.

        Parameters
        ----------
        kind, who : str
        many : int

        Raises
        ------
        TooManyError
            If there were too many, this one included.
        """
        if not self._limiter.hit(self._rates[kind], kind, who, cost=many):
            raise self._too_many(kind, who)

    def check(self, kind: str, who: str) -> None:
        """Check that another request would be let through, without counting one.

        Parameters
        ----------
        kind, who : str

        Raises
        ------
        TooManyError
            If it would not.

        Examples
        --------
        >>> rates = Rates({"plan": "1/minute"})
        >>> rates.check("plan", "anna")
        >>> rates.count("plan", "anna")
        >>> rates.check("plan", "anna")
        Traceback (most recent call last):
        ...
        cloakgp.service.errors.TooManyError: too many requests: wait a little
        """
        if not self._limiter.test(self._rates[kind], kind, who):
            raise self._too_many(kind, who)

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

    def _too_many(self, kind: str, who: str) -> TooManyError:
        reset = self._limiter.get_window_stats(self._rates[kind], kind, who).reset_time
        return TooManyError(int(reset - time.time()) + 1)
