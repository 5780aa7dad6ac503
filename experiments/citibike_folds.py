"""Citi Bike: errors of one fold of trips, by Gaussian processes and by bins.

Stated: 5000 trips drawn for each of 30 folds, 4900 to train and 100 to test; latitude and longitude
of both stations in degrees; durations thresholded at 2000 s, also where errors are measured; δ =
0.01; an RBF kernel with variance 1581² s² and noise variance 1605² s². A duration cannot be below
zero, so d = 2000 s. Not stated: the prior mean (here the middle of the bounds, in place of the mean
of the durations, which leaks), the grid of the bins (here the box of all stations), and the kernel
behind the integral binning (here the lengthscale of 0.05° that stands beside the variances).

The paper's trips are of June 2016, and "163,000 subscribers" are all that it says of who rode. Here
trips are of four days in June 2017. A public script that is built on the authors' modules keeps
subscribers' trips alone, and with these the column without privacy is near the paper's; day
visitors ride longer, and with them it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pandas as pd
from scipy import linalg
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel

from cloakgp.design import design_strategy
from cloakgp.estimators.baselines.histogram import release_histogram
from cloakgp.fitting import strategies
from cloakgp.fitting.defaults import choose_prior
from cloakgp.fitting.strategies import Query, choose_strategy
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.kernels.integral import IntegralRBF, points_as_boxes
from cloakgp.privacy import OutputBounds
from cloakgp.release import Release
from cloakgp.release.histogram import Bins, Indices, NoisyHistogram, Occupancy
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import NoiseName
from experiments.cloaking import (
    LOGDET_NOISE,
    PAPERS_NOISE,
    TRACE_NOISE,
    Asked,
    Budget,
    Cloaked,
    Prior,
    learned,
    mean_without_privacy,
)
from experiments.cross_validation import root_mean_square

INPUTS = ["start_lat", "start_lon", "end_lat", "end_lon"]
SUBSCRIBER = "Subscriber"
BOUNDS = OutputBounds(0.0, 2000.0)
EPSILONS = (1.0, 0.5, 0.2)
DELTA = 0.01
LENGTHSCALES = (0.781, 0.312, 0.125, 0.05, 0.02)
BINS = (10, 6, 3)
SIGNAL_VARIANCE, NOISE_VARIANCE = 1581.0**2, 1605.0**2
INTEGRAL_LENGTHSCALE = 0.05
FOLDS = 30
TRAINING, HELD_OUT = 4900, 100


@dataclass(frozen=True, eq=False)
class Fold:
    """Trips to learn from, and trips to predict.

    Attributes
    ----------
    X : array of shape (N, 4)
        Degrees.
    y : array of shape (N,)
        Durations in seconds, as recorded.
    X_query : array of shape (P, 4)
    truth : array of shape (P,)
        Durations of those, clipped to the bounds.
    """

    X: Array
    y: Array
    X_query: Array
    truth: Array


@dataclass(frozen=True, eq=False)
class Trips:
    """All trips, to draw folds from.

    Attributes
    ----------
    X : array of shape (N, 4)
    durations : array of shape (N,)
        In seconds.
    """

    X: Array
    durations: Array

    @classmethod
    def of(cls, table: pd.DataFrame, *, subscribers: bool = False) -> Trips:
        """Take the columns that are needed from ``load_citibike()``.

        Parameters
        ----------
        subscribers : bool
            Trips of subscribers alone, not of day visitors.
        """
        rows = table[table["usertype"] == SUBSCRIBER] if subscribers else table
        return cls(
            X=rows[INPUTS].to_numpy(dtype=float),
            durations=rows["tripduration"].to_numpy(dtype=float),
        )

    @property
    def box(self) -> list[tuple[float, float]]:
        """The range of each input over all trips."""
        lowest, highest = self.X.min(axis=0).tolist(), self.X.max(axis=0).tolist()
        return list(zip(lowest, highest, strict=True))

    def folds(
        self, count: int, *, training: int = TRAINING, held_out: int = HELD_OUT
    ) -> Iterator[Fold]:
        """Draw Monte-Carlo folds; the same ones every time.

        Parameters
        ----------
        training, held_out : int
            Trips of each fold, drawn without replacement.

        Examples
        --------
        >>> trips = Trips(X=np.zeros((9, 4)), durations=np.arange(9.0))
        >>> [len(fold.y) for fold in trips.folds(2, training=6, held_out=2)]
        [6, 6]
        """
        for number in range(count):
            dealt = np.random.default_rng(number).permutation(len(self.X))
            train, test = dealt[:training], dealt[training : training + held_out]
            yield Fold(
                X=self.X[train],
                y=self.durations[train],
                X_query=self.X[test],
                truth=BOUNDS.clip(self.durations[test]),
            )


def budget(epsilon: float) -> Budget:
    """Return what a release may spend."""
    return Budget(bounds=BOUNDS, epsilon=epsilon, delta=DELTA)


def exact_prior(lengthscale: float) -> ExactPrior:
    """Return the paper's prior.

    Examples
    --------
    >>> exact_prior(0.125).kernel
    1.58e+03**2 * RBF(length_scale=0.125)
    """
    return ExactPrior(
        kernel=_kernel(lengthscale), noise_variance=NOISE_VARIANCE, mean=BOUNDS.middle
    )


def sparse_prior(lengthscale: float, *, inducing: Array) -> SparsePrior:
    """Return the same prior seen through inducing inputs (FITC).

    Parameters
    ----------
    lengthscale : float
        In degrees.
    inducing : array of shape (M, 4)
        Chosen from public inputs.
    """
    return SparsePrior(
        kernel=_kernel(lengthscale),
        noise_variance=NOISE_VARIANCE,
        mean=BOUNDS.middle,
        inducing=inducing,
    )


def integral_prior() -> ExactPrior:
    """Return the prior over boxes that is fitted to bins."""
    return ExactPrior(
        kernel=ConstantKernel(SIGNAL_VARIANCE) * IntegralRBF(INTEGRAL_LENGTHSCALE),
        noise_variance=NOISE_VARIANCE,
        mean=BOUNDS.middle,
    )


def _kernel(lengthscale: float) -> Kernel:
    return ConstantKernel(SIGNAL_VARIANCE) * RBF(lengthscale)


NOISES = (PAPERS_NOISE, LOGDET_NOISE, TRACE_NOISE)
# A closer design takes ten times longer, for errors that differ by less than those of two draws.
GAP = 3e-2
# With these, FITC is the exact process to five digits down to 0.125°, and not quite at 0.05°.
INDUCING = 200
DEFAULT_INDUCING = 200

# Errors of one fold by budget, one per draw of the noise; of None, without privacy, there is one.
ByBudget = dict[float | None, list[float]]
Seed = Callable[[float, int], int | None]


def cloaking_errors(
    fold: Fold, *, lengthscale: float, draws: int, seed: Seed
) -> dict[str, ByBudget]:
    """Return errors of the raw predictions C y + noise of the exact process, by noise.

    Parameters
    ----------
    lengthscale : float
        In degrees.
    draws : int
        Releases for each noise and budget; the design is the same for all.
    seed : callable
        Budget and draw → insecure seed or None.
    """
    prior = exact_prior(lengthscale)
    cloaking = prior.cloaking_matrix(fold.X_query, fold.X)
    unnoised = prior.mean + cloaking @ (BOUNDS.clip(fold.y) - prior.mean)
    designs = {
        criterion: design_strategy(cloaking, criterion=criterion, gap=GAP)
        for criterion in {noise.criterion for noise in NOISES}
    }
    found: dict[str, ByBudget] = {}
    for noise in NOISES:
        cloaked = Cloaked(
            prior=prior,
            X=fold.X,
            X_query=fold.X_query,
            cloaking=cloaking,
            noise=noise,
            design=designs[noise.criterion],
        )
        found[noise.name] = {None: [root_mean_square(unnoised - fold.truth)]}
        for epsilon in EPSILONS:
            releases = (
                cloaked.released(fold.y, budget=budget(epsilon), insecure_seed=seed(epsilon, draw))
                for draw in range(draws)
            )
            found[noise.name][epsilon] = [
                root_mean_square(release.published().values - fold.truth) for release in releases
            ]
    return found


def bayes_errors(
    fold: Fold, *, lengthscale: float, inducing: Array, draws: int, seed: Seed
) -> ByBudget:
    """Return errors of posterior means, the questions chosen for the held-out inputs.

    Where somebody wants predictions is public, as it is in the paper's cloaking.

    Parameters
    ----------
    lengthscale : float
        In degrees.
    inducing : array of shape (M, 4)
    """
    prior = sparse_prior(lengthscale, inducing=inducing)
    found: ByBudget = {None: [_error_without_privacy(fold, prior=prior)]}
    for epsilon in EPSILONS:
        strategy = choose_strategy(
            fold.X,
            prior=prior,
            query=Query(X=fold.X_query),
            question=BOUNDS,
            budget=strategies.Budget(epsilon=epsilon, delta=DELTA),
            gap=GAP,
        )
        asked = Asked(prior=prior, strategy=strategy, budget=budget(epsilon))
        releases = [
            asked.released(fold.y, insecure_seed=seed(epsilon, draw)) for draw in range(draws)
        ]
        found[epsilon] = [
            root_mean_square(mean - fold.truth)
            for mean in posterior_means(releases, X_query=fold.X_query)
        ]
    return found


def default_errors(fold: Fold, *, draws: int, seed: Seed) -> dict[str, ByBudget]:
    """Return errors of ``DPGPRegressor(inducing=200)`` with nothing else chosen, by learning.

    It is not told where predictions will be wanted. Hyperparameters are learned from the first
    draw alone, which takes longer than all the rest.

    Parameters
    ----------
    draws : int
        Where nothing is learned.
    """
    prior = choose_prior(fold.X, bounds=BOUNDS, inducing=DEFAULT_INDUCING)
    unnoised = _error_without_privacy(fold, prior=prior)
    declared: ByBudget = {None: [unnoised]}
    fitted: ByBudget = {None: [unnoised]}
    for epsilon in EPSILONS:
        asked = Asked.designed(fold.X, prior=prior, budget=budget(epsilon))
        releases = [
            asked.released(fold.y, insecure_seed=seed(epsilon, draw)) for draw in range(draws)
        ]
        declared[epsilon] = [
            root_mean_square(mean - fold.truth)
            for mean in posterior_means(releases, X_query=fold.X_query)
        ]
        best = learned(releases[0], "map").predict(fold.X_query)
        fitted[epsilon] = [root_mean_square(best - fold.truth)]
    return {"defaults, learn=None": declared, "defaults": fitted}


def posterior_means(releases: Sequence[Release], *, X_query: Array) -> list[Array]:
    """Return the posterior mean of every release, where all asked the same questions.

    One factorisation serves them all: the mean is linear in the answers.

    Parameters
    ----------
    releases : sequence of Release
        With one prior, and one measurement each, of the same questions.
    X_query : array of shape (P, D)

    Raises
    ------
    ValueError
        If their questions differ.
    """
    first = releases[0].measurements[0]
    if any(release.measurements[0].strategy is not first.strategy for release in releases):
        raise ValueError("these releases did not ask the same questions")
    prior = releases[0].prior
    posterior = releases[0].posterior
    root = posterior.query_root(X_query)
    means = []
    for release in releases:
        (measurement,) = release.measurements
        residuals = measurement.residuals(prior.mean)[:, 0] / measurement.noise_sd
        weights = linalg.solve_triangular(posterior.factor, residuals, lower=True)
        means.append(np.asarray(prior.mean + root @ weights, dtype=np.float64))
    return means


def _error_without_privacy(fold: Fold, *, prior: Prior) -> float:
    mean = mean_without_privacy(fold.X, fold.y, X_query=fold.X_query, prior=prior, bounds=BOUNDS)
    return root_mean_square(mean - fold.truth)


# What the paper adds, and what (ε, δ) allows.
HISTOGRAM_NOISES: tuple[tuple[str, NoiseName], ...] = (
    ("Laplace as the paper", "laplace"),
    ("Gaussian, exact", "gaussian"),
)


def binning_errors(
    fold: Fold, *, bins: Bins, draws: int, seed: Seed
) -> dict[str, dict[str, ByBudget]]:
    """Return errors of simple and both integral binnings, by noise; all of the same releases.

    Simple binning with Laplace noise is the paper's: nothing is clipped, and bins without rows get
    the mean of the training rows, un-noised, which leaks it. With Gaussian noise it is
    `DPHistogramRegressor`: clipped to the bounds, and their middle for empty bins.

    Parameters
    ----------
    seed : callable
        Budget and draw → insecure seed or None.
    """
    occupancy = Occupancy.of(fold.X, bins)
    durations = BOUNDS.clip(fold.y)
    means = occupancy.strategy @ durations / occupancy.counts
    population = float(durations.mean())
    prior = integral_prior()
    boxes = bins.boxes(occupancy.cells)
    cells = bins.cells(fold.X_query)

    def integral_error(kind: str, bin_means: Array, noise_sd: float) -> float:
        variances = INTEGRALS[kind](prior, occupancy.counts, noise_sd)
        weights = integral_weights(boxes, variances, X_query=fold.X_query, prior=prior)
        return root_mean_square(prior.mean + weights @ (bin_means - prior.mean) - fold.truth)

    unnoised = means_in_bins(cells, known=occupancy.cells, means=means, elsewhere=population)
    simple_unnoised = root_mean_square(unnoised - fold.truth)
    simple: dict[str, ByBudget] = {}
    integral: dict[str, dict[str, ByBudget]] = {kind: {} for kind in INTEGRALS}
    for name, noise in HISTOGRAM_NOISES:
        simple[name] = {None: [simple_unnoised]}
        for kind, by_noise in integral.items():
            by_noise[name] = {None: [integral_error(kind, means, 0.0)]}
        for epsilon in EPSILONS:
            histograms = [
                release_histogram(
                    fold.X,
                    fold.y,
                    bins=bins,
                    noise=noise,
                    bounds=(BOUNDS.lo, BOUNDS.hi),
                    epsilon=epsilon,
                    delta=DELTA,
                    insecure_seed=seed(epsilon, draw),
                )
                for draw in range(draws)
            ]
            simple[name][epsilon] = [
                root_mean_square(
                    _simple(histogram, fold.X_query, elsewhere=population) - fold.truth
                )
                for histogram in histograms
            ]
            for kind, by_noise in integral.items():
                by_noise[name][epsilon] = [
                    integral_error(kind, histogram.means, histogram.noise_sd)
                    for histogram in histograms
                ]
    return {"simple": simple, **integral}


def means_in_bins(cells: Indices, *, known: Indices, means: Array, elsewhere: float) -> Array:
    """Return the mean of the bin in which each point lies.

    Parameters
    ----------
    cells : array of shape (P,)
        The numbers of the points' bins.
    known : array of shape (m,)
        The numbers of the bins that hold rows, ascending.
    means : array of shape (m,)
    elsewhere : float
        For other bins.

    Examples
    --------
    >>> means_in_bins(np.array([4, 2]), known=np.array([2, 3]), means=np.array([7.0, 8.0]),
    ...               elsewhere=0.0)
    array([0., 7.])
    """
    at = np.minimum(np.searchsorted(known, cells), len(known) - 1)
    return np.where(known[at] == cells, means[at], elsewhere)


def one_variance(prior: ExactPrior, counts: Array, noise_sd: float) -> Array:
    """Return the noise variance of each bin's mean as one for all: that of the prior, shape (m,).

    The 2018 paper and its supplement state no other.

    Parameters
    ----------
    prior : ExactPrior
    counts : array of shape (m,)
    noise_sd : float
        Of each noisy sum; not looked at.
    """
    del noise_sd
    return np.full(len(counts), float(prior.noise_variance))


def known_variances(prior: ExactPrior, counts: Array, noise_sd: float) -> Array:
    """Return the known noise variance of each bin's mean, σ_n²/n + s²/n², shape (m,).

    Not the paper's: what `DPIntegralHistogramRegressor` does.

    Parameters
    ----------
    prior : ExactPrior
    counts : array of shape (m,)
        n.
    noise_sd : float
        s, of each noisy sum; 0 without privacy.
    """
    found: Array = prior.noise_variance / counts + np.square(noise_sd / counts)
    return found


# Integral binning: as the paper has it, and with what is known of every bin.
INTEGRALS: Mapping[str, Callable[[ExactPrior, Array, float], Array]] = MappingProxyType(
    {"integral": one_variance, "integral, known noise": known_variances}
)


def integral_weights(boxes: Array, variances: Array, *, X_query: Array, prior: ExactPrior) -> Array:
    """Return the linear map from bin means to the posterior mean at points, shape (P, m).

    A bin's mean is the average of the latent function over its box (2018 paper, supplement,
    "integral kernel") with noise. Of the noisy means of `release_histogram` with
    `known_variances` this gives what `DPIntegralHistogramRegressor` predicts with learn=None,
    without a matrix over the rows.

    Parameters
    ----------
    boxes : array of shape (m, 2D)
        Of the bins that hold rows.
    variances : array of shape (m,)
        Of the noise of each bin's mean.
    X_query : array of shape (P, D)
    prior : ExactPrior
        Over boxes.
    """
    covariance = prior.row_covariance(boxes, boxes.copy())
    covariance[np.diag_indices(len(boxes))] += variances
    crossed = prior.cross_covariance(points_as_boxes(X_query), boxes)
    solved = linalg.cho_solve(linalg.cho_factor(covariance, lower=True), crossed.T)
    return np.asarray(solved.T, dtype=np.float64)


def _simple(histogram: NoisyHistogram, X_query: Array, *, elsewhere: float) -> Array:
    if histogram.noise == "gaussian":
        return histogram.predict(X_query)
    return means_in_bins(
        histogram.bins.cells(X_query),
        known=histogram.cells,
        means=histogram.means,
        elsewhere=elsewhere,
    )
