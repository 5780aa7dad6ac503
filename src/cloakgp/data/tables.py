"""Tables that fit in memory, with the columns that are read for a fit.

Every private cell is read on its own, whatever the others are. No error here shows a value of the
private column, or keeps an exception that could.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakgp.columns.schema import Schema
from cloakgp.data.cells import as_numbers, as_person_ids, as_texts, check_cells
from cloakgp.data.formats import TableFormat, format_of
from cloakgp.data.formats.base import attempt, check_ids
from cloakgp.data.mixed import objects_of
from cloakgp.data.raw import DROP, RawRows, RawTable
from cloakgp.data.schema import NoRowsError, check_file, checked_names
from cloakgp.privacy.person_ids import PersonIds
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra

with extra("tables"):
    import pyarrow as pa

# Rows that are read at once, where the format allows a choice.
BATCH_ROWS = 2**16
# Marks a table in Arrow whose ids of persons are whole numbers in the file.
WHOLE_IDS = b"cloakgp: whole numbers"


def read_rows(path: str | Path, *, inputs: Sequence[str], output: str) -> tuple[Array, Array]:
    r"""Read public inputs and the private output of a table.

    Parameters
    ----------
    path : str or Path
        Ending in .csv, .csv.gz or .parquet.
    inputs : sequence of str
        Names of the public columns, in the order wanted.
    output : str
        Name of the private column.

    Returns
    -------
    X : array of shape (N, D)
    y : array of shape (N,)
        Private: hand it to a fit and to nothing else.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If a column is missing, or holds empty, infinite or non-numeric cells, or the file has no
        rows or cannot be read. Names the first bad row of an input; of the output, the column only.

    Notes
    -----
    Cells of text are numbers if they are written in decimal digits, with a point and an exponent if
    need be; ``true`` is 1 and ``false`` is 0. Columns that are not named may hold anything.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     people = Path(folder) / "people.csv"
    ...     _ = people.write_text("age,height\n30,170\n40,165\n")
    ...     X, y = read_rows(people, inputs=["age"], output="height")
    >>> X.shape, y.shape
    ((2, 1), (2,))
    """
    names = checked_names(inputs, output=output)
    table = _read_columns(Path(path), names=[*names, output])
    return _public_columns(table, names), _private_column(table, output)


def read_labelled_rows(
    path: str | Path, *, inputs: Sequence[str], output: str, classes: Sequence[str]
) -> tuple[Array, NDArray[np.object_]]:
    r"""Read public inputs of a table, and private labels as text.

    A cell is matched with the declared classes letter by letter, but for blanks around it: 1 is not
    1.0, and Yes is not yes. In Parquet, numbers and truth values are first written as Python writes
    them, and whole numbers without a point.

    Parameters
    ----------
    path, inputs, output
        As for `read_rows`.
    classes : sequence of str
        Every class that can occur: public, and declared without the data.

    Returns
    -------
    X : array of shape (N, D)
    y : array of str, shape (N,)
        Private: hand it to a fit and to nothing else.

    Raises
    ------
    FileNotFoundError, ValueError
        As for `read_rows`; and if a cell of the output is none of the classes. No message tells
        which, nor what it holds.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     people = Path(folder) / "people.csv"
    ...     _ = people.write_text("age,ill\n30,0\n40,1\n")
    ...     X, y = read_labelled_rows(people, inputs=["age"], output="ill", classes=["0", "1"])
    >>> X.shape, y.shape
    ((2, 1), (2,))
    """
    names = checked_names(inputs, output=output)
    table = _read_columns(Path(path), names=[*names, output])
    return _public_columns(table, names), _label_column(table, output, classes=classes)


def read_inputs(path: str | Path, *, names: Sequence[str]) -> Array:
    r"""Read public inputs of a table, shape (N, D); path, names and errors as for `read_rows`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "grid.csv").write_text("age\n30\n40\n")
    ...     read_inputs(Path(folder) / "grid.csv", names=["age"])
    array([[30.],
           [40.]])
    """
    table = _read_columns(Path(path), names=checked_names(names))
    return _public_columns(table, names)


def read_private(
    path: str | Path, *, output: str, table_format: TableFormat | None = None
) -> NDArray[np.object_]:
    r"""Read the private column of a table alone, every cell as its text.

    Parameters
    ----------
    path : str or Path
    output : str
    table_format : TableFormat, optional
        If not given, the one that the file's name tells.

    Returns
    -------
    array of shape (N,)
        Private: for its keyed fingerprint, and for nothing else.

    Raises
    ------
    FileNotFoundError, ValueError
        As `read_rows`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     people = Path(folder) / "people.csv"
    ...     _ = people.write_text("age,ill\n30,no\n40,yes\n")
    ...     read_private(people, output="ill").tolist()
    ['no', 'yes']
    """
    table = _read_columns(Path(path), names=[output], table_format=table_format)
    return np.array(as_texts(table.column(output), name=output), dtype=object)


def read_private_rows(
    path: str | Path,
    *,
    inputs: Sequence[str],
    output: str,
    classes: Sequence[str] = (),
    table_format: TableFormat | None = None,
) -> tuple[Array, NDArray[Any]]:
    """Read private inputs of numbers, and private numbers, or labels as text.

    Parameters
    ----------
    path : str or Path
    inputs : sequence of str
    output : str
    classes : sequence of str
        If the output is of labels: every class that can occur, as for `read_labelled_rows`.
    table_format : TableFormat, optional
        If not given, the one that the file's name tells.

    Returns
    -------
    X : array of shape (N, D)
    y : array of shape (N,)
        Both private: hand them to a fit and to nothing else.

    Raises
    ------
    FileNotFoundError, ValueError
        As `read_rows` of its output: no message tells in which row something is wrong.
    """
    names = checked_names(inputs, output=output)
    table = _read_columns(Path(path), names=[*names, output], table_format=table_format)
    X = np.column_stack([_private_column(table, name) for name in names])
    return X, _private_output(table, output, classes=classes)


def read_private_columns(
    path: str | Path,
    *,
    schema: Schema,
    output: str,
    classes: Sequence[str] = (),
    table_format: TableFormat | None = None,
) -> tuple[dict[str, NDArray[np.object_]], NDArray[Any]]:
    """Read raw private inputs, every cell as it stands, and private numbers, or labels as text.

    Private numbers are read in the notation that the schema states.

    Parameters
    ----------
    path : str or Path
    schema : Schema
        Of the inputs.
    output : str
    classes : sequence of str
        If the output is of labels: every class that can occur, as for `read_labelled_rows`.
    table_format : TableFormat, optional
        If not given, the one that the file's name tells.

    Returns
    -------
    columns : dict from str to array of objects, shape (N,)
    y : array of shape (N,)
        Both private: hand them to a fit and to nothing else.

    Raises
    ------
    FileNotFoundError, ValueError
        As `read_rows` of its output: no message tells in which row something is wrong.
    """
    names = checked_names(schema.sources, output=output)
    table = _read_columns(Path(path), names=[*names, output], table_format=table_format)
    columns = {}
    for name in names:
        cells = objects_of(table.column(name))
        columns[name] = np.empty(len(cells), dtype=object)
        columns[name][:] = cells
    place = len(names)
    column, _ = RawRows.by_schema(schema, classes=tuple(classes)).private(table.column(place))
    table = table.set_column(place, output, column)
    return columns, _private_output(table, output, classes=classes)


def read_public(
    path: str | Path,
    *,
    names: Sequence[str] = (),
    most: int | None = None,
    table_format: TableFormat | None = None,
) -> RawTable:
    r"""Read raw public columns of a table; all of them if none is named.

    Parameters
    ----------
    path : str or Path
    names : sequence of str
    most : int, optional
        How many rows to read, from the first; all if not given.
    table_format : TableFormat, optional
        If not given, the one that the file's name tells.

    Raises
    ------
    FileNotFoundError, ValueError
        As for `read_rows`; nothing is wrong with what cells hold.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "people.csv").write_text("age;job\n30;cook\n")
    ...     read_public(Path(folder) / "people.csv")["job"].texts().tolist()
    ['cook']
    """
    # Of columns with the same name, the first.
    wanted = list(names) or list(dict.fromkeys(column_names_of(path, table_format=table_format)))
    table = _read_columns(Path(path), names=wanted, table_format=table_format, most=most)
    return RawTable.of(table, wanted)


def read_public_rows(
    path: str | Path,
    *,
    names: Sequence[str],
    groups: str | None = None,
    raw: RawRows | None = None,
    output: str = "",
    table_format: TableFormat | None = None,
) -> tuple[RawTable, PersonIds | None]:
    r"""Read raw public columns of a table, and whose rows they are, at once: of the same rows.

    Which rows have a private value is public where the custodian says that the others are left
    out; no private cell is looked at otherwise.

    Parameters
    ----------
    path : str or Path
    names : sequence of str
    groups : str, optional
        Name of the public column that says whose row it is.
    raw : RawRows, optional
        Whether rows without a private value are left out; none is if not given.
    output : str
        Name of the private column, with raw rows.
    table_format : TableFormat, optional
        If not given, the one that the file's name tells.

    Returns
    -------
    columns : RawTable
    people : PersonIds or None

    Raises
    ------
    FileNotFoundError, ValueError
        As for `read_person_ids`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     people = Path(folder) / "people.csv"
    ...     _ = people.write_text("person,age\neve,30\n")
    ...     read_public_rows(people, names=["age"], groups="person")[1]
    ['eve']

    >>> from cloakgp.columns import Number, Schema
    >>> raw = RawRows(Schema((Number("age"),)), missing_output="drop")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     people = Path(folder) / "people.csv"
    ...     _ = people.write_text("age,height\n30,170\n40,\n")
    ...     found, _ = read_public_rows(people, names=["age"], raw=raw, output="height")
    >>> found["age"].texts().tolist()
    ['30']
    """
    drops = raw is not None and raw.missing_output == DROP
    wanted = [*names, *([] if groups is None else [groups]), *([output] if drops else [])]
    table = _read_columns(Path(path), names=wanted, table_format=table_format, ids=groups)
    if raw is not None and drops:
        table = table.filter(pa.array(raw.private(table.column(len(wanted) - 1))[1]))
    people = None if groups is None else _person_ids(table, groups)
    return RawTable.of(table, names), people


def column_names_of(path: str | Path, *, table_format: TableFormat | None = None) -> list[str]:
    """Return the names of a table's columns: if its first line holds people, those of people.

    Raises
    ------
    FileNotFoundError, ValueError
        If it cannot be read.
    """
    check_file(Path(path))
    reader = format_of(Path(path)) if table_format is None else table_format
    return attempt(Path(path), lambda: reader.look(Path(path)))[0]


@dataclass(frozen=True, eq=False, repr=False)
class People:
    """A table that is to be fitted at once.

    Attributes
    ----------
    columns : RawTable
        Public.
    private : array of shape (N,)
        Hand it to a fit and to nothing else.
    groups : PersonIds or None
        Whose rows they are.
    exposure : array of shape (N,) or None
        Public, of counts.
    without_output : int
        The number of further rows, which are left out as they have no private value.
    more_private : dict of str to arrays of shape (N,)
        Further private columns, by name: for a fit, too, and for nothing else.
    """

    columns: RawTable
    private: NDArray[Any]
    groups: PersonIds | None
    exposure: Array | None = None
    without_output: int = 0
    more_private: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def read_people(
    path: str | Path,
    *,
    raw: RawRows,
    output: str,
    groups: str | None = None,
    more: Sequence[str] = (),
    more_outputs: Sequence[str] = (),
    table_format: TableFormat | None = None,
) -> People:
    """Read raw public columns and the private column of a table, at once: of the same rows.

    So are further private columns: a database may give rows in another order when it is asked
    again, and what one person says would stand in the rows of several.

    Parameters
    ----------
    path : str or Path
    raw : RawRows
        What the public columns are, that of exposures among them if there is one, which classes
        there are if the private one holds classes, and what is done about missing private cells.
    output : str
        Name of the private column.
    groups : str, optional
        Name of the public column that says whose row it is.
    more : sequence of str
        Names of further public columns, which are no inputs.
    more_outputs : sequence of str
        Names of further private columns. No row is left out then, since it may have one of them.
    table_format : TableFormat, optional

    Raises
    ------
    FileNotFoundError, ValueError
        As for `read_rows` and `read_labelled_rows`; and if rows that lack one of several private
        columns are to be left out.
    """
    if more_outputs and raw.missing_output == DROP:
        raise ValueError("rows are left out (missing_output) for one private column, not several")
    exposure = raw.exposure
    counted = [] if exposure is None else [exposure.name]
    names = checked_names([*raw.schema.sources, *more, *counted], output=output)
    wanted = [*names, *([] if groups is None else [groups]), *more_outputs, output]
    table = _read_columns(Path(path), names=wanted, table_format=table_format, ids=groups)
    kept = None
    for place in range(len(wanted) - len(more_outputs) - 1, len(wanted)):
        column, kept = raw.private(table.column(place))
        table = table.set_column(place, wanted[place], column)
    if kept is not None:
        table = table.filter(pa.array(kept))
    if not table.num_rows:
        raise ValueError(f"{path} has no row whose {output} is there")
    people = None if groups is None else _person_ids(table, groups)
    private = {
        name: _private_output(table, name, classes=raw.classes, fixed=raw.fixed)
        for name in (output, *more_outputs)
    }
    columns, exposures = RawTable.of(table, names), None
    if exposure is not None:
        exposures = replace(raw.schema, columns=(exposure,)).encode(columns).X[:, 0]
    return People(
        columns=RawTable({name: columns[name] for name in names if name not in counted}),
        private=private[output],
        groups=people,
        exposure=exposures,
        without_output=0 if kept is None else len(kept) - int(kept.sum()),
        more_private={name: private[name] for name in more_outputs},
    )


def read_person_ids(
    path: str | Path, *, name: str, table_format: TableFormat | None = None
) -> PersonIds:
    r"""Read the persons of rows, in the form in which ids are compared.

    Parameters
    ----------
    path : str or Path
    name : str
        Of the public column that says it.
    table_format : TableFormat, optional
        If not given, the one that the file's name tells.

    Raises
    ------
    FileNotFoundError, ValueError
        As for `read_rows`; and if cells are empty, or no ids (`cloakgp.privacy.person_ids`).

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     people = Path(folder) / "people.csv"
    ...     _ = people.write_text("person,age\neve,30\n eve ,31\n")
    ...     read_person_ids(people, name="person")
    ['eve', 'eve']
    """
    table = _read_columns(Path(path), names=[name], table_format=table_format, ids=name)
    return _person_ids(table, name)


def _person_ids(table: Any, name: str) -> PersonIds:
    whole = WHOLE_IDS in (table.schema.metadata or {})
    people = PersonIds(as_person_ids(table.column(name), name=name), whole=whole)
    gaps = np.array([not cell for cell in people], dtype=bool)
    check_cells(name, gaps, np.zeros(len(people)))
    return people


def _read_columns(
    path: Path,
    *,
    names: Sequence[str],
    table_format: TableFormat | None = None,
    most: int | None = None,
    ids: str | None = None,
) -> Any:
    """Return the named columns of a table that has rows, one of ids perhaps, as Arrow has them.

    With ``most``, exactly so many rows, if there are: batches may be cut by bytes, and a row more
    or less would tell how long private cells are written.
    """
    table_format = format_of(path) if table_format is None else table_format
    table_format.check(path, names=names)
    whole = ids is not None and check_ids(table_format, [path], ids)
    reading = table_format.batches(path, names, rows=BATCH_ROWS, threads=True)
    with closing(reading):
        batches, rows = [], 0
        for batch in reading:
            batches.append(batch)
            rows += batch.num_rows
            if most is not None and rows >= most:
                break
    if not any(batch.num_rows for batch in batches):
        raise NoRowsError(f"{path} has column names but no rows")
    table = pa.Table.from_batches(batches).slice(0, most).rename_columns(list(names))
    # Some formats give all cells as text, numbers as well.
    return table.replace_schema_metadata({WHOLE_IDS: ""} if whole else None)


def _public_columns(table: Any, names: Sequence[str]) -> Array:
    columns = []
    for name in names:
        missing, values = as_numbers(table.column(name))
        check_cells(name, missing, values)
        columns.append(values)
    return np.column_stack(columns)


def _private_output(
    table: Any, name: str, *, classes: Sequence[str], fixed: bool = False
) -> NDArray[Any]:
    """Return labels as text if there are classes, or numbers; each checked."""
    if classes:
        return _label_column(table, name, classes=classes, fixed=fixed)
    return _private_column(table, name, fixed=fixed)


def _private_column(table: Any, name: str, *, fixed: bool = False) -> Array:
    """Check like public columns, without telling where."""
    missing, values = as_numbers(table.column(name))
    hidden = "which they are is private, and not shown here"
    if missing.any():
        meant = (
            "as which number they count (missing_output; --missing-output): "
            if fixed
            else 'what they mean (missing_output="drop" or a number; --missing-output): leaving '
            "rows out makes public which have none, and "
        )
        raise ValueError(f"column {name!r} has empty cells: fill them, or say {meant}{hidden}")
    if np.isnan(values).any():
        raise ValueError(
            f"column {name!r} has cells that are not numbers: correct them ({hidden}). Text is "
            "read in the notation of the inputs: where it has decimal commas, or signs between "
            "thousands, say so of an input of numbers in a schema (--schema; "
            '"decimalChar": ",", "groupChar": "."), or write plain numbers'
        )
    if np.isinf(values).any():
        raise ValueError(f"column {name!r} has infinite cells: correct them ({hidden})")
    return values


def _label_column(
    table: Any, name: str, *, classes: Sequence[str], fixed: bool = False
) -> NDArray[np.object_]:
    """Return cells as text if every one is a declared class, without telling which is not."""
    cells = as_texts(table.column(name), name=name)
    hidden = "which they are is private, and not shown"
    if not all(cells):
        raise ValueError(
            f"column {name!r} has empty cells: fill them, or declare a class for unknown values"
            f"{'' if fixed else ', or leave the rows out'} ({hidden})"
        )
    if not set(cells) <= set(classes):
        raise ValueError(
            f"column {name!r} has labels that are not among the declared classes "
            f"{', '.join(classes)} ({hidden}). Cells are matched letter by letter: 1 is not 1.0, "
            "Yes is not yes. Declare every class that can occur, or correct those cells"
        )
    return np.array(cells, dtype=object)
