"""Server of the service on uvicorn, with its ledger, its workers and its first people."""

from __future__ import annotations

import logging
import socket
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import uvicorn
from threadpoolctl import threadpool_limits

from cloakgp.ledger import Ledger
from cloakgp.ledger.engines import key_file, parse_url
from cloakgp.release.points import NoPredictionWarning, UnseenLevelWarning
from cloakgp.service.app import create_app
from cloakgp.service.context import Service
from cloakgp.service.demonstration import Demonstration, prepare_demonstration
from cloakgp.service.dispatch import dispatcher_of
from cloakgp.service.maintenance import TOKEN_FILE, first_token, write_token
from cloakgp.service.settings import Settings

# Seconds for which requests may finish when the service ends.
GRACE = 10


@dataclass(frozen=True)
class Prepared:
    """A service before its start, with the messages for its host.

    Attributes
    ----------
    service : Service
        Without a dispatcher.
    administrator : Path or None
        File of the first administrator's token, if there were no people.
    demonstration : Demonstration or None
    """

    service: Service
    administrator: Path | None
    demonstration: Demonstration | None = None


def prepare(settings: Settings, *, demonstration: bool) -> Prepared:
    """Open a service, and make its ledger and its first people if there are none.

    Parameters
    ----------
    settings : Settings
    demonstration : bool

    Raises
    ------
    LedgerError
        If the ledger cannot be opened or made, or is an older copy that was not recovered.
    ValueError
        If there is a ledger in the place of the demonstration's own.
    """
    settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    exists = key_file(parse_url(settings.ledger)).exists()
    if exists and demonstration:
        raise ValueError("there is a ledger already: the demonstration has one of its own")
    if not exists:
        # A database whose key is elsewhere is refused here.
        Ledger.create(settings.ledger).close()
    service = Service.open(settings)
    # In an older copy, tokens that were revoked since are valid again.
    service.ledger.database.check_anchor()
    if demonstration:
        shown = Demonstration(people=tuple(prepare_demonstration(service)))
        return Prepared(service=service, administrator=None, demonstration=shown)
    first = first_token(service.database, days=settings.token_days)
    if first is None:
        return Prepared(service=service, administrator=None)
    path = settings.data / TOKEN_FILE
    write_token(path, first)
    return Prepared(service=service, administrator=path)


def serve(prepared: Prepared, *, begun: Callable[[str], None]) -> None:
    """Serve until a signal; the next start takes up the running jobs.

    Parameters
    ----------
    prepared : Prepared
    begun : callable
        Receives the address when the service answers.
    """
    settings = prepared.service.settings
    logging.getLogger("cloakgp.service").setLevel(logging.INFO)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    # The warning quotes cells of tables.
    warnings.simplefilter("ignore", UnseenLevelWarning)
    warnings.simplefilter("ignore", NoPredictionWarning)
    listening = _listen(settings)
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    service = prepared.service.with_dispatcher(dispatcher_of(settings))
    app = create_app(
        service,
        begin=lambda: begun(f"http://{shown}:{port}"),
        demonstration=prepared.demonstration,
    )
    config = uvicorn.Config(
        app,
        # Paths hold names; `metrics` logs requests without them.
        access_log=False,
        # The application trusts the proxies of the settings alone.
        proxy_headers=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=GRACE,
    )
    # Requests are many and small: threads of numerical libraries would wait for each other.
    with threadpool_limits(limits=1):
        _Server(config, service).run(sockets=[listening])


class _Server(uvicorn.Server):
    """A server that ends plans and readings at its own end."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End the server: quick requests finish, long ones stop."""
        self._service.stop_calls()
        super().handle_exit(sig, frame)


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # asyncio sends small answers at once only on a socket that names TCP.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError:
        listening.close()
        raise
    return listening
