"""Credentials: random tokens, and their digests.

Tokens have 256 random bits: no guess finds one, and the plain SHA-256 of one tells nothing of it.
The database finds a token by its digest, without a comparison whose time could tell how much of a
token was right.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

PREFIX = "cloakgp_"
BYTES = 32
# Letters by which people tell their tokens apart.
SHOWN = 6


def new_token() -> str:
    """Return a random token, which is shown once and kept nowhere."""
    return PREFIX + secrets.token_urlsafe(BYTES)


def digest_of(token: str) -> str:
    """Return the digest of a token.

    Examples
    --------
    >>> len(digest_of("cloakgp_abc"))
    64
    """
    return hashlib.sha256(token.encode()).hexdigest()


def hint_of(token: str) -> str:
    """Return the beginning of a token.

    Examples
    --------
    >>> hint_of("cloakgp_abcdefghi")
    'cloakgp_abcdef'
    """
    return token[: len(PREFIX) + SHOWN]


def derived(secret: str, use: str) -> str:
    """Return a value derived from a secret for one use, which reveals nothing about other uses.

    Examples
    --------
    >>> len(derived("a", "state")), derived("a", "state") == derived("a", "nonce")
    (64, False)
    """
    return hmac.new(secret.encode(), f"cloakgp {use}".encode(), hashlib.sha256).hexdigest()


def form_token_of(session: str) -> str:
    """Return the token that forms of a session hold, so that no other site can send them.

    Parameters
    ----------
    session : str
        The cookie, which other sites cannot read.

    Examples
    --------
    >>> form_token_of("a") == form_token_of("a") != form_token_of("b")
    True
    """
    return derived(session, "form")


def is_form_token(text: str, *, session: str) -> bool:
    """Return whether a form token belongs to a session."""
    return is_same(text, form_token_of(session))


def is_same(text: str, expected: str) -> bool:
    """Return whether two texts are equal, in a time independent of their difference."""
    return hmac.compare_digest(text.encode(), expected.encode())


def new_file_name() -> str:
    """Return a random name for a file."""
    return secrets.token_hex(16)
