"""Choosing strategies: designs on public inputs, given where predictions matter and the budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cloakgp.criteria import Problem, StreamedProblem, Use, criterion_named
from cloakgp.criteria.base import ChosenRule
from cloakgp.data import InputRows
from cloakgp.design import Progress
from cloakgp.design.streaming.binning import Cells
from cloakgp.design.streaming.grouping import GroupedPasses, sum_grouped
from cloakgp.design.streaming.sampling import LEAST_SHARE, Sample
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.likelihoods import NUMBERS, Likelihood, Linearisation
from cloakgp.models.summary import Summary, summarise
from cloakgp.privacy import Guarantee, OutputBounds
from cloakgp.privacy.accounting import exact_noise_multiplier
from cloakgp.privacy.groups import Groups
from cloakgp.privacy.labels import Classes, signed_width
from cloakgp.privacy.noise import NOISES
from cloakgp.release import DenseStrategy
from cloakgp.release.bands import RowBands
from cloakgp.release.posterior.dense import Posterior
from cloakgp.utils.arrays import Array, as_matrix
from cloakgp.utils.names import NoiseName
from cloakgp.utils.passes import Passes

# How outputs are encoded before they are asked.
Encoding = OutputBounds | Classes
# With more rows than this, and inducing inputs, designs go through the rows in passes.
MANY_ROWS = 5_000
# Kept back from each stage, so that rounding in two calibrations cannot add up beyond the budget.
STAGE_MARGIN = 1e-6
# Parts of Laplace noise that δ makes larger by less than this factor do without δ.
LITTLE_GAINED = 1.01


@dataclass(frozen=True)
class Budget:
    """What one measurement may spend, and on which noise.

    Attributes
    ----------
    epsilon, delta : float
        δ may be 0 with Laplace noise.
    noise : {"gaussian", "laplace"}
    """

    epsilon: float
    delta: float
    noise: NoiseName = "gaussian"

    def unit_sd(self) -> float:
        """Return the sd of the noise on answers of sensitivity 1."""
        return NOISES[self.noise].unit_sd(self.epsilon, self.delta)


@dataclass(frozen=True, eq=False)
class Query:
    """Where predictions matter, and how much.

    Attributes
    ----------
    X : array of shape (P, D)
    weights : array of shape (P,) or None
    """

    X: Array
    weights: Array | None = None


def sharpened(budget: Budget, *, factor: float) -> Budget:
    """Return a budget that is as much larger as makes its noise so many times smaller.

    Parameters
    ----------
    budget : Budget
    factor : float

    Examples
    --------
    >>> sharpened(Budget(1.0, 0.0, noise="laplace"), factor=5.0)
    Budget(epsilon=5.0, delta=0.0, noise='laplace')
    """
    epsilon, delta = budget.epsilon, budget.delta
    if budget.noise == "laplace":
        return replace(budget, epsilon=factor * epsilon)
    mu = factor / exact_noise_multiplier(epsilon, delta)
    larger = Guarantee(epsilon=epsilon, delta=delta, mu=mu).epsilon_at(delta)
    return replace(budget, epsilon=larger)


def split_budget(budget: Budget, *, shares: Sequence[float]) -> tuple[Budget, ...]:
    """Split a budget so that its parts compose to it.

    Of Gaussian noise μ² adds up (Dong, Roth and Su 2022); of Laplace noise ε does, and where there
    is a δ the parts are as much larger as it allows (`cloakgp.privacy.privacy_loss`).

    Parameters
    ----------
    budget : Budget
        The whole.
    shares : sequence of float
        Of μ², or of ε; positive, adding up to 1 at most.

    Raises
    ------
    ValueError
        If every part would have ε = 0 at this δ.

    Examples
    --------
    >>> [round(part.epsilon, 3) for part in split_budget(Budget(1.0, 0.01), shares=(0.5, 0.5))]
    [0.629, 0.629]
    >>> pure = Budget(1.0, 0.0, noise="laplace")
    >>> [round(part.epsilon, 3) for part in split_budget(pure, shares=(0.4, 0.6))]
    [0.4, 0.6]
    """
    epsilon, delta = budget.epsilon, budget.delta
    if budget.noise == "laplace":
        larger = _laplace_factor(epsilon, delta, shares=shares)
        return tuple(replace(budget, epsilon=larger * share * epsilon) for share in shares)
    mu = (1.0 - STAGE_MARGIN) / exact_noise_multiplier(epsilon, delta)
    whole = Guarantee(epsilon=epsilon, delta=delta, mu=mu)
    parts = [replace(whole, mu=mu * math.sqrt(share)) for share in shares]
    if max(part.epsilon_at(delta) for part in parts) <= 0:
        raise ValueError(
            "splitting the budget leaves only parts with epsilon = 0 at this delta: use a smaller "
            "delta or no split"
        )
    return tuple(_stated(part) for part in parts)


def _laplace_factor(epsilon: float, delta: float, *, shares: Sequence[float]) -> float:
    """Return by how much larger than their shares of ε Laplace parts can be, thanks to δ.

    Where that is little, they add up to ε, and the release needs no δ.
    """

    def total(factor: float) -> float:
        parts = tuple(factor * share * epsilon for share in shares)
        return Guarantee(epsilon=epsilon, delta=delta, mu=0.0, laplace=parts).epsilon_at(delta)

    least, most = 1.0 - STAGE_MARGIN, 2.0
    # Beside parts that are not known here there is no telling.
    if delta == 0 or len(shares) < 2 or math.fsum(shares) < 1.0 - STAGE_MARGIN:
        return least
    while most - least > STAGE_MARGIN:
        middle = (least + most) / 2
        least, most = (middle, most) if total(middle) <= epsilon else (least, middle)
    return least if least > LITTLE_GAINED else 1.0 - STAGE_MARGIN


def _stated(part: Guarantee) -> Budget:
    """Return a pair (ε, δ) on the curve of a part: at a smaller δ where ε would be zero."""
    delta = part.delta
    while part.epsilon_at(delta) <= 0:
        delta /= 2.0
    return Budget(epsilon=part.epsilon_at(delta), delta=delta)


def unit_noise_sd(encoding: Encoding, budget: Budget) -> float:
    """Return the noise sd of an answer to questions whose longest column is 1.

    About outputs as the likelihood sees them: numbers in output units, labels as ±1.

    Parameters
    ----------
    encoding : OutputBounds or Classes
    budget : Budget

    Examples
    --------
    >>> round(unit_noise_sd(OutputBounds(0.0, 2.0), Budget(epsilon=1.0, delta=1e-3)), 2)
    5.15
    """
    if isinstance(encoding, Classes):
        return signed_width(encoding, noise=budget.noise) * budget.unit_sd()
    return encoding.width * budget.unit_sd()


def choose_strategy(
    X: Array,
    *,
    prior: ExactPrior | SparsePrior,
    likelihood: Likelihood = NUMBERS,
    encoding: Encoding,
    query: Query,
    budget: Budget,
    criterion: str = "bayes",
    gap: float = 1e-3,
    known: Posterior | None = None,
    table: int = 0,
    groups: Groups | None = None,
    account: Linearisation | None = None,
    progress: Progress | None = None,
) -> DenseStrategy:
    """Design the questions to put to a table. Sees public arrays and earlier answers only.

    Questions about classes are chosen under the Gaussian prior over labels that the criterion goes
    by; with a sparse prior and more than 5,000 rows, in passes over the rows, since the numbers
    that such a design looks for do not grow with N.

    Parameters
    ----------
    X : array of shape (N, D)
        Public inputs.
    prior : ExactPrior or SparsePrior
    likelihood : Likelihood
    encoding : OutputBounds or Classes
    query : Query
    budget : Budget
    criterion : str
        One of `cloakgp.criteria` for numbers, or for classes.
    gap : float
    known : Posterior, optional
        Earlier answers, to ask for what they leave open; for "bayes".
    table : int
        The number of the table in the release.
    groups : array of shape (N,), optional
        Which group each row belongs to, from `cloakgp.privacy.groups.checked_groups`: all rows of a
        group are protected together.
    account : Linearisation, optional
        Of what is asked by outputs, given what is known, where outputs are clipped to bands; for
        "bayes".
    progress : callable, optional

    Returns
    -------
    DenseStrategy

    Raises
    ------
    ValueError
        If a parameter does not make sense.
    """
    use: Use = "classes" if isinstance(encoding, Classes) else "numbers"
    by = criterion_named(criterion, use=use)
    linear = by.prior_over_outputs(prior, likelihood, X)
    noise_sd = unit_noise_sd(encoding, budget)
    # Rules for rows on their own know nothing of groups.
    many = use == "classes" and groups is None and len(X) > MANY_ROWS
    if many and isinstance(linear, SparsePrior):
        rows = InputRows(X)
        streamed = design_rows(
            rows,
            summarise(rows),
            prior=linear,
            query=query,
            noise_sd=noise_sd,
            criterion=criterion,
            gap=gap,
            progress=progress,
        )
        columns = [streamed.rule.columns(*linear.features_and_noise(c.X)) for c in rows.chunks()]
        return DenseStrategy(
            X=X,
            matrix=np.hstack(columns),
            X_query=query.X,
            reconstruction=streamed.reconstruction,
            certificate=streamed.certificate,
            table=table,
            query_weights=query.weights,
        )
    chosen = by.choose(
        Problem(
            prior=linear,
            X=X,
            X_query=query.X,
            weights=query.weights,
            noise_sd=noise_sd,
            gap=gap,
            known=known,
            table=table,
            groups=groups,
            progress=progress,
            account=account,
            noise=budget.noise,
        )
    )
    return DenseStrategy(
        X=X,
        matrix=chosen.strategy,
        X_query=query.X,
        reconstruction=chosen.reconstruction,
        certificate=chosen.certificate,
        table=table,
        query_weights=query.weights,
        representers=chosen.representers,
        row_groups=groups,
    )


def query_weights(query: Query) -> Array:
    """Return how important each query point is, shape (P,): all alike if nothing was said.

    Raises
    ------
    ValueError
        Unless weights are positive and finite, one for each point.

    Examples
    --------
    >>> query_weights(Query(np.zeros((2, 1))))
    array([1., 1.])
    """
    weights = np.ones(len(query.X)) if query.weights is None else query.weights
    if weights.shape != (len(query.X),) or not (np.isfinite(weights) & (weights > 0)).all():
        raise ValueError("query weights must be positive and finite, one per query point")
    return weights


def design_rows(
    rows: Passes,
    summary: Summary,
    *,
    prior: SparsePrior,
    query: Query,
    noise_sd: float,
    noise: NoiseName = "gaussian",
    criterion: str = "bayes",
    gap: float = 1e-3,
    tally: Cells | None = None,
    known: Posterior | None = None,
    bands: RowBands | None = None,
    progress: Progress | None = None,
) -> ChosenRule:
    """Choose what to ask of every row of a table, reading its public inputs a few times.

    Parameters
    ----------
    rows : Passes
        With `GroupedPasses`, all rows of a group are protected together.
    summary : Summary
        Of these rows.
    prior : SparsePrior
    query : Query
    noise_sd : float
        Of the noise on each answer when columns have norm 1, in output units.
    noise : {"gaussian", "laplace"}
        In whose norm that is.
    criterion : str
        The name of one that is for many rows.
    gap : float
        For "bayes", of the smaller problem that the design starts from.
    tally : Cells, optional
        The questions are summed over the rows of each of these, too.
    known : Posterior, optional
        Earlier answers, to ask for what they leave open; for "bayes". The rows' own noise is taken
        to be independent of them, as that of other rows is.
    bands : RowBands, optional
        Given what is known, where outputs are clipped to bands. The noise is then in units of
        these.
    progress : callable, optional
        Called with the gap while the design improves.

    Returns
    -------
    ChosenRule

    Raises
    ------
    ValueError
        If the query does not fit, or the criterion is not for many rows.
    """
    by = criterion_named(criterion, use="many rows")
    # Of another dimension, points could broadcast in a kernel and waste the budget.
    as_matrix(query.X, name="X_query", columns=rows.n_inputs)
    chosen = by.choose_rule(
        StreamedProblem(
            rows=rows,
            summary=summary,
            prior=prior,
            X_query=query.X,
            weights=query_weights(query),
            noise_sd=noise_sd,
            noise=noise,
            gap=gap,
            tally=tally,
            known=known,
            bands=bands,
            grouped=isinstance(rows, GroupedPasses),
            progress=progress,
            sample=_sample(rows, summary),
        )
    )
    if not isinstance(rows, GroupedPasses):
        return chosen
    # So far they are sums of outputs over the sizes of groups.
    [sums], grouping = sum_grouped(
        rows,
        [prior],
        model=prior if bands is None else bands,
        rule=chosen.rule,
        cells=tally,
    )
    return replace(chosen, sums=sums, grouping=grouping)


def _sample(rows: Passes, summary: Summary) -> Sample | None:
    """Return rows that designs may begin with; none of groups: a sample does not tell sizes."""
    share = summary.count / len(summary.sample)
    if isinstance(rows, GroupedPasses) or share < LEAST_SHARE:
        return None
    return Sample(passes=InputRows(summary.sample), share=share)
