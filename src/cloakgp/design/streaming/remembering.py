"""Columns of one entry each, remembered between passes: two bytes a row instead of a computation.

What a partition asks of a row is one number: to which answer its output is added, and with which
sign. A design finds it for every row; the pass that asks, and those that sum what was learned, need
it again. It is kept by a digest of the inputs of the rows that were seen together, so that inputs
which changed meanwhile are not taken for what they were, and it is public, as inputs are.

Privacy does not rest on it. Were a digest to meet another's, or the memory to be spoiled, other
columns would be asked than were designed: but the very columns that a chunk is asked are measured
where they are asked (`cloakgp.privacy.ask`), and if one is longer than noise was calibrated
for, or a group's together are, nothing is released. Within that, wrong columns are worse questions.
What is summed of them for the posterior would then be about others than were asked, so that
predictions could be wrong: usefulness rests on the digest, of 128 bits.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cloakgp.utils.arrays import Array

# Rows that are remembered at most: 128 MiB of two bytes each.
MOST_ROWS = 2**26


class RememberedColumns:
    """Columns of rows that were seen together, each with one entry, 1 or −1.

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
        self._signed: dict[bytes, NDArray[np.signedinteger]] = {}
        self._rows = self._answers = 0

    def __reduce__(self) -> tuple[type[RememberedColumns], tuple[()]]:
        # On another machine there are other rows.
        return RememberedColumns, ()

    def keep(self, X: Array, columns: sparse.csr_array) -> None:
        """Remember the columns of some rows, if there is room. May be called by several threads.

        Parameters
        ----------
        X : array of shape (n, D)
            Public inputs.
        columns : sparse array of shape (k, n)
            Of the same k at every call, with one entry in every column.
        """
        answers, rows = columns.shape
        if self._rows + rows > MOST_ROWS or columns.nnz != rows:
            return
        by_row = columns.tocsc()
        signed = (by_row.indices + 1) * np.sign(by_row.data).astype(np.intp)
        self._signed[_digest(X)] = signed.astype(np.min_scalar_type(-answers - 1))
        self._answers, self._rows = answers, self._rows + rows

    def of(self, X: Array) -> sparse.csr_array | None:
        """Return the columns of some rows, if these were seen together; None if not.

        Parameters
        ----------
        X : array of shape (n, D)
            Public inputs.
        """
        if not self._signed:
            return None
        signed = self._signed.get(_digest(X))
        if signed is None:
            return None
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
        self._signed.clear()
        self._rows = 0


def _digest(X: Array) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(X).data, digest_size=16).digest()
