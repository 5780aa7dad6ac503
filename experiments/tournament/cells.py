"""Cells: one table, split, draw of noise and budget, with the figures of every entry.

Kept as soon as measured, with the commit that measured them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from cloakgp.utils.arrays import Array
from experiments.commits import commit_of_sources
from experiments.cross_validation import root_mean_square
from experiments.framework import Tick, no_tick
from experiments.keeping import Keeping
from experiments.scores import ENDS, LEVELS, pinball_losses, ranked_score
from experiments.tournament.entries import (
    UNTOUCHED,
    Deal,
    Entry,
    Told,
    deal,
    entries,
    normal_quantiles,
)
from experiments.tournament.tables import Judged
from experiments.ways import Setting

EPSILONS = (0.1, 0.3, 1.0, 3.0)
SMALLEST_PROBABILITY = 1e-3
DIGITS = 4
# Of ways without privacy, which pass it over.
NOTHING_SPENT = Setting(epsilon=1.0)

Figures = dict[str, float]
Tunings = Mapping[str, Mapping[str, Sequence[str]]]
"""By budget and name of a rival, the best first."""


@dataclass(frozen=True)
class Budget:
    """ε, and whether there is a δ, which is 1/N² then.

    Examples
    --------
    >>> str(Budget(0.3, with_delta=True)), Budget(0.3, with_delta=True).setting(rows=100).delta
    ('ε = 0.3, δ = 1/N²', 0.0001)
    """

    epsilon: float
    with_delta: bool

    def __str__(self) -> str:
        return f"ε = {self.epsilon:g}, {'δ = 1/N²' if self.with_delta else 'no δ'}"

    def setting(self, *, rows: int, seed: int | None = None) -> Setting:
        """Return what ways are given, for so many rows."""
        delta = 1.0 / rows**2 if self.with_delta else 0.0
        return Setting(epsilon=self.epsilon, delta=delta, insecure_seed=seed)


def budgets(epsilons: Iterable[float] = EPSILONS) -> tuple[Budget, ...]:
    """Return all budgets of the protocol: first those without δ."""
    chosen = tuple(epsilons)
    return tuple(Budget(epsilon, with_delta) for with_delta in (False, True) for epsilon in chosen)


def figures_of_numbers(told: Told, dealt: Deal) -> Figures:
    """Return error, CRPS, share held and width of a prediction of numbers.

    A prediction without quantiles is given a normal law of the sd that its errors have.
    """
    truth = np.asarray(dealt.outputs_test, dtype=np.float64)
    sd = float(truth.std())
    error = root_mean_square(told.mean - truth)
    quantiles = normal_quantiles(told.mean, error) if told.quantiles is None else told.quantiles
    lower, upper = (quantiles[:, end] for end in ENDS["90"])
    return {
        "error": error / sd,
        "crps": ranked_score(pinball_losses(quantiles, truth) / sd),
        "held": float(np.mean((lower <= truth) & (truth <= upper))),
        "width": float(np.mean(upper - lower)) / sd,
    }


def figures_of_classes(told: Told, dealt: Deal) -> Figures:
    """Return log loss and share of wrong classes, over those of knowing the shares held out."""
    labels, classes = dealt.labels.labels_test, dealt.labels.classes
    shares = np.bincount(labels, minlength=classes) / len(labels)
    known = shares[shares > 0]
    return {
        "error": log_loss(told.mean, labels) / float(-(known * np.log(known)).sum()),
        "wrong": float(np.mean(told.mean.argmax(axis=1) != labels)) / (1.0 - float(shares.max())),
    }


def log_loss(probabilities: Array, labels: Any) -> float:
    """Return the mean of −log p of what came, where p is at least `SMALLEST_PROBABILITY`.

    Examples
    --------
    >>> round(log_loss(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([1, 1])), 1)
    3.8
    """
    kept = np.maximum(probabilities, SMALLEST_PROBABILITY)
    kept = kept / kept.sum(axis=1, keepdims=True)
    return float(-np.log(kept[np.arange(len(labels)), labels]).mean())


def figures_of(told: Told, dealt: Deal) -> Figures:
    """Return the figures of a prediction."""
    return (figures_of_classes if dealt.classes else figures_of_numbers)(told, dealt)


def constant(dealt: Deal) -> Told:
    """Return what an entry that fails is taken to predict."""
    if dealt.classes:
        count = len(dealt.classes)
        return Told(np.full((len(dealt.outputs_test), count), 1.0 / count))
    assert dealt.bounds is not None
    middle, width = dealt.bounds.middle, dealt.bounds.width
    mean = np.full(len(dealt.outputs_test), middle)
    return Told(mean, quantiles=mean[:, None] + (LEVELS - 0.5) * width)


def all_tunings(entry: Entry, dealt: Deal, setting: Setting) -> tuple[dict[str, Figures], float]:
    """Return the figures of an entry by tuning, and seconds of processors.

    One that fails has those of a constant, and ``failed`` = 1.
    """
    began = time.process_time()
    try:
        found = entry.predict(dealt, setting)
    except Exception:
        # Whatever a rival or ours comes to: the protocol counts it.
        failed = figures_of(constant(dealt), dealt) | {"failed": 1.0}
        return {UNTOUCHED: failed}, time.process_time() - began
    seconds = time.process_time() - began
    return {tuning: figures_of(told, dealt) for tuning, told in found.items()}, seconds


def judged_figures(
    entry: Entry, dealt: Deal, setting: Setting, *, tunings: Sequence[str]
) -> dict[str, float]:
    """Return the figures of the tuning that was settled before, and the least error of all.

    That is the first which the table allows.

    Parameters
    ----------
    entry : Entry
    dealt : Deal
    setting : Setting
    tunings : sequence of str
        Empty where nothing is tuned, or no budget is spent: the best of all then.
    """
    found, seconds = all_tunings(entry, dealt, setting)
    best = min(found, key=lambda name: found[name]["error"])
    allowed = [tuning for tuning in tunings if tuning in found]
    chosen = found[allowed[0] if allowed else best]
    figures = chosen | {"least": found[best]["error"], "seconds": seconds}
    return {name: float(f"{value:.{DIGITS}g}") for name, value in figures.items()}


@dataclass(frozen=True)
class Place:
    """Where a cell is: the table, split, draw of noise and budget; None without privacy."""

    table: str
    split: int
    draw: int
    budget: str | None


class Cells(Keeping[Place, dict[str, Figures]]):
    """Figures by place and entry, a line of JSON for each place.

    Parameters
    ----------
    path : Path or None
        None keeps nothing beyond the process.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.known: dict[Place, dict[str, Figures]] = {}
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                kept = json.loads(line)
                self.known[Place(*kept["place"])] = kept["figures"]

    def find(self, key: Place) -> dict[str, Figures] | None:
        """Return the figures of a place, or None."""
        return self.known.get(key)

    def put(self, key: Place, value: dict[str, Figures]) -> None:
        """Keep a cell, and add its line."""
        self.known[key] = value
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = {
            "place": [key.table, key.split, key.draw, key.budget],
            "commit": commit_of_sources(),
            "figures": value,
        }
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def places(
    tables: Sequence[Judged], *, splits: int, draws: int, of: Sequence[Budget]
) -> Iterator[tuple[Judged, Place, Budget | None]]:
    """Yield what is to be measured: draw by draw, in each split by split, all tables."""
    for draw in range(draws):
        for split in range(splits):
            for table in tables:
                if draw == 0:
                    yield table, Place(table.name, split, 0, None), None
                for budget in of:
                    yield table, Place(table.name, split, draw, str(budget)), budget


def measure(
    tables: Sequence[Judged],
    cells: Cells,
    *,
    splits: int,
    draws: int,
    of: Sequence[Budget],
    tunings: Mapping[str, Tunings],
    rows: int | None,
    insecure_seed: int | None = None,
    tick: Tick = no_tick,
) -> None:
    """Measure the cells that are not there yet.

    Parameters
    ----------
    tables : sequence of Judged
    cells : Cells
    splits, draws : int
    of : sequence of Budget
    tunings : mapping
        Of ``numbers`` and ``classes``, by budget and rival.
    rows : int or None
        The most that are fitted; None: all.
    insecure_seed : int or None
        Makes the noise reproducible. For tests.
    """
    for number, (table, place, budget) in enumerate(
        places(tables, splits=splits, draws=draws, of=of)
    ):
        seed = None if insecure_seed is None else insecure_seed + number
        cells.get(
            place,
            partial(
                measure_cell, table, place, budget, tunings=tunings, rows=rows, insecure_seed=seed
            ),
        )
        tick()


@lru_cache(maxsize=1)
def dealt_once(table: Judged, split: int, *, rows: int | None) -> Deal:
    """Return what is dealt, once for all budgets and draws: what rivals make of inputs is kept."""
    return deal(table, split, rows=rows)


def measure_cell(
    table: Judged,
    place: Place,
    budget: Budget | None,
    *,
    tunings: Mapping[str, Tunings],
    rows: int | None,
    insecure_seed: int | None,
) -> dict[str, Figures]:
    """Return the figures of every entry at one place.

    Parameters
    ----------
    table : Judged
    place : Place
    budget : Budget or None
        None: those without privacy.
    tunings, rows, insecure_seed
        As for `measure`.
    """
    dealt = dealt_once(table, place.split, rows=rows)
    given = None
    if budget is not None:
        given = budget.setting(rows=len(dealt.outputs), seed=insecure_seed)
    kind = tunings["classes" if table.is_of_classes else "numbers"]
    settled = {} if budget is None else kind.get(str(budget), {})
    asked = entries(classes=table.is_of_classes, whole=rows is None, setting=given)
    return {
        one.name: judged_figures(
            one, dealt, given or NOTHING_SPENT, tunings=settled.get(one.name, ())
        )
        for one in asked
    }
