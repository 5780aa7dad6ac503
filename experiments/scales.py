"""Smaller scales of the default prior, where answers are few: what weighing them costs and wins.

The tables of `experiments.priors` with bounds as they are and ten times as wide, to both sides at
random. Beside the default: the same prior, declared, which has one scale; and a noisy mean. The
odds of the scales were chosen on these tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from rich.table import Table as Printed

from cloakgp.models import default_kernel
from experiments.framework import Experiment, NoisySplits, OfTheTwelve, Progress, Rows, table_titled
from experiments.interval import errors_of_ways, width_in_words
from experiments.priors import first_tables
from experiments.spread import draw_by_draw, mean_and_error, with_error
from experiments.ways import Way, noisy_mean, released

FACTORS, EPSILONS = (1, 10), (0.1, 0.3)
WEIGHED, ONE, MEAN = "scales weighed", "one scale", "noisy mean"
WAYS: Mapping[str, Way] = MappingProxyType(
    {WEIGHED: released, ONE: partial(released, kernel=default_kernel), MEAN: noisy_mean}
)
# The width of the bounds, ε, and the name of a table.
Case = tuple[int, float, str]
Found = dict[tuple[Case, str], list[tuple[float, ...]]]


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

    draws: NoisySplits = 6
    rows: Rows = 250
    count: OfTheTwelve = None
    insecure_seed: int | None = None

    def compute(self, progress: Progress) -> Found:
        """Return errors by width of the bounds, ε and table, of every way, draw by draw."""
        tables = {table.name: table for table in first_tables(self.count)}
        cases = list(product(FACTORS, EPSILONS, tables))

        def measure(case: Case, draw: int) -> dict[str, tuple[float, ...]]:
            factor, epsilon, name = case
            return errors_of_ways(
                tables[name],
                WAYS,
                epsilon=epsilon,
                factor=factor,
                draw=draw,
                rows=self.rows,
                insecure_seed=self.insecure_seed,
            )

        with progress("scales", steps=len(cases) * self.draws) as tick:
            return draw_by_draw(cases, draws=self.draws, measure=measure, tick=tick)

    def tables(self, found: Found) -> Iterable[Printed | str]:
        """Lay out means over tables and draws, with their standard errors over draws."""
        table = table_titled(
            "RMSE over the sd of outputs held out, mean over tables; and the worst table",
            "bounds",
            "ε",
            right=(*WAYS, *(f"worst, {way}" for way in WAYS), f"{WEIGHED} less {ONE}"),
        )
        names = dict.fromkeys(name for (_, _, name), _ in found)
        for factor, epsilon in product(FACTORS, EPSILONS):
            errors = {
                way: np.array([found[(factor, epsilon, name), way] for name in names])[:, :, 0]
                for way in WAYS
            }
            means = [with_error(*mean_and_error(each), ".3f") for each in errors.values()]
            worst = [f"{each.mean(axis=1).max():.2f}" for each in errors.values()]
            apart = with_error(*mean_and_error(errors[WEIGHED] - errors[ONE]), "+.3f")
            table.add_row(width_in_words(factor), f"{epsilon:g}", *means, *worst, apart)
        yield table
