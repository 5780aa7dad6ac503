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
from experiments.tournament import tuning
from experiments.tournament.cells import EPSILONS, Cells, budgets, measure, places
from experiments.tournament.entries import ROWS
from experiments.tournament.protocol import check_protocol, check_tables
from experiments.tournament.report import lay_out, lay_out_doubts
from experiments.tournament.tables import CLASSES, NUMBERS, WHOLE, Judged

FOLDER = Path(__file__).parent
KEPT = FOLDER / "kept"
# Of numbers, by later code, where a cell had failed.
MENDED = "mended.jsonl"
KINDS: Mapping[str, tuple[Judged, ...]] = MappingProxyType(
    {"numbers": NUMBERS, "classes": CLASSES, "whole": WHOLE}
)


@dataclass(frozen=True, eq=False)
class Found:
    """Cells by kind of tables, and those of numbers that were measured anew where one failed."""

    cells: Mapping[str, Cells]
    mended: Cells


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
        }
    )

    splits: Annotated[int, typer.Option(min=0, help="Of every table; 0: only lay out.")] = 20
    draws: Annotated[int, typer.Option(min=1, help="Of noise in each split.")] = 5
    kinds: Annotated[list[str] | None, typer.Option("--kind", help="numbers, classes, whole.")] = (
        None
    )
    names: Annotated[list[str] | None, typer.Option("--table", help="As printed.")] = None
    tune: Annotated[
        bool, typer.Option("--tune", help="Settle rivals' tunings anew, on other tables.")
    ] = False
    cells: Annotated[
        Path | None,
        typer.Option(help="Folder where cells are kept, and taken from: goes on where it was."),
    ] = KEPT
    epsilons: Sequence[float] = EPSILONS
    rows: int = ROWS
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
        if self.tune:
            with progress("tunings", steps=tuning.SPLITS * (12 + 4)) as tick:
                settled = {
                    kind: tuning.tune(kind, of=of, insecure_seed=self.insecure_seed, tick=tick)
                    for kind in tuning.KINDS
                }
            tuning.write_tunings(settled)
        tunings = tuning.known_tunings()
        found = {}
        for kind in self.kinds or KINDS:
            tables = self.chosen(kind)
            kept = Cells(None if self.cells is None else self.cells / f"{kind}.jsonl")
            steps = len(list(places(tables, splits=self.splits, draws=self.draws, of=of)))
            with progress(f"tournament, {kind}", steps=max(steps, 1)) as tick:
                measure(
                    tables,
                    kept,
                    splits=self.splits,
                    draws=self.draws,
                    of=of,
                    tunings=tunings,
                    rows=None if kind == "whole" else self.rows,
                    insecure_seed=self.insecure_seed,
                    tick=tick,
                )
            found[kind] = kept
        return Found(found, mended=Cells(None if self.cells is None else self.cells / MENDED))

    def tables(self, found: Found) -> Iterable[Printed | str]:
        """Lay out all figures, by kind of tables."""
        of = budgets(self.epsilons)
        for kind, kept in found.cells.items():
            if kept.known:
                yield from lay_out(kept, self.chosen(kind), kind=kind, of=of)
            else:
                yield f"{kind}: nothing is measured yet"
        numbers = found.cells.get("numbers")
        if numbers is not None and numbers.known:
            tables = self.chosen("numbers")
            yield from lay_out_doubts(numbers, tables, of=of, mended=found.mended)
