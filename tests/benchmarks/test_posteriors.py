"""Posteriors beside other libraries': scikit-learn's here, GPy's and GPflow's where installed."""

import csv

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor

from benchmarks import peers, posteriors, processes
from benchmarks.processes import Limits, Outcome

LIMITS = Limits(seconds=300)
PROBLEMS = {problem.name: problem for problem in posteriors.all_problems()}
EXACT = [name for name, problem in PROBLEMS.items() if problem.model == "exact"]
# Jitters differ where there are inducing inputs, and GPy's on rows is 1e-8.
ALLOWED = 1e-5


def test_every_kernel_goes_with_every_model():
    assert len(PROBLEMS) == 3 * len(posteriors.KERNELS)


@pytest.mark.parametrize("name", EXACT)
def test_exact_posteriors_are_scikit_learns(name):
    problem = PROBLEMS[name]
    model = GaussianProcessRegressor(
        problem.prior.kernel, alpha=posteriors.NOISE_VARIANCE, optimizer=None
    )
    expected = model.fit(problem.X, problem.y).predict(problem.X_query, return_std=True)
    np.testing.assert_allclose(problem.our_posterior(), expected, atol=1e-9)


@pytest.fixture
def answering(monkeypatch):
    def answer(outcome):
        monkeypatch.setattr(processes, "run", lambda *_, **__: outcome)

    return answer


@pytest.mark.parametrize(("shift", "stretch"), [(0.0, 1.0), (0.01, 1.0), (0.0, 1.02)])
def test_what_differs_is_told(answering, shift, stretch):
    problem = PROBLEMS["RBF, fitc"]
    mean, sd = problem.our_posterior()
    arrays = {"mean": mean + shift * problem.y.std(), "variance": (stretch * sd) ** 2}
    answering(Outcome("ok", arrays=arrays, report={"version": "9"}))
    row = posteriors.compare(problem, "GPy", limits=LIMITS)
    assert row["mean differs"] == pytest.approx(shift, abs=1e-12)
    assert row["sd differs"] == pytest.approx(stretch - 1, abs=1e-12)
    assert (row["library"], row["inducing"]) == ("GPy 9", posteriors.INDUCING)


def test_a_page_has_the_largest_difference_of_each_library_and_model():
    rows = [
        {
            "problem": f"{kernel}, {model}",
            "library": "GPy 9",
            "mean differs": mean,
            "sd differs": sd,
        }
        | {"status": "ok"}
        for kernel, model, mean, sd in (
            ("RBF", "fitc", 1e-6, 3e-6),
            ("RBF, a lengthscale each", "fitc", 2e-6, 1e-6),
            ("RBF", "exact", 0.0, 1e-9),
        )
    ] + [{"problem": "RBF, dtc", "library": "GPy", "status": "failed"}]
    table = posteriors.table_for_pages(rows)
    assert [(row["library"], row["model"], row["kernels"]) for row in table.rows] == [
        ("GPy 9", "FITC", 2), ("GPy 9", "exact", 1), ("GPy", "DTC", 1),
    ]  # fmt: skip
    means = [row["means, in sds of the outputs"] for row in table.rows]
    assert means == [2e-6, 0.0, None]
    assert [row["sds, relative"] for row in table.rows] == [3e-6, 1e-9, None]
    assert [row["failed"] for row in table.rows] == [None, None, 1]


def test_a_library_that_fails_is_said_to(answering, tmp_path):
    answering(Outcome("failed", "exit code 1"))
    rows = list(posteriors.compare_all(limits=LIMITS, only=["GPflow"]))
    assert {row["status"] for row in rows} == {"failed: exit code 1"}
    posteriors.report(rows, folder=tmp_path)
    with (tmp_path / "posteriors.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(PROBLEMS)


@pytest.mark.slow
@pytest.mark.parametrize("library", posteriors.LIBRARIES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_posteriors_are_those_of_other_libraries(name, library):
    _, environment = posteriors.LIBRARIES[library]
    if peers.interpreter(environment, cache=LIMITS.cache) is None:
        pytest.skip(f"make peers installs {library}")
    row = posteriors.compare(PROBLEMS[name], library, limits=LIMITS)
    assert row["status"] == "ok"
    assert row["mean differs"] < ALLOWED
    assert row["sd differs"] < ALLOWED
