r"""The overdispersion of counts, averaged over what all answers leave open of it.

The mean root of a count goes by its overdispersion α as by its rate: where α is 8 and not 1, the
same roots are those of a rate several times as high. So rates are no better known than α, and one
value of it, however probable, claims too much of them. Its posterior is weighed,

    p(α | answers) ∝ p(α) p(sums of roots | α) p(spread | α, sums of roots),

with a weak prior of log α around the declared value. Sums of roots that stages clipped differently
tell of α, as their means differ by how skewed counts are; their density is that of the linearised
answers (`cloakgp.release.posterior.classification`). The answer about spread
(`cloakgp.privacy.questions.spread.SpreadQuestion`, of roots) is expected as the masses of counts
say, at the posterior of the rates given all others. Few values with their shares, which have the
first moments of log α (Gauss quadrature: Golub and Welsch 1969), stand for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy import interpolate, linalg, special

from cloakgp.models.likelihoods import CountLikelihood, Likelihood
from cloakgp.privacy.questions.spread import SpreadQuestion
from cloakgp.release.gathered_strategy import GatheredStrategy
from cloakgp.release.measurement import Measurement
from cloakgp.release.posterior.clipped import spread_log_density
from cloakgp.release.posterior.dense import Posterior
from cloakgp.release.posterior.mixture import WeightedPrior, condition, weightiest
from cloakgp.release.strategy import DenseStrategy
from cloakgp.utils.arrays import Array

# Prior sd of log α around its declared value: two tables of three lie within a factor of 7 of it.
LOG_OVERDISPERSION_SD = 2.0
# Where it is looked for: at steps of a factor of 4.5, so many either way, and then around the best
# at halves of them, until the density falls by no more than so many nats from one place to the
# next, or steps are as small as that.
STEP, REACH, FALL, SMALLEST = 1.5, 3, 1.0, 1.5 / 64
# How many values of α stand for its posterior.
NODES = 3
# Of the recurrence, in log α: a law whose polynomials are no larger has no more places.
SMALLEST_STEP = 1e-8
# Through fewer places no cubic goes.
FEWEST = 4
# Of α, where none is declared: counts of 4 have the variance of Poisson's twice.
USUAL_OVERDISPERSION = 0.25


def with_learned_overdispersion(
    priors: Sequence[WeightedPrior], measurements: Sequence[Measurement]
) -> tuple[WeightedPrior, ...]:
    """Return priors with overdispersions that stand for their posterior given the answers.

    Parameters
    ----------
    priors : sequence of WeightedPrior
        Of counts; it is looked for under the one of most weight.
    measurements : sequence of Measurement

    Returns
    -------
    tuple of WeightedPrior
        Of each prior one with every overdispersion, and its share of the weight. As they are where
        counts are declared to be Poisson, or the answers have a density under hardly any
        overdispersion.
    """
    main = weightiest(priors)
    likelihood = main.likelihood
    assert isinstance(likelihood, CountLikelihood)
    if likelihood.overdispersion == 0:
        return tuple(priors)

    def at(log_factor: float) -> CountLikelihood:
        factor = float(np.exp(log_factor))
        return replace(likelihood, overdispersion=likelihood.overdispersion * factor)

    def log_posterior(log_factor: float) -> float:
        one = replace(main, likelihood=at(log_factor))
        return log_density(one, measurements) - (log_factor / LOG_OVERDISPERSION_SD) ** 2 / 2

    known = _evaluated(log_posterior)
    if len(known) < FEWEST:
        return tuple(priors)
    fine = np.arange(min(known), max(known) + SMALLEST / 2, SMALLEST)
    logs = interpolate.CubicSpline(sorted(known), [known[each] for each in sorted(known)])(fine)
    nodes, shares = gauss_nodes(fine, special.softmax(logs), count=NODES)
    return tuple(
        replace(prior, likelihood=at(node), weight=prior.weight * share)
        for prior in priors
        for node, share in zip(nodes.tolist(), shares.tolist(), strict=True)
    )


def _evaluated(log_posterior: Callable[[float], float]) -> dict[float, float]:
    """Return the log density where it is finite: coarsely, and finely where it is largest."""
    coarse = [STEP * place for place in range(-REACH, REACH + 1)]
    known = {place: log_posterior(place) for place in coarse}
    known = {place: value for place, value in known.items() if np.isfinite(value)}
    while len(known) >= FEWEST:
        places = sorted(known)
        best = max(range(len(places)), key=lambda index: known[places[index]])
        top = known[places[best]]
        beside = [places[index] for index in (best - 1, best + 1) if 0 <= index < len(places)]
        steep = [
            (place + places[best]) / 2
            for place in beside
            if top - known[place] > FALL and abs(place - places[best]) > SMALLEST
        ]
        found = {place: log_posterior(place) for place in steep}
        if not (found and np.isfinite(list(found.values())).all()):
            break
        known.update(found)
    return known


def gauss_nodes(places: Array, shares: Array, *, count: int) -> tuple[Array, Array]:
    """Return few places and shares with the first 2 · count moments of a discrete law.

    Golub and Welsch (1969), by the recurrence of the law's orthogonal polynomials (Stieltjes).

    Parameters
    ----------
    places, shares : arrays of shape (n,)
        Shares add up to 1.
    count : int
        Fewer come back where the law has no more places.

    Examples
    --------
    >>> places, shares = gauss_nodes(np.array([-1.0, 0.0, 1.0, 4.0]), np.full(4, 0.25), count=2)
    >>> places.round(3), shares.round(3)
    (array([-0.335,  3.621]), array([0.662, 0.338]))
    >>> float((shares * places**3).sum().round(6))
    16.0
    """
    before, now = np.zeros(len(places)), np.ones(len(places))
    centres: list[float] = []
    steps: list[float] = []
    for _ in range(count):
        centres.append(float(shares @ (places * np.square(now))))
        after = (places - centres[-1]) * now - (steps[-1] if steps else 0.0) * before
        size = float(np.sqrt(shares @ np.square(after)))
        if size <= SMALLEST_STEP:
            break
        steps.append(size)
        before, now = now, after / size
    found, vectors = linalg.eigh_tridiagonal(centres, steps[: len(centres) - 1])
    return np.asarray(found, dtype=np.float64), np.square(np.asarray(vectors[0], dtype=np.float64))


def log_density(one: WeightedPrior, measurements: Sequence[Measurement]) -> float:
    """Return the log density of all answers, up to a constant; −∞ where they have none.

    Parameters
    ----------
    one : WeightedPrior
        Of counts.
    measurements : sequence of Measurement
    """
    try:
        [posterior] = condition(one.prior, one.likelihood, measurements)
    except np.linalg.LinAlgError:
        return -np.inf
    whitened = posterior.factor.T @ posterior.weights
    density = -0.5 * float(whitened @ whitened)
    density -= float(np.log(np.diag(posterior.factor)).sum())
    spreads = [each for each in measurements if isinstance(each.question, SpreadQuestion)]
    return density + sum(_of_spread(each, one.likelihood, posterior) for each in spreads)


def _of_spread(measurement: Measurement, likelihood: Likelihood, posterior: Posterior) -> float:
    """Return the log density of an answer about spread, given all others.

    Rows count as independent given the rates.
    """
    question, strategy = measurement.question, measurement.strategy
    assert isinstance(question, SpreadQuestion)
    assert isinstance(strategy, DenseStrategy | GatheredStrategy)
    assert isinstance(likelihood, CountLikelihood)
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
