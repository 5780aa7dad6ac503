"""Coordinator of several custodians, in a worker: it goes on with what they have sent.

The files of a joint request are those of `cloakgp.custodians.exchange`, in the service's database
in the place of a folder. Here is neither a row nor an output, nor the noise of one site: the
service learns what whoever reads a folder learns, and the public inputs. The coordinator takes all
files, goes on in memory as far as it can, and writes all that is new in one transaction, or
nothing. So it may be killed at every moment, and called any number of times.
"""

from __future__ import annotations

import logging
import warnings

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloakgp.custodians import Coordinator, CustodiansError, MemoryExchange, WaitingError
from cloakgp.custodians.exchange import RELEASE, written_before
from cloakgp.custodians.progress import latest_attempt
from cloakgp.service.context import Service
from cloakgp.service.database import note_event
from cloakgp.service.errors import NotFoundError
from cloakgp.service.models import JointFile, JointRequest, now
from cloakgp.service.settings import Settings
from cloakgp.utils.formatting import kind_and_place

# The public account of a failure that was not foreseen.
FAILED = "the service cannot go on with it: its log names the place"
log = logging.getLogger("cloakgp.service")


class DatabaseExchange:
    """The files of a joint request in the service's database, within a session.

    Parameters
    ----------
    session : Session
    request : int
    """

    def __init__(self, session: Session, request: int) -> None:
        self._session = session
        self._request = request

    def get(self, name: str) -> bytes | None:
        """Return the content of a file, None if there is none yet."""
        row = self._session.get(JointFile, (self._request, name))
        return None if row is None else row.content

    def has(self, name: str) -> bool:
        """Return whether there is a file."""
        place = (JointFile.request_id == self._request, JointFile.name == name)
        return self._session.scalar(select(JointFile.name).where(*place)) is not None

    def put(self, name: str, content: bytes) -> None:
        """Keep a file, unless it is there with the same content."""
        known = self.get(name)
        if known is None:
            self._session.add(
                JointFile(request_id=self._request, name=name, content=content, created=now())
            )
            self._session.flush()
        elif known != content:
            raise written_before(name)

    def files(self) -> dict[str, bytes]:
        """Return all files, by their names."""
        rows = self._session.scalars(select(JointFile).where(JointFile.request_id == self._request))
        return {row.name: row.content for row in rows}


def lock_joint_request(session: Session, request: int) -> JointRequest:
    """Return a joint request, locked for all others until the session ends.

    Raises
    ------
    NotFoundError
    """
    row = session.get(JointRequest, request, with_for_update={"of": JointRequest})
    if row is None:
        raise NotFoundError("joint request")
    return row


def coordinate_request(settings: Settings, request: int) -> None:
    """Go on with a joint request, in a worker process.

    Parameters
    ----------
    settings : Settings
    request : int
    """
    service = Service.open(settings)
    try:
        coordinate(service, request)
    finally:
        service.close()


def coordinate(service: Service, request: int) -> None:
    """Go on with a joint request as far as its custodians have; do nothing if it is closed.

    Never raises: what the coordinator cannot go on with is noted.

    Parameters
    ----------
    service : Service
    request : int
    """
    with service.database.reading() as session:
        row = session.get(JointRequest, request)
        if row is None or row.closed is not None:
            return
        before = DatabaseExchange(session, request).files()
    exchange, problem = MemoryExchange(before), ""
    try:
        with warnings.catch_warnings(action="ignore"):
            Coordinator(exchange).collect()
    except WaitingError:
        pass
    except CustodiansError as error:
        # About what custodians sent, which is all public.
        problem = str(error)
    except Exception as error:
        log.error("joint request %d: %s", request, kind_and_place(error))
        problem = FAILED
    new = {name: content for name, content in exchange.files.items() if name not in before}
    with service.database.writing() as session:
        _write(session, request, new, attempt=latest_attempt(MemoryExchange(before)), told=problem)


def _write(
    session: Session, request: int, new: dict[str, bytes], *, attempt: int, told: str
) -> None:
    """Write what is new, unless the request was closed or begun again meanwhile."""
    row = lock_joint_request(session, request)
    exchange = DatabaseExchange(session, request)
    # A question of an earlier attempt is void: nobody may be told that all have answered it.
    if row.closed is not None or latest_attempt(exchange) != attempt:
        return
    if any(exchange.get(name) not in (None, content) for name, content in new.items()):
        # Another worker was faster, and came to something else: what it wrote holds.
        return
    for name, content in new.items():
        exchange.put(name, content)
    row.problem = told
    if RELEASE in new:
        about = f"joint request {request}"
        note_event(session, who="service", what="release of several custodians made", about=about)
