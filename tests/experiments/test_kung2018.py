"""The 2018 paper's choice of a lengthscale and a noise."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cloakgp import DPGPRegressor
from experiments import kung, kung2018
from experiments.cloaking import PAPERS_NOISE, Cloaked, mean_without_privacy, noise_sd
from experiments.cross_validation import root_mean_square
from experiments.datasets import DatasetUnavailableError, load_kung
from experiments.kung2018 import BOUNDS, CANDIDATES, Women
from experiments.learning_or_selection import Divided

# Budgets here are as large, or tables as small, as each test needs.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

SEED = 3


@pytest.fixture
def women(rng):
    age = rng.uniform(0.0, 80.0, size=60)
    return pd.DataFrame({"age": age, "height": 150.0 - 80.0 * np.exp(-age / 6.0)})


def test_the_grid_has_the_paper_s_ends():
    assert kung2018.LENGTHSCALES[0] == 3.0
    assert kung2018.LENGTHSCALES[-1] == 81.0
    assert kung2018.NOISE_SDS[0] == pytest.approx(1.1)
    assert kung2018.NOISE_SDS[-1] == pytest.approx(12.7)
    assert len(CANDIDATES) == 16


def test_splits_are_apart_and_the_same_each_time(women):
    one, again, other = (Women.split(women, number=number) for number in (0, 0, 1))
    assert len(one.validation) == 6
    assert sorted([*one.fitted, *one.validation]) == list(range(60))
    assert np.array_equal(one.validation, again.validation)
    assert not np.array_equal(one.validation, other.validation)
    assert one.heights.max() <= BOUNDS.hi


def test_the_papers_error_is_that_of_its_raw_releases(women):
    """One candidate: bias from the cloaking matrix, noise from a release with papers' noise."""
    split = Women.split(women, number=0)
    found = kung2018.papers_rmse(split, candidates=CANDIDATES[10:11], runs=2)
    X, X_query = split.X[split.fitted], split.X[split.validation]
    release = Cloaked.designed(
        X, X_query, prior=CANDIDATES[10], noise=PAPERS_NOISE, gap=kung2018.GAP
    ).released(split.heights[split.fitted], budget=kung.BUDGET, insecure_seed=SEED)
    unnoised = mean_without_privacy(
        X, split.heights[split.fitted], X_query=X_query, prior=CANDIDATES[10], bounds=BOUNDS
    )
    errors = unnoised - split.heights[split.validation]
    expected = np.sqrt(np.mean(np.square(errors) + np.square(noise_sd(release))))
    assert found == pytest.approx(3 * [float(expected)], rel=1e-3)


def test_a_vast_budget_chooses_the_best_and_adds_no_noise(women):
    candidates = CANDIDATES[3::4]
    split = Women.split(women, number=0)
    least, sound, alike = kung2018.our_rmse(
        split, divided=Divided(choice=1e6, release=1e4), candidates=candidates
    )
    assert sound == pytest.approx(least)
    assert alike > least
    y = split.heights[split.fitted]
    unnoised = [
        root_mean_square(
            mean_without_privacy(
                split.X[split.fitted],
                y,
                X_query=split.X[split.validation],
                prior=prior,
                bounds=BOUNDS,
            )
            - split.heights[split.validation]
        )
        for prior in candidates
    ]
    assert min(abs(one - least) for one in unnoised) < 0.02 * least


def test_a_choice_without_budget_takes_any_candidate(women):
    split = Women.split(women, number=0)
    _, sound, alike = kung2018.our_rmse(
        split, divided=Divided(choice=1e-6, release=1.0), candidates=CANDIDATES[3::4]
    )
    assert sound == pytest.approx(alike, rel=1e-4)


def test_defaults_are_the_estimator_s(women):
    """As many as the papers' women: of fewer, the estimator weighs smaller scales, too."""
    split = Women.split(pd.concat([women] * 5, ignore_index=True), number=0)
    declared, learned, _ = kung2018.default_rmse(split, insecure_seed=SEED)
    X_query = split.X[split.validation]
    for error, learn in ((declared, None), (learned, "map")):
        model = DPGPRegressor(
            bounds=(BOUNDS.lo, BOUNDS.hi),
            epsilon=kung2018.TOTAL_EPSILON,
            delta=0.01,
            learn=learn,
            stages=None,
            interval=False,
            noise="gaussian",
            insecure_seed=SEED,
        ).fit(split.X[split.fitted], split.heights[split.fitted], X_query=X_query)
        expected = root_mean_square(model.predict(X_query) - split.heights[split.validation])
        assert error == pytest.approx(expected, rel=1e-5)


def test_the_report_has_what_was_published_first():
    errors = np.tile(13 * [8.0, 9.0], (len(kung2018.WAYS), 1))
    report = kung2018.selection2018_report(errors, title="toy")
    figures = list(report.columns[1].cells)
    assert figures[:2] == ["14.3", "17.4"]
    assert figures[2:] == len(kung2018.WAYS) * ["8.50 (0.10)"]


@pytest.mark.slow
@pytest.mark.data
def test_the_paper_s_figures_and_ours():
    try:
        women = load_kung(male=False)
    except DatasetUnavailableError as error:
        pytest.skip(str(error))
    errors = kung2018.compare_choices(women, splits=4, runs=20)
    least, chosen, _, _, sound, _, declared, learned, _ = errors.mean(axis=1)
    assert least == pytest.approx(14.3, abs=3.0)
    assert chosen > least + 1
    assert max(sound, declared, learned) < least
