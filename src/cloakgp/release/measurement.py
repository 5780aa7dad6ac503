"""One visit to the private data: what was asked, and the noisy answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cloakgp.criteria import criteria_for
from cloakgp.design import Certificate
from cloakgp.privacy import Answers
from cloakgp.privacy.accounting import short_form
from cloakgp.privacy.groups import Groups, greatest_gauge
from cloakgp.privacy.labels import LabelAnswers
from cloakgp.utils.arrays import Array


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
    """

    X: Array
    values: Array
    noise_cov: Array
    insecure: bool = False

    def __repr__(self) -> str:
        return short_form(f"Published values at {len(self.values)} points", insecure=self.insecure)


@dataclass(frozen=True, eq=False)
class Measurement:
    """Questions about one table, and their noisy answers.

    Attributes
    ----------
    X : array of shape (N, D)
        The table's public inputs.
    strategy : array of shape (k, N)
        R, in the order of the rows of X.
    answers : Answers
    X_query : array of shape (P, D)
        Where predictions were asked for.
    reconstruction : array of shape (P, k) or None
        L, with L R the cloaking matrix at X_query; None where the answers were not chosen to
        reconstruct anything (criterion "bayes").
    certificate : Certificate
    table : int
        Measurements with the same number are about the same rows of the same table.
    query_weights : array of shape (P,) or None
        How much the query points mattered; all alike if None.
    representers : array of shape (N, k) or None
        For whole functions: with answers a about the prior mean m, the raw prediction at any input
        is m + k(., X) representers a (`cloakgp.models.rkhs.FunctionQuestions`).
    groups : array of shape (N,) or None
        Public: which group each row belongs to, from 0. All rows of a group are protected together;
        None: every row on its own.
    """

    X: Array
    strategy: Array
    answers: Answers
    X_query: Array
    reconstruction: Array | None
    certificate: Certificate
    table: int = 0
    query_weights: Array | None = None
    representers: Array | None = None
    groups: Groups | None = None

    def residuals(self, mean: float) -> Array:
        """Return the answers about a prior mean, R (y − mean) + noise, shape (k,)."""
        shift = self.answers.centre - mean
        residuals: Array = self.answers.values + shift * self.strategy.sum(axis=1)
        return residuals

    def published(self, mean: float) -> Published:
        """Return the raw predictions mean + C (y − mean) + noise at the queried points.

        Raises
        ------
        ValueError
            If the answers do not determine C y.
        """
        if self.reconstruction is None:
            raise ValueError(no_raw_predictions(self.certificate))
        values = mean + self.reconstruction @ self.residuals(mean)
        noise_root = self.answers.noise_sd * self.reconstruction
        return Published(
            X=self.X_query,
            values=values,
            noise_cov=noise_root @ noise_root.T,
            insecure=self.answers.insecure,
        )

    @property
    def attained_mu(self) -> float:
        """Width of the bounds times the longest column over the noise sd, recomputed.

        With groups, times the greatest gauge of a group (`cloakgp.privacy.groups`).
        """
        if self.answers.noise_sd == 0:
            return 0.0
        width = self.answers.bounds[1] - self.answers.bounds[0]
        if self.groups is not None:
            return width * greatest_gauge(self.strategy, groups=self.groups) / self.answers.noise_sd
        longest = float(np.sqrt(np.square(self.strategy).sum(axis=0).max()))
        return width * longest / self.answers.noise_sd


def no_raw_predictions(certificate: Certificate) -> str:
    """Say that answers do not determine raw predictions, and which would."""
    others = " or ".join(repr(each.name) for each in criteria_for("many rows") if each.raw)
    return (
        f"the answers of criterion={certificate.criterion!r} do not determine raw predictions: use "
        f"predict, or criterion={others}"
    )


def stacked(
    parts: Sequence[Sequence[Measurement]], *, same_rows: bool | None
) -> tuple[Measurement, ...]:
    """Put measurements of several releases together, numbering their tables anew.

    Answers that are already there (the same release twice) are not counted twice.

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
    for part in parts[1:]:
        tables = renumbered(
            [(one.table, one.X) for one in together],
            [(one.table, one.X) for one in part],
            same_rows=same_rows,
        )
        for one in part:
            moved = replace(one, table=tables[one.table])
            check_noise_is_new(
                moved.answers,
                (other.answers for other in together if other.table != moved.table),
            )
            if not all(
                same_groups(moved.groups, other.groups)
                for other in together
                if other.table == moved.table
            ):
                raise ValueError(
                    "the releases protect different groups of the same rows, so their guarantees "
                    "do not add up: use the same groups (or same_rows=False, for other rows)"
                )
            if not any(_same_answers(moved, other) for other in together):
                together.append(moved)
    return tuple(together)


def check_noise_is_new(
    answers: Answers | LabelAnswers, known: Iterable[Answers | LabelAnswers]
) -> None:
    """Refuse copies of one visit that are said to be about different rows.

    Their noise was drawn once: taken for two draws, it would seem to average out.

    Parameters
    ----------
    answers : Answers or LabelAnswers
    known : iterable of Answers or LabelAnswers
        About other rows.

    Raises
    ------
    ValueError
        If some of these have the same values: independent noise never repeats by chance.
    """
    if answers.values.size and any(
        other.noise_sd > 0 and np.array_equal(answers.values, other.values) for other in known
    ):
        raise ValueError(
            "the releases share noisy answers, so they are copies of one visit and not about "
            "different rows: combine them without same_rows=False, the one with more tables first"
        )


def renumbered(
    known: Sequence[tuple[int, Array]],
    added: Sequence[tuple[int, Array]],
    *,
    same_rows: bool | None,
) -> dict[int, int]:
    """Return the numbers that tables of another release get beside those that are there.

    Parameters
    ----------
    known, added : sequence of (number, X)
    same_rows : bool or None
        Whether tables with equal inputs are the same rows. None: equal inputs decide.

    Raises
    ------
    ValueError
        If ``same_rows`` is True and the inputs differ.

    Examples
    --------
    >>> one, other = np.zeros((2, 1)), np.ones((2, 1))
    >>> renumbered([(0, one)], [(0, other), (1, one)], same_rows=None)
    {0: 1, 1: 0}
    """
    rows = dict(known)
    numbers: dict[int, int] = {}
    for table, X in added:
        if table in numbers:
            continue
        # Two tables of one release are different rows, whatever their inputs.
        alike = [
            number
            for number, other in rows.items()
            if same_rows is not False
            and number not in numbers.values()
            and np.array_equal(other, X)
        ]
        if same_rows and not alike:
            raise ValueError("same_rows=True, but the releases have different inputs")
        numbers[table] = alike[0] if alike else 1 + max([*rows, *numbers.values()])
    return numbers


def same_groups(one: Groups | None, other: Groups | None) -> bool:
    """Return whether two measurements protect the same groups of rows."""
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)


def _same_answers(one: Measurement, other: Measurement) -> bool:
    """Return whether two measurements are copies of one visit: noise never repeats by chance."""
    return (
        one.table == other.table
        and len(one.strategy) > 0
        and np.array_equal(one.strategy, other.strategy)
        and np.array_equal(one.answers.values, other.answers.values)
    )
