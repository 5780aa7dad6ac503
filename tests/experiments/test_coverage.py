"""Coverage of 95 % intervals."""

from __future__ import annotations

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.gaussian_process.kernels import RBF
from typer.testing import CliRunner

from cloakgp.models import ExactPrior
from cloakgp.privacy import OutputBounds
from experiments import __main__ as command_line
from experiments.coverage import (
    WORLDS,
    Coverage,
    coverage_report,
    covered,
    synthetic_coverage,
    table_coverage,
)
from experiments.datasets import DatasetUnavailableError
from experiments.priors import Scale, Table, tables

SCALE = Scale(rows=100, draws=16, insecure_seed=1)


@pytest.fixture(scope="module")
def women():
    try:
        return next(tables())
    except DatasetUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture
def waves_table():
    X = np.linspace(0.0, 10.0, 80)[:, None]
    return Table(name="waves", X=X, outputs=np.sin(X).ravel(), bounds=OutputBounds(-1.5, 1.5))


def test_a_value_is_covered_within_1_96_sds(make_release, rng):
    X = rng.normal(size=(20, 1))
    prior = ExactPrior(kernel=RBF(), noise_variance=0.5, mean=0.0)
    release = make_release(prior, X, np.zeros(20))
    point = np.array([[0.0]])
    mean, sd = release.predict(point, return_std=True)
    _, wider = release.predict(point, return_std=True, new_output=True)
    inside, between, outside = mean + 1.95 * sd, mean + 1.97 * sd, mean + 1.97 * wider
    assert covered(release, point, inside, new_output=False) == 1.0
    assert covered(release, point, between, new_output=False) == 0.0
    assert covered(release, point, between, new_output=True) == 1.0
    assert covered(release, point, outside, new_output=True) == 0.0


def test_intervals_hold_the_truth_as_often_as_they_say():
    """Under the declared prior and outputs that are hardly clipped this is exact."""
    latent, outputs = synthetic_coverage(WORLDS[0], scale=SCALE)
    for coverage in (latent, outputs):
        assert coverage.clipped < 1e-3
        assert coverage.standard_errors[0] < 0.05
        assert abs(coverage.mean[0] - 0.95) < 3.5 * coverage.standard_errors[0] + 1e-3
    # Learning from few answers may not cost much of it.
    assert latent.mean.min() > 0.8
    assert outputs.mean.min() > 0.88


def test_a_true_mean_elsewhere_is_held_by_learning_more_often():
    uncertain = WORLDS[2]
    assert uncertain.uncertain
    latent, _ = synthetic_coverage(uncertain, scale=SCALE)
    declared, maximum, average = latent.mean
    assert maximum > declared
    assert average >= maximum - 0.02


def test_workers_change_no_share(waves_table):
    scale = Scale(rows=30, draws=3, insecure_seed=1)
    uncertain = WORLDS[2]
    alone = synthetic_coverage(uncertain, scale=scale)
    by_name = table_coverage([waves_table], scale=scale)
    ticks = []
    with parallel_config(backend="threading", n_jobs=2):
        shared = synthetic_coverage(uncertain, scale=scale, tick=lambda: ticks.append(1))
        shared_by_name = table_coverage(
            iter([waves_table]), scale=scale, tick=lambda: ticks.append(1)
        )
    for one, other in zip(alone, shared, strict=True):
        assert np.array_equal(one.shares, other.shares)
        assert one.clipped == other.clipped
    assert np.array_equal(by_name["waves"].shares, shared_by_name["waves"].shares)
    assert len(ticks) == 3 + 1


def test_the_report_shows_shares_and_their_standard_errors():
    coverage = Coverage(shares=np.array([13 * [0.9, 1.0], 26 * [0.8], 26 * [1.0]]))
    report = coverage_report({"one": coverage}, title="toy")
    cells = [next(iter(column.cells)) for column in report.columns]
    assert cells == ["one", "95.0% (1.0%)", "80.0% (0.0%)", "100.0% (0.0%)", ""]


@pytest.mark.data
def test_intervals_of_heights_are_wide_enough(women):
    (coverage,) = table_coverage([women], scale=Scale(draws=3, insecure_seed=1)).values()
    assert coverage.shares.shape == (3, 3)
    assert coverage.mean.min() > 0.9


@pytest.mark.data
@pytest.mark.usefixtures("women")
def test_the_command_prints_its_tables():
    done = CliRunner().invoke(command_line.app, ["coverage", "--fast"])
    assert done.exit_code == 0, done.output
    assert "new outputs" in done.output
    assert "held-out" in done.output
