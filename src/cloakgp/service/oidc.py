"""OpenID Connect: sign-in at an identity provider, whose signed token names the person.

The authorization code flow with PKCE (OpenID Connect Core 1.0, RFC 7636). The state, the nonce and
the verifier are derived from one random secret, which the browser alone keeps in a cookie for ten
minutes: an answer belongs to a sign-in that began in this very browser. Requests are Authlib's,
signatures joserfc's.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import OAuth2Client
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from cloakgp.service.credentials import derived
from cloakgp.service.errors import ServiceError, UnknownActorError
from cloakgp.service.settings import IdentityProvider, is_safe

# Signatures with public keys: one with the client's secret, or none at all, is refused.
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"]
# Seconds: for an answer, of difference between clocks, and for which a configuration is kept.
PATIENCE, LEEWAY, KEPT = 10.0, 60, 3600.0
# Seconds before a second request to a provider that did not answer, and for its keys.
AGAIN, KEYS_AGAIN = 5.0, 60.0
LONGEST_SUBJECT = 255
STATE, NONCE, VERIFIER = "state", "nonce", "verifier"


class ProviderError(ServiceError):
    """The identity provider fails."""

    status, kind = 503, "unavailable"

    def __init__(self) -> None:
        super().__init__("the identity provider does not answer as it should: try again later")


@dataclass(frozen=True)
class SignedIn:
    """An account at an identity provider, after a sign-in.

    Attributes
    ----------
    issuer, subject : str
        The lasting name of the account.
    roles : frozenset of str
        The most roles that the account gives.
    """

    issuer: str
    subject: str
    roles: frozenset[str]


class ProviderClient:
    """The service as a client of an identity provider.

    Parameters
    ----------
    provider : IdentityProvider
    """

    def __init__(self, provider: IdentityProvider) -> None:
        self.provider = provider
        self._lock = threading.Lock()
        self._metadata: tuple[float, Mapping[str, Any]] | None = None
        self._keys: tuple[float, KeySet] | None = None
        self._failed = -math.inf

    def address(self, secret: str) -> str:
        """Return the address at which a browser signs in.

        Parameters
        ----------
        secret : str
            The secret of the browser.

        Raises
        ------
        ProviderError
        """
        endpoint = self._endpoint("authorization_endpoint")
        with self._client() as client:
            address, _ = client.create_authorization_url(
                endpoint,
                state=derived(secret, STATE),
                nonce=derived(secret, NONCE),
                code_verifier=derived(secret, VERIFIER),
            )
        return str(address)

    def signed_in(self, secret: str, *, code: str) -> SignedIn:
        """Return the account of a sign-in.

        Parameters
        ----------
        secret : str
            The secret of the browser.
        code : str
            Of the provider's answer.

        Raises
        ------
        ProviderError
        UnknownActorError
            If the provider refuses the code, or its token is not valid.
        """
        endpoint = self._endpoint("token_endpoint")
        try:
            with self._client() as client:
                answer = client.fetch_token(
                    endpoint,
                    grant_type="authorization_code",
                    code=code,
                    code_verifier=derived(secret, VERIFIER),
                )
        except OAuthError:
            raise UnknownActorError("with a code that the identity provider refused") from None
        except (httpx.HTTPError, OSError, ValueError):
            raise ProviderError from None
        claims = self._claims(answer, nonce=derived(secret, NONCE))
        return SignedIn(
            issuer=self.provider.issuer,
            subject=claims["sub"],
            roles=frozenset(self.provider.roles_of(claims)),
        )

    def _claims(self, answer: Mapping[str, Any], *, nonce: str) -> Mapping[str, Any]:
        """Return the claims of an ID token, if it is signed, and for this sign-in."""
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise ProviderError
        try:
            decoded = self._decoded(token)
            claims = CodeIDToken(
                decoded.claims,
                decoded.header,
                {
                    "iss": {"essential": True, "value": self.provider.issuer},
                    "aud": {"essential": True, "value": self.provider.client},
                },
                {
                    "nonce": nonce,
                    "client_id": self.provider.client,
                    "access_token": answer.get("access_token"),
                },
            )
            claims.validate(leeway=LEEWAY)
        except (JoseError, ValueError, TypeError) as error:
            # The message may quote the token; the class does not.
            noted = f"with a token of the identity provider that is not valid: {_kind(error)}"
            raise UnknownActorError(noted) from None
        subject = claims["sub"]
        if not isinstance(subject, str) or not 0 < len(subject) <= LONGEST_SUBJECT:
            raise UnknownActorError("with a token of the identity provider that names no person")
        return dict(claims)

    def _decoded(self, token: str) -> jwt.Token:
        try:
            return jwt.decode(token, self._key_set(), algorithms=ALGORITHMS)
        except (JoseError, ValueError):
            # Providers change their keys, and refuse too many requests for them.
            if not self._forget_keys():
                raise
        return jwt.decode(token, self._key_set(), algorithms=ALGORITHMS)

    def _client(self) -> Any:
        secret = self.provider.secret()
        return OAuth2Client(
            client_id=self.provider.client,
            client_secret=secret,
            scope=self.provider.scopes,
            redirect_uri=self.provider.redirect,
            code_challenge_method="S256",
            token_endpoint_auth_method="client_secret_basic" if secret else "none",
            timeout=PATIENCE,
        )

    def _endpoint(self, name: str) -> str:
        with self._lock:
            if self._metadata is None or time.monotonic() - self._metadata[0] > KEPT:
                place = "/.well-known/openid-configuration"
                configuration = self._fetch(self.provider.issuer.rstrip("/") + place)
                # The configuration of another provider would send people there.
                if configuration.get("issuer") != self.provider.issuer:
                    raise ProviderError
                self._metadata = time.monotonic(), configuration
            endpoint = self._metadata[1].get(name)
        if not isinstance(endpoint, str) or not is_safe(endpoint):
            raise ProviderError
        return endpoint

    def _key_set(self) -> KeySet:
        place = self._endpoint("jwks_uri")
        with self._lock:
            if self._keys is None:
                try:
                    keys = KeySet.import_key_set(self._fetch(place))  # type: ignore[arg-type]
                except (JoseError, ValueError, KeyError, TypeError):
                    raise ProviderError from None
                self._keys = time.monotonic(), keys
            return self._keys[1]

    def _fetch(self, address: str) -> dict[str, Any]:
        """Return a document of the provider; called by one thread at a time."""
        # A second caller does not wait again for a provider that did not answer.
        if time.monotonic() - self._failed < AGAIN:
            raise ProviderError
        try:
            answer = httpx.get(address, timeout=PATIENCE)
            answer.raise_for_status()
            document = answer.json()
        except (httpx.HTTPError, ValueError):
            document = None
        if not isinstance(document, dict):
            self._failed = time.monotonic()
            raise ProviderError
        return document

    def _forget_keys(self) -> bool:
        """Forget the provider's keys, unless they are new; return whether they are forgotten."""
        with self._lock:
            if self._keys is None or time.monotonic() - self._keys[0] < KEYS_AGAIN:
                return False
            self._keys = None
            return True


def _kind(error: Exception) -> str:
    return str(getattr(error, "error", "") or type(error).__name__)
