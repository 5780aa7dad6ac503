"""Kept results in pages: what is shown is what is kept."""

import json
from functools import partial

import pytest
from typer.testing import CliRunner

from experiments import __main__ as command_line
from experiments import framework
from experiments.framework import table_titled
from experiments.pages import (
    KEPT,
    Kept,
    StaleFigureError,
    check_pages,
    keep_tables,
    numbers_in,
    stale_figures,
    stale_reproductions,
    with_kept_tables,
)
from experiments.reproduction.results import Kept as Job
from experiments.reproduction.results import Quantity, Results


@pytest.fixture
def folder(tmp_path):
    table = table_titled("errors", "way", "size", right=["ε = 1"])
    table.add_row("ours", "small", "0.83, 1.04")
    table.add_row("", "large", "[bold]1,200[/bold] (12)")
    keep_tables(["a sentence", table], name="one", settings="one, draws = 3", folder=tmp_path)
    return tmp_path


def test_all_pages_say_what_is_kept():
    """Tables and figures in sentences of the README and of all documents."""
    check_pages()


def test_everything_that_is_kept_says_by_what_and_from_which_commit():
    for path in KEPT.glob("*.json"):
        kept = Kept.read(path.stem)
        assert kept.settings
        assert len(kept.commit) >= 12
        assert not kept.commit.endswith("+"), f"{path.name}: sources were changed since"


def test_a_kept_table_stands_between_its_marks(folder):
    page = "before\n<!-- begin kept one 1 -->\nold\n<!-- end kept one 1 -->\nafter\n"
    fresh = with_kept_tables(page, folder=folder)
    assert "| ours | small | 0.83, 1.04 |" in fresh
    assert "old" not in fresh
    assert fresh.startswith("before\n")
    assert fresh.endswith("after\n")
    assert with_kept_tables(fresh, folder=folder) == fresh


def test_several_tables_stand_between_one_pair_of_marks(folder):
    both = [table_titled(title, "way") for title in ("first", "second")]
    keep_tables(both, name="both", settings="both", folder=folder)
    fresh = with_kept_tables(
        "<!-- begin kept both 1-2 -->\n<!-- end kept both 1-2 -->\n", folder=folder
    )
    assert fresh.index("first") < fresh.index("second")
    assert with_kept_tables(fresh, folder=folder) == fresh


@pytest.mark.parametrize(
    ("said", "is_stale"),
    [
        ("errors of .83<!-- kept one 1: ours; small, ε = 1 -->", False),
        ("errors of 1.04<!-- kept one 1: ours; small, ε = 1 -->", False),
        ("errors of .84<!-- kept one 1: ours; small, ε = 1 -->", True),
        ("all 1,200<!-- kept one 1: ours; large, ε = 1 -->", False),
        ("all 1,201<!-- kept one 1: ours; large, ε = 1 -->", True),
        ("12 %<!-- kept one 1: ours; large, ε = 1 -->", False),
    ],
)
def test_figures_in_sentences_are_those_of_their_cell(folder, said, is_stale):
    assert bool(stale_figures(said, folder=folder)) is is_stale


@pytest.mark.parametrize(
    "said",
    [
        "3<!-- kept two 1: ours, ε = 1 -->",
        "3<!-- kept one 2: ours, ε = 1 -->",
        "3<!-- kept one 1: theirs, ε = 1 -->",
        "3<!-- kept one 1: ours, ε = 2 -->",
    ],
)
def test_what_is_not_kept_is_no_figure(folder, said):
    with pytest.raises(StaleFigureError):
        stale_figures(said, folder=folder)


def test_a_page_that_is_behind_is_named_and_written_anew(folder, tmp_path):
    root = tmp_path / "root"
    (root / "docs").mkdir(parents=True)
    (root / "README.md").write_text("nothing", encoding="utf-8")
    page = root / "docs" / "page.md"
    page.write_text("<!-- begin kept one 1 -->\nold\n<!-- end kept one 1 -->\n", encoding="utf-8")
    with pytest.raises(StaleFigureError, match=r"docs/page.md: tables are behind"):
        check_pages(root, folder=folder)
    check_pages(root, folder=folder, write=True)
    check_pages(root, folder=folder)
    page.write_text("of .9<!-- kept one 1: ours; small, ε = 1 -->", encoding="utf-8")
    with pytest.raises(StaleFigureError, match=r"page.md: .9 for '0.83, 1.04'"):
        check_pages(root, folder=folder, write=True)


@pytest.fixture
def report(tmp_path):
    results = Results(folder=tmp_path)
    quantity = Quantity(mean=0.8292, error=0.00916, draws=25)
    results.put("digits", Job({"bayes": quantity}, (), settings="s", draws=25, seconds=1.0))
    return results


@pytest.mark.parametrize(
    ("said", "is_stale"),
    [
        ("82.9<!-- reproduced digits: bayes × 100 -->", False),
        ("82.8<!-- reproduced digits: bayes × 100 -->", True),
        ("83<!-- reproduced digits: bayes × 100 -->", False),
        (".83<!-- reproduced digits: bayes -->", False),
        ("0.9 %<!-- reproduced digits: bayes ± × 100 -->", False),
        ("1.0<!-- reproduced digits: bayes ± × 100 -->", True),
    ],
)
def test_figures_of_the_report_are_rounded_as_the_page_does(report, said, is_stale):
    assert bool(stale_reproductions(said, results=report)) is is_stale


def test_what_the_report_has_not_is_no_figure(report):
    for said in ("3<!-- reproduced digits: papers -->", "3<!-- reproduced other: bayes -->"):
        with pytest.raises(StaleFigureError, match="the report has no"):
            stale_reproductions(said, results=report)


def test_numbers_are_read_however_they_are_written():
    assert numbers_in("−.5 to 1,234.5, and +3 of 7.") == {-0.5, 1234.5, 3.0, 7.0}


def test_a_command_keeps_what_it_prints(tmp_path, monkeypatch):
    monkeypatch.setattr(framework, "keep_tables", partial(keep_tables, folder=tmp_path))
    run = CliRunner().invoke(
        command_line.app,
        ["four-points", "--fast", "--keep", "two", "--output-dir", str(tmp_path / "out")],
    )
    assert run.exit_code == 0, run.output
    found = Kept.read("two", folder=tmp_path)
    assert found.settings.startswith("four-points")
    written = json.loads((tmp_path / "out" / "four-points.json").read_text(encoding="utf-8"))
    assert [vars(one) for one in found.tables] == [
        one for one in written["shown"] if not isinstance(one, str)
    ]
