r"""Noise that varies with the inputs, from answers of strata about how far outputs scatter.

The noise sd at x is σ e^{h(x)}. As for noise that is the same everywhere
(`cloakgp.release.hyperparameters.noise`), log σ has a weak prior around the declared value; h is a
Gaussian process of prior sd τ around 0, smooth from the centre of a stratum to the next
(`cloakgp.models.scatter`), and known by its values h_b at these. The density of all answers, with
these priors, is taken for normal around its greatest value (Laplace's approximation), and σ² e^{2h}
at every centre for its mean under that: e^{2v} times what is most probable, v the variance of the
logarithm. So what is not known of the noise counts in the errors that are claimed.

The answer of stratum b (`cloakgp.privacy.questions.scatter.ScatterQuestion`) has a mean and a
variance under any noise sd. They are computed at a few, alike for all rows, and interpolated; the
answer is held against those at σ e^{h_b}: within its stratum the noise counts as that of its
centre. What answers say of where outputs are depends on σ alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg, optimize

from cloakgp.models.scatter import Scatter, length_between, similarity
from cloakgp.privacy.questions.scatter import ScatterQuestion
from cloakgp.release.hyperparameters.noise import LOG_NOISE_SD, AnswersByNoise, scaled_noise
from cloakgp.release.measurement import Measurement
from cloakgp.release.posterior.mixture import WeightedPrior
from cloakgp.utils.arrays import Array

# τ: prior sd of the logarithm of the noise sd around what it is for all outputs together.
LOG_SCATTER_SD = 0.5
# Added to the variances of h at centres, in τ²: two tables may have the same centres.
JITTER = 1e-6


@dataclass(frozen=True, eq=False)
class Bumps:
    """The prior over h, by standard normal numbers.

    Attributes
    ----------
    centres : array of shape (B, D)
    units : array of shape (D,)
    length : float
    """

    centres: Array
    units: Array
    length: float

    @classmethod
    def around(cls, strata: Sequence[tuple[Array, Array]]) -> Bumps:
        """Return the prior for strata of some tables.

        Parameters
        ----------
        strata : sequence of pairs of arrays
            The centres, shape (B_t, D), and the units, shape (D,), of each; at least one.
        """
        units = strata[0][1]
        return cls(
            centres=np.vstack([centres for centres, _ in strata]),
            units=units,
            length=max(length_between(centres, units=units) for centres, _ in strata),
        )

    @property
    def factor(self) -> Array:
        """The lower Cholesky factor of the covariance of h at centres, over τ², shape (B, B)."""
        alike = similarity(self.centres, self.centres, units=self.units, length=self.length)
        alike[np.diag_indices(len(alike))] += JITTER
        return np.asarray(np.linalg.cholesky(alike), dtype=np.float64)

    def scatter(self, standard: Array) -> Scatter:
        """Return the h for which so many standard normal numbers stand, shape (B,)."""
        solved = linalg.solve_triangular(self.factor, standard, lower=True, trans="T")
        return Scatter(
            centres=self.centres,
            units=self.units,
            length=self.length,
            weights=LOG_SCATTER_SD * solved,
        )


def with_learned_scatter(
    priors: Sequence[WeightedPrior], measurements: Sequence[Measurement], *, sweeps: int = 0
) -> tuple[WeightedPrior, ...]:
    """Return priors with the noise, of every input, that is expected after the answers.

    Parameters
    ----------
    priors : sequence of WeightedPrior
        Their noise is changed by the factor that suits the one of most weight.
    measurements : sequence of Measurement
        Of rows that are kept; at least one about strata.
    sweeps : int
        As for `cloakgp.release.posterior.clipped.log_evidence`.
    """
    asked = [one for one in measurements if one.about_spread]
    questions = [one.question for one in asked]
    bumps = Bumps.around(
        [(one.centres, one.units) for one in questions if isinstance(one, ScatterQuestion)]
    )
    return with_noise_in_strata(
        priors,
        AnswersByNoise.of(priors, measurements, sweeps=sweeps),
        bumps=bumps,
        factor=_of_answers(bumps.factor, asked),
    )


def with_noise_in_strata(
    priors: Sequence[WeightedPrior],
    known: AnswersByNoise,
    *,
    bumps: Bumps,
    factor: Array | None = None,
) -> tuple[WeightedPrior, ...]:
    """Return priors with the noise that is expected after answers about strata.

    Parameters
    ----------
    priors : sequence of WeightedPrior
    known : AnswersByNoise
    bumps : Bumps
    factor : array of shape (k, B), optional
        As for `most_probable`; by default every answer is about the stratum of one centre.
    """
    bumped = bumps.factor
    position, standard, covariance = most_probable(
        known, factor=bumped if factor is None else factor
    )
    level = LOG_NOISE_SD * position
    # log σ + h at the centres, by position and standard normal numbers.
    slopes = np.column_stack([np.full(len(bumped), LOG_NOISE_SD), LOG_SCATTER_SD * bumped])
    log_sds = slopes @ np.concatenate([[position], standard])
    log_sds += np.einsum("ij,jk,ik->i", slopes, covariance, slopes)
    level += LOG_NOISE_SD**2 * covariance[0, 0]
    solved = linalg.solve_triangular(bumped, log_sds - level, lower=True) / LOG_SCATTER_SD
    scatter = bumps.scatter(solved)
    return tuple(
        replace(
            one,
            prior=replace(scaled_noise(one.prior, level / LOG_NOISE_SD), scatter=scatter),
        )
        for one in priors
    )


def _of_answers(factor: Array, asked: Sequence[Measurement]) -> Array:
    """Return h of the rows of every answer, over τ, by standard normal numbers, shape (k, B).

    An answer about all rows of a table alike has their average noise: h is 0.
    """
    rows, first = [], 0
    for one in asked:
        count = one.strategy.n_answers
        if isinstance(one.question, ScatterQuestion):
            rows.append(factor[first : first + count])
            first += count
        else:
            rows.append(np.zeros((count, factor.shape[1])))
    return np.vstack(rows)


def most_probable(known: AnswersByNoise, *, factor: Array) -> tuple[float, Array, Array]:
    """Return the most probable noise: where σ is, and standard normal numbers for h.

    Parameters
    ----------
    known : AnswersByNoise
        At noises alike for all rows.
    factor : array of shape (k, B)
        h of the rows of every answer, over τ, by standard normal numbers.

    Returns
    -------
    position : float
        In prior sds of log σ.
    standard : array of shape (B,)
    covariance : array of shape (1 + B, 1 + B)
        Of these numbers, by Laplace's approximation: the curvature of answers counts by their
        slopes (Gauss and Newton).
    """
    others, means, logs = known.interpolators()
    first, last = known.positions[[0, -1]]
    which = np.arange(len(known.values))
    moved = np.column_stack([np.ones(len(factor)), LOG_SCATTER_SD / LOG_NOISE_SD * factor])

    def minus_log_posterior(free: Array) -> tuple[float, Array]:
        """Return it, and its derivative by position and standard normal numbers."""
        level = float(np.clip(free[0], first, last))
        wanted = moved @ np.concatenate([[level], free[1:]])
        at = np.clip(wanted, first, last)
        mean, log_variance = means(at)[which, which], logs(at)[which, which]
        missed = known.values - mean
        squares = np.square(missed) / np.exp(log_variance)
        by_place = 0.5 * (1.0 - squares) * logs(at, nu=1)[which, which]
        by_place -= missed / np.exp(log_variance) * means(at, nu=1)[which, which]
        # Beyond the noises that were tried nothing changes.
        slope = moved.T @ np.where(at == wanted, by_place, 0.0)
        slope[0] = slope[0] - float(others(level, nu=1)) if level == free[0] else 0.0
        value = 0.5 * float(free @ free) + 0.5 * float((squares + log_variance).sum())
        return value - float(others(level)), free + slope

    start = np.zeros(moved.shape[1])
    alike = [minus_log_posterior(np.concatenate([[one], start[1:]]))[0] for one in known.positions]
    start[0] = known.positions[int(np.argmin(alike))]
    # Differences instead of derivatives would make last digits of answers matter.
    found = optimize.minimize(minus_log_posterior, start, jac=True, method="L-BFGS-B").x
    found[0] = np.clip(found[0], first, last)
    at = np.clip(moved @ found, first, last)
    slopes = means(at, nu=1)[which, which] / np.exp(logs(at)[which, which] / 2.0)
    curvature = np.eye(len(found)) + (moved.T * slopes**2) @ moved
    curvature[0, 0] += max(0.0, -float(others(found[0], nu=2)))
    covariance = np.asarray(np.linalg.inv(curvature), dtype=np.float64)
    return float(found[0]), found[1:], covariance
