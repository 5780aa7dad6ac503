"""Inputs private too: the !Kung women's heights by age, against a histogram, and intervals.

Every method protects a whole row, age and height, for the same neighbours and budget, and knows the
same public things: ages in a box, heights in the papers' window. The histogram's number of bins is
not public: it is shown for several, and whoever takes the best of them helps it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
import typer
from rich.table import Table
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern

from cloakgp.estimators.private_inputs import FEATURES_PER_INPUT
from cloakgp.fitting.defaults import choose_prior
from cloakgp.models import default_noise_variance, matern_kernel
from cloakgp.models.exact import ExactPrior
from cloakgp.models.features import BinBasis, EigenBasis, InputBox
from cloakgp.privacy.statistics import NEIGHBOURS, Neighbours, Statistics, measure_statistics
from cloakgp.privacy.varah import NotDominantError, dominance_bound
from cloakgp.release.statistics import StatisticsRelease
from cloakgp.utils.arrays import Array
from experiments import kung
from experiments.cloaking import mean_without_privacy
from experiments.cross_validation import Errors, Protocol, Row, posterior_errors, root_mean_square
from experiments.datasets import load_kung
from experiments.framework import Experiment, Progress, Releases, Tick, no_tick, table_titled
from experiments.kung import TUNED_LENGTHSCALES, TUNED_NOISE, TUNED_SIGNAL
from experiments.spread import with_error

AGES = InputBox((0.0,), (100.0,))
BINS = (5, 10, 20)
DELTA = 0.01
PUBLIC = "inputs public, defaults"
NORMAL_95 = 1.959964


@dataclass(frozen=True, eq=False)
class Found:
    """What was found at one ε.

    Attributes
    ----------
    errors : dict of str to Errors
        Root mean squared errors in cm, by method.
    coverage : dict of str to float
        Share of held-out heights inside 95 % intervals, where a method has them.
    """

    errors: dict[str, Errors]
    coverage: dict[str, float]


@dataclass(frozen=True)
class PriorChoice:
    """A declared prior: name, kernel, noise variance."""

    name: str
    kernel: Kernel
    noise_variance: float


def declared_priors() -> tuple[PriorChoice, ...]:
    """Return the default kernel of public inputs, and a prior that knows how heights vary.

    The estimator asks their sums once; without a declared kernel it asks in rounds, as
    `experiments.whole_rows` shows.

    Examples
    --------
    >>> [prior.name for prior in declared_priors()]
    ['defaults', 'RBF 15 years']
    """
    width = kung.BUDGET.bounds.width
    lengthscale = TUNED_LENGTHSCALES["1d"]
    return (
        PriorChoice(
            "defaults",
            matern_kernel(np.array([AGES.lo, AGES.hi]), width=width),
            default_noise_variance(width=width),
        ),
        PriorChoice(
            f"RBF {lengthscale:g} years",
            ConstantKernel(TUNED_SIGNAL) * RBF(lengthscale),
            TUNED_NOISE,
        ),
    )


def histogram_means(published: Statistics) -> Array:
    """Return noisy sums over noisy counts, brought inside the bounds, shape (bins,).

    Counts below one are taken as one.

    Examples
    --------
    >>> basis = BinBasis(kernel=RBF(), box=InputBox((0.0,), (2.0,)), bins=(2,))
    >>> published = measure_statistics(np.array([[0.5]] * 900), np.ones(900), basis=basis,
    ...                                bounds=(0, 1), epsilon=9.0, delta=0.1, insecure_seed=0)
    >>> float(histogram_means(published)[0].round(1))
    1.0
    """
    half_width = (published.bounds[1] - published.bounds[0]) / 2
    ratios = published.moments / np.maximum(np.diag(published.gram), 1.0)
    return published.centre + np.clip(ratios, -half_width, half_width)


@dataclass(frozen=True, eq=False)
class Methods:
    """The methods that are compared, with their public bases.

    Attributes
    ----------
    eigen : tuple of (PriorChoice, EigenBasis)
    bins : dict of int to BinBasis
        By number of bins.
    bins_prior : PriorChoice
        Of the Gaussian process that smooths them.
    """

    eigen: tuple[tuple[PriorChoice, EigenBasis], ...]
    bins: dict[int, BinBasis]
    bins_prior: PriorChoice

    @classmethod
    def with_bins(cls, bins: Sequence[int]) -> Methods:
        """Return the estimator's methods, and histograms with so many bins."""
        priors = declared_priors()
        tuned = priors[-1]
        return cls(
            eigen=tuple(
                (prior, EigenBasis(kernel=prior.kernel, box=AGES, wanted=FEATURES_PER_INPUT))
                for prior in priors
            ),
            bins={count: BinBasis(kernel=tuned.kernel, box=AGES, bins=(count,)) for count in bins},
            bins_prior=tuned,
        )

    def predictions(
        self,
        X: Array,
        y: Array,
        *,
        X_query: Array,
        epsilon: float,
        neighbours: Neighbours,
        insecure_seed: int | None,
    ) -> dict[str, tuple[Array, Array | None]]:
        """Release once with each method, and return means and, where it has one, sds of outputs.

        The raw histogram and the Gaussian process on it share their noise.
        """
        lo, hi = kung.BUDGET.bounds.lo, kung.BUDGET.bounds.hi

        def published(basis: EigenBasis | BinBasis) -> Statistics:
            return measure_statistics(
                X,
                y,
                basis=basis,
                bounds=(lo, hi),
                epsilon=epsilon,
                delta=DELTA,
                neighbours=neighbours,
                insecure_seed=insecure_seed,
            )

        found: dict[str, tuple[Array, Array | None]] = {}
        for prior, basis in self.eigen:
            release = StatisticsRelease(basis, published(basis), prior.noise_variance)
            found[f"statistics, {prior.name}"] = release.predict(
                X_query, return_std=True, new_output=True
            )
        for count, bins in self.bins.items():
            counts = published(bins)
            means = bins.features(X_query) @ histogram_means(counts)
            found[f"histogram, {count} bins"] = (means, None)
            smoothed = StatisticsRelease(bins, counts, self.bins_prior.noise_variance)
            found[f"GP on that histogram, {count} bins"] = (smoothed.predict(X_query), None)
        return found


def kung_errors(
    women: pd.DataFrame,
    *,
    epsilon: float,
    neighbours: Neighbours,
    protocol: Protocol,
    bins: Sequence[int] = BINS,
    tick: Tick = no_tick,
) -> Found:
    """Cross-validate heights from age with every method, at one ε and δ = 0.01."""
    X, y = women[["age"]].to_numpy(dtype=float), kung.heights(women)
    truth = kung.BUDGET.bounds.clip(y)
    methods = Methods.with_bins(bins)
    by_fold: dict[str, list[list[float]]] = {}
    inside: dict[str, list[bool]] = {}
    for fold, (train, held_out) in enumerate(protocol.splits(len(X))):
        draws: dict[str, list[float]] = {}
        for draw in range(protocol.draws):
            predicted = methods.predictions(
                X[train],
                y[train],
                X_query=X[held_out],
                epsilon=epsilon,
                neighbours=neighbours,
                insecure_seed=protocol.seed(fold, draw),
            )
            for name, (mean, sd) in predicted.items():
                missed = mean - truth[held_out]
                draws.setdefault(name, []).append(root_mean_square(missed))
                if sd is not None:
                    hits = np.abs(missed) <= NORMAL_95 * sd
                    inside.setdefault(name, []).extend(hits.tolist())
        for name, errors in draws.items():
            by_fold.setdefault(name, []).append(errors)
        tick()
    budget = replace(kung.BUDGET, epsilon=epsilon, delta=DELTA)
    public = Row(PUBLIC, lambda rows: choose_prior(rows, bounds=budget.bounds))
    found = posterior_errors(X, y, rows=(public,), budget=budget, protocol=protocol)
    found |= {name: Errors(np.array(errors)) for name, errors in by_fold.items()}
    return Found(
        errors=found, coverage={name: float(np.mean(hits)) for name, hits in inside.items()}
    )


def errors_without_privacy(women: pd.DataFrame, *, protocol: Protocol) -> dict[str, float]:
    """Return the errors of the exact Gaussian process without privacy, in cm, by prior."""
    X, y = women[["age"]].to_numpy(dtype=float), kung.heights(women)
    bounds, found = kung.BUDGET.bounds, {}
    for choice in declared_priors():
        prior = ExactPrior(
            kernel=choice.kernel, noise_variance=choice.noise_variance, mean=bounds.middle
        )
        errors = []
        for train, held_out in protocol.splits(len(X)):
            mean = mean_without_privacy(
                X[train], y[train], X_query=X[held_out], prior=prior, bounds=bounds
            )
            errors.append(root_mean_square(mean - bounds.clip(y[held_out])))
        found[choice.name] = float(np.mean(errors))
    return found


def simulated_coverage(
    kernel: Kernel,
    *,
    epsilon: float,
    neighbours: Neighbours,
    tables: int,
    rows: int = 300,
    noise_variance: float = 0.16,
    seed: int = 0,
) -> tuple[float, float, float]:
    """Return how often 95 % intervals of f hold, its standard error over tables, and rms z.

    Functions are drawn from the prior on [0, 1], inputs from a skewed (beta 2, 5) density, outputs
    have the stated noise and are clipped to [−2, 2]; queries are uniform. δ = 0.001.

    Parameters
    ----------
    tables : int
        Independent tables, each with noise of its own.
    seed : int
        Of the tables. The privacy noise is fresh.
    """
    rng = np.random.default_rng(seed)
    basis = EigenBasis(kernel=kernel, box=InputBox((0.0,), (1.0,)), wanted=FEATURES_PER_INPUT)
    shares, squares = [], []
    for _ in range(tables):
        points = np.vstack([rng.beta(2, 5, size=(rows, 1)), rng.uniform(size=(100, 1))])
        covariance = kernel(points) + 1e-8 * np.eye(len(points))
        f = np.linalg.cholesky(covariance) @ rng.normal(size=len(points))
        released = measure_statistics(
            points[:rows],
            f[:rows] + np.sqrt(noise_variance) * rng.normal(size=rows),
            basis=basis,
            bounds=(-2.0, 2.0),
            epsilon=epsilon,
            delta=1e-3,
            neighbours=neighbours,
        )
        release = StatisticsRelease(basis=basis, statistics=released, noise_variance=noise_variance)
        mean, sd = release.predict(points[rows:], return_std=True)
        z = (f[rows:] - mean) / sd
        shares.append(float(np.mean(np.abs(z) <= NORMAL_95)))
        squares.append(float(np.mean(z**2)))
    error = float(np.std(shares, ddof=1) / np.sqrt(tables))
    return float(np.mean(shares)), error, float(np.sqrt(np.mean(squares)))


GAPS = (50.0, 90.0)


def dominance_lines(rows: int) -> list[str]:
    """Say what the papers' way would give for so many rows: a bound, or a refusal."""
    lines = []
    for gap in GAPS:
        ages = np.arange(5.0, 100.0, gap)[:, None]
        try:
            bound = dominance_bound(
                ages,
                signal_variance=TUNED_SIGNAL,
                lengthscale=TUNED_LENGTHSCALES["1d"],
                noise_variance=TUNED_NOISE,
                rows=rows,
                width=kung.BUDGET.bounds.width,
            )
        except NotDominantError as error:
            said = f"refused: {error}"
        else:
            said = f"one row moves a prediction by at most {bound.prediction_move:.0f} cm"
        lines.append(f"Diagonal dominance, inducing ages {gap:g} years apart: {said}")
    return lines


def errors_report(found: dict[float, Found], *, neighbours: str, protocol: Protocol) -> Table:
    """Lay out errors by method and ε."""
    table = table_titled(
        f"RMSE (cm) of heights by age, both private, {neighbours}, δ = {DELTA:g}, "
        f"{protocol.folds} folds, {protocol.draws} draws (se over draws); last: share of held-out "
        "heights in 95 % intervals",
        "method",
        right=(f"ε = {epsilon:g}" for epsilon in found),
    )
    first = next(iter(found.values()))
    for name in first.errors:
        cells = (one.errors[name] for one in found.values())
        table.add_row(name, *(with_error(cell.mean, cell.standard_error) for cell in cells))
    for name in first.coverage:
        shares = (one.coverage[name] for one in found.values())
        table.add_row(f"coverage, {name}", *(f"{share:.1%}" for share in shares))
    return table


@dataclass(frozen=True)
class Simulated:
    """Coverage on simulated tables: of which kernel, for whom, at which ε, and what was found."""

    kernel: Kernel
    neighbours: Neighbours
    epsilon: float
    coverage: tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Errors without privacy by prior, errors by neighbours and ε, and simulated coverage."""

    dominance: list[str]
    without: dict[str, float]
    errors: dict[Neighbours, dict[float, Found]]
    simulated: list[Simulated]


@dataclass(frozen=True)
class PrivateInputs(Experiment[Comparison]):
    """Ages and heights both private: statistics against the histogram, and their intervals."""

    name: ClassVar[str] = "private-inputs"
    small: ClassVar[Mapping[str, Any]] = {"draws": 2, "epsilons": (1.0,), "simulations": 10}

    draws: Releases = 20
    epsilons: Sequence[float] = (0.5, 1.0, 2.0, 5.0)
    simulations: Annotated[int, typer.Option(min=2, help="Simulated tables for coverage.")] = 60

    def compute(self, progress: Progress) -> Comparison:
        """Cross-validate every method, and simulate how often intervals hold."""
        women, protocol = load_kung(male=False), Protocol(draws=self.draws)
        errors: dict[Neighbours, dict[float, Found]] = {}
        for neighbours in NEIGHBOURS:
            with progress(neighbours, steps=len(self.epsilons) * protocol.folds) as tick:
                errors[neighbours] = {
                    epsilon: kung_errors(
                        women, epsilon=epsilon, neighbours=neighbours, protocol=protocol, tick=tick
                    )
                    for epsilon in self.epsilons
                }
        return Comparison(
            dominance=dominance_lines(len(women)),
            without=errors_without_privacy(women, protocol=protocol),
            errors=errors,
            simulated=[
                Simulated(
                    kernel,
                    neighbours,
                    epsilon,
                    simulated_coverage(
                        kernel, epsilon=epsilon, neighbours=neighbours, tables=self.simulations
                    ),
                )
                for kernel in (0.49 * Matern(0.5, nu=1.5), 0.49 * RBF(0.2))
                for neighbours in NEIGHBOURS
                for epsilon in self.epsilons
            ],
        )

    def tables(self, found: Comparison) -> Iterable[Table | str]:
        """Lay out errors by method and ε, and say how often intervals hold."""
        yield from found.dominance
        yield "Without privacy: " + ", ".join(
            f"{name} {one:.2f} cm" for name, one in found.without.items()
        )
        for neighbours, by_epsilon in found.errors.items():
            yield errors_report(
                by_epsilon, neighbours=neighbours, protocol=Protocol(draws=self.draws)
            )
        for one in found.simulated:
            share, error, z = one.coverage
            yield (
                f"95 % intervals, simulated, {one.kernel}, {one.neighbours}, ε = {one.epsilon:g}, "
                f"{self.simulations} tables: {share:.1%} (se {error:.1%}), rms z {z:.2f}"
            )
