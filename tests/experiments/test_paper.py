"""The paper is typeset from kept results, and says nothing that is not kept."""

import re

import pytest

from experiments.paper import SOURCE, typeset

# Of the authors' own results, and of settings.
PUBLISHED = {"13.3", "9.9", "17.2", "10.2"}


def test_the_paper_is_typeset(tmp_path):
    pytest.importorskip("typst")
    import typst

    made = typeset(tmp_path)
    assert made.read_bytes().startswith(b"%PDF")
    pages = typst.compile(str(SOURCE), root=str(SOURCE.parents[2]), format="png", ppi=20.0)
    assert 8 <= len(pages) <= 12


def test_tables_of_results_hold_no_typed_figure():
    """Cells of tables of errors are published ones, or read from what is kept."""
    text = SOURCE.read_text(encoding="utf-8")
    tables = re.findall(r"#figure\(\n  table\((.*?)\n  \),", text, re.S)
    assert tables
    for table in tables:
        cells = re.findall(r"\[([^\]]*)\]", table)
        typed = {cell for cell in cells if re.fullmatch(r"[-−]?[\d.,]+", cell)}
        assert typed <= PUBLISHED
