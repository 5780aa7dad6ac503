r"""Linear query mechanism on outputs clipped to a band of their own: `measure_in_bands`.

Mechanism
---------
Given a public strategy R of shape (k, N) and a public band [l_j, u_j] for every row, of width w_j,
publish a = R v + s z, where z is independent noise on a grid (Gaussian or Laplace) and

    v_j = (clip(y_j; l_j, u_j) − (l_j + u_j)/2) / w_j,  brought into [−½, ½].

Bands come from answers that were published before (`cloakgp.fitting.bands`): outputs are known to
lie in narrow ones by then, and what a question costs is its column's length in units of the band.

Neighbours
    One output changes, to any number; everything else is equal. With groups, all outputs of one
    group change. Bands are equal: they are functions of public inputs and published answers.
Sensitivity
    v_j lies in [−½, ½] whatever y_j is: that is brought about last, by a clip to two numbers that
    float64 holds, so that no rounding before it matters. So one output moves R v by at most
    max_j ‖r_j‖, and a group by its gauge: `cloakgp.privacy.queries` with bounds (−½, ½), which
    counts the rounding of R v, in the norm of the noise.
Theorem
    As for `cloakgp.privacy.queries`. Several stages, the bands and questions of each chosen from
    the answers of those before, are together exactly √(Σ μ_t²)-Gaussian DP (Dong, Roth and Su 2022,
    corollary 3.3), or Σ ε_t-DP with Laplace noise: see `cloakgp.privacy.accounting.compose`.
Argument
    Given all earlier answers, bands and R are constants. The mechanism is then that of
    `cloakgp.privacy.queries` on numbers in [−½, ½], each a function of one output: μ_t-Gaussian DP
    or ε_t-DP for every value of the earlier answers, which is what adaptive composition asks for.
    How many outputs were clipped is not published.

A `SpreadQuestion` is the same with another function of one output: how far outside of its predicted
interval it lies, at most 1. Its mean over the rows tells how noisy outputs are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.privacy.bounds import checked_outputs
from cloakgp.privacy.queries import Answers, measure
from cloakgp.privacy.spending import one_charge
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import NoiseName

# What encoded outputs lie between.
UNIT_BAND = (-0.5, 0.5)
# In predictive sds: where outputs begin to count as outside, and where they are wholly so.
SPREAD_FROM, SPREAD_TO = 1.5, 3.0


@dataclass(frozen=True, eq=False)
class Bands:
    """A public interval for the output of every row.

    Attributes
    ----------
    lower, upper : arrays of shape (N,)
        In output units; lower below upper.

    Examples
    --------
    >>> bands = Bands(lower=np.array([0.0, 4.0]), upper=np.array([2.0, 8.0]))
    >>> bands.encoded(np.array([0.5, 90.0]))
    array([-0.25,  0.5 ])
    """

    lower: Array
    upper: Array

    def validate(self) -> None:
        """Refuse intervals that are none.

        Raises
        ------
        ValueError
            If ends are missing, infinite, or not in order.
        """
        ends = self.lower, self.upper
        fit = self.lower.ndim == 1 and self.lower.shape == self.upper.shape
        # Ends as far apart as float64 reaches have no width in it; a tiny one has no inverse.
        with np.errstate(over="ignore", divide="ignore"):
            if not (
                fit
                and np.isfinite(ends).all()
                and (self.width > 0).all()
                and np.isfinite((self.width, 1.0 / self.width)).all()
            ):
                raise ValueError("its bands are damaged")

    @property
    def width(self) -> Array:
        """U − l, in output units."""
        return self.upper - self.lower

    @property
    def middle(self) -> Array:
        """In output units."""
        return self.lower + self.width / 2

    def encoded(self, outputs: Array) -> Array:
        """Return where outputs lie in their bands, from −½ to ½, shape (N,).

        Parameters
        ----------
        outputs : array of shape (N,)
            Private; finite.
        """
        clipped = np.clip(outputs, self.lower, self.upper)
        placed: Array = np.clip((clipped - self.middle) / self.width, *UNIT_BAND)
        return placed


@dataclass(frozen=True, eq=False)
class SpreadQuestion:
    """How far outside of its predicted interval the output of every row lies.

    0 within 1.5 predictive sds of its predicted mean, 1 beyond 3, and in between along a line.

    Attributes
    ----------
    mean, sd : arrays of shape (N,)
        Predicted, in output units.

    Examples
    --------
    >>> asked = SpreadQuestion(mean=np.zeros(3), sd=np.ones(3))
    >>> asked.encoded(np.array([0.0, -2.25, 9.0]))
    array([-0.5,  0. ,  0.5])
    """

    mean: Array
    sd: Array

    def validate(self) -> None:
        """Refuse predictions that are none.

        Raises
        ------
        ValueError
            If they are missing or infinite, or an sd is not above zero.
        """
        fit = self.mean.ndim == 1 and self.mean.shape == self.sd.shape
        if not (fit and np.isfinite((self.mean, self.sd)).all() and (self.sd > 0).all()):
            raise ValueError("its predicted intervals are damaged")

    def outside(self, distances: Array) -> Array:
        """Return how far outside a distance from the mean is, from 0 to 1.

        Parameters
        ----------
        distances : array
            In predictive sds; not negative.
        """
        share: Array = np.clip((distances - SPREAD_FROM) / (SPREAD_TO - SPREAD_FROM), 0.0, 1.0)
        return share

    def encoded(self, outputs: Array) -> Array:
        """Return how far outside outputs lie, less a half, shape (N,).

        Parameters
        ----------
        outputs : array of shape (N,)
            Private; finite.
        """
        # Finite outputs far from the mean may overflow: infinitely far outside is outside.
        with np.errstate(over="ignore"):
            distances = np.abs(outputs - self.mean) / self.sd
        placed: Array = np.clip(self.outside(distances) - 0.5, *UNIT_BAND)
        return placed


@forget_on_failure
@one_charge
def measure_in_bands(
    strategy: Array,
    y: ArrayLike,
    *,
    bands: Bands | SpreadQuestion,
    epsilon: float,
    delta: float,
    groups: Iterable[Hashable] | None = None,
    noise: NoiseName = "gaussian",
    insecure_seed: int | None = None,
) -> Answers:
    """Answer the questions of a strategy about outputs in their bands, under (ε, δ)-DP.

    Mechanism, neighbours, theorem and argument stand at the head of this module.

    Parameters
    ----------
    strategy : array of shape (k, N)
        R: public, one column per row of y.
    y : array-like of shape (N,)
        Private outputs.
    bands : Bands or SpreadQuestion
        Public: computed without y, but for what was published with noise.
    epsilon, delta : float
        The budget of this stage.
    groups : iterable of N hashables, optional
        Public: whose row it is.
    noise : {"gaussian", "laplace"}
        As for `measure`.
    insecure_seed : int, optional
        Makes the noise reproducible and the answers **not private**.

    Returns
    -------
    Answers
        About numbers in [−½, ½], in units of the bands.

    Raises
    ------
    ValueError
        For bands, budgets or outputs that do not make sense; no message quotes an output.

    Examples
    --------
    >>> bands = Bands(lower=np.zeros(4), upper=np.array([1.0, 1.0, 2.0, 2.0]))
    >>> answers = measure_in_bands(np.full((1, 4), 0.5), [1.0, 0.0, 9.0, 1.0], bands=bands,
    ...                            epsilon=1.0, delta=1e-6)
    >>> round(answers.noise_sd, 2)
    2.11
    """
    bands.validate()
    outputs = checked_outputs(y, rows=strategy.shape[1])
    return measure(
        strategy,
        bands.encoded(outputs),
        bounds=UNIT_BAND,
        epsilon=epsilon,
        delta=delta,
        groups=groups,
        noise=noise,
        after_answers=True,
        insecure_seed=insecure_seed,
    )
