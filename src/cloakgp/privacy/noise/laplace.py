r"""Laplace noise: it counts columns by the sum of their absolute entries, and needs no δ.

Mechanism
---------
Answers, rounded to integers x on a grid, each get an independent integer t, drawn with probability
(1 − q)/(1 + q) q^|t|, q = e^(−1/τ).

Neighbours
    One output changes, or the outputs of one group, as everywhere here; how many rows there are is
    public. Textbooks often let a whole row be added or removed (Dwork and Roth 2014, definition
    3.1, for histograms as vectors of counts): a count then moves by 1. Here a row stays, so that
    one interval's count falls and another's rises: counts in disjoint intervals move by Δ = 2 in ℓ1
    norm, twice as far, and noise of the same scale keeps twice the ε. A sum of outputs in [lo, hi]
    moves by hi − lo, where a row that is added would move it by max |y|.
Sensitivity
    Row j enters through column r_j alone, so answers move by at most Δ = d·max_j ‖r_j‖₁ in ℓ1 norm
    (over all columns of V, where an entry is encoded in several), a group of rows by the sum of
    theirs. It is computed from the very R that is asked and inflated for rounding
    (`cloakgp.privacy.grid.integer_sensitivity`).
Theorem
    Laplace mechanism: Dwork, McSherry, Nissim and Smith 2006, *Calibrating noise to sensitivity in
    private data analysis*, proposition 1; on integers, the geometric mechanism of Ghosh,
    Roughgarden and Sundararajan 2012, *Universally utility-maximizing privacy mechanisms*.
Argument
    If a neighbour's integers are x', then for every outcome o, P(o)/P'(o) = exp(Σ_i (|o_i − x'_i| −
    |o_i − x_i|)/τ) ≤ exp(‖x − x'‖₁/τ). The integers are at most the sensitivity apart, so τ =
    sensitivity/ε gives e^ε: ε-DP exactly, with nothing lost to the grid, unlike the Gaussian.
    Multiplying by the grid's step is post-processing.

Composition
-----------
It is more than ε-DP. Go from x to x' one coordinate after the other, by shifts of s_i steps: each
step leaves all other coordinates as they are, so its trade-off curve is f_{s_i}, that of one
discrete Laplace variable and a shift. By group privacy (Dong, Roth and Su 2022, theorem 2.14) the
curve of the whole way is at least f_{s_1} ∘ (1 − f_{s_2}) ∘ …. The law is log-concave, so tests at
thresholds are best, a threshold's level after one shift is a threshold's level of the next, and the
composition equals f_s of one variable and the whole shift s = Σ s_i. Its δ at ε' < s/τ, by the best
threshold, is at most 1 − sech(1/2τ) e^((ε' − s/τ)/2): that of continuous Laplace noise at s/τ +
2 ln cosh(1/2τ) ≤ s/τ + 1/4τ². Guarantees round every ε up by a share of 2⁻⁴⁰ where they compose,
and grids are so fine that this covers it.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np
from scipy.optimize import brentq, linprog
from scipy.special import gammaincc, gammaln

from cloakgp.privacy.accounting import ROUNDING, Calibration, Guarantee
from cloakgp.privacy.noise.balls import AbsoluteNoise
from cloakgp.privacy.noise.pure import PureNoise
from cloakgp.privacy.rounding import UNIT_ROUNDOFF
from cloakgp.privacy.sampler import (
    Hide,
    Integers,
    add_discrete_laplace,
    add_insecure_laplace,
    add_share_of_laplace,
)
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import NoiseName

# Noise of more steps than this could leave 64 bits.
LARGEST_SCALE = 2.0**57


class LaplaceNoise(PureNoise, AbsoluteNoise):
    """Discrete Laplace noise; mechanism, theorem and argument stand at the head of this module."""

    name: ClassVar[NoiseName] = "laplace"
    law: ClassVar[str] = "Laplace"
    sd_at_one: ClassVar[float] = math.sqrt(2.0)

    def part(self, epsilon: float, delta: float, *, answers: int = 0) -> Guarantee:
        """Return the guarantee of Laplace noise, of which more is known than its ε."""
        return Guarantee(epsilon=epsilon, delta=delta, mu=0.0, answers=answers, laplace=(epsilon,))

    def scale(
        self,
        sensitivity: int,
        *,
        answers: int,
        epsilon: float,
        delta: float,
        calibration: Calibration = "exact",
    ) -> tuple[float, Guarantee]:
        """Return τ and the guarantee, which holds with δ = 0.

        Examples
        --------
        >>> scale, guarantee = LaplaceNoise().scale(2**40, answers=1, epsilon=0.5, delta=0.0)
        >>> round(scale / 2**40, 9), guarantee.laplace
        (2.0, (0.5,))
        """
        del calibration
        scale = sensitivity / epsilon * (1 + 4 * UNIT_ROUNDOFF)
        # The second: what composition takes for continuous noise is covered by its rounding.
        if scale > LARGEST_SCALE or 1 / (4 * scale**2) > ROUNDING / 2 * epsilon:
            raise ValueError(f"epsilon = {epsilon} is too small for noise on 64-bit integers")
        # OpenDP takes τ for the rational number that it is: so does this.
        if Fraction(sensitivity) > Fraction(scale) * Fraction(epsilon):
            raise RuntimeError("the calibration does not hold its guarantee; nothing released")
        return scale, self.part(epsilon, delta, answers=answers)

    def sd(self, scale: float) -> float:
        """Return √2 τ."""
        return math.sqrt(2.0) * scale

    def quantile_of_sum(self, draws: int, probability: float) -> float:
        r"""Return the quantile of a sum of n Laplace draws.

        A draw is the difference of two exponential variables. Of such a sum of n, above 0, what is
        left is a sum of n − j exponential ones with the probability C(n − 1 + j, j) / 2ⁿ⁺ʲ: the
        events of two Poisson processes come in the order of fair coins. So the sum exceeds t with
        Σ_j C(n − 1 + j, j) Q(n − j, t) / 2ⁿ⁺ʲ, j from 0 to n − 1, Q the regularised gamma function.

        Examples
        --------
        >>> round(math.sqrt(2) * LaplaceNoise().quantile_of_sum(1, 0.975), 4)
        2.9957
        """
        later = np.arange(draws)
        logs = gammaln(draws + later) - gammaln(draws) - gammaln(later + 1)
        weights = np.exp(logs - (draws + later) * math.log(2.0))

        def exceeded(t: float) -> float:
            return float(weights @ gammaincc(draws - later, t)) - (1.0 - probability)

        furthest = math.sqrt(2.0) * super().quantile_of_sum(draws, probability)
        return float(brentq(exceeded, 0.0, furthest)) / math.sqrt(2.0)

    def fit_amounts(
        self, questions: Array, answers: Array, *, sums: Array, totals: Array
    ) -> tuple[Array, float] | None:
        """Return the amounts of least absolute deviations, by a linear programme."""
        # min Σ t over m ≥ 0 and t ≥ |A m − answers|.
        (count, places), slack = questions.shape, np.eye(len(answers))
        found = linprog(
            np.concatenate([np.zeros(places), np.ones(count)]),
            A_ub=np.block([[questions, -slack], [-questions, -slack]]),
            b_ub=np.concatenate([answers, -answers]),
            A_eq=np.hstack([sums, np.zeros((len(sums), count))]),
            b_eq=totals,
            bounds=(0.0, None),
            method="highs",
        )
        if not found.success or found.x is None:
            return None
        # The sd of Laplace noise is √2 times its scale.
        return found.x[:places], math.sqrt(2.0) * float(found.x[places:].sum())

    def add(
        self, integers: Integers, *, scale: float, sensitivity: int, insecure_seed: int | None
    ) -> Integers:
        """Add discrete Laplace noise."""
        if insecure_seed is not None:
            return add_insecure_laplace(integers, scale=scale, seed=insecure_seed)
        return add_discrete_laplace(integers, scale=scale, sensitivity=sensitivity)

    def add_share(
        self, integers: Integers, *, scale: float, sensitivity: int, sharers: int, hide: Hide
    ) -> Integers:
        """Add a difference of Pólya numbers, as `cloakgp.privacy.polya` says."""
        return add_share_of_laplace(
            integers, scale=scale, sensitivity=sensitivity, sharers=sharers, hide=hide
        )
