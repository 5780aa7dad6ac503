r"""Noise that needs no δ: the ε of its parts are added.

Composition
-----------
Parts that are ε_t-DP, each possibly chosen after reading the answers before, are Σ ε_t-DP: the
probabilities of any path of answers differ between neighbours by e^(ε_t) at each step (Dwork and
Roth 2014, theorem 3.14; for ε_t that answers decide, Rogers, Roth, Ullman and Vadhan 2016, theorem
3.6). A δ would allow for parts that are a little larger: it is left unused, so that what is drawn
is ε-DP, and what is stated, held and spent are one number.

Nothing else is used, so this holds of any law that keeps ε with δ = 0. A law of which more is known
states more (`PureNoise.part`), as Laplace noise does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from cloakgp.privacy.accounting import Calibration, Guarantee, compose
from cloakgp.privacy.budgets import Pair, check_budget
from cloakgp.privacy.noise.base import OF_EPSILON, SPLIT_MARGIN, TOLERANCE, Noise, Shares
from cloakgp.privacy.spending import Cost

# Noise of a smaller ε could leave 64 bits.
SMALLEST_EPSILON = 2.0**-40


class PureNoise(Noise):
    """Noise that is ε-differentially private, with sd c/ε on answers of sensitivity 1.

    Attributes
    ----------
    sd_at_one : float
        c, the sd at ε = 1.
    """

    sd_at_one: ClassVar[float]
    power: ClassVar[int] = 1
    shares: ClassVar[Shares] = OF_EPSILON
    needs_delta: ClassVar[bool] = False

    def part(self, epsilon: float, delta: float, *, answers: int = 0) -> Guarantee:
        """Return the guarantee of a measurement of some ε: ε-DP, and no more.

        Parameters
        ----------
        epsilon, delta : float
        answers : int
            How many numbers are published.
        """
        return Guarantee(epsilon=epsilon, delta=delta, mu=0.0, answers=answers, pure=(epsilon,))

    def unit_sd(self, epsilon: float, delta: float) -> float:
        """Return c/ε, for any δ."""
        del delta
        return self.sd_at_one / epsilon

    def check(self, epsilon: float, delta: float, *, calibration: Calibration = "exact") -> Pair:
        """Return a budget as float64, after checking it; δ may be 0."""
        if calibration != "exact":
            raise ValueError(f"{self.law} noise has one calibration, 'exact', got {calibration!r}")
        check_budget(epsilon, delta, pure=True, part=True)
        if epsilon < SMALLEST_EPSILON:
            raise ValueError(f"epsilon = {epsilon} is too small for noise on 64-bit integers")
        return float(epsilon), float(delta)

    def split(self, epsilon: float, delta: float, *, shares: Sequence[float]) -> tuple[Pair, ...]:
        """Split ε into parts."""
        kept = (1.0 - SPLIT_MARGIN) * epsilon
        return tuple((kept * share, delta) for share in shares)

    def scale_budget(self, epsilon: float, delta: float, *, factor: float) -> Pair:
        """Return a multiple of ε."""
        return factor * epsilon, delta

    def adaptive_budget(self, epsilon: float, delta: float) -> Pair:
        """Return ε without the δ: its advantage is for fixed parts alone."""
        del delta
        return epsilon, 0.0

    def whole(self, epsilon: float, delta: float) -> Guarantee:
        """Return the guarantee of one part."""
        return self.part(epsilon, delta)

    def whole_of_parts(
        self, epsilon: float, delta: float, *, parts: Sequence[Pair], fixed: bool = True
    ) -> Guarantee:
        """Return the joint guarantee of parts of fixed sizes.

        Where their sizes are not fixed, one part tells most: several with the same sum tell less.
        """
        if fixed:
            return compose(*(self.whole(*part) for part in parts))
        total = math.fsum(part for part, _ in parts)
        return replace(self.whole(max(total, epsilon), delta), epsilon=epsilon)

    def budget_to_hold(self, epsilon: float, delta: float, *, parts: Sequence[Pair]) -> Cost:
        """Return the sum of the parts, without δ."""
        del epsilon, delta
        total = math.fsum(part for part, _ in parts)
        # A sum is rounded once, to nearest; of one part it is exact.
        rounded = total if len(parts) == 1 else math.nextafter(total, math.inf)
        return Cost(mechanism=self.name, epsilon=rounded)

    def cost(self, epsilon: float, delta: float) -> Cost:
        """Return ε."""
        del delta
        return Cost(mechanism=self.name, epsilon=epsilon)

    def spent(self, guarantee: Guarantee) -> float:
        """Return ε."""
        return guarantee.epsilon_of_parts

    def keeps(self, guarantee: Guarantee, *, sensitivity_over_noise: float) -> bool:
        """Return whether ε, c times the sensitivity over the sd, is at most the stated one."""
        parts = guarantee.laplace if self.part(1.0, 0.0).laplace else guarantee.pure
        spent = self.sd_at_one * sensitivity_over_noise
        return guarantee.mu == 0 and spent <= math.fsum(parts) * (1 + TOLERANCE)
