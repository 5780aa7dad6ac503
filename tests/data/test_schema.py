"""Names tell formats, and columns are named once."""

from __future__ import annotations

from pathlib import Path

import pytest

from cloakgp.data.schema import check_file, check_header, checked_names, table_suffix


def test_tables_need_a_format():
    with pytest.raises(ValueError, match=r"must end in \.csv, \.tsv, \.parquet"):
        table_suffix("out.docx")


def test_every_column_has_one_role():
    for inputs, output, advice in (
        ([], "height", "at least one"),
        ("age", "height", "in a list"),
        (["age", "height"], "height", "as input and as output"),
        (["age", "age"], "height", "named twice"),
    ):
        with pytest.raises(ValueError, match=advice):
            checked_names(inputs, output=output)


def test_a_first_line_that_may_be_a_row_is_shown_only_if_a_name_is_in_it():
    path = Path("people.csv")
    with pytest.raises(ValueError, match="its columns are: age, size"):
        check_header(path, ["age", "size"], names=["age", "height"], certain=False)
    with pytest.raises(ValueError, match="not shown") as caught:
        check_header(path, ["31", "1.7e5"], names=["age", "height"], certain=False)
    assert "31" not in str(caught.value)
    with pytest.raises(ValueError, match="several columns called 'age'"):
        check_header(path, ["age", "age"], names=["age"], certain=True)


def test_a_file_is_there_and_holds_something(tmp_path):
    with pytest.raises(FileNotFoundError):
        check_file(tmp_path / "nobody.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(IsADirectoryError):
        check_file(tmp_path / "folder.csv")
    (tmp_path / "empty.csv").touch()
    with pytest.raises(ValueError, match="is empty"):
        check_file(tmp_path / "empty.csv")
