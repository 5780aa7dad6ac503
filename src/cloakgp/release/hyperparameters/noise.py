"""The noise of outputs, from answers about the spread of outputs.

Sums of outputs hardly tell their noise from the curve. One answer about their spread does
(`cloakgp.privacy.questions.spread.SpreadQuestion`). With a weak prior around the declared value of
log σ, and the density of all answers, σ² is taken at its posterior mean: that is what errors of new
outputs have as their mean square, where the most probable σ would claim too little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import interpolate, special

from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.release.measurement import Measurement
from cloakgp.release.posterior.clipped import SpreadMoments, expected_spread
from cloakgp.release.posterior.mixture import WeightedPrior, weightiest
from cloakgp.utils.arrays import Array

# Prior sd of the logarithm of the noise sd around its declared value: a factor of two either way.
LOG_NOISE_SD = 0.7
# How far it is looked for, in these sds.
NOISE_REACH = 2.5
# At how many places, and how finely between these.
NOISE_TRIED, FINE = 11, 501
# Around a noise that an earlier answer told: how far it may have fallen, as what is known of the
# curve by then was noise before, or risen; at how many places; and how near to an end is too near.
NEAR_FALL, NEAR_RISE, NEAR_TRIED, NEAR_END = 3.0, 0.5, 6, 0.1


def with_learned_noise(
    priors: Sequence[WeightedPrior], measurements: Sequence[Measurement], *, sweeps: int = 0
) -> tuple[WeightedPrior, ...]:
    """Return priors with the noise variance that is expected after the answers.

    Parameters
    ----------
    priors : sequence of WeightedPrior
        Their noise is changed by the factor that suits the one of most weight.
    measurements : sequence of Measurement
        With one about the spread of outputs.
    sweeps : int
        As for `cloakgp.release.posterior.clipped.log_evidence`.
    """
    position = expected_position(AnswersByNoise.of(priors, measurements, sweeps=sweeps))
    return tuple(replace(prior, prior=scaled_noise(prior.prior, position)) for prior in priors)


@dataclass(frozen=True, eq=False)
class AnswersByNoise:
    """Answers about spread, and what is expected of them at a few noises of outputs.

    Attributes
    ----------
    positions : array of shape (p,)
        The noises that leave all other answers possible, of those that were tried.
    evidence : array of shape (p,)
        The log density of all other answers.
    values : array of shape (k,)
    expected, variance : arrays of shape (p, k)
        Their means, and their variances with noise.
    """

    positions: Array
    evidence: Array
    values: Array
    expected: Array
    variance: Array

    @classmethod
    def at_all(
        cls,
        evidence: Array,
        *,
        positions: Array,
        values: Array,
        expected: Array,
        variance: Array,
    ) -> AnswersByNoise:
        """Return what is expected at each of some positions; evidence may be infinite."""
        finite = np.isfinite(evidence)
        return cls(
            positions=positions[finite],
            evidence=evidence[finite],
            values=values,
            expected=expected[finite],
            variance=variance[finite],
        )

    @classmethod
    def of(
        cls, priors: Sequence[WeightedPrior], measurements: Sequence[Measurement], *, sweeps: int
    ) -> AnswersByNoise:
        """Return what is expected of answers under the prior of most weight, with other noise."""
        main = weightiest(priors).prior
        values = np.concatenate(
            [one.answers.values[:, 0] for one in measurements if one.about_spread]
        )
        moments = []
        for position in noise_positions():
            try:
                known = expected_spread(scaled_noise(main, position), measurements, sweeps=sweeps)
            except np.linalg.LinAlgError:
                known = SpreadMoments.impossible(len(values))
            moments.append(known)
        return cls.at_all(
            np.array([each.evidence for each in moments]),
            positions=noise_positions(),
            values=values,
            expected=np.array([each.expected for each in moments]),
            variance=np.array([each.variance for each in moments]),
        )

    @property
    def log_density(self) -> float:
        """The log density of all answers, over noises between those tried, alike for all rows."""
        fine, logs = self.log_densities()
        return float(special.logsumexp(logs) + np.log(fine[1] - fine[0]))

    def excess(self, position: float) -> float:
        """Return by how many of its sds the sum of the answers is less than is expected.

        Parameters
        ----------
        position : float
            Where the noise is.
        """
        at = float(np.clip(position, self.positions[0], self.positions[-1]))
        _, expected, logs = (each(at) for each in self.interpolators())
        return float((expected - self.values).sum() / np.sqrt(np.exp(logs).sum()))

    def log_densities(self) -> tuple[Array, Array]:
        """Return noises, and the log density of each and of all answers with it, up to a constant.

        What an answer is expected to be is smooth in the noise where its density is not: that is
        interpolated, and the density had from it.
        """
        fine = np.linspace(self.positions[0], self.positions[-1], FINE)
        evidence, expected, logs = (each(fine) for each in self.interpolators())
        misfit = np.square(self.values - expected) / np.exp(logs) + logs
        return fine, evidence - 0.5 * misfit.sum(axis=1) - 0.5 * fine**2

    def interpolators(self) -> tuple[interpolate.PchipInterpolator, ...]:
        """Return evidence, means and logarithms of variances as functions of the position."""
        evidence, expected, logs = (
            interpolate.PchipInterpolator(self.positions, each)
            for each in (self.evidence, self.expected, np.log(self.variance))
        )
        return evidence, expected, logs


def noise_positions() -> Array:
    """Return the noises at which answers are compared, in prior sds of the logarithm."""
    return np.linspace(-NOISE_REACH, NOISE_REACH, NOISE_TRIED)


def positions_around(position: float) -> Array:
    """Return the noises at which answers are compared where an earlier answer told one."""
    return position + np.linspace(-NEAR_FALL, NEAR_RISE, NEAR_TRIED)


def position_of_noise(
    prior: ExactPrior | SparsePrior, *, declared: ExactPrior | SparsePrior
) -> float:
    """Return how far noise lies from what is declared, in prior sds of the logarithm of its sd."""
    return float(np.log(prior.noise_variance / declared.noise_variance)) / (2.0 * LOG_NOISE_SD)


def expected_position(known: AnswersByNoise) -> float:
    """Return where the noise variance is its posterior mean, in prior sds of log σ.

    Parameters
    ----------
    known : AnswersByNoise
    """
    fine, log_density = known.log_densities()
    doubled = 2.0 * LOG_NOISE_SD
    mean = special.logsumexp(log_density + doubled * fine) - special.logsumexp(log_density)
    return float(mean) / doubled


def scaled_noise(prior: ExactPrior | SparsePrior, position: float) -> ExactPrior | SparsePrior:
    """Return a prior with its noise sd moved by a number of prior sds of its logarithm."""
    factor = float(np.exp(2 * LOG_NOISE_SD * position))
    return replace(prior, noise_variance=prior.noise_variance * factor)
