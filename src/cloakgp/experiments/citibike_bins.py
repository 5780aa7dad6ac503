"""Citi Bike by bins: errors of one fold from noisy bin means, and from a process fitted to them."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from cloakgp.arrays import Array
from cloakgp.baselines.bins import Bins, Indices, Occupancy
from cloakgp.baselines.histogram import release_histogram
from cloakgp.baselines.noisy_histogram import Noise, NoisyHistogram
from cloakgp.experiments import citibike
from cloakgp.experiments.citibike import Fold
from cloakgp.experiments.citibike_gp import ByBudget, Seed
from cloakgp.experiments.crossvalidation import root_mean_square
from cloakgp.models import ExactPrior
from cloakgp.models.integral import points_as_boxes

# What the paper adds, and what (ε, δ) allows.
HISTOGRAM_NOISES: tuple[tuple[str, Noise], ...] = (
    ("Laplace as the paper", "laplace"),
    ("Gaussian, exact", "gaussian"),
)


def binning_errors(
    fold: Fold, *, bins: Bins, draws: int, seed: Seed
) -> dict[str, dict[str, ByBudget]]:
    """Return errors of simple and of integral binning, by noise; both of the same releases.

    Simple binning with Laplace noise is the paper's: nothing is clipped, and bins without rows get
    the mean of the training rows, un-noised, which leaks it. With Gaussian noise it is
    `DPHistogramRegressor`: clipped to the bounds, and their middle for empty bins.

    Parameters
    ----------
    fold : Fold
    bins : Bins
    draws : int
    seed : callable
        Budget and draw → insecure seed or None.
    """
    occupancy = Occupancy.of(fold.X, bins)
    durations = citibike.BOUNDS.clip(fold.y)
    means = occupancy.strategy @ durations / occupancy.counts
    population = float(durations.mean())
    prior = citibike.integral_prior()
    boxes = bins.boxes(occupancy.cells)
    cells = bins.cells(fold.X_query)

    def integral_error(bin_means: Array, noise_sd: float) -> float:
        weights = integral_weights(
            boxes, occupancy.counts, X_query=fold.X_query, prior=prior, noise_sd=noise_sd
        )
        return root_mean_square(prior.mean + weights @ (bin_means - prior.mean) - fold.truth)

    unnoised = means_in_bins(cells, known=occupancy.cells, means=means, elsewhere=population)
    simple_unnoised = root_mean_square(unnoised - fold.truth)
    integral_unnoised = integral_error(means, 0.0)
    simple: dict[str, ByBudget] = {}
    integral: dict[str, ByBudget] = {}
    for name, noise in HISTOGRAM_NOISES:
        simple[name] = {None: [simple_unnoised]}
        integral[name] = {None: [integral_unnoised]}
        for epsilon in citibike.EPSILONS:
            histograms = [
                release_histogram(
                    fold.X,
                    fold.y,
                    bins=bins,
                    noise=noise,
                    bounds=(citibike.BOUNDS.lo, citibike.BOUNDS.hi),
                    epsilon=epsilon,
                    delta=citibike.DELTA,
                    insecure_seed=seed(epsilon, draw),
                )
                for draw in range(draws)
            ]
            simple[name][epsilon] = [
                root_mean_square(_simple(one, fold.X_query, elsewhere=population) - fold.truth)
                for one in histograms
            ]
            integral[name][epsilon] = [
                integral_error(one.means, one.noise_sd) for one in histograms
            ]
    return {"simple": simple, "integral": integral}


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


def integral_weights(
    boxes: Array, counts: Array, *, X_query: Array, prior: ExactPrior, noise_sd: float
) -> Array:
    """Return the linear map from bin means to the posterior mean at points, shape (P, m).

    A bin's mean is the average of the latent function over its box with noise of variance
    σ_n²/n + s²/n² (2018 paper, supplement, "integral kernel"). Of the noisy means of
    `release_histogram` this gives what `DPIntegralHistogramRegressor` predicts with learn=None,
    without a matrix over the rows.

    Parameters
    ----------
    boxes : array of shape (m, 2D)
        Of the bins that hold rows.
    counts : array of shape (m,)
    X_query : array of shape (P, D)
    prior : ExactPrior
        Over boxes.
    noise_sd : float
        Of each noisy sum; 0 without privacy.
    """
    covariance = prior.row_covariance(boxes, boxes.copy())
    noise = prior.noise_variance / counts + np.square(noise_sd / counts)
    covariance[np.diag_indices(len(boxes))] += noise
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
