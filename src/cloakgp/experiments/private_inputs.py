"""Inputs private too: the !Kung women's heights by age, against a histogram, and intervals.

Every method protects a whole row, age and height, for the same neighbours and budget, and knows the
same public things: ages in a box, heights in the papers' window. The histogram's number of bins is
not public: it is shown for several, and whoever takes the best of them helps it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel

from cloakgp.arrays import Array
from cloakgp.choices import choose_prior
from cloakgp.experiments import kung
from cloakgp.experiments.crossvalidation import Errors, Protocol, Tick, root_mean_square
from cloakgp.experiments.posterior_rows import (
    TUNED_LENGTHSCALES,
    TUNED_NOISE,
    TUNED_SIGNAL,
    Row,
    posterior_errors,
)
from cloakgp.models import default_kernel, default_noise_variance
from cloakgp.models.basis import BinBasis, EigenBasis, InputBox
from cloakgp.models.exact import ExactPrior
from cloakgp.privacy.statistics import Statistics, measure_statistics
from cloakgp.privacy.statistics_grid import Neighbours
from cloakgp.private_inputs import FEATURES_PER_INPUT
from cloakgp.release.statistics import StatisticsRelease

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
    """Return the estimator's defaults, and a prior that knows how heights vary.

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
            default_kernel(np.array([AGES.lo, AGES.hi]), width=width),
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
            bins={one: BinBasis(kernel=tuned.kernel, box=AGES, bins=(one,)) for one in bins},
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
    tick: Tick | None = None,
) -> Found:
    """Cross-validate heights from age with every method, at one ε and δ = 0.01.

    Parameters
    ----------
    women : DataFrame
        ``load_kung(male=False)``.
    epsilon : float
    neighbours : {"replace", "add-remove"}
    protocol : Protocol
    bins : sequence of int
    tick : callable, optional
        Called after every fold.
    """
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
        if tick is not None:
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
    truth, found = kung.BUDGET.bounds.clip(y), {}
    for choice in declared_priors():
        centre = kung.BUDGET.bounds.middle
        prior = ExactPrior(kernel=choice.kernel, noise_variance=choice.noise_variance, mean=centre)
        found[choice.name] = float(
            np.mean(
                [
                    root_mean_square(
                        centre
                        + prior.cloaking_matrix(X[held_out], X[train]) @ (truth[train] - centre)
                        - truth[held_out]
                    )
                    for train, held_out in protocol.splits(len(X))
                ]
            )
        )
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
    kernel : Kernel
    epsilon : float
    neighbours : {"replace", "add-remove"}
    tables : int
        Independent tables, each with noise of its own.
    rows : int
    noise_variance : float
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
