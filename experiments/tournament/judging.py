"""Judging: of every rival the tuning that does best on all other tables at the same budget."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from experiments.tournament.cells import ByEntry, ByTuning, Cells, Figures, Place

# On which a tuning must have been tried, if there are so many.
FEWEST_TABLES = 3

Errors = dict[str, dict[str, float]]
"""Mean errors by table and tuning."""


def settle_by_others(tried: Cells[ByTuning]) -> Cells[ByEntry]:
    """Return cells with the figures of one tuning of each entry, and the least error of all.

    Settled is, for each table and budget, the tuning with the least regret on the other tables that
    are kept. Nothing of a table has a part in how rivals are tuned for it; all rows and outputs of
    the others have, without any price in privacy. Without privacy, and where there is no other
    table, it is the best in every single cell.

    Parameters
    ----------
    tried : Cells
        By entry and tuning.
    """
    settled: Cells[ByEntry] = Cells(None)
    for budget in dict.fromkeys(place.budget for place in tried.known):
        of_budget = {place: kept for place, kept in tried.known.items() if place.budget == budget}
        errors = _errors_by_entry(of_budget)
        for place, kept in of_budget.items():
            settled.known[place] = {
                entry: _settled(
                    by_tuning,
                    {} if budget is None else mean_regrets(errors[entry], but=place.table),
                )
                for entry, by_tuning in kept.items()
            }
    return settled


def _settled(by_tuning: Mapping[str, Figures], regrets: Mapping[str, float]) -> Figures:
    """Return the figures of the least regret; where none is known, those of the least error."""
    best = min(by_tuning, key=lambda name: by_tuning[name]["error"])
    known = {name: regrets[name] for name in by_tuning if name in regrets}
    chosen = min(known, key=lambda name: known[name]) if known else best
    return by_tuning[chosen] | {"least": by_tuning[best]["error"]}


def _errors_by_entry(tried: Mapping[Place, ByTuning]) -> dict[str, Errors]:
    found: dict[str, dict[str, dict[str, list[float]]]] = {}
    for place, kept in tried.items():
        for entry, by_tuning in kept.items():
            of_table = found.setdefault(entry, {}).setdefault(place.table, {})
            for tuning, figures in by_tuning.items():
                of_table.setdefault(tuning, []).append(figures["error"])
    return {
        entry: {
            table: {tuning: float(np.mean(errors)) for tuning, errors in by_tuning.items()}
            for table, by_tuning in by_table.items()
        }
        for entry, by_table in found.items()
    }


def mean_regrets(errors: Mapping[str, Mapping[str, float]], *, but: str) -> dict[str, float]:
    """Return how much worse a tuning is than the best of its table, in the mean over other tables.

    Over those that allow it, so that what few tables allow is compared fairly; only tunings that
    `FEWEST_TABLES` allow.

    Parameters
    ----------
    errors : mapping
        By table and tuning.
    but : str
        The table that is left out.

    Examples
    --------
    >>> errors = {"left out": {"a": 9.0, "b": 0.0},
    ...           "hard": {"a": 5.0, "b": 6.0}, "easy": {"a": 1.25, "b": 1.0}}
    >>> mean_regrets(errors, but="left out")
    {'a': 0.125, 'b': 0.5}
    """
    others = {table: by_tuning for table, by_tuning in errors.items() if table != but}
    regrets: dict[str, list[float]] = {}
    for by_tuning in others.values():
        least = min(by_tuning.values())
        for tuning, error in by_tuning.items():
            regrets.setdefault(tuning, []).append(error - least)
    fewest = min(FEWEST_TABLES, max(map(len, regrets.values()), default=0))
    return {name: float(np.mean(each)) for name, each in regrets.items() if len(each) >= fewest}
