"""Classifiers to compare: papers' steps against the package, others against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF

from cloakgp.estimators.classification import DPGPClassifier
from cloakgp.fitting.strategies import Budget
from cloakgp.privacy.accounting import exact_noise_multiplier, papers_noise_multiplier
from experiments import classification
from experiments.classification import BUDGET, Task


@pytest.fixture
def task(rng):
    """Two groups in two inputs, and a third that never varies."""
    X = np.column_stack([rng.normal(size=(40, 2)), np.ones(40)])
    X_test = np.column_stack([rng.normal(size=(12, 2)), np.ones(12)])
    return Task(X=X, y=X[:, 0] > 0, X_test=X_test, y_test=X_test[:, 0] > 0)


def test_one_exact_step_is_the_packages_own(task):
    """The rebuilt iteration differs from DPGPClassifier's in calibration and budgets alone."""
    model = DPGPClassifier(
        RBF(1.0),
        classes=[False, True],
        epsilon=1.0,
        delta=0.01,
        criterion="newton",
        link="logit",
        learn=None,
        insecure_seed=3,
    ).fit(task.X, task.y)
    method = classification.papers_method(RBF(1.0), calibration="exact")
    np.testing.assert_allclose(
        method(task, 3).integrated, model.predict_proba(task.X_test), atol=1e-8
    )


def test_the_papers_noise_is_the_papers_constant(task):
    def noise_sd(calibration):
        release = classification.papers_release(
            task.X, task.y, kernel=RBF(1.0), budgets=(BUDGET,), calibration=calibration
        )
        return release.measurements[0].answers.noise_sd

    expected = papers_noise_multiplier(1.0, 0.01) / exact_noise_multiplier(1.0, 0.01)
    assert noise_sd("papers") / noise_sd("exact") == pytest.approx(expected, rel=1e-3)


def test_two_steps_share_epsilon_and_delta(task):
    halves = (Budget(epsilon=0.5, delta=0.005),) * 2
    release = classification.papers_release(
        task.X, task.y, kernel=RBF(1.0), budgets=halves, insecure_seed=4
    )
    expected = classification.forecast(release, task.X_test)
    found = classification.papers_method(RBF(1.0), steps=2)(task, 4)
    np.testing.assert_allclose(found.integrated, expected.integrated)
    one, other = (part.answers.noise_sd for part in release.measurements)
    sigma = papers_noise_multiplier(0.5, 0.005)
    assert one == pytest.approx(2.0 * sigma, rel=1e-3)
    assert other == pytest.approx(2.0 * sigma, rel=1e-3)


def test_steps_have_noise_of_their_own(task):
    release = classification.papers_release(
        task.X, task.y, kernel=RBF(1e6), budgets=(BUDGET,) * 2, insecure_seed=4
    )
    # So smooth a kernel asks both times for the sum of all labels.
    one, other = (part.answers.values.ravel() for part in release.measurements)
    assert abs(one[0]) != pytest.approx(abs(other[0]))


def test_without_privacy_is_scikit_learns(task):
    model = GaussianProcessClassifier(RBF(1.0), optimizer=None).fit(task.X, task.y)
    found = classification.without_privacy(RBF(1.0))(task, 0)
    np.testing.assert_array_equal(found.integrated, model.predict_proba(task.X_test))


def test_ours_is_the_classifier_with_the_budget_and_the_seed(task):
    budget = Budget(epsilon=0.5, delta=1e-3)
    found = classification.ours(RBF(1.0), places="test", budget=budget, learn=None)(task, 5)
    model = DPGPClassifier(
        RBF(1.0), classes=(False, True), epsilon=0.5, delta=1e-3, learn=None, insecure_seed=5
    ).fit(task.X, task.y, X_query=task.X_test)
    np.testing.assert_allclose(found.integrated, model.predict_proba(task.X_test))
    plugged = model.predict_proba(task.X_test, privacy_noise=False)
    np.testing.assert_allclose(found.plugged, plugged)


def test_steps_of_different_draws_share_no_noise(task, monkeypatch):
    """DPGPClassifier seeds step n of a draw n above its first."""
    seeds = []

    def recorded(*args, **parameters):
        seeds.append(parameters["insecure_seed"])
        return DPGPClassifier(*args, **parameters)

    monkeypatch.setattr(classification, "DPGPClassifier", recorded)
    laplace = {"criterion": "newton", "link": "logit", "learn": None}
    for steps in (1, 2):
        method = classification.ours(RBF(1.0), steps=steps, **laplace)
        for number in range(3):
            method(task, number)
    assert seeds == [0, 1, 2, 0, 2, 4]


def test_inputs_that_never_vary_are_left_out(task):
    found = classification.varying(classification.ours(learn=None))(task, 0)
    narrowed = Task(X=task.X[:, :2], y=task.y, X_test=task.X_test[:, :2], y_test=task.y_test)
    np.testing.assert_allclose(
        found.integrated, classification.ours(learn=None)(narrowed, 0).integrated
    )
