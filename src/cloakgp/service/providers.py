"""Identity providers of OpenID Connect, as a file declares them."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cloakgp.service.access import Role

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
