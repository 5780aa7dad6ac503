"""Tables of rivals' errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from rich.table import Table as Printed

from cloakgp.utils.arrays import Array
from experiments.framework import table_titled
from experiments.rivals.comparison import (
    Budget,
    Compared,
    Judged,
    by_shared_tuning,
    in_hindsight,
    tuned_on_other_tables,
)
from experiments.rivals.references import DEFAULT
from experiments.spread import mean_and_error, standard_error, with_error

Evaluation = Callable[[Sequence[Judged]], Array]
# How many fit beside each other, with standard errors.
TABLES_ABREAST = 6


def all_reports(found: Compared) -> dict[str, list[Printed]]:
    """Lay out everything, in the order in which it is printed and kept."""
    by_delta: dict[float, list[Budget]] = {}
    for budget in found.private:
        by_delta.setdefault(budget[1], []).append(budget)
    return {
        "overall": [
            overall_report(
                found,
                budgets,
                evaluation=tuned_on_other_tables,
                title=f"δ = {delta:g}: mean over tables, tuned on the other tables",
            )
            for delta, budgets in by_delta.items()
        ],
        "differences": [
            differences_report(
                found, budgets, title=f"δ = {delta:g}: less the default, on the same splits"
            )
            for delta, budgets in by_delta.items()
        ],
        "hindsight": [
            overall_report(
                found,
                budgets,
                evaluation=in_hindsight,
                title=f"δ = {delta:g}: mean over tables, the best tuning of each in hindsight",
            )
            for delta, budgets in by_delta.items()
        ],
        "one-tuning": [
            one_tuning_report(
                found, budgets, title=f"δ = {delta:g}: the best tuning for all tables, in hindsight"
            )
            for delta, budgets in by_delta.items()
        ],
        "not-private": [not_private_report(found)],
        "by-table": [
            by_table_report(
                found,
                budget,
                tables=range(first, min(first + TABLES_ABREAST, len(found.tables))),
                title=f"ε = {budget[0]:g}, δ = {budget[1]:g}",
            )
            for budgets in by_delta.values()
            for budget in budgets
            for first in range(0, len(found.tables), TABLES_ABREAST)
        ],
    }


def _with_error(errors: Array) -> str:
    """Return the mean and its standard error over draws, the tables as they are."""
    mean, error = mean_and_error(errors)
    return with_error(mean, error, ".3f")


def _beside(more: Array) -> str:
    """Return a mean difference, its standard error over tables, and on how many it is below 0."""
    of_tables = more.mean(axis=1)
    mean = with_error(float(of_tables.mean()), standard_error(of_tables), "+.3f")
    return f"{mean}; {int((of_tables < 0).sum())}"


def _heads(budgets: Sequence[Budget]) -> list[str]:
    return [f"ε = {epsilon:g}" for epsilon, _ in budgets]


def overall_report(
    found: Compared, budgets: Sequence[Budget], *, evaluation: Evaluation, title: str
) -> Printed:
    """Lay out errors over all tables, by rival and ε."""
    table = table_titled(title, "rival", right=_heads(budgets))
    for name in found.private[budgets[0]]:
        judged = [found.private[budget][name] for budget in budgets]
        table.add_row(name, *(_with_error(evaluation(one)) for one in judged))
    table.add_section()
    for name, of_tables in found.not_private.items():
        cell = _with_error(evaluation(of_tables))
        table.add_row(name, *([cell] * len(budgets)))
    return table


def differences_report(found: Compared, budgets: Sequence[Budget], *, title: str) -> Printed:
    """Lay out how much errors exceed the default's (se over tables), and where they do not."""
    table = table_titled(title, "rival", right=_heads(budgets))
    for name in found.private[budgets[0]]:
        if name == DEFAULT.name:
            continue
        cells = []
        for budget in budgets:
            base = tuned_on_other_tables(found.private[budget][DEFAULT.name])
            more = tuned_on_other_tables(found.private[budget][name]) - base
            cells.append(_beside(more))
        table.add_row(name, *cells)
    return table


def one_tuning_report(found: Compared, budgets: Sequence[Budget], *, title: str) -> Printed:
    """Lay out the error of the best tuning that is the same for all tables, and which it is."""
    table = table_titled(title, "rival", "ε", "tuning", right=["error (se)"])
    for name in found.private[budgets[0]]:
        for budget in budgets:
            errors = by_shared_tuning(found.private[budget][name])
            tuning = min(errors, key=lambda one: float(errors[one].mean()))
            table.add_row(name, f"{budget[0]:g}", tuning, _with_error(errors[tuning]))
        table.add_section()
    return table


def not_private_report(found: Compared) -> Printed:
    """Lay out errors without privacy, by table."""
    table = table_titled("Without privacy", "table", right=found.not_private)
    for number, name in enumerate(found.tables):
        errors = (
            tuned_on_other_tables(judged)[number : number + 1]
            for judged in found.not_private.values()
        )
        table.add_row(name, *map(_with_error, errors))
    return table


def by_table_report(
    found: Compared, budget: Budget, *, tables: Sequence[int], title: str
) -> Printed:
    """Lay out errors by rival, on some tables; the least of each table stands out."""
    errors = {name: tuned_on_other_tables(judged) for name, judged in found.private[budget].items()}
    least = np.min([one.mean(axis=1) for one in errors.values()], axis=0)
    table = table_titled(title, "rival", right=[found.tables[number] for number in tables])
    for name, of_tables in errors.items():
        cells = []
        for number in tables:
            cell = _with_error(of_tables[number : number + 1])
            is_least = of_tables[number].mean() == least[number]
            cells.append(f"[bold]{cell}[/bold]" if is_least else cell)
        table.add_row(name, *cells)
    return table
