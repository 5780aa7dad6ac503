r"""Composition of a private choice and the Gaussian release that was made with it.

Setting
-------
A choice x is drawn from P₁ under one data set and from Q₁ under a neighbour, with likelihood ratio
r(x) = Q₁(x)/P₁(x). Then a release is made that may depend on x. For every x it has the privacy
profile of μ-Gaussian DP up to the cost c of its grid: for every event A and every e^ε > 0,
P₂(A|x) ≤ e^ε Q₂(A|x) + δ_c(ε) + c, with δ_c(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ).

Bound
-----
For an event B of both, with its sections B_x,

    P(B) − e^ε Q(B) = Σ_x P₁(x) [P₂(B_x|x) − e^ε r(x) Q₂(B_x|x)]
                    ≤ Σ_x P₁(x) δ_c(ε + ln r(x)) + c.

As a function of r, δ_c(ε + ln r) is the largest over events of P(A) − e^ε r Q(A) for two normals:
a maximum of lines, so convex. r has mean 1 under P₁. A convex function of a variable on an interval
with a given mean is largest on average when the variable sits at the two ends. So if −ln r lies in
[lo, hi] for every x,

    δ(ε) ≤ p δ_c(ε − hi) + (1 − p) δ_c(ε − lo) + c,    p e^−hi + (1 − p) e^−lo = 1.

* ε_s-DP alone (permute-and-flip): [lo, hi] = [−ε_s, ε_s]. This is randomised response, of which
  every ε_s-DP mechanism is a processing (Kairouz, Oh and Viswanath 2015), so it cannot be improved
  without knowing more of the mechanism.
* ε_s-bounded range (exponential mechanism; Durfee and Rogers 2019): between any two neighbours
  [lo, hi] = [t − ε_s, t] for some t in [0, ε_s], generalised randomised response (Dong, Durfee and
  Rogers 2020). The largest δ over t is wanted; [0, ε_s] is cut into pieces, and each piece is
  bounded by the interval that holds all of its t.

Measurements without δ may have been added, ε_L-DP together. Their privacy loss is at most
ε_L whatever the rest is, so both together hold δ at ε + ε_L where the rest holds δ at ε, for any
real ε: basic composition.

Adaptive composition in this form, by pairs that dominate each step, is theorem 10 of Zhu, Dong and
Wang 2022. The result never exceeds basic composition's (ε + ε_s, δ).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import log_ndtr

from cloakgp.privacy.accounting import (
    Guarantee,
    discretisation_delta,
    exact_noise_multiplier,
    gaussian_delta,
    pure_mu,
)
from cloakgp.privacy.budgets import check_budget
from cloakgp.privacy.markup import ShownAsTable
from cloakgp.privacy.selection import NOISE_OF, SelectionMechanism
from cloakgp.utils.arrays import Array
from cloakgp.utils.bisection import bracket
from cloakgp.utils.formatting import ceiling

# Into how many pieces [0, ε_s] is cut for a bounded range.
PIECES = 64
# Relative margin on every computed bound, far above what float64 loses on the way to it.
ROUNDING = 2.0**-40
# Steps of bisection: ε is found to 1e-9 of its range.
BISECTIONS = 30


@dataclass(frozen=True)
class MixedGuarantee(ShownAsTable):
    """(ε, δ)-differential privacy of a private choice together with the release made with it.

    Attributes
    ----------
    epsilon, delta : float
        The pair that holds for both together.
    selection_epsilon : float
        Of the choice alone, with δ = 0.
    mechanism : {"permute-and-flip", "exponential"}
        How the choice was made.
    release : Guarantee
        Of the release alone, whatever was chosen.

    Examples
    --------
    >>> print(compose_with_selection(Guarantee(epsilon=1.0, delta=0.01, mu=0.5), 0.5))
    (1.313, 0.01)-differential privacy (release (1, 0.01), permute-and-flip 0.5)
    """

    epsilon: float
    delta: float
    selection_epsilon: float
    mechanism: SelectionMechanism
    release: Guarantee

    @property
    def mu(self) -> float:
        """A μ of Gaussian DP that both together keep; looser than the pair and its profile.

        ε_s-DP implies Gaussian DP (`pure_mu`), as that of every measurement without δ does, and μ²
        adds up (Dong, Roth and Su 2022, corollary 3.3).
        """
        parts = (*self.release.laplace, *self.release.pure)
        pure = [pure_mu(spent) for spent in (self.selection_epsilon, *parts)]
        return math.hypot(self.release.mu, *pure) * (1 + ROUNDING)

    def delta_at(self, epsilon: float) -> float:
        """Return a δ that is achieved at another ε, rounded up."""
        if not epsilon >= 0:
            raise ValueError(f"epsilon must be at least 0, got {epsilon}")
        # Of increasing ε, the grid's cost is largest at the largest.
        grid = discretisation_delta(
            epsilon + self.selection_epsilon + self._epsilon_of_parts,
            answers=self.release.answers,
            coarseness=self.release.coarseness,
        )
        worst = max(
            sum(
                share * _gaussian_profile(self.release.mu, epsilon - self._epsilon_of_parts - loss)
                for share, loss in pair
            )
            for pair in self._two_points
        )
        return min(1.0, (worst * (1 + ROUNDING) + grid) * (1 + ROUNDING))

    def epsilon_at(self, delta: float) -> float:
        """Return an ε that is achieved at another δ, rounded up.

        Raises
        ------
        ValueError
            If δ is outside (0, 1), or below what the grid of the noise costs.
        """
        if not 0 < delta < 1:
            raise ValueError(f"delta must lie strictly between 0 and 1, got {delta}")
        # The margins are for `delta_at`'s own, at the far end of basic composition.
        gaussian = replace(self.release, laplace=(), pure=())
        pure = self.selection_epsilon + self._epsilon_of_parts
        highest = (pure + gaussian.epsilon_at(delta * (1 - 4 * ROUNDING))) * (1 + ROUNDING)
        # Float64 finds the place and 80 digits confirm it; where they do not, they search.
        for search in (self._rough_delta_at, self.delta_at):
            found = _smallest(lambda epsilon: search(epsilon) <= delta, highest)  # noqa: B023
            if self.delta_at(found) <= delta:
                return found
        raise ValueError(f"delta = {delta} is too small for the grid on which noise was drawn")

    def __str__(self) -> str:
        whole, release = (
            f"({ceiling(one.epsilon, digits=4)}, {ceiling(one.delta, digits=4)})"
            for one in (self, self.release)
        )
        return (
            f"{whole}-differential privacy (release {release}, {self.mechanism} "
            f"{ceiling(self.selection_epsilon, digits=4)})"
        )

    @property
    def _epsilon_of_parts(self) -> float:
        """The increase of ε by measurements without δ, rounded up."""
        return self.release.epsilon_of_parts * (1 + ROUNDING)

    @cached_property
    def _two_points(self) -> tuple[tuple[tuple[float, float], tuple[float, float]], ...]:
        """For each interval of losses its ends, as pairs of a probability and a loss."""
        return tuple(_ends(lowest, highest) for lowest, highest in self._loss_intervals())

    def _rough_delta_at(self, epsilon: float) -> float:
        """Return an approximation of `delta_at`, a thousand times as fast."""
        shares, losses = np.moveaxis(np.array(self._two_points), -1, 0)
        profile = _rough_gaussian_profile(
            self.release.mu, epsilon - self._epsilon_of_parts - losses
        )
        return float((shares * profile).sum(axis=1).max())

    def _loss_intervals(self) -> list[tuple[float, float]]:
        """Intervals of the choice's privacy loss, one of which holds between any two neighbours."""
        spent = self.selection_epsilon
        if self.mechanism != "exponential":
            return [(-spent, spent)]
        cuts: Array = np.linspace(0.0, spent, PIECES + 1)
        return [(float(left) - spent, float(right)) for left, right in itertools.pairwise(cuts)]


@lru_cache(maxsize=256)
def compose_with_selection(
    guarantee: Guarantee,
    selection_epsilon: float,
    *,
    mechanism: SelectionMechanism = "permute-and-flip",
    delta: float | None = None,
) -> MixedGuarantee:
    """Return the joint guarantee of a private choice and the release made with it.

    The bound and its proof stand at the head of this module.

    Parameters
    ----------
    guarantee : Guarantee
        Of the release, and it must hold whatever had been chosen: see `worst_release`.
    selection_epsilon : float
        Of the choice; `cloakgp.privacy.selection.select` with this ε.
    mechanism : {"permute-and-flip", "exponential"}
        How the choice is made. The exponential mechanism composes better.
    delta : float, optional
        The δ at which to state the total; the release's own if not given.

    Returns
    -------
    MixedGuarantee

    Raises
    ------
    ValueError
        For an ε, a δ or a mechanism that does not make sense.

    Examples
    --------
    >>> release = Guarantee(epsilon=1.0, delta=0.01, mu=0.5325)
    >>> round(compose_with_selection(release, 1.0).epsilon, 2)
    1.93
    >>> round(compose_with_selection(release, 1.0, mechanism="exponential").epsilon, 2)
    1.5
    """
    check_budget(selection_epsilon, guarantee.delta if delta is None else delta)
    selection_epsilon = float(selection_epsilon)
    stated = float(guarantee.delta if delta is None else delta)
    if mechanism not in NOISE_OF:
        raise ValueError(
            f"mechanism must be 'permute-and-flip' or 'exponential', got {mechanism!r}"
        )
    total = MixedGuarantee(
        epsilon=math.inf,
        delta=stated,
        selection_epsilon=selection_epsilon,
        mechanism=mechanism,
        release=guarantee,
    )
    return MixedGuarantee(
        epsilon=total.epsilon_at(stated),
        delta=stated,
        selection_epsilon=selection_epsilon,
        mechanism=mechanism,
        release=guarantee,
    )


def worst_release(epsilon: float, delta: float, *, rows: int, answers: int) -> Guarantee:
    r"""Return a guarantee that every release of a budget keeps, for any chosen prior.

    A total must not depend on what was chosen: the choice is an outcome. Releases under one (ε, δ)
    differ in the number of their answers, and by some 1e-20 in μ.

    Argument. A release states (ε, δ) only if its δ_c(ε; μ) ≤ δ. δ_c grows with μ, so all their μ
    lie below any μ₀ with δ_c(ε; μ₀) > δ. No noise of theirs is drawn on a coarser grid than
    `least_scale` says. Whoever makes the release knows how many answers its schedule may publish
    (`cloakgp.fitting.worst_schedule`), and checks it against this.

    Parameters
    ----------
    epsilon, delta : float
        The budget of the release.
    rows : int
        N.
    answers : int
        The most noisy numbers that it publishes, counts and all stages together.

    Returns
    -------
    Guarantee

    Examples
    --------
    >>> print(worst_release(1.0, 0.01, rows=100, answers=300))
    (1, 0.01)-differential privacy (mu = 0.5326)
    """
    epsilon, delta = float(epsilon), float(delta)
    sigma = exact_noise_multiplier(epsilon, delta)
    mu, step = 1.0 / sigma, ROUNDING
    # The closed form is rounded up to one unit in the last place.
    while gaussian_delta(mu, epsilon) <= delta * (1 + 2.0**-50):
        mu *= 1.0 + step
        step *= 2.0
    return Guarantee(
        epsilon=epsilon,
        delta=delta,
        mu=mu,
        answers=answers,
        coarseness=answers / least_scale(sigma, rows=rows) ** 2,
    )


def least_scale(sigma: float, *, rows: int) -> float:
    """Return the least scale of Gaussian noise, in steps of its grid.

    It is 2⁴⁰ steps unless the answers outgrow 60 bits (`cloakgp.privacy.grid`). With columns of
    norm at most 1 and entries that move by d an answer is at most N d, so the noise is then at
    least 2⁵⁷ σ/(N + σ) steps. Parts of a budget have a larger σ, and more steps.

    Parameters
    ----------
    sigma : float
        Noise sd over sensitivity.
    rows : int
        N.

    Examples
    --------
    >>> least_scale(1.878, rows=100) == 2.0**39
    True
    """
    return min(2.0**39, 2.0**57 * sigma / (rows + sigma))


def _smallest(holds: Callable[[float], bool], highest: float) -> float:
    """Return about the smallest ε at which something holds, by bisection; at most the highest."""
    if holds(0.0):
        return 0.0
    return bracket(lambda epsilon: not holds(epsilon), 0.0, highest, steps=BISECTIONS)[1]


def _ends(lowest: float, highest: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return (p, hi) and (1 − p, lo) with p e^−hi + (1 − p) e^−lo = 1, for lo < 0 < hi."""
    span = -math.expm1(lowest - highest)
    rest = math.exp(lowest) * -math.expm1(-highest)
    return (-math.expm1(lowest) / span, highest), (rest / span, lowest)


def _gaussian_profile(mu: float, epsilon: float) -> float:
    """Return δ_c(ε) at any real ε; below zero by symmetry, δ_c(−ε) = 1 − e^−ε (1 − δ_c(ε))."""
    if epsilon >= 0:
        return gaussian_delta(mu, epsilon)
    return -math.expm1(epsilon) + math.exp(epsilon) * gaussian_delta(mu, -epsilon)


def _rough_gaussian_profile(mu: float, epsilon: Array) -> Array:
    """Return the same in float64, of any shape, without a bound on its error."""
    size = np.abs(epsilon)
    shift = size / mu if mu else np.full_like(size, np.inf)
    delta = np.exp(log_ndtr(mu / 2 - shift)) - np.exp(size + log_ndtr(-mu / 2 - shift))
    profile: Array = np.where(epsilon >= 0, delta, -np.expm1(-size) + np.exp(-size) * delta)
    return profile
