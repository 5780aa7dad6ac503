r"""Scales of outputs near their quantiles, from answers about thresholds.

Answers about thresholds away from a quantile, and those about several quantiles, depend on s_k
(`cloakgp.models.likelihoods.quantiles`), over which indicators go from 0 to 1. All s_k are
multiplied by one factor: that of the greatest log density of all answers, with a weak prior around
the declared value. Indicators are linearised under the last factor during the search for the next
one, and again under that, until it stays.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import optimize

from cloakgp.models.likelihoods import QuantileLikelihood
from cloakgp.release.posterior.quantiles import LinearisedThresholds, ThresholdAnswers

# Prior sd of the logarithm of the factor.
LOG_SCALE_SD = 1.0
# It is halved or doubled while the log posterior rises, and then refined within a factor of two.
STEP, TOLERANCE, ROUNDS = float(np.log(2.0)), 0.05, 2
# How often indicators are linearised to compare factors: at first, and from the last one on.
FIRST_STEPS, FURTHER_STEPS = 12, 5


def learned_scales(
    answers: ThresholdAnswers, likelihood: QuantileLikelihood
) -> tuple[QuantileLikelihood, LinearisedThresholds]:
    """Return a likelihood with the most probable scales, and its linearisation.

    Parameters
    ----------
    answers : ThresholdAnswers
    likelihood : QuantileLikelihood
        As declared.
    """

    def at(position: float) -> QuantileLikelihood:
        factor = float(np.exp(position))
        return replace(likelihood, scales=tuple(factor * scale for scale in likelihood.scales))

    def log_posterior(position: float, linear: LinearisedThresholds) -> float:
        return linear.log_evidence - 0.5 * (position / LOG_SCALE_SD) ** 2

    position, known = 0.0, answers.iterate(likelihood, steps=FIRST_STEPS)
    for step in (-STEP, STEP):
        while True:
            tried = answers.iterate(at(position + step), near=known, steps=FURTHER_STEPS)
            if log_posterior(position + step, tried) <= log_posterior(position, known):
                break
            position, known = position + step, tried
        if position:
            break
    for _ in range(ROUNDS):

        def lost(tried: float, near: LinearisedThresholds = known) -> float:
            linear = answers.linearise(at(tried), mean=near.mean, covariance=near.covariance)
            return -log_posterior(tried, linear)

        found = optimize.minimize_scalar(
            lost,
            bounds=(position - STEP, position + STEP),
            method="bounded",
            options={"xatol": TOLERANCE},
        )
        position = float(found.x)
        known = answers.iterate(at(position), near=known, steps=FURTHER_STEPS)
    return at(position), answers.iterate(at(position), near=known)
