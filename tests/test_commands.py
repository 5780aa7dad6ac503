"""The commands and the Python of documents run as they stand there, on `cloakgp example`'s tables.

Each page runs in a folder of its own, from top to bottom, after `cloakgp example`. Where a page
shows what is printed, that is what is printed: word by word and number by number where no noise is
drawn, and alike in words and labels where it is.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import os
import re
import shlex
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from typer.testing import CliRunner

import cloakgp
from cloakgp import Release
from cloakgp.cli import app
from cloakgp.release.points import UnseenLevelWarning
from tests.repeating import repeating_noise

# Pages fit the same few tables again and again.
pytestmark = pytest.mark.usefixtures("clustered_once")

PROJECT = Path(cloakgp.__file__).parents[2]
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```\n(?:\s*^```text\n(.*?)^```\n)?", re.S | re.M)
# Pages of the guide whose blocks are no commands of this package, or a service's that is elsewhere.
OTHERS = {
    "docs/reproduction.md",
    "docs/rivals.md",
    "docs/tournament.md",
    "docs/paper.md",
    "docs/operating.md",
    # Its commands are of several parties at once: tests/cli/test_custodians.py.
    "docs/how-to/custodians.md",
}
# The pages, with how many of their commands run: none is left out unnoticed.
PAGES = {
    "README.md": 16,
    "docs/adaptive.md": 0,
    "docs/how-to/bounds.md": 0,
    "docs/how-to/budget-over-years.md": 6,
    "docs/how-to/categories.md": 2,
    "docs/how-to/classes.md": 2,
    "docs/how-to/counts.md": 2,
    "docs/how-to/disjoint-people.md": 8,
    "docs/how-to/epsilon-and-delta.md": 0,
    "docs/how-to/intervals.md": 4,
    "docs/how-to/long-tails.md": 0,
    "docs/how-to/many-rows.md": 2,
    "docs/how-to/private-inputs.md": 1,
    "docs/how-to/public-help.md": 1,
    "docs/how-to/quantiles.md": 1,
    "docs/how-to/reading-show.md": 3,
    "docs/how-to/several-rows.md": 1,
    "docs/how-to/streams.md": 6,
    "docs/ledger.md": 8,
    "docs/linear-smoothers.md": 0,
    "docs/long-tails.md": 3,
    "docs/many-rows.md": 4,
    "docs/pages.md": 5,
    "docs/start/classes.md": 5,
    "docs/start/custodian.md": 9,
    "docs/start/data-scientist.md": 0,
    "docs/start/million-rows.md": 4,
}
# Its commands stand in docs/many-rows.md and docs/start/million-rows.md, too, and the same calls.
AS_ELSEWHERE = {"docs/how-to/many-rows.md"}
SERVICE = "docs/start/service.md"
# What is not of this package, or does not end, has tests of its own.
ELSEWHERE = ("make ", "pip ", "cloakgp serve")
# In passes all the same, if they were: a million rows are for `-m slow`.
FEWER = {
    "--trips 1000000": "--trips 6000",
    "--inducing 200": "--inducing 8",
    "inducing=200": "inducing=8",
    "inducing=50": "inducing=8",
    "(20_000, 2)": "(2_000, 2)",
    'read_parquet("trips.parquet")': 'read_parquet("trips.parquet").head(1500)',
    # Held rows: a half costs an eighth.
    "80, 2000)": "80, 1000)",
    "7, 2000)": "7, 1000)",
    "rows=60": "rows=20",
    # Of persons' rows designs take longest.
    "--person household": "--person household --gap 0.1 --stages one",
    "--person rider": "--person rider --gap 0.1 --stages one",
}
# Commands that draw no noise, and read none.
EXACT = ("example", "schema", "plan")
# What a cluster that is running takes.
CLUSTER = "scheduler:8786"
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
LABEL = re.compile(r"^  (\S+(?: \S+)*)  ", re.M)
# By how much kernels of linear algebra move a printed number, and how alike words with noise are.
CLOSE, ALIKE, MOST_APART = 0.02, 0.8, 2


@dataclass(frozen=True)
class Block:
    """A piece of a page: commands or Python, with what it says they print."""

    language: str
    text: str
    shown: str

    @property
    def commands(self):
        """The commands, whole, without remarks."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [shlex.join(shlex.split(line, comments=True)) for line in lines if line.strip()]

    @property
    def exact(self):
        """Whether what it prints depends on no noise."""
        ours = [shlex.split(line)[1] for line in self.commands if line.startswith("cloakgp")]
        return self.language == "sh" and all(name in EXACT for name in ours)


def blocks(page):
    found = BLOCK.findall((PROJECT / page).read_text(encoding="utf-8"))
    return [Block(language, text, shown) for language, text, shown in found]


def commands(page):
    listed = [line for block in blocks(page) if block.language == "sh" for line in block.commands]
    return [line for line in listed if not line.startswith(ELSEWHERE)]


def run_command(command, monkeypatch):
    """Run one command, and return what it printed."""
    if command.startswith("export "):
        name, _, value = command.removeprefix("export ").partition("=")
        monkeypatch.setenv(name, value)
        return ""
    name, *words = shlex.split(command)
    assert name == "cloakgp", command
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, f"{command}\n{done.output}"
    for option in ("-o", "--html"):
        if option in words:
            # A stream writes a folder.
            assert Path(words[words.index(option) + 1]).stat().st_size > 0
    return done.stdout


def run_python(code, names, page):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenLevelWarning)
        exec(compile(code, page, "exec"), names)
    return printed.getvalue()


def as_printed(text):
    """Words and numbers of a text, without its layout."""
    return re.sub(r"[\s─]+", " ", text).strip()


def check_equal(found, shown):
    found, shown = as_printed(found), as_printed(shown)
    assert NUMBER.sub("#", found) == NUMBER.sub("#", shown)
    for one, other in zip(NUMBER.findall(found), NUMBER.findall(shown), strict=True):
        one, other = (float(each.replace(",", "")) for each in (one, other))
        assert one == pytest.approx(other, rel=CLOSE, abs=1e-12)


def check_alike(found, shown):
    # Noise decides whether some facts can be told.
    apart = set(LABEL.findall(found)) ^ set(LABEL.findall(shown))
    assert len(apart) <= MOST_APART, apart
    found, shown = (NUMBER.sub("#", as_printed(text)).split() for text in (found, shown))
    assert difflib.SequenceMatcher(None, found, shown, autojunk=False).ratio() > ALIKE, found


def run_page(page, monkeypatch, *, shorter):
    monkeypatch.setattr("matplotlib.pyplot.show", lambda: None)
    # Ledgers that a page makes are in its folder.
    monkeypatch.setenv("CLOAKGP_LEDGER_HOME", str(Path.cwd() / "home"))
    if not any(command == "cloakgp example" for command in commands(page)):
        run_command("cloakgp example", monkeypatch)
    names = {}
    for block in blocks(page):
        text = block.text
        for long, short in shorter.items():
            text = text.replace(long, short)
        if block.language == "python":
            printed = "" if CLUSTER in text else run_python(text, names, page)
        else:
            listed = Block("sh", text, "").commands
            ours = [each for each in listed if not each.startswith(ELSEWHERE)]
            printed = "".join(run_command(each, monkeypatch) for each in ours)
            if len(ours) < len(listed):
                continue
        if block.shown and text == block.text:
            (check_equal if block.exact else check_alike)(printed, block.shown)
    plt.close("all")
    return names


def test_every_page_with_commands_is_run():
    pages = ("README.md", *(PROJECT / "docs").glob("*.md"), *(PROJECT / "docs").glob("*/*.md"))
    written = [(PROJECT / page).relative_to(PROJECT).as_posix() for page in pages]
    counted = {
        page: len(commands(page))
        for page in written
        if "auto_examples" not in page and page not in OTHERS and blocks(page)
    }
    assert counted == {**PAGES, SERVICE: 0}


@pytest.fixture(scope="module")
def readme(tmp_path_factory):
    """A folder in which the README was run."""
    folder = tmp_path_factory.mktemp("readme")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.delenv("CLOAKGP_LEDGER", raising=False)
        patch.setattr("cloakgp.fitting.row_learning.LEARNING_CELLS", 300)
        patch.setattr("cloakgp.estimators.base.INDUCING", 20)
        with repeating_noise():
            run_page("README.md", patch, shorter=FEWER)
    return folder


# Of what is printed of a draw, the page shows what most draws say.
@pytest.mark.usefixtures("few_learning_cells", "noise_that_repeats")
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] * (page in AS_ELSEWHERE)) for page in PAGES],
)
def test_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch, request):
    if page == "README.md":
        request.getfixturevalue("readme")
        return
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CLOAKGP_LEDGER", raising=False)
    # `--inducing auto` begins with fewer, and goes on with fewer.
    monkeypatch.setattr("cloakgp.estimators.base.INDUCING", 20)
    monkeypatch.setattr("cloakgp.fitting.resolution.MOST_INDUCING", 40)
    run_page(page, monkeypatch, shorter=FEWER)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if "million" in page])
def test_a_page_about_a_million_rows_runs_as_it_stands(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(page, monkeypatch, shorter={})


@pytest.fixture
def demonstration():
    """The address of a demonstration of the service, and the tokens of its people by name."""
    command = [sys.executable, "-u", "-m", "cloakgp", "serve", "--demo", "--port", "0"]
    served = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ}
    )
    tokens = {}
    for line in served.stdout:
        if person := re.match(r"  (\w+) +\w+ +(cloakgp_\S+)$", line):
            tokens[person[1]] = person[2]
        if address := re.match(r"Serving at (\S+)$", line):
            break
    yield address[1], tokens
    served.terminate()
    served.wait()
    served.stdout.close()


def test_the_page_about_the_service_runs_against_its_demonstration(
    demonstration, tmp_path, monkeypatch
):
    address, tokens = demonstration
    monkeypatch.chdir(tmp_path)
    for name, token in tokens.items():
        monkeypatch.setenv(name.upper(), token)
    names = {}
    listening, *rest = blocks(SERVICE)
    assert listening.commands == ["cloakgp serve --demo"]
    assert listening.shown == "Serving at http://127.0.0.1:8000\n"
    for block in rest:
        assert block.language == "python"
        text = block.text.replace("http://127.0.0.1:8000", address)
        printed = run_python(text, names, SERVICE)
        assert printed == block.shown
    assert Release.load("progression.cloak").output_name == "progression"
    for client in (names["anna"], names["paul"]):
        client.close()


def test_what_is_shown_is_compared_number_by_number_and_word_by_word():
    check_equal("rows  400, a  5.38\n ── 1,000", "rows 400, a 5.40 1,000")
    for other in ("rows 400, a 5.9 1,000", "rows 400, b 5.38 1,000", "rows 400, a 5.38"):
        with pytest.raises(AssertionError):
            check_equal("rows 400, a 5.38 1,000", other)
    check_alike("  error  4.2 cm of all people\n", "  error  9.9 cm of all people\n")
    for other in ("  a  1\n  b  2\n  c  3\n", "  error  4.2 shillings for nothing\n"):
        with pytest.raises(AssertionError):
            check_alike("  error  4.2 cm of all people\n", other)


def test_persons_of_the_readme_are_protected_together(readme):
    release = Release.load(readme / "households.cloak")
    assert "household" not in release.schema.sources
    assert release.measurements[0].strategy.grouped


def test_the_tables_are_what_the_documents_say(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["example", "tables"])
    assert done.exit_code == 0
    people = pd.read_csv("tables/people.csv", parse_dates=["born"])
    assert f"{len(people)} simulated people" in done.output
    assert people["household"].duplicated().any()
    assert people["job"].isna().any()
    assert people["born"].notna().all()
    assert people["height"].between(40, 200).mean() > 0.99
    assert set(people["ill"]) == {"no", "yes"}
    sheet = pd.read_excel("tables/people.xlsx", engine="openpyxl")
    assert list(sheet) == [name for name in people if name != "ill"]
    assert "height" not in pd.read_csv("tables/new.csv")
    trips = pd.read_csv("tables/trips.csv")
    assert trips["rider"].duplicated().any()
    assert trips["seconds"].between(1, 7200).all()
    # A tariff is a public table's: it says nothing of a person beyond the age.
    care = pd.read_csv("tables/care.csv")
    assert (care.groupby("age")["tariff"].nunique() == 1).all()
    assert 0.2 < np.corrcoef(care["tariff"], care["pay"])[0, 1] < 0.99
    again = CliRunner().invoke(app, ["example", "tables"])
    assert again.exit_code != 0
    assert "exists" in again.output


def test_as_many_trips_as_one_likes_are_written_alone(tmp_path):
    done = CliRunner().invoke(app, ["example", str(tmp_path / "here"), "--trips", "1200"])
    assert done.exit_code == 0
    assert "1,200 simulated trips" in done.output
    assert [path.name for path in (tmp_path / "here").iterdir()] == ["trips.parquet"]
    assert len(pd.read_parquet(tmp_path / "here" / "trips.parquet")) == 1200
