"""Comparison of rivals on the same splits: errors by tuning, kept as soon as they are measured."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from cloakgp.utils.arrays import Array
from experiments.framework import Tick, no_tick
from experiments.keeping import JsonFile
from experiments.priors import Split, Table
from experiments.rivals.base import Rival
from experiments.ways import Setting

Errors = dict[str, dict[str, float]]


@dataclass(frozen=True, eq=False)
class Judged:
    """What one rival did on one table with one budget.

    Attributes
    ----------
    tunings : tuple of str
    errors : array of shape (tunings, draws)
        RMSE over the sd of the held-out outputs.
    """

    tunings: tuple[str, ...]
    errors: Array

    @classmethod
    def of(cls, draws: Sequence[Mapping[str, float]]) -> Judged:
        """Join the errors of all draws, by tuning."""
        tunings = tuple(draws[0])
        errors = [[draw[tuning] for draw in draws] for tuning in tunings]
        return cls(tunings, np.array(errors, dtype=np.float64))

    @property
    def best(self) -> int:
        """Which tuning has the least mean error: known in hindsight alone."""
        return int(self.errors.mean(axis=1).argmin())

    def in_hindsight(self) -> Array:
        """Return the errors of the best tuning, shape (draws,). They flatter who tries many."""
        chosen: Array = self.errors[self.best]
        return chosen


Budget = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Compared:
    """What all rivals did.

    Attributes
    ----------
    tables : tuple of str
    private : mapping
        (ε, δ) → name of a rival → one for each table.
    not_private : mapping
        Name of a reference → one for each table.
    """

    tables: tuple[str, ...]
    private: Mapping[Budget, Mapping[str, Sequence[Judged]]]
    not_private: Mapping[str, Sequence[Judged]]


def by_shared_tuning(judged: Sequence[Judged]) -> dict[str, Array]:
    """Return errors of shape (tables, draws) of every tuning that was tried on every table."""
    shared = set.intersection(*(set(one.tunings) for one in judged))
    return {
        tuning: np.stack([one.errors[one.tunings.index(tuning)] for one in judged])
        for tuning in judged[0].tunings
        if tuning in shared
    }


def in_hindsight(judged: Sequence[Judged]) -> Array:
    """Return the errors of the best tuning of every table, shape (tables, draws).

    They flatter who tries many.
    """
    return np.stack([one.in_hindsight() for one in judged])


def tuned_on_other_tables(judged: Sequence[Judged]) -> Array:
    """Return, for every table, the errors of the tuning that does best on the others.

    What one has whose tuning was settled before the table was seen, as a default is. Shape (tables,
    draws). With one table, or one tuning, there is nothing to settle it by, and no need.

    Examples
    --------
    >>> tuned_on_other_tables([
    ...     Judged(("a", "b"), np.array([[1.0], [2.0]])),
    ...     Judged(("a", "b"), np.array([[4.0], [3.0]])),
    ... ])
    array([[2.],
           [4.]])
    """
    if len(judged) == 1:
        return in_hindsight(judged)
    errors = np.stack(list(by_shared_tuning(judged).values()))
    of_tables = errors.mean(axis=2)
    others = of_tables.sum(axis=1, keepdims=True) - of_tables
    chosen: Array = errors[others.argmin(axis=0), np.arange(len(judged))]
    return chosen


def compare_rivals(
    tables: Sequence[Table],
    *,
    rivals: Sequence[Rival],
    budgets: Sequence[Budget],
    draws: int,
    rows: int,
    measurements: Path | None = None,
    insecure_seed: int | None = None,
    tick: Tick = no_tick,
) -> Compared:
    """Let all rivals predict all splits, with noise of their own in each.

    Parameters
    ----------
    measurements : Path, optional
        Folder where errors are kept, and taken from where they are there.
    """
    found: dict[tuple[str, Budget | None], list[Errors]] = {}
    for draw in range(draws):
        for table in tables:
            split = table.split(draw, rows=rows)
            for budget in (None, *budgets):
                place = _place(measurements, table=table, draw=draw, rows=rows, budget=budget)
                of_kind = [one for one in rivals if one.is_private is (budget is not None)]
                setting = Setting(*(budget or (1.0, 0.01)), insecure_seed=insecure_seed)
                errors = _errors_of(split, setting.for_draw(draw), rivals=of_kind, kept=place)
                found.setdefault((table.name, budget), []).append(errors)
                tick()

    def judged(name: str, budget: Budget | None) -> list[Judged]:
        return [Judged.of([draw[name] for draw in found[table.name, budget]]) for table in tables]

    names = {kind: [one.name for one in rivals if one.is_private is kind] for kind in (True, False)}
    return Compared(
        tables=tuple(table.name for table in tables),
        private={
            budget: {name: judged(name, budget) for name in names[True]} for budget in budgets
        },
        not_private={name: judged(name, None) for name in names[False]},
    )


def _place(
    folder: Path | None, *, table: Table, draw: int, rows: int, budget: Budget | None
) -> Path | None:
    """Return the file of one split and budget; None if nothing is kept."""
    if folder is None:
        return None
    name = re.sub(r"[^a-z0-9]+", "-", table.name.lower()).strip("-")
    spent = "not-private" if budget is None else f"epsilon-{budget[0]:g}-delta-{budget[1]:g}"
    return folder / f"{name}-{rows}-rows-draw-{draw}-{spent}.json"


def _errors_of(
    split: Split, setting: Setting, *, rivals: Sequence[Rival], kept: Path | None
) -> Errors:
    """Return errors by rival and tuning, those that are kept and those that are measured now."""
    errors = JsonFile(kept)

    def measured(rival: Rival) -> dict[str, float]:
        predictions = rival.predict(split, setting)
        return {tuning: split.relative_error(mean) for tuning, mean in predictions.items()}

    return {rival.name: errors.get(rival.name, partial(measured, rival)) for rival in rivals}


def steps(tables: Sequence[Table], *, budgets: Sequence[Budget], draws: int) -> int:
    """Return how often `compare_rivals` ticks."""
    return len(tables) * draws * (1 + len(budgets))


def budgets_of(epsilons: Sequence[float], deltas: Sequence[float]) -> Iterator[Budget]:
    """Yield all pairs of ε and δ, by δ.

    Examples
    --------
    >>> list(budgets_of((0.1, 1.0), (0.01,)))
    [(0.1, 0.01), (1.0, 0.01)]
    """
    return ((epsilon, delta) for delta in deltas for epsilon in epsilons)
