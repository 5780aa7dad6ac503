r"""The overdispersion of counts, from answers about the spread of counts.

Sums of clipped roots of counts say little of how counts of one mean differ. One answer about their
spread does (`cloakgp.privacy.questions.spread.SpreadQuestion`, of roots): the overdispersion is
taken where the log density of that answer, at the posterior of the rates given all others, is
greatest, with a weak prior around the declared value. Roots are expected to lie outside as the
masses of counts say, whatever the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import optimize

from cloakgp.models.likelihoods import CountLikelihood
from cloakgp.privacy.questions.spread import SpreadQuestion
from cloakgp.release.gathered_strategy import GatheredStrategy
from cloakgp.release.measurement import Measurement
from cloakgp.release.posterior.clipped import spread_log_density
from cloakgp.release.posterior.mixture import WeightedPrior, condition, weightiest
from cloakgp.release.strategy import DenseStrategy
from cloakgp.utils.arrays import Array

# Prior sd of the logarithm of α around its declared value, and how far it is looked for.
LOG_OVERDISPERSION_SD, REACH, TOLERANCE = 1.5, 3.0, 0.05
# Of α, where none is declared: counts of 4 have the variance of Poisson's twice.
USUAL_OVERDISPERSION = 0.25


def with_learned_overdispersion(
    priors: Sequence[WeightedPrior], measurements: Sequence[Measurement]
) -> tuple[WeightedPrior, ...]:
    """Return priors with the overdispersion that the answers make most probable.

    Parameters
    ----------
    priors : sequence of WeightedPrior
        Of counts; it is looked for under the one of most weight.
    measurements : sequence of Measurement
        Without one about the spread of counts, nothing is learned.
    """
    main = weightiest(priors)
    likelihood = main.likelihood
    assert isinstance(likelihood, CountLikelihood)
    spreads = [one for one in measurements if isinstance(one.question, SpreadQuestion)]
    if not spreads or likelihood.overdispersion == 0:
        return tuple(priors)

    def at(position: float) -> CountLikelihood:
        factor = float(np.exp(LOG_OVERDISPERSION_SD * position))
        return replace(likelihood, overdispersion=likelihood.overdispersion * factor)

    def minus_log_posterior(position: float) -> float:
        one = replace(main, likelihood=at(position))
        density = sum(_log_density(each, one, measurements) for each in spreads)
        return 0.5 * position**2 - density

    found = optimize.minimize_scalar(
        minus_log_posterior,
        bounds=(-REACH, REACH),
        method="bounded",
        options={"xatol": TOLERANCE},
    )
    chosen = at(float(found.x))
    return tuple(replace(prior, likelihood=chosen) for prior in priors)


def _log_density(
    measurement: Measurement, one: WeightedPrior, measurements: Sequence[Measurement]
) -> float:
    """Return the log density of an answer about spread, given all others.

    Rows count as independent given the rates.
    """
    question, strategy, likelihood = measurement.question, measurement.strategy, one.likelihood
    assert isinstance(question, SpreadQuestion)
    assert isinstance(strategy, DenseStrategy | GatheredStrategy)
    assert isinstance(likelihood, CountLikelihood)
    [posterior] = condition(one.prior, likelihood, measurements)
    mean, variance = posterior.outputs(strategy.X, table=strategy.table)
    if strategy.row_exposure is not None:
        mean = mean + np.log(strategy.row_exposure)
    masses = likelihood.masses(mean, variance)
    distances = np.abs(likelihood.roots - question.mean[:, None]) / question.sd[:, None]
    shares = question.share_of(distances) - 0.5
    expected = (masses * shares).sum(axis=1)
    scatter = (masses * np.square(shares)).sum(axis=1) - np.square(expected)
    [weights], [[value]] = strategy.matrix, measurement.answers.values
    sizes: Array | float = 1.0
    if isinstance(strategy, GatheredStrategy):
        weights, sizes = weights * strategy.cell_weights, strategy.effective_sizes
    return spread_log_density(
        float(value),
        expected=float(weights @ expected),
        scatter=float(np.square(weights) @ (scatter / sizes)) + measurement.answers.noise_sd**2,
    )
