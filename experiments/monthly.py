"""A year of monthly tables: errors and budgets of streams, beside months that are asked alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
import typer
from rich.table import Table

from cloakgp import DPGPRegressor, Release, Stream
from cloakgp.privacy.cohorts import DISJOINT, OVERLAPPING, People
from cloakgp.streams.state import release_name
from experiments.framework import Experiment, Progress, RowDraws, Rows, table_titled
from experiments.spread import draw_by_draw, means_with_errors

BOUNDS, DAYS = (-10.0, 10.0), 30.0
# Of the drift: how far the level moves in a month, and how fast is forgotten, in days.
MOVE, FORGETTING = 0.3, 180.0
STILL, DRIFTING = "still", "drifting"
TRUTHS = STILL, DRIFTING


def drawn_months(
    rng: np.random.Generator, *, rows: int, months: int, truth: str
) -> list[pd.DataFrame]:
    """Draw the tables of months, and the start of one more, which closes the last.

    Parameters
    ----------
    rng : numpy.random.Generator
    rows : int
        Of each month.
    months : int
    truth : str
        Whether the curve stays, or its level moves by a random walk and its phase with time.

    Returns
    -------
    list of pandas.DataFrame
        day, x, and of each row the curve and the output, about it with an sd of 1.
    """
    level = MOVE * np.cumsum(rng.normal(size=months + 1)) * (truth == DRIFTING)
    tables = []
    for month in range(months + 1):
        x = rng.uniform(0, 10, size=rows)
        day = DAYS * month + np.sort(rng.uniform(0, DAYS, size=rows))
        phase = 0.1 * month if truth == DRIFTING else 0.0
        curve = 2.0 * np.sin(x + phase) + level[month]
        tables.append(
            pd.DataFrame({"day": day, "x": x, "curve": curve, "y": curve + rng.normal(size=rows)})
        )
    return tables


Errors = list[float]
Way = Callable[[Sequence[pd.DataFrame], float], tuple[Errors, float]]


def by_stream(
    tables: Sequence[pd.DataFrame],
    epsilon: float,
    *,
    people: People = DISJOINT,
    forgetting: float | None = None,
) -> tuple[Errors, float]:
    """Return errors after each month, and the ε of whoever was asked most.

    Parameters
    ----------
    tables : sequence of pandas.DataFrame
    epsilon : float
        Of each month, if nobody comes again; of all together, if anybody may.
    people : {"disjoint", "overlapping"}
    forgetting : float, optional
    """
    months = len(tables) - 1
    each = epsilon if people == DISJOINT else epsilon / months
    errors = []
    with TemporaryDirectory() as folder:
        stream = Stream(
            DPGPRegressor(bounds=BOUNDS, epsilon=each),
            [table.drop(columns="curve") for table in tables],
            folder=folder,
            output="y",
            inputs=["x"],
            time="day",
            origin=0,
            length=DAYS,
            horizon=months,
            people=people,
            forgetting=forgetting,
        )
        stream.advance()
        for month in range(months):
            release = Release.load(Path(folder) / release_name(month))
            at = tables[month][["x", "day"] if forgetting else ["x"]].to_numpy()
            errors.append(_error(release.predict(at), tables[month]))
        return errors, stream.spent


def alone(tables: Sequence[pd.DataFrame], epsilon: float) -> tuple[Errors, float]:
    """Return the same of months that are fitted each on its own."""
    errors = []
    for table in tables[:-1]:
        model = DPGPRegressor(bounds=BOUNDS, epsilon=epsilon).fit(table[["x"]], table["y"])
        errors.append(_error(model.predict(table[["x"]]), table))
    return errors, epsilon


def at_once(tables: Sequence[pd.DataFrame], epsilon: float) -> tuple[Errors, float]:
    """Return the same of one fit to all months, after the last; there is none before."""
    rows = pd.concat(tables[:-1])
    model = DPGPRegressor(bounds=BOUNDS, epsilon=epsilon).fit(rows[["x"]], rows["y"])
    last = tables[-2]
    missing = [float("nan")] * (len(tables) - 2)
    return [*missing, _error(model.predict(last[["x"]]), last)], epsilon


def _error(mean: Any, table: pd.DataFrame) -> float:
    return float(np.sqrt(np.mean(np.square(np.asarray(mean) - table["curve"].to_numpy()))))


def _forgetting(tables: Sequence[pd.DataFrame], epsilon: float) -> tuple[Errors, float]:
    return by_stream(tables, epsilon, forgetting=FORGETTING)


def _again(tables: Sequence[pd.DataFrame], epsilon: float) -> tuple[Errors, float]:
    return by_stream(tables, epsilon, people=OVERLAPPING)


WAYS: Mapping[str, Way] = MappingProxyType(
    {
        "stream, nobody twice": by_stream,
        "stream that forgets, nobody twice": _forgetting,
        "stream, anybody again": _again,
        "each month alone, nobody twice": alone,
        "all at once, after the last": at_once,
    }
)
Found = dict[tuple[str, str], list[tuple[float, ...]]]


@dataclass(frozen=True)
class Monthly(Experiment[Found]):
    """A year of monthly tables: errors of streams after each, and what each person spends.

    Attributes
    ----------
    rows, months, draws : int
    epsilon : float
    """

    name: ClassVar[str] = "monthly"
    small: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"rows": 30, "months": 3, "draws": 1, "epsilon": 2.0}
    )

    rows: Rows = 200
    draws: RowDraws = 6
    months: Annotated[int, typer.Option(help="How many, at least two.")] = 12
    epsilon: Annotated[float, typer.Option(help="What each person spends; no δ.")] = 1.0

    def compute(self, progress: Progress) -> Found:
        """Return errors after the first month, half of them and the last, and ε, by draw."""

        def measure(truth: str, draw: int) -> dict[str, tuple[float, ...]]:
            rng = np.random.default_rng(draw)
            tables = drawn_months(rng, rows=self.rows, months=self.months, truth=truth)
            found = {}
            for way, errors_of in WAYS.items():
                errors, spent = errors_of(tables, self.epsilon)
                found[way] = (errors[0], errors[self.months // 2 - 1], errors[-1], spent)
            return found

        with progress("months", steps=len(TRUTHS) * self.draws) as tick:
            return draw_by_draw(TRUTHS, draws=self.draws, measure=measure, tick=tick)

    def tables(self, found: Found) -> Iterable[Table | str]:
        """Lay out means over draws with their standard errors."""
        heads = ("error after 1", f"after {self.months // 2}", f"after {self.months}", "ε of each")
        table = table_titled(
            f"{self.months} months of {self.rows:,} rows", "curve", "way", right=heads
        )
        for (truth, way), draws in found.items():
            # There is nothing to tell before the last month of what is asked at once.
            told = ("" if "nan" in text else text for text in means_with_errors(draws))
            table.add_row(truth, way, *told)
        yield table
