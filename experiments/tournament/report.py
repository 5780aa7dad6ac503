"""Tables of the tournament."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from rich.table import Table as Printed

from experiments.framework import table_titled
from experiments.tournament.analysis import Difference, Observed, differences, observe
from experiments.tournament.cells import Budget, ByEntry, Cells
from experiments.tournament.entries import OURS
from experiments.tournament.tables import Judged

MARKS = {"ahead": "▲", "behind": "▼", "not told apart": ""}
FIGURES = {
    "numbers": {
        "error": "RMSE",
        "crps": "CRPS",
        "held": "share in 90 % intervals",
        "width": "width of 90 % intervals",
    },
    "classes": {"error": "log loss", "wrong": "share told wrongly"},
}
# Of cells that failed and were measured anew by mended code, and of tables where none failed.
MENDED, UNFAILED = "{} after mending", "{} of tables where no cell failed"
FAILED = "share of cells that failed"
AGAIN, THEN, BEFORE = "ours again, {}", "ours then and again, {}", "cloakgp, in the second round"
SECOND, HELD = "second round, {}", "share in our 90 % intervals of single tables"
# Widths and shares have no better end.
COMPARED = ("error", "crps", "wrong")
COSTS = (
    ("seconds", "seconds of processors, all tunings", ".1f"),
    ("failed", FAILED, ".3f"),
)


def lay_out(
    cells: Cells[ByEntry], tables: Sequence[Judged], *, kind: str, of: Sequence[Budget]
) -> Iterator[Printed]:
    """Lay out everything of one kind of tables.

    Parameters
    ----------
    cells : Cells
    tables : sequence of Judged
    kind : {"numbers", "classes", "whole"}
    of : sequence of Budget
    """
    told = FIGURES["classes" if kind == "classes" else "numbers"]
    groups = by_delta(of)
    for figure, name in told.items():
        for group in groups:
            yield overall(cells, tables, of=group, figure=figure, name=name)
    for figure, name in told.items():
        for group in groups if figure in COMPARED else ():
            yield beside_ours(cells, tables, of=group, figure=figure, name=name)
    for group in groups:
        yield overall(cells, tables, of=group, figure="least", name=f"{told['error']}, least")
    for budget in of:
        yield by_table(cells, tables, budget=budget, name=told["error"])
    for figure, name, form in COSTS:
        for group in groups:
            yield overall(cells, tables, of=group, figure=figure, name=name, form=form)


def lay_out_doubts(
    cells: Cells[ByEntry], tables: Sequence[Judged], *, of: Sequence[Budget], mended: Cells[ByEntry]
) -> Iterator[Printed]:
    """Lay out what means over tables of numbers hide: how intervals hold by table, and failures.

    Parameters
    ----------
    cells : Cells
    tables : sequence of Judged
    of : sequence of Budget
    mended : Cells
        Measured anew in place of cells that failed; a mended cell is taken for no other.
    """
    if observe(cells, tables, budget=of[0], figure="held").tables:
        yield held_by_table(cells, tables, of=of)
    failed = {place for place, figures in cells.known.items() if _failed(figures)}
    if not failed:
        return
    anew, names = Cells[ByEntry](None), {place.table for place in failed}
    anew.known = cells.known | {place: mended.known[place] for place in failed & set(mended.known)}
    unfailed = [table for table in tables if table.name not in names]
    groups = by_delta(of)
    for group in groups:
        yield overall(anew, tables, of=group, figure="error", name=MENDED.format("RMSE"))
    for figure, name in (("error", "RMSE"), ("crps", "CRPS")):
        for group in groups:
            yield beside_ours(anew, tables, of=group, figure=figure, name=MENDED.format(name))
    for figure, name in (("error", "RMSE"), ("crps", "CRPS")):
        for group in groups:
            yield beside_ours(cells, unfailed, of=group, figure=figure, name=UNFAILED.format(name))


def lay_out_second(
    cells: Cells[ByEntry], tables: Sequence[Judged], *, kind: str, of: Sequence[Budget]
) -> Iterator[Printed]:
    """Lay out the second round, whose rivals are tuned by all other tables.

    Parameters
    ----------
    cells : Cells
    tables : sequence of Judged
    kind : {"numbers", "classes", "whole"}
    of : sequence of Budget
    """
    told = FIGURES["classes" if kind == "classes" else "numbers"]
    compared = {figure: SECOND.format(name) for figure, name in told.items() if figure in COMPARED}
    groups = by_delta(of)
    for lay in (overall, beside_ours):
        for figure, name in compared.items():
            for group in groups:
                yield lay(cells, tables, of=group, figure=figure, name=name)
    for group in groups:
        name = f"{compared['error']}, least"
        yield overall(cells, tables, of=group, figure="least", name=name)
    for group in groups:
        name = SECOND.format(FAILED)
        yield overall(cells, tables, of=group, figure="failed", name=name)
    if kind != "classes":
        yield held_by_table(cells, tables, of=of, name=SECOND.format(HELD))


def lay_out_again(
    cells: Cells[ByEntry],
    again: Cells[ByEntry],
    tables: Sequence[Judged],
    *,
    kind: str,
    of: Sequence[Budget],
) -> Iterator[Printed]:
    """Lay out the second round with ours as measured again by later code, beside all rivals' cells.

    Parameters
    ----------
    cells : Cells
        Of the second round, settled.
    again : Cells
        Ours, where it was measured again.
    tables : sequence of Judged
    kind : {"numbers", "classes", "whole"}
    of : sequence of Budget
    """
    told = FIGURES["classes" if kind == "classes" else "numbers"]
    places = set(again.known) & set(cells.known)
    # Without privacy nothing is measured again.
    kept = {place: cells.known[place] for place in cells.known if place.budget is None}
    beside, then = Cells[ByEntry](None), Cells[ByEntry](None)
    beside.known = kept | {place: cells.known[place] | again.known[place] for place in places}
    then.known = {
        place: again.known[place] | {BEFORE: cells.known[place][OURS]} for place in places
    }
    groups = by_delta(of)
    for figure, name in told.items():
        # What intervals of rivals hold was not kept in the second round.
        if figure not in COMPARED:
            continue
        for lay, those in ((overall, beside), (beside_ours, beside), (beside_ours, then)):
            title = (AGAIN if those is beside else THEN).format(name)
            for group in groups:
                yield lay(those, tables, of=group, figure=figure, name=title)
    if kind != "classes":
        yield held_by_table(beside, tables, of=of, name=AGAIN.format(HELD))


def _failed(figures: Mapping[str, Mapping[str, float]]) -> bool:
    return figures.get(OURS, {}).get("failed", 0.0) > 0.0


def by_delta(of: Sequence[Budget]) -> list[list[Budget]]:
    """Return the budgets without δ, and those with one, where there are any."""
    groups = [
        [budget for budget in of if budget.with_delta is with_delta] for with_delta in (False, True)
    ]
    return [group for group in groups if group]


def held_by_table(
    cells: Cells[ByEntry], tables: Sequence[Judged], *, of: Sequence[Budget], name: str = HELD
) -> Printed:
    """Lay out how the share of outputs in our 90 % intervals differs from table to table."""
    found = _observed(cells, tables, of, "held")
    table = table_titled(
        f"{name}: of {_scale(found)}",
        "budget",
        "table of the least",
        right=["least", "lower quartile", "median", "upper quartile", "most"],
    )
    for budget, one in found.items():
        shares = one.entries[OURS]
        quartiles = np.quantile(shares, [0.0, 0.25, 0.5, 0.75, 1.0])
        told = [f"{share:.3f}" for share in quartiles]
        table.add_row(str(budget), one.tables[int(shares.argmin())], *told)
    return table


def _suffix(group: Sequence[Budget]) -> str:
    return "δ = 1/N²" if group[0].with_delta else "no δ"


def _observed(
    cells: Cells[ByEntry], tables: Sequence[Judged], of: Sequence[Budget], figure: str
) -> dict[Budget, Observed]:
    found = {budget: observe(cells, tables, budget=budget, figure=figure) for budget in of}
    return {budget: one for budget, one in found.items() if one.tables}


def _scale(found: Mapping[Budget, Observed]) -> str:
    """Return of how many tables and cells a table speaks."""
    tables = _ends([len(one.tables) for one in found.values()])
    cells = _ends([one.cells for one in found.values()])
    if cells == "1":
        return f"{tables} tables, one split and draw of each"
    return f"{tables} tables, {cells} splits and draws of each"


def _ends(counts: Sequence[int]) -> str:
    """Return a number, or the least and the most of several that differ."""
    few, many = min(counts), max(counts)
    return f"{few}" if few == many else f"{few} to {many}"


def overall(
    cells: Cells[ByEntry],
    tables: Sequence[Judged],
    *,
    of: Sequence[Budget],
    figure: str,
    name: str,
    form: str = ".3f",
) -> Printed:
    """Lay out the mean of a figure over tables, by entry and ε; what is not private besides."""
    found = _observed(cells, tables, of, figure)
    if not found:
        return table_titled(f"{name}, {_suffix(of)}: nothing is measured yet", "entry")
    table = table_titled(
        f"{name}, {_suffix(of)}: mean of {_scale(found)}",
        "entry",
        right=[f"ε = {budget.epsilon:g}" for budget in found],
    )
    first = next(iter(found.values()))
    for entry in first.entries:
        table.add_row(
            entry, *(format(float(one.entries[entry].mean()), form) for one in found.values())
        )
    open_ones = observe(cells, tables, budget=None, figure=figure)
    table.add_section()
    for entry, values in open_ones.entries.items():
        table.add_row(entry, *[format(float(values.mean()), form)] * len(found))
    return table


def beside_ours(
    cells: Cells[ByEntry], tables: Sequence[Judged], *, of: Sequence[Budget], figure: str, name: str
) -> Printed:
    """Lay out how much larger each rival's figure is than ours, with what may be said of it."""
    found = _observed(cells, tables, of, figure)
    if not found:
        return table_titled(f"{name}, {_suffix(of)}: nothing is measured yet", "rival")
    table = table_titled(
        f"{name} less ours, {_suffix(of)}: mean (95 % interval), on how many of "
        f"{_scale(found)} the rival is better; ▲ we are ahead, ▼ behind (p < .05, Holm)",
        "rival",
        right=[f"ε = {budget.epsilon:g}" for budget in found],
    )
    compared = {budget: differences(one) for budget, one in found.items()}
    for entry in next(iter(found.values())).entries:
        if entry != OURS:
            table.add_row(entry, *(difference_text(one[entry]) for one in compared.values()))
    return table


def difference_text(one: Difference) -> str:
    """Return a difference in one cell.

    Examples
    --------
    >>> difference_text(Difference(0.12, 0.05, 0.2, 0.01, wins=3, tables=24))
    '+.12 (.05 to .20); 3 ▲'
    """
    sign = "−" if one.mean < 0 else "+"
    interval = f" ({_short(one.lower)} to {_short(one.upper)})" if one.lower == one.lower else ""
    told = f"{sign}{_short(abs(one.mean))}{interval}; {one.wins} {MARKS[one.verdict]}"
    return told.rstrip()


def _short(value: float) -> str:
    return f"{value:.2f}".replace("0.", ".", 1).replace("-", "−")


def by_table(
    cells: Cells[ByEntry], tables: Sequence[Judged], *, budget: Budget, name: str
) -> Printed:
    """Lay out ours, the best rival of each table, and the best without privacy."""
    found = observe(cells, tables, budget=budget, figure="error")
    open_ones = observe(cells, tables, budget=None, figure="error")
    title = f"{name}, {budget}"
    if not found.tables:
        return table_titled(f"{title}: nothing is measured yet", "table")
    table = table_titled(
        title,
        "table",
        right=["ours", "best rival", "rivals ahead of ours", "best without privacy"],
    )
    rivals = [entry for entry in found.entries if entry != OURS]
    for place, judged in enumerate(found.tables):
        ours = found.entries[OURS][place]
        values = {entry: found.entries[entry][place] for entry in rivals}
        best = min(values, key=lambda entry: float(values[entry]))
        without = (
            f"{min(one[open_ones.tables.index(judged)] for one in open_ones.entries.values()):.2f}"
            if judged in open_ones.tables
            else ""
        )
        ahead = int(np.sum(np.array(list(values.values())) < ours))
        table.add_row(judged, f"{ours:.2f}", f"{values[best]:.2f} {best}", str(ahead), without)
    return table
