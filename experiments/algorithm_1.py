r"""Algorithm 1 of the 2021 paper, whose sensitivity is no bound.

The paper chooses hyperparameters by the exponential mechanism on minus the cross-validated sum of
squared errors, with (its equation 13)

    Δ_u = 9d² + Σ_{k=1}^{κ−1} d² max_j ‖c_jk‖²        (κ folds, by decreasing norm).

It argues that a prediction that moves by a changes a squared distance D² by at most a². It is
2Da + a². So nothing here is private, whatever ε it is given; it is here to be compared with
`cloakgp.privacy.selection`, which never calls it.

The paper suggests randomised early stopping (Liu and Talwar 2019) in the place of the exponential
mechanism. That is for candidates which are drawn at random and scored privately one by one, and it
costs up to three times the ε of one score. A grid is scored whole, with errors whose sensitivity is
known: there permute-and-flip, which `cloakgp.privacy.selection` has, is never worse than the
exponential mechanism at the same ε (McKenna and Sheldon 2020).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from cloakgp.design import design_strategy
from cloakgp.privacy.accounting import Calibration, exact_noise_multiplier, papers_noise_multiplier
from cloakgp.privacy.cross_validation import HeldOutErrors
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.privacy.selection import Loss, SelectionMechanism, error_band, error_of
from cloakgp.utils.arrays import Array

EPSILON, DELTA = 1.0, 0.01
# Errors beyond 4d are cut off at line 8 of algorithm 1.
THRESHOLD = 4.0


@dataclass(frozen=True, eq=False)
class Fold:
    """A fold: which rows predict which, and how.

    Attributes
    ----------
    train, held_out : array of int
    cloaking : array of shape (P, N)
        C, from the training outputs to predictions of the held-out ones.
    noise_variance : array of shape (P,)
        Of the privacy noise in each prediction, in squared output units.
    """

    train: NDArray[np.intp]
    held_out: NDArray[np.intp]
    cloaking: Array
    noise_variance: Array


@dataclass(frozen=True, eq=False)
class PapersSelection:
    """What algorithm 1 computes on its way, none of it private.

    Attributes
    ----------
    errors : array of shape (n,)
        Sum of squared errors of every candidate, noise included.
    claimed_sensitivity : float
        Δ_u, which neighbours can exceed.
    probabilities : array of shape (n,)
    """

    errors: Array
    claimed_sensitivity: float
    probabilities: Array


def fold_of(
    cloaking: Array,
    *,
    train: Sequence[int] | NDArray[np.intp],
    held_out: Sequence[int] | NDArray[np.intp],
    width: float,
    epsilon: float = EPSILON,
    delta: float = DELTA,
    calibration: Calibration = "papers",
    gap: float = 1e-3,
) -> Fold:
    """Cloak a fold with the optimal log det noise.

    Parameters
    ----------
    cloaking : array of shape (P, N)
    width : float
        d, in output units.
    epsilon, delta : float
        Of the release.
    gap : float
        Relative gap of the design to certify.
    """
    design = design_strategy(cloaking, criterion="logdet", gap=gap)
    multiplier = papers_noise_multiplier if calibration == "papers" else exact_noise_multiplier
    answer_sd = width * multiplier(epsilon, delta)
    return Fold(
        train=np.asarray(train, dtype=np.intp),
        held_out=np.asarray(held_out, dtype=np.intp),
        cloaking=cloaking,
        noise_variance=answer_sd**2 * np.square(design.reconstruction).sum(axis=1),
    )


def expected_squared_errors(folds: Sequence[Fold], y: Array, *, threshold: float = np.inf) -> float:
    """Return the expected sum of squared errors over all folds, noise included.

    Parameters
    ----------
    y : array of shape (N,)
        About the prior mean.
    threshold : float
        Errors beyond it are cut off at it, as at line 8 of algorithm 1.

    Examples
    --------
    >>> one = Fold(np.array([0]), np.array([1]), np.ones((1, 1)), np.array([3.0]))
    >>> expected_squared_errors([one], np.array([0.0, 2.0]))
    7.0
    """
    total = 0.0
    for fold in folds:
        errors = fold.cloaking @ y[fold.train] - y[fold.held_out]
        total += _mean_of_squares(errors, np.sqrt(fold.noise_variance), threshold=threshold)
    return total


def _mean_of_squares(errors: Array, sd: Array, *, threshold: float) -> float:
    """Return Σ E[min((e + sd z)², threshold²)] for standard normal z."""
    if not math.isfinite(threshold):
        return float(np.square(errors).sum() + np.square(sd).sum())
    low, high = (-threshold - errors) / sd, (threshold - errors) / sd
    inside = norm.cdf(high) - norm.cdf(low)
    squares = (
        (np.square(errors) + np.square(sd)) * inside
        + 2 * errors * sd * (norm.pdf(low) - norm.pdf(high))
        + np.square(sd) * (low * norm.pdf(low) - high * norm.pdf(high))
    )
    return float((squares + threshold**2 * (1 - inside)).sum())


def claimed_sensitivity(folds: Sequence[Fold], *, width: float) -> float:
    """Return equation 13's Δ_u for one candidate. Neighbours can exceed it.

    Parameters
    ----------
    width : float
        d, in output units.
    """
    longest = sorted(float(np.square(fold.cloaking).sum(axis=0).max()) for fold in folds)
    return width**2 * (9.0 + sum(longest[1:]))


def papers_selection_with_unsound_bound(
    candidates: Sequence[Sequence[Fold]],
    y: Array,
    *,
    width: float,
    epsilon: float = EPSILON,
    threshold: float = np.inf,
    sensitivity: float | None = None,
) -> PapersSelection:
    """Run algorithm 1 of the 2021 paper. NOT PRIVATE: its sensitivity is no bound.

    Parameters
    ----------
    y : array of shape (N,)
        About the prior mean.
    width : float
        d, in output units.
    epsilon : float
        Of the exponential mechanism.
    threshold : float
        The paper says 4d; the figures that it prints are without.
    sensitivity : float, optional
        Δ_u, instead of the largest of equation 13 (equation 14).

    Returns
    -------
    PapersSelection
    """
    errors = np.array(
        [expected_squared_errors(folds, y, threshold=threshold) for folds in candidates]
    )
    if sensitivity is None:
        sensitivity = max(claimed_sensitivity(folds, width=width) for folds in candidates)
    return PapersSelection(
        errors=errors,
        claimed_sensitivity=sensitivity,
        probabilities=choice_probabilities(
            errors, sensitivity=sensitivity, epsilon=epsilon, mechanism="exponential"
        ),
    )


def choice_probabilities(
    errors: Array, *, sensitivity: float, epsilon: float, mechanism: SelectionMechanism
) -> Array:
    """Return how probable every choice is, shape (n,). As private as the errors.

    Permute-and-flip: p_r ∫ Π_{j≠r} (1 − t p_j) dt over [0, 1] with p_r = exp(−ε (e_r − min e)/2Δ),
    from summing over the number of candidates visited before (McKenna and Sheldon 2020).

    Parameters
    ----------
    errors : array of shape (n,)

    Examples
    --------
    >>> choice_probabilities(np.array([0.0, 9.0]), sensitivity=1.0, epsilon=2.0,
    ...                      mechanism="permute-and-flip").round(5)
    array([9.9994e-01, 6.0000e-05])
    """
    heads = np.exp(-epsilon * (errors - errors.min()) / (2 * sensitivity))
    if mechanism == "exponential":
        shares: Array = heads / heads.sum()
        return shares
    # A polynomial of degree n − 1, which n nodes integrate exactly.
    nodes, weights = np.polynomial.legendre.leggauss(len(errors))
    tails = 1.0 - np.outer((nodes + 1) / 2, heads)
    others = np.array([np.delete(tails, r, axis=1).prod(axis=1) for r in range(len(errors))])
    return np.asarray(heads * (others @ weights) / 2, dtype=np.float64)


def sound_choice(
    candidates: Sequence[HeldOutErrors],
    y: Array,
    *,
    bounds: OutputBounds,
    epsilon: float = EPSILON,
    mechanism: SelectionMechanism = "permute-and-flip",
    loss: Loss = "squared",
) -> tuple[Array, float, Array]:
    """Return the errors, their sensitivity and the probabilities that `select` goes by.

    For experiments, which may look: the errors and the probabilities are private.

    Parameters
    ----------
    y : array of shape (N,)
    """
    errors = np.array(
        [
            error_of(
                candidate.residual_map @ (bounds.clip(y) - candidate.mean),
                candidate.noise_variance,
                loss=loss,
            )
            for candidate in candidates
        ]
    )
    sensitivity = max(
        error_band(candidate, bounds=bounds, loss=loss).sensitivity for candidate in candidates
    )
    return (
        errors,
        sensitivity,
        choice_probabilities(errors, sensitivity=sensitivity, epsilon=epsilon, mechanism=mechanism),
    )


def held_out_of(folds: Sequence[Fold], *, rows: int, mean: float = 0.0) -> HeldOutErrors:
    """Return folds as what `select` knows of a candidate."""
    residual_map, noise_variance = np.eye(rows), np.zeros(rows)
    for fold in folds:
        residual_map[np.ix_(fold.held_out, fold.train)] -= fold.cloaking
        noise_variance[fold.held_out] = fold.noise_variance
    return HeldOutErrors(residual_map=residual_map, noise_variance=noise_variance, mean=mean)


LOSS_NAMES: dict[Loss, str] = {"squared": "root of squares", "absolute": "absolute errors"}
