"""The choice of section 6.7 of the 2021 paper, made soundly, and the defaults without a choice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp.arrays import Array
from cloakgp.choices import choose_prior
from cloakgp.experiments.selection_papers import DELTA, EPSILON, sound_choice
from cloakgp.experiments.table2 import BOUNDS, FIRST_HALF, FOLDS, GRID, UNIT, Half, Tick
from cloakgp.models import ExactPrior
from cloakgp.privacy.guarantee import exact_noise_multiplier
from cloakgp.privacy.heldout import DesignName, HeldOutErrors, deal, held_out_errors
from cloakgp.privacy.mixed import compose_with_selection, worst_release
from cloakgp.privacy.select import SelectionMechanism
from cloakgp.privacy.utility import Loss, error_of
from cloakgp.regression import DPGPRegressor

TOTAL_EPSILON = 2 * EPSILON


def our_candidates(
    half: Half,
    *,
    epsilon: float = EPSILON,
    design: DesignName = "trace",
    tick: Tick | None = None,
) -> list[HeldOutErrors]:
    """Return what `select` knows of every candidate, in cm, about the middle of the bounds.

    Parameters
    ----------
    half : Half
    epsilon : float
        Of the release.
    design : {"trace", "bayes"}
    tick : callable, optional
        Called after every candidate.
    """
    answer_sd = BOUNDS.width * exact_noise_multiplier(epsilon, DELTA)
    candidates = []
    for lengthscale, noise, variance in GRID:
        prior = ExactPrior(
            kernel=ConstantKernel(variance * UNIT**2) * RBF(lengthscale),
            noise_variance=noise * UNIT**2,
            mean=BOUNDS.middle,
        )
        candidates.append(
            held_out_errors(
                prior,
                half.X,
                splits=deal(len(half.X), folds=FOLDS, shuffle=False),
                answer_sd=answer_sd,
                design=design,
            )
        )
        if tick is not None:
            tick()
    return candidates


def our_rmse(candidates: Sequence[HeldOutErrors], half: Half) -> Array:
    """Return each candidate's expected RMSE by the posterior mean, shape (n,), in cm."""
    errors = [
        error_of(one.residual_map @ (half.heights - one.mean), one.noise_variance, loss="squared")
        for one in candidates
    ]
    rmse: Array = np.array(errors) / np.sqrt(len(half.X))
    return rmse


def our_choice(
    candidates: Sequence[HeldOutErrors],
    half: Half,
    *,
    epsilon: float = EPSILON,
    mechanism: SelectionMechanism = "permute-and-flip",
    loss: Loss = "squared",
) -> Array:
    """Return the probabilities with which `select` chooses, shape (n,).

    Parameters
    ----------
    candidates : sequence of HeldOutErrors
    half : Half
    epsilon : float
    mechanism : {"permute-and-flip", "exponential"}
    loss : {"squared", "absolute"}
    """
    _, _, probabilities = sound_choice(
        candidates, half.heights, bounds=BOUNDS, epsilon=epsilon, mechanism=mechanism, loss=loss
    )
    return probabilities


def epsilon_within_total(mechanism: SelectionMechanism) -> float:
    """Return the ε of a choice that costs (2, 0.01) together with a release at (1, 0.01).

    Parameters
    ----------
    mechanism : {"permute-and-flip", "exponential"}
    """
    release = worst_release(EPSILON, DELTA, rows=FIRST_HALF)

    def beyond(epsilon: float) -> float:
        return compose_with_selection(release, epsilon, mechanism=mechanism).epsilon - TOTAL_EPSILON

    return float(brentq(beyond, EPSILON / 2, TOTAL_EPSILON, xtol=1e-3))


def default_rmse(half: Half, *, draws: int, insecure_seed: int | None = None) -> float:
    """Return the RMSE of untouched defaults with the total budget and no choice, in cm.

    Parameters
    ----------
    half : Half
    draws : int
        Releases per fold.
    insecure_seed : int, optional
    """
    squares = []
    for fold, (train, held_out) in enumerate(deal(len(half.X), folds=FOLDS, shuffle=False)):
        for draw in range(draws):
            seed = None if insecure_seed is None else insecure_seed + draws * fold + draw
            model = DPGPRegressor(
                bounds=(BOUNDS.lo, BOUNDS.hi),
                epsilon=TOTAL_EPSILON,
                delta=DELTA,
                insecure_seed=seed,
            ).fit(half.X[train], half.heights[train])
            wrong = model.predict(half.X[held_out]) - half.heights[held_out]
            squares.append(float(np.square(wrong).sum()) / draws)
    return float(np.sqrt(sum(squares) / len(half.X)))


def declared_default_rmse(half: Half) -> float:
    """Return the expected RMSE of the default prior without learning, at the total budget, in cm.

    Parameters
    ----------
    half : Half
    """
    errors = held_out_errors(
        choose_prior(half.X, bounds=BOUNDS),
        half.X,
        splits=deal(len(half.X), folds=FOLDS, shuffle=False),
        answer_sd=BOUNDS.width * exact_noise_multiplier(TOTAL_EPSILON, DELTA),
    )
    return float(our_rmse([errors], half)[0])
