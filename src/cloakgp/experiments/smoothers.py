"""Linear smoothers other than Gaussian processes, as the matrices that `cloakgp.cloak` takes.

A smoother is linear if its predictions are C y with a matrix C of the public inputs alone. All of
its parameters are public then: neighbours, penalties and bandwidths must not be chosen by looking
at y (no generalised cross-validation, no `RidgeCV`).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from scipy.interpolate import make_smoothing_spline
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.neighbors import NearestNeighbors

from cloakgp.arrays import Array, as_matrix


class Regressor(Protocol):
    """What is asked of a regressor: scikit-learn's, that takes several outputs at a time."""

    def fit(self, X: Array, y: Array) -> Regressor:
        """Fit outputs of shape (N,) or (N, M)."""

    def predict(self, X: Array) -> ArrayLike:
        """Return predictions, shape (P,) or (P, M)."""


def smoother_matrix(model: Regressor, X: Array, *, X_query: Array) -> Array:
    """Return C of any regressor that is linear in its outputs, by fitting the unit vectors.

    One fit to N outputs at a time, output j being 1 for row j and 0 for others: its predictions
    are column j of C. Private outputs are never seen. Two more fits, to one public output each,
    check that the model is linear: a tree of several outputs would look so, and is not. That is no
    proof: a penalty chosen by the outputs (`RidgeCV`) can come out alike for all of these.

    Parameters
    ----------
    model : Regressor
        Such as scikit-learn's `Ridge`, `KernelRidge`, `KNeighborsRegressor`, or a pipeline that
        ends in one. Fitted in place.
    X : array of shape (N, D)
    X_query : array of shape (P, D)

    Raises
    ------
    ValueError
        If its predictions of either of two fixed outputs are not C times them: of such a model
        there is no C.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> smoother_matrix(LinearRegression(), np.array([[0.0], [1.0]]),
    ...                 X_query=np.array([[2.0]])).round(6)
    array([[-1.,  2.]])
    """
    rows = len(X)
    matrix = np.asarray(model.fit(X, np.eye(rows)).predict(X_query), dtype=np.float64)
    for output in (np.cos(np.arange(rows) ** 2), 10.0 + np.sin(np.arange(rows) ** 2)):
        predicted = np.asarray(model.fit(X, output).predict(X_query), dtype=np.float64)
        if not np.allclose(predicted, matrix @ output, rtol=1e-6, atol=1e-6):
            raise ValueError("the model's predictions are not linear in the outputs: it has no C")
    return matrix


def kernel_ridge(
    X: Array, *, X_query: Array, penalty: float, gamma: float, kernel: str = "rbf"
) -> Array:
    """Return C = K_*f (K_ff + λ I)⁻¹ of kernel ridge regression, shape (P, N).

    It shrinks to zero; adding m (1 − C 1) to C y makes it shrink to a public number m.

    Parameters
    ----------
    X : array of shape (N, D)
    X_query : array of shape (P, D)
    penalty : float
        λ, scikit-learn's ``alpha``; above zero.
    gamma : float
        Of the kernel; 1/(2 ℓ²) for a lengthscale ℓ of the RBF kernel.
    kernel : str
        As scikit-learn names it.

    Examples
    --------
    >>> kernel_ridge(np.zeros((1, 1)), X_query=np.zeros((1, 1)), penalty=1.0, gamma=1.0)
    array([[0.5]])
    """
    covariance = np.asarray(pairwise_kernels(X, metric=kernel, gamma=gamma), dtype=np.float64)
    covariance[np.diag_indices(len(X))] += _positive(penalty, name="penalty")
    crossed = pairwise_kernels(X_query, X, metric=kernel, gamma=gamma)
    solved = linalg.cho_solve(linalg.cho_factor(covariance, lower=True), crossed.T)
    return np.asarray(solved.T, dtype=np.float64)


def smoothing_spline(X: Array, *, X_query: Array, penalty: float) -> Array:
    """Return C of the cubic smoothing spline, least Σ (y_j − f(x_j))² + λ ∫ f''², shape (P, N).

    Rows with the same input count as one row with their mean and their number for a weight, which
    has the same minimum.

    Parameters
    ----------
    X : array of shape (N, 1)
        At least five distinct inputs.
    X_query : array of shape (P, 1)
    penalty : float
        λ, in cubed units of the input; above zero. Left out, SciPy would choose it by y.

    Examples
    --------
    >>> x = np.arange(5.0)[:, None]
    >>> C = smoothing_spline(x, X_query=np.array([[1.5]]), penalty=10.0)
    >>> (C @ (3 + 2 * x)).round(6)
    array([[6.]])
    """
    places, members, counts = np.unique(
        as_matrix(X, name="X", columns=1)[:, 0], return_inverse=True, return_counts=True
    )
    points = as_matrix(X_query, name="X_query", columns=1)[:, 0]
    strength = _positive(penalty, name="penalty")
    weights = counts.astype(np.float64)
    columns = [
        make_smoothing_spline(places, unit, w=weights, lam=strength)(points)
        for unit in np.eye(len(places))
    ]
    of_means = np.stack(columns, axis=1)
    at = members.ravel()
    return np.asarray(of_means[:, at] / weights[at], dtype=np.float64)


def nearest_neighbours(X: Array, *, X_query: Array, count: int) -> Array:
    """Return C of averages over the nearest rows: 1/k at k rows, 0 elsewhere, shape (P, N).

    Parameters
    ----------
    X : array of shape (N, D)
        Distances are Euclidean in its units.
    X_query : array of shape (P, D)
    count : int
        k.

    Examples
    --------
    >>> nearest_neighbours(np.array([[0.0], [1.0], [9.0]]), X_query=np.array([[0.2]]), count=2)
    array([[0.5, 0.5, 0. ]])
    """
    found = NearestNeighbors(n_neighbors=count).fit(X)
    graph = found.kneighbors_graph(X_query, mode="connectivity")
    return np.asarray(graph.toarray() / count, dtype=np.float64)


def linear_regression(X: Array, *, X_query: Array) -> Array:
    """Return C = [1 X_*] [1 X]⁺ of least squares with an intercept, shape (P, N).

    Parameters
    ----------
    X : array of shape (N, D)
    X_query : array of shape (P, D)

    Examples
    --------
    >>> linear_regression(np.array([[0.0], [1.0]]), X_query=np.array([[2.0]])).round(6)
    array([[-1.,  2.]])
    """
    rows, points = (np.column_stack([np.ones(len(one)), one]) for one in (X, X_query))
    return np.asarray(points @ np.linalg.pinv(rows), dtype=np.float64)


def _positive(value: float, *, name: str) -> float:
    if not (np.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be positive and finite, got {value}")
    return float(value)
