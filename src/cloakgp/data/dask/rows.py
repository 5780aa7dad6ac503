"""Rows on a Dask cluster: the work goes to the rows, and sums come back.

Install with ``pip install "cloakgp[dask]"``, on the client, the scheduler and the workers alike.

Whom to trust
-------------
Client, scheduler and workers are all trusted with sums that hold no noise yet: of every block of
rows, k numbers travel from its worker to another's and at last to the client. Noise is drawn once,
in the client, after the last of them has come. What a *stranger* is promised rests on that noise;
who can log in to the cluster is no stranger.

* A worker that dies costs no privacy: the sums of its rows are computed anew, bit for bit the same,
  before any noise exists.
* Nobody encrypts the network unless told to: see TLS in the documentation of ``distributed``.
* Workers that run out of memory spill to their local disk, private columns included. Set
  ``distributed.worker.memory.target`` and ``distributed.worker.memory.spill`` to ``False`` to
  forbid it. Nothing here is kept on the cluster beyond a pass.
* Tasks made here hold what they hold out of sight of logs, dashboards and ``repr``, have keys that
  are no hashes, and never fail: errors come back as the name of a class. What makes a partition is
  done inside of them. This does not reach what the collection shares between partitions (shuffles,
  for instance) or keeps on the cluster (``persist``): there, Dask moves, names and logs as ever,
  and may move a partition to another worker that is idle, the private column with it.
* Dask arrays and tables that were made of numbers in the client's memory carry these numbers in
  their tasks, through the scheduler, in every pass. Read on the workers what should stay there.

CSV files are read whole in every pass: ``read_csv`` parses the private column, too, where inputs
alone are wanted, and keeps the first rows of the first file in the client, as an example. Tasks are
sent without these, and the column must be declared to be text. Of Parquet, passes over inputs read
no private column.

Where partitions end may have been decided by bytes (``read_csv`` does so, ``read_parquet`` may),
the private column's among them. Nothing that is asked depends on it, and no error quotes it: rows
are cut anew, where their number alone decides, and a partition is made for every task that has rows
of it. Those that are much larger than a task's rows (a thirtieth of the table, or half a million
rows) are best persisted, or cut smaller.

Every pass must find the same rows in the same order. A collection whose tasks come out differently
each time (shuffles between workers, draws without a seed) must be persisted first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn, Self

from cloakgp.data.chunks import CHUNK_ROWS, Watch
from cloakgp.data.dask.parquet import ParquetSource
from cloakgp.data.dask.partitions import ArraySource, FrameSource
from cloakgp.data.dask.tasks import (
    Parcel,
    RowWork,
    Source,
    SpanWork,
    attempt,
    build_pass,
    cut_spans,
    fetch,
    new_name,
    unwrap,
)
from cloakgp.data.files import Paths
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra
from cloakgp.utils.passes import Chunk, PartOf


class DaskRows:
    """Public inputs and private outputs that lie on a Dask cluster.

    Made by `from_dataframe`, `from_arrays` and `from_parquet`. The module says whom one has to
    trust.

    Attributes
    ----------
    input_names : tuple of str
        Empty for arrays.
    output_name : str
        Of the private column.
    chunk_rows : int
        The most rows of a chunk.
    watch : callable or None
        Called with the current step, the finished rows, and all rows.
    grouped : bool
        False: every row is protected on its own.

    Examples
    --------
    >>> import numpy as np
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from cloakgp.design.streaming.binning import CellSums
    >>> def summed(chunk):
    ...     return CellSums(features=chunk.X.sum(axis=0), noise=np.array([len(chunk.X)]))
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     X = da.arange(6.0, chunks=4).reshape(6, 1)
    ...     rows = DaskRows.from_arrays(X, da.zeros(6, chunks=4), client=client)
    ...     sums = rows.over_inputs(summed, what="adding")
    >>> rows, sums.features, sums.noise
    (DaskRows(6 rows, 1 inputs), array([15.]), array([6]))
    """

    grouped = False

    def __init__(self, source: Source, *, client: Any, watch: Watch | None = None) -> None:
        self.watch = watch
        self._source = source
        self._client = client

    @classmethod
    def from_dataframe(
        cls,
        ddf: Any,
        *,
        inputs: Sequence[str],
        output: str,
        client: Any = None,
        chunk_rows: int = CHUNK_ROWS,
    ) -> Self:
        """Return the rows of a ``dask.dataframe``.

        Parameters
        ----------
        ddf : dask.dataframe.DataFrame
        inputs : sequence of str
            Names of the public columns, in the order wanted.
        output : str
            Name of the private column. Passes over inputs leave out whatever makes it, as far as
            Dask does: ``read_csv`` parses all columns in every pass. Private ones must be taken as
            they are written (``dtype={"y": "object"}``), so that none of their cells can make a
            pass fail; of Parquet, passes over inputs do not read them.
        client : distributed.Client, optional
            If not given, the current one.
        chunk_rows : int

        Raises
        ------
        ModuleNotFoundError
            If Dask is not installed.
        ValueError
            If there is no cluster, or no such column; or if it is of CSV files, and the type of
            its cells was guessed, or is one that a cell may not have.
        """
        client = _client(client)
        source = FrameSource(ddf, inputs=inputs, output=output, chunk_rows=chunk_rows)
        return cls(source, client=client)

    @classmethod
    @forget_on_failure
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        *,
        client: Any = None,
        output_name: str = "y",
        chunk_rows: int = CHUNK_ROWS,
    ) -> Self:
        """Return rows whose inputs and outputs are of ``dask.array``.

        An array that was made of numpy's carries the numbers in its tasks: y goes with them from
        the client through the scheduler to the workers, in every pass over the outputs.

        Parameters
        ----------
        X : dask.array.Array of shape (N, D)
            Public inputs.
        y : dask.array.Array of shape (N,) or (N, 1)
            Private. Brought to the chunks of X; if sizes of chunks are unknown, there must be as
            many, and each is checked where it lies.
        client : distributed.Client, optional
            If not given, the current one.
        output_name : str
        chunk_rows : int

        Raises
        ------
        ModuleNotFoundError
            If Dask is not installed.
        ValueError
            If there is no cluster, or shapes do not agree.
        """
        client = _client(client)
        source = ArraySource(X, y, output_name=output_name, chunk_rows=chunk_rows)
        return cls(source, client=client)

    @classmethod
    def from_parquet(
        cls,
        path: Paths,
        *,
        inputs: Sequence[str],
        output: str,
        client: Any = None,
        chunk_rows: int = CHUNK_ROWS,
    ) -> Self:
        """Return rows of Parquet files that every worker can read under the same name.

        Each task reads its own row groups, and only the columns wanted; the client sends paths.
        A row group of which several tasks have rows is read by each: those of some hundred thousand
        rows are read fastest. For object storage, give ``dask.dataframe.read_parquet(...)`` to
        `from_dataframe`.

        Parameters
        ----------
        path : path, folder, or sequence of paths
            Files are read in the order given, those of a folder sorted by name.
        inputs : sequence of str
            Names of the public columns, in the order wanted.
        output : str
            Name of the private column.
        client : distributed.Client, optional
            If not given, the current one.
        chunk_rows : int

        Raises
        ------
        ModuleNotFoundError
            If Dask is not installed.
        FileNotFoundError
            If workers find no such file.
        ValueError
            If there is no cluster, a column is missing, a file is damaged, or there are no rows.
        """
        client = _client(client)
        source = ParquetSource(
            path, inputs=inputs, output=output, chunk_rows=chunk_rows, client=client
        )
        return cls(source, client=client)

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the public columns; empty for arrays."""
        return self._source.input_names

    @property
    def output_name(self) -> str:
        """Name of the private column."""
        return self._source.output_name

    @property
    def chunk_rows(self) -> int:
        """The most rows of a chunk."""
        return self._source.chunk_rows

    @property
    def n_inputs(self) -> int:
        """D, the number of public inputs."""
        return self._source.n_inputs

    @property
    def count(self) -> int | None:
        """N, if known: of files and arrays at once, of tables after the first pass."""
        lengths = self._source.lengths
        return None if lengths is None else sum(lengths)

    def __repr__(self) -> str:
        count = "?" if self.count is None else str(self.count)
        return f"{type(self).__name__}({count} rows, {self.n_inputs} inputs)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("DaskRows may hold private outputs, and are not pickled: make them anew")

    def report_to(self, watch: Watch | None) -> Self:
        """Return the same rows with a callback for their progress.

        Parameters
        ----------
        watch : callable or None
            Called in the client as blocks of rows are done, in whatever order they are.
        """
        return type(self)(self._source, client=self._client, watch=watch)

    def over_inputs(self, work: Callable[[Chunk], PartOf], *, what: str) -> PartOf:
        """Do some work on the inputs of every chunk, where it is; outputs are not computed.

        Of CSV files that Dask reads they are parsed, as text, and dropped.

        Parameters
        ----------
        work : callable
            Called with a chunk, on a worker. Must be picklable, and give the same every time.
        what : str
            What this pass is for.

        Returns
        -------
        Part
            Merged in the order of the table, the same bits whatever the workers are and do.

        Raises
        ------
        ValueError
            If an input is missing, not a number, or infinite; there are no rows; or a partition
            has another number of rows than in an earlier pass.
        RuntimeError
            If the work fails, or the cluster does.
        """
        part: PartOf = self._pass(work, what=what, private=False)
        return part

    def over_rows(
        self,
        work: Callable[[Chunk, Array], PartOf],
        *,
        what: str,
        labels: tuple[object, ...] | None = None,
    ) -> PartOf:
        """Do some work on the inputs and private entries of every chunk: for `cloakgp.privacy`.

        Parameters
        ----------
        work : callable
            Called with a chunk and its outputs, shape (n,): NaN where a cell is missing or no
            number, and infinite where it is infinite. Of labels, with their places among those
            given, from 0: NaN where a cell is none of them.
        what : str
            What this pass is for.
        labels : tuple of numbers, strings or truth values, optional
            What a cell can be; if not given, cells are numbers.

        Returns
        -------
        Part
            Merged in the order of the table, the same bits whatever the workers are and do. Of
            private entries nothing but parts leaves the task that has them.

        Raises
        ------
        ValueError, RuntimeError
            As `over_inputs`. Nothing is said of private entries: of an error, only the class.
            Also if a column of text is to hold labels that are none.
        """
        if labels is not None:
            self._source.check_labels(labels)
        part: PartOf = self._pass(RowWork(work, labels), what=what, private=True)
        return part

    # Tasks that partitions share may hold outputs.
    @forget_on_failure
    def _pass(self, work: Callable[[Chunk], Any] | RowWork, *, what: str, private: bool) -> Any:
        span_work = SpanWork(work, chunk_rows=self.chunk_rows, n_inputs=self.n_inputs)
        sent = unwrap(attempt(lambda: Parcel.pack(span_work), what=f"{what}: pickling the work"))
        lengths = self._source.count_rows(self._client)
        packed, shared = self._source.partitions(private=private)
        if len(packed) != len(lengths):
            raise ValueError(
                "there are not as many partitions as in an earlier pass: rows must be the same in "
                "every pass"
            )
        if not any(lengths):
            raise ValueError("there are no rows")
        spans = cut_spans(lengths, chunk_rows=self.chunk_rows)
        name = new_name(self._client, "rows" if private else "inputs")
        graph, keys = build_pass(packed, spans, work=sent, what=what, name=name)
        futures = self._client.get({**shared, **graph}, keys, sync=False)
        # The last is kept; the others are let go as they are done.
        last = futures.pop()
        if self.watch is not None:
            self._report(futures, [span.rows for span in spans], what=what)
        del futures
        merged = unwrap(fetch(last.result, what=what))
        return unwrap(attempt(merged.unpack, what=f"{what}: unpacking"))

    def _report(self, futures: list[Any], rows: Sequence[int], *, what: str) -> None:
        """Report the end of a block to the callback."""
        assert self.watch is not None
        of_key = {future.key: count for future, count in zip(futures, rows, strict=True)}
        finished = import_module("distributed").as_completed(futures)
        futures.clear()
        done = 0
        for future in finished:
            done += of_key[future.key]
            self.watch(what, done, self.count)


def _client(client: Any) -> Any:
    """Return the client given, or the current one."""
    with extra("dask"):
        distributed: Any = import_module("distributed")
    if client is None:
        with suppress(ValueError):
            client = distributed.get_client()
    if client is None:
        raise ValueError(
            "there is no Dask client: connect one first, with distributed.Client(address), or "
            "distributed.Client() for this machine alone"
        )
    if client.asynchronous:
        raise ValueError("passes wait for their end: give a client that is not asynchronous")
    return client
