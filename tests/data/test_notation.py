"""Notation of text with separators: what is written beside it is written alike."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cloakgp.data.formats.delimited import CsvFormat
from cloakgp.data.notation import Notation


def seen(*cells):
    found = Notation()
    found.see(pa.chunked_array([[cell] for cell in cells], pa.binary()))
    return found


@pytest.mark.parametrize(
    ("cells", "decimal"),
    [
        ([b"16,5", b"1.234"], ","),
        ([b" -0,125 "], ","),
        ([b"16,5", b"16.5"], "."),
        ([b"2,145", b"12"], "."),
        ([b"12.05.2020", b"1,5"], ","),
        ([b"a,b", b"", None], "."),
    ],
)
def test_decimals(cells, decimal):
    assert seen(*cells).decimal == decimal


@pytest.mark.parametrize(
    ("start", "cells", "also", "encoding"),
    [
        (b"", ["Zürich".encode("cp1252")], [], "cp1252"),
        (b"", ["Zürich".encode("cp1252")], ["ε"], "utf-8"),
        (b"", ["Zürich".encode("cp1252"), "Łódź".encode()], [], "utf-8"),
        (b"", [b"\x81 odd"], [], "utf-8"),
        (b"", ["Zürich".encode()], [], "utf-8"),
        (b"", [b"Zug"], [], "utf-8"),
        (b"\xef\xbb\xbf", ["Zürich".encode()], [], "utf-8-sig"),
        (b"\xff\xfe", ["Zürich".encode()], [], "utf-16"),
    ],
)
def test_encodings(tmp_path, start, cells, also, encoding):
    path = tmp_path / "a.csv"
    path.write_bytes(start + "town;x\n".encode("utf-16-le" if start == b"\xff\xfe" else "utf-8"))
    read = CsvFormat().dialect_of(path)
    found = seen(*cells).dialect(read, name=path, suffix=".csv", decimal=".", also=also)
    assert (found.separator, found.encoding) == (";", encoding)


@pytest.mark.parametrize(
    ("name", "suffix", "line", "decimal", "separator"),
    [
        ("a.csv", ".csv", "a;b", ",", ";"),
        ("a.csv.gz", ".csv", "a\tb", ",", "\t"),
        ("a.csv", ".tsv", "a;b", ",", "\t"),
        ("a.tsv", ".csv", "a\tb", ",", ";"),
        ("a.tsv", ".csv.zip", "a\tb", ".", ","),
        ("a.tsv", ".tsv", "a\tb", ".", "\t"),
    ],
)
def test_separators(tmp_path, name, suffix, line, decimal, separator):
    import gzip

    content = f"{line}\n1\n".encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    path = tmp_path / name
    read = CsvFormat().dialect_of(path)
    found = Notation().dialect(read, name=path, suffix=suffix, decimal=decimal, also=())
    assert (found.separator, found.decimal) == (separator, decimal)
