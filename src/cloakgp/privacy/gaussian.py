r"""Gaussian mechanism: `measure`, where y meets noise.

Mechanism
---------
Given a public strategy R of shape (k, N), publish a = R (clip(y) − c) + s z, with c the middle of
the bounds and z standard normal up to a grid.

Neighbours
    One output changes, within [lo, hi]; everything else is equal. With groups, all outputs of one
    group change, each within [lo, hi]; which rows belong together is public.
Sensitivity
    Row j's output enters through column r_j alone, so R (clip(y) − c) moves by at most
    d·max_j ‖r_j‖. It is computed here from the very R that is asked, over all columns, and inflated
    for rounding (`cloakgp.privacy.grid.integer_sensitivity`). A group's rows move it by at most d
    times the group's gauge, the greatest ‖Σ_j ±r_j‖ (`cloakgp.privacy.groups`).
Theorem
    Balle and Wang 2018, theorem 8, for the Gaussian mechanism; `discretisation_delta` for the
    discrete noise. See `cloakgp.privacy.accounting`.
Argument
    With s = σ·sensitivity and σ = σ(ε, δ − what discretisation costs), the answers are (ε, δ)-DP.
    All that is published later is computed from them and from public arrays: post-processing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.privacy.accounting import Calibration, Guarantee, check_budget
from cloakgp.privacy.bounds import OutputBounds, checked_outputs
from cloakgp.privacy.grid import Sensitivity, calibrate, noisy
from cloakgp.privacy.groups import checked_groups
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.utils.arrays import Array, as_matrix


@dataclass(frozen=True, eq=False)
class Answers:
    """The noisy answers: public, and the only thing that leaves the private side.

    Attributes
    ----------
    values : array of shape (k,)
        R (clip(y) − centre) + noise, in output units.
    noise_sd : float
        Of each answer, in output units; 0 only if nothing was asked.
    centre : float
        The middle of the bounds, which was subtracted from y.
    bounds : tuple of float
    guarantee : Guarantee
    insecure : bool
        True if the noise came from a fixed seed: such a release is not private.
    noise : {"gaussian", "laplace"}
        What it was drawn from; `cloakgp.estimators.baselines` alone uses the other.
    """

    values: Array
    noise_sd: float
    centre: float
    bounds: tuple[float, float]
    guarantee: Guarantee
    insecure: bool = False
    noise: Literal["gaussian", "laplace"] = "gaussian"

    @property
    def distance(self) -> float:
        """How far one output can move, in output units."""
        return self.bounds[1] - self.bounds[0]

    @property
    def output_noise_sd(self) -> float:
        """The noise sd of `about_outputs`."""
        return self.noise_sd

    def about_outputs(self, totals: Array, *means: float) -> Array:
        """Return answers about outputs less a mean, R (y − mean) + noise, shape (k, 1).

        Parameters
        ----------
        totals : array of shape (k,)
            R 1.
        *means : float
            At most one; 0 if none.
        """
        residuals: Array = self.values + (self.centre - sum(means)) * totals
        return residuals[:, None]

    def validate(self) -> None:
        """Refuse answers that nobody can have given.

        Raises
        ------
        ValueError
            If they are damaged.
        """
        if self.values.ndim != 1:
            raise ValueError("its arrays do not fit each other")
        if self.centre != OutputBounds.checked(self.bounds).middle:
            raise ValueError("its bounds are damaged")
        if self.noise not in ("gaussian", "laplace"):
            raise ValueError("its noise is damaged")

    @classmethod
    def of_nothing(
        cls, count: int, *, bounds: OutputBounds, epsilon: float, delta: float, insecure: bool
    ) -> Answers:
        """Return the answers to questions of zeros, which depend on no output and cost nothing."""
        return cls(
            values=np.zeros(count),
            noise_sd=0.0,
            centre=bounds.middle,
            bounds=(bounds.lo, bounds.hi),
            guarantee=Guarantee(epsilon=epsilon, delta=delta, mu=0.0),
            insecure=insecure,
        )


@forget_on_failure
def measure(
    strategy: Array,
    y: ArrayLike,
    *,
    bounds: object,
    epsilon: float,
    delta: float,
    groups: Iterable[Hashable] | None = None,
    calibration: Calibration = "exact",
    insecure_seed: int | None = None,
) -> Answers:
    """Answer the questions of a strategy about y, under (ε, δ)-differential privacy.

    Mechanism, neighbours, theorem and argument stand at the head of this module.

    Parameters
    ----------
    strategy : array of shape (k, N)
        R: public, one column per row of y. k = 0 asks nothing and costs nothing.
    y : array-like of shape (N,)
        Private outputs; clipped to the bounds.
    bounds : (float, float)
        Public range of one output.
    epsilon, delta : float
        The budget.
    groups : iterable of N hashables, optional
        Public: whose row it is. The guarantee is that of all the rows of one group together.
    calibration : {"exact", "papers"}
        The papers' noise is for comparison, and refused for ε > 1.
    insecure_seed : int, optional
        Makes the noise reproducible and the release **not private**. For experiments only.

    Returns
    -------
    Answers

    Raises
    ------
    ValueError
        For bounds, budgets or outputs that do not make sense (never quoting an output), or a δ that
        is too small for the grid.

    Examples
    --------
    >>> answers = measure(np.full((1, 4), 0.5), [1.0, 0.0, 1.0, 1.0], bounds=(0, 1),
    ...                   epsilon=1.0, delta=1e-6)
    >>> round(answers.noise_sd, 2)
    2.11
    """
    check_budget(epsilon, delta)
    # numpy compares a float16 with a float64 in 16 bits: everything below is done in 64.
    epsilon, delta = float(epsilon), float(delta)
    limits = OutputBounds.checked(bounds)
    units = checked_groups(groups, rows=strategy.shape[1])
    outputs = checked_outputs(y, rows=strategy.shape[1])
    if strategy.shape[0] == 0 or not np.any(strategy):
        return Answers.of_nothing(
            len(strategy),
            bounds=limits,
            epsilon=epsilon,
            delta=delta,
            insecure=insecure_seed is not None,
        )
    questions = as_matrix(strategy, name="strategy")
    sensitivity = (
        Sensitivity.of_one_output(questions, bounds=limits)
        if units is None
        else Sensitivity.of_groups(questions, bounds=limits, groups=units)
    )
    grid, guarantee = calibrate(
        questions,
        sensitivity=sensitivity,
        epsilon=epsilon,
        delta=delta,
        calibration=calibration,
    )
    centred = limits.clip(outputs) - limits.middle
    return Answers(
        values=noisy(questions @ centred, grid=grid, insecure_seed=insecure_seed),
        noise_sd=grid.scale * grid.step,
        centre=limits.middle,
        bounds=(limits.lo, limits.hi),
        guarantee=guarantee,
        insecure=insecure_seed is not None,
    )
