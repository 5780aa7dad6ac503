"""Credentials: random tokens, and the digests by which they are known.

Tokens have 256 random bits: nobody guesses one, and a plain SHA-256 of one tells nothing of it.
What is found in the database by its digest is compared with nothing else, so no timing tells how
much of a token was right.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

PREFIX = "cloakgp_"
BYTES = 32
# By which people tell their tokens apart.
SHOWN = 6


def new_token() -> str:
    """Return a token that nobody can guess; it is shown once, and kept by nobody here."""
    return PREFIX + secrets.token_urlsafe(BYTES)


def digest_of(token: str) -> str:
    """Return by what a token is known.

    Examples
    --------
    >>> len(digest_of("cloakgp_abc"))
    64
    """
    return hashlib.sha256(token.encode()).hexdigest()


def hint_of(token: str) -> str:
    """Return how a token begins.

    Examples
    --------
    >>> hint_of("cloakgp_abcdefghi")
    'cloakgp_abcdef'
    """
    return token[: len(PREFIX) + SHOWN]


def form_token_of(session: str) -> str:
    """Return what forms of a session must hold, so that no other site can send them.

    Parameters
    ----------
    session : str
        The cookie, which other sites cannot read.

    Examples
    --------
    >>> form_token_of("a") == form_token_of("a") != form_token_of("b")
    True
    """
    return hmac.new(session.encode(), b"cloakgp form", hashlib.sha256).hexdigest()


def is_form_token(given: str, *, session: str) -> bool:
    """Return whether a form is one of a session."""
    return hmac.compare_digest(given.encode(), form_token_of(session).encode())


def new_file_name() -> str:
    """Return a name that no other file has, and that nobody can guess."""
    return secrets.token_hex(16)
