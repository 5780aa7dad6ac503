r"""Noise that varies with the inputs, from answers of strata about how far outputs scatter.

The noise sd at x is σ e^{h(x)}. As for noise that is the same everywhere
(`cloakgp.release.hyperparameters.noise`), log σ has a weak prior around the declared value; h is a
Gaussian process of prior sd τ around 0, smooth from the centre of a stratum to the next
(`cloakgp.models.scatter`), and known by its values h_b at these. Both are taken where the density
of all answers, with these priors, is greatest.

The answer of stratum b (`cloakgp.privacy.questions.scatter.ScatterQuestion`) has a mean and a
variance under any noise sd. They are computed at a few, alike for all rows, and interpolated; the
answer is held against those at σ e^{h_b}: within its stratum the noise counts as that of its
centre. What answers say of where outputs are depends on σ alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import interpolate, linalg, optimize

from cloakgp.models.scatter import Scatter, length_between, similarity
from cloakgp.privacy.questions.scatter import ScatterQuestion
from cloakgp.release.hyperparameters.noise import LOG_NOISE_SD, noise_positions, scaled_noise
from cloakgp.release.measurement import Measurement
from cloakgp.release.posterior.clipped import SpreadMoments, expected_spread
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
    """Return priors with the noise, of every input, that the answers make most probable.

    Parameters
    ----------
    priors : sequence of WeightedPrior
        Their noise is changed by the factor that suits the one of most weight.
    measurements : sequence of Measurement
        Of rows that are kept; at least one about strata.
    sweeps : int
        As for `cloakgp.release.posterior.clipped.log_evidence`.
    """
    main = max(priors, key=lambda prior: prior.weight).prior
    asked = [one for one in measurements if one.about_spread]
    moments = []
    for position in noise_positions():
        try:
            known = expected_spread(scaled_noise(main, position), measurements, sweeps=sweeps)
        except np.linalg.LinAlgError:
            known = SpreadMoments.impossible(sum(one.strategy.n_answers for one in asked))
        moments.append(known)
    questions = [one.question for one in asked]
    bumps = Bumps.around(
        [(one.centres, one.units) for one in questions if isinstance(one, ScatterQuestion)]
    )
    return with_noise_in_strata(
        priors,
        np.array([each.evidence for each in moments]),
        values=np.concatenate([one.answers.values[:, 0] for one in asked]),
        expected=np.array([each.expected for each in moments]),
        variance=np.array([each.variance for each in moments]),
        bumps=bumps,
        factor=_of_answers(bumps.factor, asked),
    )


def with_noise_in_strata(
    priors: Sequence[WeightedPrior],
    evidence: Array,
    *,
    values: Array,
    expected: Array,
    variance: Array,
    bumps: Bumps,
    factor: Array | None = None,
) -> tuple[WeightedPrior, ...]:
    """Return priors with the most probable noise, from what it makes of answers at a few values.

    Parameters
    ----------
    priors : sequence of WeightedPrior
    evidence, values, expected, variance : arrays
        As for `most_probable`.
    bumps : Bumps
    factor : array of shape (k, B), optional
        As for `most_probable`; by default every answer is about the stratum of one centre.
    """
    position, standard = most_probable(
        evidence,
        values=values,
        expected=expected,
        variance=variance,
        factor=bumps.factor if factor is None else factor,
    )
    scatter = bumps.scatter(standard)
    return tuple(
        replace(one, prior=replace(scaled_noise(one.prior, position), scatter=scatter))
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


def most_probable(
    evidence: Array, *, values: Array, expected: Array, variance: Array, factor: Array
) -> tuple[float, Array]:
    """Return the most probable noise: where σ is, and standard normal numbers for h.

    Parameters
    ----------
    evidence : array of shape (p,)
        The log density of all other answers, at `noise_positions`; not finite where there is none.
    values : array of shape (k,)
        The answers about spread.
    expected, variance : arrays of shape (p, k)
        Their means, and their variances with noise, at noises alike for all rows.
    factor : array of shape (k, B)
        h of the rows of every answer, over τ, by standard normal numbers.

    Returns
    -------
    position : float
        In prior sds of log σ.
    standard : array of shape (B,)
    """
    finite = np.isfinite(evidence)
    tried = noise_positions()[finite]
    others, means, logs = (
        interpolate.PchipInterpolator(tried, each[finite])
        for each in (evidence, expected, np.log(variance))
    )
    which = np.arange(len(values))
    moved = LOG_SCATTER_SD / LOG_NOISE_SD * factor

    def minus_log_posterior(free: Array) -> float:
        level = float(np.clip(free[0], tried[0], tried[-1]))
        at = np.clip(level + moved @ free[1:], tried[0], tried[-1])
        mean, log_variance = means(at)[which, which], logs(at)[which, which]
        misfit = np.square(values - mean) / np.exp(log_variance) + log_variance
        return 0.5 * float(free @ free) + 0.5 * float(misfit.sum()) - float(others(level))

    start = np.zeros(1 + factor.shape[1])
    alike = [minus_log_posterior(np.concatenate([[one], start[1:]])) for one in tried]
    start[0] = tried[int(np.argmin(alike))]
    found = optimize.minimize(minus_log_posterior, start, method="L-BFGS-B").x
    return float(np.clip(found[0], tried[0], tried[-1])), found[1:]
