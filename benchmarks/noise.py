"""What a peer's noise is worth, once it is scaled to protect as much as ours.

Noise of covariance M on predictions C y protects everybody alike when max_j c_jᵀM⁻¹c_j = 1. A peer
that gives an M of another sensitivity has it scaled to that, M·max_j c_jᵀM⁻¹c_j, exactly. Shapes
are handled in the orthonormal basis of the numerical range C = U diag(s) V: a root K (r × k) with
M = U diag(s) K Kᵀ diag(s) Uᵀ, in which every direction of the range has the same scale, so that
nothing is lost to rounding where the singular values are small.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cloakgp.design.numerical_range import NumericalRange
from cloakgp.utils.arrays import Array

# Directions whose noise sd is below this share of the largest are taken to have none.
NO_NOISE = 1e-14


@dataclass(frozen=True)
class NoiseFigures:
    """Noise in units of d·σ(ε, δ), d the width of the bounds.

    Attributes
    ----------
    volume : float
        log det M per dimension of the numerical range.
    mean_square : float
        Trace of M over the number of predictions.
    sensitivity : float
        sqrt(max_j c_jᵀM⁻¹c_j) of the peer's M before it was scaled to 1; infinite if some direction
        of the range has no noise, in which case no scale of it is private.
    rank : int
        Of the numerical range.
    """

    volume: float
    mean_square: float
    sensitivity: float
    rank: int

    @property
    def rms(self) -> float:
        """Root of the mean squared noise."""
        return float(np.sqrt(self.mean_square))


def noise_root(arrays: Mapping[str, Array], span: NumericalRange) -> Array:
    """Return the root K of what a runner found, shape (r, k).

    Parameters
    ----------
    arrays : mapping
        Either ``weights`` (N,) with M = Σ w_j c_j c_jᵀ, or ``strategy`` (k, N) whose answers have
        unit noise, or ``root`` itself.
    span : NumericalRange

    Raises
    ------
    ValueError
        If none of them is there.
    """
    if "weights" in arrays:
        root: Array = span.right * np.sqrt(np.maximum(arrays["weights"], 0.0))
        return root
    if "strategy" in arrays:
        strategy = arrays["strategy"]
        if strategy.shape[0] == strategy.shape[1]:
            solved: Array = np.linalg.solve(strategy.T, span.right.T).T
            return solved
        inverse: Array = span.right @ np.linalg.pinv(strategy)
        return inverse
    if "root" in arrays:
        return arrays["root"]
    raise ValueError("the runner returned neither weights, nor a strategy, nor a root")


def noise_figures(
    root: Array, span: NumericalRange, *, predictions: int, stated_scale: float | None = None
) -> NoiseFigures:
    """Return the figures of a noise shape.

    Parameters
    ----------
    root : array of shape (r, k)
    span : NumericalRange
    predictions : int
        P.
    stated_scale : float, optional
        By which its author multiplies M. If not given: what makes the sensitivity 1.

    Examples
    --------
    Two people, each predicted by their own output: unit noise on both is exactly enough.

    >>> from cloakgp.design.numerical_range import numerical_range
    >>> noise_figures(3 * np.eye(2), numerical_range(np.eye(2)), predictions=2)
    NoiseFigures(volume=0.0, mean_square=1.0, sensitivity=0.3333333333333333, rank=2)
    """
    rank = len(span.scales)
    left, sizes, _ = np.linalg.svd(root, full_matrices=False)
    if len(sizes) < rank or not sizes[-1] > NO_NOISE * sizes[0]:
        squared = np.inf
    else:
        gains = np.square((left / sizes).T @ span.right).sum(axis=0)
        squared = float(gains.max())
    scale = squared if stated_scale is None else stated_scale
    if np.isfinite(scale):
        with np.errstate(divide="ignore"):
            log_sizes = np.log(sizes).sum() if len(sizes) == rank else -np.inf
        volume = 2 * (log_sizes + np.log(span.scales).sum()) / rank + np.log(scale)
        squares = np.square(span.scales[:, None] * left * sizes).sum()
        mean_square = scale * float(squares) / predictions
    else:
        volume = mean_square = np.inf
    return NoiseFigures(
        # Of an array's own -0.0 nobody wants to read.
        volume=float(volume) + 0.0,
        mean_square=mean_square,
        sensitivity=float(np.sqrt(squared)),
        rank=rank,
    )
