"""Whole rows private: counts of every column, products of features, and residuals in rounds.

Which question is put next is decided by answers already published; what each costs was decided
beforehand, as a share of μ².
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.models.axes import Axis, estimate_class_shares, estimate_shares, lines
from cloakgp.models.cosines import CosineBasis, with_even_share
from cloakgp.models.features import InputBox
from cloakgp.models.simplex import simplex_corners
from cloakgp.privacy.column_counts import ColumnCounts, measure_column_counts
from cloakgp.privacy.inputs import places_of_labels
from cloakgp.privacy.noise import GAUSSIAN
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.privacy.questions.classes import Classes
from cloakgp.privacy.residuals import measure_residuals
from cloakgp.privacy.spending import hold, one_charge
from cloakgp.privacy.statistics import Neighbours, measure_statistics
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release.residual_rounds import residual_variance
from cloakgp.release.statistics import SURE, StatisticsRelease
from cloakgp.utils.arrays import Array

# Of μ²: counts of columns; products of features with the first moments; later moments. Chosen, as
# all numbers here, on tables that nothing is judged by (`experiments.whole_rows`). Halving or
# doubling one of them moves errors on these by some thousandths; of a few hundred rows, exact
# counts of outputs are what matters most.
SHARES = (0.26, 0.30, 0.08, 0.13, 0.23)
# Of the counts' part, what the output's have; the inputs share the rest equally.
OUTPUT_SHARE = 0.77
OUTPUT_BINS, BINS, BINS_OF_ONE_INPUT = 16, 8, 16
# β of `cloakgp.privacy.statistics`.
WEIGHTING = 0.6
# Half widths of bands, in sds of outputs first, and of residuals then; and their least, as a share
# of half the bounds' width.
FIRST_BAND, BAND, NARROWEST = 2.5, 2.2, 0.05
# A band is widened by this factor while outputs beyond it surely move the mean by more than this
# share of the outputs' sd.
WIDER, MATTERS = 1.25, 0.02
# Of the outputs' variance: the signal's prior variance, what is left beside it, and the prior
# variance of the mean about the middle of the counts. Labels are seldom told by inputs, nor is who
# has an output that most have not.
SIGNAL, LEFT, MEAN = 0.6, 0.7, 0.25
SIGNAL_OF_LABELS, LEFT_OF_LABELS = 0.1, 1.0
# Share of rows between which outputs lie within one sd, were they normal.
LOWER, UPPER = 0.16, 0.84
FEATURES, MOST_FEATURES = 40, 200


def default_features(n_inputs: int) -> int:
    """Return how many features there are if nobody says: 40, or one for each input and the mean.

    Never more than 200.

    Examples
    --------
    >>> default_features(3), default_features(60), default_features(1000)
    (40, 61, 200)
    """
    return min(max(FEATURES, n_inputs + 1), MOST_FEATURES)


@forget_on_failure
@one_charge
def release_whole_rows(
    X: ArrayLike,
    y: ArrayLike,
    *,
    box: InputBox,
    axes: Sequence[Axis] = (),
    bounds: OutputBounds | None,
    epsilon: float,
    delta: float,
    neighbours: Neighbours,
    features: int,
    noise_variance: float | None = None,
    classes: Classes | None = None,
    insecure_seed: int | None = None,
) -> StatisticsRelease:
    """Ask a table of private inputs and outputs in rounds.

    Mechanisms, with neighbours, sensitivities and proofs: `cloakgp.privacy.column_counts`,
    `cloakgp.privacy.statistics` and `cloakgp.privacy.residuals`. Each has a fixed share of μ², and
    what it asks depends on public things and on answers before it, so that they compose.

    Parameters
    ----------
    X : array-like of shape (N, D)
        Private.
    y : array-like of shape (N,)
        Private.
    box : InputBox
    axes : sequence of Axis, optional
        What inputs say; if there are none, each is a number on a line of its own.
    bounds : OutputBounds or None
        None of labels.
    epsilon, delta : float
    neighbours : {"replace", "add-remove"}
    features : int
        The most features.
    noise_variance : float, optional
        In squared output units; from residuals if not given.
    classes : Classes, optional
        If y is of labels: then corners of a simplex stand for them (`cloakgp.models.simplex`), for
        two −1 and 1. The first round clips none of them; later ones shorten what is left of a label
        where its prediction is further from it than the furthest corner is from their mean.
    insecure_seed : int, optional
        Makes the noise reproducible and the release **not private**.

    Returns
    -------
    StatisticsRelease
    """
    budgets = GAUSSIAN.split(epsilon, delta, shares=SHARES)
    hold(*budgets)
    seeds = [None if insecure_seed is None else insecure_seed + part for part in range(len(SHARES))]
    if classes is not None:
        y, bounds = places_of_labels(y, classes, rows=np.shape(X)[0]), places_of(classes)
    if bounds is None:
        raise ValueError("bounds are missing")
    ends = (bounds.lo, bounds.hi)
    along = tuple(axes) or lines(box.n_inputs)
    bins, weights = bins_and_weights(
        along, output_bins=len(classes.labels) if classes else OUTPUT_BINS
    )
    counts = measure_column_counts(
        X,
        y,
        box=box,
        axes=along,
        bounds=ends,
        bins=bins,
        weights=weights,
        epsilon=budgets[0][0],
        delta=budgets[0][1],
        neighbours=neighbours,
        insecure_seed=seeds[0],
    )
    narrowest, far_ones = NARROWEST * bounds.width / 2, False
    if classes is None:
        points, (centre, sd) = None, middle_and_sd(counts)
        first_band = max(FIRST_BAND * sd, narrowest)
        half_width = hold_far_outputs(counts, centre=centre, half_width=first_band, sd=sd)
        far_ones = half_width > first_band
        if far_ones:
            sd = max(sd, max(counts.output_variance()[0], 0.0) ** 0.5)
    else:
        points, sd = points_and_sd(counts)
        # No label is beyond the furthest of the corners.
        centre, half_width = 0.0, float(np.linalg.norm(points, axis=1).max())
    told_by_inputs = classes is None and not far_ones
    basis = CosineBasis(
        box=box,
        shares=tuple(
            with_even_share(
                axis.estimate(
                    counts.counts[column],
                    noise_sd=counts.sd_of(column),
                    rows=counts.expected_rows,
                )
            )
            for column, axis in enumerate(along)
        ),
        axes=tuple(axes),
        signal_variance=(SIGNAL if told_by_inputs else SIGNAL_OF_LABELS) * sd**2,
        mean_variance=MEAN * sd**2,
        wanted=features,
    )
    left = (LEFT if told_by_inputs else LEFT_OF_LABELS) * sd**2
    release = StatisticsRelease(
        basis=basis,
        statistics=measure_statistics(
            X,
            y,
            basis=basis,
            bounds=(centre - half_width, centre + half_width),
            epsilon=budgets[1][0],
            delta=budgets[1][1],
            neighbours=neighbours,
            weighting=WEIGHTING,
            declared=ends if points is None else None,
            points=points,
            insecure_seed=seeds[1],
        ),
        noise_variance=left if noise_variance is None else noise_variance,
        counts=counts,
        classes=classes,
        points=points,
    )
    # A narrower band would lose the far ones again, however little most outputs are off.
    if told_by_inputs:
        half_width = min(BAND * sd, half_width)
    for (part, at), seed in zip(budgets[2:], seeds[2:], strict=True):
        if told_by_inputs:
            half_width = max(half_width, narrowest)
        residuals = measure_residuals(
            X,
            y,
            basis=basis,
            bounds=ends,
            weights=release.weights[0],
            centre=release.statistics.centre,
            half_width=half_width,
            epsilon=part,
            delta=at,
            neighbours=neighbours,
            points=points,
            insecure_seed=seed,
        )
        variance = residual_variance(residuals, rows=counts.expected_rows)
        if told_by_inputs:
            half_width = min(BAND * variance**0.5, half_width)
        release = replace(
            release,
            residuals=(*release.residuals, residuals),
            noise_variance=min(release.noise_variance, variance)
            if noise_variance is None
            else noise_variance,
        )
    return release


def bins_and_weights(axes: Sequence[Axis], *, output_bins: int) -> tuple[list[int], list[float]]:
    """Return the bins of every axis and of the output, and the weights of their counts.

    Parameters
    ----------
    axes : sequence of Axis
    output_bins : int

    Examples
    --------
    >>> bins_and_weights(lines(2), output_bins=16)[0]
    [8, 8, 16]
    """
    wanted = BINS_OF_ONE_INPUT if len(axes) == 1 else BINS
    weight = ((1.0 - OUTPUT_SHARE) / len(axes)) ** 0.5
    bins = [*(axis.bins(wanted) for axis in axes), output_bins]
    return bins, [weight] * len(axes) + [OUTPUT_SHARE**0.5]


def places_of(classes: Classes) -> OutputBounds:
    """Return the range in which places of classes, from 0, are each the middle of an equal bin."""
    return OutputBounds(-0.5, len(classes.labels) - 0.5)


def points_and_sd(counts: ColumnCounts) -> tuple[Array, float]:
    """Return what stands for each class, and the sd of these of labels, as noisy counts have it.

    Corners of a simplex, about their mean over rows, shape (C, C − 1); and the sd along one of
    their dimensions, on average.
    """
    shares = estimate_class_shares(
        counts.counts[-1], noise_sd=counts.sd_of(-1), rows=counts.expected_rows
    )
    corners = simplex_corners(len(shares))
    points: Array = corners - shares @ corners
    return points, float(np.sqrt(shares @ np.square(points).sum(axis=1) / points.shape[1]))


def hold_far_outputs(counts: ColumnCounts, *, centre: float, half_width: float, sd: float) -> float:
    """Return half the width of a band about a centre that loses no outputs that matter.

    Where most outputs are alike, the sd between quantiles says nothing of the others. Those in a
    bin beyond the band count as at its nearer end: what they surely move the mean by.

    Parameters
    ----------
    counts : ColumnCounts
    centre : float
    half_width : float
        The least.
    sd : float
        Of the outputs by their quantiles.

    Examples
    --------
    >>> y = np.where(np.arange(1000) % 10, 0.0, 80.0)
    >>> found = measure_column_counts(np.zeros((1000, 1)), y, box=InputBox((0.0,), (1.0,)),
    ...     bounds=(0, 160), bins=(1, 16), weights=(0.1, 1.0), epsilon=1e4, delta=1e-3)
    >>> hold_far_outputs(found, centre=5.0, half_width=10.0, sd=4.0) > 70.0
    True
    """
    lo, hi = counts.bounds
    edges = counts.output_edges
    whole = max(centre - lo, hi - centre)
    while half_width < whole:
        above = np.maximum(edges[:-1] - (centre + half_width), 0.0)
        below = np.maximum((centre - half_width) - edges[1:], 0.0)
        moved = (counts.mean_of_outputs(each) for each in (above, below))
        if all(mean - SURE * noise <= MATTERS * sd for mean, noise in moved):
            break
        half_width = min(WIDER * half_width, whole)
    return half_width


def middle_and_sd(counts: ColumnCounts) -> tuple[float, float]:
    """Return the middle of outputs and their sd, from noisy counts, in output units.

    By the shares below 16 % and 84 %, between which a normal law has one sd to either side; no less
    than a uniform law's in one bin.

    Examples
    --------
    >>> found = measure_column_counts(np.zeros((1000, 1)), np.linspace(2, 6, 1000),
    ...     box=InputBox((0.0,), (1.0,)), bounds=(0, 8), bins=(1, 16), weights=(0.1, 1.0),
    ...     epsilon=1e4, delta=1e-3)
    >>> [round(float(one), 1) for one in middle_and_sd(found)]
    [4.0, 1.4]
    """
    lo, hi = counts.bounds
    shares = estimate_shares(
        counts.counts[-1], noise_sd=counts.sd_of(-1), rows=counts.expected_rows
    )
    below = np.concatenate([[0.0], np.cumsum(shares)])
    low, high = np.interp((LOWER, UPPER), below / below[-1], counts.output_edges)
    least = (hi - lo) / len(shares) / 12**0.5
    return float(low + high) / 2, max(float(high - low) / 2, float(least))
