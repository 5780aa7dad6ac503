"""Default priors and query points, from bounds and public inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree
from sklearn.base import clone
from sklearn.gaussian_process.kernels import CompoundKernel, Kernel

from cloakgp.fitting.strategies import Query
from cloakgp.models import (
    APPROXIMATIONS,
    Approximation,
    ExactPrior,
    SparsePrior,
    default_kernel,
    default_latent_kernel,
    default_noise_variance,
    kmeans_centres,
    scales_by_block,
)
from cloakgp.models.defaults import find_varying, input_scales
from cloakgp.models.likelihoods import QuantileLikelihood
from cloakgp.models.likelihoods.classes import (
    LATENT_NUGGET,
    ClassLikelihood,
    latent_variances,
    link,
    mean_latent_variance,
)
from cloakgp.models.prediction import unpredicted, with_prediction
from cloakgp.models.prior import LARGEST_VARIANCE
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.questions.classes import Classes
from cloakgp.utils.arrays import Array, as_inputs
from cloakgp.utils.formatting import amount
from cloakgp.utils.names import HALF_COUNT, LinkName

# The default query points are the distinct rows of X up to here, and k-means centres beyond.
LARGEST_DEFAULT_QUERY = 500
# Of log rates, in place of a width of bounds: rates of some people are e⁶, 400 times those of
# others, at most. What bounds say of counts is more about how they scatter.
LOG_RATE_WIDTH = 6.0
# Inducing inputs of rows that are read in passes.
INDUCING = 200
# In widths of the bounds; beyond, float64 loses what lies within them.
FARTHEST_MEAN = 1e6
# How far declared class rates may be from adding up to 1.
RATE_TOLERANCE = 1e-6


def check_mean(mean: float, *, bounds: OutputBounds) -> None:
    """Refuse a prior mean of which float64 could not tell outputs within the bounds.

    Parameters
    ----------
    mean : float
    bounds : OutputBounds
        Both on one scale.

    Raises
    ------
    ValueError

    Examples
    --------
    >>> check_mean(20.0, bounds=OutputBounds(0.0, 10.0))
    """
    if not math.isfinite(mean):
        raise ValueError(f"mean must be finite, got {mean}")
    if abs(mean - bounds.middle) > FARTHEST_MEAN * bounds.width:
        raise ValueError(
            f"mean = {amount(mean, 12)} lies so far beyond the bounds "
            f"({amount(bounds.lo, 12)}, {amount(bounds.hi, 12)}) "
            "that float64 would lose what lies within them"
        )


def choose_prior(
    X: Array,
    *,
    bounds: OutputBounds,
    kernel: Kernel | None = None,
    noise_variance: float | None = None,
    mean: float | None = None,
    inducing: int | ArrayLike | None = None,
    approximation: Approximation = "fitc",
    input_names: Sequence[str] = (),
    blocks: Sequence[int] | None = None,
    random_state: int = 0,
    prediction: int | None = None,
) -> ExactPrior | SparsePrior:
    """Return the prior for public inputs, with defaults from inputs and bounds alone.

    Parameters
    ----------
    X : array of shape (N, D)
    bounds : OutputBounds
    kernel, noise_variance, mean, inducing, approximation, random_state
        As for `DPGPRegressor`.
    input_names : sequence of str
        By which columns of a table of inducing inputs are found, if there are any.
    blocks : sequence of int, optional
        Which block each input is in, from 0, where several stand for one column of a table.
    prediction : int, optional
        The place of the input that is a public prediction of outputs.

    Raises
    ------
    ValueError
        If a parameter does not make sense.

    Examples
    --------
    >>> choose_prior(np.array([[0.0], [8.0]]), bounds=OutputBounds(0.0, 10.0)).kernel
    2.5**2 + 1**2 * Linear(4 ± 4) + 1.5**2 * Matern(length_scale=8, nu=1.5)
    """
    rest = X
    if kernel is None:
        rest = X if prediction is None else unpredicted(X, column=prediction)
        kernel = default_kernel(rest, width=bounds.width, blocks=blocks)
    if not isinstance(kernel, Kernel) or isinstance(kernel, CompoundKernel):
        raise ValueError("kernel must be one of scikit-learn's kernels, or a sum or product")
    if noise_variance is None:
        noise_variance = default_noise_variance(width=bounds.width)
    if not (
        isinstance(noise_variance, Real) and math.isfinite(noise_variance) and noise_variance >= 0
    ):
        raise ValueError(f"noise_variance must be at least 0 and finite, got {noise_variance!r}")
    if noise_variance > LARGEST_VARIANCE:
        raise ValueError(
            f"noise_variance = {noise_variance:g} is beyond {LARGEST_VARIANCE:g}, with which "
            "nothing can be computed: give less"
        )
    # Designs square and add them.
    if (kernel.diag(X[:1]) > LARGEST_VARIANCE).any():
        raise ValueError(
            f"the kernel {kernel!r} has a variance beyond {LARGEST_VARIANCE:g}, with which nothing "
            "can be computed: give smaller factors"
        )
    centre = bounds.middle if mean is None else float(mean)
    check_mean(centre, bounds=bounds)
    if approximation not in APPROXIMATIONS:
        raise ValueError(
            f"approximation must be one of {', '.join(APPROXIMATIONS)}, got {approximation!r}"
        )
    prior: ExactPrior | SparsePrior = ExactPrior(
        kernel=clone(kernel), noise_variance=float(noise_variance), mean=centre
    )
    if inducing is not None:
        prior = SparsePrior(
            kernel=prior.kernel,
            noise_variance=prior.noise_variance,
            mean=centre,
            inducing=_inducing(
                rest, inducing, input_names=input_names, blocks=blocks, random_state=random_state
            ),
            approximation=approximation,
        )
    return prior if prediction is None else with_prediction(prior, X, column=prediction)


def _inducing(
    X: Array,
    inducing: int | ArrayLike,
    *,
    input_names: Sequence[str],
    blocks: Sequence[int] | None,
    random_state: int,
) -> Array:
    """Return inducing inputs: those given, or representative places of the rows."""
    if isinstance(inducing, bool):
        raise ValueError("inducing must be a count or an array of inputs, not a truth value")
    if isinstance(inducing, str):
        raise ValueError(f"inducing must be a count or an array of inputs here, got {inducing!r}")
    if isinstance(inducing, int | np.integer):
        return _centres(X, int(inducing), blocks=blocks, random_state=random_state)[0]
    return as_inputs(inducing, input_names=input_names, n_inputs=X.shape[1], name="inducing")


def choose_label_prior(
    X: Array,
    *,
    classes: Classes,
    kernel: Kernel | None = None,
    link_name: LinkName = "probit",
    class_rates: ArrayLike | None = None,
    inducing: int | ArrayLike | None = None,
    approximation: Approximation = "fitc",
    input_names: Sequence[str] = (),
    blocks: Sequence[int] | None = None,
    random_state: int = 0,
) -> tuple[ExactPrior | SparsePrior, ClassLikelihood]:
    """Return prior and likelihood of classes, with defaults from public inputs alone.

    Parameters
    ----------
    X : array of shape (N, D)
    classes : Classes
    kernel, link_name, class_rates, inducing, approximation, random_state
        As for `DPGPClassifier`.
    input_names : sequence of str
        By which columns of a table of inducing inputs are found, if there are any.
    blocks : sequence of int, optional
        As for `choose_prior`.

    Raises
    ------
    ValueError
        If a parameter does not make sense.

    Examples
    --------
    >>> _, likelihood = choose_label_prior(
    ...     np.array([[0.0], [8.0]]), classes=Classes(("a", "b", "c")))
    >>> [round(mean, 3) for mean in likelihood.latent_means]
    [-1.01, -1.01, -1.01]
    """
    chosen_link = link(link_name)
    latent = choose_prior(
        X,
        # Of no consequence here: a latent function has no bounds, and its mean comes below.
        bounds=OutputBounds(-1.0, 1.0),
        kernel=default_latent_kernel(X, blocks=blocks) if kernel is None else kernel,
        noise_variance=0.0,
        mean=0.0,
        inducing=inducing,
        approximation=approximation,
        input_names=input_names,
        blocks=blocks,
        random_state=random_state,
    )
    variances = latent_variances(latent, X)
    count = len(classes.labels)
    rates = np.full(count, 1.0 / count) if class_rates is None else np.asarray(class_rates, float)
    if rates.shape != (count,) or not ((rates > 0) & (rates < 1)).all():
        raise ValueError("class_rates must lie strictly between 0 and 1, one per class")
    if abs(rates.sum() - 1.0) > RATE_TOLERANCE:
        raise ValueError("class_rates must add up to 1")
    likelihood = ClassLikelihood(
        link_name=chosen_link.name,
        latent_means=tuple(
            chosen_link.latent_mean(float(rate), variance=variances)
            for rate in (rates[1:] if count == 2 else rates)
        ),
    )
    nugget = LATENT_NUGGET * float(variances.mean())
    return replace(latent, noise_variance=nugget), likelihood


def choose_rate_prior(
    X: Array,
    *,
    counts: tuple[float, float],
    typical: float = 1.0,
    kernel: Kernel | None = None,
    mean: float | None = None,
    inducing: int | ArrayLike | None = None,
    approximation: Approximation = "fitc",
    input_names: Sequence[str] = (),
    blocks: Sequence[int] | None = None,
    random_state: int = 0,
) -> ExactPrior | SparsePrior:
    """Return the prior of the log rate of counts, from inputs, exposures and bounds alone.

    That of numbers between bounds at a distance of 6 on the scale of logarithms, around the middle,
    on that scale, of half a count more than the bounds of counts, for an average exposure.

    Parameters
    ----------
    X : array of shape (N, D)
    counts : (float, float)
        Bounds of a count, declared or found.
    typical : float
        The average exposure of rows.
    kernel, inducing, approximation, random_state
        As for `DPGPRegressor`; the kernel is that of the log rate.
    mean : float, optional
        A rate.
    input_names, blocks
        As for `choose_prior`.

    Raises
    ------
    ValueError
        If a parameter does not make sense.

    Examples
    --------
    >>> round(choose_rate_prior(np.array([[0.0], [8.0]]), counts=(0, 49)).mean, 3)
    1.604
    """
    lo, hi = (float(np.log((max(end, 0.0) + HALF_COUNT) / typical)) for end in counts)
    middle = (lo + hi) / 2
    return _latent_prior(
        X,
        bounds=OutputBounds(middle - LOG_RATE_WIDTH / 2, middle + LOG_RATE_WIDTH / 2),
        kernel=kernel,
        mean=None if mean is None else float(np.log(mean)),
        inducing=inducing,
        approximation=approximation,
        input_names=input_names,
        blocks=blocks,
        random_state=random_state,
    )


def choose_quantile_prior(
    X: Array,
    *,
    quantiles: Sequence[float],
    bounds: OutputBounds,
    kernel: Kernel | None = None,
    mean: float | None = None,
    inducing: int | ArrayLike | None = None,
    approximation: Approximation = "fitc",
    input_names: Sequence[str] = (),
    blocks: Sequence[int] | None = None,
    random_state: int = 0,
) -> tuple[ExactPrior | SparsePrior, QuantileLikelihood]:
    """Return prior and likelihood of quantiles, from inputs and bounds alone.

    Outputs are taken to scatter about their median by a tenth of the bounds' width, as numbers are.

    Parameters
    ----------
    X : array of shape (N, D)
    quantiles : sequence of float
    bounds : OutputBounds
        Declared or found, of the outputs as they are asked.
    kernel, mean, inducing, approximation, random_state
        As for `DPGPRegressor`; the mean is that of the median.
    input_names, blocks
        As for `choose_prior`.

    Raises
    ------
    ValueError
        If a parameter does not make sense.

    Examples
    --------
    >>> prior, likelihood = choose_quantile_prior(
    ...     np.array([[0.0], [8.0]]), quantiles=[0.5, 0.9], bounds=OutputBounds(0.0, 10.0))
    >>> prior.mean, likelihood.scales
    (5.0, (1.0, 1.0))
    """
    prior = _latent_prior(
        X,
        bounds=bounds,
        kernel=kernel,
        mean=mean,
        inducing=inducing,
        approximation=approximation,
        input_names=input_names,
        blocks=blocks,
        random_state=random_state,
    )
    levels = tuple(float(level) for level in quantiles)
    scale = math.sqrt(default_noise_variance(width=bounds.width))
    likelihood = QuantileLikelihood(quantiles=levels, scales=(scale,) * len(levels))
    likelihood.validate()
    return prior, likelihood


def _latent_prior(X: Array, **chosen: Any) -> ExactPrior | SparsePrior:
    """Return the prior of what outputs scatter about by a likelihood: all its noise is a nugget."""
    prior = choose_prior(X, noise_variance=0.0, **chosen)
    return replace(prior, noise_variance=LATENT_NUGGET * mean_latent_variance(prior, X))


def choose_query(X: Array, *, blocks: Sequence[int] | None = None, random_state: int = 0) -> Query:
    """Return the default query points: places of the rows.

    The distinct rows, each as important as there are rows there; beyond 500, as many k-means
    centres.

    Parameters
    ----------
    X : array of shape (N, D)
    blocks : sequence of int, optional
        As for `choose_prior`.
    random_state : int

    Examples
    --------
    >>> choose_query(np.array([[0.0], [0.0], [8.0]])).weights
    array([2., 1.])
    """
    centres, sizes = _centres(X, LARGEST_DEFAULT_QUERY, blocks=blocks, random_state=random_state)
    return Query(X=centres, weights=sizes)


def _centres(
    X: Array, count: int, *, blocks: Sequence[int] | None, random_state: int
) -> tuple[Array, Array]:
    """Return representative places of the rows, and their counts of rows.

    Distances are in units of each column's spread, as pounds are not comparable with years. With
    blocks, the rows nearest to k-means centres: between two categories there is nothing.
    """
    if blocks is None:
        # Powers of two, so that rows are the same numbers again. What hardly varies stays as it is:
        # its scale is for lengthscales, and too large here.
        scales = np.where(find_varying(X), input_scales(X), 1.0)
        units = np.exp2(np.round(np.log2(scales)))
        centres, sizes = kmeans_centres(X / units, count=count, random_state=random_state)
        return centres * units, sizes
    scaled = X / scales_by_block(X, blocks=blocks)
    centres, sizes = kmeans_centres(scaled, count=count, random_state=random_state)
    _, nearest = cKDTree(scaled).query(centres)
    return X[nearest], sizes
