"""Choosing strategies: designs on public inputs, for query points and a budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cloakgp.criteria import Problem, StreamedProblem, Use, criterion_named
from cloakgp.criteria.base import ChosenRule
from cloakgp.data import InputRows
from cloakgp.design import Progress
from cloakgp.design.streaming.grouping import GroupedPasses, sum_grouped
from cloakgp.design.streaming.row_model import RowModel
from cloakgp.design.streaming.rules import Columns, Rule
from cloakgp.design.streaming.sampling import LEAST_SHARE, Sample
from cloakgp.design.streaming.together import sum_columns
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.likelihoods import NUMBERS, Likelihood, Linearisation
from cloakgp.models.summary import Summary
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.budgets import Pair
from cloakgp.privacy.groups import Groups
from cloakgp.privacy.noise import NOISES, Noise
from cloakgp.privacy.questions.bands import UNIT_INTERVAL, UnitQuestion
from cloakgp.privacy.questions.base import Question
from cloakgp.release import DenseStrategy
from cloakgp.release.bands import RowBands
from cloakgp.release.posterior.dense import Posterior
from cloakgp.utils.arrays import Array, as_matrix
from cloakgp.utils.names import DEFAULT_GAP, NoiseName
from cloakgp.utils.passes import Passes

# With more rows than this, and inducing inputs, designs go through the rows in passes.
MANY_ROWS = 5_000

# Of query points: their products with squares of covariances must be numbers of float64, too.
SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-50, 1e50


@dataclass(frozen=True)
class Budget:
    """The budget of one measurement, and its noise.

    Attributes
    ----------
    epsilon, delta : float
        δ may be 0 with Laplace noise.
    noise : {"gaussian", "laplace"}
    added : float
        The sd of all noise that answers will have over that which the budget needs: more than 1
        where several custodians add shares, or a person may be at several of them.
    """

    epsilon: float
    delta: float
    noise: NoiseName = "gaussian"
    added: float = field(default=1.0, repr=False)

    @property
    def law(self) -> Noise:
        """The law of that noise."""
        return NOISES[self.noise]

    @property
    def pair(self) -> Pair:
        """(ε, δ)."""
        return self.epsilon, self.delta

    def of(self, pair: Pair) -> Budget:
        """Return another (ε, δ) for the same noise."""
        epsilon, delta = pair
        return replace(self, epsilon=epsilon, delta=delta)

    def unit_sd(self) -> float:
        """Return the sd of the noise that answers of sensitivity 1 will have."""
        return self.law.unit_sd(*self.pair) * self.added


@dataclass(frozen=True, eq=False)
class Query:
    """Query points, and their weights.

    Attributes
    ----------
    X : array of shape (P, D)
    weights : array of shape (P,) or None
    """

    X: Array
    weights: Array | None = None


def scale_noise(budget: Budget, *, factor: float) -> Budget:
    """Return the budget for a fraction of the noise.

    Parameters
    ----------
    budget : Budget
    factor : float

    Examples
    --------
    >>> scale_noise(Budget(1.0, 0.0, noise="laplace"), factor=5.0)
    Budget(epsilon=5.0, delta=0.0, noise='laplace')
    """
    return budget.of(budget.law.scale_budget(*budget.pair, factor=factor))


def split_budget(budget: Budget, *, shares: Sequence[float]) -> tuple[Budget, ...]:
    """Split a budget so that its parts compose to it, by the law of its noise.

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
    return tuple(map(budget.of, budget.law.split(*budget.pair, shares=shares)))


def unit_noise_sd(question: Question, budget: Budget) -> float:
    """Return the noise sd of an answer if the longest column is 1.

    About outputs as the likelihood sees them: numbers in output units, labels as ±1.

    Parameters
    ----------
    question : OutputBounds or Classes
    budget : Budget

    Examples
    --------
    >>> round(unit_noise_sd(OutputBounds(0.0, 2.0), Budget(epsilon=1.0, delta=1e-3)), 2)
    5.15
    """
    if isinstance(question, OutputBounds | UnitQuestion):
        width = question.width if isinstance(question, OutputBounds) else UNIT_INTERVAL.width
        return width * budget.unit_sd()
    return question.output_noise_sd(NOISES[budget.noise].distance(question)) * budget.unit_sd()


def choose_strategy(
    X: Array,
    *,
    prior: ExactPrior | SparsePrior,
    likelihood: Likelihood = NUMBERS,
    question: Question,
    query: Query,
    budget: Budget,
    criterion: str = "bayes",
    gap: float = DEFAULT_GAP,
    known: Posterior | None = None,
    table: int = 0,
    groups: Groups | None = None,
    account: Linearisation | None = None,
    progress: Progress | None = None,
) -> DenseStrategy:
    """Design the questions to put to a table. Sees public arrays and earlier answers only.

    Questions about classes are chosen under the Gaussian prior over labels that the criterion goes
    by.

    Parameters
    ----------
    X : array of shape (N, D)
        Public inputs.
    prior : ExactPrior or SparsePrior
    likelihood : Likelihood
    question : OutputBounds or Classes
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
    use: Use = "numbers" if question.labels is None else "classes"
    by = criterion_named(criterion, use=use)
    linear = by.prior_over_outputs(prior, likelihood, X)
    noise_sd = unit_noise_sd(question, budget)
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
            ball=budget.law.ball,
        )
    )
    return DenseStrategy(
        X=X,
        # Row by row, as files hold them: in another order, sums would differ in their last bits.
        matrix=np.ascontiguousarray(chosen.strategy),
        X_query=query.X,
        reconstruction=chosen.reconstruction,
        certificate=chosen.certificate,
        table=table,
        query_weights=query.weights,
        representers=None
        if chosen.representers is None
        else np.ascontiguousarray(chosen.representers),
        row_groups=groups,
    )


def query_weights(query: Query) -> Array:
    """Return the weights of query points, shape (P,): equal by default.

    Raises
    ------
    ValueError
        Unless weights are positive and finite, one for each point, and neither too small nor too
        large.

    Examples
    --------
    >>> query_weights(Query(np.zeros((2, 1))))
    array([1., 1.])
    """
    weights = np.ones(len(query.X)) if query.weights is None else query.weights
    if weights.shape != (len(query.X),) or not (np.isfinite(weights) & (weights > 0)).all():
        raise ValueError("query weights must be positive and finite, one per query point")
    if not ((weights >= SMALLEST_WEIGHT) & (weights <= LARGEST_WEIGHT)).all():
        raise ValueError(
            f"query weights must lie between {SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g}: only "
            "their ratios count, so scale them"
        )
    return weights


def query_shares(query: Query) -> Array:
    """Return how important each query point is, adding up to 1."""
    weights = query_weights(query)
    return np.asarray(weights / weights.sum())


def design_rows(
    rows: Passes,
    summary: Summary,
    *,
    prior: SparsePrior,
    query: Query,
    noise_sd: float,
    noise: NoiseName = "gaussian",
    criterion: str = "bayes",
    gap: float = DEFAULT_GAP,
    known: Posterior | None = None,
    bands: RowBands | None = None,
    together: int = 1,
    progress: Progress | None = None,
) -> ChosenRule:
    """Design the columns of all rows of a table, in a few passes over public inputs.

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
    known : Posterior, optional
        Earlier answers, to ask for what they leave open; for "bayes". The rows' own noise is taken
        to be independent of them, as that of other rows is.
    bands : RowBands, optional
        Given what is known, where outputs are clipped to bands. The noise is then in units of
        these.
    together : int
        T, how many entries next to each other are those of one row, and protected together. The
        noise counts what all of them move.
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
            ball=NOISES[noise].ball,
            gap=gap,
            known=known,
            bands=bands,
            grouped=isinstance(rows, GroupedPasses),
            progress=progress,
            sample=_sample(rows, summary),
        )
    )
    model = prior if bands is None else bands
    ball = NOISES[noise].ball
    if not isinstance(rows, GroupedPasses):
        if together == 1:
            return chosen
        asked = sum_columns(
            rows,
            _Asked(model=model, rule=chosen.rule),
            together=together,
            ball=ball,
            what="measuring questions",
        )
        return replace(chosen, sums=replace(chosen.sums, longest=asked.longest))
    # So far they are sums of outputs over the sizes of groups.
    [sums], grouping = sum_grouped(
        rows,
        [prior],
        model=model,
        rule=chosen.rule,
        ball=ball,
    )
    return replace(chosen, sums=sums, grouping=grouping)


@dataclass(frozen=True, eq=False)
class _Asked:
    """The columns of rows under a rule, by their inputs."""

    model: RowModel
    rule: Rule

    def __call__(self, X: Array) -> Columns:
        return self.rule.summable_columns(*self.model.features_and_noise(X))


def _sample(rows: Passes, summary: Summary) -> Sample | None:
    """Return a sample of rows for the start of designs; none with groups, whose sizes it lacks."""
    share = summary.count / len(summary.sample)
    if isinstance(rows, GroupedPasses) or share < LEAST_SHARE:
        return None
    return Sample(passes=InputRows(summary.sample), share=share)
