"""Cloaking: the papers' mechanism for any linear smoother."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.design import CriterionName, Design, design_strategy, design_strategy_l1
from cloakgp.design.l1_strategy import log_noise
from cloakgp.privacy.accounting import (
    Calibration,
    Guarantee,
)
from cloakgp.privacy.ask import ask
from cloakgp.privacy.checks import warn_of_parameters
from cloakgp.privacy.entries import check_same_labels
from cloakgp.privacy.noise import NOISES
from cloakgp.privacy.noise_choice import check_noise, choose_noise
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.privacy.spending import one_charge
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.utils.arrays import Array, as_matrix
from cloakgp.utils.formatting import short_form
from cloakgp.utils.names import DEFAULT_GAP, Ball, NoiseChoice, NoiseName

DESIGNS: Mapping[Ball, Callable[..., Design]] = MappingProxyType(
    {"l2": design_strategy, "l1": design_strategy_l1}
)
# The papers' calibration is that of Gaussian noise.
BALLS: tuple[Ball, ...] = ("l1", "l2")
PAPERS_BALLS: tuple[Ball, ...] = ("l2",)


@dataclass(frozen=True, eq=False)
class CloakedPredictions:
    """Predictions C y with noise; a public object.

    Attributes
    ----------
    values : array of shape (P,)
        Unbiased for C clip(y), in output units.
    noise_cov : array of shape (P, P)
        Covariance of the noise, in squared output units.
    guarantee : Guarantee
    noise : str
        Its law.
    gap : float
        Certified relative gap of the noise's design.
    insecure : bool
        True if the noise came from a fixed seed: they are then not private.
    """

    values: Array
    noise_cov: Array
    guarantee: Guarantee
    noise: NoiseName
    gap: float
    insecure: bool = False

    def __repr__(self) -> str:
        return short_form(
            f"CloakedPredictions at {len(self.values)} points, {self.guarantee}",
            insecure=self.insecure,
        )


@forget_on_failure
@one_charge
def cloak(
    C: ArrayLike,
    y: ArrayLike,
    *,
    bounds: object,
    epsilon: float,
    delta: float = 0.0,
    noise: NoiseChoice = "auto",
    criterion: CriterionName = "trace",
    weights: ArrayLike | None = None,
    calibration: Calibration = "exact",
    gap: float = DEFAULT_GAP,
    insecure_seed: int | None = None,
) -> CloakedPredictions:
    r"""Publish the predictions C y of a linear smoother with the least noise.

    Mechanism: design R and L with L R = C (`cloakgp.design.design_strategy`, which sees C alone),
    answer R y by `cloakgp.privacy.ask`, publish C c + L a for the middle c of the
    bounds. The values are a function of the k noisy answers a and of public arrays, so they inherit
    the guarantee of `ask` by post-processing; the noise has the covariance s² L Lᵀ.

    Neighbours: data sets that differ in one output, within the bounds. Sensitivity: d·max_j ‖r_j‖
    of the strategy used, in the noise's norm. Theorem: as for `ask`. The shape of the noise
    follows section 3 of the 2018 paper (its equations 8 and 9); publishing L (R y + noise) rather
    than C y + noise closes the leak of that form through rounding and missing directions.

    Parameters
    ----------
    C : array-like of shape (P, N)
        Public linear map from outputs to predictions.
    y : array-like of shape (N,)
        Private outputs, in the order of the columns of C; clipped to the bounds.
    bounds : (float, float)
    epsilon, delta : float
        δ may be 0: noise is Laplace noise then.
    noise : {"auto", "gaussian", "laplace"}
        "auto" takes the one that leaves less noise by the criterion, which C tells before y is
        read; see `cloakgp.privacy.noise_choice`.
    criterion : {"trace", "logdet"}
        Least weighted mean squared noise, or least volume as in the papers.
    weights : array-like of shape (P,), optional
        Importance of each prediction, for ``trace``.
    calibration : {"exact", "papers"}
        ``papers`` scales by √(2 ln(2/δ))/ε, for comparison; refused for ε > 1.
    gap : float
        Relative gap of the design to certify.
    insecure_seed : int, optional
        Makes the noise reproducible and the release **not private**. For experiments only.

    Returns
    -------
    CloakedPredictions

    Raises
    ------
    ValueError
        For shapes, bounds, budgets or values that do not make sense, and pandas labels of y that
        columns of C have in another order; no message quotes an output.

    Examples
    --------
    The mean of 100 numbers between 0 and 1, for which Laplace noise is the better:

    >>> cloaked = cloak(np.full((1, 100), 0.01), np.ones(100), bounds=(0, 1),
    ...                 epsilon=1.0, delta=1e-6)
    >>> float(np.sqrt(cloaked.noise_cov[0, 0]).round(4))
    0.0141
    """
    check_same_labels(getattr(C, "columns", None), y, what="columns of C and rows of y")
    matrix = as_matrix(C, name="C")
    settings: dict[str, Any] = {
        "criterion": criterion,
        "weights": None if weights is None else np.asarray(weights, dtype=np.float64),
    }
    designed = cache(lambda ball: DESIGNS[ball](matrix, gap=gap, **settings))
    column: Any = y
    if hasattr(y, "__len__") and getattr(y, "ndim", 1) == 1 and len(column) != matrix.shape[1]:
        raise ValueError(
            f"C has {matrix.shape[1]} columns and y has {len(column)} entries: they must agree"
        )
    check_noise(noise, epsilon=epsilon, delta=delta)
    limits = OutputBounds.checked(bounds)
    if matrix.shape[1] < 2:
        raise ValueError("1 sample is too few: a release about one row shows that row; give 2 rows")
    warn_of_parameters(
        epsilon=epsilon, delta=delta, rows=matrix.shape[1], bounds=[(limits.lo, limits.hi)]
    )
    law = choose_noise(
        noise,
        epsilon=epsilon,
        delta=delta,
        expected_error=lambda name: _noise_left(
            designed(NOISES[name].ball), unit_sd=NOISES[name].unit_sd(epsilon, delta), **settings
        ),
        balls=BALLS if calibration == "exact" else PAPERS_BALLS,
    )
    design = designed(NOISES[law].ball)
    answers = ask(
        design.strategy,
        y,
        question=limits,
        epsilon=epsilon,
        delta=delta,
        noise=law,
        calibration=calibration,
        insecure_seed=insecure_seed,
    )
    return CloakedPredictions(
        values=matrix @ np.full(matrix.shape[1], limits.middle)
        + design.reconstruction @ answers.values[:, 0],
        noise_cov=answers.noise_sd**2 * design.reconstruction @ design.reconstruction.T,
        guarantee=answers.guarantee,
        noise=answers.noise,
        gap=design.certificate.gap,
        insecure=answers.insecure,
    )


def _noise_left(
    design: Design, *, unit_sd: float, criterion: CriterionName, weights: Array | None
) -> float:
    """Return the sd of the noise in predictions: root mean square, or as a volume's."""
    dimensions = len(design.strategy)
    if dimensions == 0:
        return 0.0
    of_unit = log_noise(design, criterion=criterion, weights=weights, dimensions=dimensions)
    return unit_sd * math.exp(of_unit / 2.0)
