"""A measurement: a strategy, a question, and noisy answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cloakgp.criteria import criteria_for
from cloakgp.design.streaming.rules import EqualRule
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.privacy import Answers, Guarantee
from cloakgp.privacy.groups import Groups
from cloakgp.privacy.noise import NOISES, Noise
from cloakgp.privacy.questions.bands import Bands
from cloakgp.privacy.questions.base import Question
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.privacy.questions.counts import CountQuestion
from cloakgp.privacy.questions.scatter import ScatterQuestion
from cloakgp.privacy.questions.spread import SpreadQuestion
from cloakgp.release.bands import RowBands, RowQuestion, RowScatter, RowSpread
from cloakgp.release.gathered_strategy import GatheredStrategy
from cloakgp.release.strategy import MISFIT, DenseStrategy, Strategy
from cloakgp.release.streamed_strategy import StreamedStrategy
from cloakgp.utils.arrays import Array
from cloakgp.utils.formatting import short_form
from cloakgp.utils.names import NoiseName


@dataclass(frozen=True, eq=False)
class Published:
    """Raw predictions at the queried points: C y plus noise, nothing shrunk.

    Attributes
    ----------
    X : array of shape (P, D)
    values : array of shape (P,)
        Unbiased for the non-private predictions of clipped outputs, in output units.
    noise_cov : array of shape (P, P)
        Of the privacy noise alone, in squared output units.
    insecure : bool
        True if the noise came from a fixed seed: they are then not private.
    noise : {"gaussian", "laplace"}
        What was drawn; theirs is a weighted sum of such.
    """

    X: Array
    values: Array
    noise_cov: Array
    insecure: bool = False
    noise: NoiseName = "gaussian"

    def __repr__(self) -> str:
        return short_form(f"Published values at {len(self.values)} points", insecure=self.insecure)


@dataclass(frozen=True, eq=False)
class Measurement:
    """Linear questions about one table, the encoding of outputs, and noisy answers.

    Attributes
    ----------
    strategy : Strategy
    question : Question
        How outputs became numbers before they were asked: clipped to bounds or to bands, as
        classes, or counted.
    answers : Answers
    """

    strategy: Strategy
    question: Question
    answers: Answers

    @property
    def guarantee(self) -> Guarantee:
        """Its guarantee for a person whose output is in the table."""
        return self.answers.guarantee

    @property
    def noise_sd(self) -> float:
        """The sd of the noise on answers about outputs as a likelihood sees them; 0 if none is."""
        return self.question.output_noise_sd(self.answers.noise_sd)

    @property
    def about_spread(self) -> bool:
        """Whether it asked about the spread of outputs."""
        return isinstance(self.question, SpreadQuestion | RowSpread)

    @property
    def about_scatter(self) -> bool:
        """Whether it asked that by strata, and so where outputs scatter more than elsewhere."""
        return isinstance(self.question, ScatterQuestion | RowScatter)

    def residuals(self, *means: float) -> Array:
        """Return the answers about outputs less their prior means, R (v − mean) + noise.

        Parameters
        ----------
        *means : float
            Of the encoded outputs, one for all channels.

        Returns
        -------
        array of shape (k, channels)
        """
        return self.question.about_outputs(self.answers.values, self.strategy.totals, *means)

    def published(self, prior: ExactPrior | SparsePrior) -> Published:
        """Return the raw predictions mean + C (y − mean) + noise at the queried points.

        Parameters
        ----------
        prior : ExactPrior or SparsePrior
            Whose mean is meant: of what the questions were chosen for.

        Raises
        ------
        ValueError
            If the answers do not determine C y.
        """
        if self.strategy.reconstruction is None:
            others = " or ".join(repr(each.name) for each in criteria_for("many rows") if each.raw)
            raise ValueError(
                f"the answers of criterion={self.strategy.certificate.criterion!r} do not "
                f"determine raw predictions: use predict, or criterion={others}"
            )
        # As a file would give it back: the same doubles before and after.
        reconstruction = np.ascontiguousarray(self.strategy.reconstruction)
        noise_root = self.answers.noise_sd * reconstruction
        residuals = self.residuals(prior.mean)[:, 0] - self.strategy.trend_answers(prior)
        return Published(
            X=self.strategy.X_query,
            values=prior.means(self.strategy.X_query) + reconstruction @ residuals,
            noise_cov=noise_root @ noise_root.T,
            insecure=self.answers.insecure,
            noise=self.answers.noise,
        )

    @property
    def noise(self) -> Noise:
        """Of the answers."""
        return NOISES[self.answers.noise]

    @property
    def sensitivity_over_noise(self) -> float:
        """The recomputed sensitivity of the answers, over their noise sd."""
        answers, noise = self.answers, self.noise
        if answers.noise_sd == 0:
            return 0.0
        longest = self.strategy.longest_column(noise, channels=self.question.channels)
        return noise.distance(self.question) * longest / answers.noise_sd

    def validate(self) -> None:
        """Refuse answers with less noise than their guarantee states.

        Raises
        ------
        ValueError
            If shapes disagree, the noise does not keep the guarantee, or that does not hold.
        """
        answers, guarantee = self.answers, self.answers.guarantee
        self._validate_question()
        asked = self.strategy.asks_something
        if answers.values.shape != (self.strategy.n_answers, self.question.channels):
            raise ValueError(MISFIT)
        if not asked and isinstance(self.strategy, DenseStrategy) is False and answers.values.any():
            raise ValueError("it has answers to questions of length 0")
        # Written so that NaN fails every one of them.
        if not 0 <= answers.noise_sd < np.inf or (
            asked and not (answers.noise_sd > 0 and guarantee.spent)
        ):
            raise ValueError("its answers carry no noise")
        if not self.noise.keeps(guarantee, sensitivity_over_noise=self.sensitivity_over_noise):
            raise ValueError("its noise is less than its guarantee needs")
        if guarantee.spent and guarantee.answers != answers.values.size:
            raise ValueError("its guarantee is damaged")
        guarantee.check_holds()

    def _validate_question(self) -> None:
        question, strategy = self.question, self.strategy
        places = len(strategy.X) if isinstance(strategy, GatheredStrategy) else strategy.n_rows
        if question.rows not in (None, places):
            raise ValueError(MISFIT)
        if isinstance(strategy, DenseStrategy | GatheredStrategy):
            if isinstance(question, RowQuestion):
                raise ValueError(MISFIT)
            question.check_weights(strategy.matrix)
        elif isinstance(strategy, StreamedStrategy):
            if question.rows is not None or strategy.in_bands != isinstance(question, RowBands):
                raise ValueError(MISFIT)
            # Of rows that are not kept, what is not about where outputs are counts all alike.
            if not question.locates and not isinstance(strategy.rule, EqualRule):
                raise ValueError(MISFIT)
            if isinstance(question, RowSpread):
                question.check_weights(strategy.rule.matrix)


def answered_measurements(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Return those that asked something, in the order of their tables."""
    return sorted(
        (one for one in measurements if one.noise_sd > 0), key=lambda one: one.strategy.table
    )


def linear_measurements(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Return the answered ones that locate outputs, in the order of their tables."""
    return [
        measurement
        for measurement in answered_measurements(measurements)
        if measurement.question.locates
    ]


def tables_of(measurements: Sequence[Measurement]) -> dict[int, Strategy]:
    """Return a strategy about each table, by the tables' numbers."""
    tables: dict[int, Strategy] = {}
    for one in measurements:
        tables.setdefault(one.strategy.table, one.strategy)
    return tables


def exposures_of(measurements: Sequence[Measurement]) -> list[Array]:
    """Return the exposures of the rows of each table that has some.

    Parameters
    ----------
    measurements : sequence of Measurement
    """
    return [
        strategy.row_exposure
        for strategy in tables_of(measurements).values()
        if isinstance(strategy, DenseStrategy | GatheredStrategy)
        and strategy.row_exposure is not None
    ]


def check_tables(measurements: Sequence[Measurement]) -> None:
    """Refuse tables whose rows, or their groups, differ from one measurement to the next.

    Raises
    ------
    ValueError
        If they do.
    """
    tables = tables_of(measurements)
    for one in measurements:
        first = tables[one.strategy.table]
        if not first.same_rows(one.strategy):
            raise ValueError("one of its tables has different rows in different places")
        alike = same_groups(first.groups, one.strategy.groups)
        if not alike or first.grouped != one.strategy.grouped:
            raise ValueError("one of its tables has different groups in different places")


def merge_measurements(
    parts: Sequence[Sequence[Measurement]], *, same_rows: bool | None
) -> tuple[tuple[Measurement, ...], list[dict[int, int]]]:
    """Put measurements of several releases together, numbering their tables anew.

    Answers that are already there (the same release twice) are not counted twice. Returns also the
    new numbers of the tables of each part.

    Parameters
    ----------
    parts : sequence of sequences of Measurement
    same_rows : bool or None
        Whether tables with equal inputs are the same rows. None: equal inputs decide.

    Raises
    ------
    ValueError
        If ``same_rows`` is True and the inputs differ, the same rows are grouped differently, or
        copies of one visit are to be about different rows.
    """
    together = list(parts[0])
    renamed = [{table: table for table in tables_of(together)}]
    for part in parts[1:]:
        numbers = renumbered(tables_of(together), tables_of(part), same_rows=same_rows)
        renamed.append(numbers)
        before = tuple(together)
        for one in part:
            moved = replace(one, strategy=one.strategy.renumber(numbers[one.strategy.table]))
            for known in together:
                _check_together(moved, known)
            if not any(_same_answers(moved, known) for known in together):
                _check_groups_are_kept(moved, before)
                together.append(moved)
    check_kept_where_in_bands(together)
    return tuple(together), renamed


def declared_bounds(measurements: Sequence[Measurement]) -> list[tuple[float, float]]:
    """Return the declared bounds of the numbers in each table, each once.

    Where outputs were counted first, questions are about outputs clipped to what was found; the
    outermost ends of what was counted are the bounds that were declared.
    """
    counted = {
        one.strategy.table: one.question.ends
        for one in measurements
        if isinstance(one.question, CountQuestion)
    }
    pairs = [
        counted.get(one.strategy.table, one.question.limits)
        for one in measurements
        if one.question.limits is not None
    ]
    return list(dict.fromkeys(pairs))


def narrower_interval(
    measurements: Sequence[Measurement],
) -> tuple[float | None, float | None] | None:
    """Return the ends to which first questions clipped numbers within their declared bounds.

    Returns
    -------
    lo, hi : float or None
        None where an end is the declared bound. None for both if nothing was clipped so, or tables
        were declared differently.
    """
    question, declared = measurements[0].question, declared_bounds(measurements)
    if not isinstance(question, OutputBounds) or len(declared) != 1:
        return None
    [(lowest, highest)] = declared
    lo = question.lo if question.lo > lowest else None
    hi = question.hi if question.hi < highest else None
    return None if lo is None and hi is None else (lo, hi)


def is_in_bands(measurements: Sequence[Measurement]) -> bool:
    """Return whether any of these measurements was made in bands, of rows that are kept."""
    return any(
        isinstance(measurement.question, Bands | SpreadQuestion) for measurement in measurements
    )


def check_kept_where_in_bands(measurements: Sequence[Measurement]) -> None:
    """Refuse rows that are not kept beside others that are, and were asked in bands.

    Raises
    ------
    ValueError
        If there are both.
    """
    if is_in_bands(measurements) and not all(
        isinstance(measurement.strategy, DenseStrategy) for measurement in measurements
    ):
        raise ValueError(
            "some of these rows were asked in bands and others are not kept: they cannot be "
            "combined (stages=None asks without bands)"
        )


def renumbered(
    known: dict[int, Strategy], added: dict[int, Strategy], *, same_rows: bool | None
) -> dict[int, int]:
    """Return the numbers that tables of another release get beside those that are there.

    Parameters
    ----------
    known, added : dict of int to Strategy
        A strategy about each table, by number.
    same_rows : bool or None
        Whether tables with equal inputs are the same rows. None: equal inputs decide.

    Raises
    ------
    ValueError
        If ``same_rows`` is True and the inputs of none of these tables, or of several, are alike.
    """
    numbers: dict[int, int] = {}
    for table, strategy in added.items():
        # Two tables of one release are different rows, whatever their inputs.
        alike = [
            number
            for number, other in known.items()
            if same_rows is not False
            and number not in numbers.values()
            and other.same_rows(strategy)
        ]
        if same_rows and not alike:
            raise ValueError("same_rows=True, but the releases have different inputs")
        if same_rows and len(alike) > 1:
            raise ValueError("same_rows=True, and several tables have these inputs: which is it?")
        numbers[table] = alike[0] if alike else 1 + max([*known, *numbers.values()])
    return numbers


def same_groups(one: Groups | None, other: Groups | None) -> bool:
    """Return whether two measurements protect the same groups of rows."""
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)


def _check_together(added: Measurement, known: Measurement) -> None:
    """Refuse measurements whose guarantees cannot be summed, or whose noise is one draw."""
    if added.strategy.table == known.strategy.table:
        alike = same_groups(added.strategy.groups, known.strategy.groups)
        if not alike or added.strategy.grouped != known.strategy.grouped:
            raise ValueError(
                "the releases protect different groups of the same rows, so their guarantees do "
                "not add up: use the same groups (or same_rows=False, for other rows)"
            )
    # Taken for two draws of noise, one would seem to average out: noise never repeats by chance.
    elif (
        added.answers.values.size
        and known.answers.noise_sd > 0
        and np.array_equal(added.answers.values, known.answers.values)
    ):
        raise ValueError(
            "the releases share noisy answers, so they are copies of one visit and not about "
            "different rows: combine them without same_rows=False, the one with more tables first"
        )


def _check_groups_are_kept(added: Measurement, together: Sequence[Measurement]) -> None:
    """Refuse groups of rows asked before if their identity cannot be checked.

    Raises
    ------
    ValueError
        If they are not kept.
    """
    strategy = added.strategy
    before = any(strategy.table == known.strategy.table for known in together)
    if before and strategy.grouped and strategy.groups is None:
        raise ValueError(
            "the releases protect groups of rows that are not kept, and whether these are the same "
            "groups cannot be told, so their guarantees need not add up (same_rows=False, for "
            "other rows)"
        )


def _same_answers(one: Measurement, other: Measurement) -> bool:
    """Return whether two measurements are copies of one visit: noise never repeats by chance."""
    return (
        one.strategy.table == other.strategy.table
        and one.answers.values.size > 0
        and one.strategy.same_questions(other.strategy)
        and np.array_equal(one.answers.values, other.answers.values)
    )
