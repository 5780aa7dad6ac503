"""Where there is little to learn: permuted outputs and wide bounds, beside a noisy mean.

A curve is of no use where outputs have nothing to do with inputs, and hard to find where bounds are
ten times as wide as round numbers would be. Whoever learns one all the same should lose little
against Laplace noise on the mean of the clipped outputs, which spends all of ε on one number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from rich.table import Table as Printed

from experiments.framework import Experiment, NoisySplits, OfTheTwelve, Progress, Rows, table_titled
from experiments.interval import errors_of_ways, width_in_words
from experiments.priors import Table, first_tables
from experiments.spread import draw_by_draw, mean_and_error, with_error
from experiments.ways import DEFAULT, NOISY_MEAN, Way, noisy_mean, released

EPSILONS = (0.3, 1.0)
AS_THEY_ARE, PERMUTED = "as they are", "permuted"
# Outputs, and how many times as wide bounds are.
CASES = ((AS_THEY_ARE, 10), (PERMUTED, 1), (PERMUTED, 10))
WAYS: Mapping[str, Way] = MappingProxyType({DEFAULT: released, NOISY_MEAN: noisy_mean})
# Outputs, times of bounds and ε; and the table.
Case = tuple[tuple[str, int, float], str]


def permuted(table: Table, *, seed: int) -> Table:
    """Return a table whose outputs have nothing to do with its inputs.

    Parameters
    ----------
    table : Table
    seed : int

    Examples
    --------
    >>> from cloakgp.privacy import OutputBounds
    >>> X = np.arange(3.0)
    >>> table = Table("line", X[:, None], X, OutputBounds(0.0, 2.0))
    >>> permuted(table, seed=0).outputs
    array([2., 0., 1.])
    """
    order = np.random.default_rng((seed, 1)).permutation(len(table.outputs))
    return replace(table, outputs=table.outputs[order])


Found = Mapping[tuple[Case, str], list[tuple[float, ...]]]


@dataclass(frozen=True)
class WorstCases(Experiment[Found]):
    """Permuted outputs and wide bounds on small tables, beside a noisy mean.

    Attributes
    ----------
    draws : int
    rows : int
    count : int, optional
        Of the twelve tables, the first ones.
    insecure_seed : int, optional
        For tests.
    """

    name: ClassVar[str] = "worst-cases"
    small: ClassVar[Mapping[str, Any]] = MappingProxyType({"draws": 1, "rows": 60, "count": 1})

    draws: NoisySplits = 5
    rows: Rows = 250
    count: OfTheTwelve = None
    insecure_seed: int | None = None

    def compute(self, progress: Progress) -> Found:
        """Return errors of the default and of a noisy mean, draw by draw."""
        tables = {table.name: table for table in first_tables(self.count)}
        cases: list[Case] = [
            ((outputs, factor, epsilon), name)
            for outputs, factor in CASES
            for epsilon in EPSILONS
            for name in tables
        ]

        def measure(case: Case, draw: int) -> dict[str, tuple[float, ...]]:
            (outputs, factor, epsilon), name = case
            table = tables[name]
            return errors_of_ways(
                permuted(table, seed=draw) if outputs == PERMUTED else table,
                WAYS,
                epsilon=epsilon,
                factor=factor,
                draw=draw,
                rows=self.rows,
                insecure_seed=self.insecure_seed,
            )

        with progress("worst cases", steps=len(cases) * self.draws) as tick:
            return draw_by_draw(cases, draws=self.draws, measure=measure, tick=tick)

    def tables(self, found: Found) -> Iterable[Printed | str]:
        """Lay out mean errors, and how many times the noisy mean's they are."""
        laid = table_titled(
            f"RMSE over the sd of outputs held out, no δ, at most {self.rows} rows, mean over "
            "tables and draws; the ratio of these means, and the largest of a table's",
            "outputs",
            "bounds",
            "ε",
            right=("default", "noisy mean", "ratio", "largest of a table"),
        )
        for setting in dict.fromkeys(setting for (setting, _), _ in found):
            names = [name for (of, name), way in found if (of, way) == (setting, DEFAULT)]
            ours, means = (
                np.array([found[(setting, name), way] for name in names])[:, :, 0] for way in WAYS
            )
            outputs, factor, epsilon = setting
            largest = float((ours.mean(axis=1) / means.mean(axis=1)).max())
            laid.add_row(
                outputs,
                width_in_words(factor),
                f"{epsilon:g}",
                *(with_error(*mean_and_error(each), ".3f") for each in (ours, means)),
                f"{ours.mean() / means.mean():.2f}",
                f"{largest:.2f}",
            )
        yield laid
