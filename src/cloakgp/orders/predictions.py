"""Predictions for a table in a file: its columns, followed by predictions.

The table is read twice and never held. In the first pass everything is predicted, and kept in a
temporary file, since how many digits are written depends on the smallest sd of all; in the second
it is written behind the columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from cloakgp.columns.numbers import Number
from cloakgp.columns.problems import BELOW_HEADER
from cloakgp.columns.schema import Schema, UnseenLevels
from cloakgp.data.cells import as_numbers, check_cells
from cloakgp.data.copying import CopiedColumns, PublicTable, TableChunk
from cloakgp.data.formats import TableFormat, format_of
from cloakgp.data.formats.delimited import CsvFormat
from cloakgp.data.limits import UNLIMITED, ReadingLimits
from cloakgp.data.schema import TEXT
from cloakgp.orders.progress import Reporter
from cloakgp.release import MultiOutputRelease, OneOutputRelease, Release
from cloakgp.release.distribution_columns import NOTHING, DistributionColumns
from cloakgp.release.points import Points, without_any_prediction, without_prediction
from cloakgp.release.predictions import sensible_digits
from cloakgp.report.columns import input_names, public_columns
from cloakgp.report.controls import remark_outside, rows_outside
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra
from cloakgp.utils.formatting import NORMAL_95
from cloakgp.utils.names import Estimate

with extra("tables"):
    import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd

Predicting = OneOutputRelease | MultiOutputRelease

CHUNK_ROWS = 5000
PROBABILITY_DIGITS = 4


class TablePredictions:
    """Predictions of a release for a table: a first pass computes them, a second one writes them.

    Parameters
    ----------
    release : OneOutputRelease or MultiOutputRelease
    at : Path
        The table, or a folder of tables. The private column is not read if it is there.
    spool : binary file
        Empty, to be written and read: holds what is predicted, 8 bytes for each number, all of
        it public.
    suffix : str
        Of the file that is to be written.
    new_output : bool
        Limits of a new output rather than of the curve; of numbers only.
    estimate : {"median", "mean"}
    asked : DistributionColumns
        Of the distribution of new outputs; of numbers only.
    exposure : str
        The column with the exposures of new counts, which are 1 if it is empty.
    reporter : Reporter
        Receives the progress.
    notify : callable
        Called with a remark about a column left out, undeclared levels, rows without a prediction,
        or numbers outside of what was asked.
    chunk_rows : int, optional
        The most rows that are held at once, `CHUNK_ROWS` if not given. What is written does not
        depend on it, but for a last digit where rounding errors of predictions, some 1e-15 of
        them, decide how it is rounded.
    limits : ReadingLimits, optional
        Of each file.

    Raises
    ------
    ValueError
        If the table lacks a column, or cells are at fault.
    """

    def __init__(
        self,
        release: Predicting,
        at: Path,
        *,
        spool: IO[bytes],
        suffix: str,
        new_output: bool,
        estimate: Estimate,
        asked: DistributionColumns = NOTHING,
        exposure: str = "",
        reporter: Reporter,
        notify: Callable[[str], None],
        chunk_rows: int | None = None,
        limits: ReadingLimits = UNLIMITED,
    ) -> None:
        classified = isinstance(release, OneOutputRelease) and bool(release.class_labels)
        if classified and new_output:
            raise ValueError(
                "--new-output goes with releases of numbers: classes have probabilities"
            )
        several = release.names if isinstance(release, MultiOutputRelease) else ()
        asked.check_numbers(classes=classified)
        asked.check_outputs(several)
        if exposure:
            check_exposure(release, asked)
        self._exposure = exposure
        needed = public_columns(release)
        self._table = PublicTable(
            at,
            needed=[*dict.fromkeys([*needed, exposure])] if exposure else needed,
            left_out=sorted(set(output_names(release)) - set(needed)),
            chunk_rows=chunk_rows or CHUNK_ROWS,
            limits=limits,
        )
        for name in self._table.left_out:
            notify(f"column {name} of {at} has the private column's name: left out")
        self._release, self._suffix, self._spool = release, suffix, spool
        self._reporter = reporter
        self._asked: dict[str, Any] = {
            "new_output": new_output,
            "interval": asked.interval,
            "quantiles": asked.quantiles,
            "above": asked.above,
        }
        self._probabilities = asked.probabilities(several)
        if isinstance(release, Release):
            self._asked["estimate"] = estimate
        self._copied = CopiedColumns(text=suffix.startswith(TEXT))
        # What is predicted, by name, and which of it is text.
        self._names: dict[str, bool] = {}
        self._words: set[str] = set()
        self._unseen: dict[str, UnseenLevels] = {}
        # How many cells of each column are empty that must not be, for a prediction.
        self._lacking: Counter[str] = Counter()
        # In how many rows each number is out of its range, and that range.
        self._outside: dict[str, tuple[int, float, float]] = {}
        least = self._predict()
        for levels in self._unseen.values():
            notify(str(levels))
        for name, gaps in self._lacking.items():
            notify(without_prediction(name, gaps))
        for name, (count, lo, hi) in self._outside.items():
            notify(remark_outside(name, count, lo=lo, hi=hi))
        if not self._table.count:
            self._note_names(self._release.predict_frame(_anywhere(release), **self._asked))
        if not self._names:
            raise ValueError(without_any_prediction(self._lacking))
        self._digits = PROBABILITY_DIGITS if classified else sensible_digits(np.array([least]))

    def _predict(self) -> float:
        """Predict for all rows; return the smallest positive sd, infinity if there is none."""
        done, total, least = 0, self._table.count, np.inf
        with closing(self._table.chunks()) as chunks:
            for chunk in chunks:
                self._reporter.rows("predicting", done, total)
                self._copied.see(chunk.table)
                points = self._points(chunk)
                np.save(self._spool, points.known)
                if len(points.X):
                    self._note_outside(points.X)
                    asked = self._asked
                    if self._exposure:
                        exposures = exposures_of(
                            self._release,
                            chunk.cells,
                            self._exposure,
                            first_row=chunk.first_row,
                            place=chunk.place,
                        )
                        asked = asked | {"exposure": exposures[points.known]}
                    frame = self._release.predict_frame(points.X, **asked)
                    self._note_names(frame)
                    for name, text in self._names.items():
                        values = frame[name].to_numpy(dtype=np.str_ if text else np.float64)
                        np.save(self._spool, values)
                        self._words |= set(values.tolist()) if text else set()
                    for spread in spreads(frame):
                        least = min(least, spread[spread > 0].min(initial=np.inf))
                done += len(points.known)
        return float(least)

    def _note_names(self, frame: pd.DataFrame) -> None:
        for name, column in frame.items():
            self._names[str(name)] = not np.issubdtype(column.to_numpy().dtype, np.number)

    def _note_outside(self, X: Array) -> None:
        if not isinstance(self._release, Release):
            return
        for name, (count, lo, hi) in rows_outside(self._release, X).items():
            before = self._outside.get(name, (0, lo, hi))[0]
            self._outside[name] = (before + count, lo, hi)

    def _points(self, chunk: TableChunk) -> Points:
        """Return where to predict for some rows."""
        schema = self._release.schema
        if schema is None:
            X = np.column_stack([_numbers(chunk, name) for name in input_names(self._release)])
            return Points(X=X, known=np.ones(len(X), dtype=bool))
        encoded = schema.encode(
            chunk.cells, first_row=chunk.first_row, place=chunk.place, one_by_one=True
        )
        for levels in encoded.unseen:
            before = self._unseen.get(levels.column)
            self._unseen[levels.column] = levels if before is None else before.merge(levels)
        self._lacking.update(encoded.lacking)
        known = np.asarray(np.isfinite(encoded.X).all(axis=1), dtype=bool)
        return Points(X=encoded.X[known], known=known)

    def write(self, file: BinaryIO) -> int:
        """Write all columns but the private one, and predictions; return the number of rows.

        Parameters
        ----------
        file : binary file

        Raises
        ------
        ValueError
            If the table has changed meanwhile, or nothing is written in such a format.
        """
        self._spool.seek(0)
        with closing(self._table.chunks()) as chunks:
            self._format().write(self._written(chunks), file, suffix=self._suffix)
        rows = self._table.count
        assert rows is not None
        return rows

    def _format(self) -> TableFormat:
        """Return the format of the written table: for text, in the dialect of the input."""
        made, reader = format_of(Path(self._suffix)), self._table.table_format
        if not (isinstance(made, CsvFormat) and isinstance(reader, CsvFormat)):
            return made
        schema, first = self._release.schema, self._table.paths[0]
        return CsvFormat(
            self._copied.notation.dialect(
                reader.dialect_of(first),
                name=first,
                suffix=self._suffix,
                decimal="." if schema is None else schema.decimal[0],
                also=[*self._table.names, *self._names, *self._words],
            )
        )

    def _written(self, chunks: Iterator[TableChunk]) -> Iterator[Any]:
        """Yield the output table of every chunk."""
        prefix = "predicted_" if set(self._table.names) & set(self._names) else ""
        done = 0
        for chunk in chunks:
            self._reporter.rows("writing", done, self._table.count)
            known = np.load(self._spool)
            predicted = {f"{prefix}{name}": self._spooled(known, name) for name in self._names}
            yield pa.table(self._copied.copy(chunk.table) | predicted)
            done += len(known)

    def _spooled(self, known: NDArray[np.bool_], name: str) -> Any:
        """Return the next column that was predicted, with nothing where inputs are lacking."""
        text = self._names[name]
        digits = PROBABILITY_DIGITS if name in self._probabilities else self._digits
        values = np.full(len(known), None if text else np.nan, dtype=object if text else float)
        if known.any():
            found = np.load(self._spool)
            values[known] = found if text else np.round(found, digits)
        return pa.array(values, pa.string() if text else pa.float64(), from_pandas=True)


def _anywhere(release: Predicting) -> Array:
    """Return some inputs of a release, shape (1, D)."""
    if isinstance(release, MultiOutputRelease):
        return release.entries.input_ranges[:1, :-1]
    return release.input_ranges[:1]


def _numbers(chunk: TableChunk, name: str) -> Array:
    """Return the numbers of a column, without gaps."""
    missing, values = as_numbers(chunk.table.column(name))
    check_cells(name, missing, values, first_row=chunk.first_row, place=chunk.place)
    return values


def exposures_of(
    release: Predicting,
    table: Any,
    name: str,
    *,
    first_row: int = 0,
    place: str = "",
    row: str = BELOW_HEADER,
) -> Array:
    """Return exposures of new counts, in the notation in which those of the release were read.

    Parameters
    ----------
    release : OneOutputRelease or MultiOutputRelease
    table : mapping of str to columns, or table of pandas, polars or Arrow
    name : str
        Of the column that has them.
    first_row, place, row
        As for `cloakgp.columns.Schema.encode`.

    Raises
    ------
    ValueError
        If there is no such column, or a cell is no number.
    """
    known = release.exposure if isinstance(release, Release) else None
    schema = Schema(()) if release.schema is None else release.schema
    if known is None:
        # It was not read from a table, and others are read as their inputs are.
        decimal, thousands = schema.decimal
        known = Number(name, decimal=decimal, thousands=thousands)
    read = replace(schema, columns=(replace(known, name=name),))
    return read.encode(table, first_row=first_row, place=place, row=row).X[:, 0]


def spreads(frame: pd.DataFrame) -> list[Array]:
    """Return the sds of what is predicted; of quantiles, which have limits, by these.

    Parameters
    ----------
    frame : pandas.DataFrame
        Of `Release.predict_frame`.
    """
    columns = {str(name): column.to_numpy() for name, column in frame.items()}
    sds = [column for name, column in columns.items() if name == "sd" or name.endswith("_sd")]
    if sds:
        return sds
    quantiles = [name.removesuffix("_lower") for name in columns if name.endswith("_lower")]
    return [
        (columns[f"{name}_upper"] - columns[f"{name}_lower"]) / (2 * NORMAL_95)
        for name in quantiles
    ]


def check_exposure(release: Predicting, asked: DistributionColumns) -> None:
    """Refuse exposures of what is no count, and where nothing depends on them.

    Parameters
    ----------
    release : OneOutputRelease or MultiOutputRelease
    asked : DistributionColumns
        Of the distribution of new outputs.

    Raises
    ------
    ValueError
    """
    if not (isinstance(release, Release) and release.likelihood.windowed):
        raise ValueError("--exposure goes with releases of counts, and has no meaning here")
    if not asked:
        raise ValueError(
            "rates are those of one unit of exposure: --exposure goes with --interval, --quantiles "
            "or --above"
        )


def output_names(release: Predicting) -> tuple[str, ...]:
    """Return the names of the private columns."""
    return release.names if isinstance(release, MultiOutputRelease) else (release.output_name,)
