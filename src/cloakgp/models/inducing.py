"""Where the inducing inputs and the default query points lie: k-means on public inputs."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from cloakgp.arrays import Array

KMEANS_RESTARTS = 10
# With more centres than this, where they start matters little, and one start is enough.
FEW_CENTRES = 100
# Rows times centres, below which one thread is fastest.
SMALL_TABLE = 1e6


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
    from sklearn.cluster import KMeans

    if count < 1:
        raise ValueError(f"the number of centres must be at least 1, got {count}")
    distinct, counts = np.unique(X, axis=0, return_counts=True)
    if len(distinct) <= count:
        return distinct, counts.astype(np.float64)
    restarts = KMEANS_RESTARTS if count <= FEW_CENTRES else 1
    clusters = KMeans(n_clusters=count, n_init=restarts, random_state=random_state)
    # Its threads wait for each other on small tables: a hundred times slower on two cores.
    with threadpool_limits(limits=1 if len(X) * count < SMALL_TABLE else None):
        labels = clusters.fit_predict(X)
    sizes = np.bincount(labels, minlength=count).astype(np.float64)
    occupied = sizes > 0
    return np.asarray(clusters.cluster_centers_[occupied], dtype=np.float64), sizes[occupied]
