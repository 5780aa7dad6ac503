"""Whatever types and formats a table has: a release or advice, and no private value anywhere."""

from __future__ import annotations

import datetime as dt
import os
import sqlite3
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import feather
from typer.testing import CliRunner

from cloakgp.cli import app

SECRET = "777.125"
EXAMPLES = int(os.environ.get("CLOAKGP_FUZZ", "8"))
WHOLE = st.one_of(st.none(), st.integers(-9, 9))
REAL = st.one_of(st.none(), st.floats(-1e3, 1e3), st.sampled_from([np.nan, np.inf, -np.inf]))
WORD = st.one_of(st.none(), st.sampled_from(["", "x", "NA", "Ü", "a\nb", "=1", "1;2", "1,5", "ﬁ"]))
WHEN = st.one_of(st.none(), st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)))
KINDS = {
    "whole": (WHOLE, pa.int64()),
    "real": (REAL, pa.float64()),
    "word": (WORD, pa.string()),
    "category": (WORD, pa.dictionary(pa.int32(), pa.string())),
    "when": (WHEN, pa.timestamp("us")),
    "zoned": (WHEN, pa.timestamp("ms", "UTC")),
    "day": (st.one_of(st.none(), st.dates(dt.date(1900, 1, 1))), pa.date32()),
    "truth": (st.one_of(st.none(), st.booleans()), pa.bool_()),
    "decimal": (
        st.one_of(st.none(), st.decimals(-99, 99, places=2, allow_nan=False)),
        pa.decimal128(9, 2),
    ),
    "binary": (st.one_of(st.none(), st.binary(max_size=3)), pa.binary()),
    "list": (st.one_of(st.none(), st.lists(st.integers(0, 3), max_size=2)), pa.list_(pa.int64())),
}
PRIVATE = {
    "real": pa.float64(),
    "word": pa.string(),
    "decimal": pa.decimal128(9, 3),
    "category": pa.dictionary(pa.int32(), pa.string()),
}


@st.composite
def tables(draw):
    rows = draw(st.integers(1, 8))
    chosen = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3))
    columns = {}
    for place, kind in enumerate(chosen):
        values, arrow = KINDS[kind]
        cells = draw(st.lists(values, min_size=rows, max_size=rows))
        columns[f"c{place} {kind}"] = pa.array(cells, arrow)
    kind = draw(st.sampled_from(sorted(PRIVATE)))
    cell = {"real": float(SECRET), "decimal": Decimal(SECRET)}.get(kind, SECRET)
    private = [cell if draw(st.integers(0, 3)) else None for _ in range(rows)]
    columns["pay"] = pa.array([cell, *private[1:]], PRIVATE[kind])
    return pa.table(columns)


def written(table, suffix, folder):
    path = folder / f"people{suffix}"
    if suffix == ".parquet":
        pq.write_table(table, path)
    elif suffix == ".feather":
        feather.write_feather(table, path)
    elif suffix == ".xlsx":
        frame = table.to_pandas()
        for name in frame:
            if getattr(frame[name].dtype, "tz", None) is not None:
                frame[name] = frame[name].dt.tz_localize(None)
        whole = (bytes, np.ndarray, list)
        frame = frame.map(lambda cell: str(cell) if isinstance(cell, whole) else cell)
        frame.to_excel(path, index=False)
    else:
        database = folder / "people.db"
        columns = [[_plain(cell) for cell in column.to_pylist()] for column in table.columns]
        quoted = ", ".join(f'"{name}"' for name in table.column_names)
        with sqlite3.connect(database) as opened:
            opened.execute(f"CREATE TABLE people ({quoted})")
            marks = ", ".join("?" * len(columns))
            opened.executemany(f"INSERT INTO people VALUES ({marks})", zip(*columns, strict=True))
        opened.close()
        path = database
        if suffix == ".url":
            path = folder / "people.url"
            path.write_text(f"sqlite:///{database}", encoding="utf-8")
    return path


def _plain(cell):
    return cell if cell is None or isinstance(cell, int | float | str | bytes) else str(cell)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@given(
    table=tables(),
    suffix=st.sampled_from([".parquet", ".feather", ".xlsx", ".db", ".url"]),
    meaning=st.sampled_from(["refuse", "drop", "1"]),
    how=st.sampled_from([["--log", "--bounds", "1", "1000"], ["--bounds", "0", "1000"]]),
    classes=st.booleans(),
)
@settings(
    max_examples=EXAMPLES,
    derandomize="CLOAKGP_FUZZ" not in os.environ,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_there_is_a_release_or_advice(folder, table, suffix, meaning, how, classes):
    for file in folder.iterdir():
        file.unlink()
    path = written(table, suffix, folder)
    inputs = [name for name in table.column_names if name != "pay"]
    if classes:
        how = ["--classes", f"{SECRET[:-1]}6,1"]
    words = ["--output", "pay", "--inputs", ",".join(inputs), "--epsilon", "1", "--delta", "1e-2"]
    words += ["--learn", "none", "--inducing", "3", *how, "--missing-output", meaning]
    run("schema", path, "--output", "pay", "--overwrite")
    made = run("release", path, *words, "-o", folder / "pay.cloak")
    if made.exit_code == 0:
        assert SECRET.encode() not in Path("pay.cloak").read_bytes()
        run("show", "pay.cloak")
        run("predict", "pay.cloak", "--at", path, "-o", "out.csv")
        if Path("out.csv").exists():
            assert SECRET not in Path("out.csv").read_text(encoding="utf-8")
        budget = ["--epsilon", "1", "--delta", "1e-2", "-o", folder / "again.cloak"]
        run("refine", "pay.cloak", path, *budget, "--missing-output", meaning)


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert SECRET not in result.output
    assert "unforeseen" not in result.output, result.output
    assert result.exit_code in (0, 1), result.output
    assert result.exit_code == 0 or "Error: " in result.stderr
    return result
