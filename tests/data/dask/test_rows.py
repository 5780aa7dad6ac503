"""Rows on a Dask cluster: the same bits whatever the workers do, and outputs out of sight."""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import dask.array as da
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import pytest

from cloakgp.data.dask.rows import DaskRows
from cloakgp.data.dask.tasks import cut_spans

# What distributed itself says when clusters come and go.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*:DeprecationWarning:distributed"),
    pytest.mark.filterwarnings("ignore:.*:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SENTINEL = 98765.4321
# At the start of a number, or with its fraction: clocks and hashes in logs hold any five digits.
TOLD = re.compile(r"(?<![\w.])98765|98765\.4")
CHUNK_ROWS = 20


@dataclass(frozen=True, eq=False)
class Sums:
    """Merging is neither commutative nor, in floats, associative."""

    chunks: tuple[tuple[int, int], ...]
    whole: int
    floats: np.ndarray

    def merge(self, other):
        return Sums(
            self.chunks + other.chunks, self.whole + other.whole, self.floats + other.floats
        )


class OnInputs:
    def __call__(self, chunk):
        return Sums(
            ((chunk.number, len(chunk.X)),),
            int(np.rint(chunk.X * 1000).sum()),
            np.exp(chunk.X).sum(axis=0),
        )


class OnRows:
    def __call__(self, chunk, outputs):
        return Sums(
            ((chunk.number, len(chunk.X)),),
            int(np.rint(outputs * 1000).sum()),
            np.exp(chunk.X).T @ outputs,
        )


# Of so many chunks that have begun the next ones wait; more than one is reported by then.
BEFORE_WAITING = 6


class Waiting(OnRows):
    """Tells by a file that it has begun, and by another that it waits, until it may go on."""

    def __init__(self, folder, patience):
        self.folder, self.patience = folder, patience
        for each in (self.begun, self.held):
            each.mkdir()

    @property
    def begun(self):
        return self.folder / "begun"

    @property
    def held(self):
        return self.folder / "held"

    @property
    def go_on(self):
        return self.folder / "go on"

    def __call__(self, chunk, outputs):
        name = f"{chunk.number}-{os.getpid()}"
        (self.begun / name).touch()
        if len(list(self.begun.iterdir())) > BEFORE_WAITING:
            (self.held / name).touch()
            end = time.monotonic() + self.patience
            while not self.go_on.exists() and time.monotonic() < end:
                time.sleep(0.02)
        return super().__call__(chunk, outputs)


class Quoting:
    def __call__(self, chunk, outputs):
        raise ValueError(f"{outputs.tolist()} of {chunk.number}")


class QuotingParts:
    """Parts that neither pickle nor merge without quoting."""

    def __init__(self, when):
        self.when = when

    def __call__(self, _, outputs):
        return QuotingPart(outputs, self.when)


class QuotingPart:
    def __init__(self, outputs, when):
        self.outputs, self.when = outputs, when

    def __repr__(self):
        return f"QuotingPart({self.outputs.tolist()})"

    def __getstate__(self):
        if self.when == "pickling":
            raise TypeError(f"cannot pickle {self.outputs.tolist()}")
        return self.__dict__

    def merge(self, other):
        raise RuntimeError(f"{self!r} and {other!r}")


def by_value(module):
    import cloudpickle

    cloudpickle.register_pickle_by_value(module)


@pytest.fixture(autouse=True, scope="module")
def sent_by_value():
    """Workers do not have the tests' folder."""
    by_value(sys.modules[__name__])


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "age": rng.integers(0, 90_000, size=230) / 1000,
            "weight": rng.integers(0, 3_000, size=230) / 1000,
            "height": rng.integers(50_000, 200_000, size=230) / 1000,
        }
    ).assign(age=lambda frame: frame.age / 30)


INPUTS = ["age", "weight"]


def frame_of(table, client, parts=5, **options):
    ddf = dd.from_pandas(table, npartitions=parts, sort=False)
    return DaskRows.from_dataframe(
        ddf, inputs=INPUTS, output="height", client=client, chunk_rows=CHUNK_ROWS, **options
    )


def arrays_of(table, client, chunks=46):
    X = da.from_array(table[INPUTS].to_numpy(), chunks=(chunks, 1))
    y = da.from_array(table["height"].to_numpy(), chunks=77)
    return DaskRows.from_arrays(X, y, client=client, chunk_rows=CHUNK_ROWS)


@pytest.fixture
def files(table, tmp_path):
    """Several files, of row groups that are no chunks, one without rows."""
    folder = tmp_path / "people"
    folder.mkdir()
    for number, (first, last) in enumerate([(0, 101), (101, 101), (101, 230)]):
        table.iloc[first:last].to_parquet(
            folder / f"part-{number}.parquet", row_group_size=33, index=False
        )
    return folder


def parquet_of(path, client):
    return DaskRows.from_parquet(
        path, inputs=INPUTS, output="height", client=client, chunk_rows=CHUNK_ROWS
    )


def expected(table):
    """The sums of numpy, chunk after chunk of the whole table."""
    X, y = table[INPUTS].to_numpy(), table["height"].to_numpy()
    chunks = [min(CHUNK_ROWS, len(X) - first) for first in range(0, len(X), CHUNK_ROWS)]
    return (
        tuple(enumerate(chunks)),
        int(np.rint(X * 1000).sum()),
        int(np.rint(y * 1000).sum()),
        np.exp(X).sum(axis=0),
        np.exp(X).T @ y,
    )


@pytest.mark.parametrize("kind", ["frame", "arrays", "parquet"])
def test_sums_are_numpys(kind, table, client, files):
    rows = {
        "frame": lambda: frame_of(table, client),
        "arrays": lambda: arrays_of(table, client),
        "parquet": lambda: parquet_of(files, client),
    }[kind]()
    chunks, of_inputs, of_outputs, floats, weighted = expected(table)
    inputs = rows.over_inputs(OnInputs(), what="adding")
    outputs = rows.over_rows(OnRows(), what="adding")
    assert rows.n_inputs == 2
    assert rows.count == len(table)
    assert inputs.chunks == outputs.chunks == chunks
    assert (inputs.whole, outputs.whole) == (of_inputs, of_outputs)
    np.testing.assert_allclose(inputs.floats, floats, rtol=1e-13)
    np.testing.assert_allclose(outputs.floats, weighted, rtol=1e-13)
    assert repr(rows) == "DaskRows(230 rows, 2 inputs)"
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(rows)


def test_where_partitions_end_changes_no_bit(table, client, tmp_path):
    """It may have been decided by bytes, private ones among them."""

    def told(rows):
        sums = (
            rows.over_inputs(OnInputs(), what="adding"),
            rows.over_rows(OnRows(), what="adding"),
        )
        return [(one.chunks, one.whole, one.floats.tobytes()) for one in sums]

    found = [told(frame_of(table, client, parts=parts)) for parts in (1, 4, 9)]
    found += [told(arrays_of(table, client, chunks=chunks)) for chunks in (19, 21, 230)]
    for groups in (7, 64, 230):
        path = tmp_path / f"{groups}.parquet"
        table.to_parquet(path, row_group_size=groups, index=False)
        found.append(told(parquet_of(path, client)))
    assert found == [found[0]] * len(found)


def test_how_long_a_private_cell_is_written_changes_no_bit_of_the_inputs(table, client, tmp_path):
    """``read_csv`` cuts partitions by bytes."""

    def told(name, cell):
        path = tmp_path / name
        heights = table["height"].astype(str)
        heights[3] = cell
        table.assign(height=heights).to_csv(path, index=False)
        frame = dd.read_csv(path, blocksize=600, dtype={"height": "object"})
        rows = DaskRows.from_dataframe(
            frame, inputs=INPUTS, output="height", client=client, chunk_rows=CHUNK_ROWS
        )
        sums = rows.over_inputs(OnInputs(), what="adding")
        return (sums.chunks, sums.floats.tobytes()), frame.map_partitions(len).compute().tolist()

    short, lengths = told("short.csv", "170")
    long, other_lengths = told("long.csv", "170." + "1" * 40)
    assert lengths != other_lengths
    assert short == long


@pytest.mark.parametrize(
    ("lengths", "chunk_rows"), [([5], 2), ([1] * 90, 2), ([0, 700, 0, 3], 10), ([64, 64], 1)]
)
def test_spans_hold_every_row_once_and_are_cut_by_the_number_of_rows(lengths, chunk_rows):
    spans = cut_spans(lengths, chunk_rows=chunk_rows)
    whole = cut_spans([sum(lengths)], chunk_rows=chunk_rows)
    assert [(one.first_row, one.rows, one.first_chunk) for one in spans] == [
        (one.first_row, one.rows, one.first_chunk) for one in whole
    ]
    assert all(one.first_row == chunk_rows * one.first_chunk for one in spans)
    ends = np.cumsum([0, *lengths])
    rows = [
        stretch.partition.start + row
        for span in spans
        for stretch in span.stretches
        for row in stretch.rows
    ]
    assert rows == list(range(sum(lengths)))
    for stretch in (stretch for span in spans for stretch in span.stretches):
        assert stretch.partition == range(ends[stretch.number], ends[stretch.number + 1])
        assert len(stretch.rows) > 0


def test_one_worker_or_several_give_the_same_bits(table, client, files):
    def all_floats(client):
        return [
            rows.over_rows(OnRows(), what="adding").floats.tobytes()
            for rows in (frame_of(table, client, parts=7), parquet_of(files, client))
        ]

    several = all_floats(client)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=3, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as other,
    ):
        assert all_floats(other) == several


def test_a_worker_that_dies_changes_nothing(table, client, tmp_path, patience, wait_until):
    whole = frame_of(table, client, parts=8).over_rows(OnRows(), what="adding")
    killed, work = [], Waiting(tmp_path, patience)

    def kill(_what, done, _of):
        if done > 60 and not killed:
            # In the middle of a chunk, and after others.
            held = wait_until(lambda: list(work.held.iterdir()))[0]
            killed.append(int(held.name.split("-")[1]))
            os.kill(killed[0], signal.SIGKILL)
            work.go_on.touch()

    rows = frame_of(table, client, parts=8).report_to(kill)
    again = rows.over_rows(work, what="adding")
    client.wait_for_workers(2, timeout=patience)
    assert killed
    begun = [tuple(map(int, path.name.split("-"))) for path in work.begun.iterdir()]
    assert {pid for _, pid in begun} > set(killed)
    # What the dead one had done was done once more.
    assert len(begun) > len({number for number, _ in begun})
    assert again.chunks == whole.chunks
    assert again.whole == whole.whole
    assert again.floats.tobytes() == whole.floats.tobytes()


def everything_said(client, error):
    """What reached the client, and all logs."""
    told, waiting = [], [error]
    while waiting:
        one = waiting.pop()
        if one is None:
            continue
        told += [repr(one), str(one), repr(vars(one))]
        step = one.__traceback__
        while step is not None:
            if Path(step.tb_frame.f_code.co_filename) != Path(__file__):
                told.append(repr(step.tb_frame.f_locals))
            step = step.tb_next
        waiting += [one.__cause__, one.__context__]
    workers = client.get_worker_logs()
    told += [repr(workers), repr(client.get_scheduler_logs())]
    told.append(repr(client.run_on_scheduler(scheduler_shows)))
    return "\n".join(told)


def scheduler_shows(dask_scheduler):
    story = [repr(one) for one in dask_scheduler.transition_log]
    return story, [repr(ts.run_spec) for ts in dask_scheduler.tasks.values()]


@pytest.fixture
def secret(table):
    return table.assign(height=SENTINEL)


@pytest.mark.parametrize("kind", ["frame", "arrays", "parquet"])
@pytest.mark.parametrize(
    "work",
    [Quoting(), QuotingParts("merging"), QuotingParts("pickling")],
    ids=["work", "merging", "pickling"],
)
def test_failing_work_shows_no_outputs(kind, work, secret, client, tmp_path):
    if kind == "parquet":
        secret.to_parquet(tmp_path / "secret.parquet", row_group_size=50)
        rows = DaskRows.from_parquet(
            tmp_path, inputs=INPUTS, output="height", client=client, chunk_rows=5
        )
    else:
        rows = {"frame": frame_of, "arrays": arrays_of}[kind](secret, client)
    with pytest.raises(RuntimeError, match=r"failed with (Value|Type|Runtime)Error") as caught:
        rows.over_rows(work, what="adding")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    said = everything_said(client, caught.value)
    assert "cloakgp-rows" in said
    assert not TOLD.search(said)


def test_the_search_for_outputs_finds_them(table, client):
    """The search above can fail: Dask's own ways show all."""
    ddf = dd.from_pandas(table.assign(height=13579.5), npartitions=2)

    def quote(frame):
        raise ValueError(f"{frame.height.tolist()}")

    with pytest.raises(ValueError, match="13579") as caught:
        ddf.map_partitions(quote, meta=table).compute(scheduler=client)
    assert "13579" in repr(client.get_worker_logs())
    assert "13579" in everything_said(client, caught.value)
    seen = [repr([SENTINEL]), str(pd.Series([SENTINEL])), repr(f"\n{SENTINEL}"), f"{SENTINEL:.0f}"]
    assert all(TOLD.search(one) for one in seen)
    assert not TOLD.search("task-finished-1795298765.298765 of a98765b")


def test_what_makes_a_partition_may_fail_and_says_nothing(secret, client):
    """Readers quote cells, and Dask would log what they say."""

    def quote(frame):
        raise ValueError(f"cannot convert {frame.height.iloc[0]}")

    ddf = dd.from_pandas(secret, npartitions=2).map_partitions(quote, meta=secret)
    rows = DaskRows.from_dataframe(ddf, inputs=INPUTS, output="height", client=client)
    with pytest.raises(RuntimeError, match="failed with ValueError") as caught:
        rows.over_rows(OnRows(), what="adding")
    assert not TOLD.search(everything_said(client, caught.value))


def test_keys_are_no_hashes_of_outputs(table, client):
    def keys(dask_scheduler):
        return [repr(entry[0]) for entry in dask_scheduler.transition_log]

    ddf = dd.from_pandas(table, npartitions=3)
    y = da.from_array(table["height"].to_numpy(), chunks=100)
    hashes = {
        str(key[0]).rsplit("-", 1)[1]
        for collection in (ddf.optimize(), y)
        for key in collection.__dask_graph__()
    }
    frame_of(table, client, parts=3).over_rows(OnRows(), what="adding")
    X = da.from_array(table[INPUTS].to_numpy(), chunks=(100, 2))
    DaskRows.from_arrays(X, y, client=client).over_rows(OnRows(), what="adding")
    seen = "\n".join(client.run_on_scheduler(keys))
    assert "cloakgp-rows" in seen
    assert len(hashes) == 2
    assert not [digest for digest in hashes if digest in seen]


def fails(*_):
    raise AssertionError("this column is not wanted")


def test_inputs_do_without_outputs_that_cannot_be_made(table, client):
    ddf = dd.from_pandas(table, npartitions=3)
    ddf["height"] = ddf["age"].map_partitions(fails, meta=("height", "f8"))
    X = da.from_array(table[INPUTS].to_numpy(), chunks=(50, 2))
    y = da.zeros(len(X), chunks=50).map_blocks(fails, dtype=float)
    for rows in (
        DaskRows.from_dataframe(ddf, inputs=INPUTS, output="height", client=client),
        DaskRows.from_arrays(X, y, client=client),
    ):
        of_inputs = rows.over_inputs(OnInputs(), what="adding").whole
        assert of_inputs == expected(table)[1]
        with pytest.raises(RuntimeError, match="AssertionError"):
            rows.over_rows(OnRows(), what="adding")


def test_inputs_do_without_outputs_that_cannot_be_read(table, client, tmp_path):
    """Parquet with its private column overwritten."""
    path = tmp_path / "people.parquet"
    table.to_parquet(path, index=False, compression=None)
    import pyarrow.parquet as pq

    column = pq.ParquetFile(path).metadata.row_group(0).column(2)
    first = column.dictionary_page_offset or column.data_page_offset
    raw = bytearray(path.read_bytes())
    raw[first : first + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(raw)
    rows = parquet_of(path, client)
    assert rows.over_inputs(OnInputs(), what="adding").whole == expected(table)[1]
    with pytest.raises(ValueError, match=r"people\.parquet .*damaged"):
        rows.over_rows(OnRows(), what="adding")


def test_outputs_may_be_anything(table, client):
    cells = ["12.5", None, "tall", "inf", "-inf"]
    odd = table.iloc[:5].assign(height=pd.Series(cells, dtype=object))
    ddf = dd.from_pandas(odd, npartitions=2)
    rows = DaskRows.from_dataframe(ddf, inputs=INPUTS, output="height", client=client)
    seen = rows.over_rows(lambda _, outputs: Listed(tuple(outputs.tolist())), what="listing")
    np.testing.assert_array_equal(seen.values, [12.5, np.nan, np.nan, np.inf, -np.inf])


@pytest.mark.parametrize("kind", ["frame", "arrays", "parquet"])
def test_labels_are_told_by_their_places(kind, table, client, tmp_path):
    cells = ["ill", "well", "Ill", "", "unknown"] * 46
    labelled = table.assign(height=cells)
    if kind == "parquet":
        labelled.to_parquet(tmp_path / "people.parquet", index=False, row_group_size=33)
        rows = parquet_of(tmp_path / "people.parquet", client)
    elif kind == "frame":
        rows = frame_of(labelled, client)
    else:
        rows = arrays_of(labelled, client)
    labels = ("well", "unknown", "ill")
    seen = rows.over_rows(
        lambda _, places: Listed(tuple(places.tolist())), what="listing", labels=labels
    )
    np.testing.assert_array_equal(seen.values, [2, 0, np.nan, np.nan, 1] * 46)


def test_why_a_column_holds_no_labels_may_be_told(table, client, tmp_path):
    dated = table.assign(height=pd.Timestamp("2020-01-01"))
    dated.to_parquet(tmp_path / "people.parquet", index=False)
    rows = parquet_of(tmp_path / "people.parquet", client)
    with pytest.raises(ValueError, match="column 'height' holds neither text") as caught:
        rows.over_rows(OnRows(), what="listing", labels=("a", "b"))
    assert "2020" not in str(caught.value)


@dataclass(frozen=True)
class Listed:
    values: tuple

    def merge(self, other):
        return Listed(self.values + other.values)


@pytest.mark.parametrize("kind", ["frame", "arrays", "parquet"])
def test_bad_inputs_are_told_by_their_row(kind, table, client, tmp_path):
    bad = table.copy()
    bad.loc[130, "weight"] = np.nan
    if kind == "parquet":
        bad.to_parquet(tmp_path / "bad.parquet", row_group_size=33)
        told = "'weight' is empty in row 131"
        rows = DaskRows.from_parquet(
            tmp_path, inputs=INPUTS, output="height", client=client, chunk_rows=5
        )
    elif kind == "frame":
        rows, told = frame_of(bad, client), "'weight' holds no number in row 130"
    else:
        rows, told = arrays_of(bad, client), "1 of X holds no number in row 130"
    for go in (
        lambda: rows.over_inputs(OnInputs(), what="adding"),
        lambda: rows.over_rows(OnRows(), what="adding"),
    ):
        with pytest.raises(ValueError, match=told):
            go()


def test_unknown_sizes_are_counted(table, client):
    ddf = dd.from_pandas(table, npartitions=4)
    ddf = ddf[ddf.age > 0.1]
    kept = table[table.age > 0.1]
    rows = DaskRows.from_arrays(
        ddf[INPUTS].to_dask_array(), ddf["height"].to_dask_array(), client=client
    )
    assert rows.count is None
    assert repr(rows) == "DaskRows(? rows, 2 inputs)"
    sums = rows.over_rows(OnRows(), what="adding")
    assert rows.count == len(kept)
    assert sums.whole == expected(kept)[2]
    with pytest.raises(ValueError, match="4 chunks of rows and y has 2, of unknown sizes"):
        DaskRows.from_arrays(
            ddf[INPUTS].to_dask_array(), da.zeros(len(kept), chunks=len(kept) // 2 + 1)
        )


def test_unknown_sizes_that_differ_are_refused(table, client):
    ddf = dd.from_pandas(table, npartitions=2)
    short = ddf[ddf.age > 0.5]["height"].to_dask_array()
    rows = DaskRows.from_arrays(ddf[INPUTS].to_dask_array(), short, client=client)
    with pytest.raises(ValueError, match="have different numbers of rows: they must agree") as told:
        rows.over_rows(OnRows(), what="adding")
    # Where y was filtered by itself, they tell how many cells stayed.
    assert not re.search(r"\d", str(told.value))


def test_partitions_without_rows_are_passed_over(table, client):
    ddf = dd.from_pandas(table.assign(number=range(len(table))), npartitions=4)
    few = ddf[ddf.number >= 200]
    rows = DaskRows.from_dataframe(few, inputs=INPUTS, output="height", client=client)
    sums = rows.over_rows(OnRows(), what="adding")
    assert sums.chunks == ((0, 30),)
    none = DaskRows.from_dataframe(
        ddf[ddf.number < 0], inputs=INPUTS, output="height", client=client
    )
    with pytest.raises(ValueError, match="there are no rows"):
        none.over_inputs(OnInputs(), what="adding")


def test_rows_that_change_between_passes_are_refused(table, client, tmp_path):
    switch = tmp_path / "switch"

    def fickle(frame):
        return frame.iloc[:-1] if switch.exists() else frame

    ddf = dd.from_pandas(table, npartitions=2).map_partitions(fickle, meta=table)
    rows = DaskRows.from_dataframe(ddf, inputs=INPUTS, output="height", client=client)
    rows.over_inputs(OnInputs(), what="adding")
    switch.touch()
    with pytest.raises(ValueError, match="the same in every pass") as told:
        rows.over_rows(OnRows(), what="adding")
    # Where partitions end may have been decided by private cells.
    assert not re.search(r"\d", str(told.value))


def test_partitions_that_fail_do_not_tell_where_they_are(table, client, tmp_path):
    switch = tmp_path / "switch"

    def fickle(frame):
        if switch.exists() and frame.index[0] > 0:
            raise ValueError(f"the partition begins at {frame.index[0]}")
        return frame

    ddf = dd.from_pandas(table, npartitions=3).map_partitions(fickle, meta=table)
    rows = DaskRows.from_dataframe(
        ddf, inputs=INPUTS, output="height", client=client, chunk_rows=CHUNK_ROWS
    )
    rows.over_inputs(OnInputs(), what="adding")
    switch.touch()
    with pytest.raises(RuntimeError, match="making a partition failed with ValueError") as told:
        rows.over_inputs(OnInputs(), what="adding")
    assert not re.search(r"\d", str(told.value))


def test_labels_other_than_text_go_with_no_column_of_text(table, client):
    """Compared with its cells they are none of them: the budget would be spent on nothing."""
    text = frame_of(table.assign(height=["0", "1"] * 115), client)
    with pytest.raises(ValueError, match=r"holds text, and none of the classes \[0, 1\].*'0', '1'"):
        text.over_rows(OnRows(), what="adding", labels=(0, 1))
    numbers = frame_of(table.assign(height=[0, 1] * 115), client)
    for rows, labels in ((text, ("0", "1")), (numbers, (0, 1))):
        assert rows.over_rows(OnRows(), what="adding", labels=labels).whole == 115_000


@pytest.mark.parametrize("kept", ["persisted", "futures", "shuffled", "rechunked", "turned"])
def test_what_lies_on_the_cluster_is_used_there(kept, table, client):
    """Also what partitions share, and what the scheduler has to see."""
    if kept == "persisted":
        ddf = client.persist(dd.from_pandas(table, npartitions=4))
    elif kept == "shuffled":
        ddf = dd.from_pandas(table, npartitions=4).shuffle("weight", npartitions=3)
    elif kept == "futures":
        parts = client.scatter([table[:100], table[100:]])
        layer = {("part", number): part for number, part in enumerate(parts)}
        ddf = dd.from_graph(layer, table[:0], (None,) * 3, list(layer), "part")
    if kept == "rechunked":
        X = da.from_array(table[INPUTS].to_numpy(), chunks=(50, 1))
        y = da.from_array(table["height"].to_numpy(), chunks=31)
        X, y = (one.rechunk({0: 90}, method="p2p") for one in (X, y))
        rows = DaskRows.from_arrays(X, y, client=client)
    elif kept == "turned":
        X = da.from_array(table[INPUTS].to_numpy(), chunks=(230, 1))
        X = X.rechunk((90, 2), method="p2p")
        # Every chunk needs every other worker: this one does not come down to slices.
        assert any("barrier" in str(key) for key in dict(X.__dask_graph__()))
        y = da.from_array(table["height"].to_numpy(), chunks=90)
        rows = DaskRows.from_arrays(X, y, client=client)
    else:
        rows = DaskRows.from_dataframe(ddf, inputs=INPUTS, output="height", client=client)
    sums = rows.over_rows(OnRows(), what="adding")
    assert sums.whole == expected(table)[2]
    assert rows.over_inputs(OnInputs(), what="adding").chunks == sums.chunks
    assert rows.over_rows(OnRows(), what="adding").floats.tobytes() == sums.floats.tobytes()


def test_parquet_read_by_dask_keeps_its_partitions(table, client, tmp_path):
    """Dask would join files when few columns are wanted: passes would see other partitions."""
    wide = table.assign(**{f"other{number}": 0.0 for number in range(20)})
    dd.from_pandas(wide, npartitions=6).to_parquet(tmp_path / "wide")
    with warnings.catch_warnings():
        # Of pandas, at what Dask does.
        warnings.simplefilter("ignore", DeprecationWarning)
        ddf = dd.read_parquet(tmp_path / "wide") + 0
    assert ddf[["age"]].optimize().npartitions < 6
    rows = DaskRows.from_dataframe(ddf, inputs=["age"], output="height", client=client)
    for private in (False, True):
        packed, _ = rows._source.partitions(private=private)
        assert len(packed) == 6
    assert rows.over_inputs(OnInputs(), what="adding").chunks == ((0, len(table)),)
    assert rows.over_rows(OnRows(), what="adding").chunks == ((0, len(table)),)


def test_nothing_stays_on_the_cluster(table, client, wait_until):
    rows = frame_of(table, client)
    rows.over_rows(OnRows(), what="adding")

    def kept():
        return client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))

    wait_until(lambda: not kept())


def test_whoever_watches_is_told_rows(table, client):
    told = []
    rows = frame_of(table, client)
    watched = rows.report_to(lambda *news: told.append(news))
    watched.over_inputs(OnInputs(), what="adding")
    # In whatever order: the last span is shorter.
    spans = [20] * 11 + [10]
    assert [what for what, *_ in told] == ["adding"] * len(spans)
    assert sorted(np.diff([0, *(done for _, done, _ in told)])) == sorted(spans)
    assert {of for *_, of in told} == {230}
    rows.over_inputs(OnInputs(), what="adding")
    assert len(told) == len(spans)


def test_work_that_cannot_be_sent(table, client):
    lock = __import__("threading").Lock()
    with pytest.raises(RuntimeError, match="pickling the work failed with TypeError"):
        frame_of(table, client).over_inputs(lambda _: lock, what="adding")


def test_failing_work_on_inputs_says_why(table, client):
    def refuse(chunk):
        raise ValueError(f"{chunk.X.shape[1]} inputs are too many")

    with pytest.raises(RuntimeError, match="ValueError: 2 inputs are too many"):
        frame_of(table, client).over_inputs(refuse, what="adding")


def test_parquet_that_is_not_there(client, files):
    with pytest.raises(FileNotFoundError, match=r"no file .*nobody\.parquet"):
        parquet_of(files / "nobody.parquet", client)
    with pytest.raises(ValueError, match="no column income"):
        DaskRows.from_parquet(files, inputs=["income"], output="height", client=client)
    with pytest.raises(ValueError, match="as input and as output"):
        DaskRows.from_parquet(files, inputs=["height"], output="height", client=client)
    (files / "part-3.parquet").write_bytes(b"PAR1 is not enough")
    with pytest.raises(ValueError, match=r"part-3\.parquet .*damaged"):
        parquet_of(files, client)


def test_columns_and_shapes_are_checked(table, client):
    ddf = dd.from_pandas(table, npartitions=2)
    for inputs, output, told in (
        (["income"], "height", "no column 'income'"),
        (["age", "age"], "height", "named twice"),
        ([], "height", "at least one"),
        ("age", "height", "in a list"),
    ):
        with pytest.raises(ValueError, match=told):
            DaskRows.from_dataframe(ddf, inputs=inputs, output=output, client=client)
    with pytest.raises(ValueError, match="must agree"):
        DaskRows.from_arrays(da.zeros((5, 2)), da.zeros(4), client=client)
    with pytest.raises(ValueError, match="two dimensions"):
        DaskRows.from_arrays(da.zeros(5), da.zeros(5), client=client)
    with pytest.raises(ValueError, match="chunk_rows"):
        DaskRows.from_arrays(da.zeros((5, 2)), da.zeros(5), client=client, chunk_rows=0)
    with pytest.raises(ValueError, match=r"dask\.dataframe"):
        DaskRows.from_dataframe(table, inputs=INPUTS, output="height", client=client)


def test_without_a_client(monkeypatch, client):
    def none():
        raise ValueError("No global client found")

    monkeypatch.setattr(distributed, "get_client", none)
    with pytest.raises(ValueError, match=r"no Dask client: connect one first") as caught:
        DaskRows.from_arrays(da.zeros((5, 2)), da.zeros(5))
    assert caught.value.__context__ is None
    monkeypatch.setattr(distributed, "get_client", lambda: client)
    rows = DaskRows.from_arrays(da.zeros((5, 2)), da.zeros(5))
    assert rows.over_inputs(OnInputs(), what="adding").chunks == ((0, 5),)


def test_without_dask():
    code = """
import sys
sys.modules.update(dict.fromkeys(["dask", "distributed"]))
import cloakgp, cloakgp.data
from cloakgp.data.dask.rows import DaskRows
from cloakgp.data.dask.tasks import cut_spans
try:
    DaskRows.from_arrays(None, None)
except ModuleNotFoundError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "cloakgp[dask]"' in done.stdout
