"""Names that come from files are shown, and neither obeyed by terminals nor run by spreadsheets."""

from __future__ import annotations

import csv
import re
import unicodedata
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from cloakgp import DPGPClassifier, DPGPRegressor
from cloakgp.cli import app
from cloakgp.release.io.bundle import bundle_bytes
from cloakgp.report.describe import describe
from cloakgp.report.facts import Fact, Section, as_text
from cloakgp.utils.formatting import printable

ODD = (
    "\x1b[2J\x1b[31mage",
    "age\x1b]0;title\x07",
    "age\rError: all is well",
    "age\nGuarantee: none is needed",
    "\u202eega",
    "age\x9b31m",
    "a\u200bge",
    "[bold red]age[/] [link=http://x]y",
    "age\ud800",
)
FORMULA = "=cmd|' /C calc'!A0"
BUDGET = {"epsilon": 1.0, "delta": 1e-3, "gap": 0.1, "learn": None, "insecure_seed": 0}
X = np.linspace(0, 10, 20)[:, None]


def codes(text):
    """Whatever in a text a terminal would obey, but for ends of lines."""
    kinds = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return [one for one in text if one != "\n" and unicodedata.category(one) in kinds]


def run(*words):
    """Run a command, which writes no codes."""
    result = CliRunner().invoke(app, list(words))
    for text in (result.stdout, result.stderr):
        assert codes(text) == []
        assert "Traceback" not in text
    return result


def read(path):
    return Path(path).read_text(encoding="utf-8")


def odd_releases(name, *, labels=("no", "yes")):
    """A release of numbers and one of classes whose columns have an odd name."""
    numbers = DPGPRegressor(bounds=(-1, 1), **BUDGET).fit(X, np.sin(X).ravel()).release_
    classes = DPGPClassifier(classes=list(labels), **BUDGET)
    classes = classes.fit(X, np.where(X.ravel() > 5, *labels)).release_
    return [replace(one, input_names=(name,), output_name=name) for one in (numbers, classes)]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_names_in_a_release_are_shown_and_not_obeyed(name):
    pd.DataFrame({"age": [1.0]}).to_csv("new.csv", index=False)
    label = name.replace("\ud800", "")
    for release in odd_releases(name, labels=(f"no{label}", f"yes{label}")):
        release.save("odd.cloak", overwrite=True)
        said = run("show", "odd.cloak")
        assert said.exit_code == 0, said.output
        # Long names are broken over lines.
        assert printable(name)[:12] in " ".join(said.stdout.split())
        assert not any(
            line.startswith(("Error:", "Guarantee: n")) for line in said.stdout.split("\n")
        )
        refused = run("predict", "odd.cloak", "--at", "new.csv", "-o", "out.csv")
        assert refused.exit_code == 1
        assert printable(name) in refused.stderr
        assert refused.stderr.count("\n") == 1
        assert codes(as_text(describe(release))) == []
        for words in (("show", "odd.cloak", "--html"), ("page", "odd.cloak", "-o")):
            written = run(*words, "odd.html", "--overwrite")
            assert written.exit_code == 0, written.output
            # Plotly's own script holds some.
            content = re.sub(r"<script>.*?</script>", "", read("odd.html"), flags=re.DOTALL)
            assert codes(content.replace("\ue000", "")) == []
            assert "<link" not in content
            assert "[/] <" not in content


def test_what_is_done_is_said_without_codes():
    pd.DataFrame({"age": [1.0]}).to_csv("new.csv", index=False)
    for release in odd_releases("age"):
        replace(release, output_name="height\x1b[2J").save("odd.cloak", overwrite=True)
        said = run("predict", "odd.cloak", "--at", "new.csv", "-o", "out.csv", "--overwrite")
        assert said.exit_code == 0, said.output
        assert "height\\x1b[2J" in said.stdout


def test_kinds_of_files_are_named_without_codes(folder):
    (folder / "odd.cloak").write_bytes(bundle_bytes(kind="x\x1b[2J", tree=lambda _: {}))
    refused = run("show", "odd.cloak")
    assert refused.exit_code == 1
    assert "x\\x1b[2J" in refused.stderr


def test_columns_of_a_table_are_listed_without_codes():
    pd.DataFrame({"age": [1.0], "\x1b[2Jsize": [2.0]}).to_csv("people.csv", index=False)
    refused = run(
        *("release", "people.csv", "--inputs", "age", "--output", "height", "--bounds", "0", "1"),
        *("--epsilon", "1", "--delta", "0.001", "-o", "out.cloak"),
    )
    assert refused.exit_code == 1
    assert "its columns are: age, \\x1b[2Jsize" in refused.stderr


def test_predictions_in_csv_hold_no_formulas():
    labels = (FORMULA, "@yes")
    pd.DataFrame({FORMULA: [-1.0, 9.0]}).to_csv("new.csv", index=False)
    for release, columns in zip(
        odd_releases(FORMULA, labels=labels),
        (("mean", "sd", "lower", "upper"), ("predicted", f"p_{FORMULA}", "p_@yes")),
        strict=True,
    ):
        release.save("odd.cloak", overwrite=True)
        done = run("predict", "odd.cloak", "--at", "new.csv", "-o", "out.csv", "--overwrite")
        assert done.exit_code == 0, done.output
        with Path("out.csv").open(newline="") as file:
            header, *rows = csv.reader(file)
        assert header == [f"'{FORMULA}", *columns]
        assert [row[0] for row in rows] == ["-1.0", "9.0"]
        if "predicted" in columns:
            assert {row[1] for row in rows} <= {f"'{label}" for label in labels}


def test_ordinary_text_is_shown_as_it_is():
    for text in ("Größe – ± ε = 1, 年齢", "naïve [0, 1]", ""):
        assert printable(text) == text
    assert as_text([Section("a", (Fact("b\x1b", "c\nd"),))]) == "A\n  b\\x1b: c\\nd"
