"""What ``dask.dataframe.read_csv`` does with a private column that nobody asks for.

It parses every column of a block in every pass, those over inputs too, and a pass fails if a cell
does not go with the type of its column, which was guessed by the first rows, or declared. Whether
it fails must not depend on private cells, so that only a column taken as it is written will do. And
it puts the first rows, private cells among them, into every task.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

# Of the function that Dask's readers of text hand to their tasks.
_KEYWORDS = {"dtypes", "full_columns", "head", "kwargs"}
# By this name Dask calls the tasks of all of its readers of text.
_LABEL = "read-csv"


def check_private_columns(frame: Any, *, inputs: Sequence[str], output: str) -> bool:
    """Refuse CSV files with a private column whose cells can make a pass fail.

    Private are the output, by its name, and what it is made of unless inputs are made of it too.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
    inputs : sequence of str
    output : str

    Returns
    -------
    bool
        Whether there are such files at all.

    Raises
    ------
    ValueError
        If such a column is not declared to be text; or if this version of Dask does not tell.
    """
    public = _wanted(frame[list(inputs)])
    found = _wanted(frame[[output]])
    fallible: dict[str, None] = {}
    for number, (reader, columns) in found.items():
        if not is_reader(reader):
            raise ValueError(
                "this version of Dask does not tell how it reads the private column of CSV files: "
                "convert them to Parquet"
            )
        _, also_public = public.get(number, (None, frozenset()))
        private = (columns - also_public) | (columns & {output})
        every = reader.keywords["full_columns"]
        fallible |= dict.fromkeys(
            name for name in every if name in private and not _is_taken_as_written(reader, name)
        )
    if fallible:
        names = ", ".join(map(repr, fallible))
        declared = ", ".join(f"{name!r}: 'object'" for name in fallible)
        raise ValueError(
            f"read_csv parses private columns in every pass, those over inputs too, and whether "
            f"one fails would depend on the cells of {names}: give read_csv "
            f"dtype={{{declared}}}, which takes them as they are written, or convert the files to "
            "Parquet"
        )
    return bool(found)


def is_reader(function: Any) -> bool:
    """Return whether a function is the one by which Dask's tasks read CSV files.

    Examples
    --------
    >>> is_reader(partial(print, end=""))
    False
    """
    return isinstance(function, partial) and set(function.keywords) >= _KEYWORDS


def without_first_rows(graph: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return a graph whose tasks read CSV files without the first rows, which Dask gives them.

    Tasks look at the types of these rows alone. Those of the collection stay as they are.

    Parameters
    ----------
    graph : mapping

    Examples
    --------
    >>> import pandas as pd
    >>> reader = partial(print, dtypes={}, full_columns=["y"], kwargs={},
    ...                  head=pd.DataFrame({"y": [12.5]}))
    >>> emptied, *_ = without_first_rows({"a": (reader, 1)})["a"]
    >>> len(emptied.keywords["head"]), len(reader.keywords["head"])
    (0, 1)
    """
    emptied: dict[int, Any] = {}
    return {key: _emptied(node, emptied) for key, node in graph.items()}


def _wanted(frame: Any) -> dict[int, tuple[Any, frozenset[str]]]:
    """Return the functions that read CSV files for some columns, and which they are asked for."""
    found: dict[int, tuple[Any, frozenset[str]]] = {}
    for node in _nodes(frame.expr.simplify(), set()):
        reader, wanted = _operand(node, "func"), _operand(node, "columns")
        if is_reader(reader):
            wanted = reader.keywords["full_columns"] if wanted is None else wanted
        elif _operand(node, "label") != _LABEL:
            continue
        wanted = [wanted] if isinstance(wanted, str) else wanted or ()
        _, before = found.get(id(reader), (None, frozenset()))
        found[id(reader)] = (reader, before | {str(name) for name in wanted})
    return found


def _operand(node: Any, name: str) -> Any:
    """Return what a part of an expression is given by a name, or None."""
    # Dask raises this where a part has no such name.
    with suppress(ValueError):
        return node.operand(name)
    return None


def _nodes(item: Any, seen: set[int]) -> Iterator[Any]:
    """Yield the parts of an expression, those that were joined to one among them."""
    if isinstance(item, list | tuple):
        for inner in item:
            yield from _nodes(inner, seen)
    # What is delayed has attributes of all names.
    elif isinstance(getattr(item, "operands", None), list) and id(item) not in seen:
        seen.add(id(item))
        yield item
        yield from _nodes(item.operands, seen)


def _is_taken_as_written(reader: Any, name: str) -> bool:
    """Return whether no cell of a column can make its reader fail."""
    options = reader.keywords["kwargs"]
    declared = options.get("dtype")
    if isinstance(declared, Mapping):
        declared = declared.get(name)
    dates = options.get("parse_dates")
    by_name = not dates or dates is True or all(isinstance(each, str) for each in dates)
    return (
        is_text(declared, objects=True)
        and is_text(reader.keywords["dtypes"].get(name), objects=True)
        # These are stronger than what is declared.
        and name not in (options.get("converters") or {})
        and by_name
        and (dates is True or name not in (dates or ()))
    )


def is_text(kind: Any, *, objects: bool) -> bool:
    """Return whether a type of pandas is of text.

    Parameters
    ----------
    kind : dtype, type, str or None
    objects : bool
        Whether columns of objects hold text.

    Examples
    --------
    >>> [is_text(kind, objects=True) for kind in ("string", "object", int)]
    [True, True, False]
    """
    from pandas import CategoricalDtype
    from pandas.api.types import is_object_dtype, is_string_dtype, pandas_dtype

    found = None if kind is None else pandas_dtype(kind)
    if found is None or isinstance(found, CategoricalDtype):
        return False
    return bool(objects if is_object_dtype(found) else is_string_dtype(found))


def _emptied(item: Any, emptied: dict[int, Any]) -> Any:
    """Return a task, or a part of one, without the first rows of files; itself if it has none."""
    from dask.task_spec import Task

    if is_reader(item):
        if id(item) not in emptied:
            keywords = {**item.keywords, "head": item.keywords["head"].iloc[:0]}
            emptied[id(item)] = partial(item.func, *item.args, **keywords)
        return emptied[id(item)]
    if isinstance(item, Task):
        parts = {name: getattr(item, name) for name in ("func", "args", "kwargs")}
        changed = {name: _emptied(part, emptied) for name, part in parts.items()}
        if all(changed[name] is part for name, part in parts.items()):
            return item
        made = copy.copy(item)
        for name, part in changed.items():
            setattr(made, name, part)
        return made
    if type(item) is dict:
        values = {key: _emptied(value, emptied) for key, value in item.items()}
        return values if any(values[key] is not item[key] for key in item) else item
    if type(item) in (list, tuple):
        inner = [_emptied(each, emptied) for each in item]
        same = all(new is old for new, old in zip(inner, item, strict=True))
        return item if same else type(item)(inner)
    return item
