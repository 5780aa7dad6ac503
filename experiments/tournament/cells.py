"""Cells: one table, split, draw of noise and budget, with the figures of every entry and tuning.

Kept as soon as measured, with the commit that measured them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from cloakgp.utils.arrays import Array
from experiments.commits import commit_of_sources
from experiments.cross_validation import root_mean_square
from experiments.framework import Tick, no_tick
from experiments.keeping import Keeping
from experiments.scores import ENDS, LEVELS, pinball_losses, ranked_score
from experiments.tournament.entries import (
    OURS,
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

# The number of the first split that is measured; those of the first round are smaller.
FIRST_SPLIT = 30
# What is kept of every tuning of several; of a single one everything is.
OF_EVERY_TUNING = ("error", "crps", "wrong")

Figures = dict[str, float]
ByEntry = dict[str, Figures]
ByTuning = dict[str, dict[str, Figures]]
"""By entry and tuning."""
Content = TypeVar("Content")


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

    A prediction without quantiles is given a normal law of the sd that its errors have, within the
    bounds, which are public.
    """
    assert dealt.bounds is not None
    truth = np.asarray(dealt.outputs_test, dtype=np.float64)
    sd = float(truth.std())
    error = root_mean_square(told.mean - truth)
    quantiles = told.quantiles
    if quantiles is None:
        quantiles = dealt.bounds.clip(normal_quantiles(told.mean, error))
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


def figures_by_tuning(entry: Entry, dealt: Deal, setting: Setting) -> dict[str, Figures]:
    """Return the figures of an entry by tuning.

    One that fails has those of a constant, and ``failed`` = 1.
    """
    try:
        told = entry.predict(dealt, setting)
    except Exception:
        # Whatever a rival or ours comes to: the protocol counts it.
        found = {UNTOUCHED: figures_of(constant(dealt), dealt) | {"failed": 1.0}}
    else:
        found = {tuning: figures_of(one, dealt) for tuning, one in told.items()}
    return {
        tuning: {
            name: float(f"{value:.{DIGITS}g}")
            for name, value in figures.items()
            if len(found) == 1 or name in OF_EVERY_TUNING
        }
        for tuning, figures in found.items()
    }


@dataclass(frozen=True)
class Place:
    """Where a cell is: the table, split, draw of noise and budget; None without privacy."""

    table: str
    split: int
    draw: int
    budget: str | None


class Cells(Keeping[Place, Content], Generic[Content]):
    """Figures by place, a line of JSON for each.

    Parameters
    ----------
    path : Path or None
        None keeps nothing beyond the process.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.known: dict[Place, Content] = {}
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                kept = json.loads(line)
                if "place" in kept:
                    self.known[Place(*kept["place"])] = self.decode(kept["figures"])
                else:
                    self.note(kept)

    def find(self, key: Place) -> Content | None:
        """Return the figures of a place, or None."""
        return self.known.get(key)

    def put(self, key: Place, value: Content) -> None:
        """Keep a cell, and add its line."""
        self.known[key] = value
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        figures, *notes = self.encode(value)
        line = {
            "place": [key.table, key.split, key.draw, key.budget],
            "commit": commit_of_sources(),
            "figures": figures,
        }
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(
                json.dumps(each, ensure_ascii=False, separators=(",", ":")) + "\n"
                for each in (*notes, line)
            )

    def encode(self, value: Content) -> tuple[Any, ...]:
        """Return what a line holds of a cell, and lines that are to be read before it."""
        return (value,)

    def decode(self, figures: Any) -> Content:
        """Return a cell from what its line holds."""
        found: Content = figures
        return found

    def note(self, line: Any) -> None:
        """Take in a line that is of no cell."""
        raise ValueError(f"{self.path}: a line without a place: {line}")


class TriedCells(Cells[ByTuning]):
    """Figures by place, entry and tuning; names of tunings have lines of their own, once."""

    def __init__(self, path: Path | None) -> None:
        self.names: dict[str, list[str]] = {}
        super().__init__(path)

    def encode(self, value: ByTuning) -> tuple[Any, ...]:
        """Return figures in rows, by the numbers of tunings, and the names that are new."""
        fresh: dict[str, list[str]] = {}
        figures: dict[str, Any] = {}
        for entry, by_tuning in value.items():
            if len(by_tuning) == 1:
                figures[entry] = by_tuning
                continue
            known = self.names.setdefault(entry, [])
            fresh[entry] = [tuning for tuning in by_tuning if tuning not in known]
            known += fresh[entry]
            heads = list(next(iter(by_tuning.values())))
            rows = [
                [known.index(tuning), *(one[head] for head in heads)]
                for tuning, one in by_tuning.items()
            ]
            figures[entry] = {"heads": heads, "rows": rows}
        fresh = {entry: names for entry, names in fresh.items() if names}
        return (figures, {"tunings": fresh}) if fresh else (figures,)

    def decode(self, figures: Any) -> ByTuning:
        """Return figures by entry and tuning."""
        return {
            entry: (
                {
                    self.names[entry][number]: dict(zip(kept["heads"], row, strict=True))
                    for number, *row in kept["rows"]
                }
                if "rows" in kept
                else kept
            )
            for entry, kept in figures.items()
        }

    def note(self, line: Any) -> None:
        """Take in names of tunings."""
        for entry, names in line["tunings"].items():
            self.names.setdefault(entry, []).extend(names)


def places(
    tables: Sequence[Judged], *, splits: int, draws: int, of: Sequence[Budget]
) -> Iterator[tuple[Judged, Place, Budget | None]]:
    """Yield what is to be measured: draw by draw, in each split by split, all tables."""
    for draw in range(draws):
        for split in range(FIRST_SPLIT, FIRST_SPLIT + splits):
            for table in tables:
                if draw == 0:
                    yield table, Place(table.name, split, 0, None), None
                for budget in of:
                    yield table, Place(table.name, split, draw, str(budget)), budget


def measure(
    tables: Sequence[Judged],
    cells: Cells[ByTuning],
    *,
    splits: int,
    draws: int,
    of: Sequence[Budget],
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
            partial(measure_cell, table, place, budget, rows=rows, insecure_seed=seed),
        )
        tick()


def measure_again(
    tables: Sequence[Judged],
    cells: Cells[ByEntry],
    *,
    where: Cells[ByTuning],
    of: Sequence[Budget],
    rows: int | None,
    tick: Tick = no_tick,
) -> None:
    """Measure ours alone, at every place where all entries are kept and it is not yet.

    Parameters
    ----------
    tables : sequence of Judged
    cells : Cells
        Ours, as measured again.
    where : Cells
        Of every entry.
    of : sequence of Budget
    rows : int or None
        The most that are fitted; None: all.
    """
    for table, budget, place in places_again(tables, where=where, of=of):
        cells.get(place, partial(_ours, table, place, budget, rows=rows))
        tick()


def places_again(
    tables: Sequence[Judged], *, where: Cells[ByTuning], of: Sequence[Budget]
) -> Iterator[tuple[Judged, Budget, Place]]:
    """Yield where ours is to be measured again, split by split."""
    named, budgeted = {one.name: one for one in tables}, {str(one): one for one in of}
    for place in sorted(where.known, key=lambda one: (one.draw, one.split)):
        if place.table in named and place.budget in budgeted:
            yield named[place.table], budgeted[place.budget], place


def _ours(table: Judged, place: Place, budget: Budget, *, rows: int | None) -> ByEntry:
    """Return the figures of ours at one place."""
    found = measure_cell(table, place, budget, rows=rows, insecure_seed=None, only=OURS)
    [figures] = found[OURS].values()
    return {OURS: figures}


@lru_cache(maxsize=1)
def dealt_once(table: Judged, split: int, *, rows: int | None) -> Deal:
    """Return what is dealt, once for all budgets and draws: what rivals make of inputs is kept."""
    return deal(table, split, rows=rows)


def measure_cell(
    table: Judged,
    place: Place,
    budget: Budget | None,
    *,
    rows: int | None,
    insecure_seed: int | None,
    only: str | None = None,
) -> ByTuning:
    """Return the figures of every entry and tuning at one place.

    Parameters
    ----------
    table : Judged
    place : Place
    budget : Budget or None
        None: those without privacy.
    rows, insecure_seed
        As for `measure`.
    only : str, optional
        The one entry that is asked.
    """
    dealt = dealt_once(table, place.split, rows=rows)
    given = None
    if budget is not None:
        given = budget.setting(rows=len(dealt.outputs), seed=insecure_seed)
    asked = entries(classes=table.is_of_classes, whole=rows is None, setting=given)
    return {
        one.name: figures_by_tuning(one, dealt, given or NOTHING_SPENT)
        for one in asked
        if only in (None, one.name)
    }
