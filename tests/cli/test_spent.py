"""What was spent and guaranteed is said alike by plan, release, later visits and show."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from cloakgp.cli import app

BUDGET = ["--epsilon", 1, "--delta", 1e-6]


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def guesses(text):
    return re.findall(r"guess(?:es)? right at most ([0-9.]+ %)", text)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ([], "ε = 1, with no δ"),
        (["--noise", "laplace"], "ε = 1, with no δ"),
        (["--noise", "laplace", "--stages", "one", "--interval", "off"], "ε = 1, with no δ"),
        (["--noise", "gaussian"], "(ε, δ) = (1, 1e-06)"),
    ],
)
def test_one_statement_of_what_is_spent(tmp_path, monkeypatch, more, words):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 80, 60).round(1)
    pd.DataFrame({"age": age, "height": 150 + age / 3}).to_csv("p.csv", index=False)
    options = ["p.csv", "--inputs", "age", "--output", "height", "--bounds", 50, 250, *BUDGET]
    planned = run("plan", *options, *more)
    made = run("release", *options, *more, "-o", "p.cloak")
    shown = run("show", "p.cloak")
    assert f"with {words}." in planned
    assert f"This spent {words}, about these people." in made
    for text in (made, shown):
        assert f"guarantee {words}" in text
    assert guesses(planned) == guesses(made) == guesses(shown)
    assert len(guesses(planned)) == 1
    visit = run("refine", "p.cloak", "p.csv", *BUDGET, *more[:2], "-o", "q.cloak")
    assert f"This visit spent {words}." in visit
    assert "Another run spends the same again" in visit
