r"""Amounts of privacy: exact sums of what charges cost, and what they guarantee together.

Gaussian parts add up in μ², exactly (Dong, Roth and Su 2022, corollary 3.3). Parts that need no δ
(Laplace noise, private choices) add up in ε (Dwork and Roth 2014, theorem 3.14); besides, each is
μ(ε)-Gaussian DP with Φ(μ/2) = e^ε/(1 + e^ε), which is less where there are many. Both sums are
kept, and whichever guarantees more counts. All of it holds however later releases were chosen after
seeing earlier ones.

Sums are whole numbers of 2⁻²⁰⁰, each part rounded up when it is added, so that taking back a part
that was never drawn gives exactly what was there before.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any

from cloakgp.privacy.accounting import Guarantee, exact_noise_multiplier, pure_mu
from cloakgp.privacy.composition import MixedGuarantee
from cloakgp.privacy.rounding import round_up
from cloakgp.privacy.spending import Budget, Cost

# Binary digits after the point.
PLACES = 200
# What is held for a Gaussian release is less by this share of μ than its budget allows, so that
# what drawing on a grid costs on top has room.
HELD_LESS = 2.0**-30
# More releases than that are not counted.
MOST_RELEASES = 10**6


def checked_number(value: object, *, name: str, least: float, below: float) -> float:
    """Return a number of a budget as float64.

    Parameters
    ----------
    value : object
    name : str
        For the message.
    least : float
        The number is larger, or equal if this is 0.
    below : float
        The number is smaller.

    Raises
    ------
    ValueError
        For text, truth values, NaN, infinity, numbers outside of the range, and positive numbers so
        small that float64 has not all its digits for them.

    Examples
    --------
    >>> checked_number(1, name="epsilon", least=0, below=math.inf)
    1.0
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{name} must be a number, not {type(value).__name__}")
    number = float(value)
    # Written so that NaN fails.
    if not (math.isfinite(number) and least <= number < below):
        raise ValueError(f"{name} must be at least {least:g} and below {below:g}, got {number}")
    if 0 < number < sys.float_info.min:
        raise ValueError(f"{name} = {number} is too small for a number with all its digits")
    return number


def checked_limit(epsilon: object, delta: object) -> Budget:
    """Return a limit; δ may be 0, for what needs none.

    Raises
    ------
    ValueError
        For what is no such pair.

    Examples
    --------
    >>> checked_limit(1, 1e-5)
    (1.0, 1e-05)
    """
    found = checked_number(epsilon, name="epsilon", least=0.0, below=math.inf)
    if found == 0:
        raise ValueError("epsilon must be positive")
    return found, checked_number(delta, name="delta", least=0.0, below=1.0)


def fixed(exact: Fraction | float) -> int:
    """Return a number that is not negative in units of 2⁻²⁰⁰, rounded up.

    Examples
    --------
    >>> fixed(0.5) == 2**199
    True
    """
    return math.ceil(Fraction(exact) * (1 << PLACES))


@dataclass(frozen=True)
class Amount:
    """What some charges cost together.

    Attributes
    ----------
    gaussian : int
        Σ μ² of Gaussian parts, in units of 2⁻²⁰⁰.
    pure : int
        Σ ε of parts that need no δ, in these units.
    pure_gaussian : int
        Σ μ(ε)² of the latter, in these units.
    answers : int
        How many numbers with Gaussian noise.
    coarseness : int
        Σ (grid / noise sd)² over these, in these units.

    Examples
    --------
    >>> one = Amount.of(Cost(mechanism="gaussian", mu=0.5, answers=3))
    >>> one + one - one == one
    True
    >>> round((one + one).guarantee(1e-5).mu, 4)
    0.7071
    """

    gaussian: int = 0
    pure: int = 0
    pure_gaussian: int = 0
    answers: int = 0
    coarseness: int = 0

    @classmethod
    def of(cls, cost: Cost) -> Amount:
        """Return what one draw costs.

        Raises
        ------
        ValueError
            If its numbers are none that a draw can cost.
        """
        mu = checked_number(cost.mu, name="mu", least=0.0, below=math.inf)
        epsilon = checked_number(cost.epsilon, name="epsilon", least=0.0, below=math.inf)
        coarseness = checked_number(cost.coarseness, name="coarseness", least=0.0, below=math.inf)
        if mu == epsilon == 0 or cost.answers < 0:
            raise ValueError("a draw of noise that costs nothing protects nobody")
        as_gaussian = pure_mu(epsilon) if epsilon else 0.0
        return cls(
            gaussian=fixed(Fraction(mu) ** 2),
            pure=fixed(epsilon),
            pure_gaussian=fixed(Fraction(as_gaussian) ** 2),
            answers=cost.answers,
            coarseness=fixed(coarseness),
        )

    @classmethod
    def held(cls, budgets: Sequence[Budget]) -> Amount:
        """Return what is held for releases of some budgets (ε, δ), before they are designed."""
        total = cls()
        for epsilon, delta in budgets:
            checked_limit(epsilon, delta)
            if delta:
                mu = (1 - HELD_LESS) / exact_noise_multiplier(float(epsilon), float(delta))
                total += cls(gaussian=fixed(Fraction(mu) ** 2))
            else:
                total += cls.of(Cost(mechanism="held", epsilon=float(epsilon)))
        return total

    def __add__(self, other: Amount) -> Amount:
        return Amount(*(a + b for a, b in zip(self.parts, other.parts, strict=True)))

    def __sub__(self, other: Amount) -> Amount:
        return Amount(*(a - b for a, b in zip(self.parts, other.parts, strict=True)))

    @property
    def parts(self) -> tuple[int, int, int, int, int]:
        """All attributes, in order."""
        return self.gaussian, self.pure, self.pure_gaussian, self.answers, self.coarseness

    @property
    def numbers(self) -> dict[str, float | int]:
        """As float64, rounded up: what an entry of the ledger says of it."""
        return {
            "mu": root_up(self.gaussian),
            "pure_epsilon": round_up(Fraction(self.pure, 2**PLACES)),
            "pure_mu": root_up(self.pure_gaussian),
            "answers": self.answers,
            "coarseness": round_up(Fraction(self.coarseness, 2**PLACES)),
        }

    @classmethod
    def from_numbers(cls, numbers: Mapping[str, Any]) -> Amount:
        """Return the amount that an entry of the ledger says.

        Raises
        ------
        ValueError
            If it says none.
        """
        found = {
            name: checked_number(numbers[name], name=name, least=0.0, below=math.inf)
            for name in ("mu", "pure_epsilon", "pure_mu", "coarseness", "answers")
        }
        return cls(
            gaussian=fixed(Fraction(found["mu"]) ** 2),
            pure=fixed(found["pure_epsilon"]),
            pure_gaussian=fixed(Fraction(found["pure_mu"]) ** 2),
            answers=int(found["answers"]),
            coarseness=fixed(found["coarseness"]),
        )

    def largest(self, other: Amount) -> Amount:
        """Return the larger of two amounts, part by part."""
        return Amount(*(max(a, b) for a, b in zip(self.parts, other.parts, strict=True)))

    def delta_at(self, epsilon: float) -> float:
        """Return a δ at which all together hold at ε, rounded up."""
        return min(view.delta_at(epsilon) for view in self._views(0.5))

    def epsilon_at(self, delta: float) -> float:
        """Return an ε at which all together hold at δ, rounded up; infinite if there is none."""
        if self == Amount():
            return 0.0
        pure = round_up(Fraction(self.pure, 2**PLACES))
        if delta == 0:
            return math.inf if self.gaussian else pure
        found = []
        for view in self._views(delta):
            try:
                found.append(view.epsilon_at(delta))
            except ValueError:
                found.append(math.inf)
        return min(found)

    def fits(self, limit: Budget) -> bool:
        """Return whether all together keep within a limit (ε, δ)."""
        epsilon, delta = limit
        return self.delta_at(epsilon) <= delta

    def guarantee(self, delta: float) -> Guarantee:
        """Return all of it as Gaussian DP: true, and looser where parts need no δ."""
        total = self._as_gaussian(delta)
        return Guarantee(
            epsilon=total.epsilon_at(delta),
            delta=delta,
            mu=total.mu,
            answers=total.answers,
            coarseness=total.coarseness,
        )

    def _views(self, delta: float) -> list[Guarantee | MixedGuarantee]:
        if not self.pure:
            return [self._gaussian(delta)]
        epsilon = round_up(Fraction(self.pure, 2**PLACES))
        # Whatever is ε-DP is bounded as permute-and-flip is.
        mixed = MixedGuarantee(
            epsilon=math.inf,
            delta=delta,
            selection_epsilon=epsilon,
            mechanism="permute-and-flip",
            release=self._gaussian(delta),
        )
        return [mixed, self._as_gaussian(delta)]

    def _gaussian(self, delta: float) -> Guarantee:
        return self._of_mu(self.gaussian, delta=delta)

    def _as_gaussian(self, delta: float) -> Guarantee:
        return self._of_mu(self.gaussian + self.pure_gaussian, delta=delta)

    def _of_mu(self, squared: int, *, delta: float) -> Guarantee:
        return Guarantee(
            epsilon=math.inf,
            delta=delta,
            mu=root_up(squared),
            answers=self.answers,
            coarseness=round_up(Fraction(self.coarseness, 2**PLACES)),
        )


def root_up(squared: int) -> float:
    """Return the least float64 whose square is at least a number in units of 2⁻²⁰⁰.

    Examples
    --------
    >>> root_up(fixed(0.25))
    0.5
    """
    # A root of ⌈x⌉ with 200 more digits lies within 2⁻²⁰⁰ of that of x, and above.
    root = math.isqrt((squared << PLACES) - 1) + 1 if squared else 0
    return round_up(Fraction(root, 2**PLACES))


def releases_left(spent: Amount, each: Amount, *, limit: Budget) -> int:
    """Return how many more charges of one amount keep within a limit, one million at most.

    Parameters
    ----------
    spent, each : Amount
    limit : (float, float)

    Examples
    --------
    >>> half = Amount.of(Cost(mechanism="laplace", epsilon=0.5))
    >>> releases_left(half, half, limit=(2.0, 0.0))
    3
    """

    def fit(count: int) -> bool:
        return (spent + Amount(*(count * part for part in each.parts))).fits(limit)

    if not fit(1):
        return 0
    most = 1
    while most < MOST_RELEASES and fit(2 * most):
        most *= 2
    fewest, step = most, most
    while step > 1:
        step //= 2
        if fewest + step <= MOST_RELEASES and fit(fewest + step):
            fewest += step
    return min(fewest, MOST_RELEASES)
