"""Pure ε-differential privacy: what Laplace noise costs, alone and beside Gaussian noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri_exp

from cloakgp.privacy.accounting import ROUNDING, Guarantee, check_parts, gaussian_epsilon
from cloakgp.privacy.composition import compose_with_selection


@dataclass(frozen=True)
class PureGuarantee:
    """ε-differential privacy: (ε, δ) with δ = 0.

    Attributes
    ----------
    epsilon : float
    answers : int
        How many noisy numbers were published.

    Examples
    --------
    >>> spent = PureGuarantee(epsilon=1.0)
    >>> spent.delta, round(spent.delta_at(0.5), 3)
    (0.0, 0.288)
    >>> print(spent)
    1-differential privacy
    """

    epsilon: float
    answers: int = 0

    @property
    def delta(self) -> float:
        """No δ: 0."""
        return 0.0

    @property
    def mu(self) -> float:
        """A μ of Gaussian DP that it keeps, Φ(μ/2) = e^ε/(1 + e^ε), rounded up.

        The trade-off curve of ε-DP is two chords from the axes to the diagonal. The curve of this μ
        is convex, has the same ends and meets the diagonal there, so it lies below them (Dong, Roth
        and Su 2022, definitions 2.1 and 2.6 and proposition 2.5). It is looser than ε.
        """
        tail = -float(np.logaddexp(0.0, self.epsilon))
        # For a small ε the root is near 0, where its error is absolute.
        return -2.0 * float(ndtri_exp(tail)) * (1 + ROUNDING) + 2.0**-48

    def delta_at(self, epsilon: float) -> float:
        """Return a δ that is achieved at another ε', rounded up: (e^ε − e^ε')/(1 + e^ε).

        That of randomised response, of which every ε-DP mechanism is a processing (Kairouz, Oh and
        Viswanath 2015, theorem 2.1).
        """
        if not epsilon >= 0:
            raise ValueError(f"epsilon must be at least 0, got {epsilon}")
        if epsilon >= self.epsilon:
            return 0.0
        share = -math.expm1(epsilon - self.epsilon) / (1 + math.exp(-self.epsilon))
        return min(1.0, share * (1 + ROUNDING))

    def epsilon_at(self, delta: float) -> float:
        """Return an ε that is achieved at another δ, rounded up.

        Raises
        ------
        ValueError
            If δ is outside [0, 1).
        """
        if not 0 <= delta < 1:
            raise ValueError(f"delta must be at least 0 and below 1, got {delta}")
        if self.delta_at(0.0) <= delta:
            return 0.0
        slack = math.log1p(-delta * (1 + math.exp(-self.epsilon)) * (1 - 4 * ROUNDING))
        return min(self.epsilon, self.epsilon + slack + ROUNDING)

    def epsilon_with(self, release: Guarantee, *, delta: float | None = None) -> float:
        """Return an ε at which this and a Gaussian release about the same people hold together.

        By privacy-loss distributions, see `cloakgp.privacy.composition`, whose bound for a choice
        that is ε-DP holds for whatever is ε-DP.

        Parameters
        ----------
        release : Guarantee
            Whichever was made first.
        delta : float, optional
            The δ at which the total holds; the release's own if not given.

        Examples
        --------
        >>> release = Guarantee(epsilon=1.0, delta=0.01, mu=0.5325)
        >>> round(PureGuarantee(epsilon=1.0).epsilon_with(release), 2)
        1.93
        """
        return compose_with_selection(release, self.epsilon, delta=delta).epsilon

    def as_gaussian(self, delta: float) -> Guarantee:
        """Return the Gaussian DP that this implies: true and looser, for what knows no other.

        Examples
        --------
        >>> print(PureGuarantee(epsilon=1.0).as_gaussian(0.01))
        (3.072, 0.01)-differential privacy (mu = 1.232)
        """
        return Guarantee(
            epsilon=gaussian_epsilon(self.mu, delta), delta=delta, mu=self.mu, answers=self.answers
        )

    def __str__(self) -> str:
        return f"{self.epsilon:.4g}-differential privacy"


def compose_pure(*guarantees: PureGuarantee) -> PureGuarantee:
    """Return what several ε-DP releases about the same people guarantee together: the sum.

    Basic composition (Dwork and Roth 2014, theorem 3.14), also when later releases were chosen
    after seeing earlier ones.

    Raises
    ------
    ValueError, TypeError
        As for `cloakgp.compose`.

    Examples
    --------
    >>> print(compose_pure(PureGuarantee(epsilon=1.0), PureGuarantee(epsilon=0.5)))
    1.5-differential privacy
    """
    check_parts(guarantees, kind=PureGuarantee)
    if len(guarantees) == 1:
        return guarantees[0]
    total = math.fsum(part.epsilon for part in guarantees)
    return PureGuarantee(
        epsilon=math.nextafter(total, math.inf), answers=sum(part.answers for part in guarantees)
    )
