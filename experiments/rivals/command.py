"""Command: `DPGPRegressor` beside its rivals, on twelve tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer
from rich.table import Table as Printed

from experiments.framework import Experiment, Progress, Rows
from experiments.priors import first_tables
from experiments.rivals import explainable_boosting, report
from experiments.rivals.base import Rival
from experiments.rivals.cloaked import EXACT, PAPERS
from experiments.rivals.comparison import Compared, budgets_of, compare_rivals, steps
from experiments.rivals.direct import LOCAL_NOISE, NOISY_MEAN
from experiments.rivals.features import BOOSTED_SUMS, POLYNOMIALS
from experiments.rivals.histograms import HISTOGRAM, PROCESS_ON_CELLS, PROCESS_ON_INTEGRALS
from experiments.rivals.references import DEFAULT, NOT_PRIVATE
from experiments.rivals.trees import ADDITIVE, TREES

EPSILONS, DELTAS = (0.1, 0.3, 1.0, 3.0), (0.01, 1e-5)
RIVALS = (
    DEFAULT,
    PROCESS_ON_CELLS,
    PROCESS_ON_INTEGRALS,
    HISTOGRAM,
    POLYNOMIALS,
    BOOSTED_SUMS,
    TREES,
    ADDITIVE,
    EXACT,
    PAPERS,
    LOCAL_NOISE,
    NOISY_MEAN,
)


def all_rivals() -> tuple[Rival, ...]:
    """Return all rivals and references; DP-EBM only where its package is installed."""
    optional = (explainable_boosting.EXPLAINABLE_BOOSTING,)
    return (*RIVALS, *(optional if explainable_boosting.is_installed() else ()), *NOT_PRIVATE)


@dataclass(frozen=True)
class Rivals(Experiment[Compared]):
    """Compare the default with everything else one could do, each well tuned, on twelve tables."""

    name: ClassVar[str] = "rivals"
    small: ClassVar[Mapping[str, Any]] = {
        "draws": 2,
        "rows": 40,
        "epsilons": (1.0,),
        "deltas": (0.01,),
        "count": 1,
    }

    draws: Annotated[int, typer.Option(min=1, help="Splits and draws of the noise.")] = 4
    rows: Rows = 250
    measurements: Annotated[
        Path | None,
        typer.Option(help="Folder where errors are kept, and taken from: goes on where it was."),
    ] = None
    epsilons: Sequence[float] = EPSILONS
    deltas: Sequence[float] = DELTAS
    # Of tables; None: all.
    count: int | None = None
    insecure_seed: int | None = None

    def compute(self, progress: Progress) -> Compared:
        """Compare on all tables."""
        compared = first_tables(self.count)
        budgets = list(budgets_of(self.epsilons, self.deltas))
        with progress("rivals", steps=steps(compared, budgets=budgets, draws=self.draws)) as tick:
            return compare_rivals(
                compared,
                rivals=all_rivals(),
                budgets=budgets,
                draws=self.draws,
                rows=self.rows,
                measurements=self.measurements,
                insecure_seed=self.insecure_seed,
                tick=tick,
            )

    def tables(self, found: Compared) -> Iterable[Printed | str]:
        """Lay out errors over all tables and by table."""
        yield (
            f"RMSE over the sd of held-out outputs, at most {self.rows} rows, {self.draws} splits "
            "with noise of their own; se over splits with the tables as they are, and of "
            "differences over tables"
        )
        if not explainable_boosting.is_installed():
            yield 'DP-EBM is left out: pip install "cloakgp[rivals]"'
        for laid_out in report.all_reports(found).values():
            yield from laid_out
