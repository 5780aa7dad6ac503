"""Checking the kept results against a fresh part of them.

Where nothing is drawn, a fresh figure has to agree within `SAME` of it. Where something is, both
are means of draws, and their difference is put to Welch's test: with both standard errors, t has
the degrees of freedom of Welch and Satterthwaite. Splits of data are the same in both, which makes
differences smaller than the test supposes: it errs towards agreement. Over all figures compared,
the chance of one false alarm is at most `ALARM` (Bonferroni). Figures of too few draws for a
standard error are passed over.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from experiments.reproduction.jobs.base import Job
from experiments.reproduction.results import Quantity, Results

# Designs are certified to a thousandth of their criterion, and differ by as much between machines.
SAME = 0.01
TINY = 1e-9
ALARM = 0.01


@dataclass(frozen=True)
class Comparison:
    """A kept figure beside a fresh one.

    Attributes
    ----------
    key : str
        ``job:quantity``.
    kept, fresh : Quantity
    p : float or None
        Of Welch's test; None where nothing is drawn.
    agrees : bool
    """

    key: str
    kept: Quantity
    fresh: Quantity
    p: float | None
    agrees: bool


def subset(
    jobs: Mapping[str, Job], results: Results, *, seconds: float, rng: np.random.Generator
) -> list[Job]:
    """Return kept jobs in a random order, as many as took so many seconds, and at least one.

    Parameters
    ----------
    seconds : float
        Of one core, by what is kept.
    rng : Generator
    """
    kept = {name: results.find(name) for name in jobs}
    names = [name for name, one in kept.items() if one is not None]
    chosen: list[Job] = []
    left = seconds
    for place in rng.permutation(len(names)):
        one = kept[names[place]]
        if one is not None and (one.seconds <= left or not chosen):
            chosen.append(jobs[names[place]])
            left -= one.seconds
    return chosen


def compare(
    kept: Mapping[str, Quantity], fresh: Mapping[str, Quantity], *, job: str
) -> list[Comparison]:
    """Compare the figures of one job; what one of both lacks disagrees."""
    nothing = Quantity(mean=math.nan)
    return [
        compared(f"{job}:{name}", kept.get(name, nothing), fresh.get(name, nothing))
        for name in sorted({*kept, *fresh})
    ]


def compared(key: str, kept: Quantity, fresh: Quantity) -> Comparison:
    """Compare two figures.

    Examples
    --------
    >>> drawn = Quantity(mean=3.0, error=0.1, draws=9)
    >>> compared("a:b", drawn, Quantity(mean=3.1, error=0.1, draws=9)).agrees
    True
    >>> compared("a:b", Quantity(mean=3.0), Quantity(mean=3.1)).agrees
    False
    """
    apart = abs(kept.mean - fresh.mean)
    if kept.draws == 0 or fresh.draws == 0:
        agrees = kept.draws == fresh.draws and apart <= SAME * abs(kept.mean) + TINY
        return Comparison(key, kept, fresh, p=None, agrees=agrees)
    if kept.error is None or fresh.error is None:
        return Comparison(key, kept, fresh, p=None, agrees=True)
    p = welch(kept, fresh)
    return Comparison(key, kept, fresh, p=p, agrees=p >= ALARM)


def welch(one: Quantity, other: Quantity) -> float:
    """Return the probability of a difference of two means as large as this, if there is none.

    Examples
    --------
    >>> welch(Quantity(1.0, 0.1, 9), Quantity(1.0, 0.1, 9))
    1.0
    """
    errors = [each.error or 0.0 for each in (one, other)]
    variances = np.square(errors)
    apart = abs(one.mean - other.mean)
    if variances.sum() == 0.0:
        return 1.0 if apart <= SAME * abs(one.mean) + TINY else 0.0
    freedom = variances.sum() ** 2 / sum(
        variance**2 / (each.draws - 1)
        for variance, each in zip(variances, (one, other), strict=True)
    )
    return float(2 * stats.t.sf(apart / np.sqrt(variances.sum()), freedom))


def judged(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """Return comparisons judged together: a p-value counts against how many there are."""
    every: Sequence[Comparison] = list(comparisons)
    tests = max(sum(one.p is not None for one in every), 1)
    return [one if one.p is None else replace(one, agrees=one.p >= ALARM / tests) for one in every]
