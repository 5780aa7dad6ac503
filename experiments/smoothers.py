"""Linear smoothers other than Gaussian processes, as the matrices that `cloakgp.cloak` takes.

A smoother is linear if its predictions are C y with a matrix C of the public inputs alone. All of
its parameters are public then: neighbours, penalties and bandwidths must not be chosen by looking
at y (no generalised cross-validation, no `RidgeCV`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar
from typing import Protocol as TypingProtocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from rich.table import Table
from scipy import linalg
from scipy.interpolate import make_smoothing_spline
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.neighbors import NearestNeighbors

from cloakgp.fitting.defaults import choose_prior
from cloakgp.privacy import cloak
from cloakgp.utils.arrays import Array, as_matrix
from experiments import kung
from experiments.cloaking import PAPERS_NOISE, TRACE_NOISE
from experiments.cross_validation import Errors, Protocol, Row, posterior_errors, root_mean_square
from experiments.datasets import load_kung
from experiments.framework import Experiment, Progress, Tick, no_tick, table_titled


class Regressor(TypingProtocol):
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


class MatrixFor(TypingProtocol):
    """A smoother with its parameters."""

    def __call__(self, X: Array, *, X_query: Array) -> Array:
        """Return C, shape (P, N)."""


NOISES = (PAPERS_NOISE, TRACE_NOISE)
LENGTHSCALE = 15.0
GAP = 1e-2


def declared_smoothers() -> dict[str, MatrixFor]:
    """Return the smoothers of the table by name; their parameters are round numbers, not fits.

    Examples
    --------
    >>> list(declared_smoothers())[-1]
    'linear regression'
    """
    gamma = 1.0 / (2.0 * LENGTHSCALE**2)
    found: dict[str, MatrixFor] = {
        f"kernel ridge, RBF of {LENGTHSCALE:g} years, λ = {penalty:g}": partial(
            kernel_ridge, penalty=penalty, gamma=gamma
        )
        for penalty in (0.1, 2.5)
    }
    for penalty in (1e3, 1e5):
        found[f"smoothing spline, λ = {penalty:g} years³"] = partial(
            smoothing_spline, penalty=penalty
        )
    for count in (5, 40):
        found[f"{count} nearest neighbours"] = partial(nearest_neighbours, count=count)
    found["linear regression"] = linear_regression
    return found


@dataclass(frozen=True, eq=False)
class Smoothed:
    """Errors of one smoother, by fold, in cm.

    Attributes
    ----------
    no_privacy : array of shape (folds,)
        RMSE of C y.
    noise_sd : array of shape (noises, folds)
        Root mean square, over the held-out rows, of the sd of the noise in `cloak`'s predictions.
    drawn : array of shape (noises, folds)
        RMSE of its predictions.
    """

    no_privacy: Array
    noise_sd: Array
    drawn: Array

    @property
    def expected(self) -> Array:
        """Root of the mean squared error expected over the noise, shape (noises, folds).

        The noise has mean zero and knows nothing of the outputs, so mean squares add.
        """
        return np.asarray(np.hypot(self.no_privacy, self.noise_sd), dtype=np.float64)


def smooth(
    women: pd.DataFrame, *, matrix_for: MatrixFor, protocol: Protocol, tick: Tick = no_tick
) -> Smoothed:
    """Cross-validate one smoother, releasing each fold's predictions once under every noise.

    Predictions are C y + m (1 − C 1) with the public m = 135 cm, which matters to smoothers that
    shrink to zero and to no others. The truth is clipped to the bounds, as in the papers.

    Parameters
    ----------
    matrix_for : callable
        Training and query inputs → C.
    """
    X, bounds = women[["age"]].to_numpy(dtype=float), kung.BUDGET.bounds
    heights = bounds.clip(kung.heights(women))
    no_privacy, noise_sd, drawn = [], [], []
    for fold, (train, held_out) in enumerate(protocol.splits(len(X))):
        C = matrix_for(X[train], X_query=X[held_out])
        shift = kung.PRIOR_MEAN * (1.0 - C.sum(axis=1)) - heights[held_out]
        no_privacy.append(root_mean_square(C @ heights[train] + shift))
        released = [
            cloak(
                C,
                heights[train],
                bounds=(bounds.lo, bounds.hi),
                epsilon=kung.BUDGET.epsilon,
                delta=kung.BUDGET.delta,
                noise="gaussian",
                criterion=noise.criterion,
                calibration=noise.calibration,
                gap=GAP,
                insecure_seed=protocol.seed(fold, number),
            )
            for number, noise in enumerate(NOISES)
        ]
        noise_sd.append([float(np.sqrt(np.diag(one.noise_cov).mean())) for one in released])
        drawn.append([root_mean_square(one.values + shift) for one in released])
        tick()
    return Smoothed(
        no_privacy=np.array(no_privacy), noise_sd=np.array(noise_sd).T, drawn=np.array(drawn).T
    )


def default_process_errors(women: pd.DataFrame, *, protocol: Protocol) -> Errors:
    """Return the errors of the default Gaussian process under `bayes`, on the same folds."""
    row = Row("defaults", partial(choose_prior, bounds=kung.BUDGET.bounds))
    X = women[["age"]].to_numpy(dtype=float)
    return posterior_errors(
        X, kung.heights(women), rows=(row,), budget=kung.BUDGET, protocol=protocol
    )[row.name]


def smoothers_report(found: Mapping[str, Smoothed], *, title: str) -> Table:
    """Lay out errors and noise by smoother."""
    columns = [
        f"{figure}, {noise.name}"
        for noise in NOISES
        for figure in ("noise sd", "expected error", "error drawn")
    ]
    table = table_titled(title, "RMSE (cm)", right=["no privacy", *columns])
    for name, one in found.items():
        figures = (
            f"{part[number].mean():.2f}"
            for number in range(len(NOISES))
            for part in (one.noise_sd, one.expected, one.drawn)
        )
        table.add_row(name, f"{one.no_privacy.mean():.2f}", *figures)
    return table


@dataclass(frozen=True, eq=False)
class Found:
    """Errors by smoother, and those of the default Gaussian process."""

    smoothed: Mapping[str, Smoothed]
    process: Errors


@dataclass(frozen=True)
class Smoothers(Experiment[Found]):
    """Kernel ridge, splines, neighbours and lines through `cloak`: heights of !Kung women."""

    name: ClassVar[str] = "smoothers"
    small: ClassVar[Mapping[str, Any]] = {"folds": 2}

    folds: int = 14

    @property
    def protocol(self) -> Protocol:
        """How errors are measured."""
        return Protocol(folds=self.folds, shuffle=True)

    def compute(self, progress: Progress) -> Found:
        """Cross-validate every smoother."""
        women, matrices = load_kung(male=False), declared_smoothers()
        with progress("smoothers", steps=len(matrices) * self.folds) as tick:
            found = {
                name: smooth(women, matrix_for=matrix_for, protocol=self.protocol, tick=tick)
                for name, matrix_for in matrices.items()
            }
        return Found(smoothed=found, process=default_process_errors(women, protocol=self.protocol))

    def tables(self, found: Found) -> Iterable[Table | str]:
        """Lay out errors and noise by smoother."""
        title = (
            "Heights of !Kung women by age through cloak, (1, 0.01)-DP, d = 100 cm, mean over "
            f"{self.folds} shuffled folds; expected over the noise, and of one draw a fold"
        )
        yield smoothers_report(found.smoothed, title=title)
        table = table_titled(
            f"The default prior on the same folds, asked in one stage, {self.protocol.draws} draws",
            "questions",
            right=["RMSE (cm)"],
        )
        table.add_row("bayes, nothing learned", found.process.with_error)
        yield table
