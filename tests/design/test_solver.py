"""Optimal weights against closed forms, brute force and an independent algorithm."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.design import screening as working_set
from cloakgp.design import solver
from cloakgp.design.objectives import factorise
from cloakgp.design.solver import optimal_weights

CRITERIA = ["logdet", "trace"]


def concave_dual(criterion, columns, weights):
    """What the weights maximise: (det S)^(1/r), or tr S^½."""
    gram = (columns * weights) @ columns.T
    if criterion == "logdet":
        sign, logdet = np.linalg.slogdet(gram)
        return np.exp(logdet / len(gram)) if sign > 0 else 0.0
    return np.sqrt(np.maximum(np.linalg.eigvalsh(gram), 0.0)).sum()


def multiplicative(criterion, columns, steps=20_000):
    """The textbook algorithm, from the definitions: slow, and hard to get wrong."""
    weights = np.full(columns.shape[1], 1 / columns.shape[1])
    for _ in range(steps):
        eigenvalues, directions = np.linalg.eigh((columns * weights) @ columns.T)
        power = {"logdet": -1.0, "trace": -0.5}[criterion]
        metric = (directions * eigenvalues**power) @ directions.T
        weights = weights * np.einsum("ij,ik,kj->j", columns, metric, columns)
        weights /= weights.sum()
    return weights


def simplex(points, count):
    """All weights with a given denominator."""
    for bars in itertools.combinations(range(points + count - 1), count - 1):
        edges = (-1, *bars, points + count - 1)
        yield np.diff(edges) - 1


@pytest.mark.parametrize("criterion", CRITERIA)
def test_closed_form_of_orthogonal_columns(criterion):
    lengths = np.array([1.0, 2.0, 5.0, 0.1])
    expected = np.full(4, 0.25) if criterion == "logdet" else lengths**2 / np.sum(lengths**2)
    found = optimal_weights(np.diag(lengths), criterion=criterion, gap=1e-10)
    np.testing.assert_allclose(found.weights, expected, rtol=1e-8)
    assert found.gap <= 1e-10


@pytest.mark.parametrize("criterion", CRITERIA)
def test_in_one_dimension_the_longest_column_takes_all(criterion):
    found = optimal_weights(np.array([[0.5, -3.0, 1.0, 0.0001]]), criterion=criterion, gap=1e-9)
    np.testing.assert_allclose(found.weights, [0.0, 1.0, 0.0, 0.0], atol=1e-8)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_equal_columns_in_one_dimension_need_no_step(criterion):
    found = optimal_weights(np.full((1, 7), 2.0), criterion=criterion, gap=1e-9)
    assert found.passes == 1
    assert found.gap <= 1e-12


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("seed", range(4))
def test_nothing_on_a_grid_of_the_simplex_is_better(criterion, seed):
    columns = np.random.default_rng(seed).normal(size=(2, 4))
    found = optimal_weights(columns, criterion=criterion, gap=1e-8)
    best = max(concave_dual(criterion, columns, u / 20) for u in simplex(20, 4))
    ours = concave_dual(criterion, columns, found.weights)
    assert ours >= best * (1 - 1e-7)
    assert ours <= best * 1.02


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(("dimension", "count"), [(3, 12), (6, 40)])
def test_agrees_with_the_textbook_algorithm(criterion, dimension, count, rng):
    columns = rng.normal(size=(dimension, count))
    found = optimal_weights(columns, criterion=criterion, gap=1e-9)
    reference = multiplicative(criterion, columns)
    assert concave_dual(criterion, columns, found.weights) == pytest.approx(
        concave_dual(criterion, columns, reference), rel=1e-4
    )
    assert concave_dual(criterion, columns, found.weights) >= concave_dual(
        criterion, columns, reference
    ) * (1 - 1e-9)


@pytest.mark.parametrize("criterion", CRITERIA)
@given(seed=st.integers(0, 2**32 - 1), dimension=st.integers(1, 6), extra=st.integers(0, 30))
def test_weights_are_a_design_and_reach_the_gap(criterion, seed, dimension, extra):
    columns = np.random.default_rng(seed).normal(size=(dimension, dimension + extra))
    found = optimal_weights(columns, criterion=criterion, gap=1e-7)
    assert (found.weights >= 0).all()
    assert found.weights.sum() == pytest.approx(1.0, rel=1e-12)
    assert 0 <= found.gap <= 1e-7


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("stop", [{"rounds": 0, "gap": 1e-12}, {"gap": 1e6}, {"gap": 0.3}])
def test_a_certificate_bounds_the_optimum_also_when_stopped_early(criterion, stop, rng):
    columns = rng.normal(size=(4, 60)) * np.exp(rng.normal(size=60))
    early = optimal_weights(columns, criterion=criterion, **stop)
    best = optimal_weights(columns, criterion=criterion, gap=1e-9)
    ours, optimum = (concave_dual(criterion, columns, found.weights) for found in (early, best))
    # Both duals are positively homogeneous after a power: weak duality in the units of variance.
    power = 1 if criterion == "logdet" else 2
    assert early.gap > 1e-6
    assert optimum**power <= ours**power * (1 + early.gap) * (1 + 1e-9)
    assert ours <= optimum * (1 + 1e-9)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_progress_reports_the_best_gap_after_every_pass(criterion, rng):
    seen = []
    found = optimal_weights(
        rng.normal(size=(5, 50)), criterion=criterion, gap=1e-9, progress=seen.append
    )
    assert seen == sorted(seen, reverse=True)
    assert seen[-1] == pytest.approx(found.gap, abs=1e-15)
    assert len(seen) >= found.passes > 1


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("gap", [1e-3, 1e-9])
def test_column_generation_reaches_the_gap(criterion, gap, rng):
    columns = rng.normal(size=(8, 2500)) * np.exp(0.2 * rng.normal(size=2500))
    assert columns.shape[1] > 20 * max(working_set.FIRST_SHARE * 8, working_set.FIRST_COLUMNS)
    found = optimal_weights(columns, criterion=criterion, gap=gap)
    assert found.gap <= gap


@pytest.mark.parametrize("criterion", CRITERIA)
def test_column_generation_finds_what_it_left_out_at_first(criterion, rng, monkeypatch):
    columns = rng.normal(size=(5, 300))
    whole = optimal_weights(columns, criterion=criterion, gap=1e-9)
    monkeypatch.setattr(working_set, "FIRST_COLUMNS", 6)
    monkeypatch.setattr(working_set, "FIRST_SHARE", 1)
    monkeypatch.setattr(solver, "MULTIPLICATIVE_STEPS", 0)
    few = optimal_weights(columns, criterion=criterion, gap=1e-9)
    assert few.gap <= 1e-9
    assert concave_dual(criterion, columns, few.weights) == pytest.approx(
        concave_dual(criterion, columns, whole.weights), rel=1e-8
    )


HARD = {
    "alike to 1e-9": lambda rng, r, n: (
        rng.normal(size=(r, 40))[:, rng.integers(0, 40, n)] + 1e-9 * rng.normal(size=(r, n))
    ),
    "equal": lambda rng, r, n: np.tile(rng.normal(size=(r, 40)), n // 40),
    "heavy tails": lambda rng, r, n: rng.normal(size=(r, n)) * np.abs(rng.standard_cauchy(n)),
    "on a sphere": lambda rng, r, n: (lambda c: c / np.linalg.norm(c, axis=0))(
        rng.normal(size=(r, n))
    ),
    "polynomials": lambda rng, r, n: (
        np.polynomial.legendre.legvander(np.sort(rng.uniform(-1, 1, n)), r - 1).T
    ),
    "scales over five decades": lambda rng, r, n: (
        rng.normal(size=(r, n)) * np.logspace(0, -5, r)[:, None]
    ),
}


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("name", HARD)
def test_hard_columns(criterion, name, rng):
    columns = HARD[name](rng, 12, 1200)
    found = optimal_weights(columns, criterion=criterion, gap=1e-6)
    assert found.gap <= 1e-6
    assert np.isfinite(found.weights).all()


@pytest.mark.slow
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize(("dimension", "count"), [(40, 3000), (25, 1000)])
def test_hard_and_large_columns(criterion, name, dimension, count, rng):
    columns = HARD[name](rng, dimension, count)
    started = time.process_time()
    found = optimal_weights(columns, criterion=criterion, gap=1e-3)
    assert found.gap <= 1e-3
    # Polynomials take most, some 50 seconds: thousands of columns are nearly optimal.
    assert time.process_time() - started < 120


@pytest.mark.parametrize("criterion", CRITERIA)
@given(seed=st.integers(0, 2**32 - 1), gap=st.sampled_from([0.1, 1e-3, 1e-7]))
def test_the_gap_is_that_of_the_weights_returned(criterion, seed, gap):
    columns = np.random.default_rng(seed).normal(size=(4, 30))
    found = optimal_weights(columns, criterion=criterion, gap=gap)
    recomputed = factorise(criterion, columns, found.weights).gains(columns).max() - 1
    assert found.gap == pytest.approx(recomputed, abs=1e-12)


@pytest.mark.parametrize(
    ("criterion", "seed"), [("logdet", 0), ("logdet", 4), ("logdet", 5), ("trace", 2)]
)
def test_the_gap_is_that_of_the_weights_returned_after_column_generation(criterion, seed):
    columns = np.random.default_rng(seed).normal(size=(5, 1082))
    columns /= np.linalg.norm(columns, axis=0)
    found = optimal_weights(columns, criterion=criterion, gap=1e-6)
    recomputed = factorise(criterion, columns, found.weights).gains(columns).max() - 1
    assert found.gap == pytest.approx(recomputed, abs=1e-12)


def weak_direction():
    """Heavy columns in three dimensions, and few light ones that alone show the fourth."""
    rng = np.random.default_rng(0)
    heavy = np.vstack([rng.normal(size=(3, 400)), np.zeros((1, 400))])
    light = np.vstack([1e-7 * rng.normal(size=(3, 5)), 1e-7 * np.ones((1, 5))])
    return np.hstack([heavy, light])


def test_the_first_columns_span_directions_of_little_weight():
    columns = weak_direction()
    weights = np.full(columns.shape[1], 1 / columns.shape[1])
    for _ in range(5):
        iterate = factorise("trace", columns, weights)
        gains = iterate.gains(columns)
        weights = weights * gains**2 / (weights @ gains**2)
    iterate = factorise("trace", columns, weights)
    gains = iterate.gains(columns)
    chosen = working_set.first_columns(columns, weights, iterate=iterate, gains=gains)
    assert np.count_nonzero(chosen >= 400) > 0
    assert np.linalg.matrix_rank(columns[:, chosen], rtol=1e-12) == 4
    # By weight and gain alone they would not.
    heaviest = np.argsort(-weights * gains**working_set.GAIN_POWER)[: working_set.FIRST_COLUMNS]
    assert np.linalg.matrix_rank(columns[:, heaviest], rtol=1e-12) == 3


@pytest.mark.parametrize("criterion", CRITERIA)
def test_columns_that_span_a_direction_alone_never_leave(criterion):
    """Idle by weight and slack alike, but the only ones in their direction."""
    columns = np.hstack([np.tile(np.eye(3), 10), np.zeros((3, 1))])
    columns = np.vstack([columns, np.r_[np.zeros(30), 1e-3][None]])
    weights = np.r_[np.full(30, 1.0), 1e-6]
    weights /= weights.sum()
    iterate = factorise(criterion, columns, weights)
    out = working_set.leaving(
        columns,
        weights,
        np.full(31, 0.5),
        iterate=iterate,
        gains=np.full(31, 0.1),
        gap=1e-3,
    )
    assert 30 not in out


@pytest.mark.parametrize("seed", range(4))
def test_a_weak_direction_reaches_the_gap(seed):
    """Which needs the span: the pass over all columns divides by what S holds of it."""
    rng = np.random.default_rng(seed)
    columns = np.hstack(
        [weak_direction(), np.diag([1.0, 1.0, 1.0, 1e-7]) @ rng.normal(size=(4, 3))]
    )
    assert optimal_weights(columns, criterion="trace", gap=1e-9).gap <= 1e-9


@pytest.mark.parametrize("criterion", CRITERIA)
def test_the_iterate_is_the_design_of_the_weights(criterion, rng):
    columns = rng.normal(size=(5, 200))
    found = optimal_weights(columns, criterion=criterion, gap=1e-6)
    others = rng.normal(size=(5, 20))
    np.testing.assert_allclose(
        found.iterate.gains(others),
        factorise(criterion, columns, found.weights).gains(others),
        rtol=1e-10,
    )
