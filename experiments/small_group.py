"""A small group that lies apart: whether bands of later stages lose it, on simulated tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import numpy as np
import typer
from rich.table import Table

from cloakgp import DPGPRegressor
from cloakgp.utils.arrays import Array
from experiments.framework import Experiment, Progress, RowDraws, Rows, table_titled
from experiments.spread import draw_by_draw, means_with_errors

BOUNDS, INDUCING, COVERAGE = (-25, 25), 60, 0.95
# Of the rows, and by how many sds of the scatter, which is 1.
SHARE, SHIFT = 0.1, 8.0
WAYS: dict[str, Any] = {"bands": "auto", "none": [(0.3, None), (0.7, None)]}
PLACES = "a column", "a corner"
MEASURES = "error of the group", "of others", "95 % hold of the group", "hold of others"


@dataclass(frozen=True, eq=False)
class Grouped:
    """Rows: inputs, their curve, and which are of the group."""

    X: Array
    curve: Array
    group: Array

    @classmethod
    def drawn(cls, rng: np.random.Generator, rows: int, *, place: str) -> Grouped:
        """Draw rows of two inputs; the group has a column of its own, or a range of the first."""
        X = rng.uniform(0, 10, (rows, 2))
        if place == "a column":
            X[:, 1] = rng.random(rows) < SHARE
            group = X[:, 1] > 0
        else:
            group = X[:, 0] < 10 * SHARE
        return cls(X, np.sin(X[:, 0]) + SHIFT * group, group)


def measured(rows: int, *, place: str, epsilon: float, draw: int) -> dict[str, tuple[float, ...]]:
    """Return what each way measures in one draw of rows and noise.

    Parameters
    ----------
    rows : int
    place : str
        How the group is told from others.
    epsilon : float
    draw : int
    """
    rng = np.random.default_rng(draw)
    known = Grouped.drawn(rng, rows, place=place)
    outputs, new = known.curve + rng.normal(size=(2, rows))
    found = {}
    for way, stages in WAYS.items():
        model = DPGPRegressor(
            bounds=BOUNDS,
            epsilon=epsilon,
            inducing=min(INDUCING, rows // 10),
            stages=stages,
            gap=0.1,
            insecure_seed=draw,
        )
        release = model.fit(known.X, outputs).release_
        lower, upper = release.predict_interval(known.X, COVERAGE)
        squares = np.square(release.predict(known.X) - known.curve)
        held = (lower <= new) & (new <= upper)
        parts = known.group, ~known.group
        found[way] = (
            *(float(np.sqrt(squares[part].mean())) for part in parts),
            *(float(held[part].mean()) for part in parts),
        )
    return found


Found = dict[tuple[str, str], list[tuple[float, ...]]]


@dataclass(frozen=True)
class SmallGroup(Experiment[Found]):
    """A tenth of the rows that lies eight sds apart, with bands in later stages and without.

    Attributes
    ----------
    rows, draws : int
    epsilon : float
    """

    name: ClassVar[str] = "small-group"
    small: ClassVar[Mapping[str, Any]] = MappingProxyType({"rows": 100, "draws": 2, "epsilon": 5.0})

    rows: Rows = 3000
    draws: RowDraws = 6
    epsilon: Annotated[float, typer.Option(help="Budget; all of it Laplace noise.")] = 1.0

    def compute(self, progress: Progress) -> Found:
        """Return what is measured, draw by draw."""

        def measure(place: str, draw: int) -> dict[str, tuple[float, ...]]:
            return measured(self.rows, place=place, epsilon=self.epsilon, draw=draw)

        with progress("groups", steps=len(PLACES) * self.draws) as tick:
            return draw_by_draw(PLACES, draws=self.draws, measure=measure, tick=tick)

    def tables(self, found: Found) -> Iterable[Table | str]:
        """Lay out means over draws with their standard errors."""
        table = table_titled(
            f"A group of a tenth of {self.rows:,} rows, eight sds of the scatter apart; ε = "
            f"{self.epsilon:g}, no δ, {self.draws} draws; errors of the curve in these sds (se)",
            "told by",
            "bands",
            right=MEASURES,
        )
        for (place, way), draws in found.items():
            table.add_row(place, way, *means_with_errors(draws))
        yield table
