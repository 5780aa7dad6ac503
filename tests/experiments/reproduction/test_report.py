"""The report: every row has a figure or a reason, names lead somewhere, pages hold every item."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

import cloakgp
from experiments.reproduction import __main__ as command_line
from experiments.reproduction import layout
from experiments.reproduction.items import (
    Computed,
    Item,
    Missing,
    Row,
    Said,
    Source,
    Unsound,
    cells_of,
)
from experiments.reproduction.jobs import all_jobs
from experiments.reproduction.page import page_html, pieces
from experiments.reproduction.results import Kept, Quantity, Results
from experiments.reproduction.running import computed_as_kept
from experiments.reproduction.sources import SOURCES, UNSOUND

PROJECT = Path(cloakgp.__file__).parents[2]
ITEMS = [item for source in SOURCES for item in source.items]
ROWS = [row for item in ITEMS for row in item.rows]
CELLS = [one for row in ROWS for cell in (row.reproduced, row.ours) for one in cells_of(cell)]
MEASURED = [one for unsound in UNSOUND for one in unsound.measured]
PATH = re.compile(r"(?:src|tests|docs|experiments)/[\w./-]*\w")
# Of the outline of a PDF: Latin-1, or UTF-16 with a mark; numbers and signs after backslashes.
TITLE = re.compile(rb"/Title \(((?:[^\\)]|\\.)*)\)", re.S)
QUOTES = {0x8D: "“", 0x8E: "”"}
ESCAPED = re.compile(rb"\\([0-7]{3}|.)", re.S)


def unescaped(match: re.Match[bytes]) -> bytes:
    sign = match.group(1)
    if len(sign) == 3:
        return bytes([int(sign, 8)])
    return {b"n": b"\n", b"r": b"\r", b"t": b"\t"}.get(sign, sign)


def headings() -> list[str]:
    return [f"{item.place}: {item.title}" for item in ITEMS]


def test_every_row_is_reproduced_or_says_why_not():
    without = [
        row
        for row in ROWS
        if not cells_of(row.reproduced)
        and not (isinstance(row.reproduced, Missing) and row.reproduced.why)
        and not (isinstance(row.reproduced, Said) and row.reproduced.text)
    ]
    assert without == []
    printed = [row for row in ROWS if layout.printed_number(row.published) is not None]
    assert len(printed) > 150
    assert all(cells_of(row.reproduced) or isinstance(row.reproduced, Missing) for row in printed)


def test_every_quantity_is_of_a_job_and_every_job_is_of_an_item():
    jobs = all_jobs()
    named = {one.job for one in (*CELLS, *MEASURED)}
    named |= {name.partition(":")[0] for item in ITEMS for name in item.pictures}
    assert named == set(jobs)


def test_every_quantity_and_picture_is_kept_where_its_job_is():
    results = Results()
    kept = {name: results.find(name) for name in results.names}
    assert set(kept) <= set(all_jobs())
    assert len(kept) > 0.9 * len(all_jobs())
    gone = [
        one.key
        for one in (*CELLS, *MEASURED)
        if one.job in kept and one.quantity not in kept[one.job].quantities
    ]
    assert gone == []
    files = {file for one in kept.values() for file in one.pictures}
    assert files == {path.name for path in (results.folder / "pictures").iterdir()}
    wanted = {
        f"{name.replace(':', '-')}.webp"
        for item in ITEMS
        for name in item.pictures
        if name.partition(":")[0] in kept
    }
    assert wanted <= files


# Of what takes little, those that need no table.
WITHOUT_TABLES = ("constants", "four-points", "table-2-printed")


def names_apart(names):
    """Return what jobs compute and is not kept, or is kept and no longer computed."""
    results, jobs = Results(), all_jobs()
    apart = {}
    for done in computed_as_kept([jobs[name] for name in names], results):
        assert done.found is not None, done.reason
        kept = results.find(done.job.name).quantities
        if set(done.found.quantities) != set(kept):
            apart[done.job.name] = set(done.found.quantities) ^ set(kept)
    return apart


def test_what_is_kept_is_what_is_computed():
    """Two figures were kept of a job that no longer computed them: the check failed."""
    assert names_apart(WITHOUT_TABLES) == {}


@pytest.mark.data
@pytest.mark.parametrize("seconds", [1.0, pytest.param(3.0, marks=pytest.mark.slow)])
def test_what_is_kept_is_what_is_computed_of_tables(seconds):
    kept = {name: Results().find(name) for name in all_jobs()}
    quick = [name for name, one in kept.items() if one is not None and one.seconds <= seconds]
    assert set(WITHOUT_TABLES) < set(quick)
    assert names_apart(quick) == {}


def test_what_is_kept_is_of_a_commit_and_of_the_settings_there_are():
    results, jobs = Results(), all_jobs()
    for name in results.names:
        kept = results.find(name)
        assert re.fullmatch(r"[0-9a-f]{12}", kept.commit), f"{name}: sources were not committed"
        assert kept.settings == jobs[name].told(kept.draws), name
        assert (kept.draws > 0) == (jobs[name].draws > 0), name
        drawn = {one.draws for one in kept.quantities.values()} - {0}
        assert not drawn or kept.draws, f"{name} draws and does not say so"


def git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *words], cwd=PROJECT, capture_output=True, text=True, check=False)


def test_the_commits_that_computed_are_in_the_history():
    """They are lost if commits are squashed or rebased: jobs are then to be run again."""
    if (
        shutil.which("git") is None
        or git("rev-parse", "--is-shallow-repository").stdout != "false\n"
    ):
        pytest.skip("there is no whole history here")
    results = Results()
    commits = {results.find(name).commit for name in results.names}
    assert [
        one for one in commits if git("merge-base", "--is-ancestor", one, "HEAD").returncode
    ] == []


def test_every_test_named_as_evidence_is_there():
    named = [test for unsound in UNSOUND for test in unsound.tests]
    assert len(UNSOUND) >= 10
    assert all(unsound.tests for unsound in UNSOUND)
    for test in named:
        file, _, name = test.partition("::")
        text = (PROJECT / file).read_text(encoding="utf-8")
        assert re.search(rf"^def {name}\(", text, re.M), test


def test_every_path_in_the_words_is_there():
    words = [
        cell.text for row in ROWS for cell in (row.reproduced, row.ours) if isinstance(cell, Said)
    ]
    words += [text for item in ITEMS for text in (item.remark, item.leaves_open, item.settings)]
    paths = {path for text in words for path in PATH.findall(text)}
    assert paths
    assert [path for path in paths if not (PROJECT / path).exists()] == []


def test_the_page_holds_every_item_and_needs_nothing_else():
    text = page_html(Results())
    plain = html.unescape(text)
    for words in (*headings(), *(one.claim for one in UNSOUND)):
        assert words in plain, words
    for row in ROWS:
        assert row.what in plain
        assert row.published in plain
    assert not re.search(r'(?:src|href)="(?!#|data:)', text)
    assert "<script" not in text
    assert text.count("<img ") == sum(
        Results().picture(f"{name.replace(':', '-')}.webp").exists()
        for item in ITEMS
        for name in item.pictures
    )


def test_the_pieces_for_the_site_are_those_of_the_page():
    parts = pieces(Results(), source_of=lambda path: f"there/{path.name}")
    titles = [title for _, items in parts["sources"] for title, _ in items]
    assert titles == headings()
    joined = "".join(text for _, items in parts["sources"] for _, text in items)
    assert 'src="there/' in joined
    assert "data:" not in joined


@pytest.mark.slow
def test_the_document_holds_every_item(tmp_path):
    done = CliRunner().invoke(command_line.app, ["page", "--output-dir", str(tmp_path)])
    assert done.exit_code == 0, done.output
    content = (tmp_path / "reproduction.pdf").read_bytes()
    assert content.startswith(b"%PDF")
    found = [
        title.decode("utf-16" if title.startswith(b"\xfe\xff") else "latin-1").translate(QUOTES)
        for title in (ESCAPED.sub(unescaped, raw) for raw in TITLE.findall(content))
    ]
    missing = [words for words in headings() if words not in found]
    assert missing == []
    assert [one.name for one in SOURCES if one.name not in found] == []


@pytest.fixture
def toy(tmp_path):
    """Results of one job, and a source about it with a row of every sort."""
    results = Results(tmp_path)
    quantities = {
        "near": Quantity(mean=10.2),
        "not far": Quantity(mean=11.5, error=0.5, draws=9, spread=2.0),
        "far": Quantity(mean=20.0),
    }
    results.put("job", Kept(quantities, (), "as it was", 9, 61.0, "abc", "2026-01-02", "Python"))
    rows = tuple(
        Row(name, "10", Computed(f"{job}:{name}", ".1f"), Said(""))
        for job, name in (("job", "near"), ("job", "not far"), ("job", "far"), ("later", "x"))
    )
    rows += (
        Row("gone", "10", Missing("the data are lost"), Said("")),
        Row("words", "small", Said("small"), Said("")),
    )
    return results, Source("toy", "nobody", (Item("Table 1", "toy", rows),))


def test_rows_are_counted_by_how_near_they_are(toy):
    results, source = toy
    found = layout.count(source, results)
    assert (found.rows, found.published) == (6, 5)
    assert (found.near, found.not_far, found.far, found.without, found.waiting) == (1, 1, 1, 1, 1)
    assert layout.total([found, found]).published == 10


def test_cells_say_what_is_there_or_why_nothing_is(toy):
    results, source = toy
    [shown] = layout.shown_items(source, results)
    cells = [row.reproduced[0] for row in shown.rows]
    assert [cell.figure for cell in cells[:3]] == ["10.2", "11.5 ± 2.0", "20.0"]
    assert cells[1].note == "se 0.5, n = 9"
    assert [cell.kind for cell in cells] == [
        *("figure", "figure", "figure", "waiting", "missing", "words")
    ]
    assert "--only later" in cells[3].words
    assert cells[4].words == "the data are lost"
    assert shown.computed == ("job: as it was (61 s at abc, 2026-01-02)",)


@pytest.mark.slow
def test_a_small_version_of_the_whole(tmp_path):
    """Jobs that need no table: computed, compared afresh, and laid out."""
    kept = ["--folder", str(tmp_path / "kept")]
    only = [word for name in ("constants", "four", "background") for word in ("--only", name)]
    run = CliRunner().invoke(command_line.app, ["run", *only, *kept])
    assert run.exit_code == 0, run.output
    checked = CliRunner().invoke(command_line.app, ["check", *only, *kept])
    assert checked.exit_code == 0, checked.output
    assert "of 3 jobs compared" in checked.output
    page = CliRunner().invoke(command_line.app, ["page", "--output-dir", str(tmp_path), *kept])
    assert page.exit_code == 0, page.output
    text = (tmp_path / "reproduction.html").read_text(encoding="utf-8")
    assert "116" in text
    assert "not computed yet" in text


def test_unsound_claims_show_their_figures(toy):
    results, _ = toy
    claim = Unsound("a", "b", "c", ("d",), (Computed("job:far", ".0f", label="apart"),))
    [shown] = layout.measured(claim, results)
    assert (shown.figure, shown.label) == ("20", "apart")
