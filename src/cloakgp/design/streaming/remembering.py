"""Remembered rows: what a fit found of rows in one pass over public inputs, for its further passes.

Rows are known again by a digest of their inputs, in blocks: in a further pass they may come in any
whole blocks of the same chunks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cloakgp.utils.arrays import Array

# Rows that go together.
BLOCK_ROWS = 2048
# What is remembered at most by one of these, in bytes.
MOST_BYTES = 2**27


class RememberedRows:
    """Arrays of numbers about rows.

    Examples
    --------
    >>> remembered, X = RememberedRows(), np.zeros((2, 1))
    >>> remembered.keep(X, np.array([3.0, 4.0]))
    >>> remembered.of(X)
    (array([3., 4.]),)
    >>> remembered.of(X + 1.0) is None
    True
    """

    def __init__(self) -> None:
        self._kept: dict[bytes, tuple[NDArray[Any], ...]] = {}
        self._bytes = 0

    def __reduce__(self) -> tuple[type[RememberedRows], tuple[()]]:
        # On another machine there are other rows.
        return type(self), ()

    def keep(self, X: Array, *about: NDArray[Any]) -> None:
        """Remember numbers about some rows, if there is room. May be called by several threads.

        Parameters
        ----------
        X : array of shape (n, D)
            Public inputs.
        *about : arrays of shape (n,)
            As many at every call.
        """
        size = sum(each.nbytes for each in about)
        if self._bytes + size > MOST_BYTES:
            return
        for block in row_blocks(len(X)):
            # Copies: the parts of an array would hold all of it.
            parts = tuple(each[block].copy() for each in about)
            if self._kept.setdefault(digest_of_rows(X[block]), parts) is parts:
                self._bytes += sum(each.nbytes for each in parts)

    def of(self, X: Array) -> tuple[NDArray[Any], ...] | None:
        """Return the numbers about some rows, if blocks of these were seen; None if not.

        Parameters
        ----------
        X : array of shape (n, D)
            Public inputs.
        """
        if not self._kept:
            return None
        found = []
        for block in row_blocks(len(X)):
            kept = self._kept.get(digest_of_rows(X[block]))
            if kept is None:
                return None
            found.append(kept)
        return tuple(np.concatenate(each) for each in zip(*found, strict=True)) or None

    def forget(self) -> None:
        """Give the memory back."""
        self._kept.clear()
        self._bytes = 0


class RememberedColumns:
    """Columns of rows, each with one entry, 1 or −1.

    Examples
    --------
    >>> remembered, X = RememberedColumns(), np.zeros((2, 1))
    >>> remembered.keep(X, sparse.csr_array(np.array([[1.0, 0.0], [0.0, -1.0]])))
    >>> remembered.of(X).toarray()
    array([[ 1.,  0.],
           [ 0., -1.]])
    >>> remembered.of(X + 1.0) is None
    True
    """

    def __init__(self) -> None:
        self._signed = RememberedRows()
        self._answers = 0

    def __reduce__(self) -> tuple[type[RememberedColumns], tuple[()]]:
        return RememberedColumns, ()

    def keep(self, X: Array, columns: sparse.csr_array) -> None:
        """Remember the columns of some rows; see `RememberedRows.keep`.

        Parameters
        ----------
        X : array of shape (n, D)
            Public inputs.
        columns : sparse array of shape (k, n)
            Of the same k at every call, with one entry in every column.
        """
        answers, rows = columns.shape
        if columns.nnz != rows:
            return
        by_row = columns.tocsc()
        signed = (by_row.indices + 1) * np.sign(by_row.data).astype(np.intp)
        self._answers = answers
        self._signed.keep(X, signed.astype(np.min_scalar_type(-answers - 1)))

    def of(self, X: Array) -> sparse.csr_array | None:
        """Return the columns of some rows; None if they are not remembered.

        Parameters
        ----------
        X : array of shape (n, D)
            Public inputs.
        """
        found = self._signed.of(X)
        if found is None:
            return None
        [signed] = found
        rows = len(signed)
        return sparse.csr_array(
            (
                np.sign(signed).astype(np.float64),
                (np.abs(signed.astype(np.intp)) - 1, np.arange(rows)),
            ),
            shape=(self._answers, rows),
        )

    def forget(self) -> None:
        """Give the memory back."""
        self._signed.forget()


def row_blocks(rows: int) -> Iterator[slice]:
    """Return which rows go together, of so many."""
    return (slice(start, start + BLOCK_ROWS) for start in range(0, rows, BLOCK_ROWS))


def digest_of_rows(X: Array) -> bytes:
    """Return a digest by which rows are known again."""
    return hashlib.blake2b(np.ascontiguousarray(X).data, digest_size=16).digest()
