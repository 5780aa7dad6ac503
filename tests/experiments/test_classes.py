"""Classifiers side by side: scores against hand counts."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import classification
from experiments.classification import Forecast, Mean, Outcome, Reliability, Task


@pytest.fixture
def task(rng):
    """Two groups in two inputs."""
    X, X_test = rng.normal(size=(40, 2)), rng.normal(size=(12, 2))
    return Task(X=X, y=X[:, 0] > 0, X_test=X_test, y_test=X_test[:, 0] > 0)


def fixed(probability):
    """A method that says one thing, and forgets it without noise."""

    def method(task, _number):
        integrated = np.tile([1 - probability, probability], (len(task.X_test), 1))
        return Forecast(integrated=integrated, plugged=1.0 - integrated)

    return method


def test_hits_count_the_true_class(task):
    found = classification.compare([task, task], {"yes": fixed(0.9), "no": fixed(0.2)})
    share = task.y_test.mean()
    np.testing.assert_allclose(found["yes"].hits, [share, share])
    np.testing.assert_allclose(found["no"].hits, [1 - share, 1 - share])


def test_truths_are_positions_among_the_classes():
    task = Task(
        X=np.zeros((1, 1)),
        y=np.array([3]),
        X_test=np.zeros((3, 1)),
        y_test=np.array([5, 3, 9]),
        classes=(3, 5, 9),
    )
    np.testing.assert_array_equal(task.truths, [1, 0, 2])


def test_every_method_sees_every_draw_with_its_number(task):
    seen = []

    def method(one, number):
        seen.append((one, number))
        return fixed(0.5)(one, number)

    ticks = []
    classification.compare([task, task], {"one": method}, tick=lambda: ticks.append(1))
    assert seen == [(task, 0), (task, 1)]
    assert len(ticks) == 2


def test_the_calibration_error_is_the_hand_count():
    stated = np.array([0.6, 0.62, 0.98, 0.96, 1.0])
    right = np.array([True, False, True, True, True])
    found = Reliability.of(stated, right, classes=2)
    # Two predictions in (0.6, 0.65] would part from 0.6 itself: bins close at the right.
    by_bin = [(0.6, 1.0, 1), (0.62, 0.0, 1), (np.mean([0.98, 0.96, 1.0]), 1.0, 3)]
    expected = sum(abs(said - seen) * count / 5 for said, seen, count in by_bin)
    assert found.error == pytest.approx(expected)
    assert found.shares.sum() == pytest.approx(1.0)


def test_calibrated_predictions_have_little_error(rng):
    stated = rng.uniform(0.5, 1.0, size=200_000)
    right = rng.uniform(size=stated.size) < stated
    assert Reliability.of(stated, right, classes=2).error < 0.006
    assert Reliability.of(stated, right ^ True, classes=2).error > 0.3


def test_reliability_tells_noise_integrated_from_left_out(task):
    outcome = classification.compare([task], {"one": fixed(0.9)})["one"]
    share = task.y_test.mean()
    assert outcome.reliability().error == pytest.approx(abs(0.9 - share))
    left_out = outcome.reliability(privacy_noise=False)
    assert left_out.error == pytest.approx(abs(0.9 - (1 - share)))


def test_a_standard_error_is_that_of_the_mean(rng):
    values = rng.normal(size=30)
    found = Mean.of(values)
    assert found.value == pytest.approx(values.mean())
    assert found.error == pytest.approx(np.std(values, ddof=1) / np.sqrt(30))
    assert Mean.of(np.ones(4)).error is None


def test_outcomes_stack_draws(task):
    found = classification.compare([task, task, task], {"one": fixed(0.7)})["one"]
    assert isinstance(found, Outcome)
    assert found.integrated.shape == (3, 12, 2)
    assert found.truths.shape == (3, 12)
