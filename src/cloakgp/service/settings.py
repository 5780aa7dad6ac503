"""Settings of a service: its places, its limits, and the identity provider of its people."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cloakgp.data.limits import ReadingLimits
from cloakgp.service.access import Role

SIGN_IN = "/sign-in"
CALLBACK = "/sign-in/callback"


@dataclass(frozen=True)
class IdentityProvider:
    """A provider of OpenID Connect, and the service's registration there.

    Attributes
    ----------
    issuer : str
        Its address, as its configuration states it.
    client : str
        Name of the service at the provider.
    address : str
        Address of the service for browsers; `CALLBACK` under it is registered, too.
    secret_file : str
        File of the client's secret; empty if PKCE alone proves the client.
    name : str
        Label of the button.
    scopes : str
        Requested scopes.
    roles_claim : str
        Claim of groups or roles in its tokens, with points between levels, such as
        ``realm_access.roles``.
    roles : mapping of str to str
        Group → role. The roles of an account's groups are the most that its person has in the
        session; without this mapping, all roles of the person.

    Raises
    ------
    ValueError
        If an address is not one of TLS, or there is no such role.

    Examples
    --------
    >>> provider = IdentityProvider(
    ...     issuer="https://id.example.org", client="cloakgp",
    ...     address="https://releases.example.org", roles={"statisticians": "analyst"})
    >>> provider.redirect
    'https://releases.example.org/sign-in/callback'
    >>> sorted(provider.roles_of({"groups": ["statisticians", "cooks"]}))
    ['analyst']
    """

    issuer: str
    client: str
    address: str
    secret_file: str = ""
    name: str = "your organisation"
    scopes: str = "openid"
    roles_claim: str = "groups"
    roles: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for field_name, address in (("issuer", self.issuer), ("address", self.address)):
            if not is_safe(address):
                raise ValueError(f"the provider's {field_name} must begin with https://")
        for role in self.roles.values():
            if role not in {str(each) for each in Role}:
                raise ValueError(f"there is no role {role!r}: take {', '.join(Role)}")

    @property
    def redirect(self) -> str:
        """Address to which browsers return."""
        return self.address.rstrip("/") + CALLBACK

    def secret(self) -> str | None:
        """Return the client's secret, if it has one.

        Raises
        ------
        OSError
            If its file cannot be read.
        """
        return Path(self.secret_file).read_text().strip() if self.secret_file else None

    def roles_of(self, claims: Mapping[str, Any]) -> Collection[str]:
        """Return the most roles that an account gives.

        Parameters
        ----------
        claims : mapping
            Claims of its token.
        """
        if not self.roles:
            return {str(role) for role in Role}
        claim: Any = claims
        for part in self.roles_claim.split("."):
            claim = claim.get(part) if isinstance(claim, Mapping) else None
        groups = [claim] if isinstance(claim, str) else claim if isinstance(claim, list) else []
        return {self.roles[group] for group in groups if group in self.roles}


def read_provider(path: Path) -> IdentityProvider:
    """Read the declaration of a provider from a file of TOML.

    Parameters
    ----------
    path : Path

    Raises
    ------
    ValueError
        If it cannot be read, or lacks a value.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "provider.toml"
    ...     _ = path.write_text('issuer = "https://id.example.org"')
    ...     read_provider(path)
    Traceback (most recent call last):
    ...
    ValueError: provider.toml lacks: client, address
    """
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name} cannot be read: {error}") from None
    known = {each.name for each in fields(IdentityProvider)}
    if set(values) - known:
        raise ValueError(f"{path.name} has unknown names: {', '.join(sorted(set(values) - known))}")
    missing = [name for name in ("issuer", "client", "address") if name not in values]
    if missing:
        raise ValueError(f"{path.name} lacks: {', '.join(missing)}")
    texts = {name: value for name, value in values.items() if name != "roles"}
    roles = values.get("roles", {})
    if not isinstance(roles, dict) or not all(
        isinstance(each, str) for each in (*texts.values(), *roles.values())
    ):
        raise ValueError(f"{path.name} must hold texts, and a table of texts for roles")
    return IdentityProvider(**texts, roles=roles)


def is_safe(address: str) -> bool:
    """Return whether an address is one of TLS, or of this machine.

    Examples
    --------
    >>> is_safe("https://id.example.org"), is_safe("http://id.example.org")
    (True, False)
    """
    parts = urlsplit(address)
    if parts.scheme == "https":
        return bool(parts.hostname)
    try:
        return parts.scheme == "http" and ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return False


MIB = 2**20
# Rates of one actor, in the notation of the package `limits`; "people in two tables" and "columns
# of others" are refusals, which tell that somebody is in a table of another custodian, or that a
# column is private there; "compared columns" are those that could have been refused so. Those of
# one address are "failed" (wrong tokens), "callback" (returns from an identity provider) and
# "noted" (failures in the audit trail; "noted in all" is for all addresses together).
RATES: Mapping[str, str] = {
    "default": "600/minute",
    "predict": "1200/minute",
    "plan": "120/minute",
    "upload": "60/minute",
    "people in two tables": "5/day",
    "columns of others": "5/day",
    "compared columns": "300/day",
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
    body, predict_body, joint_body, upload : int
        The largest requests, in bytes.
    rows : int
        The most rows of one prediction.
    plans, readings : int
        Plans at once, and tables under inspection, registration or prediction at once.
    plan_seconds, reading_seconds, predict_seconds, query_seconds : float
        Limits of a plan, of the reading of a custodian's table, of the prediction of a table or of
        many rows, and of one query of a database.
    table_size, predict_size : int
        The largest tables of custodians, and to predict, in unpacked bytes.
    predict_memory : int
        Limit of the prediction of a table or of many rows, in bytes.
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
    joint_body: int = 64 * MIB
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
