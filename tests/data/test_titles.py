"""A title above the names of a sheet is told from a table without the column."""

from __future__ import annotations

import pandas as pd
import pytest
from typer.testing import CliRunner

from cloakgp.cli import app
from cloakgp.data.tables import read_public


@pytest.fixture
def titled(tmp_path):
    path = tmp_path / "titled.xlsx"
    people = pd.DataFrame({"age": [3.0, 4.0], "job": ["cook", "clerk"], "height": [90, 100]})
    with pd.ExcelWriter(path) as book:
        people.to_excel(book, index=False, startrow=2)
        sheet = book.sheets["Sheet1"]
        sheet["A1"] = "Heights of people"
        sheet.merge_cells("A1:C1")
    return path


def test_the_rows_of_a_title_are_to_be_deleted(titled):
    advice = "one of them not empty.*If a title stands above the names, delete its rows"
    with pytest.raises(ValueError, match=advice) as caught:
        read_public(titled, names=["age"])
    assert "Heights of people" not in str(caught.value)
    said = CliRunner().invoke(app, ["schema", str(titled), "--output", "height"])
    assert said.exit_code == 1
    assert "delete its rows" in " ".join(said.output.split())


def test_a_table_of_names_lists_them(tmp_path):
    (tmp_path / "people.csv").write_text("age,size\n3,90\n")
    command = ["schema", str(tmp_path / "people.csv"), "--output", "age,height"]
    said = CliRunner().invoke(app, command)
    assert "its columns are: age, size" in " ".join(said.output.split())
