r"""Section 6.7 and table 2 of the 2021 paper: hyperparameters of the !Kung women's heights, chosen.

As the authors' notebook did it: the first 144 women choose, in 5 folds in file order. Heights are
rectified to ±50 cm of the middle of their range, less their mean, in units of their sd, all
without noise (a leak). 80 candidates; one is dropped if d² max_j ‖c_j‖² exceeds 1 in any fold. The
notebook's input is weight, where the paper says age; and it scores the same half that chose, where
the paper says the other. Its noise is that of 5 steps of the authors' optimiser, here that of the
optimum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp.arrays import Array
from cloakgp.experiments.selection_papers import (
    DELTA,
    EPSILON,
    Fold,
    PapersSelection,
    expected_squared_errors,
    fold_of,
    papers_selection_with_unsound_bound,
)
from cloakgp.models import ExactPrior
from cloakgp.privacy.guarantee import exact_noise_multiplier, papers_noise_multiplier
from cloakgp.privacy.heldout import deal
from cloakgp.privacy.outputs import OutputBounds

LENGTHSCALES = (1.0, 5.0, 25.0, 125.0, 625.0)
NOISE_VARIANCES = (0.2, 1.0, 5.0, 25.0)
KERNEL_VARIANCES = (1.0, 5.0, 25.0, 125.0)
GRID = tuple(product(LENGTHSCALES, NOISE_VARIANCES, KERNEL_VARIANCES))

FIRST_HALF = 144
FOLDS = 5
BOUNDS = OutputBounds(58.2675, 158.2675)
# A public stand-in for the sd of the heights, 25.7 cm, which is the grid's unit in the notebook.
UNIT = 25.0
# What the notebook uses for Δ_u, in squared sds. Equation 14, as printed in the paper, gives 137.9.
NOTEBOOK_SENSITIVITY = 166.03

Tick = Callable[[], None]


@dataclass(frozen=True, eq=False)
class Half:
    """One half of the women.

    Attributes
    ----------
    X : array of shape (N, 1)
        Weights in kg, or ages in years.
    heights : array of shape (N,)
        Rectified, in cm.
    normalised : array of shape (N,)
        Less the mean of both halves, over their sd.
    sd : float
        In cm.
    """

    X: Array
    heights: Array
    normalised: Array
    sd: float

    @property
    def width(self) -> float:
        """Width d of the bounds, in sds."""
        return BOUNDS.width / self.sd


def halves(women: pd.DataFrame, *, column: str) -> tuple[Half, Half]:
    """Return the half that chooses and the other one.

    Parameters
    ----------
    women : DataFrame
        ``load_kung(male=False)``.
    column : {"weight", "age"}
    """
    heights = BOUNDS.clip(women["height"].to_numpy(dtype=float))
    X = women[[column]].to_numpy(dtype=float)
    mean, sd = float(heights.mean()), float(heights.std())
    first, second = (
        Half(X=X[rows], heights=heights[rows], normalised=(heights[rows] - mean) / sd, sd=sd)
        for rows in np.split(np.arange(len(X)), [FIRST_HALF])
    )
    return first, second


def papers_folds(half: Half, *, tick: Tick | None = None) -> list[list[Fold]]:
    """Cloak every fold for every candidate, in normalised units.

    Parameters
    ----------
    half : Half
    tick : callable, optional
        Called after every candidate.
    """
    candidates = []
    for lengthscale, noise, variance in GRID:
        prior = ExactPrior(
            kernel=ConstantKernel(variance) * RBF(lengthscale), noise_variance=noise, mean=0.0
        )
        candidates.append(
            [
                fold_of(
                    prior.cloaking_matrix(half.X[held_out], half.X[train]),
                    train=train,
                    held_out=held_out,
                    width=half.width,
                )
                for train, held_out in deal(len(half.X), folds=FOLDS, shuffle=False)
            ]
        )
        if tick is not None:
            tick()
    return candidates


def kept_by_threshold(candidates: Sequence[Sequence[Fold]], *, width: float) -> NDArray[np.bool_]:
    """Return which candidates the notebook keeps, shape (n,): a public matter."""
    kept = [
        all(width**2 * np.square(fold.cloaking).sum(axis=0).max() <= 1 for fold in folds)
        for folds in candidates
    ]
    return np.array(kept)


def papers_rmse(candidates: Sequence[Sequence[Fold]], half: Half) -> Array:
    """Return each candidate's expected RMSE with the papers' noise, shape (n,), in cm."""
    squares = [expected_squared_errors(folds, half.normalised) for folds in candidates]
    return half.sd * np.sqrt(np.array(squares) / len(half.X))


def papers_choice(
    candidates: Sequence[Sequence[Fold]],
    half: Half,
    *,
    epsilon: float = EPSILON,
    thresholded: bool = True,
    sensitivity: float | None = None,
) -> PapersSelection:
    """Run the paper's algorithm 1, which is not private, with probability 0 for what was dropped.

    Parameters
    ----------
    candidates : sequence of sequences of Fold
    half : Half
    epsilon : float
    thresholded : bool
        Drop candidates of large norms first.
    sensitivity : float, optional
        Δ_u, in squared sds, instead of equation 14's.
    """
    kept = kept_by_threshold(candidates, width=half.width)
    considered = kept if thresholded else np.full(len(candidates), True)
    chosen = papers_selection_with_unsound_bound(
        [folds for folds, wanted in zip(candidates, considered, strict=True) if wanted],
        half.normalised,
        width=half.width,
        epsilon=epsilon,
        sensitivity=sensitivity,
    )
    probabilities = np.zeros(len(candidates))
    probabilities[considered] = chosen.probabilities
    return PapersSelection(
        errors=chosen.errors,
        claimed_sensitivity=chosen.claimed_sensitivity,
        probabilities=probabilities,
    )


def expected_rmse(rmse: Array, probabilities: Array) -> float:
    """Return the root of the expected mean squared error of a choice.

    Examples
    --------
    >>> expected_rmse(np.array([1.0, 7.0]), np.array([0.5, 0.5]))
    5.0
    """
    return float(np.sqrt(probabilities @ np.square(rmse)))


def by_lengthscale(probabilities: Array) -> Array:
    """Return the probability of every lengthscale, shape (5,)."""
    lengthscales = np.array([lengthscale for lengthscale, _, _ in GRID])
    return np.array([float(probabilities[lengthscales == one].sum()) for one in LENGTHSCALES])


def with_exact_noise(candidates: Sequence[Sequence[Fold]], *, epsilon: float) -> list[list[Fold]]:
    """Return the papers' folds with exactly calibrated noise: its optimal shape knows no ε.

    Parameters
    ----------
    candidates : sequence of sequences of Fold
        With the papers' noise at ε = 1, which is not defined beyond.
    epsilon : float
        Of the release.
    """
    share = exact_noise_multiplier(epsilon, DELTA) / papers_noise_multiplier(EPSILON, DELTA)
    return [
        [replace(fold, noise_variance=share**2 * fold.noise_variance) for fold in folds]
        for folds in candidates
    ]
