"""Criterion: its name, its needs, and its choice of questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from cloakgp.design import Certificate, Progress
    from cloakgp.design.groups import Groups
    from cloakgp.design.streaming.grouping import Grouping
    from cloakgp.design.streaming.rules import Rule
    from cloakgp.design.streaming.sampling import Sample
    from cloakgp.design.streaming.sums import StrategySums
    from cloakgp.models import ExactPrior, SparsePrior
    from cloakgp.models.likelihoods import LatentPrior, Likelihood, Linearisation
    from cloakgp.models.summary import Summary
    from cloakgp.utils.arrays import Array
    from cloakgp.utils.names import Ball, LinkName
    from cloakgp.utils.passes import Passes

    Prior = ExactPrior | SparsePrior
# What questions are chosen for: a table of numbers or of classes, a table that is read in passes,
# the comparison of candidate priors at held-out rows, and stages given earlier answers.
Use = Literal["numbers", "classes", "many rows", "held-out rows", "stages"]


class Known(Protocol):
    """The posterior given earlier answers, in the form that a criterion needs."""

    def row_root(self, X: Array, *, table: int) -> Array:
        """Return a root of the explained covariance of the outputs of rows."""

    def query_root(self, X: Array) -> Array:
        """Return a root of the explained covariance of the latent function at points."""

    def precision_of(self, table: int) -> float:
        """Return how precisely any output of a table is known already."""

    def inducing_root(self) -> Array:
        """Return a root of the posterior covariance of the inducing variables of a sparse prior."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A table to ask, and query points: public arrays, and earlier answers.

    Attributes
    ----------
    prior : ExactPrior or SparsePrior
    X : array of shape (N, D)
    X_query : array of shape (P, D)
    weights : array of shape (P,) or None
        Importance of the query points; all alike if None.
    noise_sd : float
        Of an answer to questions whose longest column is 1, in output units.
    gap : float
        At which to stop.
    known : Known or None
    table : int
        The number of the table in what is known.
    groups : array of shape (N,) or None
    progress : callable or None
    account : Linearisation or None
        Of what is asked by outputs given what is known; None where outputs themselves are asked.
    ball : {"l1", "l2"}
        In whose norm columns are at most 1 long: that in which the noise counts them.
    """

    prior: Prior
    X: Array
    X_query: Array
    weights: Array | None
    noise_sd: float
    gap: float
    known: Known | None = None
    table: int = 0
    groups: Groups | None = None
    progress: Progress | None = None
    account: Linearisation | None = None
    ball: Ball = "l2"


@dataclass(frozen=True, eq=False)
class Chosen:
    """Questions for a table.

    Attributes
    ----------
    strategy : array of shape (k, N)
    reconstruction : array of shape (P, k) or None
        From answers to raw predictions at the query points, where these follow.
    certificate : Certificate
    representers : array of shape (N, k) or None
        From answers to raw predictions anywhere, where these follow.
    """

    strategy: Array
    reconstruction: Array | None
    certificate: Certificate
    representers: Array | None = None


class InBands(Protocol):
    """The predictive distribution, by a sparse model, of the places of outputs in bands."""

    @property
    def root(self) -> Array:
        """G, with G Gᵀ the covariance of the inducing variables given earlier answers."""

    def features_and_noise(self, X: Array) -> tuple[Array, Array]:
        """Return features over Gᵀu and noise variances of rows, shapes (M, n) and (n,)."""


@dataclass(frozen=True, eq=False)
class StreamedProblem:
    """A table to ask that is read in passes.

    Attributes
    ----------
    rows : Passes
    summary : Summary
    prior : SparsePrior
    X_query : array of shape (P, D)
    weights : array of shape (P,)
    noise_sd, gap : float
        As for `Problem`.
    known : Known or None
        Of other rows.
    bands : InBands or None
        Given what is known, where outputs are clipped to bands.
    grouped : bool
        Whether inputs end with the sizes of groups that are protected together; see
        `cloakgp.design.streaming.grouping`. What is chosen is then a rule over the sizes.
    progress : callable or None
    ball : {"l1", "l2"}
        In whose norm columns are at most 1 long: that in which the noise counts them.
    sample : Sample or None
        Some of the rows, where the first steps of a design may go by these.
    """

    rows: Passes
    summary: Summary
    prior: SparsePrior
    X_query: Array
    weights: Array
    noise_sd: float
    gap: float
    known: Known | None = None
    bands: InBands | None = None
    grouped: bool = False
    progress: Progress | None = None
    ball: Ball = "l2"
    sample: Sample | None = None


@dataclass(frozen=True, eq=False)
class ChosenRule:
    """Questions for a table that is read in passes, as a rule over rows.

    Attributes
    ----------
    rule : Rule
    sums : StrategySums
    certificate : Certificate
    reconstruction : array of shape (P, k) or None
        As for `Chosen`.
    grouping : Grouping or None
        Of rows that are protected together.
    """

    rule: Rule
    sums: StrategySums
    certificate: Certificate
    reconstruction: Array | None
    grouping: Grouping | None = None


@dataclass(frozen=True)
class Criterion:
    """The aim of the questions.

    Attributes
    ----------
    name : str
        As parameters, options, certificates and files spell it.
    option : str
        A few words, for a list of what there is to choose from.
    aim : str
        A sentence about questions that were chosen so. It may speak of ``{prior}``, under which
        they were, and of ``{predictions}``, whose noise matters.
    certified : str
        A sentence about the certificate's ``{gap}``; empty if nothing is certified.
    uses : frozenset of str
        What it can be chosen for; see `Use`.
    weighted : bool
        Whether query points may matter more or less.
    raw : bool
        Whether raw predictions follow from the answers.
    link : str or None
        The only link that it knows, for classes; None for any.
    iterates : bool
        Whether it asks step by step, at the rows, each step by a criterion of its own.
    at_rows : bool
        Whether it may ask as many questions as there are rows, whatever the query points.
    balls : frozenset of {"l1", "l2"}
        In which it chooses questions for a table.
    balls_of_rules : frozenset of {"l1", "l2"}
        In which it finds rules for a table that is read in passes.
    """

    name: str
    option: str
    aim: str
    certified: str = ""
    uses: frozenset[Use] = frozenset()
    weighted: bool = False
    raw: bool = True
    link: LinkName | None = None
    iterates: bool = False
    at_rows: bool = False
    balls: frozenset[Ball] = frozenset({"l1", "l2"})
    balls_of_rules: frozenset[Ball] = frozenset({"l1", "l2"})

    def choose(self, problem: Problem) -> Chosen:
        """Choose questions for a table.

        Raises
        ------
        NotImplementedError
            If that is no use of this criterion.
        """
        raise NotImplementedError(f"{self.name} chooses no questions for a table")

    def choose_rule(self, problem: StreamedProblem) -> ChosenRule:
        """Choose questions for a table that is read in passes.

        Raises
        ------
        NotImplementedError
            If that is no use of this criterion.
        """
        raise NotImplementedError(f"{self.name} chooses no questions for a table read in passes")

    def prior_over_outputs(
        self, prior: LatentPrior, likelihood: Likelihood, X: Array
    ) -> LatentPrior:
        """Return the Gaussian prior over encoded outputs under which questions are chosen.

        Parameters
        ----------
        prior : ExactPrior or SparsePrior
            Of the latent functions.
        likelihood : Likelihood
        X : array of shape (N, D)
        """
        return likelihood.cloaking_prior(prior, X)

    def describe(
        self, *, gap: str, predictions: str = "raw predictions", prior: str = "the prior"
    ) -> str:
        """State the aim of the questions, and their distance to the best ones.

        Parameters
        ----------
        gap : str
            The certificate's, as text.
        predictions : str
            Whose noise matters.
        prior : str
            Under which they were chosen.
        """
        sentence = f"{self.aim} {self.certified}".strip()
        return sentence.format(gap=gap, predictions=predictions, prior=prior)
