"""Workbooks: which rows there are does not depend on a private cell."""

from __future__ import annotations

import openpyxl
import pytest

from cloakgp.data.formats import format_of
from cloakgp.data.limits import RefusedError
from cloakgp.data.mixed import objects_of


def rows_of(path, cells):
    book = openpyxl.Workbook()
    for line in [("age", "height"), *cells]:
        book.active.append(line)
    book.save(path)
    reading = format_of(path).batches(path, ["age", "height"], rows=10, threads=False)
    return [age for batch in reading for age in objects_of(batch.column(0))]


@pytest.mark.parametrize("private", [150.0, None])
def test_a_row_without_public_cells_is_one_whatever_its_private_cell(private, tmp_path):
    cells = [(4.0, 100.0), (None, private), (6.0, 110.0)]
    assert rows_of(tmp_path / "people.xlsx", cells) == [4, None, 6]


def test_empty_rows_at_the_end_are_none(tmp_path):
    """Sheets often end in rows that are formatted, and hold nothing."""
    assert rows_of(tmp_path / "people.xlsx", [(4.0, 100.0), ("", ""), (None, "")]) == [4]


def test_a_first_sheet_that_is_hidden_is_refused(tmp_path):
    book = openpyxl.Workbook()
    book.active.append(("age", "height"))
    book.create_sheet("hidden", 0).sheet_state = "hidden"
    book["hidden"].append(("age", "height"))
    path = tmp_path / "people.xlsx"
    book.save(path)
    with pytest.raises(RefusedError, match="first sheet of the workbook is hidden"):
        format_of(path).check(path, names=["age"])
    book.move_sheet("hidden", 1)
    book.save(path)
    format_of(path).check(path, names=["age"])
