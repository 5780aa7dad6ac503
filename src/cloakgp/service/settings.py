"""Settings of a service: its places, and its limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path

from cloakgp.data.limits import ReadingLimits
from cloakgp.service.providers import IdentityProvider

MIB = 2**20
# Rates of one actor, in the notation of the package `limits`. Those of one address are "failed"
# (wrong tokens), "callback" (returns from an identity provider) and "noted" (failures in the audit
# trail; "noted in all" is for all addresses together).
RATES: Mapping[str, str] = {
    "default": "600/minute",
    "predict": "1200/minute",
    "plan": "30/minute",
    "upload": "20/minute",
    "failed": "20/minute",
    "callback": "60/minute",
    "noted": "20/hour",
    "noted in all": "200/hour",
}


@dataclass(frozen=True)
class Settings:
    """Settings of a service, by its host.

    Attributes
    ----------
    ledger : str
        A file, ``sqlite:///FILE`` or ``postgresql://…``, of the ledger and the service's tables.
    data : Path
        Folder of uploaded tables, readable by its owner alone.
    tables : tuple of Path
        Folders whose files may be registered as tables, beside uploaded ones.
    host, port
        Address to listen at.
    names : tuple of str
        Further host names under which browsers may call it.
    scheduler : str
        Address of a Dask scheduler; if empty, the service has a cluster of its own.
    workers : int
        Processes of its own cluster; with 0, jobs run in a thread of the server.
    rates : mapping
        In the place of those of `RATES`.
    body, predict_body, upload : int
        The largest requests, in bytes.
    rows : int
        The most rows of one prediction.
    plans, readings : int
        Plans at once, and tables under inspection, registration or prediction at once.
    plan_seconds, reading_seconds, predict_seconds, query_seconds : float
        Limits of a plan, of the reading of a custodian's table, of the prediction of a table, and
        of one query of a database.
    table_size, predict_size : int
        The largest tables of custodians, and to predict, in unpacked bytes.
    predict_memory : int
        Limit of the prediction of a table, in bytes.
    verify_hours : float
        Time between two verifications of the ledger by the service itself; 0 for none.
    keep_days : int
        Retention of uploaded files without a table, or of a withdrawn one; 0 for ever.
    token_days, session_hours : int
        Default length of tokens, and length of sessions.
    memory : float or None
        Limit of a fit, in gigabytes.
    secure : bool
        Whether cookies go over TLS alone.
    proxies : tuple of str
        Addresses or networks of the proxies whose ``X-Forwarded-For`` counts.
    provider : IdentityProvider or None
        For people who sign in without a token.

    Raises
    ------
    ValueError
        If a proxy is no address.

    Examples
    --------
    >>> Settings(ledger="people.db", data=Path("data"), proxies=("everybody",))
    Traceback (most recent call last):
    ...
    ValueError: a proxy is named by its address or network, such as 10.0.0.2 or 10.0.0.0/24
    """

    ledger: str
    data: Path
    tables: tuple[Path, ...] = ()
    host: str = "127.0.0.1"
    port: int = 8000
    names: tuple[str, ...] = ()
    scheduler: str = ""
    workers: int = 1
    rates: Mapping[str, str] = field(default_factory=dict)
    body: int = MIB
    predict_body: int = 8 * MIB
    upload: int = 1024 * MIB
    rows: int = 20_000
    plans: int = 2
    readings: int = 2
    plan_seconds: float = 120.0
    reading_seconds: float = 600.0
    predict_seconds: float = 60.0
    query_seconds: float = 60.0
    table_size: int = 16_384 * MIB
    predict_size: int = 64 * MIB
    predict_memory: int = 2048 * MIB
    verify_hours: float = 24.0
    keep_days: int = 30
    token_days: int = 90
    session_hours: int = 12
    memory: float | None = None
    secure: bool = False
    proxies: tuple[str, ...] = ()
    provider: IdentityProvider | None = None

    def __post_init__(self) -> None:
        try:
            for proxy in self.proxies:
                ip_network(proxy)
        except ValueError:
            raise ValueError(
                "a proxy is named by its address or network, such as 10.0.0.2 or 10.0.0.0/24"
            ) from None

    @property
    def table_limits(self) -> ReadingLimits:
        """Limits of a custodian's table."""
        return ReadingLimits(size=self.table_size, seconds=self.query_seconds)

    @property
    def predict_limits(self) -> ReadingLimits:
        """Limits of a table to predict."""
        return ReadingLimits(rows=self.rows, size=self.predict_size)

    @property
    def uploads(self) -> Path:
        """Folder of uploaded tables."""
        return self.data / "uploads"
