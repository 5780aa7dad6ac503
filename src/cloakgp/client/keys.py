"""Keys of requests, by which the service knows one that it has taken before."""

from __future__ import annotations

import secrets

KEY_BYTES = 16


def new_key() -> str:
    """Return a text that no other request has.

    Examples
    --------
    >>> len(new_key()), new_key() == new_key()
    (32, False)
    """
    return secrets.token_hex(KEY_BYTES)
