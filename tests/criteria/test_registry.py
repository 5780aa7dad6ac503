"""One registry says what each criterion needs, and how it is described; everything reads it."""

from __future__ import annotations

import ast
import inspect
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import cloakgp
from cloakgp import DPGPRegressor, Release
from cloakgp.cli.release import release as release_command
from cloakgp.criteria import CRITERIA, Problem, criteria_for, criterion_named
from cloakgp.design import Certificate
from cloakgp.models import ExactPrior
from cloakgp.report.measurements import describe_design

ROOT = Path(cloakgp.__file__).parent
# Where the two shapes of noise are computed.
NUMERICS = ("design", "criteria")


@pytest.mark.parametrize("name", CRITERIA)
def test_each_describes_itself_and_nothing_else_is_certified(name):
    said = describe_design(Certificate(criterion=name, gap=0.0123))
    assert "{" not in said
    assert said.startswith("the questions ")
    assert said.endswith(".")
    assert ("certified to be within 1.3 %" in said) == bool(CRITERIA[name].certified)


def test_no_two_read_alike():
    said = [describe_design(Certificate(criterion=name, gap=0.01)) for name in CRITERIA]
    assert len(set(said)) == len(CRITERIA)


def test_what_is_certified_is_what_was_designed():
    """What was given, or is the whole curve, is compared with no other questions."""
    assert {name for name, each in CRITERIA.items() if each.certified} == {
        "bayes",
        "trace",
        "logdet",
    }


@pytest.mark.parametrize("each", criteria_for("numbers"), ids=lambda each: each.name)
def test_raw_predictions_follow_where_a_criterion_says_so(each):
    X = np.linspace(0, 4, 9)[:, None]
    prior = ExactPrior(kernel=RBF(), noise_variance=0.1, mean=0.0)
    found = each.choose(
        Problem(prior=prior, X=X, X_query=X[:3], weights=None, noise_sd=1.0, gap=1e-2)
    )
    assert found.certificate.criterion == each.name
    assert (found.reconstruction is not None) == each.raw
    if each.raw:
        np.testing.assert_allclose(
            found.reconstruction @ found.strategy, prior.cloaking_matrix(X[:3], X), atol=1e-6
        )


@pytest.mark.parametrize("use", ["numbers", "classes", "many rows", "held-out rows"])
def test_unknown_names_are_refused_with_what_there_is(use):
    names = ", ".join(each.name for each in criteria_for(use))
    for wrong in ("volume", "given", None, ["bayes"]):
        with pytest.raises(ValueError, match=f"must be one of {names} for {use}, got"):
            criterion_named(wrong, use=use)


def test_the_command_line_lists_what_there_is():
    said = inspect.get_annotations(release_command, eval_str=True)["criterion"]
    (option,) = said.__metadata__
    for each in (*criteria_for("numbers"), *criteria_for("classes")):
        assert each.name in option.help
        assert each.option in option.help
    assert "newton (with --classes: the papers' iteration)" in option.help


def test_files_with_unknown_criteria_are_damaged(tmp_path):
    X = np.linspace(0, 4, 9)[:, None]
    made = (
        DPGPRegressor(bounds=(0, 1), epsilon=1.0, delta=1e-3, stages=None)
        .fit(X, X[:, 0] / 4)
        .release_
    )
    (one,) = made.measurements
    strategy = replace(one.strategy, certificate=Certificate(criterion="best", gap=0.0))
    forged = replace(one, strategy=strategy)
    replace(made, measurements=(forged,)).save(tmp_path / "best.cloak")
    with pytest.raises(cloakgp.ReleaseFileError, match="certificate is damaged"):
        Release.load(tmp_path / "best.cloak")


def test_nothing_else_decides_by_a_criterions_name():
    """No comparison with a name, but where noise of two shapes is computed."""
    names = set(CRITERIA) - {"newton"}
    compared = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted(ROOT.rglob("*.py"))
        if path.relative_to(ROOT).parts[0] not in NUMERICS
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare)
        and any(isinstance(part, ast.Constant) and part.value in names for part in ast.walk(node))
    ]
    assert compared == []
