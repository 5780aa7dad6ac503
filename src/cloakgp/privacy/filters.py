r"""Privacy filters: limits that hold for any adaptive choice of prices.

Setting
-------
An account has a limit (ε, δ). Somebody asks one question after another about the same private
outputs. Each has a price, known before it is answered: μ_t of Gaussian noise, or the ε_t of a
mechanism that needs no δ (Laplace noise, a private choice). Questions *and prices* may depend on
all answers before, and so may the moment at which no more is asked. A *filter* is a rule that
accepts or refuses the next price by the prices before, such that all that was accepted is together
(ε, δ)-differentially private, whatever was asked (Rogers, Roth, Ullman and Vadhan 2016, *Privacy
odometers and filters*).

Adding up a guarantee and stopping where it crosses (ε, δ) is no filter, if both kinds of noise
occur: who buys Gaussian noise little by little, and changes to Laplace noise when the answers so
far happen to tell much, reaches up to ten times δ. It is right for prices that were fixed before
the first answer, and only for these.

Rule
----
Let P and Q be the laws of the whole conversation under two neighbours and L_t the privacy loss
ln dP/dQ after t questions. Three filters are fixed by the limit alone; a price is accepted if, with
it, the sums of all prices are within at least one of them.

1. *Gaussian*, at .7 δ. Σ μ_t² ≤ B², where every mechanism that needs no δ counts with the μ(ε_t) of
   Gaussian DP that it has, and B is the greatest with Φ(B/2 − ε/B) − e^ε Φ(−B/2 − ε/B) ≤ .699 δ;
   the rest is for the grid, below.
2. *Pure*, at no δ. Σ ε_t ≤ ε, and nothing Gaussian.
3. *Rényi*, at .3 δ. Σ ρ_t ≤ ρ, where ρ_t is the Rényi divergence of order α of question t, with α
   fixed by the limit and ρ = ε + (ln .3δ + ln(α − 1) − α ln(1 − 1/α))/(α − 1).

Proof, of each alone
--------------------
1. (Smith and Thakurta 2022, *Fully adaptive composition for Gaussian differential privacy*;
   Koskela, Tobaben and Honkela 2023, *Individual privacy accounting with Gaussian differential
   privacy*.) Let X_v ~ N(v/2, v) be the privacy loss of √v-Gaussian DP, and H(l, v) =
   E(1 − e^(ε − l − X_v))₊. If a mechanism is μ-Gaussian DP with loss Y, then E_P H(l + Y, v) is
   the hockey-stick divergence, at the level e^(ε − l), of that mechanism and a normal shifted by √v
   together. By composition of two (Dong, Roth and Su 2022, theorem 3.2) it is at most that of
   √(v + μ²)-Gaussian DP, which is H(l, v + μ²). So with what is left, v_t = B² − Σ_{i≤t} μ_i² ≥ 0,
   H(L_t, v_t) is a supermartingale under P, and H(l, v) ≥ H(l, 0) = (1 − e^(ε − l))₊ by Jensen.
   At the end, P(A) − e^ε Q(A) ≤ E_P(1 − e^(ε − L))₊ ≤ H(0, B²) = Φ(B/2 − ε/B) − e^ε Φ(−B/2 − ε/B).
2. |L| ≤ Σ ε_t ≤ ε on every path.
3. (Feldman and Zrnic 2021, *Individual privacy accounting via a Rényi filter*, theorem 3.1.) Given
   what was answered, E_P e^((α−1)Y) ≤ e^((α−1)ρ_t). So exp((α − 1)(L_t − Σ_{i≤t} ρ_i)) is a
   supermartingale under P that begins at 1, and at the end E_P e^((α−1)L) ≤ e^((α−1)ρ). For every
   real l, (1 − e^(ε − l))₊ ≤ c e^((α−1)(l − ε)) with c = (1 − 1/α)^α/(α − 1), so
   P(A) − e^ε Q(A) ≤ c e^((α−1)(ρ − ε)) = .3 δ (Canonne, Kamath and Steinke 2020, proposition 12).

Proof, of the three together
----------------------------
Sums only grow, so a conversation whose sums are within filter i at its end was within it all along,
and is one that filter i alone lets through. Let A be an event of the whole conversation, and A_i
that part of it where the sums at the end are within filter i and within none before i in the list.
The A_i are A in disjoint parts, and P(A_i) ≤ e^ε Q(A_i) + δ_i by the proof for i alone. Added up,
P(A) ≤ e^ε Q(A) + δ. Nothing else is used: neither which parts nor how many, only that each filter
was fixed beforehand and keeps what it accepted.

The first price
---------------
What is asked first, at what price, depends on no answer. So it may be settled *before the first
answer* that the first charge takes the limit whole, at all of δ, because what it holds fits none of
the filters. What it holds without δ is then fixed; the most that may be Gaussian beside that is a
number, too, and (ε, δ) holds by the first proof, begun with the loss of the coin below. It counts
for all that it held for ever, also where it draws less in the end, so that nothing more is accepted
after it: whether it stops early may depend on answers, and the rest of δ is not there twice. A
charge of which the filters accept what it holds never takes the limit whole later.

Curves
------
* ε-DP: no such mechanism tells more than a coin that shows the truth with probability e^ε/(1 + e^ε)
  (Kairouz, Oh and Viswanath 2015). So μ(ε) is `cloakgp.privacy.accounting.pure_mu`, and the Rényi
  divergence at most ln((e^(αε) + e^((1−α)ε))/(1 + e^ε))/(α − 1).
* Laplace noise tells at most what one Laplace variable of scale 1 and a shift of ε tell
  (`cloakgp.privacy.noise.laplace`). Of these two laws the Rényi divergence is
  ln((α e^((α−1)ε) + (α − 1) e^(−αε))/(2α − 1))/(α − 1) (Mironov 2017, proposition 6), and the least
  μ is 2Φ⁻¹(1 − e^(−ε/2)/2): tests at thresholds t are best, and such a test is one of normals that
  lie h(t) − h(t − ε) apart, h = Φ⁻¹ ∘ F. h'(x) is Mills' ratio at |h(x)|, up to a constant, which
  falls with |x|; so the difference is greatest for the threshold in the middle, t = ε/2.
* Gaussian noise: αμ²/2, for the discrete Gaussian too (Canonne, Kamath and Steinke 2020,
  proposition 5). Being discrete costs nothing in the third filter. In the first,
  `discretisation_delta` of all answers together must be within .001 δ: its proof multiplies ratios
  of one answer after another, and holds for sums that are bounded on every path.

Changing a limit
----------------
The filters of the new limit take the place of those of the old one, and all that was ever spent
counts within them. So everything together keeps the last limit within which something was accepted,
with no further δ for the earlier ones, **if limits are changed for reasons that do not lie in the
answers**: nobody can check that, so whoever changes one gives a reason, which is written down.

What is not shown as spent
--------------------------
The sums so far, stated as an (ε, δ) "spent so far", are no guarantee for whoever stops because of
an answer. What holds at every moment is the limit. So what is *used* is told as a
share of the limit: of the filter that has most room left.

OpenDP's filters (`make_privacy_filter` over `make_fully_adaptive_composition`) add up ε, or
zero-concentrated DP, one measure for all questions. Within (2, 1e-5) the latter leaves room for 36
Gaussian releases of (.3, 1e-6), or for 5 with Laplace noise at .2: this rule for 40, or 10.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache, reduce
from numbers import Real
from typing import Any

from scipy.special import ndtri_exp

from cloakgp.privacy.accounting import (
    ROUNDING,
    Guarantee,
    discretisation_delta,
    exact_noise_multiplier,
    pure_mu,
)
from cloakgp.privacy.budgets import LARGEST_EPSILON, SMALLEST_DELTA, SMALLEST_EPSILON
from cloakgp.privacy.composition import MixedGuarantee
from cloakgp.privacy.noise import NOISES
from cloakgp.privacy.rounding import decimal, round_up, round_up_decimal
from cloakgp.privacy.spending import GAUSSIAN, LAPLACE, Budget, Cost
from cloakgp.utils.names import NoiseChoice
from cloakgp.utils.precision import many_digits

# Sums are whole numbers of one over this, each part rounded up when it is added: so taking back a
# part that was never drawn gives exactly what was there before, and both the squares of float64
# numbers and decimal numbers are exact. Rényi divergences are no such numbers: fewer digits do.
UNITS, RENYI_UNITS = 2**200 * 5**60, 2**100
# The orders at which Rényi divergences are kept.
ORDERS = tuple(1.0 + 2.0 ** (half / 2) for half in range(-2, 33))
# Shares of δ: of the Gaussian filter with its grid, of the grid in that, of the Rényi filter.
GAUSSIAN_SHARE, GRID_SHARE, RENYI_SHARE = 0.7, 0.001, 0.3
# Of the grid, where one charge that draws several times takes all.
GRID_OF_WHOLE = 2.0**-30
# α − 1 is this times ln(1/δ)/ε: a little more than is best for Gaussian noise alone, for mixtures.
ORDER_FACTOR = 2.25
# What is held for a Gaussian release is less by this share of μ than its budget allows, so that
# what drawing on a grid costs on top has room.
HELD_LESS = 2.0**-30
# More releases than that are not counted; nor are more ways in which their noises may be drawn.
MOST_RELEASES = 10**6
MOST_WAYS = 256
# A limit beyond this protects nobody.
LARGEST_LIMIT = 1000.0


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
    """Return a valid limit, or budget of one release; δ may be 0, for noise that needs none.

    Raises
    ------
    ValueError
        For what is no such pair, or so large or small that it means nothing.

    Examples
    --------
    >>> checked_limit(1, 1e-5)
    (1.0, 1e-05)
    """
    found = checked_number(epsilon, name="epsilon", least=0.0, below=math.inf)
    if not SMALLEST_EPSILON <= found <= LARGEST_LIMIT:
        raise ValueError(
            f"epsilon must be positive, at least {SMALLEST_EPSILON:g} and at most "
            f"{LARGEST_LIMIT:g}, got {found:g}: 1 is a usual choice"
        )
    share = checked_number(delta, name="delta", least=0.0, below=1.0)
    if 0 < share < SMALLEST_DELTA:
        raise ValueError(
            f"delta must be 0 or at least {SMALLEST_DELTA:g}, got {share:g}: take 0 for no δ at all"
        )
    return found, share


def fixed(exact: Fraction | float) -> int:
    """Return a number that is not negative in units of sums, rounded up.

    Examples
    --------
    >>> fixed(0.5) * 2 == fixed(decimal(0.2)) * 5 == UNITS
    True
    """
    return math.ceil(Fraction(exact) * UNITS)


def root_up(squared: int) -> float:
    """Return the least float64 with a square of at least a number in units of sums.

    Examples
    --------
    >>> root_up(fixed(0.25))
    0.5
    """
    # A root of ⌈x⌉ with as many more digits lies within one unit of that of x, and above.
    root = math.isqrt(squared * UNITS - 1) + 1 if squared else 0
    return round_up(Fraction(root, UNITS))


def laplace_mu(epsilon: float) -> float:
    """Return a μ of Gaussian DP that Laplace noise has, 2Φ⁻¹(1 − e^(−ε/2)/2), rounded up.

    The argument stands at the head of this module.

    Examples
    --------
    >>> round(laplace_mu(1.0), 4), laplace_mu(1.0) < pure_mu(1.0)
    (1.0301, True)
    """
    tail = -(epsilon * (1 + ROUNDING)) / 2 - math.log(2.0)
    # For a small ε the root is near 0, where its error is absolute.
    return min(-2.0 * float(ndtri_exp(tail)) * (1 + ROUNDING) + 2.0**-48, pure_mu(epsilon))


@lru_cache(maxsize=4096)
def renyi_divergences(epsilon: float, *, laplace: bool) -> tuple[int, ...]:
    """Return the Rényi divergences of a mechanism without δ at all `ORDERS`, rounded up.

    Parameters
    ----------
    epsilon : float
    laplace : bool
        Whether it is Laplace noise; of any ε-DP mechanism otherwise.

    Returns
    -------
    tuple of int
        In units of 2⁻¹⁰⁰.

    Examples
    --------
    >>> coin = renyi_divergences(1.0, laplace=False)
    >>> noise = renyi_divergences(1.0, laplace=True)
    >>> all(0 < one < other <= RENYI_UNITS for one, other in zip(noise, coin))
    True
    """
    found = []
    with many_digits() as exact:
        # Laplace noise on a grid is that of a share more (`cloakgp.privacy.noise.laplace`).
        drawn = exact.mpf(epsilon) * (1 + exact.mpf(ROUNDING))
        for order in map(exact.mpf, ORDERS):
            if laplace:
                ratio = (
                    order * exact.exp((order - 1) * drawn) + (order - 1) * exact.exp(-order * drawn)
                ) / (2 * order - 1)
            else:
                ratio = (exact.exp(order * drawn) + exact.exp((1 - order) * drawn)) / (
                    1 + exact.exp(drawn)
                )
            divergence = exact.log(ratio) / (order - 1)
            # One more, for what 80 digits may lose.
            units = int(exact.ceil(divergence * RENYI_UNITS)) + 1
            found.append(min(units, math.ceil(decimal(epsilon) * RENYI_UNITS)))
    return tuple(found)


@dataclass(frozen=True)
class Amount:
    """Exact sums of the costs of some charges.

    Attributes
    ----------
    gaussian : int
        Σ μ² of Gaussian parts, in units of `UNITS`, as all the others but ``answers``.
    laplace, pure : int
        Σ ε of parts with Laplace noise, and of others that need no δ.
    as_gaussian : int
        Σ μ(ε)² of the two.
    answers : int
        How many numbers with Gaussian noise.
    coarseness : int
        Σ (grid / noise sd)² over these.
    renyi : tuple of int
        Σ of the Rényi divergences of parts without δ, at all `ORDERS`, in units of 2⁻¹⁰⁰.

    Examples
    --------
    >>> one = Amount.of(Cost(mechanism="gaussian", mu=0.5, answers=3))
    >>> one + one - one == one
    True
    >>> round((one + one).numbers["mu"], 4)
    0.7071
    """

    gaussian: int = 0
    laplace: int = 0
    pure: int = 0
    as_gaussian: int = 0
    answers: int = 0
    coarseness: int = 0
    renyi: tuple[int, ...] = (0,) * len(ORDERS)

    @classmethod
    def of(cls, cost: Cost) -> Amount:
        """Return the cost of one draw.

        Raises
        ------
        ValueError
            If its numbers are none that a draw can cost.
        """
        mu = checked_number(cost.mu, name="mu", least=0.0, below=math.inf)
        epsilon = checked_number(cost.epsilon, name="epsilon", least=0.0, below=math.inf)
        coarseness = checked_number(cost.coarseness, name="coarseness", least=0.0, below=math.inf)
        if mu == epsilon == 0 or cost.answers < 0:
            raise ValueError("a draw of noise that costs nothing protects no one")
        if max(mu, epsilon) > LARGEST_EPSILON:
            raise ValueError("a draw of noise at such a price protects no one")
        laplace = _is_laplace(cost)
        total = cls(
            gaussian=fixed(Fraction(mu) ** 2),
            answers=cost.answers,
            coarseness=fixed(coarseness),
        )
        if not epsilon:
            return total
        mu_of_pure = laplace_mu(epsilon) if laplace else pure_mu(epsilon)
        return total + cls(
            laplace=fixed(decimal(epsilon)) if laplace else 0,
            pure=0 if laplace else fixed(decimal(epsilon)),
            as_gaussian=fixed(Fraction(mu_of_pure) ** 2),
            renyi=renyi_divergences(epsilon, laplace=laplace),
        )

    @classmethod
    def to_hold(cls, budgets: Iterable[Cost | Budget]) -> Amount:
        """Return the hold for budgets (ε, δ), or known costs, before they are drawn."""
        return sum((cls.of(_held_cost(one)) for one in budgets), start=cls())

    @classmethod
    def of_guarantee(cls, guarantee: Guarantee | MixedGuarantee) -> Amount:
        """Return the costs of a release, part by part, from its guarantee."""
        return sum((cls.of(cost) for cost in costs_of_guarantee(guarantee)), start=cls())

    def __add__(self, other: Amount) -> Amount:
        return Amount.from_parts([a + b for a, b in zip(self.parts, other.parts, strict=True)])

    def __sub__(self, other: Amount) -> Amount:
        return Amount.from_parts([a - b for a, b in zip(self.parts, other.parts, strict=True)])

    def times(self, count: int) -> Amount:
        """Return a multiple of the amount."""
        return Amount.from_parts([count * part for part in self.parts])

    def largest(self, other: Amount) -> Amount:
        """Return the larger of two amounts, part by part."""
        return Amount.from_parts([max(a, b) for a, b in zip(self.parts, other.parts, strict=True)])

    def covers_pure(self, other: Amount) -> bool:
        """Return whether parts of another that need no δ cost no more than those of this."""
        return (
            self.laplace + self.pure >= other.laplace + other.pure
            and self.as_gaussian >= other.as_gaussian
        )

    @property
    def parts(self) -> tuple[int, ...]:
        """All attributes, in order."""
        return (
            *(self.gaussian, self.laplace, self.pure, self.as_gaussian),
            *(self.answers, self.coarseness, *self.renyi),
        )

    @classmethod
    def from_parts(cls, parts: Sequence[int]) -> Amount:
        """Return the amount that has these parts."""
        gaussian, laplace, pure, as_gaussian, answers, coarseness, *renyi = parts
        return cls(gaussian, laplace, pure, as_gaussian, answers, coarseness, tuple(renyi))

    @property
    def numbers(self) -> dict[str, float | int]:
        """The sums as float64, rounded up, for an entry of the ledger."""
        return {
            "mu": root_up(self.gaussian),
            "laplace_epsilon": _rounded(self.laplace),
            "pure_epsilon": _rounded(self.pure),
            "answers": self.answers,
            "coarseness": _rounded(self.coarseness),
        }

    @property
    def costs(self) -> tuple[Cost, ...]:
        """Costs of draws, one for each kind of noise, that together are no less."""
        return _costs_of_numbers(self.numbers)

    @classmethod
    def from_numbers(cls, numbers: Mapping[str, Any]) -> Amount:
        """Return the amount of an entry of the ledger.

        Several parts of a kind count as one of their sum, which is never less: no curve of this
        module grows slower than its ε.

        Raises
        ------
        ValueError
            If it says none.
        """
        return sum(map(cls.of, _costs_of_numbers(numbers)), start=cls())

    def delta_at(self, epsilon: float) -> float:
        """Return a δ at which all holds at ε if prices were fixed beforehand, rounded up."""
        return min(view.delta_at(epsilon) for view in self._views(0.5))

    def epsilon_at(self, delta: float) -> float:
        """Return an ε at which all holds at δ if prices were fixed beforehand, rounded up.

        Infinite if there is none.
        """
        if self == Amount():
            return 0.0
        if delta == 0:
            return math.inf if self.gaussian else _rounded(self.laplace + self.pure)
        found = []
        for view in self._views(delta):
            try:
                found.append(view.epsilon_at(delta))
            except ValueError:
                found.append(math.inf)
        return min(found)

    def _views(self, delta: float) -> list[Guarantee | MixedGuarantee]:
        gaussian = self._of_mu(self.gaussian, delta=delta)
        if not self.laplace + self.pure:
            return [gaussian]
        # Whatever is ε-DP is bounded as permute-and-flip is.
        mixed = MixedGuarantee(
            epsilon=math.inf,
            delta=delta,
            selection_epsilon=_rounded(self.laplace + self.pure),
            mechanism="permute-and-flip",
            release=gaussian,
        )
        return [mixed, self._of_mu(self.gaussian + self.as_gaussian, delta=delta)]

    def _of_mu(self, squared: int, *, delta: float) -> Guarantee:
        return Guarantee(
            epsilon=math.inf,
            delta=delta,
            mu=root_up(squared),
            answers=self.answers,
            coarseness=_rounded(self.coarseness),
        )


@dataclass(frozen=True)
class PrivacyFilter:
    """The rule of one limit; rule, proofs and assumptions stand at the head of this module.

    Attributes
    ----------
    epsilon, delta : float
        The limit.

    Examples
    --------
    >>> rule = filter_of((2.0, 1e-5))
    >>> each = Amount.to_hold([(0.3, 1e-6)])
    >>> rule.accepts(each.times(40)), rule.accepts(each.times(41))
    (True, False)
    """

    epsilon: float
    delta: float

    @cached_property
    def gaussian_cap(self) -> int:
        """B², rounded down."""
        if not self.delta:
            return 0
        share = (GAUSSIAN_SHARE - GRID_SHARE) * self.delta
        # 80 digits have confirmed that δ of this very number is at most its share.
        mu = 1.0 / exact_noise_multiplier(self.epsilon, share)
        return math.floor(Fraction(mu) ** 2 * UNITS)

    @cached_property
    def order(self) -> int:
        """The place of α among `ORDERS`."""
        if not self.delta:
            return 0
        wanted = ORDER_FACTOR * -math.log(RENYI_SHARE * self.delta) / self.epsilon
        distances = [abs(math.log((order - 1) / wanted)) for order in ORDERS]
        return distances.index(min(distances))

    @cached_property
    def renyi_cap(self) -> int:
        """ρ, rounded down; 0 where no answer fits at this order."""
        if not self.delta:
            return 0
        with many_digits() as exact:
            order = exact.mpf(ORDERS[self.order])
            share = exact.mpf(RENYI_SHARE) * exact.mpf(self.delta)
            extra = exact.log(share) + exact.log(order - 1) - order * exact.log1p(-1 / order)
            cap = exact.mpf(self.epsilon) + extra / (order - 1)
            # One less, for what 80 digits may lose.
            return max(0, int(exact.floor(cap * RENYI_UNITS)) - 1)

    def accepts(self, total: Amount) -> bool:
        """Return whether all prices together are within at least one of the three filters."""
        return min(self._used(total)) <= 1

    def used(self, total: Amount) -> float:
        """Return the share of the limit that sums use: of the filter with most room, rounded up.

        Above 1 where they are beyond it.
        """
        least = min(self._used(total))
        return math.inf if least == math.inf else round_up(Fraction(least))

    def takes_whole(self, total: Amount, *, draws: int = 1) -> bool:
        """Return whether one charge may take the limit for itself.

        Parameters
        ----------
        total : Amount
            With what it holds without δ, which is fixed before its first answer.
        draws : int
            How often it has drawn noise.
        """
        if draws <= 1 or not total.gaussian:
            return total.delta_at(self.epsilon) <= self.delta
        # How fine the grids of later draws are may depend on answers: they have their own share.
        ideal = replace(total, answers=0, coarseness=0)
        kept = (1 - GRID_OF_WHOLE) * self.delta
        return self._grid(total) <= GRID_OF_WHOLE * self.delta and (
            ideal.delta_at(self.epsilon) <= kept
        )

    def _grid(self, total: Amount) -> float:
        """Return the cost of the grids in δ, beside mechanisms that need none."""
        pure = _rounded(total.laplace + total.pure)
        return discretisation_delta(
            self.epsilon + pure, answers=total.answers, coarseness=_rounded(total.coarseness)
        )

    def _used(self, total: Amount) -> list[Fraction | float]:
        """Return the used share of each filter."""
        spent = total.gaussian + total.as_gaussian
        fine = not total.gaussian or self._grid(total) <= GRID_SHARE * self.delta
        gaussian = Fraction(ORDERS[self.order]) * total.gaussian * RENYI_UNITS / (2 * UNITS)
        divergence = math.ceil(gaussian) + total.renyi[self.order]
        pure = total.laplace + total.pure
        return [
            _share(spent, self.gaussian_cap) if fine else math.inf,
            math.inf if total.gaussian else _share(pure, fixed(decimal(self.epsilon))),
            _share(divergence, self.renyi_cap),
        ]


@lru_cache(maxsize=256)
def filter_of(limit: Budget) -> PrivacyFilter:
    """Return the filter of a limit (ε, δ)."""
    return PrivacyFilter(*limit)


# What one release costs, by each of the noises that it may draw: one of them is drawn.
Costs = tuple[Amount, ...]


def costs_of_guarantee(guarantee: Guarantee | MixedGuarantee) -> list[Cost]:
    """Return the costs of a release, from its guarantee.

    Examples
    --------
    >>> costs_of_guarantee(Guarantee(epsilon=1.0, delta=0.0, mu=0.0, laplace=(0.4, 0.6)))[1].epsilon
    0.6
    """
    if isinstance(guarantee, MixedGuarantee):
        chosen = Cost(mechanism=guarantee.mechanism, epsilon=guarantee.selection_epsilon)
        return [chosen, *costs_of_guarantee(guarantee.release)]
    costs = [Cost(mechanism=LAPLACE, epsilon=part) for part in guarantee.laplace]
    costs += [Cost(mechanism="any", epsilon=part) for part in guarantee.pure]
    if guarantee.mu:
        mu, answers, coarseness = guarantee.mu, guarantee.answers, guarantee.coarseness
        costs.append(Cost(GAUSSIAN, mu=mu, answers=answers, coarseness=coarseness))
    return costs


def _costs_of_numbers(numbers: Mapping[str, Any]) -> tuple[Cost, ...]:
    mu, laplace, pure, coarseness, answers = (
        checked_number(numbers[name], name=name, least=0.0, below=math.inf)
        for name in ("mu", "laplace_epsilon", "pure_epsilon", "coarseness", "answers")
    )
    costs = (
        Cost(GAUSSIAN, mu=mu, answers=int(answers), coarseness=coarseness),
        Cost(LAPLACE, epsilon=laplace),
        Cost("any", epsilon=pure),
    )
    return tuple(one for one in costs if one.mu or one.epsilon)


def costs_of_release(epsilon: float, delta: float, *, noise: NoiseChoice = "auto") -> Costs:
    """Return the largest cost of a release of a budget, for each possible noise.

    Parameters
    ----------
    epsilon, delta : float
    noise : str
        A noise's name, or "auto" for all that the budget allows.

    Raises
    ------
    ValueError
        If the budget is too large or too small to mean anything.

    Examples
    --------
    >>> [bool(cost.gaussian) for cost in costs_of_release(1.0, 1e-6)]
    [True, False]
    >>> len(costs_of_release(1.0, 0.0)), len(costs_of_release(1.0, 1e-6, noise="gaussian"))
    (1, 1)
    """
    epsilon, delta = checked_limit(epsilon, delta)
    allowed = [law for law in NOISES.values() if delta or not law.needs_delta]
    named = [law for law in allowed if noise in ("auto", law.name)]
    return tuple(Amount.of(law.cost(epsilon, delta)) for law in named or allowed)


def has_room(spent: Amount, pending: Sequence[Costs], *, limit: Budget) -> bool:
    """Return whether a limit has room for releases, whichever of its noises each of them draws.

    Parameters
    ----------
    spent : Amount
    pending : sequence of Costs
        Of all releases that may still draw.
    limit : (float, float)

    Examples
    --------
    The first may take all; after it, nothing fits:

    >>> one, limit = costs_of_release(1.0, 1e-6), (1.0, 1e-6)
    >>> has_room(Amount(), [one], limit=limit), has_room(Amount(), [one] * 2, limit=limit)
    (True, False)
    """
    rule = filter_of(limit)
    if spent == Amount() and len(pending) == 1:
        return all(rule.accepts(cost) or rule.takes_whole(cost) for cost in pending[0])
    return all(rule.accepts(total) for total in _totals(spent, pending))


def used_by(spent: Amount, pending: Sequence[Costs], *, limit: Budget) -> float:
    """Return the share of a limit that is used if pending releases draw the dearest noise, to 1."""
    rule = filter_of(limit)
    return min(1.0, max(rule.used(total) for total in _totals(spent, pending)))


def releases_left(
    spent: Amount, costs: Costs, *, limit: Budget, pending: Sequence[Costs] = ()
) -> int:
    """Return the number of further releases of one kind within a limit, at most one million.

    Parameters
    ----------
    spent : Amount
    costs : Costs
        Of each.
    limit : (float, float)
    pending : sequence of Costs
        Of others that may still draw.

    Examples
    --------
    >>> half = costs_of_release(0.5, 0.0)
    >>> releases_left(half[0], half, limit=(2.0, 0.0))
    3
    """

    def fit(count: int) -> bool:
        return has_room(spent, [*pending, *[costs] * count], limit=limit)

    if not fit(1):
        return 0
    most = 1
    while 2 * most <= MOST_RELEASES and fit(2 * most):
        most *= 2
    counts = range(most, min(2 * most, MOST_RELEASES + 1))
    # The first of them fits.
    return counts[bisect(counts, False, key=lambda count: not fit(count)) - 1]


def _totals(spent: Amount, pending: Sequence[Costs]) -> list[Amount]:
    """Return the possible total spending, for each way in which noises may be drawn.

    Where these are too many, an amount that is at least as large as any of them.
    """
    kinds = Counter(pending)
    ways = math.prod(math.comb(count + len(kind) - 1, count) for kind, count in kinds.items())
    if ways > MOST_WAYS:
        largest = [reduce(Amount.largest, kind).times(count) for kind, count in kinds.items()]
        return [sum(largest, start=spent)]
    totals = [spent]
    for kind, count in kinds.items():
        chosen = [_sum_of(kind, counts) for counts in _splits(count, len(kind))]
        totals = [total + more for total in totals for more in chosen]
    return totals


def _splits(count: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Return all splits of a number of releases over a number of noises."""
    if parts == 1:
        yield (count,)
        return
    for first in range(count + 1):
        for rest in _splits(count - first, parts - 1):
            yield first, *rest


def _sum_of(kind: Costs, counts: Sequence[int]) -> Amount:
    each = (cost.times(count) for cost, count in zip(kind, counts, strict=True))
    return sum(each, start=Amount())


def _is_laplace(cost: Cost) -> bool:
    """Whether the law that costs this states its ε as one of Laplace noise."""
    law = NOISES.get(cost.mechanism)
    return law is not None and not law.needs_delta and bool(law.whole(cost.epsilon, 0.0).laplace)


def _held_cost(budget: Cost | Budget) -> Cost:
    if isinstance(budget, Cost):
        return budget
    epsilon, delta = checked_limit(*budget)
    if not delta:
        return Cost(mechanism="any", epsilon=epsilon)
    return Cost(mechanism=GAUSSIAN, mu=(1 - HELD_LESS) / exact_noise_multiplier(epsilon, delta))


def _rounded(units: int) -> float:
    return round_up_decimal(Fraction(units, UNITS))


def _share(spent: int, cap: int) -> Fraction | float:
    if not spent:
        return Fraction(0)
    return Fraction(spent, cap) if cap else math.inf
