"""The design in the ℓ1 ball against all signed partitions, a conic solver, and dense algebra."""

from __future__ import annotations

import importlib
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize
from sklearn.gaussian_process.kernels import Matern

from cloakgp.design import design_l1, l1_ball
from cloakgp.design.l1_ball import _Problem, quartimax
from cloakgp.models.covariance import DenseCovariance, LinearisedCovariance, LowRankCovariance

Task = importlib.import_module("bayes_tasks").Task


def designed(task, **settings):
    return design_l1(
        DenseCovariance(latent=task.latent, noise=task.noise),
        task.crossed,
        prior_variance=task.prior_variance,
        noise_sd=task.noise_sd,
        **settings,
    )


def partitions(rows):
    """Every partition of so many rows, as the number of each row's part."""
    if rows == 0:
        yield ()
        return
    for others in partitions(rows - 1):
        for part in range(max(others, default=-1) + 2):
            yield (*others, part)


def signed_partitions(rows):
    """Every strategy that puts each row into one answer, with a sign."""
    for parts in partitions(rows):
        for signs in itertools.product((1.0, -1.0), repeat=rows - 1):
            strategy = np.zeros((max(parts) + 1, rows))
            strategy[list(parts), np.arange(rows)] = (1.0, *signs)
            yield strategy


def smooth_task(seed, *, rows, noise_sd):
    rng = np.random.default_rng([seed, rows])
    X, queries = rng.uniform(0, 4, size=(rows, 1)), rng.uniform(0, 4, size=(6, 1))
    return Task.of(Matern(nu=1.5), X, queries, noise_sd=noise_sd)


def summed(strategy, groups):
    """The absolute entries of each group's columns."""
    return np.bincount(groups, weights=np.abs(strategy).sum(axis=0))


@pytest.mark.parametrize("noise_sd", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("seed", range(4))
def test_no_partition_of_a_smooth_function_is_better(seed, noise_sd):
    task = smooth_task(seed, rows=5, noise_sd=noise_sd)
    best = min(task.unexplained(strategy) for strategy in signed_partitions(5))
    assert designed(task).unexplained <= 1.01 * best


def test_no_partition_of_anything_is_better_by_much():
    """With no structure at all, a local optimum could be poor; of these, none is."""
    for seed in range(30):
        task = Task.drawn(seed, rows=5, points=3)
        best = min(task.unexplained(strategy) for strategy in signed_partitions(5))
        assert designed(task).unexplained <= 1.01 * best


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_no_partition_of_more_rows_is_better_by_much(seed):
    task = smooth_task(seed, rows=7, noise_sd=0.5)
    best = min(task.unexplained(strategy) for strategy in signed_partitions(7))
    assert designed(task).unexplained <= 1.01 * best


@pytest.mark.parametrize("seed", range(6))
def test_in_strong_noise_one_answer_with_the_best_signs(seed):
    """To merge two answers, with a sign, adds to ‖Σ ± f_j‖² or leaves it."""
    task = Task.drawn(seed, rows=7, points=3, noise_sd=1e4)
    signs = np.array([(1.0, *rest) for rest in itertools.product((1.0, -1.0), repeat=6)])
    best = np.square(signs @ task.crossed).sum(axis=1).max() / 1e8
    explained = task.prior_variance - designed(task).unexplained
    assert explained == pytest.approx(best, rel=1e-3)


def test_where_all_answers_matter_alike_none_is_left_out():
    """Each explains less than the share of what is left at which a search for more would end.

    Oracle: persons with independent values are asked one by one.
    """
    rows = 120
    task = Task(
        latent=np.eye(rows),
        noise=np.full(rows, 4.0),
        crossed=np.eye(rows),
        prior_variance=float(rows),
        noise_sd=1e-3,
    )
    design = designed(task)
    assert design.unexplained == pytest.approx(rows * (1 - 1 / (5 + 1e-6)), rel=1e-3)


def test_one_row_in_closed_form():
    latent, noise, noise_sd = 2.0, 0.5, 0.7
    design = design_l1(
        DenseCovariance(latent=np.array([[latent]]), noise=np.array([noise])),
        np.array([[latent]]),
        prior_variance=latent,
        noise_sd=noise_sd,
    )
    assert np.abs(design.strategy) == pytest.approx(np.ones((1, 1)))
    assert design.unexplained == pytest.approx(latent - latent**2 / (latent + noise + noise_sd**2))
    assert design.certificate.gap <= 0.01


@given(seed=st.integers(0, 1000), rows=st.integers(2, 8))
def test_what_is_said_holds_of_the_strategy(seed, rows):
    task = Task.drawn(seed, rows=rows)
    design = designed(task)
    assert np.abs(design.strategy).sum(axis=0) == pytest.approx(np.ones(rows), rel=1e-9)
    assert design.strategy.any(axis=1).all()
    dense = task.unexplained(design.strategy)
    assert design.unexplained == pytest.approx(dense, rel=1e-5, abs=2e-7 * task.prior_variance)


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_left_that_the_certificate_excludes(seed):
    """A conic solver's optimum over the Euclidean ball, which is larger, undercuts no bound."""
    task = Task.drawn(seed)
    design = designed(task)
    assert design.unexplained * (1 - design.certificate.gap) <= task.least() * (1 + 1e-5)
    assert design.certificate.criterion == "bayes"
    assert 0 <= design.certificate.gap < 1


@pytest.mark.parametrize("grouped", [False, True])
def test_the_derivative_by_finite_differences(rng, grouped):
    task = Task.drawn(1)
    problem = _Problem(
        covariance=DenseCovariance(latent=task.latent, noise=task.noise),
        directions=task.crossed,
        noise_sd=task.noise_sd,
        prior_variance=task.prior_variance,
        scale=0.3,
        groups=np.array([0, 1, 1, 2, 0, 1]) if grouped else None,
    )
    free = rng.normal(size=(3, 6))
    value, slope = problem.objective(free)
    strategy = problem.strategy(free)
    assert value == pytest.approx(task.unexplained(strategy) / 0.3)
    numeric = optimize.approx_fprime(
        free.ravel(), lambda flat: problem.objective(flat.reshape(3, 6))[0], 1e-7
    )
    np.testing.assert_allclose(slope.ravel(), numeric, atol=1e-5 * np.abs(slope).max())


def test_flipped_rows_are_asked_with_flipped_signs():
    """In bands slopes may point either way: what is left does not depend on it."""
    task = smooth_task(0, rows=40, noise_sd=1.0)
    slope = np.where(np.arange(40) % 3, 0.6, -0.6)
    left = []
    for slopes in (slope, np.abs(slope)):
        outputs = DenseCovariance(latent=task.latent, noise=task.noise)
        design = design_l1(
            LinearisedCovariance(outputs, slopes, residual=np.full(40, 0.1)),
            slopes[:, None] * task.crossed,
            prior_variance=task.prior_variance,
            noise_sd=1.0,
        )
        left.append(design.unexplained)
    assert left[0] == pytest.approx(left[1], rel=5e-3)


def test_low_rank_covariances_are_as_good_as_dense_ones():
    task = smooth_task(1, rows=30, noise_sd=1.0)
    values, vectors = np.linalg.eigh(task.latent)
    features = (vectors * np.sqrt(np.maximum(values, 0.0))).T
    design = design_l1(
        LowRankCovariance(features=features, noise=task.noise),
        task.crossed,
        prior_variance=task.prior_variance,
        noise_sd=1.0,
    )
    assert design.unexplained == pytest.approx(designed(task).unexplained, rel=1e-6)


@pytest.mark.parametrize("noise_sd", [0.3, 1.0, 5.0])
def test_better_than_one_answer_intervals_and_the_rescaled_gaussian_design(noise_sd):
    task = smooth_task(2, rows=60, noise_sd=noise_sd)
    order = np.argsort(np.argsort(task.latent[0] - task.latent[-1]))
    intervals = [np.eye(m)[order * m // 60].T for m in (1, 2, 3, 4, 6, 8, 12)]
    gaussian = task.design(gap=1e-2).strategy
    rescaled = gaussian / np.abs(gaussian).sum(axis=0)
    left = [task.unexplained(strategy) for strategy in (*intervals, rescaled)]
    design = designed(task)
    assert design.unexplained <= min(left)
    # What the norm costs is small, so the bound is worth saying.
    assert design.certificate.gap < 0.25


def gauge(columns):
    """How far the outputs of one group move answers together, over all signs."""
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=columns.shape[1])))
    return np.abs(signs @ columns.T).sum(axis=1).max()


@pytest.mark.parametrize("seed", range(4))
def test_groups_share_one_ball(seed):
    task = Task.drawn(seed, rows=6)
    groups = np.array([0, 1, 1, 2, 0, 1])
    design = designed(task, groups=groups)
    assert summed(design.strategy, groups) == pytest.approx(np.ones(3), rel=1e-9)
    for group in range(3):
        assert gauge(design.strategy[:, groups == group]) <= 1 + 1e-9
    even = np.bincount(groups)[groups]
    best = min(task.unexplained(strategy / even) for strategy in signed_partitions(6))
    assert design.unexplained <= 1.02 * best


def test_groups_of_one_row_are_rows():
    task = smooth_task(3, rows=12, noise_sd=1.0)
    alone, grouped = designed(task), designed(task, groups=np.arange(12)[::-1].copy())
    assert grouped.unexplained == pytest.approx(alone.unexplained, rel=1e-3)


def test_nothing_to_explain_is_not_asked():
    task = Task.drawn(0)
    design = design_l1(
        DenseCovariance(latent=task.latent, noise=task.noise),
        np.zeros_like(task.crossed),
        prior_variance=1.0,
        noise_sd=1.0,
    )
    assert design.strategy.shape == (0, 6)
    assert design.unexplained == 1.0


def test_repeats():
    task = smooth_task(4, rows=30, noise_sd=1.0)
    np.testing.assert_array_equal(designed(task).strategy, designed(task).strategy)


def test_a_rotation_that_sharpens(rng):
    answers = rng.normal(size=(3, 50))
    rotated = quartimax(answers)
    np.testing.assert_allclose(rotated.T @ rotated, answers.T @ answers, atol=1e-9)
    angles = rng.normal(size=(200, 3, 3))
    turned = [np.linalg.qr(angle)[0] @ answers for angle in angles]
    assert (rotated**4).sum() >= 0.999 * max((other**4).sum() for other in turned)


def test_many_answers_are_rotated_nearly_as_far_in_fewer_turns(monkeypatch):
    """Bumps beside each other, hidden by a rotation at random."""
    places = np.linspace(0.0, 1.0, 400)
    bumps = np.exp(-0.5 * np.square((places - np.linspace(0.0, 1.0, 80)[:, None]) / 0.01))
    turn, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(80, 80)))
    hidden = turn @ bumps

    def sharpness(answers):
        return np.square(np.square(answers)).sum()

    few = sharpness(quartimax(hidden))
    monkeypatch.setattr(l1_ball, "MANY", 1000)
    assert 0.98 * sharpness(quartimax(hidden)) < few
    assert few > 10 * sharpness(hidden)
