"""Learning from answers compared with private choices of the same total."""

from __future__ import annotations

import io

import numpy as np
import pytest
from joblib import parallel_config
from rich.console import Console
from rich.measure import Measurement
from typer.testing import CliRunner

from cloakgp import DPGPRegressor
from cloakgp.models import default_kernel, matern_kernel
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.composition import compose_with_selection, worst_release
from experiments import __main__ as command_line
from experiments import learning_or_selection as study
from experiments.cloaking import Budget
from experiments.cross_validation import root_mean_square
from experiments.datasets import DatasetUnavailableError
from experiments.framework import WIDTH
from experiments.learning_or_selection import Divided
from experiments.priors import (
    MATERN_SHAPE,
    PriorShape,
    Scale,
    Table,
    tables,
)

# Budgets here are as large, or tables as small, as each test needs.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

SEED = 5
DELTA = 0.01


@pytest.fixture
def wave(rng):
    X = rng.uniform(0.0, 10.0, size=(90, 1))
    return Table("wave", X=X, outputs=1.5 * np.sin(X).ravel(), bounds=OutputBounds(-2.0, 2.0))


@pytest.fixture
def few_candidates(monkeypatch):
    """Choose among three, wherever nothing else is said."""
    defaults = study.chosen_release.__kwdefaults__
    monkeypatch.setitem(defaults, "candidates", study.CANDIDATES[:3])


@pytest.mark.parametrize(("epsilon", "share"), [(0.1, 0.6), (1.0, 0.3), (10.0, 0.1)])
def test_choice_and_release_cost_the_total_and_hardly_less(epsilon, share):
    divided = Divided.of(epsilon, delta=DELTA, choice=share * epsilon, rows=250)
    both = compose_with_selection(
        worst_release(divided.release, DELTA, rows=250, answers=500),
        divided.choice,
        mechanism=study.MECHANISM,
    )
    assert 0.995 * epsilon < both.epsilon <= epsilon
    # The package's composition leaves the release more than what the choice did not take.
    assert divided.release > (1 - share) * epsilon


def test_what_is_released_after_a_choice_states_the_total(wave):
    split = wave.split(0, rows=60)
    divided = Divided.of(1.0, delta=DELTA, choice=0.3, rows=60)
    release = study.chosen_release(
        split,
        divided=divided,
        delta=DELTA,
        candidates=study.CANDIDATES[:2],
        insecure_seed=SEED,
    )
    assert 0.99 < release.guarantee.epsilon <= 1.0
    assert release.guarantee.delta == DELTA


@pytest.mark.usefixtures("few_candidates")
def test_ways_are_the_estimator_s_on_the_same_split(wave):
    split = wave.split(0, rows=60)
    divided = Divided(choice=0.3, release=0.8)
    budget = Budget(bounds=wave.bounds, epsilon=1.0, delta=DELTA)
    errors = study.errors_of(split, budget=budget, divisions=[divided], insecure_seed=SEED)
    assert len(errors) == len(study.ways((0.3,)))
    for error, learn in zip(errors[:3], (None, "map", "average"), strict=True):
        model = DPGPRegressor(
            default_kernel(split.X, width=4.0),
            bounds=(-2.0, 2.0),
            epsilon=1.0,
            delta=DELTA,
            learn=learn,
            stages=None,
            interval=False,
            noise="gaussian",
            insecure_seed=SEED,
        ).fit(split.X, split.outputs)
        expected = root_mean_square(model.predict(split.X_test) - split.outputs_test)
        assert error == pytest.approx(expected, rel=1e-6)


def test_one_candidate_is_a_release_with_what_the_choice_leaves(wave):
    split = wave.split(0, rows=60)
    release = study.chosen_release(
        split,
        divided=Divided(choice=0.3, release=0.8),
        delta=DELTA,
        candidates=(MATERN_SHAPE,),
        insecure_seed=SEED,
    )
    model = DPGPRegressor(
        matern_kernel(split.X, width=4.0),
        bounds=(-2.0, 2.0),
        epsilon=0.8,
        delta=DELTA,
        learn=None,
        stages=None,
        interval=False,
        noise="gaussian",
        insecure_seed=SEED,
    ).fit(split.X, split.outputs)
    np.testing.assert_allclose(release.predict(split.X_test), model.predict(split.X_test))


def test_a_vast_budget_chooses_what_fits(wave):
    split = wave.split(0, rows=60)
    candidates = (PriorShape("rbf", 5.0), PriorShape("rbf", 0.15, noise=0.02))
    release = study.chosen_release(
        split,
        divided=Divided(choice=500.0, release=50.0),
        delta=DELTA,
        candidates=candidates,
        insecure_seed=SEED,
    )
    assert release.prior.noise_variance == split.prior(candidates[1]).noise_variance


def test_comparisons_are_paired_and_in_shares_of_learning_s_error():
    # Ways: declared, map, average, and two shares, each followed by learning.
    two = np.array([[2.0, 4.0], [1.0, 3.0], [1.0, 3.0], [9.0, 9.0], [3.0, 5.0], [3.0, 5.0], [8, 8]])
    one = np.tile(two, 13)
    found = study.against_map({"one": one, "ten": 10 * one})
    assert found["declared defaults"] == (pytest.approx(0.5), pytest.approx(0.0))
    assert found["learn=average"] == (0.0, 0.0)
    assert found["choice, best share in hindsight"][0] == pytest.approx(1.0)
    assert found["the same, then map"][0] == pytest.approx(1.0)
    np.testing.assert_array_equal(study.best_choice(one), one[5])
    np.testing.assert_array_equal(study.best_choice(one, then_map=True), one[4])


def test_candidates_lie_around_the_default():
    assert 12 <= len(study.CANDIDATES) <= 20
    for setting in ("lengthscale", "noise"):
        values = [getattr(shape, setting) for shape in study.CANDIDATES]
        assert min(values) < getattr(MATERN_SHAPE, setting) < max(values)
    assert len(set(map(str, study.CANDIDATES))) == len(study.CANDIDATES)


@pytest.mark.slow
@pytest.mark.usefixtures("few_candidates")
def test_tables_are_compared_apart_and_workers_change_no_figure(wave):
    other = Table("other", X=wave.X[:60], outputs=wave.outputs[30:], bounds=wave.bounds)
    settings = {"epsilons": (1.0,), "shares": (0.3,), "scale": Scale(30, draws=2, insecure_seed=1)}
    alone = {
        table.name: study.compare([table], **settings)[1.0][table.name] for table in (wave, other)
    }
    ticks = []
    with parallel_config(backend="threading", n_jobs=2):
        (shared,) = study.compare([wave, other], tick=lambda: ticks.append(1), **settings).values()
    assert list(shared) == ["wave", "other"]
    assert all(np.array_equal(shared[name], alone[name]) for name in alone)
    assert len(ticks) == 2


@pytest.mark.usefixtures("few_candidates")
def test_reports_fit_the_console_and_pair_their_differences(wave):
    scale = Scale(rows=40, draws=2, insecure_seed=1)
    found = study.compare([wave], epsilons=(1.0,), shares=(0.3,), scale=scale)
    assert found[1.0]["wave"].shape == (5, 2)
    report = study.learning_or_selection_report(
        {epsilon: {"wave": 100 * found[1.0]["wave"]} for epsilon in study.EPSILONS},
        name="wave",
        shares=(0.3,),
        title="toy",
    )
    errors = 100 * found[1.0]["wave"]
    labels, cells = (list(report.columns[number].cells) for number in (0, 1))
    less = (errors[3] - errors[1]).mean()
    assert float(cells[labels.index("best share less map")].split()[0]) == pytest.approx(
        less, abs=6e-3
    )
    wide = Console(file=io.StringIO(), width=1000)
    overall = study.against_map_report(found, title="toy")
    for table in (report, overall):
        assert Measurement.get(wide, wide.options, table).maximum <= WIDTH


@pytest.mark.data
def test_the_tables_compared_exist():
    try:
        names = {table.name for table in tables()}
    except DatasetUnavailableError as error:
        pytest.skip(str(error))
    assert set(study.COMPARED) <= names


@pytest.mark.slow
@pytest.mark.data
def test_the_command_prints_its_tables(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    done = CliRunner().invoke(command_line.app, ["learning-or-selection", "--fast"])
    if isinstance(done.exception, DatasetUnavailableError):
        pytest.skip(str(done.exception))
    assert done.exit_code == 0, done.output
    assert "!Kung, age and weight: RMSE (cm)" in done.output
    assert "choice, best share in hindsight" in done.output
    assert "…" not in done.output
