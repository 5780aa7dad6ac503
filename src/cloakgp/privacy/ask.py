r"""The one door: `ask`, and `ask_chunks` for rows in chunks, where private entries meet noise.

Mechanism
---------
A question (`cloakgp.privacy.questions`) makes a row of V, of C numbers, of every private entry.
Given a public strategy R of shape (k, N), publish R V + s Z, with Z independent noise on a grid:
discrete Gaussian, discrete Laplace, or any law of `cloakgp.privacy.noise`.

Neighbours
    One entry changes: an output to any number, or a label to any other declared class; everything
    else is equal. With groups, all entries of one group change; which rows belong together is
    public. The question and R are equal: functions of public things, and of answers that were
    published before.
Sensitivity
    Row j of V enters through column r_j alone, and moves by at most d, the question's distance,
    whatever its entry was and becomes. So R V moves by r_j (v − v')ᵀ, whose norm over all k C
    numbers is at most d·max_j ‖r_j‖: the Frobenius norm for Gaussian noise, the sum of absolute
    entries for Laplace noise. It is computed here from the very R that is asked, over all columns,
    and inflated for rounding (`cloakgp.privacy.grid.integer_sensitivity`). A group's rows move it,
    for one channel, by at most d times the group's gauge, the greatest ‖Σ_j ±r_j‖
    (`cloakgp.privacy.groups`), and for several by d·Σ_j ‖r_j‖, by the triangle inequality
    (`Sensitivity.of_strategy`).
Theorem
    Gaussian: Balle and Wang 2018, theorem 8; `discretisation_delta` for the discrete noise. See
    `cloakgp.privacy.accounting`. Laplace: Dwork, McSherry, Nissim and Smith 2006, proposition 1;
    see `cloakgp.privacy.noise.laplace`. Both in k C dimensions.
Argument
    Gaussian: with s = σ·sensitivity and σ = σ(ε, δ − what discretisation costs), the answers are
    (ε, δ)-DP. Laplace: with scale sensitivity/ε they are ε-DP, whatever δ. All that is published
    later is computed from them and from public arrays: post-processing. Where earlier answers chose
    the question or R, this holds for every value of these, which is what adaptive composition asks
    for.

Rows in chunks
--------------
The same for a table that no memory holds. Each chunk's columns R_c are had from its public inputs,
and its private entries are read and encoded where they are: V_c has a row for each. All that leaves
it is n_c = round(R_c V_c / step), k C whole numbers of grid steps. These are added, exactly, and
noise is drawn once, for all channels, when the last of them is in.

Neighbours
    As above.
Sensitivity
    Neighbours differ in one row of one chunk, so Σ_c n_c moves by what one n_c can: r_j (v − v')ᵀ,
    in the norm over all k C numbers at most d·L/step for columns at most L long, and what rounding
    adds to the k C sums of one chunk (`cloakgp.privacy.grid.integer_sensitivity`). L is promised
    before noise is calibrated. The very columns that are asked, every one of them, are measured in
    the pass that asks them; if one is longer than was promised, or a chunk has more rows, nothing
    is released. That depends on public inputs only.

    Of a group g whose rows are in T chunks, Σ_c n_c moves by what its rows move:
    ‖Σ_j r_j (v_j − v_j')ᵀ‖ ≤ d Σ_{j∈g} ‖r_j‖, by the triangle inequality, and what rounding adds to
    the k C sums of each of T chunks. Here L is promised to be at least Σ_{j∈g} ‖r_j‖ for every
    group. In the pass that asks, the lengths of columns are added up by the numbers of groups
    (`cloakgp.utils.passes.group_number`). All rows of a group have one number, whatever chunk they
    are in, so the sum of its number is at least that of the group: another group of the same number
    makes it larger, never smaller. The greatest of these sums, inflated by what n additions can
    round it down, n being the most rows of one number, must not exceed L. Nor may T exceed what
    was counted for: a group has rows in no more chunks than there are, or than it has rows, and
    both are counted in the same pass. If one of them is more than was promised, nothing is
    released. So sizes of groups that were counted earlier, by which columns were made short, need
    not be right.
    With Laplace noise lengths are sums of absolute entries, d is 2 for indicators, too, and sums
    take the place of Euclidean norms throughout.
Theorem
    As above.
Argument
    As for `ask`: the integers differ from its integers by their rounding alone,
    which is counted. Integers add up the same in every order, so it does not matter which chunk
    came when, or whether one was computed twice because a machine failed: the sum is the same, no
    noise exists before it is complete, and one draw is made. Another machine may round a chunk's
    last digit otherwise; given which machine did what, which is no matter of private entries, all
    chunks but those that hold what changed are the same for neighbours, and what rounding adds to
    these is counted for any machine. Which number stands for an entry depends on that entry and on
    what was declared, and on no other entry. Entries of a chunk that is not as promised, or of
    which one is not what was declared, are not multiplied at all, so that no warning or overflow on
    the way can tell of them.

Several entries of a row
    Rows may have T private entries each, which are protected together: they come next to each
    other, and a chunk has all of a row or none.

    Neighbours differ in all T entries of one row of the table; with groups, in all entries of all
    rows of one group. Row j moves Σ_c n_c by what Σ_t r_jt w_tᵀ does, with w_t as long as d at
    most, and by what rounding adds to the k C sums of the one chunk that it is in. The norm of that
    is at most d ℓ_j: with Gaussian noise ℓ_j = (Σ_tu |r_jt·r_ju|)^½, by Cauchy and Schwarz; with
    Laplace noise ℓ_j = Σ_t ‖r_jt‖₁, by the triangle inequality
    (`cloakgp.privacy.noise.Noise.lengths_together`). So ℓ_j takes the place of ‖r_j‖ throughout:
    L is at least ℓ_j for every row, or Σ_{j∈g} ℓ_j for every group, whose rows in this sum are rows
    of the table. No column is longer than the ℓ_j of its row, so that what rounds does not round by
    more. A chunk whose length is no multiple of T would part the entries of a row, and is refused;
    so are entries of one row that name different groups. That depends on public inputs only.

Questions about rows
    A question may be another for every row, by the row's public inputs and by answers that were
    published before (`Question.of_rows`): bands, say. It is had where the row's columns are, and is
    a constant for neighbours. Whatever rounding did to it, a row of V moves by at most d. That
    bands of a row may differ in their last digit from one machine to another changes which number
    stands for its output and not how far that can move.

Before noise, the sums of chunks are private. On one machine they stay in this process. On a cluster
they travel: see `cloakgp.data.dask.rows` for whom one must trust.

Rows of several custodians
--------------------------
The same for a table of which each of several custodians holds some rows, and nobody all. Each adds
up the chunks of its own rows, and a share of the noise (`ask_share`); what leaves it is hidden by
masks that cancel in the sum of all (`cloakgp.custodians.masks`). Who puts the question gets that
sum, noise and all, and no entry or sum without noise (`ask_chunks` with `NoisySums`).

Neighbours
    As above: the row is in one chunk of one custodian, with all of its entries.
Sensitivity
    As above, for all chunks of all custodians: each computes the grid from the same bound, whose
    count is of all rows, and verifies it over its own.

    With groups, a group has rows at s custodians at most, its *places*. Where s is as many as there
    are custodians, that holds of every table; where it is less, it is a public promise, and what
    follows is about groups of which it holds. L, the most rows of a number and T are promised of
    each custodian alone, who verifies them over their own rows, by numbers that nobody else need
    know: they may give the group another number than another custodian does. So the sums of one
    custodian move by d Σ_{j∈g, there} ℓ_j ≤ d L, and what rounding adds to the k C sums of each of
    T chunks, as above; those of all by the sum of that over s custodians, by the triangle
    inequality: by d s L, and by what rounding adds to s T chunks. Noise is calibrated to that. A
    group of rows at s' > s custodians is s'/s, rounded up, groups of which the promise holds, and
    is protected as so many neighbours, one after the other, are.

    A custodian who colludes may verify nothing: the rows of a group that are theirs are theirs to
    tell, and the others' move the sums by no more than that.
Theorem
    As above; and that n shares are the noise, or more (`cloakgp.privacy.polya` for Laplace noise,
    `cloakgp.privacy.noise.gaussian`).
Argument
    A share is one of n, n the number of custodians less those that may collude. Of the sum of all,
    those who collude can take off what they added themselves: there are at least n other shares in
    it, which are the noise of `ask_chunks`, and independent further ones. So what they know of it
    is post-processing of answers with that noise. That they know no more than the sum is the masks'
    affair.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloakgp.privacy.accounting import Calibration, Guarantee
from cloakgp.privacy.answers import Answers
from cloakgp.privacy.filters import costs_of_guarantee
from cloakgp.privacy.grid import (
    Grid,
    Magnitudes,
    Sensitivity,
    calibrate,
    noisy,
    rounded,
    with_noise,
)
from cloakgp.privacy.groups import checked_groups
from cloakgp.privacy.noise import GAUSSIAN, Noise, noise_named
from cloakgp.privacy.questions.base import Question
from cloakgp.privacy.rounding import UNIT_ROUNDOFF, gamma
from cloakgp.privacy.sampler import Hide, Integers
from cloakgp.privacy.spending import one_charge, spend
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.utils.arrays import Array, as_matrix
from cloakgp.utils.names import NoiseName
from cloakgp.utils.passes import GROUP_NUMBERS, Chunk, PartOf

# Of a promised length, to allow for another order of summation when columns are had again.
LENGTH_SLACK = 1e-9


class PrivateRows(Protocol):
    """A table with passes over its private column; for this module alone."""

    def over_rows(
        self,
        work: Callable[[Chunk, Array], PartOf],
        *,
        what: str,
        labels: tuple[object, ...] | None = None,
    ) -> PartOf:
        """Do some work on every chunk and its private entries, and merge the parts.

        Parameters
        ----------
        work : callable
            Called with a chunk and its entries, shape (n,).
        what : str
            What this pass is for.
        labels : tuple, optional
            What an entry can be. It then comes as its place among these, from 0; if not given, as
            a number. NaN stands for what is neither.
        """


@runtime_checkable
class NoisySums(Protocol):
    """A table whose custodians add up their own rows, each with a share of the noise.

    Who puts a question to it sees no private entry, and no sum without noise.
    """

    @property
    def noise_ratio(self) -> float:
        """The sd of all that custodians add, over that of the noise of the budget; at least 1."""

    @property
    def places(self) -> int:
        """At how many custodians a group may have rows; 1 if every row is protected on its own."""

    def noisy_sums(
        self,
        columns: Callable[[Array], Array],
        *,
        bound: StrategyBound,
        question: Question,
        epsilon: float,
        delta: float,
    ) -> Integers:
        """Return sums of all custodians, with noise, in whole grid steps, shape (k C,).

        Parameters
        ----------
        columns, bound, question, epsilon, delta
            As for `ask_chunks`; custodians ask them by `ask_share`.
        """


@dataclass(frozen=True)
class StrategyBound:
    """Public bounds of a strategy before any output is read; the pass itself verifies them.

    Attributes
    ----------
    answers : int
        k.
    longest : float
        At least the length of every column.
    chunk_rows : int
        The most rows of a chunk.
    count : int
        Rows in all.
    group_rows : int or None
        Where all rows of a group are protected together, the most rows of one number of groups;
        ``longest`` is then at least what the lengths of their columns add up to, for any number.
    chunks : int
        The most chunks of the table; asked for with groups only.
    noise : Noise
        What will be added, in whose norm columns are measured.
    together : int
        T, how many entries next to each other are those of one row of the table. ``longest`` is
        then at least how far all of one row move answers, or all of one group; ``chunk_rows`` and
        ``count`` are of entries, and ``group_rows`` of rows of the table.
    places : int
        At how many custodians a group may have rows. ``longest``, ``group_rows`` and ``chunks`` are
        then of its rows at each of them.
    """

    answers: int
    longest: float
    chunk_rows: int
    count: int
    group_rows: int | None = None
    chunks: int = 1
    noise: Noise = GAUSSIAN
    together: int = 1
    places: int = 1

    @property
    def limit(self) -> float:
        """The longest column that is let through, or the longest of a row's together."""
        return float(self.longest) * (1 + LENGTH_SLACK)

    @property
    def reach(self) -> float:
        """The most that lengths of columns add up to of one neighbour, at all custodians."""
        return (
            self.limit if self.places == 1 else self.limit * self.places * (1 + 2 * UNIT_ROUNDOFF)
        )

    @property
    def sums(self) -> int:
        """The most chunks that the rows of one neighbour are in."""
        if self.group_rows is None:
            return 1
        return min(self.group_rows, self.chunks) * self.places

    def validate(self) -> None:
        """Refuse places of rows that are protected each on its own, which is at one custodian.

        Raises
        ------
        ValueError
        """
        if self.places < 1 or (self.places > 1 and self.group_rows is None):
            raise ValueError("the rows of a group are at one custodian, or at several")


@dataclass(frozen=True, eq=False)
class _Together:
    """Lengths of the columns of rows for each group number. Public."""

    lengths: Array
    counts: NDArray[np.intp]
    chunks: int

    @classmethod
    def of(cls, chunk: Chunk, lengths: Array, *, together: int = 1) -> _Together:
        groups = chunk.groups
        if groups is None or groups.shape != (len(chunk.X),) or groups.dtype != np.intp:
            raise TypeError("rows must give the number of a group for each of their inputs")
        groups, *others = groups.reshape(-1, together).T
        if any((groups != each).any() for each in others):
            raise TypeError("all entries of a row must be of one group")
        # Smaller or larger numbers are refused by NumPy, or make the arrays longer.
        summed = np.bincount(groups, weights=lengths, minlength=GROUP_NUMBERS)
        return cls(
            lengths=summed.astype(np.float64),
            counts=np.bincount(groups, minlength=GROUP_NUMBERS),
            chunks=1,
        )

    def merge(self, other: _Together) -> _Together:
        return _Together(
            lengths=self.lengths + other.lengths,
            counts=self.counts + other.counts,
            chunks=self.chunks + other.chunks,
        )

    def within(self, bound: StrategyBound) -> bool:
        """Return whether no group moves answers by more than was promised."""
        most_rows = int(self.counts.max())
        if bound.group_rows is None or most_rows > bound.group_rows or self.chunks > bound.chunks:
            return False
        # Every length is rounded where its chunk adds it up, and where chunks are added up.
        longest = float(self.lengths.max()) * (1 + 2 * gamma(2 * most_rows + 2))
        # Written so that NaN fails.
        return longest <= bound.limit


@dataclass(frozen=True, eq=False, repr=False)
class _Answered:
    """Rounded answers of some chunks, shape (k, C), and whether all was as promised. Private."""

    integers: Integers
    count: int
    within_bound: bool
    faults: tuple[bool, ...]
    together: _Together | None = None

    def merge(self, other: _Answered) -> _Answered:
        return _Answered(
            integers=self.integers + other.integers,
            count=self.count + other.count,
            within_bound=self.within_bound and other.within_bound,
            faults=_either(self.faults, other.faults),
            together=None
            if self.together is None or other.together is None
            else self.together.merge(other.together),
        )

    def as_promised(self, bound: StrategyBound) -> bool:
        """Return whether columns, rows and groups agree with the calibration of noise."""
        if not self.within_bound or self.count != bound.count:
            return False
        if bound.group_rows is None:
            return True
        return self.together is not None and self.together.within(bound)


@dataclass(frozen=True, eq=False)
class _Answering:
    """The rounded answers of one chunk."""

    columns: Callable[[Array], Array]
    bound: StrategyBound
    question: Question
    grid: Grid

    def __call__(self, chunk: Chunk, entries: Array) -> _Answered:
        count = len(chunk.X)
        columns = self.columns(chunk.X)
        # Other shapes would broadcast, and others' precision is not what the proofs count with.
        if columns.shape != (self.bound.answers, count) or columns.dtype != np.float64:
            raise TypeError("columns must be float64, one question per row and one column per row")
        if entries.shape != (count,) or entries.dtype != np.float64:
            raise TypeError("rows must give one float64 entry for each of their inputs")
        question = self.question.of_rows(chunk.X)
        if question.rows not in (None, count) or not _within(question, self.question):
            raise TypeError("a question must be about each of the rows, and move no further")
        question.validate()
        if count % self.bound.together:
            raise TypeError("a chunk must have all entries of each of its rows")
        lengths = self.bound.noise.lengths_together(columns, together=self.bound.together)
        together = None
        if self.bound.group_rows is not None:
            together = _Together.of(chunk, lengths, together=self.bound.together)
        longest = float(lengths.max(initial=0.0))
        # Written so that NaN fails.
        within_bound = longest <= self.bound.limit and count <= self.bound.chunk_rows
        faults = question.faults(entries)
        if within_bound and not any(faults):
            integers = rounded(_sums(columns, question, entries), grid=self.grid)
        else:
            # Not computed: what overflows on the way would warn, and so tell of entries.
            integers = np.zeros((self.bound.answers, question.channels), dtype=np.int64)
        return _Answered(
            integers=integers,
            count=count,
            within_bound=within_bound,
            faults=faults,
            together=together,
        )


@forget_on_failure
@one_charge
def ask(
    strategy: Array,
    y: ArrayLike,
    *,
    question: Question,
    epsilon: float,
    delta: float,
    groups: Iterable[Hashable] | None = None,
    noise: NoiseName = "gaussian",
    calibration: Calibration = "exact",
    after_answers: bool = False,
    insecure_seed: int | None = None,
) -> Answers:
    """Answer the questions of a strategy about y, under (ε, δ)-differential privacy.

    Mechanism, neighbours, theorem and argument stand at the head of this module; how far entries
    move at that of the question's.

    Parameters
    ----------
    strategy : array of shape (k, N)
        R: public, one column per row of y. k = 0 asks nothing and costs nothing.
    y : array-like of shape (N,)
        Private entries.
    question : Question
        Public: how entries become numbers. `OutputBounds` clip outputs, `Classes` are labels.
    epsilon, delta : float
        The budget; δ may be 0 with Laplace noise, which needs none.
    groups : iterable of N texts or whole numbers, optional
        Public: whose row it is. The guarantee is that of all the rows of one group together.
    noise : {"gaussian", "laplace"}
        Laplace noise pays for the sum of the absolute entries of a column, so columns of a single
        one, as of a histogram, suit it.
    calibration : {"exact", "papers"}
        The papers' noise is for comparison, and refused for ε > 1.
    after_answers : bool
        Whether answers that were published before decided on R: if nothing is asked, the budget
        counts as spent all the same.
    insecure_seed : int, optional
        Makes the noise reproducible and the result **not private**. For experiments only.

    Returns
    -------
    Answers

    Raises
    ------
    ValueError
        For questions, budgets or entries that do not make sense (never quoting an entry), or a δ
        that is too small for the grid.

    Examples
    --------
    >>> from cloakgp.privacy import OutputBounds
    >>> half = np.full((1, 4), 0.5)
    >>> answers = ask(half, [1.0, 0.0, 1.0, 1.0], question=OutputBounds(0, 1), epsilon=1.0,
    ...               delta=1e-6)
    >>> round(answers.noise_sd, 2)
    2.11

    Without a δ:

    >>> pure = ask(half, [1.0, 0.0, 1.0, 1.0], question=OutputBounds(0, 1), epsilon=1.0, delta=0.0,
    ...            noise="laplace")
    >>> round(pure.noise_sd, 2), str(pure.guarantee)
    (0.71, '1-differential privacy')

    Labels:

    >>> from cloakgp.privacy.questions import Classes
    >>> answers = ask(half, ["b", "a", "a", "b"], question=Classes(("a", "b")), epsilon=1.0,
    ...               delta=1e-6)
    >>> round(answers.noise_sd, 2)
    4.22
    """
    law = noise_named(noise)
    # numpy compares a float16 with a float64 in 16 bits: everything below is done in 64.
    epsilon, delta = law.check(epsilon, delta, calibration=calibration)
    # Bounds that were made by hand may be none, and classes one only.
    question.validate()
    rows = strategy.shape[1]
    if question.rows not in (None, rows):
        raise ValueError(f"the question is about {question.rows} rows, and there are {rows}")
    owners = checked_groups(groups, rows=rows)
    entries = question.read(y, rows=rows)
    if strategy.shape[0] == 0 or not np.any(strategy):
        return _answers_to_nothing(
            len(strategy),
            question=question,
            epsilon=epsilon,
            delta=delta,
            noise=law,
            after_answers=after_answers,
            insecure=insecure_seed is not None,
        )
    questions = as_matrix(strategy, name="strategy")
    question.check_weights(questions)
    grid, guarantee = calibrate(
        questions,
        sensitivity=Sensitivity.of_strategy(questions, question=question, groups=owners, noise=law),
        epsilon=epsilon,
        delta=delta,
        noise=law,
        calibration=calibration,
    )
    return Answers(
        values=noisy(_sums(questions, question, entries), grid=grid, insecure_seed=insecure_seed),
        noise_sd=grid.noise_sd,
        guarantee=_stated(guarantee, question),
        insecure=insecure_seed is not None,
        noise=law.name,
    )


@forget_on_failure
@one_charge
def ask_chunks(
    rows: PrivateRows | NoisySums,
    columns: Callable[[Array], Array],
    *,
    bound: StrategyBound,
    question: Question,
    epsilon: float,
    delta: float,
    after_answers: bool = False,
    decides: bool = False,
    insecure_seed: int | None = None,
) -> Answers:
    """Answer the questions of a strategy about a table in chunks, under (ε, δ)-DP.

    Mechanism, neighbours, theorem and argument stand at the head of this module.

    Parameters
    ----------
    rows : PrivateRows or NoisySums
    columns : callable
        Public, and picklable: inputs of shape (n, D) → the rows' columns r_j, shape (k, n).
    bound : StrategyBound
        Verified over every column that is asked.
    question : Question
        Public, and picklable; the question about rows follows from their inputs.
    epsilon, delta : float
        The budget.
    after_answers : bool
        As for `ask`.
    decides : bool
        Whether the answers decide how much later measurements spend of a whole that is fixed.
    insecure_seed : int, optional
        Makes the noise reproducible and the release **not private**. For experiments only.

    Returns
    -------
    Answers

    Raises
    ------
    ValueError
        For questions, budgets or entries that do not make sense, never quoting an entry or telling
        where it is; or if the public inputs are not those that were promised.
    TypeError
        If columns or entries have another shape or type than they must, whatever their values.
    """
    law = bound.noise
    epsilon, delta = law.check(epsilon, delta)
    question.validate()
    if isinstance(rows, NoisySums):
        # How rows of custodians lie in chunks is not known here: of a group each in its own.
        bound = replace(bound, chunks=bound.count)
    if bound.answers == 0 or bound.longest == 0:
        return _answers_to_nothing(
            bound.answers,
            question=question,
            epsilon=epsilon,
            delta=delta,
            noise=law,
            after_answers=after_answers,
            insecure=insecure_seed is not None,
        )
    grid, guarantee = _calibrated(bound, question=question, epsilon=epsilon, delta=delta)
    shape = bound.answers, question.channels
    if isinstance(rows, NoisySums):
        if insecure_seed is not None:
            raise ValueError("custodians draw noise themselves: leave insecure_seed out")
        if bound.places < rows.places:
            raise ValueError("a group may have rows at more custodians than noise is for")
        noisy_sums = rows.noisy_sums(
            columns, bound=bound, question=question, epsilon=epsilon, delta=delta
        )
        values = noisy_sums.astype(np.float64).reshape(shape) * grid.step
        noise_sd = grid.noise_sd * rows.noise_ratio
    else:
        noise_sd = grid.noise_sd
        integers = _sums_of_chunks(rows, columns, bound=bound, question=question, grid=grid)
        values = with_noise(integers, grid=grid, insecure_seed=insecure_seed)
    return Answers(
        values=values,
        noise_sd=noise_sd,
        guarantee=_stated(guarantee, question, decides=decides),
        insecure=insecure_seed is not None,
        noise=law.name,
    )


@forget_on_failure
@one_charge
def ask_share(
    rows: PrivateRows,
    columns: Callable[[Array], Array],
    *,
    bound: StrategyBound,
    question: Question,
    epsilon: float,
    delta: float,
    count: int,
    sharers: int,
    hide: Hide,
) -> Integers:
    """Answer questions about the rows of one of several custodians, with a share of the noise.

    Mechanism, neighbours, theorem and argument stand at the head of this module.

    Parameters
    ----------
    rows : PrivateRows
        Of this custodian.
    columns, question, epsilon, delta
        As for `ask_chunks`.
    bound : StrategyBound
        Of the rows of all custodians.
    count : int
        How many rows are this custodian's, or entries of rows that have several.
    sharers : int
        So many shares make the noise of the budget.
    hide : callable
        Makes of whole numbers, shape (k C,), such as may leave the custodian.

    Returns
    -------
    array of int, shape (k C,)
        What ``hide`` made of sums with a share of the noise.

    Raises
    ------
    ValueError, TypeError
        As `ask_chunks`.
    """
    epsilon, delta = bound.noise.check(epsilon, delta)
    question.validate()
    grid, _ = _calibrated(bound, question=question, epsilon=epsilon, delta=delta)
    integers = _sums_of_chunks(
        rows, columns, bound=replace(bound, count=count), question=question, grid=grid
    )
    return bound.noise.add_share(
        integers.ravel(),
        scale=grid.scale,
        sensitivity=grid.sensitivity,
        sharers=sharers,
        hide=hide,
    )


def _calibrated(
    bound: StrategyBound, *, question: Question, epsilon: float, delta: float
) -> tuple[Grid, Guarantee]:
    bound.validate()
    return calibrate(
        Magnitudes.of_columns(
            answers=bound.answers,
            longest=bound.limit,
            rows=bound.chunk_rows,
            count=bound.count,
            sums=bound.sums,
        ),
        sensitivity=Sensitivity.of_one_row(bound.reach, question=question, noise=bound.noise),
        epsilon=epsilon,
        delta=delta,
        noise=bound.noise,
    )


def _sums_of_chunks(
    rows: PrivateRows,
    columns: Callable[[Array], Array],
    *,
    bound: StrategyBound,
    question: Question,
    grid: Grid,
) -> Integers:
    """Return the rounded answers of all chunks, or refuse what is not as promised. Private."""
    answered = rows.over_rows(
        _Answering(columns=columns, bound=bound, question=question, grid=grid),
        what="asking the private column",
        labels=question.labels,
    )
    if not answered.as_promised(bound):
        raise ValueError(
            "the table's inputs changed while it was read, so nothing was released: run it again"
        )
    _complain(answered.faults, question)
    return answered.integers


@dataclass(frozen=True, eq=False, repr=False)
class _Faults:
    """Which complaints there are about the entries of some chunks. Private."""

    found: tuple[bool, ...]

    def merge(self, other: _Faults) -> _Faults:
        return _Faults(_either(self.found, other.found))


@forget_on_failure
def check_entries(rows: PrivateRows, question: Question) -> None:
    """Refuse invalid private entries, where nothing is asked yet.

    That there is one is a fact about the entries: whoever holds them hears of it, and must not tell
    others.

    Parameters
    ----------
    rows : PrivateRows
    question : Question
        Its complaints count, and nothing else of it.

    Raises
    ------
    ValueError
        If an entry is invalid. Nothing is said of which, or of how many.
    """

    def look(_: Chunk, entries: Array) -> _Faults:
        return _Faults(question.faults(entries))

    seen = rows.over_rows(look, what="looking at the private column", labels=question.labels)
    _complain(seen.found, question)


def _either(faults: Sequence[bool], others: Sequence[bool]) -> tuple[bool, ...]:
    return tuple(one or two for one, two in zip(faults, others, strict=True))


def _complain(faults: Sequence[bool], question: Question) -> None:
    for fault, complaint in zip(faults, question.complaints, strict=True):
        if fault:
            # Whichever of them came first.
            raise ValueError(complaint)


def _answers_to_nothing(
    count: int,
    *,
    question: Question,
    epsilon: float,
    delta: float,
    noise: Noise,
    after_answers: bool,
    insecure: bool,
) -> Answers:
    """Return the answers to questions of zeros, which depend on no entry."""
    values = np.zeros((count, question.channels))
    guarantee = noise.guarantee_without_answers(
        epsilon,
        delta,
        answers=values.size,
        after_answers=after_answers or question.follows_answers,
    )
    if not insecure:
        # What the guarantee counts as spent an account counts as well, though nothing is drawn.
        for cost in costs_of_guarantee(guarantee):
            spend(cost, lambda: None)
    return Answers(
        values=values,
        noise_sd=0.0,
        guarantee=_stated(guarantee, question),
        insecure=insecure,
        noise=noise.name,
    )


def _sums(columns: Array, question: Question, entries: Array) -> Array:
    """Return R V, whatever numpy was told to do about what overflows or underflows on the way.

    A warning or an error there would tell of entries.
    """
    with np.errstate(all="ignore"):
        found: Array = columns @ _encoded(question, entries)
    return found


def _encoded(question: Question, entries: Array) -> Array:
    """Return V of entries, or refuse another shape or type, independently of values."""
    encoded = question.encode(entries)
    # Others would broadcast, and others' precision is not what the proofs count with.
    if encoded.shape != (len(entries), question.channels) or encoded.dtype != np.float64:
        raise TypeError("a question must make one row of float64 numbers of every entry")
    return encoded


def _within(question: Question, other: Question) -> bool:
    """Return whether entries move by no more under a question than under another."""
    return (
        question.channels == other.channels
        and question.distance <= other.distance
        and question.absolute_distance <= other.absolute_distance
        and question.largest <= other.largest
    )


def _stated(guarantee: Guarantee, question: Question, *, decides: bool = False) -> Guarantee:
    """Return the guarantee of answers, which may decide about later questions."""
    chosen_by = decides or question.precedes_choice
    return replace(guarantee, adaptive=True) if chosen_by else guarantee
