"""Marks of persons: keyed digests, by which a stream recognises them in other periods.

A mark is an HMAC of an id under a key that the stream's folder holds, for its owner alone. Whoever
has the folder can test guesses of ids; of outputs it tells nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

KEY_BYTES = 16
# Hexadecimal digits of a mark: two of 10⁹ persons have the same with probability 10⁻²⁰.
MARK_DIGITS = 32


def new_token() -> str:
    """Return a random text that nobody guesses."""
    return secrets.token_hex(KEY_BYTES)


def mark_of(person: str, *, key: str) -> str:
    """Return the mark of a person.

    Parameters
    ----------
    person : str
        In the form of `cloakgp.privacy.person_ids`.
    key : str
        From `new_token`.

    Examples
    --------
    >>> mark_of("eve", key="00") == mark_of("eve", key="00") != mark_of("bob", key="00")
    True
    """
    made = hmac.new(bytes.fromhex(key), person.encode(), hashlib.sha256)
    return made.hexdigest()[:MARK_DIGITS]
