r"""Cross-validation: errors on held-out rows, as a public linear function of the outputs.

A release of the other folds' rows predicts a held-out fold by m + A (y − m) + noise, with A and the
noise's variance known from inputs alone. Stacked over the folds, the residuals of all N rows are

    ρ = W (y − m),    W = I − A  (row i: 1 at i, −A_ij at the rows j of the other folds),

and the noise of variance n_i is added to row i's. Nothing here sees an output.

One fold of one candidate is a task for a worker (`cloakgp.privacy.workers`). What is sent there is
the prior, the inputs of the fold's rows and of the others, s, and how to design; what comes back is
the fold's rows of A and n.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.model_selection import KFold

from cloakgp.criteria import Problem, criterion_named
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.privacy.workers import in_order
from cloakgp.utils.arrays import Array

SelectablePrior = ExactPrior | SparsePrior
Predictions = Literal["posterior", "raw"]
Rows = NDArray[np.intp]

PREDICTIONS: tuple[Predictions, ...] = ("posterior", "raw")

# Rows that can explain no more than this share of the held-out rows' variance are asked nothing.
NEGLIGIBLE = 1e-7


@dataclass(frozen=True, eq=False)
class HeldOutErrors:
    """Public facts about the errors on held-out rows.

    Attributes
    ----------
    residual_map : array of shape (N, N)
        W, from outputs less the prior mean to residuals.
    noise_variance : array of shape (N,)
        Of the privacy noise in each prediction, in squared output units.
    mean : float
        m, in output units.
    """

    residual_map: Array
    noise_variance: Array
    mean: float


def deal(rows: int, *, folds: int, shuffle: bool = True) -> list[tuple[Rows, Rows]]:
    """Deal rows to folds without looking at them.

    Parameters
    ----------
    rows : int
    folds : int
        From 2 to rows.
    shuffle : bool
        In an order that is fixed once and for all, rather than as they come.

    Returns
    -------
    list of (array, array)
        Training and held-out rows of every fold.

    Raises
    ------
    ValueError
        If folds is not a number from 2 to rows.

    Examples
    --------
    >>> [held_out.tolist() for _, held_out in deal(4, folds=2, shuffle=False)]
    [[0, 1], [2, 3]]
    """
    check_folds(folds, rows=rows, name="folds")
    dealt = KFold(int(folds), shuffle=shuffle, random_state=0 if shuffle else None)
    return list(dealt.split(np.zeros((rows, 1))))


def check_folds(folds: object, *, rows: int, name: str) -> None:
    """Check that rows can be dealt to so many folds.

    Parameters
    ----------
    folds : int
    rows : int
    name : str
        What the error calls the number of folds.

    Raises
    ------
    ValueError
        If it is not a number from 2 to rows.

    Examples
    --------
    >>> check_folds(5, rows=20, name="cv")
    """
    if not isinstance(folds, int | np.integer) or isinstance(folds, bool):
        raise ValueError(f"{name} must be a whole number, got {folds!r}")
    if not 2 <= folds <= rows:
        raise ValueError(f"{name} must lie between 2 and the number of rows, {rows}, got {folds}")


def held_out_errors(
    prior: SelectablePrior,
    X: Array,
    *,
    splits: Sequence[tuple[Rows, Rows]],
    answer_sd: float,
    predictions: Predictions = "posterior",
    criterion: str = "bayes",
    gap: float = 1e-2,
) -> HeldOutErrors:
    """Return how the errors of held-out predictions follow from the outputs.

    Parameters
    ----------
    prior : ExactPrior or SparsePrior
    X : array of shape (N, D)
        Public inputs.
    splits : sequence of (array, array)
        Training and held-out rows of every fold; every row is held out once.
    answer_sd : float
        s, the noise sd of an answer to questions whose longest column is 1, in output units.
    predictions : {"posterior", "raw"}
        Of the posterior mean given the answers, or of C y plus noise.
    criterion : str
        How the questions are chosen: one of `cloakgp.criteria` for held-out rows.
    gap : float
        Certified relative gap at which each design stops.

    Returns
    -------
    HeldOutErrors

    Raises
    ------
    ValueError
        For an unknown choice, or a prior that has no covariance on these rows.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> prior = ExactPrior(kernel=RBF(), noise_variance=1.0, mean=0.0)
    >>> errors = held_out_errors(prior, np.zeros((2, 1)), splits=deal(2, folds=2), answer_sd=0.0,
    ...                          predictions="raw", criterion="trace")
    >>> errors.residual_map
    array([[ 1. , -0.5],
           [-0.5,  1. ]])
    """
    (errors,) = each_held_out_errors(
        [prior],
        X,
        splits=splits,
        answer_sd=answer_sd,
        predictions=predictions,
        criterion=criterion,
        gap=gap,
    )
    return errors


def each_held_out_errors(
    candidates: Sequence[SelectablePrior],
    X: Array,
    *,
    splits: Sequence[tuple[Rows, Rows]],
    answer_sd: float,
    predictions: Predictions = "posterior",
    criterion: str = "bayes",
    gap: float = 1e-2,
    n_jobs: int | None = None,
) -> Iterator[HeldOutErrors]:
    """Yield `held_out_errors` of one candidate after another, with their folds on workers.

    Parameters
    ----------
    candidates : sequence of ExactPrior or SparsePrior
    X, splits, answer_sd, predictions, criterion, gap
        As for `held_out_errors`.
    n_jobs : int, optional
        How many folds are designed at a time; see `cloakgp.privacy.workers.in_order`.

    Yields
    ------
    HeldOutErrors
        The same bits whatever ``n_jobs`` is.

    Raises
    ------
    ValueError
        As for `held_out_errors`.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> priors = [ExactPrior(kernel=RBF(), noise_variance=1.0, mean=mean) for mean in (0.0, 5.0)]
    >>> found = each_held_out_errors(
    ...     priors, np.zeros((2, 1)), splits=deal(2, folds=2), answer_sd=1.0)
    >>> [errors.mean for errors in found]
    [0.0, 5.0]
    """
    if predictions not in PREDICTIONS:
        raise ValueError(f"predictions must be 'posterior' or 'raw', got {predictions!r}")
    by = criterion_named(criterion, use="held-out rows")
    if predictions == "raw" and not by.raw:
        raise ValueError(
            f"criterion={criterion!r} has no raw predictions: choose 'trace' or 'logdet'"
        )
    folds = in_order(
        (
            partial(
                _fold,
                prior,
                X[train],
                X[held_out],
                answer_sd=answer_sd,
                predictions=predictions,
                criterion=criterion,
                gap=gap,
            )
            for prior in candidates
            for train, held_out in splits
        ),
        n_jobs=n_jobs,
    )
    for prior in candidates:
        residual_map, noise_variance = np.eye(len(X)), np.zeros(len(X))
        for train, held_out in splits:
            weights, variance = next(folds)
            # Whatever the weights are, the sensitivity is computed from them: a worker can spoil
            # the choice, and not its privacy. That argument needs finite numbers, and variances.
            if not (np.isfinite(weights).all() and np.isfinite(variance).all()):
                raise RuntimeError("a worker returned weights that are not finite")
            if (variance < 0).any():
                raise RuntimeError("a worker returned a negative variance")
            residual_map[np.ix_(held_out, train)] -= weights
            noise_variance[held_out] = variance
        yield HeldOutErrors(
            residual_map=residual_map, noise_variance=noise_variance, mean=prior.mean
        )
    # Reach the end, where workers are let go.
    next(folds, None)


def _fold(
    prior: SelectablePrior,
    X: Array,
    X_held_out: Array,
    *,
    answer_sd: float,
    predictions: Predictions,
    criterion: str,
    gap: float,
) -> tuple[Array, Array]:
    """Return one fold's rows of A, at the other folds' columns, and of n."""
    strategy, reconstruction = _questions(
        prior, X, X_held_out, answer_sd=answer_sd, criterion=criterion, gap=gap
    )
    if predictions == "posterior":
        reconstruction = _posterior_weights(
            prior, X, X_held_out, strategy=strategy, answer_sd=answer_sd
        )
    variance = answer_sd**2 * np.square(reconstruction).sum(axis=1)
    return reconstruction @ strategy, variance


def _questions(
    prior: SelectablePrior,
    X: Array,
    X_query: Array,
    *,
    answer_sd: float,
    criterion: str,
    gap: float,
) -> tuple[Array, Array]:
    """Return R, and L with L R = C where the design has raw predictions."""
    by = criterion_named(criterion, use="held-out rows")
    if not by.raw:
        covariance = prior.output_covariance(X)
        crossed = prior.cross_covariance(X_query, X)
        prior_variance = float(prior.query_variance(X_query).sum())
        # A column f of the cross-covariance explains at most ‖f‖² / least noise, whatever is asked.
        if np.square(crossed).sum() <= NEGLIGIBLE * prior_variance * covariance.least_noise:
            return np.zeros((0, len(X))), np.zeros((len(X_query), 0))
    choice = by.choose(
        Problem(prior=prior, X=X, X_query=X_query, weights=None, noise_sd=answer_sd, gap=gap)
    )
    if choice.reconstruction is None:
        return choice.strategy, np.zeros((len(X_query), len(choice.strategy)))
    return choice.strategy, choice.reconstruction


def _posterior_weights(
    prior: SelectablePrior, X: Array, X_query: Array, *, strategy: Array, answer_sd: float
) -> Array:
    """Return G = K_*f Rᵀ (R K_y Rᵀ + s² I)⁻¹, with E[f_* | a] = m + G a for answers about m."""
    if len(strategy) == 0:
        return np.zeros((len(X_query), 0))
    covariance = strategy @ prior.output_covariance(X).times(strategy.T)
    covariance = (covariance + covariance.T) / 2
    covariance[np.diag_indices(len(covariance))] += answer_sd**2
    crossed = strategy @ prior.cross_covariance(X_query, X).T
    weights: Array = linalg.cho_solve(linalg.cho_factor(covariance, lower=True), crossed)
    return weights.T
