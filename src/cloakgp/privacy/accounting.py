r"""Accounting: (ε, δ) ↔ noise multiplier σ ↔ μ of Gaussian differential privacy.

Neighbours, everywhere in this package, are two data sets that differ in the output of one privacy
unit, by any amount within the declared bounds; inputs are public and equal. Only
`cloakgp.privacy.statistics` protects more: whole rows, inputs and output.

Theorem used (Balle and Wang 2018, *Improving the Gaussian mechanism*, theorem 8): adding normal
noise of sd s to a function of ℓ2-sensitivity Δ is (ε, δ)-DP **if and only if** δ is at least

    δ(ε; μ) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ),   μ = Δ/s = 1/σ.

This is the trade-off curve of μ-Gaussian DP, and several Gaussian releases about the same people,
each possibly chosen after seeing the ones before, are together exactly √(Σ μ_i²)-Gaussian DP (Dong,
Roth and Su 2022, *Gaussian differential privacy*, corollary 3.3).

The noise drawn is the discrete Gaussian on a fine grid, not the normal: what that costs is proved
at `discretisation_delta` and counted in every guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

Calibration = Literal["exact", "papers"]

# Decimal digits of the closed form: δ is a difference of two numbers that can agree in the first
# forty digits, so float64 cannot check it.
DIGITS = 80
# Relative step by which a calibrated σ is rounded up, until the closed form confirms it.
ROUNDING = 2.0**-40


def check_budget(epsilon: float, delta: float) -> None:
    """Raise ValueError unless 0 < ε < ∞ and 0 < δ < 1."""
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            raise ValueError(f"{name} must be a number, got {value!r}")
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ValueError(f"epsilon must be positive and finite, got {epsilon}: 1 is a usual choice")
    if not 0 < delta < 1:
        raise ValueError(
            f"delta must lie strictly between 0 and 1, got {delta}: well below one over the number "
            "of people is a usual choice"
        )


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the δ of μ-Gaussian DP at ε, in float64, rounded up.

    Evaluated with 80 digits from the closed form (Balle and Wang 2018, theorem 8).

    Parameters
    ----------
    mu : float
        At least zero.
    epsilon : float
        At least zero.

    Examples
    --------
    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    import mpmath

    if mu == 0:
        return 0.0
    with mpmath.workdps(DIGITS):
        exact_mu, exact_epsilon = mpmath.mpf(float(mu)), mpmath.mpf(float(epsilon))
        shift = exact_epsilon / exact_mu
        delta = mpmath.ncdf(exact_mu / 2 - shift) - mpmath.exp(exact_epsilon) * mpmath.ncdf(
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


@lru_cache(maxsize=256)
def exact_noise_multiplier(epsilon: float, delta: float) -> float:
    """Return the least σ for which unit-sensitivity normal noise is (ε, δ)-DP, rounded up.

    From dp-accounting's root finder, then raised by parts in 2⁴⁰ until the 80-digit closed form
    confirms it: never rounded to nearest.

    Examples
    --------
    >>> round(exact_noise_multiplier(1.0, 0.01), 3)
    1.878
    """
    from dp_accounting import get_sigma_gaussian

    check_budget(epsilon, delta)
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
    r"""Bound what rounding to a grid and discrete noise add to δ at ε.

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
class Guarantee:
    """(ε, δ)-differential privacy of the outputs, as stated and as exactly achieved.

    Attributes
    ----------
    epsilon, delta : float
        The stated pair. The achieved δ at this ε is at most this δ.
    mu : float
        Sensitivity over noise sd; 0 if nothing was asked. 1/σ.
    answers : int
        How many noisy numbers were published.
    coarseness : float
        Σ (grid / noise sd)² over them; see `discretisation_delta`.

    Examples
    --------
    >>> spent = Guarantee(epsilon=1.0, delta=0.01, mu=0.5)
    >>> spent.delta_at(1.0) < 0.01
    True
    >>> print(spent)
    (1, 0.01)-differential privacy (mu = 0.5)
    """

    epsilon: float
    delta: float
    mu: float
    answers: int = 0
    coarseness: float = 0.0

    def delta_at(self, epsilon: float) -> float:
        """Return the δ that is achieved at another ε, rounded up."""
        if not epsilon >= 0:
            raise ValueError(f"epsilon must be at least 0, got {epsilon}")
        if self.mu == 0:
            return 0.0
        extra = discretisation_delta(epsilon, answers=self.answers, coarseness=self.coarseness)
        return min(1.0, gaussian_delta(self.mu, epsilon) + extra)

    def epsilon_at(self, delta: float) -> float:
        """Return an ε that is achieved at another δ, rounded up.

        Raises
        ------
        ValueError
            If δ is outside (0, 1), or below what the grid of the noise costs.
        """
        if not 0 < delta < 1:
            raise ValueError(f"delta must lie strictly between 0 and 1, got {delta}")
        if self.mu == 0:
            return 0.0
        return _smallest_epsilon(self.mu, delta, self.delta_at)

    @property
    def noise_multiplier(self) -> float:
        """Noise sd over sensitivity, σ = 1/μ (infinite if nothing was asked)."""
        return math.inf if self.mu == 0 else 1.0 / self.mu

    def __str__(self) -> str:
        return f"({self.epsilon:.4g}, {self.delta:.4g})-differential privacy (mu = {self.mu:.4g})"


def compose(*guarantees: Guarantee, delta: float | None = None) -> Guarantee:
    """Return what several Gaussian releases about the same people guarantee together.

    Exact: μ² = Σ μ_i² (Dong, Roth and Su 2022, corollary 3.3), also when later releases were chosen
    after seeing earlier ones.

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
        If something is no `Guarantee`: a list of them, or a guarantee of another kind of noise.

    Examples
    --------
    >>> one = Guarantee(epsilon=1.0, delta=0.01, mu=0.5325)
    >>> round(compose(one, one).epsilon, 2)
    1.59
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
    )
    return Guarantee(
        epsilon=total.epsilon_at(total.delta),
        delta=total.delta,
        mu=total.mu,
        answers=total.answers,
        coarseness=total.coarseness,
    )


def check_parts(parts: Sequence[object], *, kind: type) -> None:
    """Refuse to add up nothing, or what is no guarantee of one kind of noise.

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


def short_form(what: str, *, insecure: bool) -> str:
    """Return a public object in one line, marked if its noise came from a fixed seed.

    Examples
    --------
    >>> short_form("Release of 3 noisy answers", insecure=True)
    '<Release of 3 noisy answers. INSECURE: seeded noise, not private.>'
    """
    mark = " INSECURE: seeded noise, not private." if insecure else ""
    return f"<{what}.{mark}>"


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
