"""Reach of bands: where those of later stages are cut if an interval was looked for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cloakgp.privacy import OutputBounds
from cloakgp.privacy.questions.counts import CountQuestion
from cloakgp.release import DenseStrategy, Measurement
from cloakgp.release.bands import RowLimits

# How far bands go beyond an interval, in its widths.
REACH = 1.0


def reach_of_bands(found: OutputBounds, measurements: Sequence[Measurement]) -> OutputBounds:
    """Return where bands of later stages are cut: beyond an interval that was found, if one was.

    The interval keeps questions about outputs themselves cheap, and the prior to scale. Bands cost
    what they are wide, wherever they are; so where answers say that some outputs lie at an end, or
    beyond it, their bands may follow them, by its width on either side and within the declared
    bounds; of several outputs that are read in passes, within the widest of these.

    Parameters
    ----------
    found : OutputBounds
        By which first stages go.
    measurements : sequence of Measurement
        Of one release: counts say what was declared.
    """
    ends = [one.question.ends for one in measurements if isinstance(one.question, CountQuestion)]
    if not ends:
        return found
    further = REACH * found.width
    lowest, highest = min(lo for lo, _ in ends), max(hi for _, hi in ends)
    return OutputBounds(max(lowest, found.lo - further), min(highest, found.hi + further))


def reach_of_rows(
    found: OutputBounds, measurements: Sequence[Measurement], *, rows: int
) -> OutputBounds | RowLimits:
    """Return where bands of rows that are kept are cut; of several outputs row by row.

    As `reach_of_bands`. Counts of some rows alone are counts of one output
    of several, and say what was declared of that.

    Parameters
    ----------
    found : OutputBounds
        By which first stages go.
    measurements : sequence of Measurement
        Of one release.
    rows : int
        N.
    """
    parts: list[tuple[NDArray[np.bool_], CountQuestion]] = [
        (one.strategy.matrix[0] > 0, one.question)
        for one in measurements
        if isinstance(one.question, CountQuestion)
        and isinstance(one.strategy, DenseStrategy)
        and one.strategy.n_rows == rows
        and not one.strategy.matrix.all()
    ]
    if not parts:
        return reach_of_bands(found, measurements)
    lowest, highest = np.full(rows, found.lo), np.full(rows, found.hi)
    further = REACH * found.width
    for counted, question in parts:
        lo, hi = question.ends
        lowest[counted] = max(lo, found.lo - further)
        highest[counted] = min(hi, found.hi + further)
    return RowLimits(lo=lowest, hi=highest)
