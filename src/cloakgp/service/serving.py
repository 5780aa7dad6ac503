"""Serving: an application on uvicorn, with its ledger, its workers and its first people."""

from __future__ import annotations

import logging
import socket
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import uvicorn
from threadpoolctl import threadpool_limits

from cloakgp.ledger import Ledger
from cloakgp.ledger.database import parse_url
from cloakgp.ledger.keys import files_of, suffixed
from cloakgp.release.predictions import UnseenLevelWarning
from cloakgp.service.app import create_app
from cloakgp.service.context import Service
from cloakgp.service.demonstration import Introduced, prepare_demonstration
from cloakgp.service.dispatch import dispatcher_of
from cloakgp.service.operations.people import first_token
from cloakgp.service.pages.routing import page_routers
from cloakgp.service.settings import Settings

# Seconds that requests are let finish when the service ends.
GRACE = 10


@dataclass(frozen=True)
class Prepared:
    """A service that can begin, and what its starter is told once.

    Attributes
    ----------
    service : Service
        Nobody does its jobs yet.
    administrator : str or None
        Token of the first administrator, if there was nobody.
    introduced : tuple of Introduced
        Of a demonstration.
    """

    service: Service
    administrator: str | None
    introduced: tuple[Introduced, ...]


def prepare(settings: Settings, *, demonstration: bool) -> Prepared:
    """Open a service, and make its ledger and first people if there are none.

    Parameters
    ----------
    settings : Settings
    demonstration : bool

    Raises
    ------
    LedgerError
        If the ledger cannot be opened or made.
    """
    settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    files = files_of(parse_url(settings.ledger))
    if not suffixed(files, ".key").exists():
        # Where there is a database whose key is elsewhere, this refuses.
        Ledger.create(settings.ledger).close()
    service = Service.open(settings)
    if demonstration:
        introduced = tuple(prepare_demonstration(service))
        return Prepared(service=service, administrator=None, introduced=introduced)
    first = first_token(service.database, days=settings.token_days)
    return Prepared(service=service, administrator=first, introduced=())


def serve(prepared: Prepared, *, begun: Callable[[str], None]) -> None:
    """Serve until a signal ends it; jobs that run are taken up again at the next start.

    Parameters
    ----------
    prepared : Prepared
    begun : callable
        Told the address when it answers.
    """
    settings = prepared.service.settings
    logging.getLogger("cloakgp.service").setLevel(logging.INFO)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    # It quotes what was sent.
    warnings.simplefilter("ignore", UnseenLevelWarning)
    listening = _listening(settings)
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    service = prepared.service.with_dispatcher(dispatcher_of(settings))
    app = create_app(
        service, pages=page_routers(settings), begin=lambda: begun(f"http://{shown}:{port}")
    )
    config = uvicorn.Config(
        app,
        # Paths hold names, and are not noted; what is noted is in `measuring`.
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=GRACE,
    )
    # Requests are many at once and small: threads of their own would only wait for each other.
    with threadpool_limits(limits=1):
        uvicorn.Server(config).run(sockets=[listening])


def _listening(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # Only of what is said to be TCP does asyncio send small answers at once.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((settings.host, settings.port))
    except OSError:
        made.close()
        raise
    return made
