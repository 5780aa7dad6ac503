r"""Expected error of whole rows asked in rounds, from public things alone.

The model of `cloakgp.release.residual_rounds` with what is expected of all that is published: rows
spread evenly, inputs without correlation, outputs of sd 1 of which a share is signal, of the prior.
Then ΦᵀΦ is expected to be diagonal, G = N diag(c²) with the scales c of the features, and all
covariances are. Estimates w_t are posterior means, so that what is still to come of w is
independent of them, E[(w − w_t)(w − w_u)ᵀ] = Σ_max(t,u)−1, with Σ_t the covariance after t rounds.
So for each feature j by itself

    Cov(o_t, o_u)_j = σ²G_j + Σ_k v_jk Σ_max(t,u)−1,k + [t = u] s_t²,
    Σ_T,j⁻¹ = P_j⁻¹ + G_j² 1ᵀ Cov_j⁻¹ 1,

and the mean square error over an even spread is Σ_j c_j² Σ_T,j, plus what no feature has. Bands of
later rounds follow what is expected to be left.

Not in it: errors of the counts that choose bands and features, clipping, correlated inputs. How
near it comes is in ``tests/fitting/test_rows_forecast.py``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloakgp.fitting.whole_rows import (
    BAND,
    FIRST_BAND,
    MEAN,
    SHARES,
    SIGNAL,
    WEIGHTING,
)
from cloakgp.models.axes import Axis, even_shares
from cloakgp.models.cosines import CosineBasis
from cloakgp.models.features import InputBox
from cloakgp.privacy.accounting import exact_noise_multiplier
from cloakgp.privacy.noise import GAUSSIAN
from cloakgp.privacy.residuals import residuals_sensitivity
from cloakgp.privacy.statistics import Neighbours, joint_sensitivity
from cloakgp.release.residual_rounds import gram_doubts
from cloakgp.utils.arrays import Array

# Of the variance of labels, what is signal: more than in their prior, as the more inputs tell of
# labels, the more noise matters.
SHARE_OF_LABELS = 0.3


@dataclass(frozen=True)
class RowsForecast:
    """What is expected of predictions from whole rows, in sds of the outputs.

    Attributes
    ----------
    epsilon : float
    error : float
        Root mean square, of the predicted average of people with the same inputs. Of classes, of
        their probabilities.
    without_noise : float
        The same without privacy noise: what so many rows leave open.
    prior_error : float
        The same of predicting the same for everybody.
    """

    epsilon: float
    error: float
    without_noise: float
    prior_error: float

    @property
    def of_noise(self) -> float:
        """How far noise moves predictions from those that would be without, root mean square."""
        return math.sqrt(max(self.error**2 - self.without_noise**2, 0.0))


def forecast_rows(
    *,
    rows: float,
    axes: Sequence[Axis],
    features: int,
    epsilon: float,
    delta: float,
    neighbours: Neighbours,
    classes: int | None = None,
) -> RowsForecast:
    """Forecast the error of a release of whole rows; the model stands at the head of this module.

    Parameters
    ----------
    rows : float
        How many there are, or are thought to be.
    axes : sequence of Axis
        What inputs say.
    features : int
        The most features.
    epsilon, delta : float
    neighbours : {"replace", "add-remove"}
    classes : int, optional
        How many, if outputs are labels; equally frequent ones.

    Examples
    --------
    >>> from cloakgp.models.axes import lines
    >>> found = forecast_rows(rows=1000, axes=lines(3), features=40, epsilon=1.0, delta=1e-6,
    ...                       neighbours="replace")
    >>> found.without_noise < found.error < found.prior_error
    True
    """
    channels = 1 if classes is None else classes - 1
    share = SIGNAL if classes is None else SHARE_OF_LABELS
    signal = share / channels
    basis = even_basis(
        axes, signal_variance=signal, mean_variance=MEAN / channels, features=features
    )
    left_out = float(basis.residual_variance(basis.box.reference[:1])[0])
    noise = (1.0 - share) / channels + left_out
    errors = [
        math.sqrt(channels * (left_out + of_features))
        for of_features in (
            _error_of_rounds(
                basis,
                rows=rows,
                noise_variance=noise,
                sds=sds,
                bands=(BAND if classes is None else 0.0, channels),
            )
            for sds in (
                noise_sds(epsilon, delta, neighbours=neighbours),
                (0.0,) * len(SHARES[1:]),
            )
        )
    ]
    # Of points of labels ‖Δπ‖² = (C − 1)/C ‖Δf‖², shared by C classes.
    unit = 1.0 if classes is None else math.sqrt(channels) / classes
    return RowsForecast(
        epsilon=epsilon,
        error=unit * errors[0],
        without_noise=unit * errors[1],
        prior_error=unit * math.sqrt(channels * signal),
    )


def even_basis(
    axes: Sequence[Axis],
    *,
    features: int,
    signal_variance: float = 1.0,
    mean_variance: float = 1.0,
) -> CosineBasis:
    """Return the features of rows that are spread evenly along all axes.

    Parameters
    ----------
    axes : sequence of Axis
    features : int
        The most features.
    signal_variance, mean_variance : float

    Examples
    --------
    >>> from cloakgp.models.axes import lines
    >>> even_basis(lines(1), features=40).count
    7
    """
    width = sum(len(axis.columns) for axis in axes)
    return CosineBasis(
        box=InputBox((0.0,) * width, (1.0,) * width),
        shares=even_shares(axes),
        signal_variance=signal_variance,
        mean_variance=mean_variance,
        wanted=features,
        axes=tuple(axes),
    )


def round_budgets(epsilon: float, delta: float) -> tuple[tuple[float, float], ...]:
    """Return the budget of each question, in the order in which they are put.

    Parameters
    ----------
    epsilon, delta : float
    """
    return tuple(GAUSSIAN.split(epsilon, delta, shares=SHARES))


def noise_sds(epsilon: float, delta: float, *, neighbours: Neighbours) -> tuple[float, ...]:
    """Return noise sds of squares of features, and of later sums in half widths of their bands.

    Of the first sums it is that of squares over β, in half widths.

    Parameters
    ----------
    epsilon, delta : float
        Of all questions, the counts among them.
    neighbours : {"replace", "add-remove"}

    Examples
    --------
    >>> [round(sd, 1) for sd in noise_sds(1.0, 1e-5, neighbours="add-remove")]
    [7.9, 13.6, 10.7, 8.0]
    """
    first, *later = [exact_noise_multiplier(*one) for one in round_budgets(epsilon, delta)[1:]]
    return (
        first * joint_sensitivity(WEIGHTING, neighbours=neighbours),
        *(one * residuals_sensitivity(neighbours=neighbours) for one in later),
    )


def _error_of_rounds(
    basis: CosineBasis,
    *,
    rows: float,
    noise_variance: float,
    sds: Sequence[float],
    bands: tuple[float, int],
) -> float:
    """Return the expected mean square error of what features have, in one channel."""
    squares = np.square(basis.scales)
    gram, prior = rows * squares, np.diag(basis.weight_covariance)
    doubts = gram_doubts(basis.scales, rows=rows, gram_sd=sds[0])[1]
    band, channels = bands
    half_width = FIRST_BAND if band else 1.0
    noises = [(sds[0] / WEIGHTING * half_width) ** 2]
    covariances = [prior]
    if band:
        half_width = min(band, half_width)
    for sd in (*sds[1:], None):
        covariances.append(
            _covariance(gram, prior, doubts, covariances, noises, noise_variance=noise_variance)
        )
        if sd is None:
            break
        noises.append((sd * half_width) ** 2)
        if band:
            left = noise_variance + float(squares @ covariances[-1])
            half_width = min(band * math.sqrt(channels * left), half_width)
    return float(squares @ covariances[-1])


def _covariance(
    gram: Array,
    prior: Array,
    doubts: Array,
    before: Sequence[Array],
    noises: Sequence[float],
    *,
    noise_variance: float,
) -> Array:
    """Return the variances of the weights after as many rounds as there are noises, (M,)."""
    count = len(noises)
    later = np.maximum.outer(np.arange(count), np.arange(count))
    # Of pairs of rounds, and features: (T, T, M).
    doubt = (np.array(before[:count]) @ doubts)[later]
    noise = doubt + noise_variance * gram
    noise[np.arange(count), np.arange(count)] += np.array(noises)[:, None]
    noise = np.moveaxis(noise, 2, 0)
    noise += 1e-12 * np.trace(noise, axis1=1, axis2=2)[:, None, None] * np.eye(count)
    told = np.linalg.solve(noise, np.ones((len(gram), count, 1)))[..., 0].sum(axis=1)
    found: Array = 1.0 / (1.0 / prior + gram**2 * told)
    return found
