"""How often 95 % intervals hold what they should: on draws from the prior, and on real tables.

Intervals of the latent function are mean ± 1.96 sd of `Release.predict`; those of new outputs have
``new_output=True``. On synthetic data the truth is drawn from the declared prior, or from a prior
whose hyperparameters are drawn from the weak priors of
`cloakgp.release.hyperparameters.regression`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
import typer
from rich.table import Table as Printed
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from cloakgp.models import ExactPrior
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.workers import in_order
from cloakgp.release import Release
from cloakgp.release.hyperparameters.hyperprior import LOG_SD
from cloakgp.release.hyperparameters.regression import MEAN_SD_SHARE
from cloakgp.utils.arrays import Array
from experiments.cloaking import LEARNINGS, Asked, Budget, learned
from experiments.framework import (
    Experiment,
    Progress,
    Rows,
    Splits,
    Tick,
    no_tick,
    table_titled,
    ticked,
)
from experiments.priors import DEFAULT_SHAPE, Scale, Table, first_tables
from experiments.spread import standard_error, with_error

QUANTILE = 1.959964
BOUNDS = OutputBounds(-1.0, 1.0)
NEW_POINTS = 60
# Of the inputs and of the truths; public, and apart from the noise's seed.
SYNTHETIC_SEED = 20240101


@dataclass(frozen=True)
class World:
    """Where synthetic outputs come from: a declared prior, and whether it is the true one.

    Attributes
    ----------
    name : str
    signal, noise : float
        Declared sds, as shares of the bounds' width.
    uncertain : bool
        Draw the true hyperparameters from the weak priors around the declared ones.
    """

    name: str
    signal: float
    noise: float
    uncertain: bool = False

    @property
    def declared(self) -> ExactPrior:
        """Over one input in [0, 1]: Matérn 3/2 with half the range as lengthscale."""
        return ExactPrior(
            kernel=ConstantKernel((self.signal * BOUNDS.width) ** 2) * Matern(0.5, nu=1.5),
            noise_variance=(self.noise * BOUNDS.width) ** 2,
            mean=BOUNDS.middle,
        )

    def truth(self, rng: np.random.Generator) -> ExactPrior:
        """Return the prior that one data set is drawn from."""
        declared = self.declared
        if not self.uncertain:
            return declared
        theta = declared.kernel.theta
        return ExactPrior(
            kernel=declared.kernel.clone_with_theta(theta + LOG_SD * rng.normal(size=len(theta))),
            noise_variance=declared.noise_variance * float(np.exp(LOG_SD * rng.normal())),
            mean=declared.mean + MEAN_SD_SHARE * BOUNDS.width * float(rng.normal()),
        )


WORLDS = (
    World("declared prior, hardly clipped", signal=1 / 10, noise=1 / 25),
    World("sds of 1/4 and 1/10", signal=1 / 4, noise=1 / 10),
    World("drawn around the declared", signal=1 / 10, noise=1 / 25, uncertain=True),
)


@dataclass(frozen=True, eq=False)
class Coverage:
    """Shares of points that lie in their intervals, one per draw, by way to learn.

    Attributes
    ----------
    shares : array of shape (ways, draws)
        In the order of `LEARNINGS`.
    clipped : float or None
        Share of the true outputs that lie outside the bounds, where the truth is known.
    """

    shares: Array
    clipped: float | None = None

    @property
    def mean(self) -> Array:
        """Over draws, shape (ways,)."""
        return np.asarray(self.shares.mean(axis=1), dtype=np.float64)

    @property
    def standard_errors(self) -> list[float | None]:
        """Of every `mean`; None where there are too few draws to tell."""
        return [standard_error(of_way) for of_way in self.shares]


def covered(release: Release, X: Array, values: Array, *, new_output: bool) -> float:
    """Return the share of values in their 95 % intervals.

    Parameters
    ----------
    X : array of shape (P, D)
    values : array of shape (P,)
        Of the latent function, or new outputs.
    new_output : bool
        Which of them.
    """
    mean, sd = release.predict(X, return_std=True, new_output=new_output)
    return float(np.mean(np.abs(values - mean) <= QUANTILE * sd))


def synthetic_coverage(
    world: World, *, scale: Scale, tick: Tick = no_tick, n_jobs: int | None = None
) -> tuple[Coverage, Coverage]:
    """Return the coverage of the latent function and of new outputs at new inputs.

    Parameters
    ----------
    n_jobs : int, optional
        How many draws at a time; see `cloakgp.privacy.workers.in_order`.
    """
    rng = np.random.default_rng(SYNTHETIC_SEED)
    X = rng.uniform(size=(scale.rows, 1))
    declared = world.declared
    budget = Budget(bounds=BOUNDS, epsilon=scale.epsilon, delta=scale.delta)
    asked = Asked.designed(X, prior=declared, budget=budget)

    def drawn(draw: int) -> Callable[[], _Shares]:
        truth, new = world.truth(rng), rng.uniform(size=(NEW_POINTS, 1))
        covariance = truth.query_covariance(np.vstack([X, new]))
        latent = rng.multivariate_normal(
            np.full(len(covariance), truth.mean), covariance, check_valid="ignore"
        )
        outputs = latent + np.sqrt(truth.noise_variance) * rng.normal(size=len(latent))
        return partial(
            _shares, asked, new=new, latent=latent, outputs=outputs, insecure_seed=scale.seed(draw)
        )

    # Truths are drawn here, one after another from one generator, and looked at anywhere.
    tasks = map(drawn, range(scale.draws))
    draws = list(ticked(in_order(tasks, n_jobs=n_jobs), tick=tick))
    outside = float(np.mean([draw.clipped for draw in draws]))
    return (
        Coverage(shares=np.array([draw.latent for draw in draws]).T, clipped=outside),
        Coverage(shares=np.array([draw.outputs for draw in draws]).T, clipped=outside),
    )


@dataclass(frozen=True)
class _Shares:
    """Of one draw, by way to learn; and the share of its outputs that lie outside the bounds."""

    latent: list[float]
    outputs: list[float]
    clipped: float


def _shares(
    asked: Asked, *, new: Array, latent: Array, outputs: Array, insecure_seed: int | None
) -> _Shares:
    """Return the coverage at new inputs, which come last in what was drawn."""
    rows = len(latent) - len(new)
    answered = asked.released(outputs[:rows], insecure_seed=insecure_seed)
    releases = [learned(answered, learning) for learning in LEARNINGS]
    return _Shares(
        latent=[covered(release, new, latent[rows:], new_output=False) for release in releases],
        outputs=[covered(release, new, outputs[rows:], new_output=True) for release in releases],
        clipped=float(np.mean(BOUNDS.clip(outputs) != outputs)),
    )


def table_coverage(
    compared: Iterable[Table], *, scale: Scale, tick: Tick = no_tick, n_jobs: int | None = None
) -> dict[str, Coverage]:
    """Return the coverage of held-out outputs of real tables under the default prior, by name.

    Parameters
    ----------
    n_jobs : int, optional
        How many splits at a time; see `cloakgp.privacy.workers.in_order`.
    """
    compared = list(compared)
    tasks = (
        partial(_shares_of_split, table, draw, scale=scale)
        for table in compared
        for draw in range(scale.draws)
    )
    shares = list(ticked(in_order(tasks, n_jobs=n_jobs), tick=tick, every=scale.draws))
    by_table = np.array(shares).reshape(len(compared), scale.draws, len(LEARNINGS))
    return {
        table.name: Coverage(shares=one.T) for table, one in zip(compared, by_table, strict=True)
    }


def _shares_of_split(table: Table, draw: int, *, scale: Scale) -> list[float]:
    """Return the coverage of one split's held-out outputs, by way to learn."""
    split = table.split(draw, rows=scale.rows)
    asked = Asked.designed(split.X, prior=split.prior(DEFAULT_SHAPE), budget=split.budget(scale))
    answered = asked.released(split.outputs, insecure_seed=scale.seed(draw))
    return [
        covered(learned(answered, learning), split.X_test, split.outputs_test, new_output=True)
        for learning in LEARNINGS
    ]


def coverage_report(found: Mapping[str, Coverage], *, title: str) -> Printed:
    """Lay out coverages by way to learn."""
    table = table_titled(title, "", right=("None", "map", "average", "clipped"))
    for name, coverage in found.items():
        shares = zip(coverage.mean, coverage.standard_errors, strict=True)
        table.add_row(
            name,
            *(with_error(mean, error, ".1%") for mean, error in shares),
            "" if coverage.clipped is None else f"{coverage.clipped:.1%}",
        )
    return table


@dataclass(frozen=True, eq=False)
class Found:
    """Coverage of the latent function and of new outputs by world, and of real outputs by table."""

    latent: Mapping[str, Coverage]
    outputs: Mapping[str, Coverage]
    real: Mapping[str, Coverage]


@dataclass(frozen=True)
class Intervals(Experiment[Found]):
    """Count how often 95 % intervals hold the truth, on synthetic data and on twelve tables."""

    name: ClassVar[str] = "coverage"
    small: ClassVar[Mapping[str, Any]] = {
        "draws": 2,
        "table_draws": 2,
        "rows": 100,
        "epsilon": 1.0,
        "count": 2,
    }

    draws: Annotated[int, typer.Option(min=2, help="Synthetic data sets.")] = 60
    table_draws: Splits = 8
    rows: Rows = 250
    epsilon: Annotated[float, typer.Option(help="Of every release.")] = 1.0
    # Of tables; None: all.
    count: int | None = None

    def scale(self, draws: int) -> Scale:
        """Return how large a comparison of so many draws is."""
        return Scale(rows=self.rows, draws=draws, epsilon=self.epsilon)

    def compute(self, progress: Progress) -> Found:
        """Count on synthetic data and on tables."""
        latent, outputs = {}, {}
        with progress("synthetic", steps=len(WORLDS) * self.draws) as tick:
            for world in WORLDS:
                latent[world.name], outputs[world.name] = synthetic_coverage(
                    world, scale=self.scale(self.draws), tick=tick
                )
        compared = first_tables(self.count)
        with progress("tables", steps=len(compared)) as tick:
            real = table_coverage(compared, scale=self.scale(self.table_draws), tick=tick)
        return Found(latent=latent, outputs=outputs, real=real)

    def tables(self, found: Found) -> Iterable[Printed | str]:
        """Lay out coverages by way to learn."""
        scale = self.scale(self.draws)
        budget = f"({scale.epsilon:g}, {scale.delta:g})-DP, {scale.rows} rows, se over"
        for what, by_world in (
            ("the latent function", found.latent),
            ("new outputs", found.outputs),
        ):
            title = (
                f"95 % intervals of {what}, by learn; synthetic, {budget} {self.draws} data sets"
            )
            yield coverage_report(by_world, title=title)
        title = f"95 % intervals of held-out outputs, by learn; {budget} {self.table_draws} splits"
        yield coverage_report(found.real, title=title)
