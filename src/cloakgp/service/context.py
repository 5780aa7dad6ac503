"""Service and work: what is there while a service runs, and what one call has to do with."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Protocol

from cloakgp.fitting.release_plan import ReleasePlan
from cloakgp.ledger import Ledger
from cloakgp.ledger.chain import acting_as
from cloakgp.release.open import OpenedRelease
from cloakgp.service.access import Actor
from cloakgp.service.database import ServiceDatabase
from cloakgp.service.memory import Recent
from cloakgp.service.rates import Rates
from cloakgp.service.settings import Settings

# So many are kept.
PLANS, RELEASES = 16, 32


class Dispatcher(Protocol):
    """Whoever has jobs done."""

    def submit(self, job: int) -> None:
        """Have a job done; at once returns."""

    def close(self) -> None:
        """End."""


class NoDispatcher:
    """Leaves jobs in the database, for a server to take up."""

    def submit(self, job: int) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class Service:
    """All that is there while a service runs.

    Attributes
    ----------
    settings : Settings
    ledger : Ledger
    database : ServiceDatabase
    dispatcher : Dispatcher
    rates : Rates
    planning : threading.Semaphore
        Of plans that are made at once.
    plans, releases : Recent
        What was made or opened lately, by what was asked and by digest.
    """

    settings: Settings
    ledger: Ledger
    database: ServiceDatabase
    rates: Rates
    planning: threading.BoundedSemaphore
    dispatcher: Dispatcher = field(default_factory=NoDispatcher)
    plans: Recent[ReleasePlan] = field(default_factory=lambda: Recent(PLANS))
    releases: Recent[OpenedRelease] = field(default_factory=lambda: Recent(RELEASES))

    @classmethod
    def open(cls, settings: Settings) -> Service:
        """Open a service whose ledger is there, without anybody who does jobs.

        Raises
        ------
        LedgerError
            If there is no ledger.
        """
        settings.uploads.mkdir(parents=True, exist_ok=True, mode=0o700)
        ledger = Ledger(settings.ledger)
        database = ServiceDatabase(settings.ledger)
        database.prepare()
        return cls(
            settings=settings,
            ledger=ledger,
            database=database,
            rates=Rates(settings.rates),
            planning=threading.BoundedSemaphore(settings.plans),
        )

    def with_dispatcher(self, dispatcher: Dispatcher) -> Service:
        """Return the service with somebody who does jobs."""
        return replace(self, dispatcher=dispatcher)

    def close(self) -> None:
        """Close the connections, and end whoever does jobs."""
        self.dispatcher.close()
        self.database.close()
        self.ledger.close()


@dataclass(frozen=True)
class Work:
    """What one call of an operation has to do with.

    Attributes
    ----------
    service : Service
    actor : Actor
    """

    service: Service
    actor: Actor

    @property
    def database(self) -> ServiceDatabase:
        """The service's tables."""
        return self.service.database

    @property
    def ledger(self) -> Ledger:
        """What was spent."""
        return self.service.ledger

    def acting(self) -> AbstractContextManager[None]:
        """Have the ledger's entries say who it was, within a block."""
        return acting_as(self.actor.name)
