r"""Varah's bound: the papers' way to private inputs, by diagonal dominance, where there is one.

The 2018 paper's supplement ("Privacy on the training inputs") bounds ‖J⁻¹‖_∞ ≤ 1/min_i Δ_i(J),
Δ_i(J) = |J_ii| − Σ_{j≠i} |J_ij|, for strictly diagonally dominant J (Varah 1975), and concludes,
equation 11, Σ(α − α') ≤ Δ_y b for α = K⁻¹ y, Δ_y the change of the outputs. **That covers a change
of outputs at inputs that are unknown but stay the same. It does not cover a change of inputs**: α
also moves because K does, even where Δ_y = 0. And inducing inputs that are far apart make K_ZZ
dominant, but it is J = σ²K_ZZ + K_Zf K_fZ that is inverted, whose second part is private and
erodes its dominance with every row that lies between inducing inputs. `dominance_bound` repairs
both, for a squared-exponential kernel, and refuses where no dominance is left.

Setting
    Public inducing inputs z_1..z_M, kernel k(x, z) = v·exp(−½‖(x − z)/ℓ‖²), noise variance σ²,
    outputs less the middle of their bounds, |y_n| ≤ B. Predictions (subset of regressors) are
    m(x) = k_Z(x)ᵀ α, α = J⁻¹ K_Zf y.
Neighbours
    One row changes, input and output, anything to anything; the number of rows N is public.
Bound
    1. o_ij = v² exp(−¼‖(z_i − z_j)/ℓ‖²) is the greatest k(x, z_i) k(x, z_j) over x (at the
       midpoint; o_ii = v²). Row i of K_Zf K_fZ has the entries Σ_n k(x_n, z_i) k(x_n, z_j), all
       positive; dropping the diagonal one, Δ_i(J) ≥ σ²Δ_i(K_ZZ) − N Σ_{j≠i} o_ij =: D_i, for every
       X. If D = min D_i > 0, then ‖J⁻¹‖_∞ ≤ 1/D by Varah, for both neighbours. (The diagonal of
       σ²K_ZZ + K_Zf K_fZ is positive, so nothing is lost in |J_ii|.)
    2. With primes for the neighbour and (x, y), (x', y') the row that changes,
       J(α − α') = K_Zf y − J α' = (K_Zf y − K'_Zf y') − (J − J') α'
       = k_Z(x)(y − m'(x)) − k_Z(x')(y' − m'(x')), so ‖α − α'‖_∞ ≤ 2v(B + R)/D with R ≥ |m'|.
    3. For R: |m'(x)| ≤ ‖k_Z(x)‖₁‖α'‖_∞ ≤ S·N v B/D, with S² = Σ_ij o_ij ≥ ‖k_Z(x)‖₁². Also, in
       coordinates with K_ZZ = GGᵀ, Φ = K_fZ G^−ᵀ, w = (σ²I + ΦᵀΦ)⁻¹Φᵀy has ‖w‖ ≤ ‖y‖/2σ, as
       s/(σ² + s²) ≤ 1/2σ, and ‖φ(x)‖² ≤ v: |m'(x)| ≤ √(vN) B/2σ. R is the smaller.
    4. |m(x) − m'(x)| ≤ S‖α − α'‖_∞ for every x; and ≤ 2R, since both are at most R.

This is a bound in exact arithmetic, to judge the way by; nothing is released with it. What is
released for private inputs is `cloakgp.privacy.statistics`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.utils.arrays import Array, as_matrix


class NotDominantError(ValueError):
    """No bound by diagonal dominance holds for every table of this number of rows."""


@dataclass(frozen=True)
class DominanceBound:
    """The largest change of predictions by a change of one row's input and output.

    Attributes
    ----------
    dominance : float
        D, the least diagonal dominance of J over all tables of N rows.
    largest_prediction : float
        R, in output units, from the middle of the bounds.
    weight_move : float
        The most that an entry of α can change.
    prediction_move : float
        The most that m(x) can change, anywhere, in output units.
    """

    dominance: float
    largest_prediction: float
    weight_move: float
    prediction_move: float


def diagonal_dominance(matrix: ArrayLike) -> Array:
    """Return Δ_i(J) = |J_ii| − Σ_{j≠i} |J_ij| for every row, shape (n,).

    Where all are positive, ‖J⁻¹‖_∞ ≤ 1/min Δ_i (Varah 1975; 2018 supplement).

    Examples
    --------
    >>> diagonal_dominance([[2.0, -0.5], [1.0, 1.5]])
    array([1.5, 0.5])
    """
    magnitudes = np.abs(as_matrix(matrix, name="matrix"))
    dominance: Array = 2 * np.diag(magnitudes) - magnitudes.sum(axis=1)
    return dominance


def dominance_bound(
    inducing: ArrayLike,
    *,
    signal_variance: float,
    lengthscale: ArrayLike,
    noise_variance: float,
    rows: int,
    width: float,
) -> DominanceBound:
    """Bound the change of predictions for every table of a number of rows.

    Setting, neighbours and proof stand at the head of this module.

    Parameters
    ----------
    inducing : array-like of shape (M, D)
        Public.
    signal_variance, noise_variance : float
        v and σ², in squared output units.
    lengthscale : float or array-like of shape (D,)
        ℓ, in input units.
    rows : int
        N, public.
    width : float
        2B, the width of the bounds, in output units.

    Raises
    ------
    ValueError
        For a number that is not positive.
    NotDominantError
        If so many rows can undo the dominance: move the inducing inputs apart, or use
        `measure_statistics`.

    Examples
    --------
    >>> bound = dominance_bound([[0.0], [90.0]], signal_variance=650.0, lengthscale=10.0,
    ...                         noise_variance=45.0, rows=10, width=100.0)
    >>> round(bound.prediction_move)
    601
    """
    centres = as_matrix(inducing, name="inducing")
    scales = np.asarray(lengthscale, dtype=np.float64)
    for name, value in (
        ("signal_variance", signal_variance),
        ("noise_variance", noise_variance),
        ("rows", rows),
        ("width", width),
    ):
        if not (np.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be positive and finite, got {value}")
    if not (np.isfinite(scales).all() and (scales > 0).all()):
        raise ValueError("lengthscale must be positive and finite")
    gaps = np.square((centres[:, None, :] - centres[None, :, :]) / scales).sum(axis=2)
    covariance = signal_variance * np.exp(-gaps / 2)
    overlaps = signal_variance**2 * np.exp(-gaps / 4)
    eroded = rows * (overlaps.sum(axis=1) - np.diag(overlaps))
    dominance = float((noise_variance * diagonal_dominance(covariance) - eroded).min())
    if dominance <= 0:
        raise NotDominantError(
            f"{rows} rows between the inducing inputs can undo the diagonal dominance: "
            "there is no such bound for this model"
        )
    half_width = width / 2
    reach = math.sqrt(float(overlaps.sum()))
    largest = min(
        reach * rows * signal_variance * half_width / dominance,
        math.sqrt(signal_variance * rows / noise_variance) * half_width / 2,
    )
    weight_move = 2 * signal_variance * (half_width + largest) / dominance
    return DominanceBound(
        dominance=dominance,
        largest_prediction=largest,
        weight_move=weight_move,
        prediction_move=min(reach * weight_move, 2 * largest),
    )
