r"""Forecast: what a release would be worth, from public inputs, before anything is asked.

While hyperparameters stay as declared, every design and every predicted variance is known before
any output is: the posterior variance of a Gaussian process does not depend on the answers, and
neither do the widths of bands that no bound cuts. So the stages of a fit are gone through with the
answers that the prior expects, and no output.

The forecast believes its prior. How far it was from the truth on tables is recorded in
``docs/adaptive.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cloakgp.criteria import Criterion, criterion_named
from cloakgp.data import InputRows
from cloakgp.fitting.bands import Stage, schedule_stages
from cloakgp.fitting.interval import BINS, NO_SEARCH, decided_by_answers, plan_search
from cloakgp.fitting.planning import fit_cost
from cloakgp.fitting.remeasure import design_stage
from cloakgp.fitting.strategies import (
    Budget,
    Query,
    choose_strategy,
    query_weights,
    sharpened,
    unit_noise_sd,
)
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.likelihoods import Likelihood
from cloakgp.models.summary import summarise
from cloakgp.privacy import Answers, Guarantee, OutputBounds
from cloakgp.privacy.bands import UNIT_BAND, Bands
from cloakgp.privacy.groups import Groups
from cloakgp.privacy.labels import Classes
from cloakgp.privacy.noise import NOISES, noises_for
from cloakgp.release import DenseStrategy, Hyperprior, Measurement, Release
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import NoiseChoice, NoiseName

# Noises are compared on so many rows, or entries of several outputs, of tables that have some times
# as many.
DECIDING_ROWS, FEW_ENOUGH = 500, 2
# Numbers get Gaussian noise where its expected error is less than this share of Laplace noise's:
# beside these, releases with Gaussian noise were a tenth worse than forecasts said on twelve tables
# (docs/noise.md). Forecasts about classes were right.
CLEARLY_BETTER, AT_ALL_BETTER = 0.9, 1.0


@dataclass(frozen=True)
class Forecast:
    """What a release of one budget is expected to be worth, and to take.

    Attributes
    ----------
    epsilon, delta : float
    noise : {"gaussian", "laplace"}
    error : float
        Expected root mean squared error of predictions of the curve at the query points, in output
        units.
    output_error : float
        The same, of predictions of new outputs: with their own noise.
    prior_error : float
        As ``error``, if nothing were asked.
    stages : int
    questions : int
        Numbers that will be published with noise, in all stages, at most.
    memory : float
        In bytes, within a factor of two.
    seconds : float
        On one core, no better than an order of magnitude.
    release : Release
        What would be released if answers were as the prior expects them. Its sds are the expected
        ones; its means are those of the prior, and no output is in it.
    """

    epsilon: float
    delta: float
    noise: NoiseName
    error: float
    output_error: float
    prior_error: float
    stages: int
    questions: int
    memory: float
    seconds: float
    release: Release = field(repr=False, compare=False)

    @property
    def file_bytes(self) -> int:
        """Size of the release's file, but for what is learned from the answers."""
        return len(self.release.to_bytes())


def forecast_release(
    X: Array,
    *,
    prior: ExactPrior | SparsePrior,
    bounds: OutputBounds,
    query: Query,
    budget: Budget,
    stages: Sequence[Stage],
    hyperprior: Hyperprior | None = None,
    criterion: str = "bayes",
    searched: bool = False,
    outputs: int = 1,
    groups: Groups | None = None,
    gap: float = 1e-2,
) -> Forecast:
    """Forecast a release of one table of numbers. Sees no output.

    Parameters
    ----------
    X : array of shape (N, D)
        Public inputs.
    prior : ExactPrior or SparsePrior
    bounds : OutputBounds
    query : Query
    budget : Budget
        The whole.
    stages : sequence of Stage
    hyperprior : Hyperprior, optional
        What would be learned.
    criterion : str
    searched : bool
        Whether an interval that holds most outputs would be looked for first. What that costs is
        counted; bounds are taken to be good ones, which one round of each output finds.
    outputs : int
        T: X are the entries of so many outputs of each row.
    groups : array of shape (N,), optional
        Whose row each is, from `cloakgp.privacy.groups.checked_groups`.
    gap : float
        Of the designs: coarser than a release's own, which changes little.

    Returns
    -------
    Forecast
    """
    NOISES[budget.noise].check(budget.epsilon, budget.delta)
    search = NO_SEARCH
    if searched:
        most = 1 if groups is None else int(np.bincount(groups).max())
        search = plan_search(
            bounds,
            budget=decided_by_answers(budget),
            rows=len(X) // outputs,
            largest_group=max(most // outputs, 1),
            outputs=outputs,
        )
        if search.rounds:
            budget = decided_by_answers(budget)
    steps = schedule_stages(
        stages,
        budget=budget,
        rows=len(X),
        ask_spread=hyperprior is not None and hyperprior.noise_variance,
        spent=search.spent(outputs if search.rounds else 0),
    )
    first = choose_strategy(
        X,
        prior=prior,
        encoding=bounds,
        query=query,
        budget=steps[0].budget,
        criterion=criterion,
        groups=groups,
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
            groups=groups,
            band=step.stage.width,
            gap=gap,
            progress=None,
        )
        values = stage.strategy.matrix @ stage.expected
        added = _expected(stage.strategy, values, encoding=stage.encoding, budget=step.budget)
        release = release.with_measurements((*release.measurements, added))
    # Beside the stages: the question how noisy outputs are, and counts in intervals at most.
    others = len(steps) - len(release.measurements) + (BINS + 2) * len(search.rounds)
    return _summarised(release, query, budget=budget, others=others)


@dataclass(frozen=True, eq=False)
class FewRows:
    """Some rows of a table, each in the place of several: about what all are worth, for less.

    A row stands for the mean of N/n outputs at its place, whose own noise is as much less. To ask
    for sums of N/n outputs is to ask for N/n times their means, so the noise of what is asked
    counts as much less, too.

    Attributes
    ----------
    X : array of shape (n, D)
    prior : ExactPrior or SparsePrior
    share : float
        N/n.
    """

    X: Array
    prior: ExactPrior | SparsePrior
    share: float

    @classmethod
    def of(cls, X: Array, prior: ExactPrior | SparsePrior, *, outputs: int = 1) -> FewRows:
        """Take some rows from all over a table; all of them, if they are not many.

        Parameters
        ----------
        X : array of shape (N, D)
            Public inputs.
        prior : ExactPrior or SparsePrior
        outputs : int
            T: every row has so many entries, and fewer rows are taken.
        """
        size = max(DECIDING_ROWS // outputs, 1)
        if len(X) < FEW_ENOUGH * size:
            return cls(X=X, prior=prior, share=1.0)
        share = len(X) / size
        return cls(
            X=summarise(InputRows(X), size=size).sample,
            prior=replace(prior, noise_variance=prior.noise_variance / share),
            share=share,
        )

    def budget(self, budget: Budget) -> Budget:
        """Return the budget that these rows need in the place of one for all."""
        return budget if self.share == 1.0 else sharpened(budget, factor=self.share)


def choose_noise(
    noise: NoiseChoice,
    *,
    epsilon: float,
    delta: float,
    criterion: Criterion | None = None,
    expected_error: Callable[[NoiseName], float],
    lead: float = CLEARLY_BETTER,
) -> NoiseName:
    """Choose the noise of a release by forecast, from public inputs, where there is a choice.

    It is Laplace noise unless Gaussian noise is expected to be better by a margin. Expectations are
    of predictions: where questions are chosen for something else it is Gaussian.

    Parameters
    ----------
    noise : {"auto", "gaussian", "laplace"}
        What was asked for.
    epsilon, delta : float
    criterion : Criterion, optional
        For which questions are chosen.
    expected_error : callable
        The error that a release with some noise is expected to have.
    lead : float
        Gaussian noise is taken where its error is less than this share of the other.

    Raises
    ------
    ValueError
        If a parameter does not make sense.

    Examples
    --------
    >>> choose_noise("auto", epsilon=1.0, delta=0.0, expected_error=lambda noise: 0.0)
    'laplace'
    >>> nearly_alike = {"gaussian": 0.95, "laplace": 1.0}.__getitem__
    >>> choose_noise("auto", epsilon=1.0, delta=1e-5, expected_error=nearly_alike)
    'laplace'
    """
    possible = noises_for(noise, epsilon=epsilon, delta=delta)
    if len(possible) == 1:
        return possible[0]
    if criterion is not None and "stages" not in criterion.uses:
        return "gaussian"
    errors = {name: expected_error(name) for name in possible}
    return "gaussian" if errors["gaussian"] < lead * errors["laplace"] else "laplace"


def forecast_labels(
    X: Array,
    *,
    prior: ExactPrior | SparsePrior,
    likelihood: Likelihood,
    classes: Classes,
    query: Query,
    budget: Budget,
    criterion: str,
    groups: Groups | None = None,
    gap: float = 1e-2,
) -> float:
    """Forecast how uncertain encoded labels stay: the root mean square sd of their expectation.

    Under the Gaussian prior over labels by which questions about them are chosen, whatever the
    labels. It compares noises, and does not say how well classes can be told apart. Sees no label.

    Parameters
    ----------
    X : array of shape (N, D)
        Public inputs.
    prior : ExactPrior or SparsePrior
    likelihood : Likelihood
    classes : Classes
    query : Query
    budget : Budget
    criterion : str
        One for classes.
    groups : array of shape (N,), optional
        As for `forecast_release`.
    gap : float
        Of the design.
    """
    linear = criterion_named(criterion, use="classes").prior_over_outputs(prior, likelihood, X)
    strategy = choose_strategy(
        X,
        prior=prior,
        likelihood=likelihood,
        encoding=classes,
        query=query,
        budget=budget,
        criterion=criterion,
        groups=groups,
        gap=gap,
    )
    width = unit_noise_sd(classes, budget) / budget.unit_sd()
    asked = _expected(
        strategy,
        np.zeros(strategy.n_answers),
        encoding=OutputBounds(-width / 2, width / 2),
        budget=budget,
    )
    known = Release(prior=replace(linear, mean=0.0), measurements=(asked,)).posterior
    return float(np.sqrt(_shares(query) @ known.variance(query.X)))


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
        noise_sd=unit_noise_sd(limits, budget) * strategy.longest_column(NOISES[budget.noise]),
        centre=limits.middle,
        bounds=(limits.lo, limits.hi),
        guarantee=Guarantee(epsilon=budget.epsilon, delta=budget.delta, mu=0.0),
        insecure=True,
        noise=budget.noise,
    )
    bands = encoding if isinstance(encoding, Bands) else None
    return Measurement(strategy=strategy, answers=answers, encoding=bands)


def _shares(query: Query) -> Array:
    """Return how important each query point is, adding up to 1."""
    weights = query_weights(query)
    return np.asarray(weights / weights.sum())


def _summarised(release: Release, query: Query, *, budget: Budget, others: int) -> Forecast:
    prior, posterior = release.prior, release.posterior
    weights = _shares(query)
    latent = float(weights @ posterior.variance(query.X))
    noise = float(weights @ prior.observation_noise(query.X))
    stages = len(release.measurements)
    inducing = len(prior.inducing) if isinstance(prior, SparsePrior) else None
    cost = fit_cost(release.n_rows, queries=len(query.X), inducing=inducing)
    return Forecast(
        epsilon=budget.epsilon,
        delta=budget.delta,
        noise=budget.noise,
        error=float(np.sqrt(latent)),
        output_error=float(np.sqrt(latent + noise)),
        prior_error=float(np.sqrt(weights @ prior.query_variance(query.X))),
        stages=stages,
        questions=sum(measurement.strategy.n_answers for measurement in release.measurements)
        + others,
        memory=cost.memory,
        seconds=cost.seconds * stages,
        release=release,
    )
