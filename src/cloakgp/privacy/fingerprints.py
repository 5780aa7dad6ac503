"""Keyed fingerprint of a private column, by which a copy of it is recognised.

A plain hash of a column can be guessed wherever the column can: of a hundred truth values, say, of
which somebody knows all but one. This is an HMAC (RFC 2104) with SHA-256, which says nothing to
whoever lacks the key (Bellare, Canetti and Krawczyk 1996, *Keying hash functions for message
authentication*). It does not depend on the order of the rows, nor on whether numbers are written as
numbers or as text, so that a table that was sorted or exported anew has the same. It is for the
ledger, which has the key, and is never published.
"""

from __future__ import annotations

import hashlib
import hmac

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.privacy.entries import as_entries, read_entries
from cloakgp.privacy.tracebacks import forget_on_failure

# What the key is used for, apart from its other uses.
USE = b"cloakgp column 1"


@forget_on_failure
def fingerprint_column(y: ArrayLike, *, key: bytes) -> str | None:
    """Return the keyed fingerprint of private outputs, or None where there are no entries.

    Parameters
    ----------
    y : array-like
        Private: numbers, labels, or both.
    key : bytes
        Secret.

    Examples
    --------
    >>> one = fingerprint_column([2.0, 1.0, 1.0], key=b"secret")
    >>> one == fingerprint_column(["1", "1.0", 2], key=b"secret")
    True
    >>> one == fingerprint_column([2.0, 1.0, 1.0], key=b"another")
    False
    """
    try:
        numbers = read_entries(y).values.ravel()
        content = [] if not np.isnan(numbers).any() else as_entries(y).ravel().tolist()
        # Text is told from the numbers of other rows by its first letter.
        words = sorted(
            "text " + str(entry)
            for entry, number in zip(content, numbers.tolist(), strict=bool(content))
            if np.isnan(number)
        )
    except Exception:
        return None
    if not numbers.size:
        return None
    found = np.sort(numbers[~np.isnan(numbers)]) + 0.0
    keyed = hmac.new(key, USE, hashlib.sha256)
    keyed.update(f"{numbers.size} {len(words)}\n".encode())
    keyed.update(found.astype("<f8").tobytes())
    for word in words:
        keyed.update(f"{len(word.encode())} ".encode() + word.encode())
    return keyed.hexdigest()
