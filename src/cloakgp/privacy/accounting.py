r"""Accounting: (ε, δ) ↔ noise multiplier σ ↔ μ of Gaussian differential privacy.

Neighbours, everywhere in this package, are two data sets that differ in the output of one privacy
unit, by any amount within the declared bounds; inputs are public and equal. Only
`cloakgp.privacy.statistics` protects more: whole rows, inputs and output.

Theorem used (Balle and Wang 2018, *Improving the Gaussian mechanism*, theorem 8): adding normal
noise of sd s to a function of ℓ2-sensitivity Δ is (ε, δ)-DP **if and only if** δ is at least

    δ(ε; μ) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ),   μ = Δ/s = 1/σ.

This is the trade-off curve of μ-Gaussian DP, and several Gaussian releases about the same people,
each possibly chosen after seeing the ones before, at prices μ_i that were fixed beforehand, are
together exactly √(Σ μ_i²)-Gaussian DP (Dong, Roth and Su 2022, *Gaussian differential privacy*,
corollary 3.3). Prices that are chosen by answers are for `cloakgp.privacy.filters`.

The noise drawn is the discrete Gaussian on a fine grid, not the normal: what that costs is proved
at `discretisation_delta` and counted in every guarantee. Laplace noise needs no δ: see
`cloakgp.privacy.noise.laplace`; with it, a guarantee holds a list of what each measurement spent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy.special import ndtri_exp

from cloakgp.privacy.budgets import check_budget, check_pair
from cloakgp.privacy.markup import ShownAsTable
from cloakgp.privacy.privacy_loss import coin_delta, coin_epsilon, mixed_delta, mixed_epsilon
from cloakgp.utils.formatting import ceiling
from cloakgp.utils.precision import many_digits

Calibration = Literal["exact", "papers"]

# Relative step by which a calibrated σ is rounded up, until the closed form confirms it.
ROUNDING = 2.0**-40


@lru_cache(maxsize=1024)
def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the δ of μ-Gaussian DP at ε, in float64, rounded up.

    Evaluated with 80 digits from the closed form (Balle and Wang 2018, theorem 8): a difference of
    two numbers that can agree in the first forty, so float64 cannot check it.

    Parameters
    ----------
    mu, epsilon : float
        At least zero.

    Examples
    --------
    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    if mu == 0:
        return 0.0
    with many_digits() as exact:
        exact_mu, exact_epsilon = exact.mpf(float(mu)), exact.mpf(float(epsilon))
        shift = exact_epsilon / exact_mu
        delta = exact.ncdf(exact_mu / 2 - shift) - exact.exp(exact_epsilon) * exact.ncdf(
            -exact_mu / 2 - shift
        )
        return max(0.0, math.nextafter(float(delta), math.inf))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the ε of μ-Gaussian DP at δ, rounded up until the closed form confirms it.

    Examples
    --------
    >>> round(gaussian_epsilon(1.0, 0.126937), 4)
    1.0
    """
    return _smallest_epsilon(mu, delta, lambda epsilon: gaussian_delta(mu, epsilon))


def pure_mu(epsilon: float) -> float:
    """Return a μ of Gaussian DP that follows from ε-DP, Φ(μ/2) = e^ε/(1 + e^ε), rounded up.

    The trade-off curve of ε-DP is two chords from the axes to the diagonal. The curve of this μ is
    convex, has the same ends and meets the diagonal there, so it lies below them (Dong, Roth and Su
    2022, definitions 2.1 and 2.6, proposition 2.5).

    Examples
    --------
    >>> round(pure_mu(1.0), 4)
    1.232
    """
    tail = -float(np.logaddexp(0.0, epsilon))
    # For a small ε the root is near 0, where its error is absolute.
    return -2.0 * float(ndtri_exp(tail)) * (1 + ROUNDING) + 2.0**-48


@lru_cache(maxsize=256)
def exact_noise_multiplier(epsilon: float, delta: float) -> float:
    """Return the least σ for which unit-sensitivity normal noise is (ε, δ)-DP, rounded up.

    From dp-accounting's root finder, then raised until the 80-digit closed form confirms it.

    Examples
    --------
    >>> round(exact_noise_multiplier(1.0, 0.01), 3)
    1.878
    """
    from dp_accounting import get_sigma_gaussian

    check_budget(epsilon, delta, part=True)
    epsilon, delta = float(epsilon), float(delta)
    with np.errstate(divide="ignore"):
        sigma = float(get_sigma_gaussian(epsilon, delta))
    step = ROUNDING
    while gaussian_delta(1.0 / sigma, epsilon) > delta:
        sigma *= 1.0 + step
        step *= 2.0
    return sigma


def papers_noise_multiplier(epsilon: float, delta: float) -> float:
    """Return the papers' σ = √(2 ln(2/δ)) / ε (Hall et al. 2013, proposition 3).

    Raises
    ------
    ValueError
        For ε > 1, where the proof does not hold: at δ = 0.01 and ε = 10 it would give δ = 0.0245,
        and at ε = 50 no privacy at all.

    Examples
    --------
    >>> round(papers_noise_multiplier(1.0, 0.01), 3)
    3.255
    """
    check_budget(epsilon, delta)
    epsilon, delta = float(epsilon), float(delta)
    if epsilon > 1:
        raise ValueError(
            f"the papers' calibration is proved for epsilon at most 1, got {epsilon}: "
            "use calibration='exact'"
        )
    return math.sqrt(2.0 * math.log(2.0 / delta)) / epsilon


def discretisation_delta(epsilon: float, *, answers: int, coarseness: float) -> float:
    r"""Bound the increase of δ at ε by rounding to a grid and discrete noise.

    Setting
    -------
    A release rounds its k answers to integers x (in units of its grid) and adds to each an
    independent discrete Gaussian of parameter τ, p(t) ∝ exp(−t²/2τ²) on the integers (Canonne,
    Kamath and Steinke 2020). Compare with q, the law of a normal of sd τ rounded to the nearest
    integer: x + round(τz) = round(x + τz) is post-processing of the Gaussian mechanism on x, so it
    has the guarantee of that one, δ_c(ε). Neighbouring integer vectors x, x' are at most the
    sensitivity apart: it is measured on the rounded answers.

    Proof
    -----
    Write φ for the normal density of sd τ, Z = Σ_t exp(−t²/2τ²), and η₁ = 1/24τ².

    1. p ≤ e^η₁ q. By Poisson summation Z ≥ τ√(2π), so p ≤ φ on the integers; and q(t)/φ(t) =
       ∫ exp(−(2tu + u²)/2τ²) du over |u| ≤ ½, at least exp(−1/24τ²) by Jensen.
    2. q(t) ≤ e^η₂ p(t) for |t| ≤ Tτ, with η₂ = (T² + 1)/8τ², τ ≥ 1. From the same integral and
       cosh a ≤ exp(a²/2), q/φ ≤ exp(T²/8τ²); and φ/p = Z/τ√(2π) ≤ 1 + 3 exp(−2π²τ²) ≤ exp(1/8τ²).
    3. Under q some coordinate exceeds Tτ with probability at most k exp(−(T − 1)²/2).
    4. So for every event A, over all k coordinates, with ε' = ε − k(η₁ + η₂):
       P(A) ≤ e^{kη₁} Q(A) ≤ e^{kη₁} (e^{ε'} Q'(A) + δ_c(ε'))
       ≤ e^ε P'(A) + e^{kη₁} δ_c(ε') + k e^{ε − (T−1)²/2}.
    5. |dδ_c/dε| = e^ε Φ(−μ/2 − ε/μ) ≤ 1, hence δ_c(ε') ≤ δ_c(ε) + k(η₁ + η₂). While kη₁ ≤ 1/24 the
       total exceeds δ_c(ε) by at most k(4η₁ + 2η₂) + k e^{ε − (T−1)²/2}.

    T = 1 + √(2(ε + 100)) makes the last term k e⁻¹⁰⁰. Several releases, adaptively chosen, multiply
    their ratios: k/τ² becomes Σ k_i/τ_i² and k becomes Σ k_i.

    Parameters
    ----------
    epsilon : float
    answers : int
        k, summed over releases.
    coarseness : float
        k/τ², summed over releases.

    Returns
    -------
    float
        1 if the grid is too coarse for the proof, or its coarseness is no sum of squares.

    Examples
    --------
    >>> discretisation_delta(1.0, answers=20, coarseness=20 * 2.0**-80) < 1e-20
    True
    """
    if answers == 0 and coarseness == 0:
        return 0.0
    if not 0 <= coarseness <= 1:
        return 1.0
    reach = 1.0 + math.sqrt(2.0 * (epsilon + 100.0))
    bulk = coarseness * (1.0 / 6.0 + (reach**2 + 1.0) / 4.0)
    return (bulk + answers * math.exp(-100.0)) * (1.0 + ROUNDING)


@dataclass(frozen=True)
class Guarantee(ShownAsTable):
    """(ε, δ)-differential privacy of the outputs, as stated and as exactly achieved.

    Attributes
    ----------
    epsilon, delta : float
        The stated pair; δ may be 0 where all noise is Laplace noise. The achieved δ at this ε is at
        most this δ.
    mu : float
        Of what was published with Gaussian noise: sensitivity over noise sd, 1/σ; 0 if nothing was.
    answers : int
        How many noisy numbers were published.
    coarseness : float
        Σ (grid / noise sd)² over those with Gaussian noise; see `discretisation_delta`.
    laplace : tuple of float
        Of every measurement with Laplace noise its ε, sensitivity over scale.
    pure : tuple of float
        Of every measurement with other noise that needs no δ its ε. Nothing else is known of it, so
        of all parts without δ only the sum counts then.
    adaptive : bool
        Whether answers decided how much later measurements spent of a whole that was fixed. Of
        Laplace noise only the sum counts then (Rogers, Roth, Ullman and Vadhan 2016); μ² adds up
        all the same (Smith and Thakurta 2022).

    Examples
    --------
    >>> spent = Guarantee(epsilon=1.0, delta=0.01, mu=0.5)
    >>> spent.delta_at(1.0) < 0.01
    True
    >>> print(spent)
    (1, 0.01)-differential privacy (mu = 0.5)
    >>> print(Guarantee(epsilon=1.0, delta=0.0, mu=0.0, laplace=(1.0,)))
    1-differential privacy
    """

    epsilon: float
    delta: float
    mu: float
    answers: int = 0
    coarseness: float = 0.0
    laplace: tuple[float, ...] = ()
    adaptive: bool = False
    pure: tuple[float, ...] = ()

    def validate(self) -> None:
        """Refuse a guarantee that is none; whether it holds is for `check_holds`.

        Raises
        ------
        ValueError
            If its budget is none, or a part is damaged.
        """
        check_pair(self.epsilon, self.delta, pure=self.mu == 0)
        # Written so that NaN fails every one of them.
        if not (
            0 <= self.mu < math.inf
            and self.answers >= 0
            and self.coarseness >= 0
            and all(0 < part < math.inf for part in self._parts)
        ):
            raise ValueError("its guarantee is damaged")

    def check_holds(self) -> None:
        """Refuse a guarantee that states more than was achieved.

        Raises
        ------
        ValueError
            If δ at its ε is above its δ.
        """
        # Written so that NaN fails.
        if not self.delta_at(self.epsilon) <= self.delta:
            raise ValueError("its guarantee does not hold")

    @property
    def spent(self) -> bool:
        """Whether anything was asked."""
        return self.mu > 0 or bool(self._parts)

    @property
    def pure_epsilon(self) -> float:
        """The ε that holds with δ = 0; infinite beside Gaussian noise."""
        return math.inf if self.mu > 0 else self.epsilon_of_parts

    @property
    def _parts(self) -> tuple[float, ...]:
        return (*self.laplace, *self.pure)

    @property
    def epsilon_of_parts(self) -> float:
        """The ε of all parts without δ, rounded up, beside Gaussian noise too.

        Basic composition (Dwork and Roth 2014, theorem 3.14). `math.fsum` rounds once, to nearest;
        of one part it is exact.
        """
        total = math.fsum(self._parts)
        return total if len(self._parts) < 2 else math.nextafter(total, math.inf)

    @property
    def _only_sum_counts(self) -> bool:
        """Whether parts without δ are known to be as private as their sum, and no more."""
        return bool(self.pure) or (self.adaptive and bool(self.laplace))

    def delta_at(self, epsilon: float) -> float:
        """Return a δ that is achieved at another ε, rounded up."""
        if not epsilon >= 0:
            raise ValueError(f"epsilon must be at least 0, got {epsilon}")
        if epsilon >= self.pure_epsilon:
            return 0.0
        if self._only_sum_counts:
            return self._delta_of_any(epsilon)
        if self.mu == 0 and len(self.laplace) == 1:
            # Of one shift of Laplace noise, 1 − e^((ε − ε₁)/2): the test at the middle is best.
            share = -math.expm1((epsilon - self.laplace[0] * (1 + ROUNDING)) / 2)
            return min(1.0, share * (1 + ROUNDING))
        spent = self.epsilon_of_parts
        extra = discretisation_delta(
            epsilon + spent, answers=self.answers, coarseness=self.coarseness
        )
        if not self.laplace:
            return min(1.0, gaussian_delta(self.mu, epsilon) + extra)
        # Basic composition, too: it knows more digits, far out.
        basic = gaussian_delta(self.mu, epsilon - spent) if epsilon >= spent else 1.0
        laplace = tuple(part * (1 + ROUNDING) for part in self.laplace)
        return min(1.0, min(basic, mixed_delta(self.mu, laplace, epsilon)) + extra)

    def _delta_of_any(self, epsilon: float) -> float:
        """As `delta_at`, of any mechanism that is as private as parts without δ are together.

        Beside Gaussian noise: as Gaussian DP, or by basic composition.
        """
        spent = self.epsilon_of_parts * (1 + ROUNDING)
        if self.mu == 0:
            return min(1.0, coin_delta(spent, epsilon) * (1 + 4 * ROUNDING))
        extra = discretisation_delta(
            epsilon + spent, answers=self.answers, coarseness=self.coarseness
        )
        basic = gaussian_delta(self.mu, epsilon - spent) if epsilon >= spent else 1.0
        return min(1.0, min(basic, gaussian_delta(self._mu_of_all, epsilon)) + extra)

    @property
    def _mu_of_all(self) -> float:
        """A μ of Gaussian DP that all parts have together, rounded up."""
        return math.hypot(self.mu, pure_mu(self.epsilon_of_parts * (1 + ROUNDING))) * (1 + ROUNDING)

    def epsilon_at(self, delta: float) -> float:
        """Return an ε that is achieved at another δ, rounded up.

        Raises
        ------
        ValueError
            If δ is outside [0, 1), 0 beside Gaussian noise, or below what its grid costs.
        """
        if not (0 < delta < 1 or (delta == 0 and self.mu == 0)):
            least = "at least 0 and below 1" if self.mu == 0 else "strictly between 0 and 1"
            raise ValueError(f"delta must be {least}, got {delta}")
        if self.mu == 0:
            return self._epsilon_without_gaussian(delta)
        if not self._parts:
            return _smallest_epsilon(self.mu, delta, self.delta_at)
        gaussian = Guarantee(
            epsilon=self.epsilon,
            delta=delta,
            mu=self.mu,
            answers=self.answers,
            coarseness=self.coarseness,
        )
        highest = (self.epsilon_of_parts + gaussian.epsilon_at(delta)) * (1 + 4 * ROUNDING)
        if self._only_sum_counts:
            return min(highest, _smallest_epsilon(self._mu_of_all, delta, self.delta_at))
        extra = discretisation_delta(
            highest + self.epsilon_of_parts, answers=self.answers, coarseness=self.coarseness
        )
        laplace = tuple(part * (1 + ROUNDING) for part in self.laplace)
        found = mixed_epsilon(self.mu, laplace, delta - extra) * (1 + ROUNDING)
        step = ROUNDING
        # Of a sum that is computed at another ε, rounding differs.
        while found < highest and self.delta_at(found) > delta:
            found, step = found * (1 + step), 2 * step
        return min(highest, found)

    def _epsilon_without_gaussian(self, delta: float) -> float:
        pure = self.epsilon_of_parts
        if delta == 0 or pure == 0:
            return pure
        if self._only_sum_counts:
            slack = (1.0 + pure) * ROUNDING * 8
            return min(pure, max(0.0, coin_epsilon(pure, delta) + slack))
        if len(self.laplace) == 1:
            slack = 2 * math.log1p(-delta * (1 - 4 * ROUNDING)) + (1 + pure) * ROUNDING * 4
            return max(0.0, min(pure, pure + slack))
        laplace = tuple(part * (1 + ROUNDING) for part in self.laplace)
        return min(pure, mixed_epsilon(0.0, laplace, delta) * (1 + ROUNDING))

    @property
    def noise_multiplier(self) -> float:
        """Noise sd over sensitivity of Gaussian noise, σ = 1/μ (infinite without it)."""
        return math.inf if self.mu == 0 else 1.0 / self.mu

    def __str__(self) -> str:
        epsilon, delta, mu = (
            ceiling(each, digits=4) for each in (self.epsilon, self.delta, self.mu)
        )
        if self._parts and self.pure_epsilon <= self.epsilon:
            return f"{epsilon}-differential privacy"
        parts = [f"mu = {mu}"] if self.mu or not self._parts else []
        for kind, spent in (("Laplace", self.laplace), ("without delta", self.pure)):
            if spent:
                parts.append(f"{kind} " + ", ".join(ceiling(part, digits=4) for part in spent))
        return f"({epsilon}, {delta})-differential privacy ({'; '.join(parts)})"


def compose(*guarantees: Guarantee, delta: float | None = None) -> Guarantee:
    """Return the joint guarantee of several releases about the same people.

    Of Gaussian noise exactly: μ² = Σ μ_i² (Dong, Roth and Su 2022, corollary 3.3). Of Laplace noise
    the ε_i add up at δ = 0, and at a larger δ, or beside Gaussian noise, their privacy losses do
    (`cloakgp.privacy.privacy_loss`); of other noise without δ, the ε_i, which no privacy loss
    exceeds. Also when later questions were chosen after reading earlier
    answers, at **prices that were fixed beforehand**, the μ_i and ε_i. Where these were chosen by
    answers, too, the sum holds without δ alone; with one, a limit does that was set before the
    first answer (`cloakgp.privacy.filters`).

    Parameters
    ----------
    *guarantees : Guarantee
        At least one.
    delta : float, optional
        The δ at which to state the total; the largest of the parts if not given.

    Raises
    ------
    ValueError
        If nothing is given.
    TypeError
        If something is no `Guarantee`: a list of them, or that of a private choice.

    Examples
    --------
    >>> one = Guarantee(epsilon=1.0, delta=0.01, mu=0.5325)
    >>> round(compose(one, one).epsilon, 2)
    1.59
    >>> pure = Guarantee(epsilon=1.0, delta=0.0, mu=0.0, laplace=(1.0,))
    >>> print(compose(pure, pure))
    2-differential privacy
    """
    check_parts(guarantees, kind=Guarantee)
    if len(guarantees) == 1 and delta is None:
        return guarantees[0]
    total = Guarantee(
        epsilon=0.0,
        delta=max(part.delta for part in guarantees) if delta is None else delta,
        mu=math.nextafter(math.hypot(*(part.mu for part in guarantees)), math.inf)
        if any(part.mu for part in guarantees)
        else 0.0,
        answers=sum(part.answers for part in guarantees),
        coarseness=math.fsum(part.coarseness for part in guarantees),
        laplace=tuple(spent for part in guarantees for spent in part.laplace),
        adaptive=any(part.adaptive for part in guarantees),
        pure=tuple(spent for part in guarantees for spent in part.pure),
    )
    return replace(total, epsilon=total.epsilon_at(total.delta))


def compose_parallel(*guarantees: Guarantee) -> Guarantee:
    """Return the joint guarantee of releases about different people, of whom none is in two.

    Parallel composition (McSherry 2009, theorem 4), also where a later release was chosen after
    reading earlier ones. Neighbours differ in one person, who is in one of the releases. What came
    before it has the same law for both, and given that it keeps its own guarantee; what comes after
    it is, given its answers, the same function of the same outputs and of independent noise:
    post-processing. So all together keep the guarantee of that release, whichever it is, and any
    that follows from each: the greatest μ, grid, and ε without δ. Of parts without δ nothing is
    said but their sum.

    Parameters
    ----------
    *guarantees : Guarantee
        At least one.

    Examples
    --------
    >>> one = Guarantee(epsilon=1.0, delta=0.01, mu=0.5325)
    >>> print(compose_parallel(one, Guarantee(epsilon=0.5, delta=0.01, mu=0.3)))
    (1, 0.01)-differential privacy (mu = 0.5325)
    >>> pure = Guarantee(epsilon=1.0, delta=0.0, mu=0.0, laplace=(0.4, 0.6))
    >>> print(compose_parallel(pure, Guarantee(epsilon=0.7, delta=0.0, mu=0.0, laplace=(0.7,))))
    1-differential privacy
    """
    check_parts(guarantees, kind=Guarantee)
    if len(set(guarantees)) == 1:
        return guarantees[0]
    without_delta = max(part.epsilon_of_parts for part in guarantees)
    parts = (without_delta,) if without_delta else ()
    other = any(part.pure for part in guarantees)
    total = Guarantee(
        epsilon=0.0,
        delta=max(part.delta for part in guarantees),
        mu=max(part.mu for part in guarantees),
        answers=max(part.answers for part in guarantees),
        coarseness=max(part.coarseness for part in guarantees),
        laplace=() if other else parts,
        adaptive=bool(parts) or any(part.adaptive for part in guarantees),
        pure=parts if other else (),
    )
    return replace(total, epsilon=total.epsilon_at(total.delta))


def check_parts(parts: Sequence[object], *, kind: type) -> None:
    """Refuse an empty sum, or parts that are no guarantees of one kind of noise.

    Parameters
    ----------
    parts : sequence
    kind : type
        Of guarantee.

    Raises
    ------
    ValueError
        If there are no parts.
    TypeError
        If a part is of another type.
    """
    if not parts:
        raise ValueError("there is nothing to compose: give at least one guarantee")
    for part in parts:
        if isinstance(part, Iterable):
            raise TypeError("give guarantees one by one, not in a list: compose(*guarantees)")
        if not isinstance(part, kind):
            raise TypeError(
                f"only guarantees of type {kind.__name__} add up here, not {type(part).__name__}"
            )


def _smallest_epsilon(mu: float, delta: float, delta_at: Callable[[float], float]) -> float:
    """Return dp-accounting's ε, raised until a profile confirms it."""
    from dp_accounting import get_epsilon_gaussian

    if delta_at(0.0) <= delta:
        return 0.0
    with np.errstate(divide="ignore"):
        epsilon = float(get_epsilon_gaussian(1.0 / mu, delta))
    step = ROUNDING
    while delta_at(epsilon) > delta:
        if step > 1:
            raise ValueError(f"delta = {delta} is too small for the grid on which noise was drawn")
        epsilon = epsilon * (1.0 + step) + step * mu * ROUNDING
        step *= 2.0
    return epsilon
