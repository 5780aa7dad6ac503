"""Databases by their address: cells one by one, and no word of what is in them in an error."""

from __future__ import annotations

import sqlite3
import traceback
from pathlib import Path

import pytest

from cloakgp.data.formats import format_of
from cloakgp.data.formats.address import AddressFormat
from cloakgp.data.tables import column_names_of, read_private, read_private_rows

SECRET = "secret-4711"


@pytest.fixture
def address(tmp_path):
    with sqlite3.connect(tmp_path / "hospital.db") as database:
        database.execute("CREATE TABLE people (age REAL, height TEXT)")
        rows = [(30, "170.5"), (40, "165"), (None, SECRET)]
        database.executemany("INSERT INTO people VALUES (?, ?)", rows)
    database.close()
    path = tmp_path / "hospital.url"
    path.write_text(f"sqlite:///{tmp_path / 'hospital.db'}\n", encoding="utf-8")
    return path


def test_the_only_table_is_read(address):
    assert isinstance(format_of(address), AddressFormat)
    assert column_names_of(address) == ["age", "height"]
    assert read_private(address, output="height").tolist() == ["170.5", "165", SECRET]


def test_a_query_chooses(address):
    chosen = AddressFormat("SELECT age, height AS tall FROM people WHERE age < 35")
    assert read_private(address, output="tall", table_format=chosen).tolist() == ["170.5"]


@pytest.mark.parametrize(
    "query",
    ["SELECT height FROM nowhere", "nonsense", f"SELECT '{SECRET}' FROM x"],
)
def test_what_a_database_says_is_not_passed_on(address, query):
    with pytest.raises(ValueError, match="cannot be read") as refused:
        read_private(address, output="height", table_format=AddressFormat(query))
    said = "".join(traceback.format_exception(refused.value))
    assert SECRET not in said.split("ValueError")[-1]
    assert refused.value.__cause__ is None
    assert len(read_private(address, output="height")) == 3


@pytest.mark.parametrize("text", ["", "no address", "sqlite:////nowhere/x.db", "mongodb://x/y"])
def test_addresses_that_lead_nowhere(tmp_path, text):
    path = Path(tmp_path) / "x.url"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="address"):
        column_names_of(path)


def test_several_tables_need_a_query(address, tmp_path):
    with sqlite3.connect(tmp_path / "hospital.db") as database:
        database.execute("CREATE TABLE others (age REAL)")
    database.close()
    with pytest.raises(ValueError, match="one table"):
        column_names_of(address)


def test_private_cells_that_are_no_numbers_are_not_shown(address):
    with pytest.raises(ValueError, match="not numbers") as refused:
        read_private_rows(address, inputs=["height"], output="age")
    assert SECRET not in str(refused.value)
