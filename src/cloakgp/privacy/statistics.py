r"""Noisy sufficient statistics of a table whose inputs are private too: the Gaussian mechanism.

Mechanism
---------
Public features φ(x), ‖φ(x)‖ ≤ 1, of inputs clipped to a public box, and v = (clip(y) − c)/h with c
the middle and h half the width of the bounds, so |v| ≤ 1. A row's statistic is the vector

    t(x, v) = ( φ_i² for every i,  √2 φ_i φ_j for i < j,  β φ_i v for every i ),

with a public weighting β > 0. A label of C classes is a public point v of K coordinates, ‖v‖ ≤ 1,
the row of a public table for its class; then φ_i v stands for φ_i v_k for every i and k, and |v|
for ‖v‖. Publish Σ_n t(x_n, v_n) + s z with z standard normal up to a grid:
that is Φᵀ Φ, each symmetric pair once, and Φᵀ v. Of exclusive features (one is 1, the others are 0)
the products φ_i φ_j are not asked.

Neighbours
    ``replace``: one row changes, input and output, anything to anything; the number of rows N is
    public. ``add-remove``: one row more or less; N is private. A replacement is a removal and an
    addition, so twice the μ of ``add-remove`` covers it; its own bound is smaller.
Sensitivity
    The √2 makes ‖t − t'‖² = ‖φφᵀ − φ'φ'ᵀ‖_F² + β²‖φv − φ'v'‖². With u = β², its greatest value is

    ============= ====================================== =================
    neighbours    features of norm ≤ 1                   exclusive
    ============= ====================================== =================
    add-remove    1 + u                                  1 + u
    replace       (2 + u)²/2 if u ≤ 2, else 4u           max(2 + 2u, 4u)
    ============= ====================================== =================

Proof
    add-remove: ‖t‖² = ‖φ‖⁴ + u‖φ‖²v² ≤ 1 + u, attained.
    replace: write a = ‖φ‖², b = ‖φ'‖², τ = the cosine between φ and φ'. Then D = ‖t − t'‖² =
    a² + b² − 2abτ² + u(a v² + b v'² − 2τ√(ab) v v'). D is convex in (v, v'), so greatest at ends;
    φ' → −φ', v' → −v' changes nothing, so let v = 1, v' = −1 and τ ∈ [−1, 1]:
    D = a² + b² − 2abτ² + u(a + b + 2τ√(ab)), concave in τ, with its vertex at τ* = u/2√(ab) > 0.
    If τ* ≤ 1, D(τ*) = a² + b² + u(a + b) + u²/2 grows with a and b. If τ* > 1, the greatest is at
    τ = 1: (a − b)² + u(√a + √b)², whose derivative in the smaller of them, say b, is
    −2(a − b) + u(1 + √(a/b)) ≥ −2(a − b) + 2√(ab) + 2a > 0 since u > 2√(ab); in the larger it is
    positive term by term. The greatest over τ is continuous in (a, b), so it is at a = b = 1:
    (2 + u)²/2 if u ≤ 2, else 4u. Both are attained where two features can have that angle.
    Exclusive: two rows in one bin differ by u(v − v')² ≤ 4u, in two bins by 2 + u(v² + v'²).
    Points: ‖φvᵀ‖_F = ‖φ‖‖v‖, and ⟨φvᵀ, φ'v'ᵀ⟩ = τ√(ab)⟨v, v'⟩ with |⟨v, v'⟩| ≤ ‖v‖‖v'‖, so that
    ‖φvᵀ − φ'v'ᵀ‖² is at most what it is of numbers of the same lengths, one of them with the sign
    that makes −τvv' positive. So all bounds hold of points, however many coordinates and classes.
Theorem
    Balle and Wang 2018, theorem 8, for the Gaussian mechanism; `discretisation_delta` for the
    discrete noise. See `cloakgp.privacy.accounting`.
Argument
    Each row's statistic is computed by itself, by the same operations whatever else is in the
    table, and rounded to integers before it is added up, and integers add exactly: so neighbours'
    sums differ by the statistics of the one row and nothing else (`integer_sensitivity`).
    The grid depends on public numbers alone, not on N. All that
    is published later is post-processing.

Not counted: time and memory depend on N, and a table beyond `most_rows` (hundreds of millions) is
refused aloud.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

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
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.utils.arrays import Array
from cloakgp.utils.formatting import short_form

Neighbours = Literal["replace", "add-remove"]
NEIGHBOURS: tuple[Neighbours, ...] = ("replace", "add-remove")

# The grid is this many binary digits finer than the noise: sums over hundreds of millions of rows
# still fit 64 bits, and the discretisation costs about 1e-15 of δ.
GRID_BITS = 32
INTEGER_BITS = 61
# What recomputed noise may differ from the stated one by: float64 in another order.
TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Statistics:
    """Noisy sufficient statistics: public, and the only thing that leaves the private side.

    Attributes
    ----------
    gram : array of shape (M, M)
        Φᵀ Φ + noise, symmetric; seldom positive semi-definite.
    moments : array of shape (M,) or (M, K)
        Φᵀ (clip(y) − centre) + noise, in output units; of labels, Φᵀ of their points.
    gram_sd : float
        Noise sd of the diagonal of `gram`. Beside it √2 times less; none for exclusive features.
    moment_sd : float
        Noise sd of each moment, in output units.
    weighting : float
        β.
    bounds : tuple of float
    neighbours : {"replace", "add-remove"}
    rows : int or None
        N where it is public, which is under "replace".
    exclusive : bool
    guarantee : Guarantee
        Of one row, input and output, for these neighbours.
    insecure : bool
        True if the noise came from a fixed seed: such a release is not private.
    """

    gram: Array
    moments: Array
    gram_sd: float
    moment_sd: float
    weighting: float
    bounds: tuple[float, float]
    neighbours: Neighbours
    rows: int | None
    exclusive: bool
    guarantee: Guarantee
    insecure: bool = False

    @property
    def centre(self) -> float:
        """The middle of the bounds, which was subtracted from y, in output units."""
        return OutputBounds(*self.bounds).middle

    def validate(self) -> None:
        """Refuse arrays that do not fit each other, and noise that does not keep the guarantee.

        Raises
        ------
        ValueError
            If there are such.
        """
        guarantee = self.guarantee
        if self.moments.ndim not in (1, 2) or self.moments.size == 0:
            raise ValueError("its arrays do not fit each other")
        size = len(self.moments)
        if self.gram.shape != (size, size):
            raise ValueError("its arrays do not fit each other")
        if (self.rows is None) != (self.neighbours == "add-remove"):
            raise ValueError("its number of rows is damaged")
        if self.rows is not None and self.rows < 1:
            raise ValueError("its number of rows is damaged")
        half_width = OutputBounds.checked(self.bounds).width / 2
        check_budget(guarantee.epsilon, guarantee.delta)
        # Written so that NaN fails every one of them.
        if not (0 < self.gram_sd < math.inf and 0 < self.weighting < math.inf):
            raise ValueError("its statistics carry no noise")
        expected_sd = self.gram_sd * half_width / self.weighting
        if not abs(self.moment_sd - expected_sd) <= TOLERANCE * expected_sd:
            raise ValueError("its noise is damaged")
        channels = self.moments.size // size
        published = _n_published(size, exclusive=self.exclusive, channels=channels)
        if not (guarantee.answers == published and guarantee.coarseness >= 0):
            raise ValueError("its guarantee is damaged")
        sensitivity = joint_sensitivity(
            self.weighting, neighbours=self.neighbours, exclusive=self.exclusive
        )
        if not sensitivity / self.gram_sd <= guarantee.mu * (1 + TOLERANCE):
            raise ValueError("its noise is less than its guarantee needs")
        guarantee.check_holds()

    def __repr__(self) -> str:
        return short_form(
            f"Noisy statistics of {len(self.moments)} features, {self.guarantee}",
            insecure=self.insecure,
        )


@forget_on_failure
@one_charge
def measure_statistics(
    X: ArrayLike,
    y: ArrayLike,
    *,
    basis: Basis,
    bounds: object,
    epsilon: float,
    delta: float,
    neighbours: Neighbours = "replace",
    weighting: float | None = None,
    declared: object = None,
    points: Array | None = None,
    insecure_seed: int | None = None,
) -> Statistics:
    """Publish Φᵀ Φ and Φᵀ y under (ε, δ)-differential privacy of a whole row.

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
    epsilon, delta : float
        The budget.
    neighbours : {"replace", "add-remove"}
    weighting : float, optional
        β; `best_weighting` if not given.
    declared : (float, float), optional
        Public range to which outputs are clipped before, where the bounds reach beyond it.
    points : array of shape (C, K), optional
        Public, of labels: y is places of classes, from 0, and these stand for them, in units and
        about the middle of the bounds. Points further than half the bounds' width are shortened.
    insecure_seed : int, optional
        Makes the noise reproducible and the release **not private**. For experiments only.

    Returns
    -------
    Statistics

    Raises
    ------
    ValueError
        For what does not make sense; no message quotes a value of X or y, nor how many rows.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cloakgp.models.features import BinBasis, InputBox
    >>> basis = BinBasis(kernel=RBF(), box=InputBox((0.0,), (4.0,)), bins=(2,))
    >>> released = measure_statistics([[1.0], [2.5], [3.0]], [0.0, 1.0, 1.0], basis=basis,
    ...                               bounds=(0, 1), epsilon=1.0, delta=1e-3, insecure_seed=1)
    >>> released.gram.shape, round(released.gram_sd, 2)
    ((2, 2), 4.46)
    """
    check_budget(epsilon, delta)
    epsilon, delta = float(epsilon), float(delta)
    limits = OutputBounds.checked(bounds)
    check_neighbours(neighbours)
    inputs = checked_private_inputs(X, columns=basis.box.n_inputs)
    outputs = checked_paired_outputs(y, rows=len(inputs))
    if declared is not None:
        outputs = OutputBounds.checked(declared).clip(outputs)
    half_width = limits.width / 2
    if weighting is None:
        weighting = best_weighting(
            basis.weight_covariance / half_width**2,
            neighbours=neighbours,
            exclusive=basis.exclusive,
        )
    grid, guarantee = calibrate_statistics(
        features=basis.count,
        channels=1 if points is None else np.shape(points)[1],
        weighting=weighting,
        neighbours=neighbours,
        exclusive=basis.exclusive,
        epsilon=epsilon,
        delta=delta,
    )
    if len(inputs) > grid.most_rows:
        raise ValueError(f"at most {grid.most_rows} rows fit the grid of the noise")
    values = limits.clip(outputs)[:, None] if points is None else points_of(outputs, points)
    scaled = (values - limits.middle) / half_width
    total = integer_sum(inputs, scaled, basis=basis, weighting=weighting, step=grid.step)
    noisy = GAUSSIAN.add(
        total, scale=grid.scale, sensitivity=grid.sensitivity, insecure_seed=insecure_seed
    )
    values = noisy.astype(np.float64) * grid.step
    products = len(_pairs(basis)[0])
    moments = values[products:] * (half_width / weighting)
    gram = np.zeros((basis.count, basis.count))
    gram[_pairs(basis)] = values[:products]
    if not basis.exclusive:
        gram /= math.sqrt(2.0)
        gram[np.diag_indices(basis.count)] *= math.sqrt(2.0)
        gram += np.triu(gram, 1).T
    noise_sd = grid.scale * grid.step
    return Statistics(
        gram=gram,
        moments=moments if points is None else moments.reshape(basis.count, -1),
        gram_sd=noise_sd,
        moment_sd=noise_sd * half_width / weighting,
        weighting=weighting,
        bounds=(limits.lo, limits.hi),
        neighbours=neighbours,
        rows=len(inputs) if neighbours == "replace" else None,
        exclusive=basis.exclusive,
        guarantee=guarantee,
        insecure=insecure_seed is not None,
    )


def integer_sum(
    X: Array, scaled: Array, *, basis: Basis, weighting: float, step: float
) -> Integers:
    """Return the exact sum of the rows' rounded statistics. Private: it carries no noise.

    Parameters
    ----------
    X : array of shape (N, D)
    scaled : array of shape (N, K)
        Outputs, about the middle of their bounds, in halves of the bounds' width.
    basis : Basis
    weighting, step : float
    """
    first, second = _pairs(basis)
    multiple = np.where(first == second, 1.0, math.sqrt(2.0))
    total = np.zeros(len(first) + basis.count * scaled.shape[1], dtype=np.int64)
    for row, output in zip(X, scaled, strict=True):
        # One row at a time: in a batch, a row's last digits could depend on the others.
        feature = unit_feature(basis.features(row[None, :])[0], exclusive=basis.exclusive)
        products = multiple * (feature[first] * feature[second])
        moved = np.outer(feature, within_ball(output)).ravel()
        statistic = np.concatenate([products, weighting * moved])
        total += np.rint(statistic / step).astype(np.int64)
    return total


def check_neighbours(neighbours: object) -> None:
    """Refuse what is no kind of neighbours.

    Raises
    ------
    ValueError
        Unless it is "replace" or "add-remove".

    Examples
    --------
    >>> check_neighbours("replace")
    """
    if neighbours not in NEIGHBOURS:
        raise ValueError(f"neighbours must be 'replace' or 'add-remove', got {neighbours!r}")


def points_of(places: Array, points: Array) -> Array:
    """Return the points that stand for labels, shape (N, K).

    Parameters
    ----------
    places : array of shape (N,)
        Of classes, from 0.
    points : array of shape (C, K)

    Examples
    --------
    >>> points_of(np.array([1.0, 0.0]), np.array([[-1.0], [1.0]])).tolist()
    [[1.0], [-1.0]]
    """
    inside = np.clip(np.rint(places), 0, len(points) - 1).astype(np.intp)
    found: Array = np.asarray(points, dtype=np.float64)[inside]
    return found


def within_ball(output: Array) -> Array:
    """Return a point brought to length 1 at most, for any point.

    Examples
    --------
    >>> within_ball(np.array([3.0, 4.0])).tolist(), within_ball(np.array([-np.inf])).tolist()
    ([0.6, 0.8], [-1.0])
    """
    # Whose squares are still numbers.
    known = np.clip(np.nan_to_num(output, nan=0.0), -1e150, 1e150)
    shortened: Array = known / max(1.0, float(np.linalg.norm(known)))
    return shortened


def unit_feature(feature: Array, *, exclusive: bool) -> Array:
    """Return a feature of norm at most 1, or with a single 1, for any input.

    Examples
    --------
    >>> unit_feature(np.array([3.0, 4.0]), exclusive=False).tolist()
    [0.6, 0.8]
    """
    known = np.nan_to_num(np.asarray(feature, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    if exclusive:
        single = np.zeros_like(known)
        single[int(np.argmax(known))] = 1.0
        return single
    shortened: Array = known / max(1.0, float(np.linalg.norm(known)))
    return shortened


def _n_published(features: int, *, exclusive: bool, channels: int) -> int:
    products = features if exclusive else features * (features + 1) // 2
    return products + features * channels


def _pairs(basis: Basis) -> tuple[Integers, Integers]:
    """Return which products of features are asked: (i, j) with i ≤ j, or i = j if exclusive."""
    if basis.exclusive:
        diagonal = np.arange(basis.count)
        return diagonal, diagonal
    first, second = np.triu_indices(basis.count)
    return first, second


@dataclass(frozen=True)
class StatisticsGrid:
    """The integers on which the statistics live.

    Attributes
    ----------
    step : float
        A power of two.
    sensitivity : int
        Of the integer sums, in steps.
    scale : float
        Noise parameter τ, in steps.
    most_rows : int
        So many rows fit 64 bits.
    """

    step: float
    sensitivity: int
    scale: float
    most_rows: int


def joint_sensitivity(
    weighting: float, *, neighbours: Neighbours, exclusive: bool = False
) -> float:
    """Return the greatest distance between neighbours' sums, in exact arithmetic.

    Proved at the head of this module.

    Parameters
    ----------
    weighting : float
        β, of outputs scaled to [−1, 1].
    neighbours : {"replace", "add-remove"}
    exclusive : bool

    Examples
    --------
    >>> joint_sensitivity(2.0, neighbours="replace")
    4.0
    """
    # In the precision of what is given, a square could round below what is asked.
    u = float(weighting) ** 2
    if neighbours == "add-remove":
        square = 1.0 + u
    elif exclusive:
        square = max(2.0 + 2.0 * u, 4.0 * u)
    else:
        square = (2.0 + u) ** 2 / 2.0 if u <= 2.0 else 4.0 * u
    return math.sqrt(square)


def best_weighting(
    weight_covariance: Array, *, neighbours: Neighbours, exclusive: bool = False
) -> float:
    r"""Return the β for which noise disturbs Φᵀ v = Φᵀ Φ w least, on average over the prior of w.

    Noise of sd s on the vector t puts variance s²/β² on each moment, and, through w, s²W on each
    entry of (Φᵀ Φ) w, with W = ½(1 + 1/M) E‖w‖² (exclusive: E‖w‖²/M). So β minimises
    Δ(β)²(1/β² + W). With u = β² the minimum is at u = W^−½ for add-remove, at min(1, W^−½) for
    exclusive features replaced, and else where 2u(1 + W u) = 2 + u. It is public, and any other
    would be as private.

    Parameters
    ----------
    weight_covariance : array of shape (M, M)
        For outputs scaled to [−1, 1].
    neighbours : {"replace", "add-remove"}
    exclusive : bool

    Examples
    --------
    >>> best_weighting(np.diag([1.0, 0.0]) * 4 / 3, neighbours="add-remove")
    1.0
    """
    features = len(weight_covariance)
    expected = float(np.trace(weight_covariance))
    per_entry = expected / features if exclusive else (1 + 1 / features) * expected / 2
    if neighbours == "add-remove":
        u = per_entry**-0.5
    elif exclusive:
        u = min(1.0, per_entry**-0.5)
    else:
        u = 4.0 / (1.0 + math.sqrt(1.0 + 16.0 * per_entry))
    return math.sqrt(u)


def calibrate_statistics(
    *,
    features: int,
    channels: int = 1,
    weighting: float,
    neighbours: Neighbours,
    exclusive: bool,
    epsilon: float,
    delta: float,
) -> tuple[StatisticsGrid, Guarantee]:
    """Choose the grid and the noise, and state their guarantee. Sees public numbers only.

    Parameters
    ----------
    features : int
        M.
    channels : int
        K.
    weighting : float
    neighbours : {"replace", "add-remove"}
    exclusive : bool
    epsilon, delta : float

    Raises
    ------
    ValueError
        If δ is too small for the grid, or the weighting out of scale.
    """
    weighting = float(weighting)
    if not 1e-6 < weighting < 1e6:
        raise ValueError(f"the weighting must lie between 1e-6 and 1e6, got {weighting}")
    entries = _n_published(features, exclusive=exclusive, channels=channels)
    sigma = exact_noise_multiplier(epsilon, delta)
    exact = joint_sensitivity(weighting, neighbours=neighbours, exclusive=exclusive)
    step = math.ldexp(1.0, math.floor(math.log2(sigma * exact)) - GRID_BITS)
    sensitivity = integer_sensitivity(
        features=features,
        channels=channels,
        entries=entries,
        weighting=weighting,
        step=step,
        neighbours=neighbours,
        exclusive=exclusive,
    )
    scale, guarantee = GAUSSIAN.scale(sensitivity, answers=entries, epsilon=epsilon, delta=delta)
    most_rows = math.floor(2.0**INTEGER_BITS / (max(1.0, weighting) / step + 1.0))
    return StatisticsGrid(step, sensitivity, scale, most_rows), guarantee


def integer_sensitivity(
    *,
    features: int,
    channels: int,
    entries: int,
    weighting: float,
    step: float,
    neighbours: Neighbours,
    exclusive: bool,
) -> int:
    r"""Bound the distance of neighbours' integer sums, in steps, rounding included.

    Argument. A row's φ is shortened in float64, so ‖φ‖ ≤ 1 + γ_{M+4}, γ_n = n u/(1 − n u) (Higham
    2002, §3.1), and so is v, ‖v‖ ≤ 1 + γ_{K+4}: the squared-feature part of the sensitivity grows
    by the square of the first, and the other by one of each. Each entry of t has at most four
    roundings, so t is off by at most γ_4‖t‖ ≤ γ_4 √(1 + β²)(1 + γ_{M+4})²(1 + γ_{K+4}). Dividing by
    a power of two is exact, and rounding to integers moves the vector by at most ½ per entry. Under
    ``replace`` two rows are so computed.

    Parameters
    ----------
    features, channels, entries : int
        M, K, and the length of t.
    weighting, step : float
    neighbours : {"replace", "add-remove"}
    exclusive : bool
    """
    two = 2 if neighbours == "replace" else 1
    stretched = (1 + gamma(features + 4)) ** 2 * (1 + gamma(channels + 4))
    exact = joint_sensitivity(weighting, neighbours=neighbours, exclusive=exclusive)
    arithmetic = two * gamma(4) * math.hypot(1.0, weighting)
    steps = (exact + arithmetic) * stretched / step * (1 + 16 * UNIT_ROUNDOFF)
    return math.ceil((steps + two * math.sqrt(entries) / 2) * (1 + 8 * UNIT_ROUNDOFF))
