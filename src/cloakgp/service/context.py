"""Context of operations: the running service, and one call of it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar

from cloakgp.fitting.plan import Plan
from cloakgp.ledger import Ledger
from cloakgp.ledger.chain import acting_as
from cloakgp.release.open import OpenedRelease
from cloakgp.service.access import Actor
from cloakgp.service.confined import Confinement, never
from cloakgp.service.database import ServiceDatabase
from cloakgp.service.oidc import ProviderClient
from cloakgp.service.rates import Rates, SharedCounters
from cloakgp.service.settings import Settings
from cloakgp.utils.memory import memory_budget

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


# Sizes of the caches.
PLANS, RELEASES = 64, 32
# Memory of a plan over that of a fit: it holds the same arrays, and some of them twice.
PLANNING_SHARE = 1.5


class Dispatcher(Protocol):
    """A dispatcher of jobs."""

    def submit(self, job: int) -> None:
        """Submit a job, and return at once."""

    def coordinate(self, request: int) -> None:
        """Go on with a joint request, and return at once."""

    def close(self) -> None:
        """End the dispatcher."""


class NoDispatcher:
    """Dispatcher that leaves work in the database, for a server to take up."""

    def submit(self, job: int) -> None:
        """Do nothing."""

    def coordinate(self, request: int) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class Service:
    """A running service.

    Attributes
    ----------
    settings : Settings
    ledger : Ledger
    database : ServiceDatabase
    dispatcher : Dispatcher
    rates : Rates
    provider : ProviderClient or None
        For people who sign in without a token.
    planning, reading, predicting : Confinement
        Processes for plans, for tables of custodians, and for tables and many rows to predict.
    plans, releases : LatestValues
        Plans by their requests, and releases by their digests.
    """

    settings: Settings
    ledger: Ledger
    database: ServiceDatabase
    rates: Rates
    planning: Confinement
    reading: Confinement
    predicting: Confinement
    provider: ProviderClient | None = None
    dispatcher: Dispatcher = field(default_factory=NoDispatcher)
    plans: LatestValues[Plan] = field(default_factory=lambda: LatestValues(PLANS))
    releases: LatestValues[OpenedRelease] = field(default_factory=lambda: LatestValues(RELEASES))

    @classmethod
    def open(cls, settings: Settings) -> Service:
        """Open a service on an existing ledger, without a dispatcher.

        Raises
        ------
        LedgerError
            If there is no ledger.
        """
        settings.uploads.mkdir(parents=True, exist_ok=True, mode=0o700)
        ledger = Ledger(settings.ledger)
        database = ServiceDatabase(settings.ledger)
        database.prepare()
        memory = memory_budget(settings.memory)
        return cls(
            settings=settings,
            ledger=ledger,
            database=database,
            rates=Rates(settings.rates, SharedCounters(database) if database.is_shared else None),
            provider=None if settings.provider is None else ProviderClient(settings.provider),
            planning=Confinement(
                slots=settings.plans,
                seconds=settings.plan_seconds,
                memory=PLANNING_SHARE * memory,
                action="planning this",
                advice="take inducing, fewer inputs, or compare with fewer budgets",
            ),
            reading=Confinement(
                slots=settings.readings,
                seconds=settings.reading_seconds,
                memory=memory,
                action="reading the table",
                advice="take fewer rows or columns",
            ),
            predicting=Confinement(
                slots=settings.readings,
                seconds=settings.predict_seconds,
                memory=settings.predict_memory,
                action="predicting these rows",
                advice="send fewer rows at once, and no columns but the inputs",
            ),
        )

    def with_dispatcher(self, dispatcher: Dispatcher) -> Service:
        """Return the service with a dispatcher."""
        return replace(self, dispatcher=dispatcher)

    def stop_calls(self) -> None:
        """End the processes that plan and read; their callers are told to ask again."""
        for each in (self.planning, self.reading, self.predicting):
            each.close()

    def close(self) -> None:
        """Close the connections, and end the dispatcher."""
        self.stop_calls()
        self.dispatcher.close()
        self.database.close()
        self.ledger.close()


@dataclass(frozen=True)
class Work:
    """The context of one call of an operation.

    Attributes
    ----------
    service : Service
    actor : Actor
    stopped : callable
        Returns whether the caller has left, which stops long work.
    """

    service: Service
    actor: Actor
    stopped: Callable[[], bool] = never

    @property
    def database(self) -> ServiceDatabase:
        """The service's tables."""
        return self.service.database

    @property
    def ledger(self) -> Ledger:
        """The ledger of charges."""
        return self.service.ledger

    def acting(self) -> AbstractContextManager[None]:
        """Name the actor in the ledger's entries, within a block."""
        return acting_as(self.actor.name)
