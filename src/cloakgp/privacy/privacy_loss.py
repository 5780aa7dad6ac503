r"""Privacy-loss distributions: the joint guarantee of Laplace and Gaussian parts.

Setting
-------
Several measurements were made of the same outputs, each possibly chosen after seeing the ones
before, at prices that were fixed beforehand (`cloakgp.privacy.filters`). Those with Gaussian noise
are together μ-Gaussian DP. Measurement i with Laplace noise is ε_i-DP, and more: between any two
neighbours its trade-off curve is at least that of Laplace noise of scale 1 with and without a shift
of ε_i (the argument is at `cloakgp.privacy.noise.laplace`).

Theorem
-------
A pair of laws that is at least as far apart as every two neighbours dominates a measurement, and
the products of such pairs dominate the composition, adaptively chosen or not (Zhu, Dong and Wang
2022, *Optimal accounting of differential privacy via characteristic function*, theorem 10; Dong,
Roth and Su 2022, theorem 3.2). The privacy losses of products add up, so their distributions are
convolved: by dp-accounting, on a grid of losses, with every loss rounded up.

Without δ it is the sum of the ε_i, and basic composition also bounds what is left: whichever is
less counts.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

# Losses are rounded up to a grid with so many steps to their sum.
LOSS_STEPS = 20_000
# Of probability: what convolution by fast Fourier transforms may lose, far above what it does.
TRANSFORM_SLACK = 1e-12
# Gaussian parts whose loss is beyond this are left to basic composition: their grid would be long.
LARGEST_MU = 20.0
# How many results are kept: the same parts are composed again for every plan, file and account.
KEPT = 256


@lru_cache(maxsize=KEPT)
def mixed_delta(mu: float, laplace: tuple[float, ...], epsilon: float) -> float:
    """Return a δ at which Gaussian and Laplace parts hold together at ε, by their losses.

    Parameters
    ----------
    mu : float
        Of the Gaussian parts; 0 if there are none.
    laplace : tuple of float
        ε of each Laplace part; at least one.
    epsilon : float
        At least zero.

    Returns
    -------
    float
        1 where the parts are too many, or too large, for a grid of losses.

    Examples
    --------
    Half a part twice is less than the whole:

    >>> mixed_delta(0.0, (0.5, 0.5), 0.9) < -math.expm1((0.9 - 1.0) / 2)
    True
    """
    losses = _losses(mu, laplace)
    if losses is None:
        return 1.0
    return min(1.0, float(losses.get_delta_for_epsilon(epsilon)) + TRANSFORM_SLACK)


@lru_cache(maxsize=KEPT)
def mixed_epsilon(mu: float, laplace: tuple[float, ...], delta: float) -> float:
    """Return an ε at which Gaussian and Laplace parts hold together at δ, by their losses.

    Parameters
    ----------
    mu, laplace
        As for `mixed_delta`.
    delta : float
        Above zero.

    Returns
    -------
    float
        Infinite where no grid of losses tells.

    Examples
    --------
    >>> mixed_epsilon(0.0, (0.5, 0.5), 0.01) < 0.97
    True
    """
    losses = _losses(mu, laplace)
    if losses is None or delta <= TRANSFORM_SLACK:
        return math.inf
    return float(losses.get_epsilon_for_delta(delta - TRANSFORM_SLACK))


def coin_delta(spent: float, epsilon: float) -> float:
    """Return the least δ at ε that holds for every mechanism that is ``spent``-DP.

    None is told more easily than a coin that shows the truth with probability e^s/(1 + e^s)
    (Kairouz, Oh and Viswanath 2015, *The composition theorem for differential privacy*, theorem 3.1
    for one part): δ = (e^s − e^ε)/(1 + e^s).

    Parameters
    ----------
    spent : float
        s.
    epsilon : float
        At least zero, and below s.

    Examples
    --------
    >>> round(coin_delta(1.0, 0.0), 4)
    0.4621
    """
    return -math.expm1(epsilon - spent) / (1.0 + math.exp(-spent))


def coin_epsilon(spent: float, delta: float) -> float:
    """Return the least ε at δ that holds for every mechanism that is ``spent``-DP.

    Examples
    --------
    >>> round(coin_epsilon(1.0, coin_delta(1.0, 0.3)), 9)
    0.3
    """
    kept = (1.0 - delta) - delta * math.exp(-spent)
    return max(0.0, spent + math.log(kept)) if kept > 0 else 0.0


@lru_cache(maxsize=KEPT)
def _losses(mu: float, laplace: tuple[float, ...]) -> Any:
    """Return dp-accounting's distribution of the losses of all parts together, or None."""
    from dp_accounting.pld import privacy_loss_distribution as distributions

    if not laplace or mu > LARGEST_MU:
        return None
    step = (math.fsum(laplace) + mu) / LOSS_STEPS
    total = distributions.identity(value_discretization_interval=step)
    for part in sorted(laplace):
        total = total.compose(
            distributions.from_laplace_mechanism(
                1.0 / part, value_discretization_interval=step, pessimistic_estimate=True
            )
        )
    if mu > 0:
        total = total.compose(
            distributions.from_gaussian_mechanism(
                1.0 / mu, value_discretization_interval=step, pessimistic_estimate=True
            )
        )
    return total
