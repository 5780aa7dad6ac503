"""Clusters of rows: distinct ones, or k-means centres of many, and who belongs to them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from threadpoolctl import ThreadpoolController

from cloakgp.utils.arrays import Array

# As in scikit-learn.
MOST_STEPS = 300


def cluster_rows(
    X: Array,
    *,
    most: int,
    units: Array | float = 1.0,
    restarts: int = 1,
    steps: int = MOST_STEPS,
    random_state: int = 0,
    threads: int | None = 1,
) -> tuple[Array, NDArray[np.intp]]:
    """Return distinct rows, or k-means centres of many, and to which of them each row belongs.

    Parameters
    ----------
    X : array of shape (N, D)
    most : int
        As many centres where more rows are distinct.
    units : array of shape (D,), or float
        Distances are measured in these.
    restarts : int
        The best of so many starts counts.
    steps : int
        The most of each.
    random_state : int
        Of the starts.
    threads : int or None
        None for as many as there are: these wait for each other where tables are small.

    Returns
    -------
    centres : array of shape (n, D)
    places : array of shape (N,)

    Examples
    --------
    >>> centres, places = cluster_rows(np.array([[9.0], [0.0], [9.0]]), most=2)
    >>> centres.ravel().tolist(), places.tolist()
    ([0.0, 9.0], [1, 0, 1])
    """
    distinct, places = np.unique(X, axis=0, return_inverse=True)
    if len(distinct) <= most:
        return distinct, places.ravel().astype(np.intp)
    # It takes a while to import, and many tables are small.
    from sklearn.cluster import KMeans

    clusters = KMeans(n_clusters=most, n_init=restarts, max_iter=steps, random_state=random_state)
    with limit_threads(threads):
        places = clusters.fit_predict(X / units).astype(np.intp)
    return np.asarray(clusters.cluster_centers_ * units, dtype=np.float64), places


def limit_threads(threads: int | None) -> AbstractContextManager[object]:
    """Return a context in which k-means, which is imported, has so many threads; None for all.

    Parameters
    ----------
    threads : int or None

    Examples
    --------
    >>> import sklearn.cluster
    >>> with limit_threads(1):
    ...     pass
    """
    limited: AbstractContextManager[object] = _controller().limit(limits=threads)
    return limited


@cache
def _controller() -> ThreadpoolController:
    """Find the libraries that k-means has threads of, once: that takes as long as few rows do."""
    return ThreadpoolController()


def membership_of(places: NDArray[np.intp], *, count: int | None = None) -> sparse.csr_array:
    """Return the matrix of shape (n, N) with a 1 where a row belongs to a cluster.

    Parameters
    ----------
    places : array of int, shape (N,)
        To which of them each row belongs.
    count : int, optional
        n, if some may be empty.

    Examples
    --------
    >>> membership_of(np.array([1, 0, 1])).toarray()
    array([[0., 1., 0.],
           [1., 0., 1.]])
    """
    rows = len(places)
    shape = None if count is None else (count, rows)
    return sparse.csr_array((np.ones(rows), (places, np.arange(rows))), shape=shape)
