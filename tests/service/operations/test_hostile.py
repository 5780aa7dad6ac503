"""Hostile files and queries: what is refused, how soon, and that nothing of it goes on."""

from __future__ import annotations

import bz2
import gzip
import lzma
import sqlite3
import threading
import zipfile
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from services import add_people, opened, register, work_as

from cloakgp.service.access import Role
from cloakgp.service.confined import EndedError
from cloakgp.service.errors import InvalidError
from cloakgp.service.messages import Choices, Look, NewRequest, PlanRequest
from cloakgp.service.operations.plans import make_plan
from cloakgp.service.operations.releases import list_releases, predict_table, suffix_of_sent
from cloakgp.service.operations.requests import make_request
from cloakgp.service.operations.tables import look_at_table, upload_table

QUICK = Choices(epsilon=0.5, delta=1e-6, stages="one", interval="off", learn="none")
MILLION = 10**6
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A service with a release: it, its tokens and the release's number."""
    folder = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLOAKGP_LEDGER_HOME", str(folder / "home"))
        service = opened(str(folder / "people.db"), folder)
        tokens = add_people(service)
        table = register(service, tokens[Role.CUSTODIAN], folder)
        analyst = work_as(service, tokens[Role.ANALYST])
        make_request(analyst, NewRequest(table=table.id, choices=QUICK, purpose="a test"))
        (release,) = list_releases(analyst)
        yield service, tokens, release.id
        service.close()


@pytest.fixture
def reader(place):
    return work_as(place[0], place[1][Role.READER])


@pytest.fixture
def custodian(place):
    return work_as(place[0], place[1][Role.CUSTODIAN])


def predicted(reader, place, path):
    return predict_table(reader, place[2], path).content


@pytest.mark.parametrize("name", ["r.csv.xz", "r.csv.bz2", "r.csv.zst", "r.csv.zip", "r.tsv.xz"])
def test_only_some_formats_are_predicted(name):
    with pytest.raises(InvalidError, match=r"send .csv, .csv.gz, .tsv, .tsv.gz, .parquet or"):
        suffix_of_sent(name)


@pytest.mark.parametrize("name", ["r", ".csv.", "r.csv.parquet.xz", "r.xlsm", "r.arrow", "r.db"])
def test_other_names_are_refused(name):
    with pytest.raises(InvalidError, match="send"):
        suffix_of_sent(name)


@pytest.mark.parametrize("opener", [gzip.open, bz2.open, lzma.open])
def test_a_million_rows_are_not_predicted(reader, place, tmp_path, opener):
    """However they came here: 1.8 kB of them took nine seconds and 85 MB."""
    suffix = {gzip.open: "gz", bz2.open: "bz2", lzma.open: "xz"}[opener]
    path = tmp_path / f"r.csv.{suffix}"
    with opener(path, "wb") as file:
        file.write(b"age\n" + b"1\n" * MILLION)
    assert path.stat().st_size < 10_000
    with pytest.raises(InvalidError, match="more than 20,000 rows"):
        predicted(reader, place, path)


def test_as_many_rows_as_may_be_are_predicted(reader, place, tmp_path):
    path = tmp_path / "r.csv"
    path.write_bytes(b"age\n" + b"1\n" * 20_000)
    assert predicted(reader, place, path).count(b"\n") == 20_001
    path.write_bytes(b"age\n" + b"1\n" * 20_001)
    with pytest.raises(InvalidError, match="more than 20,000 rows"):
        predicted(reader, place, path)


def archived(path, content):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("r.csv", content)


@pytest.mark.parametrize(
    "content",
    [
        b"age,note\n1," + b"x" * 2**20 * 70 + b"\n",
        b"\n" * 2**20 * 70,
        b"age\n" + b'"' + b"1\n" * 2**20 * 35,
        b"age\n" + b" " * 2**20 * 70,
    ],
    ids=["a wide cell", "empty lines", "a quote that stays open", "blanks"],
)
def test_what_unpacks_to_more_than_may_be_is_not_unpacked(reader, place, tmp_path, content):
    path = tmp_path / "r.csv.zip"
    archived(path, content)
    assert path.stat().st_size < 200_000
    with pytest.raises(InvalidError, match=r"larger than 67,108,864 bytes|damaged|rows"):
        predicted(reader, place, path)


def test_an_archive_with_a_password_is_damaged(reader, place, tmp_path):
    path = tmp_path / "r.csv.zip"
    archived(path, b"age\n1\n")
    content = bytearray(path.read_bytes())
    # The bit that says so, of the file and of the list of files.
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(bytes(content))
    with pytest.raises(InvalidError, match=r"the table cannot be read as .csv.zip"):
        predicted(reader, place, path)


def test_one_word_of_parquet_that_stands_in_every_row(reader, place, tmp_path):
    """Rows that point to a dictionary's one word of a megabyte: 20 GB from a few kilobytes."""
    path, word = tmp_path / "r.parquet", "x" * 2**20
    words = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), pa.array([word]))
    ages = pa.array([1.0] * 20_000)
    pq.write_table(
        pa.table({"age": ages, "note": words}), path, compression="zstd", store_schema=False
    )
    assert path.stat().st_size < 100_000
    with pytest.raises(InvalidError, match=r"memory|damaged|larger"):
        predicted(reader, place, path)


def test_rows_of_parquet_are_counted_before_they_are_read(reader, place, tmp_path):
    path = tmp_path / "r.parquet"
    pq.write_table(pa.table({"age": pa.array([1.0] * MILLION)}), path, row_group_size=MILLION)
    with pytest.raises(InvalidError, match="more than 20,000 rows"):
        predicted(reader, place, path)


SHEET = (
    '<?xml version="1.0"?><worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/'
    'main"><sheetData>{rows}</sheetData></worksheet>'
)
CELL = '<row r="{row}"><c r="{column}{row}"><v>1</v></c></row>'
PARTS = {
    "[Content_Types].xml": (
        '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/'
        'content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-'
        'package.relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType='
        '"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/></Types>'
    ),
    "_rels/.rels": (
        '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/'
        'relationships"><Relationship Id="a" Type="http://schemas.openxmlformats.org/officeDocument'
        '/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>'
    ),
    "xl/workbook.xml": (
        '<?xml version="1.0"?><workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/'
        '2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">'
        '<sheets><sheet name="a" sheetId="1" r:id="b"/></sheets></workbook>'
    ),
    "xl/_rels/workbook.xml.rels": (
        '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/'
        'relationships"><Relationship Id="b" Type="http://schemas.openxmlformats.org/officeDocument'
        '/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/></Relationships>'
    ),
}


def workbook(path, rows):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in PARTS.items():
            archive.writestr(name, content)
        with archive.open("xl/worksheets/sheet1.xml", "w") as file:
            head, tail = SHEET.split("{rows}")
            file.write(head.encode())
            for piece in rows:
                file.write(piece.encode())
            file.write(tail.encode())


def test_a_workbook_whose_two_cells_are_far_apart(reader, place, tmp_path):
    """Readers of workbooks make a rectangle of it: 17 thousand million cells."""
    path = tmp_path / "r.xlsx"
    workbook(path, [CELL.format(row=1, column="A"), CELL.format(row=2**20, column="XFD")])
    assert path.stat().st_size < 2_000
    with pytest.raises(InvalidError, match="memory"):
        predicted(reader, place, path)


def test_a_workbook_that_unpacks_to_much(reader, place, tmp_path):
    path = tmp_path / "r.xlsx"
    blanks = " " * 2**20
    workbook(path, [CELL.format(row=1, column="A"), *(blanks for _ in range(70))])
    with pytest.raises(InvalidError, match="larger than 67,108,864 bytes"):
        predicted(reader, place, path)
    # What an archive says of itself may be a lie.
    content = path.read_bytes()
    size = (70 * 2**20 + 200).to_bytes(4, "little")[1:]
    lied = content.replace(size, b"\x10\x00\x00")
    path.write_bytes(lied)
    with pytest.raises(InvalidError, match=r"larger|damaged|memory|cannot be read|no column"):
        predicted(reader, place, path)


@pytest.fixture
def hospital(place):
    path = place[0].settings.tables[0] / "hospital.db"
    if not path.exists():
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE people (age REAL, height REAL)")
        database.close()
    return path


def test_a_query_writes_no_file(custodian, hospital, tmp_path):
    there = tmp_path / "stolen.db"
    look = Look(path=str(hospital), query=f"VACUUM INTO '{there}'")
    with pytest.raises(InvalidError, match="may select, and do nothing else"):
        look_at_table(custodian, look)
    assert not there.exists()


def test_an_endless_query_ends_when_its_time_is_over(custodian, hospital):
    settings = replace(custodian.service.settings, query_seconds=0.5)
    hasty = replace(custodian, service=replace(custodian.service, settings=settings))
    with pytest.raises(InvalidError, match=r"the query took longer than 0.5 seconds"):
        look_at_table(hasty, Look(path=str(hospital), query=ENDLESS))


def test_an_endless_query_ends_when_nobody_waits(custodian, hospital):
    left = threading.Event()
    threading.Timer(1.0, left.set).start()
    with pytest.raises(EndedError):
        look_at_table(
            replace(custodian, stopped=left.is_set), Look(path=str(hospital), query=ENDLESS)
        )


def test_a_custodians_file_is_unpacked_as_far_as_may_be(custodian, tmp_path):
    path = tmp_path / "sent"
    with gzip.open(path, "wb") as file:
        file.write(b"age\n" + b"1\n" * MILLION)
    sent = upload_table(custodian, "people.csv.gz", received=path)
    settings = replace(custodian.service.settings, table_size=MILLION)
    small = replace(custodian, service=replace(custodian.service, settings=settings))
    with pytest.raises(InvalidError, match="larger than 1,000,000 bytes"):
        look_at_table(small, Look(upload=sent.id, private=["height"]))


def test_a_plan_that_takes_too_long_is_stopped(place, monkeypatch):
    service, tokens, _ = place
    monkeypatch.setattr(service.planning, "_seconds", 0.05)
    with pytest.raises(InvalidError, match=r"planning this took longer than 0.05 seconds"):
        make_plan(
            work_as(service, tokens[Role.ANALYST]),
            PlanRequest(table=1, choices=Choices(epsilon=3.1, delta=1e-15)),
        )


def test_no_release_has_an_epsilon_beyond_all_sense():
    with pytest.raises(ValueError, match="less than or equal to 20"):
        Choices(epsilon=100, delta=1e-15)
