r"""The noise of outputs most of which have one value: that of an end of their bounds.

How far the many are from a curve tells nothing of the others. But counts tell about how many others
there are, and where (`cloakgp.release.common_values`); and the curve tells their mean. In widths of
the bounds from the end that most have, with μ the mean of the curve f over rows, h the share of
outputs at the other end, q the share of those between, and a the mean of these,

    μ = h + q a,    E[y²] = h + q min(c a², a),    σ² = E[y²] − E[f²].

Those between count as gamma, of a shape k, so that c = 1 + 1/k; and no mean square of numbers from
0 to 1 is more than their mean. Of two values q = 0, and σ² = E[f (1 − f)]: nothing else is needed.
Beforehand there are two values with probability `TWO_VALUES`. If not, log q is uniform, and so is
the part of μ that is due to h, if there are any at the other end (`AT_OTHER_END`). What answers
leave open of μ is normal, but that it is positive. All counts, with their noise, weigh all of
these, and σ² is their mean, as after other answers (`cloakgp.release.hyperparameters.noise`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.privacy import Answers
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.release.common_values import (
    SURELY,
    asked_tables,
    counts_of_one_output,
    estimate_single_values,
    rounds_of,
)
from cloakgp.release.measurement import Measurement, narrower_interval
from cloakgp.release.posterior.mixture import WeightedPrior, weightiest
from cloakgp.utils.arrays import Array

# How probable it is beforehand that there are two values, and that some are at the other end.
TWO_VALUES, AT_OTHER_END = 0.25, 0.1
# Of those between: shapes of their laws, how many shares, and parts of the mean, are compared.
SHAPES = np.array([1.0, 2.0, 20.0])
SHARES, PARTS = 48, 12
# The least mean of the curve, at how many quantiles of it outputs are looked at, and by how many of
# its sds it counts as outside of the bounds at most; and the least noise variance over a mean
# square.
LEAST_MEAN, MEANS, FARTHEST = 1e-6, 9, 5.0
LEAST_NOISE = 0.05
# Rows that stand for all.
MOST_ROWS = 300


@dataclass(frozen=True, eq=False)
class AlikeOutputs:
    """Outputs most of which have the value of one end of their bounds, by noisy counts.

    Attributes
    ----------
    bounds : OutputBounds
        Declared.
    at_lo : bool
        Whether it is the lower end.
    rounds : tuple of pairs of array and Answers
        Where the intervals of each round end, in output units, and their noisy counts.
    rows : float
        N.
    """

    bounds: OutputBounds
    at_lo: bool
    rounds: tuple[tuple[Array, Answers], ...]
    rows: float

    @classmethod
    def counted(cls, measurements: Sequence[Measurement]) -> AlikeOutputs | None:
        """Return those of which a release tells; None if most are not alike, or not at an end.

        Parameters
        ----------
        measurements : sequence of Measurement
            Of one output. Of several tables counts tell nothing together.
        """
        rounds = counts_of_one_output(measurements)
        # Of outputs that questions clipped, the curve does not tell the mean; and other tables may
        # have other outputs.
        one = len(asked_tables(measurements)) == 1
        if not rounds or not one or narrower_interval(measurements) is not None:
            return None
        return cls.of(rounds_of(rounds), rows=float(rounds[0].strategy.totals[0]))

    @classmethod
    def of(cls, rounds: Sequence[tuple[Array, Answers]], *, rows: float) -> AlikeOutputs | None:
        """Return those of which counts tell, as `counted`.

        Parameters
        ----------
        rounds : sequence of pairs of array and Answers
            From bound to bound; the first counts the ends apart.
        rows : float
        """
        values = estimate_single_values(rounds, rows=rows)
        if not values.may_be_most:
            return None
        most = int(np.argmax(values.shares))
        ends = (0, len(values.values) - 1)
        between = np.delete(values.shares, ends)
        doubt = np.sqrt(np.delete(np.diag(values.covariance), ends))
        # Of a third value nothing here knows.
        if most not in ends or (between > SURELY * doubt).any():
            return None
        edges = rounds[0][0]
        return cls(
            bounds=OutputBounds(float(edges[0]), float(edges[-1])),
            at_lo=most == 0,
            rounds=tuple(rounds),
            rows=rows,
        )

    def noise(self, mean: Array, covariance: Array) -> tuple[float, float]:
        """Return the expected noise variance, and the sd of the logarithm of the noise sd.

        Parameters
        ----------
        mean, covariance : arrays of shape (n,) and (n, n)
            Of the curve over rows, in output units.

        Examples
        --------
        >>> edges = np.array([0.0, 2.0**-44, 0.5, 1 - 2.0**-44, 1.0])
        >>> answers = Answers(np.array([[703.0, 4.0, -5.0, 297.0]]), noise_sd=9.0, guarantee=None)
        >>> outputs = AlikeOutputs.of([(edges, answers)], rows=1000.0)
        >>> noise_variance, log_sd = outputs.noise(np.full(9, 0.3), np.zeros((9, 9)))
        >>> round(noise_variance**0.5, 2), log_sd < 0.1
        (0.46, True)
        """
        width = self.bounds.width
        distance = (mean - self.bounds.lo if self.at_lo else self.bounds.hi - mean) / width
        level, level_variance = float(distance.mean()), float(covariance.mean()) / width**2
        # The curve's own variance at a given mean.
        left = max(float(np.trace(covariance)) / len(mean) / width**2 - level_variance, 0.0)
        noise, logs = [], []
        for one in _positive_quantiles(level, sd=math.sqrt(max(level_variance, 0.0))):
            explained = float(np.mean(np.square(distance + one - level))) + left
            possible, log_weights = self._mean_squares(one)
            noise.append(np.maximum(possible - explained, LEAST_NOISE * possible))
            logs.append(log_weights)
        weights, every = special.softmax(np.concatenate(logs)), np.concatenate(noise)
        log_sds = 0.5 * np.log(every)
        middle = float(weights @ log_sds)
        return (
            float(weights @ every) * width**2,
            float(np.sqrt(weights @ np.square(log_sds - middle))),
        )

    def _mean_squares(self, mean: float) -> tuple[Array, Array]:
        """Return possible E[y²], in squared widths, and how probable each is, shapes (m,).

        Probabilities are logarithms, up to a constant that does not depend on the mean.
        """
        parts = np.concatenate([[0.0], (np.arange(PARTS) + 0.5) / PARTS])
        likely = np.concatenate([[1.0 - AT_OTHER_END], np.full(PARTS, AT_OTHER_END / PARTS)])
        at_end = (mean * parts)[:, None, None]
        # The mean of those between is at most 1, and so is the share of all others.
        least = np.log(mean - at_end)
        steps = ((np.arange(SHARES) + 0.5) / SHARES)[:, None]
        between = np.exp(least + steps * (np.log1p(-at_end) - least))
        amounts = (mean - at_end) / between
        every = np.broadcast_arrays(at_end, between, amounts, SHAPES)
        at_end, between, amounts, shapes = (each.ravel() for each in every)
        squares = at_end + between * np.minimum(np.square(amounts) * (1.0 + 1.0 / shapes), amounts)
        prior = np.repeat(likely, SHARES * len(SHAPES)) * (1.0 - TWO_VALUES)
        prior /= SHARES * len(SHAPES)
        # Two values: nobody is between.
        at_end, between = np.append(at_end, mean), np.append(between, 0.0)
        amounts, shapes = np.append(amounts, 1.0), np.append(shapes, 1.0)
        logs = np.log(np.append(prior, TWO_VALUES))
        logs += self._log_density(at_end, between, amounts, shapes)
        return np.append(squares, mean), logs

    def _log_density(self, at_end: Array, between: Array, amounts: Array, shapes: Array) -> Array:
        """Return the log density of all counts up to a constant, shape (m,)."""
        density = np.zeros(len(at_end))
        for edges, answers in self.rounds:
            places = (edges - self.bounds.lo) / self.bounds.width
            counts = answers.values[0] / self.rows
            if not self.at_lo:
                places, counts = 1.0 - places[::-1], counts[::-1]
            # Shares at most as far from the end; values beyond the bounds count as at these.
            below = special.gammainc(shapes[:, None], np.outer(shapes / amounts, places[:-1]))
            below = np.column_stack([below, np.ones(len(below))])
            expected = between[:, None] * np.diff(below)
            expected[:, 0] += 1.0 - at_end - between
            expected[:, -1] += at_end
            missed = np.square(counts - expected).sum(axis=1)
            density -= missed * self.rows**2 / (2.0 * answers.noise_sd**2)
        return density


def _positive_quantiles(mean: float, *, sd: float) -> Array:
    """Return quantiles of a normal mean of outputs that are not all at an end, in widths."""
    if sd < LEAST_MEAN:
        return np.array([min(max(mean, LEAST_MEAN), 1.0)])
    mean = min(max(mean, -FARTHEST * sd), 1.0 + FARTHEST * sd)
    low, high = special.ndtr((np.array([LEAST_MEAN, 1.0]) - mean) / sd)
    shares = low + (np.arange(MEANS) + 0.5) / MEANS * (high - low)
    found: Array = np.clip(mean + sd * special.ndtri(shares), LEAST_MEAN, 1.0)
    return found


def rows_among(X: Array) -> Array:
    """Return rows that stand for all: `MOST_ROWS` at most, evenly among them.

    Parameters
    ----------
    X : array of shape (N, D)
    """
    return X[:: -(-len(X) // MOST_ROWS)]


def with_noise(priors: Sequence[WeightedPrior], variance: float) -> tuple[WeightedPrior, ...]:
    """Return priors with another noise variance, alike for all rows, of the one of most weight.

    Parameters
    ----------
    priors : sequence of WeightedPrior
        The noise of others is changed by the same factor. As they are if it is 0: it was given.
    variance : float
    """
    given = weightiest(priors).prior.noise_variance
    if not given > 0:
        return tuple(priors)
    factor = variance / given

    def changed(prior: ExactPrior | SparsePrior) -> ExactPrior | SparsePrior:
        return replace(prior, noise_variance=prior.noise_variance * factor, scatter=None)

    return tuple(replace(one, prior=changed(one.prior)) for one in priors)
