"""Commitments of the chain to texts that are kept beside it.

A mark is an HMAC (RFC 2104) of a text under a salt of its own. It tells nothing of the text, and
marks of one text under two salts tell nothing of each other; with the salt and the text, anybody
can check it. So a text beside the chain can be erased, with its salt, and the chain
verifies as before.
"""

from __future__ import annotations

import hashlib
import hmac


def mark_of(text: str, *, salt: str) -> str:
    """Return the mark of a text.

    Parameters
    ----------
    text : str
    salt : str
        In hexadecimal, from `cloakgp.ledger.keys.new_salt`.

    Examples
    --------
    >>> mark_of("anna", salt="00" * 32) == mark_of("anna", salt="00" * 32)
    True
    >>> mark_of("anna", salt="00" * 32) == mark_of("anna", salt="11" * 32)
    False
    """
    return hmac.new(bytes.fromhex(salt), text.encode(), hashlib.sha256).hexdigest()
