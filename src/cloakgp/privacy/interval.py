r"""Counts of outputs in intervals, with noise: `measure_counts`.

Mechanism
---------
Given public numbers e_0 < … < e_B, publish Σ_j v_j + s z, where z is independent noise on a grid
(Gaussian or Laplace) and v_j ∈ {0, 1}ᴮ has a one at the interval that output j lies in: below e_1,
from e_1 to below e_2, …, from e_{B−1} on.

Where to count next is chosen from published counts (`cloakgp.fitting.interval`), so as to find an
interval that holds most outputs, however wide the declared bounds are.

Neighbours
    One output changes, to any number; everything else is equal. With groups, all outputs of one
    group change. The ends e are equal: they are functions of public numbers and published answers.
Sensitivity
    v_j has a single one, wherever it is: two of them are at most √2 apart, and 2 in ℓ1 norm,
    which Laplace noise counts in; a group of n rows moves the sum by at most n times that, by the
    triangle inequality. Which interval an output lies in is
    decided by comparisons, which are exact, and the counts are whole numbers below 2⁵³: nothing is
    rounded before the grid, which `cloakgp.privacy.grid` counts.
Theorem
    As for `cloakgp.privacy.queries`, in B dimensions. How many such mechanisms there are, answers
    decide, and so how much is left for all stages after them; on every path they spend the whole.
    With Σ μ_t² at most μ² on every path they are μ-Gaussian DP together (Smith and Thakurta 2022,
    *Fully adaptive composition for Gaussian differential privacy*), and with Σ ε_t at most ε, ε-DP
    (Rogers, Roth, Ullman and Vadhan 2016, theorem 3.6 and before). Privacy-loss distributions of
    fixed parts do not apply: `Guarantee.adaptive`.
Argument
    Given all earlier answers, the ends are constants, and this is the Gaussian mechanism on a sum
    of functions of one output each: μ_t-Gaussian DP for every value of the earlier answers, which
    is what adaptive composition asks for. What is found, the interval, is a function of published
    counts: post-processing.
Several outputs of a person
    Their entries stand in one column, and every output has counts of its own: Σ_j r_j v_j, with
    public r_j of 1 for the entries of that output and 0 for all others. Neighbours differ in all
    entries of one person, of whom one row moves the counts of one output as above. Counts of T
    outputs are T such mechanisms, which compose: their μ_t², or ε_t, add up.
Tables in chunks
    Σ_j r_j v_j is asked by the mechanism of `cloakgp.privacy.streaming`, whose k is 1 and whose C
    is B: v_j is an encoding of output j whose distance is stated above, and everything that is said
    there of labels holds. r_j is 1, or where all rows of a group are protected together one over
    the number of its rows, so that what a group moves counts by is that of one row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloakgp.privacy.bounds import OutputBounds, checked_outputs
from cloakgp.privacy.grid import Sensitivity, calibrate, noisy
from cloakgp.privacy.groups import checked_groups
from cloakgp.privacy.noise import noise_named
from cloakgp.privacy.queries import Answers
from cloakgp.privacy.rounding import UNIT_ROUNDOFF
from cloakgp.privacy.spending import one_charge
from cloakgp.privacy.streaming import PrivateRows, StrategyBound, ask_rows
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import NoiseName

_HALF = math.sqrt(0.5) * (1 + 4 * UNIT_ROUNDOFF)
# What is counted of one output moves as far as a number between these, in the norm of either noise:
# by √2, rounded outwards, or by 2.
COUNT_BOUNDS: dict[NoiseName, tuple[float, float]] = {
    "gaussian": (-_HALF, _HALF),
    "laplace": (-1.0, 1.0),
}


@dataclass(frozen=True, eq=False)
class CountQuestion:
    """How many outputs lie in each of several intervals.

    An `Encoding` of outputs, too: of each, an indicator of the interval that it lies in.

    Attributes
    ----------
    edges : array of shape (B + 1,)
        Where the intervals end, in output units, in order. What lies beyond the first or the last
        counts as within.

    Examples
    --------
    >>> asked = CountQuestion(np.array([0.0, 2.0, 8.0]))
    >>> asked.counts(np.array([-3.0, 1.0, 2.0, 90.0]))
    array([2., 2.])
    """

    edges: Array

    def validate(self) -> None:
        """Refuse intervals that are none.

        Raises
        ------
        ValueError
            If ends are missing, infinite, or not in order.
        """
        fit = self.edges.ndim == 1 and len(self.edges) >= 2 and np.isfinite(self.edges).all()
        if not (fit and (self.edges[1:] > self.edges[:-1]).all()):
            raise ValueError("its intervals are damaged")

    labels: ClassVar[None] = None
    largest: ClassVar[float] = 1.0
    complaints: ClassVar[tuple[str, ...]] = OutputBounds.complaints

    @property
    def channels(self) -> int:
        """B, how many indicators there are."""
        return self.intervals

    @property
    def distance(self) -> float:
        """How far the indicators of an output move, rounded up: one falls, another rises."""
        return 2.0 * _HALF

    @property
    def absolute_distance(self) -> float:
        """The same in ℓ1 norm."""
        return 2.0 * (1 + 4 * UNIT_ROUNDOFF)

    @property
    def intervals(self) -> int:
        """B, how many there are."""
        return len(self.edges) - 1

    @property
    def ends(self) -> tuple[float, float]:
        """The first and the last end: the declared bounds, in output units."""
        return float(self.edges[0]), float(self.edges[-1])

    def faults(self, entries: Array) -> tuple[bool, ...]:
        """Return whether outputs are missing, and whether any is infinite.

        Parameters
        ----------
        entries : array of shape (n,)
            Private.
        """
        return OutputBounds(*self.ends).faults(entries)

    def encoded(self, entries: Array) -> Array:
        """Return indicators of the intervals that outputs lie in, shape (n, B).

        Parameters
        ----------
        entries : array of shape (n,)
            Private; finite.
        """
        return np.asarray(self._places(entries)[:, None] == np.arange(self.intervals), np.float64)

    def counts(self, outputs: Array) -> Array:
        """Return how many outputs lie in each interval, shape (B,).

        Parameters
        ----------
        outputs : array of shape (N,)
            Private; finite.
        """
        return np.bincount(self._places(outputs), minlength=self.intervals).astype(np.float64)

    def _places(self, outputs: Array) -> NDArray[np.intp]:
        return np.searchsorted(self.edges[1:-1], outputs, side="right")


@forget_on_failure
@one_charge
def measure_counts(
    y: ArrayLike,
    *,
    rows: int,
    question: CountQuestion,
    epsilon: float,
    delta: float,
    groups: Iterable[Hashable] | None = None,
    counted: NDArray[np.bool_] | None = None,
    noise: NoiseName = "gaussian",
    insecure_seed: int | None = None,
) -> Answers:
    """Count outputs in intervals, under (ε, δ)-differential privacy.

    Mechanism, neighbours, sensitivity, theorem and argument stand at the head of this module.

    Parameters
    ----------
    y : array-like of shape (N,)
        Private outputs.
    rows : int
        N, the number of rows of X.
    question : CountQuestion
        Public: chosen without y, but for what was published with noise.
    epsilon, delta : float
        The budget of these counts.
    groups : iterable of N hashables, optional
        Public: whose row it is.
    counted : array of bool, shape (N,), optional
        Public: which rows count, where y has the entries of several outputs; all if not given.
    noise : {"gaussian", "laplace"}
    insecure_seed : int, optional
        Makes the noise reproducible and the answers **not private**.

    Returns
    -------
    Answers
        One count for each interval, in rows.

    Raises
    ------
    ValueError
        For intervals, budgets or outputs that do not make sense; no message quotes an output.

    Examples
    --------
    >>> question = CountQuestion(np.array([0.0, 1.0, 2.0]))
    >>> answers = measure_counts([0.5, 0.0, 9.0, 1.0], rows=4, question=question, epsilon=1.0,
    ...                          delta=1e-6)
    >>> answers.values.shape, round(answers.noise_sd, 2)
    ((2,), 5.97)
    """
    law = noise_named(noise)
    epsilon, delta = law.check(epsilon, delta)
    question.validate()
    units = checked_groups(groups, rows=rows)
    outputs = checked_outputs(y, rows=rows)
    which = np.ones(rows, dtype=np.bool_) if counted is None else counted
    if which.shape != (rows,) or not which.any():
        raise ValueError(f"counted must say of each of {rows} rows whether it counts, one at least")
    strategy = which[None, :].astype(np.float64)
    longest = law.gauge(strategy, groups=units)
    low, high = COUNT_BOUNDS[law.name]
    grid, guarantee = calibrate(
        strategy,
        sensitivity=Sensitivity(
            distance=(high - low) * longest * (1 + 4 * UNIT_ROUNDOFF),
            largest=1.0,
            columns=question.intervals,
        ),
        epsilon=epsilon,
        delta=delta,
        noise=law,
    )
    return Answers(
        values=noisy(question.counts(outputs[which]), grid=grid, insecure_seed=insecure_seed),
        noise_sd=grid.noise_sd,
        centre=0.0,
        bounds=COUNT_BOUNDS[law.name],
        # Answers decide how many rounds of counts there are, and so what is left for the rest.
        guarantee=replace(guarantee, adaptive=True),
        insecure=insecure_seed is not None,
        noise=law.name,
    )


@forget_on_failure
@one_charge
def measure_count_rows(
    rows: PrivateRows,
    columns: Callable[[Array], Array],
    *,
    bound: StrategyBound,
    question: CountQuestion,
    epsilon: float,
    delta: float,
    insecure_seed: int | None = None,
) -> Answers:
    """Count outputs of a table in chunks in intervals, under (ε, δ)-differential privacy.

    Mechanism, neighbours, sensitivity, theorem and argument stand at the head of this module.

    Parameters
    ----------
    rows : PrivateRows
    columns : callable
        Public, and picklable: inputs of shape (n, D) → for how much each row counts, shape (1, n).
    bound : StrategyBound
        Verified over every row.
    question : CountQuestion
        Public: chosen without y, but for what was published with noise.
    epsilon, delta : float
        The budget of these counts.
    insecure_seed : int, optional
        Makes the noise reproducible and the answers **not private**.

    Returns
    -------
    Answers
        One count for each interval.

    Raises
    ------
    ValueError, TypeError
        As `cloakgp.privacy.streaming.measure_rows`.
    """
    epsilon, delta = bound.noise.check(epsilon, delta)
    question.validate()
    noisy = ask_rows(
        rows,
        columns,
        bound=bound,
        encoding=question,
        epsilon=epsilon,
        delta=delta,
        insecure_seed=insecure_seed,
    )
    return Answers(
        values=noisy.values[0],
        noise_sd=noisy.noise_sd,
        centre=0.0,
        bounds=COUNT_BOUNDS[bound.noise.name],
        guarantee=replace(noisy.guarantee, adaptive=True),
        insecure=insecure_seed is not None,
        noise=bound.noise.name,
    )
