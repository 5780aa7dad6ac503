r"""Noisy histograms of every column of whole rows: the Gaussian mechanism on weighted counts.

Mechanism
---------
Inputs, clipped to a public box, lie along public axes (`cloakgp.models.axes`): on each, a row is in
exactly one of its bins, which are equal parts of a declared range or of a turn, or the declared
levels of a category. The output, clipped to its public range, is in one of equal bins, too. A row's
statistic has, for every column c of these, its public weight ω_c in the place of its bin and 0 in
the others. Publish the sum over rows, with normal noise up to a grid.

Neighbours
    ``replace``: one row changes, all of it, anything to anything; the number of rows is public.
    ``add-remove``: one row more or less; their number is private.
Sensitivity
    Of all columns together, in ℓ2 norm: √(Σ_c ω_c²) for ``add-remove``, the norm of one row's
    statistic, and √2 times that for ``replace``: in every column, two rows in one bin differ by
    nothing, and in two bins by ω_c in each. However many bins or levels there are, one row is in
    one of them. Both are attained. Here ω_c are whole numbers of steps
    of the grid, so that nothing is rounded but the square root, upwards.
Theorem
    Balle and Wang 2018, theorem 8, for the Gaussian mechanism; `discretisation_delta` for the
    discrete noise. See `cloakgp.privacy.accounting`.
Argument
    A row adds ω_c to one entry of each column, whichever that is, and by its own values alone;
    integers add exactly. Bins, weights and grid are public. All that is published later is
    post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.models.axes import Axis, Line, lines
from cloakgp.models.features import InputBox
from cloakgp.privacy.accounting import Guarantee, exact_noise_multiplier
from cloakgp.privacy.budgets import check_budget
from cloakgp.privacy.inputs import checked_paired_outputs, checked_private_inputs
from cloakgp.privacy.noise import GAUSSIAN
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.privacy.sampler import Integers
from cloakgp.privacy.spending import one_charge
from cloakgp.privacy.statistics import (
    GRID_BITS,
    INTEGER_BITS,
    TOLERANCE,
    Neighbours,
    check_neighbours,
)
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.utils.arrays import Array
from cloakgp.utils.formatting import short_form


@dataclass(frozen=True, eq=False)
class ColumnCounts:
    """Noisy counts of rows by bins of every column: public.

    Attributes
    ----------
    counts : tuple of array
        Of each axis of the inputs, and of the output, which is last: rows in each bin, plus noise.
    weights : tuple of float
        ω_c, by column.
    noise_sd : float
        Of the counts of a column of weight 1; of others it is that over their weight.
    bounds : (float, float)
        Of the output.
    neighbours : {"replace", "add-remove"}
    rows : int or None
        N where it is public, which is under "replace".
    guarantee : Guarantee
        Of one whole row.
    insecure : bool
        True if the noise came from a fixed seed: such counts are not private.
    """

    counts: tuple[Array, ...]
    weights: tuple[float, ...]
    noise_sd: float
    bounds: tuple[float, float]
    neighbours: Neighbours
    rows: int | None
    guarantee: Guarantee
    insecure: bool = False

    def sd_of(self, column: int) -> float:
        """Return the noise sd of the counts of a column."""
        return self.noise_sd / self.weights[column]

    @property
    def expected_rows(self) -> float:
        """N, or what the counts say of it where it is private: at least 1."""
        if self.rows is not None:
            return float(self.rows)
        totals = [float(counts.sum()) for counts in self.counts]
        precisions = [
            weight**2 / len(counts)
            for weight, counts in zip(self.weights, self.counts, strict=True)
        ]
        return max(1.0, float(np.average(totals, weights=precisions)))

    @property
    def output_edges(self) -> Array:
        """Where the bins of the output end, shape (n + 1,), in output units."""
        return np.linspace(*self.bounds, len(self.counts[-1]) + 1)

    def output_variance(self) -> tuple[float, float]:
        """Return the variance of the outputs that their counts tell, and the sd of its noise.

        Outputs count as in the middle of their bins, and all bins together as the rows do. It is
        linear in the counts, but for their mean, so that noise does not make it larger on average.
        """
        lo, hi = self.bounds
        bins = len(self.counts[-1])
        middles = lo + (hi - lo) * (np.arange(bins) + 0.5) / bins
        mean, _ = self.mean_of_outputs(middles)
        return self.mean_of_outputs(np.square(middles - mean))

    def mean_of_outputs(self, of_bins: Array) -> tuple[float, float]:
        """Return the mean over rows of something about their outputs, and the sd of its noise.

        Parameters
        ----------
        of_bins : array of shape (n,)
            What it is in each bin of the output.
        """
        counts, rows = self.counts[-1], self.expected_rows
        # They add up to what is known.
        known = counts + (rows - counts.sum()) / len(counts)
        noise = self.sd_of(-1) * float(np.linalg.norm(of_bins - of_bins.mean())) / rows
        return float(known @ of_bins) / rows, noise

    def validate(self) -> None:
        """Refuse counts that do not fit each other, and noise that does not keep the guarantee.

        Raises
        ------
        ValueError
            If there are such.
        """
        if not (
            len(self.counts) == len(self.weights) >= 2
            and all(counts.ndim == 1 and len(counts) >= 1 for counts in self.counts)
        ):
            raise ValueError("its arrays do not fit each other")
        if (self.rows is None) != (self.neighbours == "add-remove"):
            raise ValueError("its number of rows is damaged")
        if self.rows is not None and self.rows < 1:
            raise ValueError("its number of rows is damaged")
        OutputBounds.checked(self.bounds)
        check_budget(self.guarantee.epsilon, self.guarantee.delta)
        # Written so that NaN fails every one of them.
        if not (0 < self.noise_sd < math.inf and all(0 < one <= 1 for one in self.weights)):
            raise ValueError("its counts carry no noise")
        reach = counts_sensitivity(self.weights, neighbours=self.neighbours)
        if not reach / self.noise_sd <= self.guarantee.mu * (1 + TOLERANCE):
            raise ValueError("its noise is less than its guarantee needs")
        self.guarantee.check_holds()

    def __repr__(self) -> str:
        return short_form(
            f"Noisy counts of {len(self.counts)} columns, {self.guarantee}", insecure=self.insecure
        )


def counts_sensitivity(weights: Sequence[float], *, neighbours: Neighbours) -> float:
    """Return the greatest distance between neighbours' weighted counts; proved above.

    Parameters
    ----------
    weights : sequence of float
    neighbours : {"replace", "add-remove"}

    Examples
    --------
    >>> counts_sensitivity([0.6, 0.8], neighbours="add-remove")
    1.0
    """
    return math.hypot(*weights) * (math.sqrt(2.0) if neighbours == "replace" else 1.0)


@forget_on_failure
@one_charge
def measure_column_counts(
    X: ArrayLike,
    y: ArrayLike,
    *,
    box: InputBox,
    axes: Sequence[Axis] = (),
    bounds: object,
    bins: Sequence[int],
    weights: Sequence[float],
    epsilon: float,
    delta: float,
    neighbours: Neighbours = "replace",
    insecure_seed: int | None = None,
) -> ColumnCounts:
    """Publish how many rows lie in each bin of each column, under (ε, δ) of a whole row.

    Mechanism, neighbours, proof and argument stand at the head of this module.

    Parameters
    ----------
    X : array-like of shape (N, D)
        Private inputs; clipped to the box.
    y : array-like of shape (N,)
        Private outputs; clipped to the bounds.
    box : InputBox
    axes : sequence of Axis, optional
        Public; if there are none, each input is a number on a line of its own.
    bounds : (float, float)
        Public range of one output.
    bins : sequence of int
        How many, of each axis and of the output.
    weights : sequence of float
        ω_c, of each axis and of the output, above 0 and at most 1: how exact its counts are,
        beside those of others.
    epsilon, delta : float
        The budget.
    neighbours : {"replace", "add-remove"}
    insecure_seed : int, optional
        Makes the noise reproducible and the counts **not private**. For experiments only.

    Returns
    -------
    ColumnCounts

    Raises
    ------
    ValueError
        For what does not make sense; no message quotes a value of X or y, nor how many rows.

    Examples
    --------
    >>> found = measure_column_counts([[1.0], [2.5], [3.0]], [0.0, 1.0, 1.0],
    ...     box=InputBox((0.0,), (4.0,)), bounds=(0, 1), bins=(2, 2), weights=(1.0, 1.0),
    ...     epsilon=1e4, delta=1e-3)
    >>> [counts.round(1).tolist() for counts in found.counts]
    [[1.0, 2.0], [1.0, 2.0]]
    """
    check_budget(epsilon, delta)
    limits = OutputBounds.checked(bounds)
    check_neighbours(neighbours)
    axes = tuple(axes) or lines(box.n_inputs)
    columns = len(axes) + 1
    if not len(bins) == len(weights) == columns or min(bins) < 1:
        raise ValueError(f"there must be bins and a weight for each of {columns} columns")
    if not all(0 < weight <= 1 for weight in weights):
        raise ValueError("weights must lie above 0 and be at most 1")
    inputs = checked_private_inputs(X, columns=box.n_inputs)
    outputs = checked_paired_outputs(y, rows=len(inputs))
    reach = counts_sensitivity(weights, neighbours=neighbours)
    noise = exact_noise_multiplier(float(epsilon), float(delta)) * reach
    # A weight of 1 is so many steps of the grid.
    steps = 2 ** max(GRID_BITS - math.floor(math.log2(noise)), 0)
    most_rows = 2**INTEGER_BITS // steps
    if len(inputs) > most_rows:
        raise ValueError(f"at most {most_rows} rows fit the grid of the noise")
    whole = [math.ceil(weight * steps) for weight in weights]
    sensitivity = integer_sensitivity(whole, neighbours=neighbours)
    scale, guarantee = GAUSSIAN.scale(
        sensitivity, answers=sum(bins), epsilon=float(epsilon), delta=float(delta)
    )
    clipped = box.clip(inputs)
    places = [
        axis.bin_of(clipped, box=box, bins=count)
        for axis, count in zip(axes, bins[:-1], strict=True)
    ]
    bounded = limits.clip(outputs)[:, None]
    own_range = InputBox((limits.lo,), (limits.hi,))
    places.append(Line(0).bin_of(bounded, box=own_range, bins=bins[-1]))
    total = integer_counts(places, bins=bins, weights=whole)
    noisy = GAUSSIAN.add(total, scale=scale, sensitivity=sensitivity, insecure_seed=insecure_seed)
    parts = np.split(noisy.astype(np.float64), np.cumsum(bins)[:-1])
    return ColumnCounts(
        counts=tuple(part / weight for part, weight in zip(parts, whole, strict=True)),
        weights=tuple(weight / steps for weight in whole),
        noise_sd=scale / steps,
        bounds=(limits.lo, limits.hi),
        neighbours=neighbours,
        rows=len(inputs) if neighbours == "replace" else None,
        guarantee=guarantee,
        insecure=insecure_seed is not None,
    )


def integer_counts(
    places: Sequence[Integers], *, bins: Sequence[int], weights: Sequence[int]
) -> Integers:
    """Return the exact weighted counts of rows. Private: they carry no noise.

    Parameters
    ----------
    places : sequence of array of shape (N,)
        Of each column, the bin of every row.
    bins, weights : sequence of int
    """
    found = []
    for column, count, weight in zip(places, bins, weights, strict=True):
        # Whatever an axis says, a row is in one bin.
        inside = np.clip(column, 0, count - 1)
        found.append(np.bincount(inside, minlength=count).astype(np.int64) * weight)
    return np.concatenate(found)


def integer_sensitivity(weights: Sequence[int], *, neighbours: Neighbours) -> int:
    """Return the greatest distance between neighbours' integer counts, rounded up.

    Parameters
    ----------
    weights : sequence of int
    neighbours : {"replace", "add-remove"}

    Examples
    --------
    >>> integer_sensitivity([3, 4], neighbours="add-remove")
    5
    """
    square = sum(weight**2 for weight in weights) * (2 if neighbours == "replace" else 1)
    root = math.isqrt(square)
    return root if root**2 == square else root + 1
