r"""Linear query mechanism: `measure`, where y meets noise.

Mechanism
---------
Given a public strategy R of shape (k, N), publish a = R (clip(y) − c) + s z, with c the middle of
the bounds and z independent noise on a grid: discrete Gaussian, or discrete Laplace
(`cloakgp.privacy.noise`).

Neighbours
    One output changes, within [lo, hi]; everything else is equal. With groups, all outputs of one
    group change, each within [lo, hi]; which rows belong together is public.
Sensitivity
    Row j's output enters through column r_j alone, so R (clip(y) − c) moves by at most
    d·max_j ‖r_j‖, in Euclidean norm for Gaussian noise and in ℓ1 norm for Laplace noise. It is
    computed here from the very R that is asked, over all columns, and inflated for rounding
    (`cloakgp.privacy.grid.integer_sensitivity`). A group's rows move it by at most d times the
    group's gauge, the greatest ‖Σ_j ±r_j‖ (`cloakgp.privacy.groups`), or for Laplace noise by the
    sum of theirs.
Theorem
    Gaussian: Balle and Wang 2018, theorem 8; `discretisation_delta` for the discrete noise. See
    `cloakgp.privacy.accounting`. Laplace: Dwork, McSherry, Nissim and Smith 2006, proposition 1;
    see `cloakgp.privacy.noise.laplace`.
Argument
    Gaussian: with s = σ·sensitivity and σ = σ(ε, δ − what discretisation costs), the answers are
    (ε, δ)-DP. Laplace: with scale sensitivity/ε they are ε-DP, whatever δ. All that is published
    later is computed from them and from public arrays: post-processing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.privacy.accounting import Calibration, Guarantee
from cloakgp.privacy.bounds import OutputBounds, checked_outputs
from cloakgp.privacy.grid import Sensitivity, calibrate, noisy
from cloakgp.privacy.groups import checked_groups
from cloakgp.privacy.noise import NOISES, noise_named
from cloakgp.privacy.spending import one_charge
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.utils.arrays import Array, as_matrix
from cloakgp.utils.names import NoiseName


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
        What it was drawn from.
    """

    values: Array
    noise_sd: float
    centre: float
    bounds: tuple[float, float]
    guarantee: Guarantee
    insecure: bool = False
    noise: NoiseName = "gaussian"

    @property
    def encoding(self) -> OutputBounds:
        """What outputs were clipped to."""
        return OutputBounds(*self.bounds)

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
        if self.noise not in NOISES:
            raise ValueError("its noise is damaged")

    @classmethod
    def of_nothing(
        cls,
        count: int,
        *,
        bounds: OutputBounds,
        epsilon: float,
        delta: float,
        insecure: bool,
        noise: NoiseName = "gaussian",
        after_answers: bool = False,
    ) -> Answers:
        """Return the answers to questions of zeros, which depend on no output."""
        return cls(
            values=np.zeros(count),
            noise_sd=0.0,
            centre=bounds.middle,
            bounds=(bounds.lo, bounds.hi),
            guarantee=NOISES[noise].unasked(
                epsilon, delta, answers=count, after_answers=after_answers
            ),
            insecure=insecure,
            noise=noise,
        )


@forget_on_failure
@one_charge
def measure(
    strategy: Array,
    y: ArrayLike,
    *,
    bounds: object,
    epsilon: float,
    delta: float,
    groups: Iterable[Hashable] | None = None,
    noise: NoiseName = "gaussian",
    calibration: Calibration = "exact",
    after_answers: bool = False,
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
        The budget; δ may be 0 with Laplace noise, which needs none.
    groups : iterable of N hashables, optional
        Public: whose row it is. The guarantee is that of all the rows of one group together.
    noise : {"gaussian", "laplace"}
        Laplace noise pays for the sum of the absolute entries of a column, so columns of a single
        one, as of a histogram, suit it.
    calibration : {"exact", "papers"}
        The papers' noise is for comparison, and refused for ε > 1.
    after_answers : bool
        Whether answers that were published before decided what is asked: if that is nothing, the
        budget counts as spent all the same.
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

    Without a δ:

    >>> pure = measure(np.full((1, 4), 0.5), [1.0, 0.0, 1.0, 1.0], bounds=(0, 1),
    ...                epsilon=1.0, delta=0.0, noise="laplace")
    >>> round(pure.noise_sd, 2), str(pure.guarantee)
    (0.71, '1-differential privacy')
    """
    law = noise_named(noise)
    # numpy compares a float16 with a float64 in 16 bits: everything below is done in 64.
    epsilon, delta = law.check(epsilon, delta, calibration=calibration)
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
            noise=law.name,
            after_answers=after_answers,
        )
    questions = as_matrix(strategy, name="strategy")
    grid, guarantee = calibrate(
        questions,
        sensitivity=Sensitivity.of_strategy(questions, encoding=limits, groups=units, noise=law),
        epsilon=epsilon,
        delta=delta,
        noise=law,
        calibration=calibration,
    )
    centred = limits.clip(outputs) - limits.middle
    return Answers(
        values=noisy(questions @ centred, grid=grid, insecure_seed=insecure_seed),
        noise_sd=grid.noise_sd,
        centre=limits.middle,
        bounds=(limits.lo, limits.hi),
        guarantee=guarantee,
        insecure=insecure_seed is not None,
        noise=law.name,
    )
