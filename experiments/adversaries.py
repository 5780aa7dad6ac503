"""Adversaries that choose prices by answers, at their best: the δ that they reach within a rule."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.signal import fftconvolve

from cloakgp.privacy.filters import Amount, filter_of
from cloakgp.privacy.spending import Cost
from cloakgp.utils.arrays import Array

Rule = Callable[[Amount, tuple[float, float]], bool]
# Halvings of an interval of prices.
HALVINGS = 30


def adding_up(total: Amount, limit: tuple[float, float]) -> bool:
    """Stop where the sums, as if prices had been fixed beforehand, cross the limit: no filter."""
    return total.delta_at(limit[0]) <= limit[1]


def filtering(total: Amount, limit: tuple[float, float]) -> bool:
    """Stop as this package does."""
    return filter_of(limit).accepts(total)


def laplace_delta(level: ArrayLike, epsilon: float) -> Array:
    """Return the hockey-stick divergence of Laplace noise shifted by ε, at e^level, any real."""
    level = np.asarray(level, dtype=float)
    inside = np.maximum(-np.expm1((np.minimum(level, epsilon) - epsilon) / 2), 0.0)
    divergence: Array = np.where(level <= -epsilon, -np.expm1(np.minimum(level, 0.0)), inside)
    return divergence


def coin_delta(level: ArrayLike, epsilon: float) -> Array:
    """Return the same of the most that any ε-differentially private mechanism can tell."""
    level = np.asarray(level, dtype=float)
    capped = np.clip(level, -epsilon, epsilon)
    inside = -np.expm1(capped - epsilon) / (1 + np.exp(-epsilon))
    divergence: Array = np.where(level <= -epsilon, -np.expm1(np.minimum(level, 0.0)), inside)
    return divergence


def largest(accepts: Callable[[float], bool], most: float) -> float:
    """Return the largest price that is accepted, 0 if none is."""
    low, high = 0.0, most
    if accepts(most):
        return most
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if accepts(middle) else (low, middle)
    return low


def stopping_delta(rule: Rule, limit: tuple[float, float], *, levels: int, pure: str) -> float:
    """Return the δ that optimal stopping reaches: Gaussian noise bit by bit, then none with a δ.

    By backward induction over the privacy loss, on a grid. At every level the adversary stops, buys
    all that the rule still has without δ ("laplace" or "coin"), or the next bit.
    """
    epsilon, _ = limit
    mechanism, told = ("laplace", laplace_delta) if pure == "laplace" else ("any", coin_delta)

    def spent(squared: float, more: float = 0.0) -> Amount:
        total = Amount()
        if squared:
            total += Amount.of(Cost("gaussian", mu=math.sqrt(squared)))
        return total + Amount.of(Cost(mechanism, epsilon=more)) if more else total

    most = largest(lambda mu: rule(spent(mu**2), limit), 20.0) ** 2
    squares = [most * level / levels for level in range(levels + 1)]
    jumps = [
        largest(lambda more, s=squared: more == 0 or rule(spent(s, more), limit), epsilon)
        for squared in squares
    ]
    step = most / levels
    reach = epsilon + 12 * math.sqrt(most) + most
    # Fine enough for a step's normal law; its own steps are those of the grid.
    width = min(math.sqrt(step) / 12, reach / 4000)
    side = math.ceil(reach / width)
    losses = width * np.arange(-side, side + 1)
    shifts = width * np.arange(-side, side + 1)
    law = np.exp(-((shifts - step / 2) ** 2) / (2 * step))
    law /= law.sum()

    def now(jump: float) -> Array:
        stopped = np.maximum(-np.expm1(np.minimum(epsilon - losses, 0.0)), 0.0)
        return np.maximum(stopped, told(epsilon - losses, jump)) if jump else stopped

    value = now(jumps[-1])
    for jump in reversed(jumps[:-1]):
        # Beyond the grid a loss is so large that all is told, or so small that nothing is.
        padded = np.concatenate([np.zeros(side), value, np.ones(side)])
        value = np.maximum(now(jump), fftconvolve(padded, law[::-1], mode="valid"))
    return float(value[side])


def best_delta(rule: Rule, limit: tuple[float, float], *, mu: float, pure: float) -> float:
    """Return the δ of the best adversary who buys Gaussian and Laplace answers of two sizes.

    In any order and number that the rule accepts, each bought or not by all answers so far. By
    backward induction over what was bought and the privacy loss.
    """
    epsilon, _ = limit
    gaussian = Amount.of(Cost("gaussian", mu=mu))
    laplace = Amount.of(Cost("laplace", epsilon=pure))

    def accepted(bought: tuple[int, int]) -> bool:
        return rule(gaussian.times(bought[0]) + laplace.times(bought[1]), limit)

    reachable: list[tuple[int, int]] = []
    frontier = [(0, 0)]
    while frontier:
        reachable += frontier
        after = {(g + 1, n) for g, n in frontier} | {(g, n + 1) for g, n in frontier}
        frontier = sorted(one for one in after if accepted(one))
    known = set(reachable)
    # Laplace noise's greatest losses lie on the grid, so that none is rounded beyond a limit.
    width = pure / math.ceil(10 * pure / mu)
    side = math.ceil((2 * epsilon + 12 * mu * math.sqrt(reachable[-1][0] + 1)) / width)
    losses = width * np.arange(-side, side + 1)
    by_gaussian = np.exp(-((losses - mu**2 / 2) ** 2) / (2 * mu**2))
    by_gaussian /= by_gaussian.sum()
    by_laplace = _laplace_losses(losses, pure, width)
    stopped = np.maximum(-np.expm1(np.minimum(epsilon - losses, 0.0)), 0.0)
    values: dict[tuple[int, int], np.ndarray] = {}
    for bought in reversed(reachable):
        value = stopped
        for next_one, law in (
            ((bought[0] + 1, bought[1]), by_gaussian),
            ((bought[0], bought[1] + 1), by_laplace),
        ):
            if next_one in known:
                padded = np.concatenate([np.zeros(side), values[next_one], np.ones(side)])
                value = np.maximum(value, fftconvolve(padded, law[::-1], mode="valid"))
        values[bought] = value
    return float(values[(0, 0)][side])


def _laplace_losses(losses: Array, pure: float, width: float) -> Array:
    """Return the law of the loss of Laplace noise: ε at ½, −ε at e^−ε/2, else between.

    There it has the density e^((l − ε)/2)/4; each cell's mass goes to its ends, with its mean.
    """
    law = np.zeros_like(losses)
    steps, middle = round(pure / width), len(losses) // 2
    law[middle + steps] += 0.5
    law[middle - steps] += math.exp(-pure) / 2
    for cell in range(-steps, steps):
        low, high = cell * width, (cell + 1) * width
        mass = (math.exp((high - pure) / 2) - math.exp((low - pure) / 2)) / 2
        mean = (
            (high - 2) * math.exp((high - pure) / 2) - (low - 2) * math.exp((low - pure) / 2)
        ) / (2 * mass)
        up = (mean - low) / width
        law[middle + cell] += mass * (1 - up)
        law[middle + cell + 1] += mass * up
    return law
