"""The noise of outputs, from answers about how far outside of predicted intervals outputs lie.

Sums of outputs hardly tell their noise from the curve. One answer about their spread does
(`cloakgp.privacy.bands.SpreadQuestion`): the noise variance is taken where the log density of all
answers, with a weak prior around the declared value, is greatest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import optimize

from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.release.hyperparameters.quadrature import IMPOSSIBLE
from cloakgp.release.measurement import Measurement
from cloakgp.release.posterior.clipped import log_evidence
from cloakgp.release.posterior.mixture import WeightedPrior

# Prior sd of the logarithm of the noise sd around its declared value: a factor of two either way.
LOG_NOISE_SD = 0.7
# How far it is looked for, in these sds, and how precisely.
NOISE_REACH, NOISE_TOLERANCE = 2.5, 0.02


def with_learned_noise(
    priors: Sequence[WeightedPrior], measurements: Sequence[Measurement]
) -> tuple[WeightedPrior, ...]:
    """Return priors with the noise variance that the answers make most probable.

    Parameters
    ----------
    priors : sequence of WeightedPrior
        Their noise is changed by the factor that suits the one of most weight.
    measurements : sequence of Measurement
        With one about the spread of outputs.
    """
    main = max(priors, key=lambda prior: prior.weight).prior

    def minus_log_posterior(position: float) -> float:
        try:
            evidence = log_evidence(scaled_noise(main, position), measurements)
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


def scaled_noise(prior: ExactPrior | SparsePrior, position: float) -> ExactPrior | SparsePrior:
    """Return a prior with its noise sd moved by so many prior sds of its logarithm."""
    factor = float(np.exp(2 * LOG_NOISE_SD * position))
    return replace(prior, noise_variance=prior.noise_variance * factor)
