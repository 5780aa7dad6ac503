r"""Gaussian noise: it counts columns by their Euclidean norm, and needs a δ.

Shares
------
n custodians add discrete Gaussian noise of scale s ≥ τ/√n each. Their sum is no discrete Gaussian,
and close to one: the max divergence, either way, between a number of the sum and one of scale √n s
is at most 10 Σ_{j<n} e^(−2π² s² j/(j+1)) ≤ 10 n e^(−π² s²), for s² ≥ ¼ (Kairouz, Liu and Steinke
2021, *The distributed discrete Gaussian mechanism for federated learning with secure aggregation*,
§3, on the convolution of many discrete Gaussians).
Over k numbers it is k times that, η, and what is (ε, δ)-DP with the one is (ε + 2η, e^η δ)-DP with
the other. Shares have at least 2¹⁰ steps (`cloakgp.privacy.sampler.LEAST_SHARE`), so that η < k n
e^(−10⁷): some millions of decimal places below the 2⁻⁵⁰ by which the scale of every grid is larger
than its μ needs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from scipy.optimize import nnls
from scipy.special import ndtri

from cloakgp.privacy.accounting import (
    Calibration,
    Guarantee,
    discretisation_delta,
    exact_noise_multiplier,
    papers_noise_multiplier,
)
from cloakgp.privacy.budgets import Pair, check_budget
from cloakgp.privacy.noise.balls import EuclideanNoise
from cloakgp.privacy.noise.base import OF_SQUARED_MU, SPLIT_MARGIN, TOLERANCE, Shares
from cloakgp.privacy.rounding import UNIT_ROUNDOFF
from cloakgp.privacy.sampler import (
    Hide,
    Integers,
    add_discrete_gaussian,
    add_insecure_gaussian,
    add_share_of_gaussian,
)
from cloakgp.privacy.spending import Cost
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import NoiseName

# Of what must hold exactly, beside answers, in sds of their noise.
EXACT = 1e4


class GaussianNoise(EuclideanNoise):
    """Discrete Gaussian noise (Canonne, Kamath and Steinke 2020), of Balle and Wang's calibration.

    Its theorem and what discretisation costs stand at `cloakgp.privacy.accounting`.
    """

    name: ClassVar[NoiseName] = "gaussian"
    law: ClassVar[str] = "normal"
    needs_delta: ClassVar[bool] = True
    power: ClassVar[int] = 2
    shares: ClassVar[Shares] = OF_SQUARED_MU

    @property
    def of_sums(self) -> str:
        """Sums of normal noise are normal."""
        return f"{self.law} noise"

    def unit_sd(self, epsilon: float, delta: float) -> float:
        """Return σ(ε, δ)."""
        return exact_noise_multiplier(epsilon, delta)

    def split(self, epsilon: float, delta: float, *, shares: Sequence[float]) -> tuple[Pair, ...]:
        """Split μ² into parts (Dong, Roth and Su 2022, corollary 3.3).

        Each as a pair (ε, δ) on its own curve, at a smaller δ where ε would be zero.
        """
        mu = (1.0 - SPLIT_MARGIN) / exact_noise_multiplier(epsilon, delta)
        whole = Guarantee(epsilon=epsilon, delta=delta, mu=mu)
        parts = [replace(whole, mu=mu * math.sqrt(share)) for share in shares]
        epsilons = [part.epsilon_at(delta) for part in parts]
        if max(epsilons) <= 0:
            raise ValueError(
                "splitting the budget leaves only parts with epsilon = 0 at this delta: use a "
                "smaller delta or no split"
            )
        return tuple(map(_on_curve, parts, epsilons))

    def scale_budget(self, epsilon: float, delta: float, *, factor: float) -> Pair:
        """Return a multiple of μ, at the same δ."""
        mu = factor / exact_noise_multiplier(epsilon, delta)
        return Guarantee(epsilon=epsilon, delta=delta, mu=mu).epsilon_at(delta), delta

    def adaptive_budget(self, epsilon: float, delta: float) -> Pair:
        """Return the whole budget.

        Steps of which each may be chosen from the answers before it, with Σ μ_t² at most μ²
        whatever happens, are μ-Gaussian DP (Smith and Thakurta 2022, *Fully adaptive composition
        for Gaussian differential privacy*).
        """
        return epsilon, delta

    def whole(self, epsilon: float, delta: float) -> Guarantee:
        """Return μ = 1/σ(ε, δ)."""
        return Guarantee(epsilon, delta, mu=1.0 / self.unit_sd(epsilon, delta))

    def whole_of_parts(
        self, epsilon: float, delta: float, *, parts: Sequence[Pair], fixed: bool = True
    ) -> Guarantee:
        """Return the whole: μ² of the parts sums up to its own, for any parts."""
        del parts, fixed
        return self.whole(epsilon, delta)

    def budget_to_hold(self, epsilon: float, delta: float, *, parts: Sequence[Pair]) -> Pair:
        """Return the whole: μ² of the parts sums up to its own."""
        del parts
        return epsilon, delta

    def cost(self, epsilon: float, delta: float) -> Cost:
        """Return μ = 1/σ(ε, δ)."""
        return Cost(mechanism=self.name, mu=1.0 / exact_noise_multiplier(epsilon, delta))

    def spent(self, guarantee: Guarantee) -> float:
        """Return μ²."""
        return guarantee.mu**2

    def check(self, epsilon: float, delta: float, *, calibration: Calibration = "exact") -> Pair:
        """Return a budget as float64, after checking that δ is above zero."""
        if calibration not in ("exact", "papers"):
            raise ValueError(f"calibration must be 'exact' or 'papers', got {calibration!r}")
        if delta == 0:
            raise ValueError("Gaussian noise needs a delta above 0: without it, take Laplace")
        check_budget(epsilon, delta, part=True)
        return float(epsilon), float(delta)

    def scale(
        self,
        sensitivity: int,
        *,
        answers: int,
        epsilon: float,
        delta: float,
        calibration: Calibration = "exact",
    ) -> tuple[float, Guarantee]:
        """Return τ and the guarantee.

        What discretisation costs is taken from δ before σ is calibrated. τ only grows by that, so
        the cost computed with the first τ is an upper bound for the last.

        Examples
        --------
        >>> scale, guarantee = GaussianNoise().scale(2**40, answers=1, epsilon=1.0, delta=0.01)
        >>> round(scale / 2**40, 3), guarantee.answers
        (1.878, 1)
        """
        multiplier = exact_noise_multiplier if calibration == "exact" else papers_noise_multiplier
        sigma = multiplier(epsilon, delta)
        first_scale = sigma * sensitivity
        cost = discretisation_delta(epsilon, answers=answers, coarseness=answers / first_scale**2)
        if cost >= delta / 2:
            raise ValueError(
                f"delta = {delta} is too small: drawing noise on a grid costs {cost:.1e} of it"
            )
        if calibration == "exact":
            sigma = exact_noise_multiplier(epsilon, delta - cost)
        # The margin covers the few roundings on the way from σ to τ to the μ that is stated.
        scale = sigma * sensitivity * (1 + 16 * UNIT_ROUNDOFF)
        guarantee = Guarantee(
            epsilon=epsilon,
            delta=delta,
            mu=math.nextafter(sensitivity / scale, math.inf),
            answers=answers,
            coarseness=answers / scale**2 * (1 + 4 * UNIT_ROUNDOFF),
        )
        if guarantee.delta_at(epsilon) > delta:
            raise RuntimeError("the calibration does not hold its guarantee; nothing released")
        return scale, guarantee

    def sd(self, scale: float) -> float:
        """Return τ."""
        return scale

    def quantile_of_sum(self, draws: int, probability: float) -> float:
        """Return √n Φ⁻¹(p): the sum of n normal draws is normal."""
        return math.sqrt(draws) * float(ndtri(probability))

    def fit_amounts(
        self, questions: Array, answers: Array, *, sums: Array, totals: Array
    ) -> tuple[Array, float] | None:
        """Return the amounts of least squares that are not negative."""
        # Sums count as answers whose noise is nothing beside that of the others.
        exact = EXACT * float(np.abs(questions).max())
        try:
            amounts, distance = nnls(
                np.vstack([questions, exact * sums]), np.concatenate([answers, exact * totals])
            )
        except RuntimeError:
            return None
        return amounts, float(distance) ** 2 / 2.0

    def add(
        self, integers: Integers, *, scale: float, sensitivity: int, insecure_seed: int | None
    ) -> Integers:
        """Add discrete Gaussian noise."""
        if insecure_seed is not None:
            return add_insecure_gaussian(integers, scale=scale, seed=insecure_seed)
        return add_discrete_gaussian(integers, scale=scale, sensitivity=sensitivity)

    def add_share(
        self, integers: Integers, *, scale: float, sensitivity: int, sharers: int, hide: Hide
    ) -> Integers:
        """Add discrete Gaussian noise of variance τ²/n, as the head of this module says."""
        return add_share_of_gaussian(
            integers, scale=scale, sensitivity=sensitivity, sharers=sharers, hide=hide
        )

    def keeps(self, guarantee: Guarantee, *, sensitivity_over_noise: float) -> bool:
        """Return whether μ is at most the stated one."""
        return not guarantee.laplace and sensitivity_over_noise <= guarantee.mu * (1 + TOLERANCE)


def _on_curve(part: Guarantee, epsilon: float) -> Pair:
    """Return a pair (ε, δ) of a part, given ε at its δ: at a smaller δ where ε is zero."""
    delta = part.delta
    while epsilon <= 0:
        delta /= 2.0
        epsilon = part.epsilon_at(delta)
    return epsilon, delta
