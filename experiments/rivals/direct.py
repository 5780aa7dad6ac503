"""Noisy mean, and local privacy: noise of every row's own, with a regression on top."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils import gen_batches

from cloakgp.fitting.defaults import choose_prior
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.privacy import OutputBounds
from cloakgp.utils.arrays import Array
from experiments.priors import PriorShape, Split
from experiments.rivals.base import Noise, Predictions, Rival, ask, noises_of, shrunk
from experiments.ways import Setting

# Values that a binned output can take in randomised response; two are Duchi's single bit.
LEVELS = (2, 4)
# Rows that add their own noise at once, as R = I has as many columns.
ROWS_AT_A_TIME = 1_000
SHAPES = (
    PriorShape("matern32", 0.25, signal=0.3),
    PriorShape("matern32", 1.0, signal=0.3),
    PriorShape("matern32", 1.0, signal=0.15),
)


def noisy_mean(split: Split, setting: Setting) -> Predictions:
    """Predict one number everywhere: the mean of the outputs with noise, for all of the budget.

    Neighbours: one output changes. Mechanism: `experiments.rivals.base.ask` on a row of ones.
    Tuned: Laplace noise at ε or Gaussian at (ε, δ); as it is, or shrunk.
    """
    rows, bounds = len(split.X), split.bounds
    found = {}
    for noise in noises_of(setting):
        asked = ask(np.ones((1, rows)), split.outputs, bounds=bounds, setting=setting, noise=noise)
        mean = bounds.clip(asked.values / rows + asked.centre)
        evaluated = {
            "as it is": mean,
            "shrunk": shrunk(mean, noise_sd=asked.noise_sd / rows, bounds=bounds),
        }
        for name, one in evaluated.items():
            found[f"{noise}, {name}"] = np.full(len(split.X_test), float(one[0]))
    return found


@dataclass(frozen=True, eq=False)
class Reports:
    """What every row says of itself: unbiased noisy outputs, and a variance of their noise."""

    values: Array
    variance: float


def noisy_rows(split: Split, setting: Setting, *, noise: Noise) -> Reports:
    """Add noise to every output on its own.

    Neighbours: one output changes. Mechanism: `experiments.rivals.base.ask` on R = I, whose
    columns have norm 1, part by part of the rows: an output is in one part alone, so that all
    parts together keep what each does (McSherry 2009, theorem 4).
    """
    reports = []
    for number, part in enumerate(gen_batches(len(split.X), ROWS_AT_A_TIME)):
        seed = setting.insecure_seed
        asked = ask(
            np.eye(len(split.outputs[part])),
            split.outputs[part],
            bounds=split.bounds,
            setting=replace(setting, insecure_seed=None if seed is None else seed + number),
            noise=noise,
        )
        reports.append(asked.values + asked.centre)
    return Reports(np.concatenate(reports), asked.noise_sd**2)


def randomised_response(
    outputs: Array, *, bounds: OutputBounds, levels: int, epsilon: float, seed: int | None = None
) -> Reports:
    """Let every row say which of a few even levels its output is at, truthfully or not.

    Mechanism: an output is rounded at random to one of the two levels beside it, unbiasedly, and
    the level is told with probability e^ε/(e^ε + k − 1), or else one of the k − 1 others.
    Neighbours: one output changes. Argument: any two outputs give a level with probabilities that
    differ by e^ε at most, whatever the rounding, so every row is ε-locally private (Warner 1965;
    Kairouz, Oh and Viswanath 2014); with two levels it is the bit of Duchi, Jordan and Wainwright
    (2013). What is told is then scaled to be unbiased, which is post-processing.

    Noise is numpy's: for comparison only, not for a release.

    Parameters
    ----------
    outputs : array of shape (N,)
    bounds : OutputBounds
    levels : int
        k.
    epsilon : float
    seed : int, optional

    Examples
    --------
    >>> reports = randomised_response(np.full(40_000, 1.0), bounds=OutputBounds(0.0, 4.0), levels=3,
    ...                               epsilon=1.0, seed=1)
    >>> bool(abs(reports.values.mean() - 1.0) < 0.1)
    True
    """
    rng = np.random.default_rng(seed)
    grid = np.linspace(bounds.lo, bounds.hi, levels)
    step = bounds.width / (levels - 1)
    place = (bounds.clip(outputs) - bounds.lo) / step
    below = np.minimum(np.floor(place).astype(np.int64), levels - 2)
    level = below + (rng.uniform(size=len(outputs)) < place - below)
    other = 1.0 / (np.exp(epsilon) + levels - 1)
    lies = rng.uniform(size=len(outputs)) >= np.exp(epsilon) * other
    told = (level + lies * rng.integers(1, levels, size=len(outputs))) % levels
    # The mean of what is told is slope · output + shift.
    slope, shift = (np.exp(epsilon) - 1) * other, other * float(grid.sum())
    spread = slope * np.square(grid) + other * float(np.square(grid).sum())
    variances = (spread - np.square(slope * grid + shift)) / slope**2
    return Reports((grid[told] - shift) / slope, float(variances.mean()) + step**2 / 6)


def local_noise(split: Split, setting: Setting) -> Predictions:
    """Predict from rows that are noisy one by one, with a Gaussian process that knows how noisy.

    Neighbours: one output changes. Nobody need be trusted: every row adds its own noise.
    Mechanisms: `noisy_rows` (Laplace at ε, Gaussian at (ε, δ)) and `randomised_response` (ε). The
    regression on top is post-processing. Tuned: the mechanism, and the prior.
    """
    seed = setting.insecure_seed
    reports = {
        f"{noise} noise": noisy_rows(split, setting, noise=noise) for noise in noises_of(setting)
    }
    for levels in LEVELS:
        reports[f"randomised response, {levels} levels"] = randomised_response(
            split.outputs, bounds=split.bounds, levels=levels, epsilon=setting.epsilon, seed=seed
        )
    priors: dict[str, ExactPrior | SparsePrior] = {
        "default prior": choose_prior(split.X, bounds=split.bounds)
    }
    priors |= {str(shape): split.prior(shape) for shape in SHAPES}
    found = {}
    for mechanism, told in reports.items():
        for name, prior in priors.items():
            noisy = replace(prior, noise_variance=prior.noise_variance + told.variance)
            weights = noisy.cloaking_matrix(split.X_test, split.X)
            predicted = prior.mean + weights @ (told.values - prior.mean)
            found[f"{mechanism}, {name}"] = split.bounds.clip(predicted)
    return found


NOISY_MEAN = Rival("noisy mean", "ε or (ε, δ)", noisy_mean)
LOCAL_NOISE = Rival("noise on every row, GP", "ε or (ε, δ), local", local_noise)
