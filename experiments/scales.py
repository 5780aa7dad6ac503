"""Smaller scales of the default prior, where answers are few: what weighing them costs and wins.

The tables of `experiments.priors` with bounds as they are and ten times as wide, to both sides at
random. Beside the default: the same prior, declared, which has one scale; and a noisy mean. The
odds of the scales were chosen on these tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import numpy as np
import typer
from rich.table import Table as Printed

from cloakgp import DPGPRegressor
from cloakgp.models import default_kernel
from experiments.framework import Experiment, Progress, Rows, table_titled
from experiments.interval import widened
from experiments.priors import Table, first_tables
from experiments.spread import mean_and_error, with_error
from experiments.ways import Setting, noisy_mean

FACTORS, EPSILONS = (1, 10), (0.1, 0.3)
WEIGHED, ONE, MEAN = "scales weighed", "one scale", "noisy mean"


def errors_of_draw(
    table: Table, *, epsilon: float, factor: float, draw: int, rows: int, insecure_seed: int | None
) -> dict[str, float]:
    """Return the relative error of every way on one split, with bounds so many times as wide.

    Parameters
    ----------
    table : Table
    epsilon : float
        No δ.
    factor : float
    draw : int
        Of the split and of the bounds.
    rows : int
        The most that are fitted.
    insecure_seed : int or None
        For tests. Of the noise, which is the same for all ways in any case: so they differ by less.
    """
    rng = np.random.default_rng((draw, int(factor)))
    wide = replace(table, bounds=widened(table.bounds, factor=factor, rng=rng))
    split = wide.split(draw, rows=rows)
    seed = int(np.random.default_rng().integers(2**31))
    if insecure_seed is not None:
        seed = insecure_seed + draw
    found = {}
    for way, kernel in (
        (WEIGHED, None),
        (ONE, default_kernel(split.X, width=split.bounds.width)),
    ):
        model = DPGPRegressor(
            kernel=kernel,
            bounds=(split.bounds.lo, split.bounds.hi),
            epsilon=epsilon,
            insecure_seed=seed,
        ).fit(split.X, split.outputs)
        found[way] = split.relative_error(model.predict(split.X_test))
    setting = Setting(epsilon=epsilon, delta=0.0, insecure_seed=seed)
    found[MEAN] = split.relative_error(noisy_mean(split, setting).mean)
    return found


Found = dict[tuple[int, float], list[list[dict[str, float]]]]


@dataclass(frozen=True)
class Scales(Experiment[Found]):
    """Smaller scales of the default prior, weighed where answers are few, beside one scale.

    Attributes
    ----------
    draws : int
    rows : int
    count : int, optional
        Of tables, the first ones.
    insecure_seed : int, optional
        For tests.
    """

    name: ClassVar[str] = "scales"
    small: ClassVar[Mapping[str, Any]] = MappingProxyType({"draws": 1, "rows": 40, "count": 2})

    draws: Annotated[int, typer.Option(min=1, help="Splits, each with its noise.")] = 6
    rows: Rows = 250
    count: Annotated[int | None, typer.Option(min=1, help="Of tables, the first ones.")] = None
    insecure_seed: int | None = None

    def compute(self, progress: Progress) -> Found:
        """Return errors by width of the bounds and ε: of each table, draw and way."""
        tables = first_tables(self.count)
        cells = [(factor, epsilon) for factor in FACTORS for epsilon in EPSILONS]
        found: Found = {}
        with progress("scales", steps=len(cells) * len(tables) * self.draws) as tick:
            for factor, epsilon in cells:
                for table in tables:
                    draws = []
                    for draw in range(self.draws):
                        draws.append(
                            errors_of_draw(
                                table,
                                epsilon=epsilon,
                                factor=factor,
                                draw=draw,
                                rows=self.rows,
                                insecure_seed=self.insecure_seed,
                            )
                        )
                        tick()
                    found.setdefault((factor, epsilon), []).append(draws)
        return found

    def tables(self, found: Found) -> Iterable[Printed | str]:
        """Lay out means over tables and draws, with their standard errors over draws."""
        ways = (WEIGHED, ONE, MEAN)
        table = table_titled(
            "RMSE over the sd of outputs held out, mean over tables; and the worst table",
            "bounds",
            "ε",
            right=(*ways, *(f"worst, {way}" for way in ways), f"{WEIGHED} less {ONE}"),
        )
        for (factor, epsilon), tables in found.items():
            errors = {
                way: np.array([[one[way] for one in draws] for draws in tables]) for way in ways
            }
            means = [with_error(*mean_and_error(errors[way]), ".3f") for way in ways]
            worst = [f"{errors[way].mean(axis=1).max():.2f}" for way in ways]
            apart = with_error(*mean_and_error(errors[WEIGHED] - errors[ONE]), "+.3f")
            wide = "of round numbers" if factor == 1 else f"{factor} times as wide"
            table.add_row(wide, f"{epsilon:g}", *means, *worst, apart)
        yield table
