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
from numpy.typing import ArrayLike, NDArray

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
    sorted_entries = _sorted(y)
    if sorted_entries is None:
        return None
    numbers, words = sorted_entries
    keyed = hmac.new(key, USE, hashlib.sha256)
    keyed.update(f"{numbers.size + len(words)} {len(words)}\n".encode())
    keyed.update(numbers.astype("<f8").tobytes())
    for word in words:
        keyed.update(f"{len(word.encode())} ".encode() + word.encode())
    return keyed.hexdigest()


@forget_on_failure
def count_different(y: ArrayLike) -> int:
    """Return the number of different entries of a column, as its fingerprint tells them apart.

    Parameters
    ----------
    y : array-like

    Examples
    --------
    >>> count_different(["1", 1.0, "tall", "tall", 2])
    3
    """
    sorted_entries = _sorted(y)
    if sorted_entries is None:
        return 0
    numbers, words = sorted_entries
    return np.unique(numbers).size + len(set(words))


def _sorted(y: ArrayLike) -> tuple[NDArray[np.float64], list[str]] | None:
    """Return the numbers and the text of a column, each sorted; None where there are no entries."""
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
    return np.sort(numbers[~np.isnan(numbers)]) + 0.0, words
