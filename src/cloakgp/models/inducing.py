"""Where the inducing inputs and the default query points lie: k-means on public inputs."""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans

from cloakgp.arrays import Array

KMEANS_RESTARTS = 10


def kmeans_centres(X: Array, *, count: int, random_state: int = 0) -> tuple[Array, Array]:
    """Return k-means centres of the rows, and how many rows each stands for.

    Parameters
    ----------
    X : array of shape (N, D)
        Public inputs. Distances are Euclidean in the units given, as in the papers.
    count : int
        Centres wanted; fewer come back if fewer rows are distinct.
    random_state : int
        Of the algorithm's restarts. It concerns public inputs only.

    Returns
    -------
    centres : array of shape (M, D)
    sizes : array of shape (M,)

    Raises
    ------
    ValueError
        If count is below one.

    Examples
    --------
    >>> centres, sizes = kmeans_centres(np.array([[0.0], [0.0], [9.0]]), count=2)
    >>> sorted(zip(centres.ravel().tolist(), sizes.tolist()))
    [(0.0, 2.0), (9.0, 1.0)]
    """
    if count < 1:
        raise ValueError(f"the number of centres must be at least 1, got {count}")
    distinct, counts = np.unique(X, axis=0, return_counts=True)
    if len(distinct) <= count:
        return distinct, counts.astype(np.float64)
    clusters = KMeans(n_clusters=count, n_init=KMEANS_RESTARTS, random_state=random_state)
    labels = clusters.fit_predict(X)
    sizes = np.bincount(labels, minlength=count).astype(np.float64)
    occupied = sizes > 0
    return np.asarray(clusters.cluster_centers_[occupied], dtype=np.float64), sizes[occupied]
