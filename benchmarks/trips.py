"""Tables of any length, made from Citi Bike's stations and durations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from cloakgp.utils.arrays import Array
from experiments.datasets import load_citibike

INPUTS = ("start_lat", "start_lon", "end_lat", "end_lon")
OUTPUT = "tripduration"
# Seconds: half an hour and fifteen minutes, at which riders pay more; longer trips are clipped.
BOUNDS = (0.0, 2700.0)
# Degrees, some 50 m: riders start near a station. Durations vary by a tenth.
JITTER, SPREAD = 5e-4, 0.1
BLOCK_ROWS = 250_000
SEED = 20170605


def real_trips() -> pd.DataFrame:
    """Return the real rows that longer tables are drawn from."""
    return load_citibike()[[*INPUTS, OUTPUT]].astype(float)


def artificial_trips() -> pd.DataFrame:
    """Return rows in place of the real ones, where no file is at hand."""
    rng = np.random.default_rng(SEED)
    places = rng.uniform((40.68, -74.01, 40.68, -74.01), (40.78, -73.94, 40.78, -73.94), (2000, 4))
    distance = np.hypot(*(places[:, :2] - places[:, 2:]).T)
    frame = pd.DataFrame(places, columns=list(INPUTS))
    frame[OUTPUT] = 200 + 15_000 * distance
    return frame


def drawn_trips(trips: pd.DataFrame, *, rows: int, seed: int) -> Iterator[pd.DataFrame]:
    """Yield blocks of trips drawn with replacement, places and durations a little moved.

    Parameters
    ----------
    trips : DataFrame
    rows : int
        In all.
    seed : int
    """
    rng = np.random.default_rng(seed)
    for start in range(0, rows, BLOCK_ROWS):
        count = min(BLOCK_ROWS, rows - start)
        block = trips.iloc[rng.integers(len(trips), size=count)].reset_index(drop=True)
        block[list(INPUTS)] += rng.normal(scale=JITTER, size=(count, len(INPUTS)))
        block[OUTPUT] *= np.exp(rng.normal(scale=SPREAD, size=count))
        yield block


def write_trips(path: Path, trips: pd.DataFrame, *, rows: int, seed: int = SEED) -> None:
    """Write a Parquet table of drawn trips, never holding more than a block of it.

    Parameters
    ----------
    path : Path
    trips : DataFrame
    rows : int
    seed : int
    """
    writer = None
    for block in drawn_trips(trips, rows=rows, seed=seed):
        table = pa.Table.from_pandas(block, preserve_index=False)
        if writer is None:
            writer = pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def held_out(trips: pd.DataFrame, *, rows: int, seed: int = SEED + 1) -> tuple[pd.DataFrame, Array]:
    """Return inputs of other trips, and their durations brought inside the bounds."""
    drawn = pd.concat(drawn_trips(trips, rows=rows, seed=seed), ignore_index=True)
    return drawn[list(INPUTS)], np.clip(drawn[OUTPUT].to_numpy(dtype=float), *BOUNDS)
