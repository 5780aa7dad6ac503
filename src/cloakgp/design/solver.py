r"""Optimal design by weights on columns, to a certified gap.

Three standard pieces, in the order in which they help:

1. multiplicative updates u_j ← u_j g_j^p from uniform weights, which find the region of the optimum
   in a few passes over all columns (Silvey, Titterington and Torsney 1978);
2. a primal-dual interior-point method on a working set of columns
   (`cloakgp.design.interior_point`);
3. after every one of its steps, a pass over all columns, which costs less than the step: it is the
   certificate, lets columns of large gains enter, and idle ones leave
   (`cloakgp.design.screening`).

Every iterate is a usable design; see `cloakgp.design.strategy`. For columns that come in parts,
solve for some, find those of the others whose gains exceed 1 by ``iterate.gains``, drop those that
`cloakgp.design.screening` rules out, and solve again; from scratch, which is faster than from the
weights found before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from cloakgp.design.interior_point import newton_step
from cloakgp.design.objectives import Iterate, factorise
from cloakgp.design.screening import Indices, entering, first_columns, leaving
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import CriterionName

MULTIPLICATIVE_POWER = {"logdet": 1.0, "trace": 2.0}
MULTIPLICATIVE_STEPS = 12
ROUNDS = 200
# So many steps without a smaller gap, and float64 has no more to give.
PATIENCE = 25
# Least share of the mean weight, and least slack, that interior points begin with.
FIRST_WEIGHT, FIRST_SLACK = 1e-3, 1e-2
# Slack of a column that enters, as a share of the gap: none would leave it without weight.
ENTERING_SLACK = 0.1

Progress = Callable[[float], None]


@dataclass(frozen=True)
class ColumnWeights:
    """Weights on the simplex and the relative gap that they certify.

    Attributes
    ----------
    weights : array of shape (n,)
    gap : float
        max_j g_j − 1 over all columns; zero at the optimum.
    passes : int
        Passes over all columns that were made.
    iterate : Iterate
        The design of these weights, factorised: its ``gains`` at other columns say which of them
        the design falls short of, and ``noise_root`` is what to release with.
    """

    weights: Array
    gap: float
    passes: int
    iterate: Iterate = field(repr=False, compare=False)


def optimal_weights(
    columns: Array,
    *,
    criterion: CriterionName,
    gap: float,
    rounds: int = ROUNDS,
    progress: Progress | None = None,
) -> ColumnWeights:
    """Maximise the criterion's dual over the simplex.

    Parameters
    ----------
    columns : array of shape (r, n)
        Of full row rank, with no zero column.
    criterion : {"logdet", "trace"}
    gap : float
        The relative gap to stop at.
    rounds : int
        Interior-point steps at most.
    progress : callable, optional
        Called with the gap certified so far after every pass over all columns.

    Returns
    -------
    ColumnWeights
        The best design seen, with the gap that it certifies: larger than asked if the rounds or the
        digits ran out, which costs accuracy and never privacy.

    Examples
    --------
    >>> found = optimal_weights(np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]]),
    ...                         criterion="logdet", gap=1e-6)
    >>> found.weights.round(3)
    array([0.5, 0.5, 0. ])
    >>> found.iterate.gains(np.array([[2.0], [0.0]])).round(3)
    array([4.])
    """
    record = _Record(columns, gap=gap, progress=progress)
    weights, working = _multiplicative(record, criterion=criterion)
    inner = np.maximum(weights[working], min(FIRST_WEIGHT, record.gap) / len(working))
    inner /= inner.sum()
    slack = np.zeros(0)
    for step in range(rounds + 1):
        if record.finished():
            break
        part = columns[:, working]
        iterate = factorise(criterion, part, inner)
        gains = record.certify(inner, iterate, working=working)
        if len(slack) == 0:
            slack = np.maximum(1.0 - gains[working], min(FIRST_SLACK, record.gap))
        if step == rounds or record.finished():
            break
        now = max(float(gains.max()) - 1.0, 0.0)
        out = leaving(part, inner, slack, iterate=iterate, gains=gains[working], gap=now)
        into = entering(gains, working, gap=gap)
        if len(out) or len(into):
            # On the path that the others follow: the same product of weight and slack.
            pairing = float(inner @ slack) / len(inner)
            new = np.maximum(np.abs(1.0 - gains[into]), ENTERING_SLACK * now)
            working = np.concatenate([np.delete(working, out), into])
            inner = np.concatenate([np.delete(inner, out), pairing / new])
            inner /= inner.sum()
            slack = np.concatenate([np.delete(slack, out), new])
            part = columns[:, working]
            iterate = factorise(criterion, part, inner)
        inner, slack = newton_step(
            inner, slack, gains=iterate.gains(part), curvature=iterate.curvature(part)
        )
        inner /= inner.sum()
    return record.best()


class _Record:
    """The best design so far."""

    def __init__(self, columns: Array, *, gap: float, progress: Progress | None) -> None:
        self.columns = columns
        self.gap = np.inf
        self._target, self._progress = gap, progress
        self._best: ColumnWeights | None = None
        self._passes = 0

    def certify(self, weights: Array, iterate: Iterate, *, working: Indices | None = None) -> Array:
        """Return the gains of all columns, and keep the design if it is the best."""
        gains = iterate.gains(self.columns)
        certified = max(float(gains.max()) - 1.0, 0.0)
        self._passes += 1
        if certified < self.gap and not iterate.raised:
            everywhere = weights
            if working is not None:
                everywhere = np.zeros(self.columns.shape[1])
                everywhere[working] = weights
            self.gap = certified
            self._best = ColumnWeights(
                weights=everywhere, gap=certified, passes=self._passes, iterate=iterate
            )
        if self._progress is not None and self._best is not None:
            self._progress(self.gap)
        return gains

    def finished(self) -> bool:
        """Whether the gap is reached, or has not become smaller for long."""
        stalled = self._best is not None and self._passes - self._best.passes >= PATIENCE
        return self.gap <= self._target or stalled

    def best(self) -> ColumnWeights:
        """Return it."""
        assert self._best is not None
        return self._best


def _multiplicative(record: _Record, *, criterion: CriterionName) -> tuple[Array, Indices]:
    """Return uniform weights after some multiplicative updates, and the columns to work on."""
    count = record.columns.shape[1]
    weights = np.full(count, 1.0 / count)
    for step in range(MULTIPLICATIVE_STEPS + 1):
        iterate = factorise(criterion, record.columns, weights, rough=True)
        gains = record.certify(weights, iterate)
        if record.finished() or step == MULTIPLICATIVE_STEPS:
            break
        weights = weights * gains ** MULTIPLICATIVE_POWER[criterion]
        weights /= weights.sum()
    if iterate.raised:
        iterate = factorise(criterion, record.columns, weights)
        gains = record.certify(weights, iterate)
    return weights, first_columns(record.columns, weights, iterate=iterate, gains=gains)
