"""Rivals: other ways to predict a private numeric column, each with every tuning that is tried.

Neighbours, of all of them unless a rival says otherwise: one output changes within its declared
bounds, and inputs are public. Outputs are asked by this package's mechanisms, so that guarantees
and samplers are those of `cloakgp.DPGPRegressor`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Generic, Literal, TypeVar

import numpy as np

import cloakgp.privacy
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.accounting import exact_noise_multiplier, gaussian_epsilon
from cloakgp.utils.arrays import Array
from experiments.priors import Split
from experiments.ways import Setting

Noise = Literal["laplace", "gaussian"]
NOISES: tuple[Noise, ...] = ("laplace", "gaussian")
# At which a part of a budget is stated: any δ does, as a part's μ is what adds up.
PART_DELTA = 1e-9
# Prior sd of an output's mean, as a share of the bounds' width, where an estimate is shrunk.
PRIOR_SD_SHARE = 1 / 4

Predictions = Mapping[str, Array]
Given = TypeVar("Given")


@dataclass(frozen=True)
class Rival(Generic[Given]):
    """One way to predict, with all the tunings that are tried.

    Attributes
    ----------
    name : str
    guarantee : str
        What is protected, in a few words.
    predict : callable
        Split and setting → predictions at the held-out rows, by tuning: numbers, or probabilities
        of classes. Every tuning is a release of its own, with all of the budget, or another
        evaluation of such a release.
    """

    name: str
    guarantee: str
    predict: Callable[[Given, Setting], Predictions]

    @property
    def is_private(self) -> bool:
        """Whether it spends a budget."""
        return bool(self.guarantee)


def noises_of(setting: Setting) -> tuple[Noise, ...]:
    """Return the noises that a budget allows: without a δ, Laplace's alone.

    Examples
    --------
    >>> noises_of(Setting(epsilon=1.0, delta=0.0)), noises_of(Setting(epsilon=1.0, delta=0.01))
    (('laplace',), ('laplace', 'gaussian'))
    """
    return NOISES if setting.delta > 0.0 else ("laplace",)


@dataclass(frozen=True, eq=False)
class Sums:
    """Noisy answers R (y − centre) + noise.

    Attributes
    ----------
    values : array of shape (k,)
    noise_sd : float
        Of each.
    centre : float
    """

    values: Array
    noise_sd: float
    centre: float


def ask(
    strategy: Array, outputs: Array, *, bounds: OutputBounds, setting: Setting, noise: Noise
) -> Sums:
    """Put a public strategy R, shape (k, N), to outputs clipped to bounds.

    Mechanism, sensitivity, theorem and argument: `cloakgp.privacy.ask`, at (ε, δ), or
    `cloakgp.privacy.noise.laplace`, at ε alone.

    Parameters
    ----------
    strategy : array of shape (k, N)
    outputs : array of shape (N,)
    noise : {"laplace", "gaussian"}

    Examples
    --------
    >>> found = ask(np.ones((1, 3)), np.ones(3), bounds=OutputBounds(0.0, 2.0),
    ...             setting=Setting(epsilon=2.0, insecure_seed=1), noise="laplace")
    >>> round(found.noise_sd, 3), found.centre
    (1.414, 1.0)
    """
    answers = cloakgp.privacy.ask(
        strategy,
        outputs,
        question=bounds,
        epsilon=setting.epsilon,
        delta=0.0 if noise == "laplace" else setting.delta,
        noise=noise,
        insecure_seed=setting.insecure_seed,
    )
    return Sums(answers.values[:, 0], answers.noise_sd, bounds.middle)


@lru_cache(maxsize=256)
def part_of_budget(epsilon: float, delta: float, *, parts: int) -> tuple[float, float]:
    """Return the (ε, δ) of one of so many equal parts of a budget.

    Without a δ parts add up: each has ε over their number. With one, noise is Gaussian:
    As many measurements of μ/√parts, each chosen after seeing those before, are together exactly
    μ-Gaussian DP (Dong, Roth and Su 2022, corollary 3.3), with μ that of the whole (ε, δ).

    Examples
    --------
    >>> part_of_budget(1.0, 0.01, parts=1), part_of_budget(1.0, 0.0, parts=4)
    ((1.0, 0.01), (0.25, 0.0))
    >>> part, at = part_of_budget(1.0, 0.01, parts=4)
    >>> bool(np.isclose(2 * exact_noise_multiplier(1.0, 0.01), exact_noise_multiplier(part, at)))
    True
    """
    if parts == 1:
        return epsilon, delta
    if delta == 0.0:
        return epsilon / parts, 0.0
    mu = 1.0 / (exact_noise_multiplier(epsilon, delta) * np.sqrt(parts))
    return gaussian_epsilon(mu, PART_DELTA), PART_DELTA


def part_of(setting: Setting, *, parts: int, number: int, noise: Noise) -> Setting:
    """Return the setting of one of so many equal parts, with a seed of its own if there is one.

    With Laplace noise the δ is not used.

    Examples
    --------
    >>> whole = Setting(epsilon=1.0, delta=0.01)
    >>> half = part_of(whole, parts=2, number=0, noise="laplace")
    >>> half.epsilon, half.delta
    (0.5, 0.0)
    """
    delta = 0.0 if noise == "laplace" else setting.delta
    epsilon, delta = part_of_budget(setting.epsilon, delta, parts=parts)
    seed = setting.insecure_seed
    return replace(
        setting,
        epsilon=epsilon,
        delta=delta,
        insecure_seed=None if seed is None else seed + number,
    )


def shrunk(estimate: Array, *, noise_sd: Array | float, bounds: OutputBounds) -> Array:
    """Move noisy means towards the middle of the bounds, as much as their known noise asks for.

    The posterior mean under a normal law around the middle, of a quarter of the width.

    Examples
    --------
    >>> shrunk(np.array([8.0]), noise_sd=2.0, bounds=OutputBounds(0.0, 8.0))
    array([6.])
    """
    variance = (PRIOR_SD_SHARE * bounds.width) ** 2
    kept = variance / (variance + np.square(noise_sd))
    moved: Array = bounds.middle + kept * (estimate - bounds.middle)
    return moved


@lru_cache(maxsize=4)
def mapped_inputs(split: Split, *, ranked: bool) -> tuple[Array, Array]:
    """Return the public inputs of a split as `unit_inputs` maps them, once for all tunings."""
    return unit_inputs(split.X, split.X_test, ranked=ranked)


def unit_inputs(X: Array, X_test: Array, *, ranked: bool) -> tuple[Array, Array]:
    """Map public inputs to [−1, 1], by ranges or by ranks among fitted rows.

    Examples
    --------
    >>> unit_inputs(np.array([[0.0], [1.0], [4.0]]), np.array([[2.0], [9.0]]), ranked=False)[1].T
    array([[0., 1.]])
    >>> unit_inputs(np.array([[0.0], [1.0], [4.0]]), np.array([[1.0], [4.0]]), ranked=True)[1].T
    array([[0., 1.]])
    """
    columns = []
    for column, at in zip(X.T, X_test.T, strict=True):
        known = np.unique(column)
        if len(known) == 1:
            places = (np.zeros(len(column)), np.zeros(len(at)))
        else:
            levels = (
                np.interp(known, np.sort(column), np.linspace(-1.0, 1.0, len(column)))
                if ranked
                else np.interp(known, known[[0, -1]], [-1.0, 1.0])
            )
            places = (np.interp(column, known, levels), np.interp(at, known, levels))
        columns.append(places)
    fitted, test = zip(*columns, strict=True)
    return np.stack(fitted, axis=1), np.stack(test, axis=1)
