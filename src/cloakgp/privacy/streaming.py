r"""`measure_rows` and `measure_label_rows`: where private columns that come in chunks meet noise.

Mechanism
---------
Those of `cloakgp.privacy.queries`, a = R (clip(y) − c) + s z, and of `cloakgp.privacy.labels`,
R V + s Z, for a table that no memory holds. Each chunk's columns R_c are had from its public
inputs, and its private entries are read and encoded where they are: V_c has a row for each, of C
channels (an output has one). n_c = round(R_c V_c / step), k C whole numbers of grid steps, is all
that leaves it. These are added, exactly, and noise is drawn once, for all channels, when the last
of them is in.

Neighbours
    One entry changes: an output within [lo, hi], or a label to any other declared class; everything
    else is equal. Where rows say whose they are, all entries of one group change, each so; which
    row belongs to which group is public.
Sensitivity
    A row of V moves by at most d, the encoding's distance: the width of the bounds, 2 for signs,
    √2 for indicators, of which one change moves two. Neighbours differ in one row of one chunk, so
    Σ_c n_c moves by what one n_c can: r_j (v − v')ᵀ, in the Frobenius norm over all k C numbers at
    most d·L/step for columns at most L long, and what rounding adds to the k C sums of one chunk
    (`cloakgp.privacy.grid.integer_sensitivity`). L is promised before noise is calibrated. The very
    columns that are asked, every one of them, are measured in the pass that asks them; if one is
    longer than was promised, or a chunk has more rows, nothing is released. That depends on public
    inputs only.

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
    As for `cloakgp.privacy.queries`, in k C dimensions.
Argument
    As for `measure` and `measure_labels`: the integers differ from theirs by their rounding alone,
    which is counted. Integers add up the same in every order, so it does not matter which chunk
    came when, or whether one was computed twice because a machine failed: the sum is the same, no
    noise exists before it is complete, and one draw is made. Another machine may round a chunk's
    last digit otherwise; given which machine did what, which is no matter of private entries, all
    chunks but those that hold what changed are the same for neighbours, and what rounding adds to
    these is counted for any machine. Which number stands for an entry depends on that entry and on
    what was declared, and on no other entry. Entries of a chunk that is not as promised, or of
    which one is not what was declared, are not multiplied at all, so that no warning or overflow on
    the way can tell of them.

Bands
    With ``bands``, V_c has where outputs lie in bands of their own, as `cloakgp.privacy.bands` has
    it: (clip(y_j; l_j, u_j) − middle_j)/w_j, brought into [−½, ½] last, by a clip to two numbers
    that float64 holds. l_j and u_j are had from the row's public inputs and from answers that were
    published before, where its columns are had, and so are constants for neighbours. Whatever
    rounding did to them, a row of V lies in [−½, ½] for every output: all of the above holds with
    bounds (−½, ½), d = 1. That bands of a row may differ in their last digit from one machine to
    another changes which number stands for its output and not how far that can move. Several
    stages, each one pass, compose as there: stage t is μ_t-Gaussian DP for every value of the
    earlier answers, and all of them √(Σ μ_t²) (Dong, Roth and Su 2022, corollary 3.3).

Before noise, the sums of chunks are private. On one machine they stay in this process. On a cluster
they travel: see `cloakgp.data.dask.rows` for whom one must trust.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cloakgp.privacy.accounting import Guarantee
from cloakgp.privacy.bands import UNIT_BAND, Bands, SpreadQuestion
from cloakgp.privacy.bounds import OutputBounds
from cloakgp.privacy.encoding import Encoding
from cloakgp.privacy.grid import Grid, Magnitudes, Sensitivity, calibrate, rounded, with_noise
from cloakgp.privacy.labels import Classes, LabelAnswers
from cloakgp.privacy.noise import GAUSSIAN, Noise
from cloakgp.privacy.queries import Answers
from cloakgp.privacy.rounding import gamma
from cloakgp.privacy.sampler import Integers
from cloakgp.privacy.spending import one_charge
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.utils.arrays import Array
from cloakgp.utils.passes import GROUP_NUMBERS, Chunk, PartOf

# Of a promised length, to allow for another order of summation when columns are had again.
LENGTH_SLACK = 1e-9

MakeBands = Callable[[Array], Bands | SpreadQuestion]
"""The bands of rows from their public inputs, shape (n, D)."""


class PrivateRows(Protocol):
    """A table whose private column can be gone through; for this module alone."""

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


@dataclass(frozen=True)
class StrategyBound:
    """What is known of a strategy before any output is read; the pass itself verifies it.

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
    """

    answers: int
    longest: float
    chunk_rows: int
    count: int
    group_rows: int | None = None
    chunks: int = 1
    noise: Noise = GAUSSIAN

    @property
    def limit(self) -> float:
        """The longest column that is let through."""
        return float(self.longest) * (1 + LENGTH_SLACK)

    @property
    def sums(self) -> int:
        """The most chunks that the rows of one neighbour are in."""
        return 1 if self.group_rows is None else min(self.group_rows, self.chunks)


@dataclass(frozen=True, eq=False)
class _Together:
    """What is asked of the rows of each number of groups. Public."""

    lengths: Array
    counts: NDArray[np.intp]
    chunks: int

    @classmethod
    def of(cls, chunk: Chunk, lengths: Array) -> _Together:
        groups = chunk.groups
        if groups is None or groups.shape != lengths.shape or groups.dtype != np.intp:
            raise TypeError("rows must give the number of a group for each of their inputs")
        # Smaller or larger numbers are refused by NumPy, or make the arrays longer.
        together = np.bincount(groups, weights=lengths, minlength=GROUP_NUMBERS)
        return cls(
            lengths=together.astype(np.float64),
            counts=np.bincount(groups, minlength=GROUP_NUMBERS),
            chunks=1,
        )

    def merged(self, other: _Together) -> _Together:
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

    def merged(self, other: _Answered) -> _Answered:
        return _Answered(
            integers=self.integers + other.integers,
            count=self.count + other.count,
            within_bound=self.within_bound and other.within_bound,
            faults=tuple(one or two for one, two in zip(self.faults, other.faults, strict=True)),
            together=None
            if self.together is None or other.together is None
            else self.together.merged(other.together),
        )

    def as_promised(self, bound: StrategyBound) -> bool:
        """Return whether columns, rows and groups are what noise was calibrated for."""
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
    encoding: Encoding
    grid: Grid
    bands: MakeBands | None = None

    def __call__(self, chunk: Chunk, entries: Array) -> _Answered:
        count = len(chunk.X)
        columns = self.columns(chunk.X)
        # Other shapes would broadcast, and others' precision is not what the proofs count with.
        if columns.shape != (self.bound.answers, count) or columns.dtype != np.float64:
            raise TypeError("columns must be float64, one question per row and one column per row")
        if entries.shape != (count,) or entries.dtype != np.float64:
            raise TypeError("rows must give one float64 entry for each of their inputs")
        bands = None if self.bands is None else _checked_bands(self.bands(chunk.X), count=count)
        lengths = self.bound.noise.lengths(columns)
        together = None if self.bound.group_rows is None else _Together.of(chunk, lengths)
        longest = float(lengths.max(initial=0.0))
        # Written so that NaN fails.
        within_bound = longest <= self.bound.limit and count <= self.bound.chunk_rows
        faults = self.encoding.faults(entries)
        if within_bound and not any(faults):
            placed = entries if bands is None else bands.encoded(entries)
            integers = rounded(columns @ self.encoding.encoded(placed), grid=self.grid)
        else:
            # Not computed: what overflows on the way would warn, and so tell of entries.
            integers = np.zeros((self.bound.answers, self.encoding.channels), dtype=np.int64)
        return _Answered(
            integers=integers,
            count=count,
            within_bound=within_bound,
            faults=faults,
            together=together,
        )


def _checked_bands(bands: Bands | SpreadQuestion, *, count: int) -> Bands | SpreadQuestion:
    """Return the bands of a chunk's rows, or refuse them, whatever the rows' outputs are."""
    for each in (bands.lower, bands.upper) if isinstance(bands, Bands) else (bands.mean, bands.sd):
        if each.shape != (count,) or each.dtype != np.float64:
            raise TypeError("bands must be float64, one for each of the rows")
    bands.validate()
    return bands


@dataclass(frozen=True, eq=False)
class NoisyAnswers:
    """What is published of a private column: noisy answers, shape (k, C), and what they cost."""

    values: Array
    noise_sd: float
    guarantee: Guarantee


@forget_on_failure
@one_charge
def measure_rows(
    rows: PrivateRows,
    columns: Callable[[Array], Array],
    *,
    bound: StrategyBound,
    bounds: OutputBounds,
    epsilon: float,
    delta: float,
    bands: MakeBands | None = None,
    after_answers: bool = False,
    insecure_seed: int | None = None,
) -> Answers:
    """Answer the questions of a strategy about a table in chunks, under (ε, δ)-DP.

    Mechanism, neighbours, theorem and argument stand at the head of this module.

    Parameters
    ----------
    rows : PrivateRows
    columns : callable
        Public, and picklable: inputs of shape (n, D) → the rows' columns r_j, shape (k, n).
    bound : StrategyBound
        Verified over every column that is asked.
    bounds : OutputBounds
    epsilon, delta : float
        The budget.
    bands : callable, optional
        Public, and picklable: inputs of shape (n, D) → the rows' bands, or intervals that outputs
        may lie outside of, from answers that were published before. The answers are then about
        numbers in [−½, ½].
    after_answers : bool
        Whether answers that were published before decided what is asked: if that is nothing, the
        budget counts as spent all the same.
    insecure_seed : int, optional
        Makes the noise reproducible and the release **not private**. For experiments only.

    Returns
    -------
    Answers

    Raises
    ------
    ValueError
        For budgets or outputs that do not make sense, never quoting an output or telling where it
        is; or if the public inputs are not those that were promised.
    TypeError
        If columns or outputs have another shape or type than they must, whatever their values.
    """
    epsilon, delta = bound.noise.check(epsilon, delta)
    # Bounds that were made by hand may be none, or of low precision.
    bounds = OutputBounds.checked((bounds.lo, bounds.hi) if bands is None else UNIT_BAND)
    noisy = ask_rows(
        rows,
        columns,
        bound=bound,
        encoding=bounds,
        bands=bands,
        epsilon=epsilon,
        delta=delta,
        after_answers=after_answers or bands is not None,
        insecure_seed=insecure_seed,
    )
    return Answers(
        values=noisy.values[:, 0],
        noise_sd=noisy.noise_sd,
        centre=bounds.middle,
        bounds=(bounds.lo, bounds.hi),
        guarantee=noisy.guarantee,
        insecure=insecure_seed is not None,
        noise=bound.noise.name,
    )


@forget_on_failure
@one_charge
def measure_label_rows(
    rows: PrivateRows,
    columns: Callable[[Array], Array],
    *,
    bound: StrategyBound,
    classes: Classes,
    epsilon: float,
    delta: float,
    insecure_seed: int | None = None,
) -> LabelAnswers:
    """Answer the questions of a strategy about the labels of a table in chunks, under (ε, δ)-DP.

    Mechanism, neighbours, theorem and argument stand at the head of this module.

    Parameters
    ----------
    rows : PrivateRows
    columns, bound
        As for `measure_rows`.
    classes : Classes
        Public.
    epsilon, delta : float
        The budget.
    insecure_seed : int, optional
        Makes the noise reproducible and the release **not private**. For experiments only.

    Returns
    -------
    LabelAnswers

    Raises
    ------
    ValueError
        For budgets or classes that do not make sense; for labels that were not declared, quoting
        none and not telling where; or if the public inputs are not those that were promised.
    TypeError
        If columns or entries have another shape or type than they must, whatever their values.
    """
    epsilon, delta = bound.noise.check(epsilon, delta)
    # Classes that were made by hand may be one only, or one of them twice.
    classes = Classes.checked(list(classes.labels))
    noisy = ask_rows(
        rows,
        columns,
        bound=bound,
        encoding=classes,
        epsilon=epsilon,
        delta=delta,
        insecure_seed=insecure_seed,
    )
    return LabelAnswers(
        values=noisy.values,
        noise_sd=noisy.noise_sd,
        classes=classes,
        guarantee=noisy.guarantee,
        insecure=insecure_seed is not None,
        noise=bound.noise.name,
    )


def ask_rows(
    rows: PrivateRows,
    columns: Callable[[Array], Array],
    *,
    bound: StrategyBound,
    encoding: Encoding,
    epsilon: float,
    delta: float,
    insecure_seed: int | None,
    after_answers: bool = False,
    bands: MakeBands | None = None,
) -> NoisyAnswers:
    """Ask every row, whatever its entry is, and add noise to the sum.

    For mechanisms that read private columns in chunks: each states what its encoding moves by.

    Parameters
    ----------
    rows : PrivateRows
    columns, bound, bands, after_answers
        As for `measure_rows`.
    encoding : Encoding
        What stands for an entry.
    epsilon, delta : float
        The budget, checked.
    insecure_seed : int or None
    """
    if bound.answers == 0 or bound.longest == 0:
        values = np.zeros((bound.answers, encoding.channels))
        return NoisyAnswers(
            values=values,
            noise_sd=0.0,
            guarantee=bound.noise.unasked(
                epsilon, delta, answers=values.size, after_answers=after_answers
            ),
        )
    grid, guarantee = calibrate(
        Magnitudes.of_columns(
            answers=bound.answers,
            longest=bound.limit,
            rows=bound.chunk_rows,
            count=bound.count,
            sums=bound.sums,
        ),
        sensitivity=Sensitivity.of_one_row(bound.limit, encoding=encoding, noise=bound.noise),
        epsilon=epsilon,
        delta=delta,
        noise=bound.noise,
    )
    answered = rows.over_rows(
        _Answering(columns=columns, bound=bound, encoding=encoding, grid=grid, bands=bands),
        what="asking the private column",
        labels=encoding.labels,
    )
    if not answered.as_promised(bound):
        raise ValueError(
            "the table's inputs changed while it was read, so nothing was released: run it again"
        )
    for fault, complaint in zip(answered.faults, encoding.complaints, strict=True):
        if fault:
            # Whichever of them came first.
            raise ValueError(complaint)
    return NoisyAnswers(
        values=with_noise(answered.integers, grid=grid, insecure_seed=insecure_seed),
        noise_sd=grid.noise_sd,
        guarantee=guarantee,
    )
