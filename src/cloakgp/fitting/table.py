"""Table: rows with outputs to ask. It is held, read in passes, or only expected."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cloakgp.design import Progress
from cloakgp.design.streaming.binning import Partition
from cloakgp.design.streaming.condensing import CellQuestions
from cloakgp.fitting.bands import Stage, Step
from cloakgp.fitting.refusals import refuse
from cloakgp.fitting.strategies import Budget, Query, query_weights
from cloakgp.models import ExactPrior, NotPositiveDefiniteError, SparsePrior
from cloakgp.models.likelihoods import NUMBERS, Likelihood
from cloakgp.privacy import Answers, OutputBounds
from cloakgp.privacy.questions.base import Question
from cloakgp.privacy.questions.counts import CountQuestion
from cloakgp.privacy.questions.outside import OutsideQuestion
from cloakgp.release import Hyperprior, Measurement, Release, Strategy
from cloakgp.release.posterior.mixture import Inference
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import DEFAULT_GAP

# Whether whoever called drew noise for the whole of which this is a part.
_after_a_draw = ContextVar("_after_a_draw", default=False)
# Of designs of which only matters whether they ask anything, and of how many rows they are first.
ANY_GAP, FEW_ROWS = 1e6, 128
NOTHING_TO_ASK = (
    "no question would tell anything by these assumptions, so nothing was asked, and nothing "
    "spent: the curve is assumed to vary too little (kernel, signal_variance) beside the noise of "
    "this budget and the scatter between people with the same inputs (noise_variance, "
    "overdispersion; of counts, at a rate of mean), or all query points are so many lengthscales "
    "from all rows that these tell nothing about them (are they in the same unit?)"
)


class NothingToAskError(ValueError):
    """By the assumptions of a fit no question would tell anything: nothing was drawn."""


@dataclass(frozen=True, eq=False)
class Model:
    """The assumptions of a fit: all public.

    Attributes
    ----------
    prior : ExactPrior or SparsePrior
        Of the latent functions.
    question : OutputBounds or Classes
        About outputs as they are, with which a fit begins.
    likelihood : Likelihood
        How outputs depend on the latent functions.
    """

    prior: ExactPrior | SparsePrior
    question: Question
    likelihood: Likelihood = NUMBERS


@dataclass(frozen=True, eq=False, kw_only=True)
class DesignSettings:
    """How strategies are designed.

    Attributes
    ----------
    query : Query
        Query points.
    criterion : str
        One of `cloakgp.criteria`, for the first questions; later ones are for "bayes".
    gap : float
        Certified relative gap at which a design stops.
    progress : callable or None
        Called with the gap while a design improves.

    Raises
    ------
    ValueError, TypeError
        If weights are none, or nothing can be called with a gap.
    """

    query: Query
    criterion: str = "bayes"
    gap: float = DEFAULT_GAP
    progress: Progress | None = None

    def __post_init__(self) -> None:
        # Before anything is asked: counts are drawn before the first design.
        query_weights(self.query)
        if not (self.progress is None or callable(self.progress)):
            raise TypeError(f"progress must be callable with a gap, or None, got {self.progress!r}")


@dataclass(frozen=True, eq=False)
class Design:
    """A strategy, and the question that it is about: both public.

    Attributes
    ----------
    strategy : Strategy
    question : Question
    cells : CellQuestions or None
        Of rows that are read in passes, for learning from answers about labels.
    expected : array of shape (N,) or (N, C), or None
        Encoded outputs as the answers so far expect them, of a table that is held.
    decides : bool
        Whether its answers decide how much later ones spend of what is left.
    """

    strategy: Strategy
    question: Question
    cells: CellQuestions | None = None
    expected: Array | None = None
    decides: bool = False


@dataclass(frozen=True, eq=False)
class Strata:
    """A public partition of rows by their inputs.

    Attributes
    ----------
    cells : Partition
    sizes : array of shape (S,)
        How much the rows of each add to a count.
    """

    cells: Partition
    sizes: Array


@dataclass(frozen=True, eq=False)
class Count:
    """A round of counts of one output, and its noisy answers.

    Attributes
    ----------
    output : int
        Which one, from 0.
    question : CountQuestion or OutsideQuestion
        In the units of that output.
    answers : Answers
    strata : Strata or None
        In which rows were counted apart; None if all were together.
    """

    output: int
    question: CountQuestion | OutsideQuestion
    answers: Answers
    strata: Strata | None = None


@contextmanager
def after_a_draw() -> Iterator[None]:
    """Take what asks nothing within a block, before which noise was drawn: that is spent already.

    Examples
    --------
    >>> with after_a_draw():
    ...     pass
    """
    token = _after_a_draw.set(True)
    try:
        yield
    finally:
        _after_a_draw.reset(token)


def refuse_nothing(strategy: Strategy) -> None:
    """Refuse a strategy without a question, before anything is drawn.

    Raises
    ------
    NothingToAskError
    """
    if not (strategy.asks_something or _after_a_draw.get()):
        raise NothingToAskError(NOTHING_TO_ASK)


def few_of(X: Array) -> Array:
    """Return a few rows from all over a table.

    Parameters
    ----------
    X : array of shape (N, D)

    Examples
    --------
    >>> few_of(np.zeros((5_000, 1))).shape
    (128, 1)
    """
    return X[np.linspace(0, len(X) - 1, min(len(X), FEW_ROWS)).astype(np.intp)]


def cells_of_output(cells: Partition, output: int) -> Partition:
    """Return cells of rows as cells of their entries of one output.

    Entries of others belong to some of them, too: who counts leaves these out.

    Parameters
    ----------
    cells : Partition
    output : int
    """
    return Partition(
        centres=np.column_stack([cells.centres, np.full(len(cells.centres), float(output))]),
        units=np.append(cells.units, 1.0),
    )


class Table(ABC):
    """A table whose outputs are asked; each way to have one is a subclass.

    A fit designs, asks and learns step by step (`cloakgp.fitting.fit`), and does not know whether
    rows are held or read in passes. The private outputs are no part of it: they are passed to `ask`
    and `count`, which hand them to `cloakgp.privacy.ask`.

    Attributes
    ----------
    inference : {"posterior", "iterated"}
        How answers about numbers are read, for predictions.
    """

    inference: Inference = "posterior"

    @property
    @abstractmethod
    def rows(self) -> int:
        """N; with several outputs, the number of entries of the rows."""

    @property
    @abstractmethod
    def counted(self) -> int:
        """The sum of the counts of one output."""

    @property
    @abstractmethod
    def most_counted(self) -> int:
        """The largest contribution of one group to the counts of one output."""

    @property
    @abstractmethod
    def grouped(self) -> bool:
        """Whether all rows of one person are protected together."""

    @property
    def by_person(self) -> bool:
        """Whether it is said whose each row is: persons are protected, with one row or many."""
        return self.grouped

    @property
    def added_noise(self) -> float:
        """As of `cloakgp.fitting.strategies.Budget`: the noise of answers over that of a budget."""
        return 1.0

    @property
    def outputs(self) -> int:
        """T, of every row."""
        return 1

    @property
    @abstractmethod
    def input_names(self) -> tuple[str, ...]:
        """Names of the public columns, if they have any."""

    @property
    @abstractmethod
    def output_name(self) -> str:
        """Name of the private column."""

    def check_stages(self, stages: Sequence[Stage], model: Model) -> None:
        """Refuse stages that no fit of such outputs can have.

        Raises
        ------
        ValueError
        """
        if model.question.labels is not None and any(one.width is not None for one in stages):
            refuse("bands of labels")

    def goes_by_spread(self, model: Model) -> bool:
        """Return whether later stages may depend on how noisy outputs turn out to be.

        Parameters
        ----------
        model : Model
        """
        del model
        return False

    def needs_stages(
        self,
        model: Model,
        budget: Budget,
        settings: DesignSettings,
        *,
        known: Release | None = None,
    ) -> bool:
        """Return whether several stages are worth their readings of the table.

        Parameters
        ----------
        model : Model
        budget : Budget
            Of a single stage in their place.
        settings : DesignSettings
        known : Release, optional
            Earlier answers, and what was learned from them.
        """
        del model, budget, settings, known
        return True

    def calibrates(self, model: Model, *, average: bool) -> bool:
        """Return whether outputs can be counted in cells of their predicted distributions.

        Parameters
        ----------
        model : Model
        average : bool
            Whether predictions will average over hyperparameters.
        """
        del average
        return model.likelihood.linear

    @abstractmethod
    def design(
        self, step: Step, model: Model, settings: DesignSettings, *, known: Release | None
    ) -> Design:
        """Choose the questions of a step, given earlier answers. Sees no output.

        Parameters
        ----------
        step : Step
        model : Model
        settings : DesignSettings
        known : Release or None
            None before anything was asked.
        """

    def check_asks(self, strategy: Strategy) -> None:
        """Refuse first questions that are none: what would follow them tells nothing either.

        Parameters
        ----------
        strategy : Strategy
            Chosen before any answer was read.

        Raises
        ------
        ValueError
        """
        refuse_nothing(strategy)

    @abstractmethod
    def few_rows(self) -> Table:
        """Return a few of its rows, held and each on its own, for `check_first`."""

    def check_first(self, step: Step, model: Model, settings: DesignSettings) -> None:
        """Refuse first questions that would be none before anything else is asked of a table.

        Where a few rows tell something all do, so that a design for these is enough.

        Parameters
        ----------
        step, model, settings
            As for `design`: with the declared bounds.

        Raises
        ------
        NothingToAskError
        """
        rough = replace(settings, gap=ANY_GAP, progress=None)
        if not self.few_rows().design(step, model, rough, known=None).strategy.asks_something:
            self.check_asks(self.design(step, model, rough, known=None).strategy)

    def resolve(
        self, release: Release, step: Step | None, model: Model, settings: DesignSettings
    ) -> Release:
        """Return a release as finely as a later step is to ask, by what was learned.

        Parameters
        ----------
        release : Release
        step : Step or None
            The next that asks where outputs are; None after the last of them.
        model : Model
        settings : DesignSettings
        """
        del step, model, settings
        return release

    @abstractmethod
    def expected_error(
        self, step: Step, model: Model, settings: DesignSettings, *, known: Release
    ) -> float:
        """Return the root mean squared error of predictions that is expected after a step.

        By it noises are compared, from public inputs and earlier answers alone.
        """

    @abstractmethod
    def ask(
        self,
        design: Design,
        y: Any,
        budget: Budget,
        *,
        after_answers: bool,
        insecure_seed: int | None,
    ) -> Measurement:
        """Put a design to the outputs, under (ε, δ)-differential privacy.

        Parameters
        ----------
        design : Design
        y : array-like of shape (N,), or Rows
            Private outputs, or the rows from which they are read.
        budget : Budget
        after_answers : bool
            Whether answers that were published before decided on the design.
        insecure_seed : int or None
            Makes the noise reproducible and the measurement **not private**.
        """

    @abstractmethod
    def count(
        self,
        question: CountQuestion | OutsideQuestion,
        y: Any,
        budget: Budget,
        *,
        output: int,
        insecure_seed: int | None,
        strata: Strata | None = None,
    ) -> Answers:
        """Count an output of every row, by strata if given, under (ε, δ)-differential privacy."""

    @abstractmethod
    def strata(self, count: int, *, output: int = 0) -> Strata:
        """Return up to a number of strata of similar inputs; public.

        Parameters
        ----------
        count : int
        output : int
            Of several, the one whose entries are to be parted.
        """

    def within(self, found: Sequence[OutputBounds]) -> Table:
        """Return the table with its outputs in units of the intervals that were found."""
        del found
        return self

    def keep_out(self, share: float, *, random_state: int) -> tuple[Table, Table]:
        """Return the table without a share of its rows, and these rows; drawn from public numbers.

        Parameters
        ----------
        share : float
        random_state : int

        Raises
        ------
        ValueError, TypeError
            If rows cannot be kept out of such a table.
        """
        del share, random_state
        refuse("margins of other tables")

    def design_margins(self, model: Model, settings: DesignSettings, *, known: Release) -> Design:
        """Return the question how far predictions of these rows are off, which were kept out.

        Parameters
        ----------
        model : Model
            Within the declared bounds.
        settings : DesignSettings
        known : Release
        """
        del model, settings, known
        refuse("margins of other tables")

    @abstractmethod
    def measure_counts(
        self, counts: Sequence[Count], *, first: Strategy
    ) -> tuple[Measurement, ...]:
        """Return counts as measurements of a release.

        Parameters
        ----------
        counts : sequence of Count
        first : Strategy
            The first about the same rows.
        """

    def learn(
        self,
        release: Release,
        asked: Sequence[tuple[Design, Measurement]],
        *,
        hyperprior: Hyperprior | None,
        average: bool,
    ) -> Release:
        """Return a release with hyperparameters fitted to its answers, at no cost in privacy.

        Parameters
        ----------
        release : Release
        asked : sequence of pairs of Design and Measurement
            In order; counts are not among them.
        hyperprior : Hyperprior or None
            What is learned; None to keep the prior as declared.
        average : bool
        """
        del asked
        return release if hyperprior is None else release.learn(hyperprior, average=average)

    def finish(self, release: Release) -> Release:
        """Return the release when all was asked."""
        return replace(release, visits=1)


def design_given(
    table: Table, step: Step, model: Model, settings: DesignSettings, *, known: Release
) -> tuple[Release, Design]:
    """Return the questions of a later step, and the release by which they were chosen.

    Parameters
    ----------
    table, step, model, settings
        As for `Table.design`.
    known : Release
    """
    try:
        return known, table.design(step, model, settings, known=known)
    except (NotPositiveDefiniteError, np.linalg.LinAlgError):
        # Hyperparameters that were learned may make no covariance of these rows; those that were
        # declared do, or the first step would have been refused.
        declared = known.without_learning()
        return declared, table.design(step, model, settings, known=declared)
