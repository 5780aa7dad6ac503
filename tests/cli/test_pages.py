"""`cloakgp show` in its three forms, and `cloakgp page`: one source of facts, one file each."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import numpy as np
import pytest
from test_every_kind import FILES, release_of
from typer.testing import CliRunner

from cloakgp import DPGPRegressor
from cloakgp.cli import app
from cloakgp.report.describe import describe


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert "unforeseen" not in result.output
    return result


def words_of(text):
    return " ".join(text.split())


@pytest.mark.parametrize("kind", FILES)
def test_text_json_and_page_say_the_same(kind):
    release = release_of(FILES[kind])
    release.save("some.cloak")
    sections = describe(release)
    short, long = (run("show", "some.cloak", *more).stdout for more in ((), ("--all",)))
    told = {
        section["title"]: {fact["label"]: fact["text"] for fact in section["facts"]}
        for section in json.loads(run("show", "some.cloak", "--json").stdout)["words"]
    }
    written = run("show", "some.cloak", "--html", "some.html")
    assert written.exit_code == 0, written.output
    page = html.unescape(re.sub(r"<[^>]+>", "", Path("some.html").read_text(encoding="utf-8")))
    for section in sections:
        assert (section.title in short) is not section.technical
        assert section.title in long
        for fact in section.facts:
            assert told[section.title][fact.label] == fact.text
            assert fact.text in page
    assert "--all" in words_of(short)
    assert run("show", "some.cloak", "--html", "some.html").exit_code == 1
    assert run("show", "some.cloak", "--html", "some.html", "--overwrite").exit_code == 0


def test_a_custodian_is_told_typical_errors_and_no_noise_of_answers():
    release_of("exact").save("some.cloak")
    told = words_of(run("show", "some.cloak").stdout)
    assert "typical error" in told
    assert "explained" in told
    for jargon in ("kernel", "noise of sd", "Matern", "prior of"):
        assert jargon not in told


def test_pages_are_written_for_numbers_and_classes_and_refused_for_others(folder):
    for name in ("exact", "many rows", "two classes"):
        release_of(name).save("some.cloak", overwrite=True)
        written = run("page", "some.cloak", "-o", "some.html", "--overwrite")
        assert written.exit_code == 0, written.output
        content = (folder / "some.html").read_text(encoding="utf-8")
        assert content.startswith("<!doctype html>")
        assert "Content-Security-Policy" in content
    release_of("several outputs").save("some.cloak", overwrite=True)
    refused = run("page", "some.cloak", "-o", "other.html")
    assert refused.exit_code == 1
    assert "this command takes releases of one private column" in refused.stderr
    assert "`cloakgp predict`" in refused.stderr
    assert not (folder / "other.html").exists()
    assert "must end in .html" in run("page", "some.cloak", "-o", "page.txt").stderr


def test_no_private_value_is_on_a_page(folder):
    X = np.linspace(0, 10, 20)[:, None]
    model = DPGPRegressor(bounds=(0, 1000), epsilon=1.0, delta=1e-3)
    model.fit(X, np.full(20, 777.125)).release_.save("some.cloak")
    assert run("page", "some.cloak", "-o", "page.html").exit_code == 0
    assert run("show", "some.cloak", "--html", "sheet.html").exit_code == 0
    for name in ("page.html", "sheet.html"):
        assert "777.125" not in (folder / name).read_text(encoding="utf-8")
