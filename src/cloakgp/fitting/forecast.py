r"""Forecast: what a release would be worth, from public inputs, before anything is asked.

While hyperparameters stay as declared, every design and every predicted variance is known before
any output is: the posterior variance of a Gaussian process does not depend on the answers, and
neither do the widths of bands that no bound cuts. So the stages of a fit are gone through with the
answers that the prior expects, and no output.

The forecast believes its prior. How far it was from the truth on tables is recorded in
``docs/adaptive.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloakgp.fitting.bands import Stage, schedule_stages
from cloakgp.fitting.planning import fit_cost
from cloakgp.fitting.remeasure import design_stage
from cloakgp.fitting.strategies import Budget, Query, choose_strategy, query_weights, unit_noise_sd
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.privacy import Answers, Guarantee, OutputBounds
from cloakgp.privacy.accounting import check_budget, exact_noise_multiplier
from cloakgp.privacy.bands import UNIT_BAND, Bands
from cloakgp.release import DenseStrategy, Hyperprior, Measurement, Release
from cloakgp.utils.arrays import Array


@dataclass(frozen=True)
class Forecast:
    """What a release of one budget is expected to be worth, and to take.

    Attributes
    ----------
    epsilon, delta : float
    error : float
        Expected root mean squared error of predictions of the curve at the query points, in output
        units.
    output_error : float
        The same, of predictions of new outputs: with their own noise.
    prior_error : float
        As ``error``, if nothing were asked.
    stages : int
    questions : int
        Numbers that will be published with noise, in all stages.
    memory : float
        In bytes, within a factor of two.
    seconds : float
        On one core, no better than an order of magnitude.
    """

    epsilon: float
    delta: float
    error: float
    output_error: float
    prior_error: float
    stages: int
    questions: int
    memory: float
    seconds: float


def forecast_release(
    X: Array,
    *,
    prior: ExactPrior | SparsePrior,
    bounds: OutputBounds,
    query: Query,
    epsilons: Sequence[float],
    delta: float,
    stages: Sequence[Stage],
    hyperprior: Hyperprior | None = None,
    criterion: str = "bayes",
    gap: float = 1e-2,
) -> tuple[Forecast, ...]:
    """Forecast releases of one table of numbers at several budgets. Sees no output.

    Parameters
    ----------
    X : array of shape (N, D)
        Public inputs.
    prior : ExactPrior or SparsePrior
    bounds : OutputBounds
    query : Query
    epsilons : sequence of float
        Each the whole of a budget.
    delta : float
    stages : sequence of Stage
    hyperprior : Hyperprior, optional
        What would be learned.
    criterion : str
    gap : float
        Of the designs: coarser than a release's own, which changes little.

    Returns
    -------
    tuple of Forecast
        One for each ε.
    """
    return tuple(
        _forecast(
            X,
            prior=prior,
            bounds=bounds,
            query=query,
            epsilon=float(epsilon),
            delta=delta,
            stages=stages,
            hyperprior=hyperprior,
            criterion=criterion,
            gap=gap,
        )
        for epsilon in epsilons
    )


def _forecast(
    X: Array,
    *,
    prior: ExactPrior | SparsePrior,
    bounds: OutputBounds,
    query: Query,
    epsilon: float,
    delta: float,
    stages: Sequence[Stage],
    hyperprior: Hyperprior | None,
    criterion: str,
    gap: float,
) -> Forecast:
    check_budget(epsilon, delta)
    steps = schedule_stages(
        stages,
        epsilon=epsilon,
        delta=delta,
        rows=len(X),
        ask_spread=hyperprior is not None and hyperprior.noise_variance,
    )
    first = choose_strategy(
        X,
        prior=prior,
        encoding=bounds,
        query=query,
        budget=steps[0].budget,
        criterion=criterion,
        gap=gap,
    )
    expected = first.totals * (prior.mean - bounds.middle)
    measurements = [_expected(first, expected, encoding=bounds, budget=steps[0].budget)]
    release = Release(prior=prior, measurements=tuple(measurements))
    for step in steps[1:]:
        if step.stage is None:
            continue
        stage = design_stage(
            release,
            X,
            query,
            bounds=bounds,
            budget=step.budget,
            table=0,
            groups=None,
            band=step.stage.width,
            gap=gap,
            progress=None,
        )
        values = stage.strategy.matrix @ stage.expected
        added = _expected(stage.strategy, values, encoding=stage.encoding, budget=step.budget)
        release = release.with_measurements((*release.measurements, added))
    return _summarised(release, query, epsilon=epsilon, delta=delta, steps=len(steps))


def _expected(
    strategy: DenseStrategy,
    values: Array,
    *,
    encoding: OutputBounds | Bands,
    budget: Budget,
) -> Measurement:
    """Return a measurement with given answers, and the noise sd that they would have."""
    limits = encoding if isinstance(encoding, OutputBounds) else OutputBounds(*UNIT_BAND)
    answers = Answers(
        values=values,
        noise_sd=unit_noise_sd(limits, budget) * strategy.max_column_norm,
        centre=limits.middle,
        bounds=(limits.lo, limits.hi),
        guarantee=Guarantee(
            epsilon=budget.epsilon,
            delta=budget.delta,
            mu=1.0 / exact_noise_multiplier(budget.epsilon, budget.delta),
        ),
        insecure=True,
    )
    bands = encoding if isinstance(encoding, Bands) else None
    return Measurement(strategy=strategy, answers=answers, encoding=bands)


def _summarised(
    release: Release, query: Query, *, epsilon: float, delta: float, steps: int
) -> Forecast:
    prior, posterior = release.prior, release.posterior
    weights = query_weights(query) / query_weights(query).sum()
    latent = float(weights @ posterior.variance(query.X))
    noise = float(weights @ prior.observation_noise(query.X))
    stages = len(release.measurements)
    inducing = len(prior.inducing) if isinstance(prior, SparsePrior) else None
    cost = fit_cost(release.n_rows, queries=len(query.X), inducing=inducing)
    return Forecast(
        epsilon=epsilon,
        delta=delta,
        error=float(np.sqrt(latent)),
        output_error=float(np.sqrt(latent + noise)),
        prior_error=float(np.sqrt(weights @ prior.query_variance(query.X))),
        stages=stages,
        questions=sum(measurement.strategy.n_answers for measurement in release.measurements)
        + (steps - stages),
        memory=cost.memory,
        seconds=cost.seconds * stages,
    )
