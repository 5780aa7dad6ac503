"""Whether a pass over CSV files fails depends on no private cell, and tasks hold none of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import dask
import dask.dataframe as dd
import pandas as pd
import pytest
from dask.dataframe import from_map

from cloakgp.data.dask.rows import DaskRows

# What distributed itself says when clusters come and go.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*:DeprecationWarning:distributed"),
    pytest.mark.filterwarnings("ignore:.*:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SENTINEL = "98765.4321"


@dataclass(frozen=True)
class Listed:
    values: tuple

    def merge(self, other):
        return Listed(self.values + other.values)


@pytest.fixture(autouse=True, scope="module")
def sent_by_value():
    """Workers do not have the tests' folder."""
    import sys

    import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module")
def client(workers):
    """Threads will do: what is refused is so before a task is sent, or in the task itself."""
    return workers


@pytest.fixture
def written(tmp_path):
    """A function that writes a table in which one late cell is given, and returns its path."""

    def write(cell="5", first="5"):
        cells = [first] * 10 + ["5"] * 290
        cells[290] = cell
        lines = (f"{row},{row % 7},{y}" for row, y in enumerate(cells))
        path = tmp_path / "table.csv"
        path.write_text("\n".join(["x,z,y", *lines]) + "\n")
        return path

    return write


def rows_of(frame, client, **more):
    return DaskRows.from_dataframe(frame, inputs=["x"], output="y", client=client, **more)


def read(path, **options):
    return dd.read_csv(path, blocksize=400, sample=500, **options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"assume_missing": True},
        {"dtype": {"x": "object"}},
        {"dtype": {"y": "int64"}},
        {"dtype": {"y": "float64"}},
        {"dtype": "float64"},
        {"dtype": {"y": "category"}},
        {"dtype": {"y": "object"}, "converters": {"y": float}},
        {"dtype": {"y": "object"}, "parse_dates": ["y"]},
        {"dtype": {"y": "object"}, "parse_dates": [2]},
    ],
)
@pytest.mark.filterwarnings("ignore:Could not infer format:UserWarning")
@pytest.mark.filterwarnings("ignore:Both a converter and dtype")
def test_a_private_column_that_could_fail_is_refused(options, written, client):
    with pytest.raises(ValueError, match=r"cells of 'y': give read_csv dtype=\{'y': 'object'\}"):
        rows_of(read(written(), **options), client)


@pytest.mark.parametrize("dtype", [{"y": "object"}, {"y": str}, {"y": "string"}, "object", str])
def test_no_private_cell_makes_a_pass_fail(dtype, written, client):
    for cell in ("6", "5.5", "", "tall", "2020-01-01", "True", "1e400"):
        rows = rows_of(read(written(cell), dtype=dtype), client)
        lengths = rows._source.count_rows(client)
        assert sum(lengths) == 300
    seen = rows.over_rows(lambda _, outputs: Listed(tuple(outputs.tolist())), what="listing")
    assert seen.values == (*[5.0] * 290, float("inf"), *[5.0] * 9)


def test_what_the_output_is_made_of_is_private_too(written, client):
    frame = read(written())
    renamed = frame.rename(columns={"y": "income", "z": "y"})
    with pytest.raises(ValueError, match=r"cells of 'z': give"):
        rows_of(renamed, client)
    with pytest.raises(ValueError, match=r"cells of 'z', 'y': give"):
        rows_of(frame.assign(y=frame.y + frame.z), client)
    # z is public where inputs are made of it; y is called private.
    with pytest.raises(ValueError, match=r"cells of 'y': give"):
        rows_of(frame.assign(x=frame.z, y=frame.y + frame.z), client)
    with pytest.raises(ValueError, match=r"cells of 'y': give"):
        rows_of(frame.map_partitions(lambda part: part, meta=frame._meta), client)
    with pytest.raises(ValueError, match=r"cells of 'y': give"):
        rows_of(frame.optimize(), client)


@pytest.mark.parametrize("how", ["read", "joined", "shuffled", "with paths", "objects"])
def test_tasks_hold_no_first_rows(how, written, client):
    options = {"include_path_column": True} if how == "with paths" else {}
    with dask.config.set({"dataframe.convert-string": how != "objects"}):
        frame = read(written(first=SENTINEL), dtype={"y": "object"}, **options)
        if how == "joined":
            frame = frame.optimize()
        elif how == "shuffled":
            frame = frame.shuffle("x", npartitions=3)
        rows = rows_of(frame, client)
        for private in (False, True):
            packed, shared = rows._source.partitions(private=private)
            sent = [block.parcel.payload for block in packed]
            sent.append(dask_pickled(shared))
            assert not [one for one in sent if SENTINEL.encode() in one]
        seen = rows.over_rows(lambda _, outputs: Listed(tuple(outputs.tolist())), what="listing")
    assert sorted(seen.values) == [5.0] * 290 + [float(SENTINEL)] * 10
    # What the collection itself holds stays.
    assert len(frame.head(3)) == 3


def dask_pickled(graph):
    import cloudpickle

    return cloudpickle.dumps(graph)


def test_another_form_of_the_reader_is_refused(written, client):
    """Of a later Dask: nothing is known of what it does with cells."""
    reader = partial(pd.read_csv, dtype={"y": "object"})
    frame = from_map(reader, [written()], meta=pd.read_csv(written()), label="read-csv")
    with pytest.raises(ValueError, match="does not tell how it reads"):
        rows_of(frame, client)
    # What one reads by a function of one's own is one's own affair.
    own = from_map(reader, [written()], meta=pd.read_csv(written()).astype({"y": "object"}))
    assert sum(rows_of(own, client)._source.count_rows(client)) == 300
    delayed = dd.from_delayed(read(written(), dtype={"y": "object"}).to_delayed())
    assert sum(rows_of(delayed, client)._source.count_rows(client)) == 300
