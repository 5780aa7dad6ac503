"""The noise of outputs, from answers about the spread of outputs.

Sums of outputs hardly tell their noise from the curve. One answer about their spread does
(`cloakgp.privacy.questions.spread.SpreadQuestion`): the noise variance is taken where the log
density of all answers, with a weak prior around the declared value, is greatest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import interpolate, optimize

from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.release.hyperparameters.quadrature import IMPOSSIBLE
from cloakgp.release.measurement import Measurement
from cloakgp.release.posterior.clipped import log_evidence, spread_log_density
from cloakgp.release.posterior.mixture import WeightedPrior
from cloakgp.utils.arrays import Array

# Prior sd of the logarithm of the noise sd around its declared value: a factor of two either way.
LOG_NOISE_SD = 0.7
# How far it is looked for, in these sds, and how precisely.
NOISE_REACH, NOISE_TOLERANCE = 2.5, 0.02
# At how many places, where that takes passes over rows; and how finely between these.
NOISE_TRIED, FINE = 11, 501


def with_learned_noise(
    priors: Sequence[WeightedPrior], measurements: Sequence[Measurement], *, sweeps: int = 0
) -> tuple[WeightedPrior, ...]:
    """Return priors with the noise variance that the answers make most probable.

    Parameters
    ----------
    priors : sequence of WeightedPrior
        Their noise is changed by the factor that suits the one of most weight.
    measurements : sequence of Measurement
        With one about the spread of outputs.
    sweeps : int
        As for `log_evidence`.
    """
    main = max(priors, key=lambda prior: prior.weight).prior

    def minus_log_posterior(position: float) -> float:
        try:
            evidence = log_evidence(scaled_noise(main, position), measurements, sweeps=sweeps)
        except np.linalg.LinAlgError:
            return IMPOSSIBLE
        return 0.5 * position**2 - evidence

    found = optimize.minimize_scalar(
        minus_log_posterior,
        bounds=(-NOISE_REACH, NOISE_REACH),
        method="bounded",
        options={"xatol": NOISE_TOLERANCE},
    )
    return tuple(
        replace(prior, prior=scaled_noise(prior.prior, float(found.x))) for prior in priors
    )


def noise_positions() -> Array:
    """Return the grid of noise of rows that are not kept, in prior sds of its logarithm."""
    return np.linspace(-NOISE_REACH, NOISE_REACH, NOISE_TRIED)


def likeliest_position(evidence: Array, *, value: float, expected: Array, scatter: Array) -> float:
    """Return where the noise is most probable, between the places where it was tried.

    What an answer is expected to be is smooth in the noise where its density is not: that is
    interpolated, and the density had from it.

    Parameters
    ----------
    evidence : array of shape (p,)
        The log density of all other answers, at `noise_positions`.
    value : float
        The answer about spread.
    expected, scatter : arrays of shape (p,)
        Its mean, and its variance with noise.
    """
    tried = noise_positions()
    finite = np.isfinite(evidence)
    others, mean, spread = (
        interpolate.PchipInterpolator(tried[finite], each[finite])
        for each in (evidence, expected, np.log(scatter))
    )

    def minus_log_posterior(position: float) -> float:
        density = spread_log_density(
            value, expected=float(mean(position)), scatter=float(np.exp(spread(position)))
        )
        return 0.5 * position**2 - float(others(position)) - density

    fine = np.linspace(tried[finite][0], tried[finite][-1], FINE)
    return float(fine[np.argmin([minus_log_posterior(float(each)) for each in fine])])


def scaled_noise(prior: ExactPrior | SparsePrior, position: float) -> ExactPrior | SparsePrior:
    """Return a prior with its noise sd moved by a number of prior sds of its logarithm."""
    factor = float(np.exp(2 * LOG_NOISE_SD * position))
    return replace(prior, noise_variance=prior.noise_variance * factor)
