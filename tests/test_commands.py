"""The commands and the Python of documents run as they stand there, on `cloakgp example`'s tables.

Each page runs in a folder of its own, from top to bottom, after `cloakgp example`. Where a page
shows what is printed, that is what is printed: word by word and number by number where no noise is
drawn, and alike in words and labels where it is.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import re
import shlex
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest
from matplotlib import pyplot as plt
from typer.testing import CliRunner

import cloakgp
from cloakgp.cli import app
from cloakgp.release.points import UnseenLevelWarning

PROJECT = Path(cloakgp.__file__).parents[2]
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```\n(?:\s*^```text\n(.*?)^```\n)?", re.S | re.M)
# Pages of the guide whose blocks are no commands of this package, or a service's that is elsewhere.
OTHERS = {"docs/reproduction.md", "docs/rivals.md", "docs/operating.md"}
# The pages, with how many of their commands run: none is left out unnoticed.
PAGES = {}
# What is not of this package, or does not end, has tests of its own.
ELSEWHERE = ("make ", "pip ", "cloakgp serve")
# In passes all the same: a million rows are for `-m slow`.
FEWER = {"--trips 1000000": "--trips 6000", "--inducing 200": "--inducing 8", "=200": "=8"}
FEW_ROWS = {"--inducing auto": "--inducing 8"}
# Commands that draw no noise, and read none.
EXACT = ("example", "schema", "plan")
# What a cluster that is running takes.
CLUSTER = "scheduler:8786"
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
LABEL = re.compile(r"^  (\S+(?: \S+)*)  ", re.M)
# By how much kernels of linear algebra move a printed number, and how alike words with noise are.
CLOSE, ALIKE = 0.02, 0.85


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
        return [" ".join(shlex.split(line, comments=True)) for line in lines if line.strip()]

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
    assert set(LABEL.findall(found)) == set(LABEL.findall(shown))
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
    written = [
        page
        for page in ("README.md", *sorted(PROJECT.glob("docs/*.md")), *PROJECT.glob("docs/*/*.md"))
        for page in [PROJECT / page]
        if "auto_examples" not in page.parts and blocks(page)
    ]
    listed = {page.relative_to(PROJECT).as_posix() for page in written} - OTHERS
    assert {page: len(commands(page)) for page in sorted(listed)} == PAGES


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CLOAKGP_LEDGER", raising=False)
    run_page(page, monkeypatch, shorter={**FEWER, **FEW_ROWS})
