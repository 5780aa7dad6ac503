from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import KFold

from benchmarks import jobs, peers, processes, workloads
from benchmarks.processes import Limits, Outcome
from experiments.datasets import DatasetUnavailableError


@pytest.fixture
def job():
    return workloads.tiny_job()


def our_methods(job):
    return [one for one in jobs.methods_for(job) if one.peer == peers.OURSELVES]


def test_folds_are_disjoint_and_leave_rows_to_train(job):
    fold = workloads.dealt(100, folds=3, held_out=20)
    assert np.unique(fold, return_counts=True)[1].tolist() == [40, 20, 20, 20]
    one = replace(job, X=np.zeros((100, 1)), y=np.arange(100.0), fold=fold, bounds=(0, 50))
    assert one.training_rows == 80
    np.testing.assert_array_equal(one.truth, np.minimum(np.flatnonzero(fold >= 0), 50))


def test_folds_in_file_order_are_those_of_scikit_learn():
    theirs = np.empty(287, dtype=int)
    for number, (_, held_out) in enumerate(KFold(14).split(np.zeros((287, 1)))):
        theirs[held_out] = number
    np.testing.assert_array_equal(workloads.in_file_order(287, folds=14), theirs)


def test_every_fold_is_predicted_by_the_other_rows_alone(job):
    """A GP without privacy that had seen the held-out rows would reproduce them."""
    held_out = job.fold == 0
    odd = replace(job, y=np.where(held_out, 1.0, -1.0))
    (method,) = [one for one in our_methods(odd) if one.guarantee == "none"]
    found = processes.run(
        peers.RUNNERS / method.runner,
        peer=method.peer,
        arrays={"X": odd.X, "y": odd.y, "fold": odd.fold},
        options={"bounds": odd.bounds, "draws": 1, **method.options},
        limits=Limits(seconds=600),
    )
    predictions = found.arrays["predictions"][0]
    np.testing.assert_allclose(predictions[odd.fold[odd.fold >= 0] == 0], -1, atol=0.1)
    assert found.arrays["seconds"].shape == (2, 1)


def test_errors_are_against_clipped_outputs_over_all_folds(job):
    found = Outcome(
        "ok",
        arrays={
            "predictions": np.stack([job.truth, job.truth + 2]),
            "seconds": np.array([[1, 3]]),
            "cpu_seconds": np.array([[1, 1]]),
        },
        report={"start_mb": 1.0, "peak_mb": 2.0},
    )
    row = jobs.job_row(job, our_methods(job)[0], found)
    assert (row["RMSE"], row["draws"], row["seconds per fit"]) == (pytest.approx(1), 2, 2)
    assert row["cpu per fit"] == 1
    assert row["mean of folds"] == pytest.approx(1)
    assert row["sd over draws"] == pytest.approx(np.sqrt(2))


def test_the_mean_of_folds_is_of_their_own_errors(job):
    predictions = job.truth + np.where(job.fold == 0, 3.0, 1.0)
    times = np.ones((2, 1))
    found = Outcome(
        "ok",
        arrays={"predictions": predictions[None], "seconds": times, "cpu_seconds": times},
        report={"start_mb": 1.0, "peak_mb": 2.0},
    )
    row = jobs.job_row(job, our_methods(job)[0], found)
    assert row["mean of folds"] == pytest.approx(2)
    assert row["RMSE"] == pytest.approx(np.sqrt(5))
    assert row["sd over draws"] is None


def test_sampled_rows_are_drawn_as_often_as_noise(job):
    method = our_methods(job)[-1]
    assert jobs.draws_of(job, method, draws=5) == 1
    fewer = replace(method, options={"most_rows": 10})
    assert jobs.draws_of(job, fewer, draws=5) == 5


@pytest.mark.data
def test_everybody_is_told_the_same_of_the_papers_tables():
    try:
        found = list(workloads.all_jobs())
    except DatasetUnavailableError as error:
        pytest.skip(str(error))
    assert [len(one.X) for one in found] == [287, 10_000, 6000]
    for one in found:
        assert len(one.X) == len(one.y) == len(one.fold)
        assert one.bounds[0] <= one.truth.min() <= one.truth.max() <= one.bounds[1]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(7))
def test_installed_peers_do_the_tiny_job(job, number):
    method = jobs.methods_for(job)[number]
    if peers.interpreter(method.peer, cache=peers.DEFAULT_CACHE) is None:
        pytest.skip(f"{method.peer} is not installed")
    outcome = jobs._run(job, method, draws=2, limits=Limits(seconds=6000))
    assert outcome.said == "ok"
    assert outcome.arrays["predictions"].shape == (jobs.draws_of(job, method, draws=2), 60)
    assert np.isfinite(outcome.arrays["predictions"]).all()
