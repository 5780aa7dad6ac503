"""The stopping rule of `bayes`: at the gap asked for, or where nothing comes closer any more.

What bounds every strategy holds wherever it was found, so the best bound and the best strategy make
the certificate, whichever came from where.

The gap shrinks roughly by a constant factor from one certificate to the next. Over the later half
of those since no more answers help, that factor is measured; if it would not reach the gap asked
for within the certificates that are left, and the strategy does not gain a share of that gap
either, the search ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloakgp.arrays import Array
from cloakgp.design.solver import Progress

# Certificates at most, once no more answers help.
CHECKS = 150
# So many at least measure the pace. The strategy moves as long as it gains more than this share of
# the gap asked for.
PACE, STALLED = 10, 0.1


@dataclass(frozen=True, eq=False)
class Point:
    """A strategy, what it explains, and its slopes.

    Attributes
    ----------
    strategy : array of shape (k, N)
        R.
    explained : float
        g, in squared output units.
    slopes : array of shape (N, P)
        E.
    answered : array of shape (k, P)
        R E.
    """

    strategy: Array
    explained: float
    slopes: Array
    answered: Array

    @property
    def gradient(self) -> Array:
        """2 R E Eᵀ."""
        return 2.0 * self.answered @ self.slopes.T


class Record:
    """The best strategy so far, and what none can fall below.

    Parameters
    ----------
    prior_variance : float
    gap : float
        The one asked for.
    progress : callable, optional
        Called with the certified gap.
    least : float

    Attributes
    ----------
    best : Point
        The one that explains most.
    least : float
        A lower bound of the unexplained variance of every strategy.
    """

    best: Point

    def __init__(
        self,
        prior_variance: float,
        *,
        gap: float,
        progress: Progress | None = None,
        least: float = 0.0,
    ) -> None:
        self.least = least
        self._prior_variance, self._target, self._progress = prior_variance, gap, progress
        self._most_explained = -np.inf
        self._last: list[tuple[float, float]] | None = None

    def note(self, point: Point, *, excess: float) -> None:
        """Note a strategy and what the best one may explain beyond it."""
        if point.explained > self._most_explained:
            self.best, self._most_explained = point, point.explained
        self.least = max(self.least, self._prior_variance - point.explained - excess)
        if self._last is not None:
            self._last.append((self.unexplained, self.gap))
        if self._progress is not None:
            self._progress(self.gap)

    @property
    def unexplained(self) -> float:
        """What the best strategy leaves."""
        return positive(self._prior_variance - self._most_explained)

    @property
    def gap(self) -> float:
        """The certified gap of the best strategy."""
        return self.gap_of(self.unexplained)

    def gap_of(self, unexplained: float) -> float:
        """Return the certified gap of any strategy that leaves so much."""
        return max(1.0 - self.least / unexplained, 0.0)

    def expect_no_more_answers(self) -> None:
        """Measure the pace from now on."""
        self._last = [(self.unexplained, self.gap)]

    def finished(self) -> bool:
        """Whether the gap is reached, or is out of reach."""
        if self.gap <= self._target:
            return True
        if self._last is None:
            return False
        left = CHECKS + 1 - len(self._last)
        if left <= 0 or len(self._last) <= PACE:
            return left <= 0
        watched = max(PACE, len(self._last) // 2)
        unexplained, gap = self._last[-1 - watched]
        moving = unexplained - self.unexplained > STALLED * self._target * self.unexplained
        reachable = self.gap * (self.gap / gap) ** (left / watched) <= self._target
        return not (moving or reachable)


def positive(variance: float) -> float:
    """Return a variance that may be divided by."""
    return max(variance, float(np.finfo(np.float64).tiny))
