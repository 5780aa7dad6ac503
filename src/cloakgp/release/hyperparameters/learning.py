"""Maximum a posteriori hyperparameters, or an average over their posterior, from noisy answers.

The answers are public, so whatever is fitted to them costs no privacy. Each likelihood has an
objective: minus the log density of the answers under it, with weak priors around declared values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np
from scipy import linalg, special

from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.likelihoods import (
    ClassLikelihood,
    CountLikelihood,
    Likelihood,
    Numbers,
    QuantileLikelihood,
)
from cloakgp.models.likelihoods.quantiles import quantile_likelihood
from cloakgp.models.prediction import alternatives
from cloakgp.models.scales import smaller_scales
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.release.hyperparameters.alike import AlikeOutputs, rows_among, with_noise
from cloakgp.release.hyperparameters.classification import (
    LEARNING_CELLS,
    LEARNING_POINTS,
    LabelObjective,
)
from cloakgp.release.hyperparameters.covariance import LEARNING_POINTS as MOST_POINTS
from cloakgp.release.hyperparameters.covariance import (
    LearningAnswers,
    LearningQuestions,
    gather,
)
from cloakgp.release.hyperparameters.hyperprior import Hyperprior
from cloakgp.release.hyperparameters.noise import with_learned_noise
from cloakgp.release.hyperparameters.overdispersion import with_learned_overdispersion
from cloakgp.release.hyperparameters.quadrature import EVIDENCE, posterior_points
from cloakgp.release.hyperparameters.quantiles import learned_scales
from cloakgp.release.hyperparameters.regression import NumbersObjective
from cloakgp.release.hyperparameters.scatter import with_learned_scatter
from cloakgp.release.measurement import (
    Measurement,
    answered_measurements,
    is_in_bands,
    linear_measurements,
)
from cloakgp.release.posterior.clipped import clipped_posterior, log_evidence
from cloakgp.release.posterior.dense import Posterior
from cloakgp.release.posterior.label_sums import CellSigns
from cloakgp.release.posterior.mixture import (
    Inference,
    WeightedPrior,
    answered_tables,
    condition,
    kept_tables,
    sweeps_of,
    weightiest,
)
from cloakgp.release.posterior.quantiles import ThresholdAnswers
from cloakgp.release.strategy import DenseStrategy
from cloakgp.release.tables import AnsweredTable, DenseTable
from cloakgp.utils.arrays import Array

# Of log rates: an eighth of it is the prior sd of their mean.
LOG_RATE_WIDTH = 6.0
# Alternatives of a prior that are less probable than this cost time in predicting, and say nothing.
LEAST_WEIGHT = 0.01
# How often the noise of outputs most of which are alike is found by the curve, and this by it.
SETTLED = 2


class Objective(Protocol):
    """Minus a log posterior of standardised hyperparameters, and their priors."""

    @property
    def size(self) -> int:
        """The number of free hyperparameters."""

    def __call__(self, position: Array) -> tuple[float, Array]:
        """Return value and gradient."""

    def at(self, position: Array, *, weight: float) -> WeightedPrior:
        """Return prior and likelihood with these hyperparameters."""


MakeObjective = Callable[
    [ExactPrior | SparsePrior, Likelihood, Sequence[Measurement], Hyperprior, int], Objective
]


def learn(
    prior: ExactPrior | SparsePrior,
    likelihood: Likelihood,
    measurements: Sequence[Measurement],
    *,
    hyperprior: Hyperprior,
    average: bool = False,
    inference: Inference = "posterior",
) -> tuple[WeightedPrior, ...]:
    """Fit the free hyperparameters of a declared prior to published answers.

    Parameters
    ----------
    prior : ExactPrior or SparsePrior
        As declared; its values are the centres of the weak priors.
    likelihood : Likelihood
    measurements : sequence of Measurement
    hyperprior : Hyperprior
    average : bool
        Return a few priors that stand for the posterior over hyperparameters, instead of the
        maximum a posteriori alone.
    inference : {"posterior", "iterated", "newton"}
        How predictions will be read off the answers.

    Returns
    -------
    tuple of WeightedPrior
        Weights sum to 1. The declared prior if nothing is free, nothing was asked, or nothing can
        be learned under this likelihood. Of a prior that goes by a public prediction, or of which
        smaller scales are considered, that and its alternatives, weighed by how probable the
        answers are under each.

    Raises
    ------
    ValueError
        If what was asked of every row is not kept.
    """
    answered = answered_measurements(measurements)
    others: tuple[ExactPrior | SparsePrior, ...] = (prior,)
    if answered and hyperprior.scale and likelihood.linear:
        others = smaller_scales(prior)
    elif answered:
        others = alternatives(prior)
    found = [
        _learn_one(
            other,
            likelihood,
            measurements,
            hyperprior=hyperprior,
            average=average,
            inference=inference,
        )
        for other in others
    ]
    learned = found[0]
    if len(found) > 1:
        learned = weigh(
            found,
            log_evidence=lambda one: log_evidence(one, answered, sweeps=sweeps_of(inference)),
        )
    if not (answered and likelihood.linear and hyperprior.noise_variance):
        return learned
    return _with_noise_of_alike(learned, measurements, inference=inference)


def _with_noise_of_alike(
    learned: tuple[WeightedPrior, ...],
    measurements: Sequence[Measurement],
    *,
    inference: Inference,
) -> tuple[WeightedPrior, ...]:
    """Return priors with the noise that counts tell, where these find most outputs alike."""
    alike = AlikeOutputs.counted(measurements)
    strategy = measurements[0].strategy
    if alike is None or not isinstance(strategy, DenseStrategy):
        return learned
    X = rows_among(strategy.X)
    # The curve goes by the noise, too, if little.
    for _ in range(SETTLED):
        main = weightiest(learned)
        with suppress(np.linalg.LinAlgError):
            [posterior] = condition(
                main.prior, main.likelihood, measurements, sweeps=sweeps_of(inference)
            )
            variance, _ = alike.noise(*posterior.joint(X))
            learned = with_noise(learned, variance)
    return learned


def weigh(
    found: Sequence[tuple[WeightedPrior, ...]],
    *,
    log_evidence: Callable[[ExactPrior | SparsePrior], float],
) -> tuple[WeightedPrior, ...]:
    """Return what was learned from all alternatives, as probable as they make the answers.

    The posterior over alternatives that are equally probable beforehand (Hoeting, Madigan, Raftery
    and Volinsky 1999, equations 1 and 2), with the most probable hyperparameters of each.

    Parameters
    ----------
    found : sequence of tuples of WeightedPrior
        From each alternative; judged by the one of most weight.
    log_evidence : callable
        The log density of the answers under a prior.

    Returns
    -------
    tuple of WeightedPrior
        Weights sum to 1. Alternatives of less than `LEAST_WEIGHT` are left out. The first, as
        declared, where the answers have a density under none.
    """
    evidence = _evidence_of(found, log_evidence)
    if not np.isfinite(evidence).any():
        return found[0]
    weights = special.softmax(evidence)
    weights[weights < LEAST_WEIGHT] = 0.0
    return tuple(
        replace(one, weight=float(weight / weights.sum()) * one.weight)
        for weight, learned in zip(weights, found, strict=True)
        for one in learned
        if weight > 0.0
    )


def likeliest(
    found: Sequence[tuple[WeightedPrior, ...]],
    *,
    log_evidence: Callable[[ExactPrior | SparsePrior], float],
) -> tuple[WeightedPrior, ...]:
    """Return what was learned that makes the answers most probable; the first of those alike.

    Parameters
    ----------
    found, log_evidence
        As for `weigh`.
    """
    if len(found) == 1:
        return found[0]
    return found[int(np.argmax(_evidence_of(found, log_evidence)))]


def _evidence_of(
    found: Sequence[tuple[WeightedPrior, ...]],
    log_evidence: Callable[[ExactPrior | SparsePrior], float],
) -> Array:
    """Return the log density of the answers under the main part of each; −∞ if there is none."""
    evidence = np.full(len(found), -np.inf)
    for place, learned in enumerate(found):
        with suppress(np.linalg.LinAlgError):
            evidence[place] = log_evidence(weightiest(learned).prior)
    evidence[np.isnan(evidence)] = -np.inf
    return evidence


def _learn_one(
    prior: ExactPrior | SparsePrior,
    likelihood: Likelihood,
    measurements: Sequence[Measurement],
    *,
    hyperprior: Hyperprior,
    average: bool,
    inference: Inference,
) -> tuple[WeightedPrior, ...]:
    """Fit the free hyperparameters of one prior."""
    answered = answered_measurements(measurements)
    make = OBJECTIVES.get(type(likelihood))
    declared = WeightedPrior(prior=prior, likelihood=likelihood, weight=1.0)
    if not answered or make is None:
        return (declared,)
    learned: tuple[WeightedPrior, ...] = (declared,)
    sweeps = sweeps_of(inference)
    if any(each.question.locates for each in answered):
        learned = minimise(
            make(prior, likelihood, measurements, hyperprior, sweeps),
            declared=declared,
            average=average,
        )
    if isinstance(likelihood, CountLikelihood) and hyperprior.noise_variance:
        return with_learned_overdispersion(learned, answered)
    if not likelihood.linear:
        return learned
    if is_in_bands(answered):
        # They were learned with outputs in bands linearised under the declared prior.
        learned = _conditionable(learned, answered, sweeps=sweeps) or (declared,)
    if any(each.strategy.n_rows > MOST_POINTS for each in answered):
        located = [each for each in answered if not each.about_spread]
        learned = confirmed(
            learned,
            declared=declared,
            log_evidence=lambda one: log_evidence(one, located, sweeps=sweeps),
        )
    if hyperprior.noise_variance and _asks_spread(answered):
        in_strata = any(each.about_scatter for each in answered)
        of_noise = with_learned_scatter if in_strata else with_learned_noise
        return of_noise(learned, answered, sweeps=sweeps)
    return learned


def _asks_spread(measurements: Sequence[Measurement]) -> bool:
    return any(each.about_spread for each in measurements)


def _conditionable(
    priors: Sequence[WeightedPrior], answered: Sequence[Measurement], *, sweeps: int
) -> tuple[WeightedPrior, ...]:
    """Return the priors under which the answers have a covariance, their weights adding up to 1."""
    kept = []
    for candidate in priors:
        try:
            evidence = log_evidence(candidate.prior, answered, sweeps=sweeps)
        except np.linalg.LinAlgError:
            continue
        if np.isfinite(evidence):
            kept.append(candidate)
    total = sum(candidate.weight for candidate in kept)
    return tuple(replace(candidate, weight=candidate.weight / total) for candidate in kept)


def learn_numbers(
    prior: ExactPrior | SparsePrior,
    answers: LearningAnswers,
    *,
    bounds: tuple[float, float],
    hyperprior: Hyperprior,
    average: bool = False,
    degrees: float = np.inf,
    coarse: LearningAnswers | None = None,
    start: ExactPrior | SparsePrior | None = None,
) -> tuple[WeightedPrior, ...]:
    """As `learn`, from answers about numbers in the form that learning needs.

    Parameters
    ----------
    prior : ExactPrior or SparsePrior
    answers : LearningAnswers
    bounds : (float, float)
        Of one output.
    hyperprior : Hyperprior
    average : bool
    degrees : float
        Of freedom of the weak priors; infinitely many for normal ones.
    coarse : LearningAnswers, optional
        The same, at fewer points, where the search starts.
    start : ExactPrior or SparsePrior, optional
        With the only hyperparameters from which it starts, of a kernel of the same form.
    """
    of = partial(NumbersObjective.of, prior, bounds=bounds, hyperprior=hyperprior, degrees=degrees)
    objective = of(answers)
    return minimise(
        objective,
        declared=WeightedPrior(prior=prior, likelihood=Numbers(), weight=1.0),
        average=average,
        coarse=None if coarse is None else of(coarse),
        start=None if start is None else objective.position_of(start),
    )


def learn_classes(
    prior: ExactPrior | SparsePrior,
    likelihood: ClassLikelihood,
    signs: CellSigns,
    *,
    hyperprior: Hyperprior,
    average: bool = False,
) -> tuple[WeightedPrior, ...]:
    """As `learn`, from answers about labels of rows that are not kept.

    Parameters
    ----------
    prior : ExactPrior or SparsePrior
    likelihood : ClassLikelihood
    signs : CellSigns
    hyperprior : Hyperprior
    average : bool
    """
    declared = WeightedPrior(prior=prior, likelihood=likelihood, weight=1.0)
    if signs.values.size == 0:
        return (declared,)
    objective = LabelObjective(
        prior=prior,
        likelihood=likelihood,
        questions=LearningQuestions.of_cells(signs.cells, most=LEARNING_CELLS),
        values=signs.values,
        means=hyperprior.mean,
    )
    return minimise(objective, declared=declared, average=average)


def confirmed(
    learned: tuple[WeightedPrior, ...],
    *,
    declared: WeightedPrior,
    log_evidence: Callable[[ExactPrior | SparsePrior], float],
) -> tuple[WeightedPrior, ...]:
    """Return learned priors, or the declared one if it makes the answers as probable.

    Learning moves many rows to few points. What it finds there counts where it holds with every
    row at its own place: if answers are more probable by a nat, as learning itself demands. An
    average need not be more probable, and is set aside where its main part is less so by a nat.

    Parameters
    ----------
    learned : tuple of WeightedPrior
        Judged by the one of most weight.
    declared : WeightedPrior
    log_evidence : callable
        The log density of the answers under a prior, of all rows as they are.
    """
    main = weightiest(learned)
    if main.prior is declared.prior:
        return learned
    try:
        gained = log_evidence(main.prior) - log_evidence(declared.prior)
    except np.linalg.LinAlgError:
        return (declared,)
    # Written so that NaN fails.
    return learned if gained >= (EVIDENCE if len(learned) == 1 else -EVIDENCE) else (declared,)


def reweighed(
    priors: Sequence[WeightedPrior],
    *,
    before: Sequence[Measurement],
    after: Sequence[Measurement],
) -> tuple[WeightedPrior, ...]:
    """Return priors with the weights that they have when more answers about numbers are known.

    By Bayes' rule each weight is multiplied by how probable the later answers are, given the
    earlier ones, under its prior. Hyperparameters stay where they are.

    Parameters
    ----------
    priors : sequence of WeightedPrior
        With their weights given the answers before.
    before, after : sequences of Measurement
        The latter with all of the former.
    """
    if len(priors) < 2:
        return tuple(priors)
    logs = np.array(
        [
            np.log(one.weight)
            + linear_log_evidence(one.prior, after)
            - linear_log_evidence(one.prior, before)
            for one in priors
        ]
    )
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    pairs = zip(priors, weights.tolist(), strict=True)
    return tuple(replace(one, weight=weight) for one, weight in pairs)


def linear_log_evidence(
    prior: ExactPrior | SparsePrior, measurements: Sequence[Measurement]
) -> float:
    """Return the log density of answers about numbers, up to a constant for all priors.

    Parameters
    ----------
    prior : ExactPrior or SparsePrior
    measurements : sequence of Measurement
        Those about the spread of outputs are passed over.
    """
    factor, white = whitened_answers(prior, measurements)
    return -float(white @ white) / 2 - float(np.log(np.diag(factor)).sum())


def whitened_answers(
    prior: ExactPrior | SparsePrior, measurements: Sequence[Measurement]
) -> tuple[Array, Array]:
    """Return L and L⁻¹ (a − R m) of answers about numbers, a ~ N(R m, L Lᵀ) under a prior.

    Parameters
    ----------
    prior : ExactPrior or SparsePrior
    measurements : sequence of Measurement
        Those about the spread of outputs are passed over.

    Returns
    -------
    array of shape (k, k)
        Lower triangular.
    array of shape (k,)
    """
    tables, values = answered_tables(prior, measurements, prior.mean)
    factor = Posterior.given(prior, tables, values[:, 0]).factor
    return factor, linalg.solve_triangular(factor, values[:, 0], lower=True)


def minimise(
    objective: Objective,
    *,
    declared: WeightedPrior,
    average: bool,
    coarse: Objective | None = None,
    start: Array | None = None,
) -> tuple[WeightedPrior, ...]:
    """Return the minimum of an objective, or a few points that stand for its posterior.

    Parameters
    ----------
    objective : Objective
    declared : WeightedPrior
        Returned if nothing is free.
    average : bool
    coarse : Objective, optional
        About the objective, and cheaper: its minimum is where the search starts.
    start : array, optional
        The only place from which a minimum is looked for.
    """
    if objective.size == 0:
        return (declared,)
    return tuple(
        objective.at(position, weight=weight)
        for position, weight in posterior_points(
            objective, size=objective.size, average=average, coarse=coarse, start=start
        )
    )


def _of_numbers(
    prior: ExactPrior | SparsePrior,
    likelihood: Likelihood,
    measurements: Sequence[Measurement],
    hyperprior: Hyperprior,
    sweeps: int,
) -> NumbersObjective:
    del likelihood
    # The first is about outputs within the declared bounds, also where it asked nothing.
    bounds, answered = measurements[0].question, answered_measurements(measurements)
    if not isinstance(bounds, OutputBounds):
        raise TypeError("these are no answers about numbers")
    if is_in_bands(answered):
        known = clipped_posterior(prior, answered, sweeps=sweeps)
        tables: Sequence[AnsweredTable] = known.tables
        totals = np.concatenate([table.questions.sum(axis=1) for table in kept_tables(tables)])
        # What the posterior is conditioned on: S times its weights, and the mean.
        linear = known.factor @ (known.factor.T @ known.weights) + prior.mean * totals
    else:
        tables, values = answered_tables(prior, answered)
        linear = values[:, 0]
        if prior.trend is not None:
            asked = linear_measurements(answered)
            linear = linear - np.concatenate(
                [one.strategy.trend_answers(prior) / one.noise_sd for one in asked]
            )
    return NumbersObjective.of(
        prior,
        gather(kept_tables(tables), linear),
        bounds=(bounds.lo, bounds.hi),
        # Sums of outputs say little of their noise: where that was asked, it is learned alone.
        hyperprior=replace(
            hyperprior, noise_variance=hyperprior.noise_variance and not _asks_spread(answered)
        ),
    )


@dataclass(frozen=True, eq=False)
class _LinearisedObjective:
    """The objective of a latent function, with answers linearised under the declared prior."""

    linear: NumbersObjective
    likelihood: Likelihood

    @classmethod
    def of(
        cls,
        declared: WeightedPrior,
        tables: Sequence[DenseTable],
        residuals: Array,
        *,
        bounds: tuple[float, float],
        hyperprior: Hyperprior,
    ) -> _LinearisedObjective:
        """Return the objective of answers R f + noise, less what they are at the prior mean."""
        prior = declared.prior
        totals = np.concatenate([table.questions.sum(axis=1) for table in tables])
        return cls(
            linear=NumbersObjective.of(
                prior,
                gather(tables, residuals + prior.mean * totals),
                bounds=bounds,
                # Latent functions have no noise of their own: outputs scatter by their likelihood.
                hyperprior=replace(hyperprior, noise_variance=False),
            ),
            likelihood=declared.likelihood,
        )

    @property
    def size(self) -> int:
        """The number of free hyperparameters."""
        return self.linear.size

    def __call__(self, position: Array) -> tuple[float, Array]:
        """Return value and gradient."""
        return self.linear(position)

    def at(self, position: Array, *, weight: float) -> WeightedPrior:
        """Return prior and likelihood with these hyperparameters."""
        prior = self.linear.prior_at(position)
        return WeightedPrior(prior=prior, likelihood=self.likelihood, weight=weight)


def _of_counts(
    prior: ExactPrior | SparsePrior,
    likelihood: Likelihood,
    measurements: Sequence[Measurement],
    hyperprior: Hyperprior,
    sweeps: int,
) -> _LinearisedObjective:
    del sweeps
    [known] = condition(prior, likelihood, measurements)
    return _LinearisedObjective.of(
        WeightedPrior(prior=prior, likelihood=likelihood, weight=1.0),
        kept_tables(known.tables),
        # What the posterior is conditioned on: S times its weights.
        known.factor @ (known.factor.T @ known.weights),
        bounds=(0.0, LOG_RATE_WIDTH),
        hyperprior=hyperprior,
    )


def _of_quantiles(
    prior: ExactPrior | SparsePrior,
    likelihood: Likelihood,
    measurements: Sequence[Measurement],
    hyperprior: Hyperprior,
    sweeps: int,
) -> _LinearisedObjective:
    """Return the objective of what latent quantiles have in common, as if that were all."""
    del sweeps
    bounds = measurements[0].question.limits
    assert bounds is not None
    answers = ThresholdAnswers.of(prior, measurements)
    scaled, known = learned_scales(answers, quantile_likelihood(likelihood))
    return _LinearisedObjective.of(
        WeightedPrior(prior=prior, likelihood=scaled, weight=1.0),
        known.tables(np.ones(len(known.channels))),
        known.values,
        bounds=bounds,
        hyperprior=hyperprior,
    )


def _of_classes(
    prior: ExactPrior | SparsePrior,
    likelihood: Likelihood,
    measurements: Sequence[Measurement],
    hyperprior: Hyperprior,
    sweeps: int,
) -> LabelObjective:
    del sweeps
    if not isinstance(likelihood, ClassLikelihood):
        raise TypeError("these are no answers about classes")
    tables, values = answered_tables(prior, measurements)
    return LabelObjective(
        prior=prior,
        likelihood=likelihood,
        questions=LearningQuestions.of(kept_tables(tables), most=LEARNING_POINTS),
        values=values.T,
        means=hyperprior.mean,
    )


OBJECTIVES: dict[type[Likelihood], MakeObjective] = {
    Numbers: _of_numbers,
    ClassLikelihood: _of_classes,
    CountLikelihood: _of_counts,
    QuantileLikelihood: _of_quantiles,
}
