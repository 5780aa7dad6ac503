"""What was tried for small tables: closed forms against other means, and the trial's own parts."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, optimize

from cloakgp import DPGPRegressor
from cloakgp.privacy import OutputBounds
from experiments import progress
from experiments.small_tables import (
    COMPARISONS,
    EPSILONS,
    TWELVE,
    MedianRegressor,
    MediansRegressor,
    SmallTables,
    insecure_median,
    median_scores,
    questions_of_fit,
    staircase_saving,
)


def staircase_variance(place, *, epsilon):
    """Return ∫ x² of steps of e^−ε each, of which the first ends at a place in (0, 1)."""
    b = math.exp(-epsilon)
    height = (1 - b) / (2 * (place + b * (1 - place)))
    ends = np.arange(math.ceil(80 / epsilon))[:, None] + [0.0, place, 1.0]
    parts = np.array(
        [integrate.quad(np.square, *pair)[0] for row in ends for pair in pairwise(row)]
    )
    falls = b ** (np.arange(len(ends))[:, None] + [0.0, 1.0])
    return 2 * height * parts @ falls.ravel()


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0, 10.0])
def test_staircase_noise_saves_what_the_best_of_its_densities_does(epsilon):
    best = optimize.minimize_scalar(
        lambda place: staircase_variance(place, epsilon=epsilon),
        bounds=(1e-3, 1 - 1e-3),
        method="bounded",
    )
    saved = 1 - best.fun * epsilon**2 / 2
    assert staircase_saving(epsilon) == pytest.approx(saved, abs=1e-4)


def test_stages_leave_little_to_save():
    """What `docs/adaptive.md` says of 250 rows."""

    def saved(epsilon):
        asked = questions_of_fit(250, epsilon=epsilon)
        return {name: staircase_saving(part) for name, part in asked.items() if name != "counts"}

    assert max(saved(1.0).values()) < 0.01
    assert max(saved(3.0).values()) == saved(3.0)["last"] == pytest.approx(1 / 20, abs=0.01)
    assert max(saved(10.0).values()) == saved(10.0)["last"] == pytest.approx(0.45, abs=0.05)


def test_counts_have_the_best_staircase_already():
    """Of whole numbers that move by one: no place of the steps but the geometric law's."""
    epsilon = 1.0
    b, distances = math.exp(-epsilon), np.arange(200)
    geometric = (1 - b) / (1 + b) * b**distances
    assert geometric[0] + 2 * geometric[1:].sum() == pytest.approx(1.0)
    # All that ε allows, at every step: no law of ε can fall faster.
    np.testing.assert_allclose(geometric[1:] / geometric[:-1], b)


@pytest.mark.parametrize("rows", [60, 250])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_questions_spend_the_budget_of_a_fit(rows, epsilon):
    assert sum(questions_of_fit(rows, epsilon=epsilon).values()) == pytest.approx(epsilon, rel=1e-3)


def test_medians_keep_the_epsilon_of_permute_and_flip():
    """Scores of neighbours differ by two at most, whichever output changes to whatever."""
    rng = np.random.default_rng(0)
    outputs, places = rng.uniform(size=6), np.linspace(0.0, 1.0, 21)

    scores = partial(median_scores, places=places)
    moved = []
    for row in range(len(outputs)):
        for value in np.linspace(-0.5, 1.5, 41):
            other = outputs.copy()
            other[row] = value
            moved.append(np.abs(scores(other) - scores(outputs)).max())
    assert max(moved) == 2


def test_a_median_with_little_noise_is_the_median():
    outputs = np.random.default_rng(1).normal(30.0, 4.0, size=501)
    found = insecure_median(outputs, bounds=OutputBounds(0.0, 100.0), epsilon=50.0, insecure_seed=3)
    assert found == pytest.approx(np.median(outputs), abs=0.2)


@pytest.mark.parametrize("kind", [MedianRegressor, MediansRegressor])
def test_the_first_stage_is_medians_and_others_are_as_ever(kind):
    rng = np.random.default_rng(2)
    X = rng.uniform(0.0, 10.0, size=(80, 1))
    y = 5.0 + np.sin(X[:, 0])
    options = {"bounds": (0, 10), "epsilon": 10.0, "interval": False, "insecure_seed": 1}
    first, *later = kind(**options).fit(X, y).release_.measurements
    default = DPGPRegressor(**options).fit(X, y).release_.measurements
    assert first.answers.values.shape == (kind._cells, 1)
    averages = first.strategy.matrix / np.abs(first.strategy.matrix).sum(axis=1, keepdims=True)
    told = first.answers.values[:, 0] / np.abs(first.strategy.matrix).sum(axis=1) + 5.0
    np.testing.assert_allclose(told, averages @ y, atol=1.5)
    assert [one.question.name for one in later] == [one.question.name for one in default[1:]]


@pytest.mark.data
def test_its_small_version_lays_out_all_comparisons():
    experiment = SmallTables(**SmallTables.small, insecure_seed=0)
    saved, compared, counted = experiment.tables(experiment.compute(progress.quietly))
    assert saved.row_count == len(EPSILONS)
    assert compared.row_count == sum(
        2 + len(ways) for (group, *_), ways in COMPARISONS.items() if group == TWELVE
    )
    assert counted.row_count == 4
