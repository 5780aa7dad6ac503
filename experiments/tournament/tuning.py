"""Tuning of rivals: for each budget the one that does best on other tables.

Numbers: the twelve tables that our own defaults were chosen on. Classes: the four of
`experiments.randomised_labels`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import ShuffleSplit

from experiments.framework import Tick, no_tick
from experiments.keeping import JsonFile
from experiments.priors import Table, tables
from experiments.randomised_labels import HELD_OUT, label_tables
from experiments.tournament.cells import Budget, all_tunings
from experiments.tournament.entries import OURS, ROWS, Deal, Entry, entries
from experiments.ways import Setting

FILE = Path(__file__).parent / "tunings.json"
SPLITS = 4
KINDS = ("numbers", "classes")


def known_tunings() -> dict[str, dict[str, dict[str, list[str]]]]:
    """Return the tunings that were settled beforehand: of what, by budget, by rival."""
    found: dict[str, dict[str, dict[str, list[str]]]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def write_tunings(settled: Mapping[str, Mapping[str, Mapping[str, Sequence[str]]]]) -> None:
    """Write the tunings that cells are judged by."""
    FILE.write_text(json.dumps(settled, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def deals(kind: str, *, split: int, rows: int, count: int | None = None) -> Iterator[Deal]:
    """Yield a split of each table that rivals are tuned on.

    Parameters
    ----------
    kind : {"numbers", "classes"}
    split : int
    rows : int
        The most that are fitted.
    count : int, optional
        Of tables.
    """
    if kind == "numbers":
        for table in list(tables())[:count]:
            yield _deal_of_numbers(table, split=split, rows=rows)
        return
    for load in list(label_tables().values())[:count]:
        X, y = load()
        train, test = next(ShuffleSplit(1, test_size=HELD_OUT, random_state=split).split(X))
        yield Deal(
            columns=pd.DataFrame(X[train[:rows]]),
            outputs=y[train[:rows]].astype(str),
            columns_test=pd.DataFrame(X[test]),
            outputs_test=y[test].astype(str),
            bounds=None,
            classes=tuple(sorted(set(y.astype(str)))),
        )


def _deal_of_numbers(table: Table, *, split: int, rows: int) -> Deal:
    dealt = table.split(split, rows=rows)
    return Deal(
        columns=pd.DataFrame(dealt.X),
        outputs=dealt.outputs,
        columns_test=pd.DataFrame(dealt.X_test),
        outputs_test=dealt.outputs_test,
        bounds=dealt.bounds,
    )


def tune(
    kind: str,
    *,
    of: Sequence[Budget],
    splits: int = SPLITS,
    rows: int = ROWS,
    count: int | None = None,
    kept: Path | None = None,
    insecure_seed: int | None = None,
    tick: Tick = no_tick,
) -> dict[str, dict[str, list[str]]]:
    """Return the tunings of each rival by their mean errors, the least first, by budget.

    Only the best of those that begin alike, up to the first comma: a table that does not allow it
    may allow another. A tuning that some table does not allow is left out.

    Parameters
    ----------
    kind : {"numbers", "classes"}
    of : sequence of Budget
    splits, rows, count : int
    kept : Path, optional
        File where errors are kept, and taken from.
    insecure_seed : int or None
        Makes the noise reproducible. For tests.
    """
    errors = JsonFile(kept)
    sums: dict[str, dict[str, dict[str, list[float]]]] = {}
    for split in range(splits):
        for place, dealt in enumerate(deals(kind, split=split, rows=rows, count=count)):
            for budget in of:
                setting = budget.setting(rows=len(dealt.outputs), seed=insecure_seed)
                for rival in entries(classes=kind == "classes", setting=setting):
                    if rival.name == OURS:
                        continue
                    key = f"{kind}, table {place}, split {split}, {budget}, {rival.name}"
                    found = errors.get(key, partial(errors_by_tuning, rival, dealt, setting))
                    of_rival = sums.setdefault(str(budget), {}).setdefault(rival.name, {})
                    for tuning, error in found.items():
                        of_rival.setdefault(tuning, []).append(error)
            tick()
    return {
        budget: {name: ranked(found) for name, found in by_rival.items()}
        for budget, by_rival in sums.items()
    }


def errors_by_tuning(rival: Entry, dealt: Deal, setting: Setting) -> dict[str, float]:
    """Return the error of every tuning of a rival, rounded for keeping."""
    found, _ = all_tunings(rival, dealt, setting)
    return {name: round(one["error"], 5) for name, one in found.items()}


def ranked(errors: dict[str, list[float]]) -> list[str]:
    """Return the tunings that were tried everywhere by their mean errors, one of each beginning.

    Examples
    --------
    >>> ranked({"a, 1": [1.0, 2.0], "a, 2": [1.1, 2.1], "b, 1": [1.0, 1.0], "c, 1": [0.5]})
    ['b, 1', 'a, 1']
    """
    everywhere = max(map(len, errors.values()))
    means = {
        name: float(np.mean(found)) for name, found in errors.items() if len(found) == everywhere
    }
    by_beginning: dict[str, str] = {}
    for name in sorted(means, key=lambda one: means[one]):
        by_beginning.setdefault(name.partition(",")[0], name)
    return list(by_beginning.values())
