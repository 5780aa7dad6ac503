"""Audits: bounds that are known, scores from a release, and the small command."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from cloakgp import DPGPClassifier, DPGPRegressor
from experiments import __main__ as command_line
from experiments.audit import (
    BOUNDS,
    DECLARED,
    GAUSSIAN,
    LAPLACE,
    faulty_mechanisms,
    is_refuted,
    measure,
    measure_coins,
    mechanisms,
    quiet_about_delta,
)
from experiments.auditing import (
    ThresholdTest,
    expected_answers,
    guess_coins,
    log_ratio,
    many_runs,
    most_asked,
    one_run,
)


@pytest.fixture(autouse=True)
def _same_draws(noise_that_repeats, monkeypatch):
    """Audits refute what is sound, and miss a fault, now and then: here the same in every run."""
    del noise_that_repeats
    drawn = np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda seed=0: drawn(seed))


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
def test_mu_is_found_from_below(mu):
    rng = np.random.default_rng(0)
    scores = rng.normal(mu / 2, size=40_000), rng.normal(-mu / 2, size=40_000)
    found = many_runs(*scores, value=lambda test: test.mu(confidence=0.99))
    assert mu - 0.1 < found < mu


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_epsilon_is_found_from_below_whichever_data_set_is_told(epsilon):
    rng = np.random.default_rng(0)
    scores = [
        -np.abs(noise - 1.0) * epsilon + np.abs(noise) * epsilon
        for noise in (mean + rng.laplace(scale=1 / epsilon, size=40_000) for mean in (1, 0))
    ]
    for one, other in (scores, [-each for each in scores[::-1]]):
        found = many_runs(one, other, value=lambda test: test.epsilon(delta=0.0, confidence=0.99))
        assert 0.8 * epsilon < found < epsilon


@pytest.mark.parametrize(
    ("power", "level"), [((0, 5), (5, 5)), ((5, 5), (0, 5)), ((7, 20), (3, 9))]
)
def test_limits_are_those_of_binomial_tests(power, level):
    """Oracle: scipy's inverted tests; both hold together, each with half of what is left."""
    above = stats.binomtest(*power, alternative="greater")
    below = stats.binomtest(*level, alternative="less")
    expected = above.proportion_ci(0.95).low, below.proportion_ci(0.95).high
    assert ThresholdTest(power=power, level=level).limits(0.9) == pytest.approx(expected, abs=1e-9)


def test_a_bound_is_above_the_truth_as_seldom_as_it_says():
    """Scores that are the same of both: any bound above zero is wrong."""
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(80):
        scores = rng.normal(size=(2, 200))
        wrong += many_runs(*scores, value=lambda test: test.mu(confidence=0.9)) > 0
    assert stats.binomtest(wrong, 80, 0.1, alternative="greater").pvalue > 1e-4


def test_without_delta_guesses_are_those_of_a_binomial():
    """Oracle: Clopper and Pearson's limit of the share, as log odds."""
    least = stats.binomtest(80, 100, alternative="greater").proportion_ci(0.95).low
    found = one_run(80, 100, 300, delta=0.0, confidence=0.95)
    assert found == pytest.approx(math.log(least / (1 - least)), abs=1e-6)
    assert one_run(80, 100, 300, delta=1e-4, confidence=0.95) < found
    assert one_run(50, 100, 100, delta=0.0, confidence=0.95) == 0.0


def test_randomised_response_is_not_refuted():
    """The mechanism for which the theorem is exact: wrong no more often than it says."""
    rng, rows, epsilon = np.random.default_rng(0), 200, 1.0
    truthful = rng.random((400, rows)) < 1 / (1 + math.exp(-epsilon))
    found = [one_run(int(one.sum()), rows, rows, delta=0.0, confidence=0.95) for one in truthful]
    assert stats.binomtest(int(np.sum(np.array(found) > epsilon)), 400, 0.05).pvalue > 1e-4
    assert np.median(found) > 0.6 * epsilon


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN])
def test_the_score_is_the_ratio_of_densities(law):
    """Oracle: scipy's densities at the answers, question by question."""
    rng = np.random.default_rng(0)
    X, one = rng.uniform(0, 5, (8, 1)), rng.uniform(*BOUNDS, 8)
    other = one.copy()
    other[3] = BOUNDS[1]
    release = DPGPRegressor(
        bounds=BOUNDS, **{**DECLARED, "stages": [(0.4, None), (0.6, 1.0)]}, **law
    )
    release = release.fit(X, one).release_
    expected = 0.0
    for each in release.measurements:
        sd = each.answers.noise_sd
        density = (
            stats.norm(scale=sd) if law is GAUSSIAN else stats.laplace(scale=sd / math.sqrt(2))
        )
        for y, sign in ((one, 1), (other, -1)):
            asked = each.strategy.matrix @ each.question.encode(y)
            expected += sign * density.logpdf(each.answers.values - asked).sum()
    assert log_ratio(release, X, one, other) == pytest.approx(expected)
    assert log_ratio(release, X, one, one) == 0.0


def test_labels_are_asked_as_they_were_encoded():
    X, labels = np.arange(6.0)[:, None], list("abcabc")
    model = DPGPClassifier(classes=["a", "b", "c"], epsilon=20.0, delta=0.1, noise="gaussian")
    with quiet_about_delta():
        measurement = model.fit(X, labels).release_.measurements[0]
    noise = measurement.answers.values - expected_answers(measurement, labels)
    assert np.abs(noise).max() < 6 * measurement.answers.noise_sd


def test_the_row_that_is_asked_about_most_moves_answers_most():
    X = np.array([[0.0], [0.1], [5.0]])
    with quiet_about_delta():
        release = DPGPRegressor(bounds=BOUNDS, **DECLARED, **GAUSSIAN).fit(X, [0, 0, 0]).release_
    (measurement,) = release.measurements
    moved = np.square(measurement.strategy.matrix).sum(axis=0)
    assert moved[most_asked(release, X)] == pytest.approx(moved.max())


def test_the_surest_coins_are_guessed_by_their_signs():
    rows, high = guess_coins(np.array([0.1, -3.0, 2.0]), guesses=2)
    assert rows.tolist() == [1, 2]
    assert high.tolist() == [False, True]


def test_the_one_run_stays_within_its_claim_and_attains_much_of_it():
    found = measure_coins({**LAPLACE, "epsilon": 3.0}, rows=2_000, confidence=0.999)
    assert 1.5 < found["epsilon found"] < 3.0
    assert found["correct"] <= found["guesses"] == 1_000


# How many find it under these draws; others take 400.
RUNS_OF_FAULTS = {"half the noise, Gaussian": 600}
# With 99 % one run in some two hundred did not find it: the bound is 2.6 of its deviations above.
LESS_SURE = {"a second table that is not paid": 0.9}


# The first takes a fit of two tables for each run; one kind of noise does for the second.
LONG = {"a second table that is not paid", "half the noise, Laplace", "people, Gaussian"}


def with_long_ones_slow(names):
    return [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in names]


@pytest.mark.usefixtures("designs_once")
@pytest.mark.parametrize("name", with_long_ones_slow(faulty_mechanisms()))
def test_faults_are_found(name):
    runs, confidence = RUNS_OF_FAULTS.get(name, 400), LESS_SURE.get(name, 0.99)
    assert is_refuted(measure(faulty_mechanisms()[name], runs=runs, confidence=confidence))


@pytest.mark.slow
@pytest.mark.usefixtures("designs_once")
@pytest.mark.parametrize("name", mechanisms())
def test_no_claim_is_refuted(name):
    assert not is_refuted(measure(mechanisms()[name], runs=200, confidence=0.9999))


@pytest.mark.usefixtures("designs_once")
@pytest.mark.parametrize(
    "name", with_long_ones_slow(["one question, Laplace", "people, Gaussian", "histogram"])
)
def test_sound_ones_are_not_found(name):
    assert not is_refuted(measure(mechanisms()[name], runs=400, confidence=0.9999))


@pytest.mark.slow
def test_the_small_command_prints_claims_and_what_is_lost(tmp_path):
    result = CliRunner().invoke(
        command_line.app, ["audit", "--fast", "--output-dir", str(tmp_path)]
    )
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.output.splitlines() if line.strip()]
    told = {" ".join(words[:3]): words[-1] for words in lines if len(words) > 3}
    assert told["one question, Laplace"] == "yes"
    assert told["half the noise,"] == "found"
    assert "Coins of 200 rows" in result.output
    assert (tmp_path / "audit.md").exists()
