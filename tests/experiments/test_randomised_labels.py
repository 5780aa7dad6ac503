"""Randomised response beside the classifier: the lies, the likelihood, and the small comparison."""

import contextlib

import numpy as np
import pytest
from scipy import optimize, special
from sklearn.linear_model import LogisticRegression

from experiments.randomised_labels import (
    WAYS,
    RandomisedLabels,
    fit_likelihood,
    fit_told,
    tell,
    truth_probability,
)


@contextlib.contextmanager
def progress(what, *, steps):
    del what, steps
    yield lambda: None


@pytest.mark.parametrize("classes", [2, 4])
def test_labels_are_told_as_often_as_the_guarantee_allows(classes):
    """No answer is more than e^ε times as probable under one label as under another."""
    labels = np.zeros(40_000, dtype=int)
    told = tell(labels, epsilon=1.2, classes=classes, rng=np.random.default_rng(0))
    shares = np.bincount(told, minlength=classes) / len(told)
    kept = truth_probability(1.2, classes=classes)
    lied = (1 - kept) / (classes - 1)
    assert kept / lied == pytest.approx(np.exp(1.2))
    np.testing.assert_allclose(shares, [kept] + [lied] * (classes - 1), atol=0.01)


def test_without_lies_it_is_logistic_regression():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] + rng.logistic(size=200) > 0).astype(int)
    ours = fit_told(X, y, epsilon=40.0, classes=2, penalty=2.0)(X)[:, 1]
    # Two classes have two sets of coefficients here, each penalised: half the penalty on both.
    theirs = LogisticRegression(C=1.0).fit(X, y).predict_proba(X)[:, 1]
    np.testing.assert_allclose(ours, theirs, atol=2e-3)


def test_where_odds_differ_from_row_to_row_it_finds_the_model_that_made_the_labels():
    rng = np.random.default_rng(3)
    rows = 40_000
    X = rng.normal(size=(rows, 1))
    logits = 1.0 - 1.5 * X[:, 0]
    y = (rng.logistic(size=rows) < logits).astype(int)
    # Half of the rows tell the truth, a quarter lie every third time, and a quarter say nothing.
    lies = np.repeat([0.0, 1 / 3, 0.5], [rows // 2, rows // 4, rows // 4])
    told = np.where(rng.uniform(size=rows) < lies, 1 - y, y)
    likelihood = np.where(told[:, None] == [0, 1], 1.0 - lies[:, None], lies[:, None])
    predict = fit_likelihood(X, likelihood, penalty=1e-6)
    at = np.linspace(-2, 2, 9)
    np.testing.assert_allclose(
        predict(at[:, None])[:, 1], special.expit(1.0 - 1.5 * at), atol=0.015
    )


def test_slopes_are_those_of_the_likelihood(monkeypatch):
    rng = np.random.default_rng(2)
    X, told = rng.normal(size=(12, 2)), rng.integers(0, 3, size=12)
    captured = {}

    def checked(loss, start, **_):
        point = rng.normal(size=start.shape)
        captured["error"] = optimize.check_grad(
            lambda at: loss(at)[0], lambda at: loss(at)[1], point
        )
        return optimize.OptimizeResult(x=start)

    monkeypatch.setattr("experiments.randomised_labels.optimize.minimize", checked)
    fit_told(X, told, epsilon=0.7, classes=3, penalty=0.5)
    assert captured["error"] < 1e-5


def test_the_small_version_lays_out_every_way():
    experiment = RandomisedLabels(**RandomisedLabels.small)
    found = experiment.compute(progress)
    assert {way for *_, way in found.accuracy} == set(WAYS)
    [table] = experiment.tables(found)
    assert table.row_count == 1
