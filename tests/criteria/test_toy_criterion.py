"""A new criterion is one class and one entry of the registry; all else takes it from there."""

from __future__ import annotations

import importlib
import inspect

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF
from typer.testing import CliRunner

from cloakgp import DPGPClassifier, DPGPRegressor, Release, ReleaseFileError
from cloakgp.cli.app import app
from cloakgp.criteria import CRITERIA
from cloakgp.criteria.base import Chosen, Criterion
from cloakgp.data import ArrayRows
from cloakgp.design import Certificate
from cloakgp.models import ExactPrior
from cloakgp.plots import display_of
from cloakgp.privacy.selection import select
from cloakgp.report.describe import describe

BLOCKS = 3
SAID = "the questions are the sums over 3 blocks of rows, for the prior."
SETTINGS = {"criterion": "blocks", "epsilon": 1.0, "delta": 1e-3}


class Blocks(Criterion):
    """Asks for the sums of the outputs in blocks of neighbouring rows: every column has norm 1."""

    def choose(self, problem):
        block = np.arange(len(problem.X)) * BLOCKS // len(problem.X)
        return Chosen(
            strategy=(block == np.arange(BLOCKS)[:, None]).astype(float),
            reconstruction=None,
            certificate=Certificate(criterion=self.name, gap=0.0),
        )


@pytest.fixture(autouse=True)
def blocks(monkeypatch):
    criterion = Blocks(
        name="blocks",
        option="sums over blocks",
        aim="the questions are the sums over 3 blocks of rows, for {prior}.",
        uses=frozenset({"numbers", "classes", "held-out rows"}),
        raw=False,
    )
    monkeypatch.setitem(CRITERIA, criterion.name, criterion)
    return criterion


@pytest.fixture
def table():
    X = np.linspace(0, 4, 12)[:, None]
    return X, X[:, 0] / 4


def facts_of(release):
    return {fact.label: fact.text for section in describe(release) for fact in section.facts}


def test_numbers_are_fit_saved_loaded_described_and_drawn(table, tmp_path):
    X, y = table
    model = DPGPRegressor(bounds=(0, 1), **SETTINGS).fit(X, y)
    (measurement,) = model.release_.measurements
    np.testing.assert_array_equal(measurement.strategy.matrix.sum(axis=1), [4, 4, 4])
    model.release_.save(tmp_path / "numbers.cloak")
    loaded = Release.load(tmp_path / "numbers.cloak")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert facts_of(loaded)["design"] == SAID
    assert display_of(loaded).draw().axes[0].get_xlabel() == "x1"
    with pytest.raises(ValueError, match="criterion='blocks' do not determine raw predictions"):
        loaded.published()


def test_classes_are_fit_saved_loaded_described_and_drawn(table, tmp_path):
    X, y = table
    model = DPGPClassifier(classes=["low", "high"], **SETTINGS)
    model.fit(X, np.where(y > 0.5, "high", "low"))
    model.release_.save(tmp_path / "classes.cloak")
    loaded = Release.load(tmp_path / "classes.cloak")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert "sums over 3 blocks" in facts_of(loaded)["design"]
    assert len(display_of(loaded).draw().axes) == 1


def test_candidates_are_chosen_among_by_it(table):
    X, y = table
    priors = [ExactPrior(kernel=RBF(s), noise_variance=0.1, mean=0.5) for s in (1.0, 9.0)]
    budget = {"bounds": (0, 1), "epsilon": 1.0, "release_epsilon": 1.0, "release_delta": 1e-3}
    assert select(priors, X, y, criterion="blocks", insecure_seed=0, **budget).candidates == 2


def test_the_command_line_offers_it_and_releases_by_it(table, tmp_path, monkeypatch):
    X, y = table
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"age": X[:, 0], "height": y}).to_csv("people.csv", index=False)
    words = "people.csv --inputs age --output height --bounds 0 1 --epsilon 1 --delta 0.001"
    run = CliRunner().invoke
    done = run(app, ["release", *words.split(), "--criterion", "blocks", "-o", "blocks.cloak"])
    assert done.exit_code == 0, done.output
    shown = run(app, ["show", "blocks.cloak", "--all"])
    assert "sums over 3 blocks" in " ".join(shown.output.split())
    assert run(app, ["plot", "blocks.cloak", "-o", "blocks.png"]).exit_code == 0
    wrong = run(app, ["release", *words.split(), "--criterion", "bricks", "-o", "bricks.cloak"])
    assert "functional, blocks for numbers, got 'bricks'" in wrong.output.replace("\n", " ")


def test_the_help_lists_it():
    """The help is written when the command line is imported."""
    module = importlib.import_module("cloakgp.cli.release")
    try:
        command = importlib.reload(module).release
        (option,) = inspect.get_annotations(command, eval_str=True)["criterion"].__metadata__
        assert "blocks (sums over blocks)" in option.help
    finally:
        importlib.reload(module)


def test_it_serves_no_use_that_it_does_not_name(table):
    X, y = table
    model = DPGPRegressor(bounds=(0, 1), inducing=4, **SETTINGS)
    with pytest.raises(ValueError, match="bayes, trace, logdet for many rows, got 'blocks'"):
        model.fit_rows(ArrayRows(X, y))


def test_whoever_does_not_know_it_refuses_its_files(table, tmp_path, monkeypatch):
    X, y = table
    DPGPRegressor(bounds=(0, 1), **SETTINGS).fit(X, y).release_.save(tmp_path / "blocks.cloak")
    monkeypatch.delitem(CRITERIA, "blocks")
    with pytest.raises(ReleaseFileError, match="certificate is damaged"):
        Release.load(tmp_path / "blocks.cloak")
