"""Streamed strategies: rules over rows that are not kept, and sums for predictions."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from scipy import sparse

from cloakgp.design.streaming.binning import Partition
from cloakgp.design.streaming.grouping import (
    GroupedPasses,
    Grouping,
    grouped_columns,
)
from cloakgp.design.streaming.row_model import RowModel
from cloakgp.design.streaming.rules import Columns, EqualRule, PartitionRule, Rule
from cloakgp.design.streaming.together import sum_columns
from cloakgp.models import SparsePrior
from cloakgp.models.clipping import OFFSET_SD
from cloakgp.models.likelihoods import NUMBERS, Likelihood
from cloakgp.models.scatter import same_scatter
from cloakgp.privacy.noise import GAUSSIAN, Noise
from cloakgp.privacy.questions.base import Question
from cloakgp.release.bands import RowQuestion
from cloakgp.release.strategy import MISFIT, LatentPrior, Strategy
from cloakgp.release.sums import ChannelSums, PriorSums
from cloakgp.release.tables import SummedTable
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import Ball
from cloakgp.utils.passes import Passes

# What recomputed columns may be longer by: float64 in another order of summation.
LENGTH_TOLERANCE = 1e-9
# What sums of recomputed columns may be off by, as a share of all their lengths.
SUM_TOLERANCE = 1e-9
NOTHING_SHARED = (
    "the same rows were asked different questions, and what these have in common cannot be told "
    "without the rows: combine with same_rows=False if rows differ"
)


@dataclass(frozen=True)
class EqualShares:
    """The weight of rows in counts: one each, or with groups a share of their group's one.

    By strata, each row in the count of its own.

    Attributes
    ----------
    grouped : bool
        Whether inputs end with the sizes of groups.
    output : int or None
        Which output of several is counted; the input before the sizes says which an entry is of.
    strata : Partition or None
        In which rows are counted apart.

    Examples
    --------
    >>> EqualShares(grouped=True)(np.array([[7.0, 1.0], [8.0, 2.0]]))
    array([[1. , 0.5]])
    >>> EqualShares(output=1)(np.array([[7.0, 0.0], [7.0, 1.0]]))
    array([[0., 1.]])
    """

    grouped: bool = False
    output: int | None = None
    strata: Partition | None = None

    def __call__(self, X: Array) -> Array:
        """Return the columns of rows, shape (1, n), or one row for each stratum."""
        weights = np.ones((1, len(X)))
        if self.strata is not None:
            weights = self.strata.membership(X).toarray()
        if self.output is not None:
            weights[:, X[:, -2 if self.grouped else -1] != self.output] = 0.0
        return weights / X[:, -1] if self.grouped else weights


@dataclass(frozen=True, eq=False)
class RuleColumns:
    """The columns of rows from their inputs, for the private pass.

    Attributes
    ----------
    model : RowModel
        Of what is asked about, outputs or where they lie in bands: whose features and noise
        variances the rule goes by.
    rule : Rule
    grouped : bool
        Whether inputs end with the sizes of groups, which it goes by, too.
    output : int or None
        Of several, the one whose entries alone are asked, all alike.
    strata : Partition or None
        In which rows are counted apart, all alike.
    """

    model: RowModel
    rule: Rule
    grouped: bool = False
    output: int | None = None
    strata: Partition | None = None

    def __call__(self, X: Array) -> Array:
        """Return the columns of rows, shape (k, n)."""
        columns = self.summable_columns(X)
        dense: Array = columns.toarray() if isinstance(columns, sparse.csr_array) else columns
        return dense

    def summable_columns(self, X: Array) -> Columns:
        """Return the same in the form in which sums over rows cost least."""
        if self.output is not None or self.strata is not None:
            shares = EqualShares(grouped=self.grouped, output=self.output, strata=self.strata)
            return shares(X)
        if self.grouped:
            return grouped_columns(X, model=self.model, rule=self.rule)
        # The design may have found what to ask of these very rows.
        found = self.rule.remembered.of(X)
        if found is not None:
            return found
        return self.rule.summable_columns(*self.model.features_and_noise(X))

    def forget(self) -> None:
        """Free the memory of what was found of rows."""
        self.rule.remembered.forget()
        if isinstance(self.model, RowQuestion):
            self.model.remembered.forget()


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamedStrategy(Strategy):
    """A strategy kept as a rule, with its sums over rows; no row is kept.

    Attributes
    ----------
    prior : SparsePrior
        Under which questions were chosen.
    rule : Rule
        Gives the column of a row from its features under that prior, or in its band.
    sums : tuple of PriorSums
        Under every prior that was learned when the rows were there, or else the declared one.
    row_totals : array of shape (k,)
        R 1.
    rows : int
        N, how many rows were asked.
    chunk_rows : int
        The most rows that were seen together.
    longest : float
        The norm of the longest column, over every row.
    ball : {"l1", "l2"}
        In whose norm that is.
    input_ranges : array of shape (2, D)
        The least and the greatest of every input.
    earlier : tuple of str
        The digests of the other questions that the same rows had been asked before, by which these
        are known again; sums over what they share with these questions are in `sums`.
    grouping : Grouping or None
        Of rows that are protected together. The rule then goes by the sizes of groups, too, and
        ``longest`` is the most that the lengths of one group's columns add up to.
    together : int
        T, how many entries next to each other are those of one row, and protected together. Rows
        above are entries then, and ``longest`` says how far all of a row's move answers.
    output : int or None
        Of several, the one whose entries alone are asked.
    strata : Partition or None
        In which rows are counted apart.
    """

    prior: SparsePrior
    rule: Rule
    sums: tuple[PriorSums, ...]
    row_totals: Array
    rows: int
    chunk_rows: int
    longest: float
    input_ranges: Array
    earlier: tuple[str, ...] = ()
    grouping: Grouping | None = None
    ball: Ball = "l2"
    together: int = 1
    output: int | None = None
    strata: Partition | None = None

    def columns(self, question: Question) -> RuleColumns:
        """Return the columns of rows for a question, by their inputs."""
        model = question if isinstance(question, RowQuestion) else self.prior
        return RuleColumns(
            model=model,
            rule=self.rule,
            grouped=self.grouped,
            output=self.output,
            strata=self.strata,
        )

    @property
    def n_answers(self) -> int:
        """k, the number of questions."""
        return self.rule.answers

    @property
    def n_rows(self) -> int:
        """N, the number of rows of the table."""
        return self.rows

    @property
    def in_parts(self) -> bool:
        """Whether each row is in one answer alone."""
        return isinstance(self.rule, PartitionRule) and not self.grouped

    @property
    def ranges(self) -> Array:
        """The least and the greatest of every input, shape (2, D)."""
        return self.input_ranges

    @property
    def totals(self) -> Array:
        """R 1, shape (k,)."""
        return self.row_totals

    def trend_answers(self, prior: LatentPrior) -> Array:
        """Return R t, shape (k,)."""
        [mine] = self.sums_under(prior, NUMBERS).channels
        assert isinstance(prior, SparsePrior)
        answers: Array = mine.features @ prior.inducing_trend
        return answers

    def longest_column(self, noise: Noise = GAUSSIAN, *, channels: int = 1) -> float:
        """Return the norm of the longest column, over every row; or of a person's together.

        Of a person who may have rows at several custodians, at all of these.
        """
        # Norms of a group are added up, which holds for any number of channels.
        del channels
        if noise.ball != self.ball:
            raise ValueError("its noise is damaged")
        return self.longest if self.grouping is None else self.longest * self.grouping.places

    @property
    def grouped(self) -> bool:
        """Whether all rows of one group are protected together."""
        return self.grouping is not None

    @property
    def asks_something(self) -> bool:
        """Whether any question depends on any output."""
        return self.n_answers > 0 and self.longest > 0

    def merge(
        self, others: Sequence[Strategy], *, noise_sds: Sequence[float], prior: LatentPrior
    ) -> SummedTable:
        """Return the sums over rows, in units of the noise."""
        asked = [one for one in (self, *others) if isinstance(one, StreamedStrategy)]
        if len(asked) < len(noise_sds):
            raise ValueError(NOTHING_SHARED)
        scales = np.concatenate(
            [np.full(one.n_answers, 1.0 / sd) for one, sd in zip(asked, noise_sds, strict=True)]
        )
        features = [one.sums_under(prior, NUMBERS).channels[0].features for one in asked]
        noise = [[one._shared_noise(other, prior) for other in asked] for one in asked]
        skew = np.concatenate([one._skew(prior) for one in asked]) * scales
        return SummedTable(
            number=self.table,
            features=np.vstack(features) * scales[:, None],
            noise=np.block(noise) * np.outer(scales, scales) + OFFSET_SD**2 * np.outer(skew, skew),
        )

    def _skew(self, prior: LatentPrior) -> Array:
        """Return R o, shape (k,)."""
        [mine] = self.sums_under(prior, NUMBERS).channels
        return np.zeros(self.n_answers) if mine.skew is None else mine.skew

    def expected(self, prior: LatentPrior) -> Array | None:
        """Return the expected answers in bands at the prior mean; None for outputs themselves.

        Parameters
        ----------
        prior : SparsePrior

        Returns
        -------
        array of shape (k,) or None
        """
        [mine] = self.sums_under(prior, NUMBERS).channels
        return mine.offset

    def _shared_noise(self, other: StreamedStrategy, prior: LatentPrior) -> Array:
        """Return R Λ R'ᵀ with another strategy about the same rows, shape (k, k')."""
        [mine] = self.sums_under(prior, NUMBERS).channels
        if self.same_questions(other):
            return mine.noise
        [theirs] = other.sums_under(prior, NUMBERS).channels
        for digest, shared in zip(self.earlier, mine.shared, strict=True):
            if digest == other.digest:
                return shared
        for digest, shared in zip(other.earlier, theirs.shared, strict=True):
            if digest == self.digest:
                return shared.T
        raise ValueError(NOTHING_SHARED)

    def same_rows(self, other: Strategy) -> bool:
        """Return whether as many rows, with inputs of the same ranges, were asked."""
        return (
            isinstance(other, StreamedStrategy)
            and self.rows == other.rows
            and np.array_equal(self.input_ranges, other.input_ranges)
        )

    def same_questions(self, other: Strategy) -> bool:
        """Return whether another strategy has the same rule over rows of the same sums."""
        return (
            isinstance(other, StreamedStrategy)
            and self.digest == other.digest
            and self.output == other.output
            and _same_cells(self.strata, other.strata)
        )

    @cached_property
    def digest(self) -> str:
        """By which questions are known again: SHA-256 of their rule and of R 1.

        Sums alone do not tell: where all rows are asked alike, those of every stage are N.
        """
        found = hashlib.sha256(type(self.rule).__name__.encode())
        found.update(b"in bands" if self.in_bands else b"of outputs")
        for each in (*(getattr(self.rule, one.name) for one in fields(self.rule)), self.row_totals):
            found.update(repr(each.shape).encode())
            found.update(np.ascontiguousarray(each, dtype="<f8").tobytes())
        return found.hexdigest()

    def verify(self, passes: Passes, *, question: Question) -> float:
        """Compute the columns of all rows anew, from the public inputs, and check them."""
        asked: Passes = passes
        if self.grouping is not None:
            asked = GroupedPasses.of(passes, together=self.together)
        columns = self.columns(question)
        # What the design found may be remembered: it is computed anew.
        columns.forget()
        found = sum_columns(
            asked,
            columns.summable_columns,
            together=self.together,
            ball=self.ball,
            grouped=self.grouped,
            what="verifying",
        )
        if found.count != self.rows:
            raise ValueError(f"the release is about {self.rows} rows, not {found.count}")
        if not found.furthest <= self.longest * (1 + LENGTH_TOLERANCE):
            raise ValueError(
                f"the longest column is {found.furthest:.12g}, and the guarantee allows "
                f"{self.longest:.12g}"
            )
        differences = np.abs(found.totals - self.row_totals)
        # Written so that NaN fails.
        if not (differences <= SUM_TOLERANCE * self.rows * self.longest).all():
            raise ValueError("the release is about other rows: these add up to something else")
        return found.furthest

    def validate(self) -> None:
        """Refuse sums that do not fit each other, or that are not zero without questions."""
        if not self.sums:
            raise ValueError("its priors do not fit its sums")
        answers, inducing = self.n_answers, len(self.prior.inducing)
        fit = (
            self.row_totals.shape == (answers,)
            and self.rule.matrix.shape == (answers, inducing)
            and all(one.prior.inducing.shape[1:] == (self.n_inputs,) for one in self.sums)
            and all(len(one.channels) == one.likelihood.channels for one in self.sums)
            and all(
                each.features.shape == (answers, len(one.prior.inducing))
                for one in self.sums
                for each in one.channels
            )
            and all(each.noise.shape == (answers, answers) for each in self._channels())
            and all(
                each is None or each.shape == (answers,)
                for sums in self._channels()
                for each in (sums.offset, sums.skew)
            )
            and all(len(each.shared) == len(self.earlier) for each in self._channels())
            and all(
                one.ndim == 2 and len(one) == answers
                for each in self._channels()
                for one in each.shared
            )
        )
        if not fit:
            raise ValueError(MISFIT)
        super().validate()
        # Written so that NaN fails.
        if not (1 <= self.chunk_rows <= self.rows and 0 <= self.longest < np.inf):
            raise ValueError("its rows are damaged")
        self._check_entries()
        said = [self.row_totals]
        for each in self._channels():
            said += [each.features, each.noise, *each.shared]
        if not self.asks_something and any(array.any() for array in said):
            raise ValueError("it has answers to questions of length 0")

    def _check_entries(self) -> None:
        """Refuse entries that are not all of every row, or of an output that there is not."""
        whole = self.together >= 1 and self.rows % self.together == 0
        which = self.output is None or (
            0 <= self.output < self.together and isinstance(self.rule, EqualRule)
        )
        counted = self.strata is None or (
            isinstance(self.rule, EqualRule) and len(self.strata.centres) == self.n_answers
        )
        if not (whole and which and counted):
            raise ValueError("its rows are damaged")

    @property
    def in_bands(self) -> bool:
        """Whether its sums are about where outputs lie in bands."""
        return all(one.likelihood.linear for one in self.sums) and all(
            each.offset is not None for each in self._channels()
        )

    def _channels(self) -> list[ChannelSums]:
        return [each for one in self.sums for each in one.channels]

    def sums_under(self, prior: LatentPrior, likelihood: Likelihood) -> PriorSums:
        """Return the sums under a prior and a likelihood that they were made for.

        Parameters
        ----------
        prior : ExactPrior or SparsePrior
        likelihood : Likelihood

        Raises
        ------
        ValueError
            If they were not: that takes a pass over the rows.
        """
        for one in self.sums:
            # Where outputs lie in bands depends on their means, too.
            in_bands = likelihood.linear and one.channels[0].offset is not None
            same_mean = one.prior.mean == prior.mean and one.prior.trend == prior.trend
            alike = not in_bands or same_mean
            if alike and one.likelihood == likelihood and same_covariance(one.prior, prior):
                return one
        raise ValueError(
            "questions about many rows are known under the priors of their fit alone: another "
            "takes the rows again (fit_rows)"
        )


def _same_cells(one: Partition | None, other: Partition | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one.centres, other.centres) and np.array_equal(one.units, other.units)


def same_covariance(one: SparsePrior, other: LatentPrior) -> bool:
    """Return whether two priors differ in their means at most.

    Parameters
    ----------
    one : SparsePrior
    other : ExactPrior or SparsePrior
    """
    return one is other or (
        isinstance(other, SparsePrior)
        and one.kernel == other.kernel
        and one.noise_variance == other.noise_variance
        and same_scatter(one.scatter, other.scatter)
        and one.approximation == other.approximation
        and np.array_equal(one.inducing, other.inducing)
    )
