"""Health of the service: checks of readiness, and periodic maintenance.

A process that answers may be unable to work: a disk may be full, or a database read-only.
`Readiness` writes to both. `Rounds` verify the ledger from time to time, and erase files at the end
of their retention.
"""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from dataclasses import dataclass

from cloakgp.service.context import Service
from cloakgp.service.database import UnavailableError, note_event
from cloakgp.service.errors import ServiceError
from cloakgp.service.metrics import Metrics
from cloakgp.service.models import Probe, now
from cloakgp.service.operations.erasing import (
    erase_old_exchanges,
    erase_old_files,
    remove_leftovers,
)

# Seconds for which an answer holds: its callers are unknown.
HOLDS = 2.0
# Bytes that a check of the disk writes.
ROOM = 2**16
HOUR = 3600.0
# Seconds after the start to the first round.
FIRST = 60.0
log = logging.getLogger("cloakgp.service")


class NotReadyError(ServiceError):
    """The service cannot work; the message names the place of the failure."""

    status, kind = 503, "unavailable"


class Readiness:
    """Readiness of the service: its database and folder can be written, and its ledger is sound.

    Parameters
    ----------
    service : Service
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._looked, self._problem = 0.0, ""
        self.sound = True

    def check(self) -> None:
        """Write to the database and to the folder of uploaded tables, unless a check just did.

        Raises
        ------
        NotReadyError
        LedgerError
            If the ledger must be recovered before it counts.
        """
        self._service.ledger.check()
        with self._lock:
            if not self._looked or time.monotonic() - self._looked > HOLDS:
                self._problem = self._check()
                self._looked = time.monotonic()
            problem = self._problem
        if problem:
            raise NotReadyError(problem)

    def _check(self) -> str:
        if not self.sound:
            return "the ledger is not sound: an auditor must verify it"
        try:
            with tempfile.TemporaryFile(dir=self._service.settings.uploads) as file:
                file.write(bytes(ROOM))
        except OSError:
            return "the folder of uploaded tables cannot be written: look at its disk"
        try:
            with self._service.database.writing() as session:
                session.merge(Probe(id=1, written=now()))
        except UnavailableError:
            return "the database cannot be written: look at its disk"
        return ""


@dataclass(frozen=True)
class Rounds:
    """Periodic maintenance of the service, in a thread.

    Attributes
    ----------
    service : Service
    metrics : Metrics
    readiness : Readiness
    ended : threading.Event
    """

    service: Service
    metrics: Metrics
    readiness: Readiness
    ended: threading.Event

    def begin(self) -> None:
        """Begin the rounds, until `ended` is set."""
        threading.Thread(target=self._run, name="rounds", daemon=True).start()

    def _run(self) -> None:
        wait, hours = FIRST, self.service.settings.verify_hours
        while not self.ended.wait(wait):
            self.make_round()
            wait = HOUR * (hours or 24.0)

    def make_round(self) -> None:
        """Verify the ledger if the settings say so, and erase old files."""
        try:
            if self.service.settings.verify_hours:
                self.verify()
            erase_old_files(self.service)
            erase_old_exchanges(self.service)
            remove_leftovers(self.service)
        except Exception as error:
            # The next round tries again; the check of readiness reports the failure.
            log.error("a round was not finished: %s", type(error).__name__)

    def verify(self) -> None:
        """Verify the ledger, and report the result in metrics, events and the log."""
        audit = self.service.ledger.verify()
        self.metrics.note_verified(sound=audit.sound)
        self.readiness.sound = audit.sound
        about = f"sound, {audit.entries} entries"
        if not audit.sound:
            about = f"NOT SOUND: {len(audit.findings)} findings, which an auditor sees"
            log.error("the ledger is not sound")
        with self.service.database.writing() as session:
            note_event(session, who="service", what="ledger verified", about=about)
