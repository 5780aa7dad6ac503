r"""Noisy sums of clipped residuals of whole rows over public features: the Gaussian mechanism.

Mechanism
---------
Public features φ(x), ‖φ(x)‖ ≤ 1, of inputs clipped to a public box; a public prediction
p(x) = c + φ(x)ᵀw, from earlier answers say; and v = (clip(y) − p(x))/h clipped to [−1, 1], with a
public h > 0. A row's statistic is the vector

    t(x, y) = ( φ_i v for every i,  γ (v² − ½) ),    γ = ½.

A label of C classes is a public point of K coordinates, the row of a public table for its class,
the prediction is one too, and v is their difference over h, shortened to length 1 if it is longer;
then φ_i v stands for φ_i v_k for every i and k, and v² for ‖v‖².

Publish Σ_n t(x_n, y_n) + s z with z standard normal up to a grid: the moments Φᵀv of residuals, and
how large residuals are.

Neighbours
    ``replace``: one row changes, input and output, anything to anything; the number of rows is
    public. ``add-remove``: one row more or less; their number is private.
Sensitivity
    In ℓ2 norm, √(1 + γ²/4) for ``add-remove`` and 2 for ``replace``, for any γ ≤ 1.
Proof
    add-remove: ‖t‖² ≤ v² + γ²(v² − ½)², convex in v², so at most the larger of γ²/4 and 1 + γ²/4.
    replace: with a = |v|, b = |v'|, ‖φv − φ'v'‖ ≤ a + b and the last entries differ by γ|a² − b²|,
    so ‖t − t'‖² ≤ (a + b)²(1 + γ²(a − b)²). It grows when both are multiplied by the same, so let
    the larger be a = 1: (1 + b)²(1 + γ²(1 − b)²) = (1 + b)² + γ²(1 − b²)² ≤ 4, since
    4 − (1 + b)² = (1 − b)(3 + b) ≥ (1 − b)²(1 + b)² where γ ≤ 1: (1 − b)(1 + b)² =
    (1 − b²)(1 + b) ≤ 2 < 3 + b. Both are attained where ‖φ‖ = 1.
    Of points, ‖φvᵀ‖_F = ‖φ‖‖v‖ ≤ ‖v‖, and the argument holds word for word with a = ‖v‖, b = ‖v'‖,
    however many the coordinates and classes.
Theorem
    Balle and Wang 2018, theorem 8, for the Gaussian mechanism; `discretisation_delta` for the
    discrete noise. See `cloakgp.privacy.accounting`. Several rounds, each around a prediction that
    answers before it chose and with prices fixed beforehand, compose: μ² adds up (Dong, Roth and Su
    2022, corollary 3.3), as the bound holds for every prediction, centre and h.
Argument
    Each row's statistic is computed by itself, by the same operations whatever else is in the
    table, and rounded to integers before it is added up, and integers add exactly. All that is
    published later is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.models.features import Basis
from cloakgp.privacy.accounting import Guarantee, exact_noise_multiplier
from cloakgp.privacy.budgets import check_budget
from cloakgp.privacy.inputs import checked_paired_outputs, checked_private_inputs
from cloakgp.privacy.noise import GAUSSIAN
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.privacy.rounding import UNIT_ROUNDOFF, gamma
from cloakgp.privacy.sampler import Integers
from cloakgp.privacy.spending import one_charge
from cloakgp.privacy.statistics import (
    GRID_BITS,
    INTEGER_BITS,
    TOLERANCE,
    Neighbours,
    check_neighbours,
    points_of,
    unit_feature,
    within_ball,
)
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.utils.arrays import Array
from cloakgp.utils.formatting import short_form

# γ: the weight of squared residuals.
SPREAD_WEIGHT = 0.5


@dataclass(frozen=True, eq=False)
class Residuals:
    """Noisy sums of residuals about a public prediction: public.

    Attributes
    ----------
    moments : array of shape (M,) or (M, K)
        Φᵀ of clipped residuals + noise, in output units; (M, K) of labels.
    squares : float
        Σ (‖v‖² − ½) + noise, of residuals v in half widths.
    noise_sd : float
        Of each sum of residuals in half widths; of `squares` it is that over γ.
    weights : array of shape (M,) or (M, K)
        w, of the prediction about which residuals were taken.
    centre : float
        c, likewise, in output units.
    half_width : float
        h: residuals beyond it were clipped.
    neighbours : {"replace", "add-remove"}
    guarantee : Guarantee
        Of one row, input and output, for these neighbours.
    insecure : bool
        True if the noise came from a fixed seed: such sums are not private.
    """

    moments: Array
    squares: float
    noise_sd: float
    weights: Array
    centre: float
    half_width: float
    neighbours: Neighbours
    guarantee: Guarantee
    insecure: bool = False

    @property
    def moment_sd(self) -> float:
        """Noise sd of each moment, in output units."""
        return self.noise_sd * self.half_width

    @property
    def squares_sd(self) -> float:
        """Noise sd of `squares`."""
        return self.noise_sd / SPREAD_WEIGHT

    def validate(self) -> None:
        """Refuse arrays that do not fit each other, and noise that does not keep the guarantee.

        Raises
        ------
        ValueError
            If there are such.
        """
        if self.moments.ndim not in (1, 2) or self.moments.shape != self.weights.shape:
            raise ValueError("its arrays do not fit each other")
        check_budget(self.guarantee.epsilon, self.guarantee.delta)
        # Written so that NaN fails every one of them.
        if not (
            0 < self.noise_sd < math.inf
            and 0 < self.half_width < math.inf
            and math.isfinite(self.centre)
            and math.isfinite(self.squares)
        ):
            raise ValueError("its residuals are damaged")
        reach = residuals_sensitivity(neighbours=self.neighbours)
        if not reach / self.noise_sd <= self.guarantee.mu * (1 + TOLERANCE):
            raise ValueError("its noise is less than its guarantee needs")
        self.guarantee.check_holds()

    def __repr__(self) -> str:
        return short_form(
            f"Noisy residuals over {len(self.moments)} features, {self.guarantee}",
            insecure=self.insecure,
        )


def residuals_sensitivity(*, neighbours: Neighbours) -> float:
    """Return the greatest distance between neighbours' sums, in exact arithmetic; proved above.

    Parameters
    ----------
    neighbours : {"replace", "add-remove"}

    Examples
    --------
    >>> residuals_sensitivity(neighbours="replace")
    2.0
    """
    return 2.0 if neighbours == "replace" else math.sqrt(1.0 + SPREAD_WEIGHT**2 / 4)


@forget_on_failure
@one_charge
def measure_residuals(
    X: ArrayLike,
    y: ArrayLike,
    *,
    basis: Basis,
    bounds: object,
    weights: Array,
    centre: float,
    half_width: float,
    epsilon: float,
    delta: float,
    neighbours: Neighbours = "replace",
    points: Array | None = None,
    insecure_seed: int | None = None,
) -> Residuals:
    """Publish Φᵀ of clipped residuals, and their size, under (ε, δ) of a whole row.

    Mechanism, neighbours, proof and argument stand at the head of this module.

    Parameters
    ----------
    X : array-like of shape (N, D)
        Private inputs; clipped to the basis's box.
    y : array-like of shape (N,)
        Private outputs; clipped to the bounds.
    basis : Basis
        Public features. They are shortened to norm 1 again here, whatever the basis promises.
    bounds : (float, float)
        Public range of one output.
    weights : array of shape (M,), or (M, K) of labels
        Public, of the prediction.
    centre, half_width : float
        Public, in output units.
    epsilon, delta : float
        The budget.
    neighbours : {"replace", "add-remove"}
    points : array of shape (C, K), optional
        Public, of labels: y is places of classes, from 0, and these stand for them.
    insecure_seed : int, optional
        Makes the noise reproducible and the sums **not private**. For experiments only.

    Returns
    -------
    Residuals

    Raises
    ------
    ValueError
        For what does not make sense; no message quotes a value of X or y, nor how many rows.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cloakgp.models.features import BinBasis, InputBox
    >>> basis = BinBasis(kernel=RBF(), box=InputBox((0.0,), (4.0,)), bins=(2,))
    >>> found = measure_residuals([[1.0], [2.5], [3.0]], [0.0, 1.0, 1.0], basis=basis,
    ...     bounds=(0, 1), weights=np.zeros(2), centre=0.5, half_width=0.5, epsilon=1e6, delta=1e-3)
    >>> found.moments.round(1).tolist(), round(found.squares, 1)
    ([-0.5, 1.0], 1.5)
    """
    check_budget(epsilon, delta)
    limits = OutputBounds.checked(bounds)
    check_neighbours(neighbours)
    around = np.asarray(weights, dtype=np.float64)
    expected = (basis.count, *(() if points is None else np.shape(points)[1:]))
    if around.shape != expected or not np.isfinite(around).all():
        raise ValueError(f"weights must be finite numbers, of shape {expected}")
    if not (math.isfinite(centre) and 0 < half_width < math.inf):
        raise ValueError("the centre must be finite, and the half width above 0 and finite")
    inputs = checked_private_inputs(X, columns=basis.box.n_inputs)
    outputs = checked_paired_outputs(y, rows=len(inputs))
    multiplier = exact_noise_multiplier(float(epsilon), float(delta))
    reach = residuals_sensitivity(neighbours=neighbours)
    step = math.ldexp(1.0, math.floor(math.log2(multiplier * reach)) - GRID_BITS)
    channels = around.size // basis.count
    sensitivity = integer_sensitivity(
        features=basis.count, channels=channels, step=step, neighbours=neighbours
    )
    scale, guarantee = GAUSSIAN.scale(
        sensitivity, answers=around.size + 1, epsilon=float(epsilon), delta=float(delta)
    )
    most_rows = math.floor(2.0**INTEGER_BITS / (1.0 / step + 1.0))
    if len(inputs) > most_rows:
        raise ValueError(f"at most {most_rows} rows fit the grid of the noise")
    total = integer_sum(
        inputs,
        limits.clip(outputs)[:, None] if points is None else points_of(outputs, points),
        basis=basis,
        weights=around.reshape(basis.count, channels),
        centre=float(centre),
        half_width=float(half_width),
        step=step,
    )
    noisy = GAUSSIAN.add(total, scale=scale, sensitivity=sensitivity, insecure_seed=insecure_seed)
    values = noisy.astype(np.float64) * step
    return Residuals(
        moments=values[:-1].reshape(around.shape) * half_width,
        squares=float(values[-1]) / SPREAD_WEIGHT,
        noise_sd=scale * step,
        weights=around,
        centre=float(centre),
        half_width=float(half_width),
        neighbours=neighbours,
        guarantee=guarantee,
        insecure=insecure_seed is not None,
    )


def integer_sum(
    X: Array,
    clipped: Array,
    *,
    basis: Basis,
    weights: Array,
    centre: float,
    half_width: float,
    step: float,
) -> Integers:
    """Return the exact sum of the rows' rounded statistics. Private: it carries no noise.

    Parameters
    ----------
    X : array of shape (N, D)
    clipped : array of shape (N, K)
        Outputs within their bounds, or points of labels.
    basis : Basis
    weights : array of shape (M, K)
    centre, half_width, step : float
    """
    total = np.zeros(weights.size + 1, dtype=np.int64)
    for row, output in zip(X, clipped, strict=True):
        # One row at a time: in a batch, a row's last digits could depend on the others.
        feature = unit_feature(basis.features(row[None, :])[0], exclusive=basis.exclusive)
        with np.errstate(over="ignore", invalid="ignore"):
            ratio = (output - centre - feature @ weights) / half_width
        residual = within_ball(ratio)
        square = SPREAD_WEIGHT * (min(1.0, float(residual @ residual)) - 0.5)
        statistic = np.concatenate([np.outer(feature, residual).ravel(), [square]])
        total += np.rint(statistic / step).astype(np.int64)
    return total


def integer_sensitivity(
    *, features: int, channels: int, step: float, neighbours: Neighbours
) -> int:
    r"""Bound the distance of neighbours' integer sums, in steps, rounding included.

    Argument. A row's φ is shortened in float64, so ‖φ‖ ≤ 1 + γ_{M+4} (Higham 2002, §3.1), and so is
    v, ‖v‖ ≤ 1 + γ_{K+4}: t is of first degree in φ and of second in v, so the sensitivity grows by
    (1 + γ_{M+4})(1 + γ_{K+4})² at most. An entry of t has at most K + 3 roundings, so t is off by
    at most γ_{K+3}·√(1 + γ²/4) times that, as ‖t‖ is at most that much. Dividing by a power of two
    is exact, and rounding to integers moves the vector by at most ½ per entry. Under
    ``replace`` two rows are so computed.

    Parameters
    ----------
    features, channels : int
        M, K.
    step : float
    neighbours : {"replace", "add-remove"}
    """
    two = 2 if neighbours == "replace" else 1
    exact = residuals_sensitivity(neighbours=neighbours)
    arithmetic = two * gamma(channels + 3) * residuals_sensitivity(neighbours="add-remove")
    stretched = (1 + gamma(features + 4)) * (1 + gamma(channels + 4)) ** 2
    steps = (exact + arithmetic) * stretched / step * (1 + 16 * UNIT_ROUNDOFF)
    return math.ceil(
        (steps + two * math.sqrt(features * channels + 1) / 2) * (1 + 8 * UNIT_ROUNDOFF)
    )
