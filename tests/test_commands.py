"""The commands of the documents run as they stand there, on the tables of `cloakgp example`.

Each page runs in a folder of its own, from top to bottom, and begins with `cloakgp example`.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import cloakgp
from cloakgp import Release
from cloakgp.cli import app

PROJECT = Path(cloakgp.__file__).parents[2]
SHELL = re.compile(r"```sh\n(.*?)```", re.S)
# The pages, with how many of their commands run: none is left out unnoticed.
PAGES = {
    "README.md": 14,
    "docs/start/custodian.md": 9,
    "docs/how-to/classes.md": 2,
    "docs/how-to/counts.md": 2,
    "docs/how-to/quantiles.md": 1,
    "docs/how-to/categories.md": 2,
    "docs/how-to/streams.md": 6,
}
# What is not of `cloakgp example`, or does not end, has tests of its own.
ELSEWHERE = ("make ", "pip ", "cloakgp serve", "cloakgp release big.parquet")


def commands(page):
    """Return the commands of a page, whole, without remarks."""
    found = []
    for block in SHELL.findall((PROJECT / page).read_text(encoding="utf-8")):
        lines = block.replace("\\\n", " ").splitlines()
        found += [" ".join(shlex.split(line, comments=True)) for line in lines if line.strip()]
    return [each for each in found if not each.startswith(ELSEWHERE)]


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    listed = commands(page)
    assert len(listed) == PAGES[page]
    for command in ["cloakgp example", *listed]:
        name, *words = shlex.split(command)
        assert name == "cloakgp"
        # The README and the tutorials write the tables themselves.
        if command == "cloakgp example" and Path("people.csv").exists():
            continue
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, f"{command}\n{done.output}"
        for option in ("-o", "--html"):
            if option in words:
                assert Path(words[words.index(option) + 1]).stat().st_size > 0


def test_persons_of_the_readme_are_protected_together(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for command in commands("README.md"):
        if command == "cloakgp example" or "people.xlsx" in command:
            done = CliRunner().invoke(app, shlex.split(command)[1:])
            assert done.exit_code == 0, done.output
    release = Release.load("households.cloak")
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
    again = CliRunner().invoke(app, ["example", "tables"])
    assert again.exit_code != 0
    assert "exists" in again.output
