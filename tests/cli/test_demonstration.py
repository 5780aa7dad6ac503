"""The demonstration finds what it says, and its picture and release are there."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from cloakgp import Release
from cloakgp.cli import app
from cloakgp.cli.demonstration import BOUNDS, DELTA, INPUTS, demonstrate, draw, load_people


@pytest.fixture(scope="module")
def found():
    return demonstrate(load_people(), repetitions=3)


def test_the_budget_suits_the_people():
    people = load_people()
    assert len(people.X) * DELTA < 1
    together = np.concatenate([people.y, people.y_test])
    assert BOUNDS.lo < together.min()
    assert BOUNDS.hi > together.max()
    assert (BOUNDS.lo, BOUNDS.hi) != (together.min(), together.max())


def test_the_people_are_split():
    people = load_people()
    assert (len(people.X), len(people.X_test)) == (354, 88)
    assert str(float(people.y[0])) not in repr(people)


def test_privacy_costs_little_and_knowing_nothing_costs_more(found):
    kept = found.kept
    assert len(kept.private_rmse) == 3
    assert kept.private_rmse.mean() < 1.15 * kept.rmse
    assert kept.private_rmse.mean() < found.output_sd < found.middle_rmse
    raw, *_ = found.trials
    # Three draws of either, whose means differ by less than their spread.
    assert kept.private_rmse.mean() < 1.1 * raw.private_rmse.mean()
    assert kept.release.guarantee.delta == 1e-3
    assert 1.0 - 1e-5 < kept.release.guarantee.epsilon <= 1.0
    assert not kept.release.insecure
    # Counts of outputs first, three stages, and the question about the spread.
    assert len(kept.release.measurements) > 4


def test_the_picture_compares_with_no_privacy(found):
    left, right, *_ = draw(found).axes
    assert (left.get_xlabel(), left.get_ylabel()) == (
        "body mass index (kg/m²)",
        "blood pressure (mmHg)",
    )
    assert "without privacy" in [text.get_text() for text in right.get_legend().get_texts()]


def test_the_command_writes_release_and_picture(tmp_path, monkeypatch, found):
    monkeypatch.setattr("cloakgp.cli.demonstration.demonstrate", lambda *_, **__: found)
    for _ in range(2):
        result = CliRunner().invoke(app, ["demo", "--output-dir", str(tmp_path / "output")])
        assert result.exit_code == 0, result.output
    release = Release.load(tmp_path / "output" / "demo.cloak")
    assert release.input_names == INPUTS
    assert (tmp_path / "output" / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert result.output.rstrip().endswith("demo.png")
    assert "no secret" in " ".join(result.output.split())
