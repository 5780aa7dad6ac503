"""Raw tables: text, gaps and codes as they come, beside encodings that somebody makes by hand.

Every table is read as it is and split at random into rows to fit and rows to predict, anew for
every draw. "As it comes": the data frame is given to the estimator, which infers a schema. "By
hand": numbers with gaps filled by the median of the column and one more column that says where,
categories as one column of zeros and ones each, as most would do it. "Numbers alone" leaves text
and gaps out. All are given the same bounds and the same ε.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pandas as pd
import plotly.data
import typer
from rich.table import Table as Printed
from sklearn.model_selection import ShuffleSplit

from cloakgp import DPGPClassifier, DPGPRegressor
from cloakgp.privacy import OutputBounds, ask
from cloakgp.utils.arrays import Array
from experiments.cross_validation import root_mean_square
from experiments.datasets import load_citibike, load_hmeq, load_kung
from experiments.framework import Experiment, Progress, table_titled
from experiments.spread import mean_and_error, with_error

WayName = Literal["as it comes", "by hand", "numbers alone", "one number"]
WAYS: tuple[WayName, ...] = ("as it comes", "by hand", "numbers alone", "one number")
HELD_OUT, TABLE_ROWS = 300, 2_000


@dataclass(frozen=True, eq=False)
class RawTable:
    """Public columns as they come, a private column, and what is known of it beforehand.

    Attributes
    ----------
    name : str
    columns : DataFrame
    outputs : Series
    bounds : (float, float) or None
        None if outputs are classes.
    """

    name: str
    columns: pd.DataFrame
    outputs: pd.Series[Any]
    bounds: tuple[float, float] | None = None

    @property
    def classes(self) -> list[Any]:
        """The declared classes, in order."""
        return sorted(self.outputs.unique().tolist())


def raw_tables() -> dict[str, Callable[[], RawTable]]:
    """Return readers of the tables, by name."""
    return {
        "tips": lambda: _of(plotly.data.tips(), "tips", "tip", bounds=(0.0, 20.0)),
        "nations": lambda: _of(
            plotly.data.gapminder().drop(columns=["iso_alpha", "iso_num"]),
            "nations",
            "lifeExp",
            bounds=(20.0, 90.0),
        ),
        "!Kung, both sexes": lambda: _of(
            load_kung(), "!Kung, both sexes", "height", bounds=(40.0, 200.0)
        ),
        "Citi Bike": lambda: _of(
            load_citibike().head(TABLE_ROWS), "Citi Bike", "tripduration", bounds=(0.0, 3600.0)
        ),
        "loans, value": lambda: _of(
            load_hmeq().drop(columns="BAD").dropna(subset="VALUE"),
            "loans, value",
            "VALUE",
            bounds=(0.0, 500_000.0),
        ),
        "loans, default": lambda: _of(load_hmeq(), "loans, default", "BAD"),
    }


def _of(
    frame: pd.DataFrame, name: str, output: str, *, bounds: tuple[float, float] | None = None
) -> RawTable:
    frame = frame.reset_index(drop=True)
    return RawTable(name, frame.drop(columns=output), frame[output], bounds)


def encoded_by_hand(
    train: pd.DataFrame, test: pd.DataFrame, *, most_levels: int | None = None
) -> tuple[Array, Array]:
    """Return both parts as most people would encode them; levels and medians are those of `train`.

    Numbers with medians for gaps, and a column that says so; dates as days from their median; a
    column of zeros and ones for each level of a text.

    Parameters
    ----------
    train, test : DataFrame
    most_levels : int, optional
        So many of the most frequent levels of a text have a column; the others have none.

    Examples
    --------
    >>> train = pd.DataFrame({"age": [20.0, None, 40.0], "job": ["a", "b", "a"]})
    >>> encoded_by_hand(train, train.head(2))[1]
    array([[20.,  0.,  1.,  0.],
           [30.,  1.,  0.,  1.]])
    """
    parts: tuple[list[Array], list[Array]] = ([], [])
    for name in train.columns:
        column = train[name]
        is_date = pd.api.types.is_datetime64_any_dtype(column)
        if is_date or pd.api.types.is_numeric_dtype(column):
            median = column.median()
            for part, frame in zip(parts, (train, test), strict=True):
                filled = frame[name].fillna(median)
                days = (filled - median) / pd.Timedelta(days=1) if is_date else filled
                part.append(days.to_numpy(dtype=float))
                if column.isna().any():
                    part.append(frame[name].isna().to_numpy(dtype=float))
            continue
        levels = sorted(column.value_counts().index[:most_levels])
        for part, frame in zip(parts, (train, test), strict=True):
            part.extend((frame[name] == level).to_numpy(dtype=float) for level in levels)
    return np.column_stack(parts[0]), np.column_stack(parts[1])


def numbers_alone(train: pd.DataFrame, test: pd.DataFrame) -> tuple[Array, Array]:
    """Return the columns of numbers without gaps, or the median of each where there is a gap."""
    numbers = [name for name in train if pd.api.types.is_numeric_dtype(train[name])]
    medians = train[numbers].median()
    return (
        train[numbers].fillna(medians).to_numpy(dtype=float),
        test[numbers].fillna(medians).to_numpy(dtype=float),
    )


def error_of(table: RawTable, way: WayName, *, epsilon: float, rows: int, draw: int) -> float:
    """Return the error of a way on one split.

    RMSE over the sd of the outputs held out; of classes the share that is told wrongly, over that
    of the more common class.
    """
    held_out = min(HELD_OUT, len(table.outputs) // 4)
    split = ShuffleSplit(1, test_size=held_out, train_size=None, random_state=draw)
    train, test = next(split.split(table.columns))
    train = train[:rows]
    fitted, asked = table.columns.iloc[train], table.columns.iloc[test]
    outputs, truth = table.outputs.iloc[train], table.outputs.iloc[test].to_numpy()
    inputs: tuple[Any, Any]
    if way == "by hand":
        inputs = encoded_by_hand(fitted, asked)
    elif way == "numbers alone":
        inputs = numbers_alone(fitted, asked)
    else:
        inputs = fitted.reset_index(drop=True), asked.reset_index(drop=True)
    if table.bounds is None:
        common = pd.Series(truth).value_counts(normalize=True).max()
        if way == "one number":
            return 1.0
        classifier = DPGPClassifier(classes=table.classes, epsilon=epsilon, delta=0.0)
        told = classifier.fit(inputs[0], outputs.to_numpy()).predict(inputs[1])
        return float(np.mean(told != truth) / (1.0 - common))
    bounds = OutputBounds(*table.bounds)
    truth = bounds.clip(truth.astype(float))
    if way == "one number":
        answers = ask(
            np.full((1, len(outputs)), 1.0 / len(outputs)),
            outputs.to_numpy(dtype=float),
            question=bounds,
            epsilon=epsilon,
            delta=0.0,
            noise="laplace",
        )
        predicted = np.broadcast_to(answers.values[0, 0] + bounds.middle, len(truth))
    else:
        model = DPGPRegressor(bounds=table.bounds, epsilon=epsilon, delta=0.0)
        predicted = model.fit(inputs[0], outputs.to_numpy(dtype=float)).predict(inputs[1])
    return root_mean_square(predicted - truth) / float(truth.std())


@dataclass(frozen=True, eq=False)
class Found:
    """Errors by ε, table and way, of shape (draws,)."""

    errors: Mapping[tuple[float, str, WayName], Array]


@dataclass(frozen=True)
class RawTables(Experiment[Found]):
    """Compare raw tables, as they come, with encodings by hand."""

    name: ClassVar[str] = "raw-tables"
    small: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"draws": 2, "rows": 60, "epsilons": (1.0,), "names": ("tips",)}
    )

    draws: Annotated[int, typer.Option(min=2, help="Splits, with noise of their own.")] = 6
    rows: Annotated[int, typer.Option(min=20, help="The most rows that are fitted.")] = 500
    epsilons: Sequence[float] = (1.0, 3.0)
    # Of tables; None: all.
    names: Sequence[str] | None = None

    def compute(self, progress: Progress) -> Found:
        """Fit every table in every way."""
        readers = raw_tables()
        chosen = readers if self.names is None else {name: readers[name] for name in self.names}
        tables = {name: read() for name, read in chosen.items()}
        keys = [
            (epsilon, name, way) for epsilon in self.epsilons for name in tables for way in WAYS
        ]
        found: dict[tuple[float, str, WayName], Array] = {}
        with progress("raw tables", steps=len(keys) * self.draws) as tick:
            for epsilon, name, way in keys:
                errors = []
                for draw in range(self.draws):
                    errors.append(
                        error_of(tables[name], way, epsilon=epsilon, rows=self.rows, draw=draw)
                    )
                    tick()
                found[epsilon, name, way] = np.array(errors)
        return Found(found)

    def tables(self, found: Found) -> Iterable[Printed | str]:
        """Lay out errors by ε and table."""
        for epsilon in dict.fromkeys(epsilon for epsilon, _, _ in found.errors):
            table = table_titled(
                f"ε = {epsilon:g}, no δ, at most {self.rows} rows, {self.draws} splits (se over "
                "splits): RMSE over the sd of outputs held out; of classes, mistakes over those "
                "of the more common class",
                "table",
                right=WAYS,
            )
            for name in dict.fromkeys(name for _, name, _ in found.errors):
                cells = []
                for way in WAYS:
                    mean, error = mean_and_error(found.errors[epsilon, name, way][None])
                    cells.append(with_error(mean, error, ".3f"))
                table.add_row(name, *cells)
            yield table
