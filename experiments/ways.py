"""Estimators compared on the same splits: relative errors, coverage and calibration.

Estimators have their untouched defaults unless a way's name says more. What outputs are predicted
with is a normal law: its mean gives the error, its quantiles coverage and calibration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Literal

import numpy as np
from scipy import special
from sklearn.gaussian_process.kernels import Kernel

from cloakgp import DPGPRegressor
from cloakgp.fitting.bands import Stages
from cloakgp.fitting.defaults import choose_prior
from cloakgp.models import matern_kernel
from cloakgp.privacy import ask
from cloakgp.privacy.workers import in_order
from cloakgp.release import Release
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import NoiseChoice
from experiments.cloaking import mean_without_privacy, sd_without_privacy
from experiments.cross_validation import Protocol
from experiments.framework import Tick, no_tick, ticked
from experiments.priors import Split

DECILES = tuple(round(0.1 * step, 1) for step in range(1, 10))
# Ends of a 95 % interval, around the deciles.
LEVELS = (0.025, *DECILES, 0.975)


@dataclass(frozen=True)
class Setting:
    """What every way is given.

    Attributes
    ----------
    epsilon, delta : float
    inducing : int or None
    insecure_seed : int or None
        Makes the noise reproducible. For tests.
    """

    epsilon: float
    delta: float = 0.01
    inducing: int | None = None
    insecure_seed: int | None = None

    def for_draw(self, draw: int) -> Setting:
        """Return the setting with a seed of its own for a draw, if there is one."""
        return replace(self, insecure_seed=Protocol(insecure_seed=self.insecure_seed).seed(draw))


@dataclass(frozen=True, eq=False)
class Predicted:
    """Normal laws of new outputs.

    Attributes
    ----------
    mean : array of shape (P,)
    sd : array of shape (P,) or None
        None if a way does not say.
    """

    mean: Array
    sd: Array | None = None

    @classmethod
    def by(cls, release: Release, X: Array) -> Predicted:
        """Return what a release predicts."""
        return cls(*release.predict(X, return_std=True, new_output=True))

    def shares_below(self, outputs: Array) -> Array:
        """Return which share of outputs lies below each predicted quantile, shape (levels,).

        NaN if there are none. In the order of `LEVELS`.
        """
        if self.sd is None:
            return np.full(len(LEVELS), np.nan)
        standardised = (outputs - self.mean) / self.sd
        shares: Array = np.mean(standardised[:, None] <= special.ndtri(LEVELS), axis=0)
        return shares


def released(
    split: Split,
    setting: Setting,
    *,
    stages: Stages = "auto",
    kernel: Callable[..., Kernel] | None = None,
    noise: NoiseChoice = "auto",
    interval: Literal["auto", False] = "auto",
) -> Predicted:
    """Fit `DPGPRegressor`, its defaults untouched but for these; a kernel is of X and ``width``."""
    bounds = split.bounds
    model = DPGPRegressor(
        kernel=None if kernel is None else kernel(split.X, width=bounds.width),
        bounds=(bounds.lo, bounds.hi),
        epsilon=setting.epsilon,
        delta=setting.delta,
        noise=noise,
        inducing=setting.inducing,
        stages=stages,
        interval=interval,
        insecure_seed=setting.insecure_seed,
    )
    return Predicted.by(model.fit(split.X, split.outputs).release_, split.X_test)


def without_privacy(split: Split, setting: Setting) -> Predicted:
    """Condition the default prior, as declared, on the outputs themselves."""
    prior = choose_prior(split.X, bounds=split.bounds, inducing=setting.inducing)
    mean = mean_without_privacy(
        split.X, split.outputs, X_query=split.X_test, prior=prior, bounds=split.bounds
    )
    sd = sd_without_privacy(split.X, X_query=split.X_test, prior=prior)
    return Predicted(mean, np.sqrt(np.square(sd) + prior.noise_variance))


def noisy_mean(split: Split, setting: Setting) -> Predicted:
    """Spend all of ε on the mean of the outputs, with Laplace noise, and predict it everywhere."""
    bounds, rows = split.bounds, len(split.X)
    answers = ask(
        np.full((1, rows), 1.0 / rows),
        split.outputs,
        question=bounds,
        epsilon=setting.epsilon,
        delta=0.0,
        noise="laplace",
        insecure_seed=setting.insecure_seed,
    )
    mean = bounds.clip(answers.values[0, 0] + bounds.middle)
    return Predicted(np.broadcast_to(mean, len(split.X_test)))


Way = Callable[[Split, Setting], Predicted]
ONE_STAGE, DEFAULT = "one stage", "default"
MATERN, STAGED_MATERN = "Matérn alone, one stage", "Matérn alone, in stages"
NO_PRIVACY, NOISY_MEAN = "no privacy", "noisy mean"
WAYS: Mapping[str, Way] = MappingProxyType(
    {
        ONE_STAGE: partial(released, stages=None),
        DEFAULT: released,
        MATERN: partial(released, stages=None, kernel=matern_kernel),
        STAGED_MATERN: partial(released, kernel=matern_kernel),
        NO_PRIVACY: without_privacy,
        NOISY_MEAN: noisy_mean,
    }
)


def chosen_ways(*names: str) -> dict[str, Way]:
    """Return some of `WAYS`, by name."""
    return {name: WAYS[name] for name in names}


@dataclass(frozen=True, eq=False)
class Compared:
    """What ways did on the same splits.

    Attributes
    ----------
    ways, tables : tuple of str
    errors : array of shape (ways, tables, draws)
        RMSE over the sd of the held-out outputs.
    below : array of shape (ways, tables, draws, levels)
        Share of held-out outputs below each predicted quantile.
    spread : array of shape (tables, draws)
        Sd of the held-out outputs.
    """

    ways: tuple[str, ...]
    tables: tuple[str, ...]
    errors: Array
    below: Array
    spread: Array

    def errors_of(self, way: str) -> Array:
        """Return the relative errors of a way, shape (tables, draws)."""
        chosen: Array = self.errors[self.ways.index(way)]
        return chosen

    def coverage_of(self, way: str) -> Array:
        """Return which share of outputs its 95 % intervals hold, shape (tables, draws)."""
        below = self.below[self.ways.index(way)]
        held: Array = below[..., -1] - below[..., 0]
        return held

    def deciles_of(self, way: str) -> Array:
        """Return the shares below predicted deciles, over tables and draws, shape (9,)."""
        shares: Array = self.below[self.ways.index(way), ..., 1:-1].mean(axis=(0, 1))
        return shares


def compare(
    splits: Mapping[str, Sequence[Split]],
    *,
    ways: Mapping[str, Way] = WAYS,
    setting: Setting,
    tick: Tick = no_tick,
    n_jobs: int | None = None,
) -> Compared:
    """Let all ways predict all splits.

    Parameters
    ----------
    splits : mapping of table to sequence of Split
        As many of each table.
    n_jobs : int, optional
        How many splits at a time; see `cloakgp.privacy.workers.in_order`. Workers get the tables,
        outputs and all: they are an experiment's.
    """
    tasks = (
        partial(_judged, split, ways=ways, setting=setting.for_draw(draw))
        for of_table in splits.values()
        for draw, split in enumerate(of_table)
    )
    judged = np.array(list(ticked(in_order(tasks, n_jobs=n_jobs), tick=tick)))
    # Tables and draws, ways, and of each the error before the shares.
    shaped = judged.reshape(len(splits), -1, len(ways), 1 + len(LEVELS))
    return Compared(
        ways=tuple(ways),
        tables=tuple(splits),
        errors=np.moveaxis(shaped[..., 0], 2, 0),
        below=np.moveaxis(shaped[..., 1:], 2, 0),
        spread=np.array([[one.outputs_test.std() for one in each] for each in splits.values()]),
    )


def _judged(split: Split, *, ways: Mapping[str, Way], setting: Setting) -> list[list[float]]:
    """Return the relative error of every way, and its shares below quantiles."""
    predictions = [way(split, setting) for way in ways.values()]
    return [
        [split.relative_error(one.mean), *one.shares_below(split.outputs_test)]
        for one in predictions
    ]
