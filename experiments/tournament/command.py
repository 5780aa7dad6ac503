"""Command: the tournament, whole or a part of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import typer
from rich.table import Table as Printed

from experiments.framework import Experiment, Progress
from experiments.tournament.cells import (
    EPSILONS,
    ByEntry,
    ByTuning,
    Cells,
    TriedCells,
    budgets,
    measure,
    measure_again,
    places,
    places_again,
)
from experiments.tournament.entries import ROWS
from experiments.tournament.judging import settle_by_others
from experiments.tournament.protocol import check_protocol, check_tables
from experiments.tournament.report import (
    lay_out,
    lay_out_again,
    lay_out_doubts,
    lay_out_second,
)
from experiments.tournament.tables import CLASSES, NUMBERS, WHOLE, Judged

FOLDER = Path(__file__).parent
KEPT = FOLDER / "kept"
# The first round, which is closed; of numbers, by later code, where a cell had failed.
FIRST, MENDED = KEPT / "first", "mended.jsonl"
# Ours at the places of the second round, by later code.
AGAIN = "again"
KINDS: Mapping[str, tuple[Judged, ...]] = MappingProxyType(
    {"numbers": NUMBERS, "classes": CLASSES, "whole": WHOLE}
)


@dataclass(frozen=True, eq=False)
class Found:
    """Cells by kind of tables.

    Attributes
    ----------
    cells : mapping
        Of the second round, with every tuning.
    first : mapping
        Of the first round, with the tuning that was settled before it.
    mended : Cells
        Those of numbers of the first round that were measured anew where one failed.
    again : mapping
        Ours at the places of the second round, by later code.
    """

    cells: Mapping[str, Cells[ByTuning]]
    first: Mapping[str, Cells[ByEntry]]
    mended: Cells[ByEntry]
    again: Mapping[str, Cells[ByEntry]]


def first_round() -> tuple[dict[str, Cells[ByEntry]], Cells[ByEntry]]:
    """Return the kept cells of the first round, and those that were mended."""
    return {kind: Cells(FIRST / f"{kind}.jsonl") for kind in KINDS}, Cells(FIRST / MENDED)


@dataclass(frozen=True)
class Tournament(Experiment[Found]):
    """Judge the untouched defaults and all rivals on tables that no default was chosen on."""

    name: ClassVar[str] = "tournament"
    small: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {
            "splits": 1,
            "draws": 1,
            "epsilons": (3.0,),
            "names": ["penguins", "women at work, Canada"],
            "rows": 60,
            "cells": None,
            "with_first": False,
        }
    )

    splits: Annotated[int, typer.Option(min=0, help="Of every table; 0: only lay out.")] = 20
    draws: Annotated[int, typer.Option(min=1, help="Of noise in each split.")] = 5
    kinds: Annotated[list[str] | None, typer.Option("--kind", help="numbers, classes, whole.")] = (
        None
    )
    names: Annotated[list[str] | None, typer.Option("--table", help="As printed.")] = None
    cells: Annotated[
        Path | None,
        typer.Option(help="Folder where cells are kept, and taken from: goes on where it was."),
    ] = KEPT
    again: Annotated[
        bool,
        typer.Option(help="Measure nothing but ours, by today's code, where all entries are kept."),
    ] = False
    epsilons: Sequence[float] = EPSILONS
    rows: int = ROWS
    with_first: bool = True
    insecure_seed: int | None = None

    def chosen(self, kind: str) -> tuple[Judged, ...]:
        """Return the tables of a kind that were asked for."""
        every = KINDS[kind]
        return tuple(one for one in every if self.names is None or one.name in self.names)

    def compute(self, progress: Progress) -> Found:
        """Compare what was fixed beforehand with its hashes, and measure what is not kept."""
        check_protocol()
        check_tables()
        of = budgets(self.epsilons)
        found: dict[str, Cells[ByTuning]] = {}
        again: dict[str, Cells[ByEntry]] = {}
        for kind in self.kinds or KINDS:
            tables = self.chosen(kind)
            kept = TriedCells(None if self.cells is None else self.cells / f"{kind}.jsonl")
            found[kind] = kept
            again[kind] = Cells[ByEntry](
                None if self.cells is None else self.cells / AGAIN / f"{kind}.jsonl"
            )
            if self.again:
                steps = len(list(places_again(tables, where=kept, of=of)))
                with progress(f"ours again, {kind}", steps=max(steps, 1)) as tick:
                    measure_again(
                        tables,
                        again[kind],
                        where=kept,
                        of=of,
                        rows=None if kind == "whole" else self.rows,
                        tick=tick,
                    )
                continue
            steps = len(list(places(tables, splits=self.splits, draws=self.draws, of=of)))
            with progress(f"tournament, {kind}", steps=max(steps, 1)) as tick:
                measure(
                    tables,
                    kept,
                    splits=self.splits,
                    draws=self.draws,
                    of=of,
                    rows=None if kind == "whole" else self.rows,
                    insecure_seed=self.insecure_seed,
                    tick=tick,
                )
        first, mended = first_round() if self.with_first else ({}, Cells[ByEntry](None))
        return Found(found, first=first, mended=mended, again=again)

    def tables(self, found: Found) -> Iterable[Printed | str]:
        """Lay out all figures, by round and kind of tables."""
        of = budgets(self.epsilons)
        for kind, kept in found.first.items():
            if kept.known:
                yield from lay_out(kept, self.chosen(kind), kind=kind, of=of)
        numbers = found.first.get("numbers")
        if numbers is not None and numbers.known:
            yield from lay_out_doubts(numbers, self.chosen("numbers"), of=of, mended=found.mended)
        for kind, tried in found.cells.items():
            if tried.known:
                settled = settle_by_others(tried)
                yield from lay_out_second(settled, self.chosen(kind), kind=kind, of=of)
            else:
                yield f"{kind}: nothing is measured yet"
        for kind, again in found.again.items():
            if again.known:
                settled = settle_by_others(found.cells[kind])
                yield from lay_out_again(settled, again, self.chosen(kind), kind=kind, of=of)
