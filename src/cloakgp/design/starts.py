"""Where the search for questions starts, and the lengths of their columns."""

from __future__ import annotations

import numpy as np

from cloakgp.arrays import Array


def leading_questions(directions: Array, count: int) -> Array:
    """Return the query directions that the rows explain most, as columns of norm 1.

    Parameters
    ----------
    directions : array of shape (N, P)
        Orthogonal columns, the longest first.
    count : int
        How many questions to begin with.

    Examples
    --------
    >>> abs(leading_questions(np.eye(2), 2)).round(2)
    array([[1., 0.],
           [0., 1.]])
    """
    leading = directions[:, :count].T.copy()
    if len(leading) < count:
        leading = np.vstack([leading, np.zeros((count - len(leading), leading.shape[1]))])
    leading += 1e-3 * np.abs(leading).max() * _spread(leading.shape)
    return leading / column_lengths(leading)


def column_lengths(columns: Array) -> Array:
    """Return the norms of columns, none of them zero.

    Examples
    --------
    >>> column_lengths(np.array([[3.0], [4.0]]))
    array([5.])
    """
    lengths: Array = np.sqrt(np.einsum("kj,kj->j", columns, columns))
    return np.maximum(lengths, np.finfo(np.float64).tiny)


def _spread(shape: tuple[int, int]) -> Array:
    """Return fixed numbers of either sign that no symmetry of the problem shares."""
    index = np.arange(1, 1 + shape[0] * shape[1], dtype=np.float64).reshape(shape)
    spread: Array = np.cos(index * np.sqrt(2.0) * np.pi)
    return spread
