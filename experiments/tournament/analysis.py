"""Comparison of entries over tables: clustered intervals, permutation tests, Holm's correction.

The mean over a table's cells is one observation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from cloakgp.utils.arrays import Array
from experiments.tournament.cells import Budget, ByEntry, Cells, Figures
from experiments.tournament.entries import OURS
from experiments.tournament.tables import Judged

RESAMPLES, MOST_PERMUTATIONS = 9_999, 99_999
SIGNIFICANT = 0.05
FEWEST_TABLES = 3

Verdict = Literal["ahead", "behind", "not told apart"]


@dataclass(frozen=True, eq=False)
class Observed:
    """One figure of all entries with one budget, a mean of each table's cells.

    Attributes
    ----------
    tables : tuple of str
        Those for which all entries have a cell.
    entries : mapping
        Name → array of shape (tables,).
    cells : int
        The fewest of a table.
    """

    tables: tuple[str, ...]
    entries: dict[str, Array]
    cells: int


def observe(
    cells: Cells[ByEntry], tables: Sequence[Judged], *, budget: Budget | None, figure: str
) -> Observed:
    """Gather a figure of all entries, by the splits and draws that every table has.

    Parameters
    ----------
    cells : Cells
    tables : sequence of Judged
    budget : Budget or None
        None: without privacy.
    figure : str
        As `experiments.tournament.cells` names it.
    """
    label = None if budget is None else str(budget)
    found: dict[str, list[dict[str, Figures]]] = {table.name: [] for table in tables}
    for place, figures in sorted(cells.known.items(), key=lambda one: (one[0].draw, one[0].split)):
        if place.budget == label and place.table in found:
            found[place.table].append(figures)
    least = min((len(kept) for kept in found.values() if kept), default=0)
    measured = {name: kept[:least] for name, kept in found.items() if kept}
    names = list(dict.fromkeys(name for kept in measured.values() for name in kept[0]))
    return Observed(
        tables=tuple(measured),
        entries={
            name: np.array(
                [
                    np.mean([one[name].get(figure, 0.0) for one in kept])
                    for kept in measured.values()
                ]
            )
            for name in names
        },
        cells=least,
    )


@dataclass(frozen=True)
class Difference:
    """How much larger a rival's figure is than ours, over tables.

    Attributes
    ----------
    mean, lower, upper : float
        With a 95 % interval by the bootstrap of tables; NaN for fewer than three tables.
    p : float
        Of a permutation test, corrected.
    wins : int
        Tables where the rival's is smaller.
    tables : int
    """

    mean: float
    lower: float
    upper: float
    p: float
    wins: int
    tables: int

    @property
    def verdict(self) -> Verdict:
        """What may be said of us, where smaller is better."""
        if self.p >= SIGNIFICANT:
            return "not told apart"
        return "ahead" if self.mean > 0 else "behind"


def differences(observed: Observed, *, seed: int = 0) -> dict[str, Difference]:
    """Compare every rival with ours; p-values are corrected over the rivals.

    Parameters
    ----------
    observed : Observed
    seed : int
        Of resamples and permutations. No noise is drawn here.
    """
    ours = observed.entries[OURS]
    rivals = {name: rival - ours for name, rival in observed.entries.items() if name != OURS}
    raw = [sign_test(one, seed=seed) for one in rivals.values()]
    found = {}
    for (name, one), p in zip(rivals.items(), holm(raw), strict=True):
        lower, upper = interval(one, seed=seed)
        found[name] = Difference(float(one.mean()), lower, upper, p, int(np.sum(one < 0)), len(one))
    return found


def interval(values: Array, *, seed: int) -> tuple[float, float]:
    """Return a 95 % interval of the mean by the bootstrap (BCa); NaN where there are too few.

    Examples
    --------
    >>> lower, upper = interval(np.arange(20.0), seed=0)
    >>> bool(lower < 9.5 < upper)
    True
    """
    if len(values) < FEWEST_TABLES or np.ptp(values) == 0.0:
        return np.nan, np.nan
    found = stats.bootstrap(
        (values,), np.mean, n_resamples=RESAMPLES, method="BCa", rng=np.random.default_rng(seed)
    ).confidence_interval
    return float(found.low), float(found.high)


def sign_test(values: Array, *, seed: int) -> float:
    """Return the p-value of differences that are as likely to be of either sign.

    Examples
    --------
    >>> sign_test(np.ones(5), seed=0)  # 2 of 2⁵ choices of signs are as extreme
    0.0625
    """
    if len(values) == 1:
        return 1.0
    found = stats.permutation_test(
        (values,),
        np.mean,
        permutation_type="samples",
        vectorized=True,
        n_resamples=2**18 if len(values) <= 18 else MOST_PERMUTATIONS,
        rng=np.random.default_rng(seed),
    )
    return float(found.pvalue)


def holm(p: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number (Holm 1979).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p)
    steps = np.asarray(p)[order] * np.arange(len(p), 0, -1)
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(one) for one in corrected]
