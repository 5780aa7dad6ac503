"""Strategies against a conic solver, closed forms, and everything that must not change them."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp.design import design_strategy
from cloakgp.design.numerical_range import RANGE_TOLERANCE
from cloakgp.models import ExactPrior

CRITERIA = ["logdet", "trace"]


def noise_cov(design):
    """L Lᵀ: the covariance of the published noise per unit of noise."""
    return design.reconstruction @ design.reconstruction.T


def noise(design, criterion, weights=None):
    """What the criterion minimises: tr W L Lᵀ, or the k-th root of the determinant on the range."""
    if criterion == "trace":
        importance = np.ones(len(design.reconstruction)) if weights is None else weights
        return float(importance @ np.square(design.reconstruction).sum(axis=1))
    singular = np.linalg.svd(design.reconstruction, compute_uv=False)
    return float(np.exp(2 * np.log(singular).mean()))


def longest(strategy):
    return float(np.sqrt(np.square(strategy).sum(axis=0).max()))


def check_design(design, C, *, tolerance=1e-9):
    """What holds for every design, converged or not."""
    assert longest(design.strategy) <= 1 + 1e-12
    assert longest(design.strategy) >= 1 - 1e-12
    assert len(design.strategy) <= min(C.shape)
    largest = np.linalg.norm(C / np.abs(C).max(), 2) * np.abs(C).max()
    np.testing.assert_allclose(
        design.reconstruction @ design.strategy, C, rtol=0, atol=tolerance * largest
    )


def conic_optimum(C, criterion, weights=None):
    """Solve the primal in P = M⁻¹ with cvxpy and Clarabel; C of full row rank."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import cvxpy as cp

        inverse = cp.Variable((len(C), len(C)), PSD=True)
        limits = [cp.quad_form(column, inverse) <= 1 for column in C.T]
        if criterion == "logdet":
            problem = cp.Problem(cp.Maximize(cp.log_det(inverse)), limits)
            optimum = problem.solve(solver=cp.CLARABEL)
            return float(np.exp(-optimum / len(C)))
        root = np.diag(np.sqrt(np.ones(len(C)) if weights is None else weights))
        # tr(W P⁻¹) = Σ_i √w_i e_iᵀ P⁻¹ e_i √w_i.
        total = sum(cp.matrix_frac(root[:, i], inverse) for i in range(len(C)))
        return float(cp.Problem(cp.Minimize(total), limits).solve(solver=cp.CLARABEL))


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(("dimension", "count"), [(1, 4), (2, 3), (2, 9), (3, 3), (4, 10), (5, 25)])
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_a_conic_solver(criterion, dimension, count, seed):
    C = np.random.default_rng(seed).normal(size=(dimension, count))
    optimum = conic_optimum(C, criterion)
    for gap in (0.1, 1e-3, 1e-7):
        design = design_strategy(C, criterion=criterion, gap=gap)
        assert design.certificate.gap <= gap
        attained = noise(design, criterion)
        assert attained >= optimum * (1 - 1e-5)
        assert attained <= optimum * (1 + design.certificate.gap) * (1 + 1e-5)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(("dimension", "count"), [(3, 20), (6, 40), (8, 30)])
def test_agrees_with_a_conic_solver_to_a_millionth(criterion, dimension, count, rng):
    C = rng.normal(size=(dimension, count))
    attained = noise(design_strategy(C, criterion=criterion, gap=1e-9), criterion)
    assert attained == pytest.approx(conic_optimum(C, criterion), rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_weighted_trace_agrees_with_a_conic_solver(seed):
    rng = np.random.default_rng(seed)
    C, weights = rng.normal(size=(3, 8)), np.exp(2 * rng.normal(size=3))
    design = design_strategy(C, weights=weights, gap=1e-7)
    assert noise(design, "trace", weights) == pytest.approx(
        conic_optimum(C, "trace", weights), rel=1e-5
    )
    check_design(design, C)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_tall_matrices_are_the_problem_in_their_range(criterion, rng):
    reduced = rng.normal(size=(3, 7))
    basis, _ = np.linalg.qr(rng.normal(size=(20, 3)))
    design = design_strategy(basis @ reduced, criterion=criterion, gap=1e-7)
    check_design(design, basis @ reduced)
    assert design.strategy.shape == (3, 7)
    assert noise(design, criterion) == pytest.approx(conic_optimum(reduced, criterion), rel=1e-5)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("count", [1, 2, 7])
def test_identity_needs_unit_noise_on_every_row(criterion, count):
    design = design_strategy(np.eye(count), criterion=criterion, gap=1e-9)
    np.testing.assert_allclose(noise_cov(design), np.eye(count), atol=1e-8)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_rank_one_asks_one_question(criterion, rng):
    left, right = rng.normal(size=6), rng.normal(size=9)
    design = design_strategy(np.outer(left, right), criterion=criterion)
    assert design.strategy.shape == (1, 9)
    assert design.certificate.gap <= 1e-3
    # The least noise of one question is known: its longest column.
    np.testing.assert_allclose(
        noise_cov(design), np.outer(left, left) * np.abs(right).max() ** 2, rtol=1e-10
    )


def test_orthogonal_columns_under_both_criteria():
    lengths = np.array([3.0, 1.0, 0.25])
    logdet = design_strategy(np.diag(lengths), criterion="logdet", gap=1e-10)
    np.testing.assert_allclose(noise_cov(logdet), np.diag(lengths**2), atol=1e-8)
    trace = design_strategy(np.diag(lengths), criterion="trace", gap=1e-10)
    # min Σ M_ii with M_ii ≥ lengths²: the bounds themselves.
    np.testing.assert_allclose(noise_cov(trace), np.diag(lengths**2), atol=1e-8)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_equal_columns(criterion):
    column = np.array([1.0, 2.0, -2.0])
    design = design_strategy(np.tile(column[:, None], 8), criterion=criterion)
    np.testing.assert_allclose(noise_cov(design), np.outer(column, column), atol=1e-12)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_regular_simplex_is_answered_by_round_noise(criterion):
    corners = np.array([[0.0, np.sqrt(3) / 2, -np.sqrt(3) / 2], [1.0, -0.5, -0.5]])
    design = design_strategy(corners, criterion=criterion, gap=1e-10)
    np.testing.assert_allclose(noise_cov(design), np.eye(2), atol=1e-8)


@pytest.mark.parametrize("criterion", CRITERIA)
@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(1, 12),
    columns=st.integers(1, 12),
    exponent=st.sampled_from([-200, -100, -8, 0, 8, 100, 150]),
)
def test_every_design_gives_back_its_matrix(criterion, seed, rows, columns, exponent):
    C = np.random.default_rng(seed).normal(size=(rows, columns)) * 10.0**exponent
    design = design_strategy(C, criterion=criterion)
    check_design(design, C)
    assert design.certificate.criterion == criterion
    assert 0 <= design.certificate.gap <= 1e-3


@pytest.mark.parametrize("criterion", CRITERIA)
def test_scaling_the_matrix_scales_the_noise(criterion, rng):
    C = rng.normal(size=(4, 9))
    first = design_strategy(C, criterion=criterion, gap=1e-8)
    for factor in (1e-100, 0.1, -1.0, 1e100):
        scaled = design_strategy(factor * C, criterion=criterion, gap=1e-8)
        np.testing.assert_allclose(
            noise_cov(scaled) / factor**2, noise_cov(first), rtol=1e-3, atol=1e-3
        )
        assert noise(scaled, criterion) / factor**2 == pytest.approx(
            noise(first, criterion), rel=1e-7
        )


@pytest.mark.parametrize("criterion", CRITERIA)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_order_of_people_and_of_predictions_is_nothing(criterion, seed):
    rng = np.random.default_rng(seed)
    C = rng.normal(size=(4, 9))
    rows, columns = rng.permutation(4), rng.permutation(9)
    first = design_strategy(C, criterion=criterion, gap=1e-8)
    second = design_strategy(C[rows][:, columns], criterion=criterion, gap=1e-8)
    assert noise(second, criterion) == pytest.approx(noise(first, criterion), rel=1e-7)
    np.testing.assert_allclose(noise_cov(second), noise_cov(first)[rows][:, rows], atol=3e-3)


@given(seed=st.integers(0, 2**32 - 1))
def test_trace_turns_with_the_predictions(seed):
    rng = np.random.default_rng(seed)
    C = rng.normal(size=(4, 9))
    turn, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    first, second = (design_strategy(matrix, gap=1e-8) for matrix in (C, turn @ C))
    assert noise(second, "trace") == pytest.approx(noise(first, "trace"), rel=1e-7)
    np.testing.assert_allclose(noise_cov(second), turn @ noise_cov(first) @ turn.T, atol=3e-3)


@given(seed=st.integers(0, 2**32 - 1))
def test_logdet_follows_any_invertible_map(seed):
    rng = np.random.default_rng(seed)
    C, change = rng.normal(size=(4, 9)), rng.normal(size=(4, 4)) + 3 * np.eye(4)
    first, second = (
        design_strategy(matrix, criterion="logdet", gap=1e-8) for matrix in (C, change @ C)
    )
    shift = abs(np.linalg.det(change)) ** (2 / 4)
    assert noise(second, "logdet") == pytest.approx(shift * noise(first, "logdet"), rel=1e-7)


@given(seed=st.integers(0, 2**32 - 1), dimension=st.integers(1, 5), extra=st.integers(0, 8))
def test_no_random_design_beats_trace(seed, dimension, extra):
    rng = np.random.default_rng(seed)
    C = rng.normal(size=(dimension, dimension + extra))
    ours = design_strategy(C, gap=1e-6)
    for spread in (0.01, 0.3, 3.0):
        # Other designs of the same guarantee: bend ours, and give it unit columns again.
        change = np.eye(dimension) + spread * rng.normal(size=(dimension, dimension))
        reach = longest(change @ ours.strategy)
        other = np.square(ours.reconstruction @ np.linalg.inv(change) * reach).sum()
        assert other >= noise(ours, "trace") * (1 - 1.001e-6)


@given(seed=st.integers(0, 2**32 - 1), dimension=st.integers(1, 5), extra=st.integers(0, 8))
def test_no_random_design_beats_logdet(seed, dimension, extra):
    rng = np.random.default_rng(seed)
    C = rng.normal(size=(dimension, dimension + extra))
    ours = design_strategy(C, criterion="logdet", gap=1e-6)
    for spread in (0.01, 0.3, 3.0):
        change = np.eye(dimension) + spread * rng.normal(size=(dimension, dimension))
        reach = longest(change @ ours.strategy)
        factor = reach**2 / abs(np.linalg.det(change)) ** (2 / dimension)
        assert factor >= 1 - 1.001e-6


@pytest.mark.parametrize("criterion", CRITERIA)
def test_more_predictions_than_people(criterion, rng):
    C = rng.normal(size=(40, 6))
    design = design_strategy(C, criterion=criterion)
    check_design(design, C)
    assert design.strategy.shape == (6, 6)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_one_prediction_needs_one_question(criterion, rng):
    C = rng.normal(size=(1, 30))
    design = design_strategy(C, criterion=criterion)
    check_design(design, C)
    assert noise(design, criterion) == pytest.approx(np.abs(C).max() ** 2)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_people_without_influence_are_asked_nothing(criterion, rng):
    C = rng.normal(size=(3, 8))
    C[:, [1, 5]] = 0
    design = design_strategy(C, criterion=criterion, gap=1e-8)
    check_design(design, C)
    np.testing.assert_allclose(design.strategy[:, [1, 5]], 0, atol=1e-14)
    without = design_strategy(np.delete(C, [1, 5], axis=1), criterion=criterion, gap=1e-8)
    assert noise(design, criterion) == pytest.approx(noise(without, criterion), rel=1e-7)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("repeats", [2, 5])
def test_repeated_and_shorter_columns_change_nothing(criterion, repeats, rng):
    C = rng.normal(size=(3, 8))
    first = design_strategy(C, criterion=criterion, gap=1e-8)
    more = np.hstack([np.tile(C, repeats), -C, 0.5 * C])
    second = design_strategy(more, criterion=criterion, gap=1e-8)
    check_design(second, more)
    assert noise(second, criterion) == pytest.approx(noise(first, criterion), rel=1e-7)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_zeros_need_no_questions(criterion):
    design = design_strategy(np.zeros((3, 4)), criterion=criterion)
    assert design.strategy.shape == (0, 4)
    assert design.reconstruction.shape == (3, 0)
    assert design.certificate.gap == 0


@pytest.mark.parametrize("criterion", CRITERIA)
def test_huge_lengthscales_have_rank_one(criterion):
    X = np.linspace(0, 1, 30)[:, None]
    prior = ExactPrior(kernel=RBF(1e7), noise_variance=1.0, mean=0.0)
    C = prior.cloaking_matrix(X[::3], X)
    design = design_strategy(C, criterion=criterion)
    assert len(design.strategy) == 1
    check_design(design, C)


@pytest.mark.parametrize("spread", [1.0, 1e6])
def test_weights_move_noise_to_where_it_matters_less(spread, rng):
    C = rng.normal(size=(4, 9))
    weights = np.array([1.0, 1.0, 1.0, spread])
    design = design_strategy(C, weights=weights, gap=1e-6)
    check_design(design, C, tolerance=1e-7)
    plain = design_strategy(C, gap=1e-6)
    if spread > 1:
        assert noise_cov(design)[3, 3] < noise_cov(plain)[3, 3]
        # All of the effort there: the least noise that one prediction can have.
        assert noise_cov(design)[3, 3] == pytest.approx(np.square(C[3]).max(), rel=1e-2)
    else:
        np.testing.assert_allclose(noise_cov(design), noise_cov(plain), rtol=1e-3, atol=1e-3)


def test_only_ratios_of_weights_matter(rng):
    C, weights = rng.normal(size=(4, 9)), np.array([1.0, 2.0, 3.0, 4.0])
    first, second = (design_strategy(C, weights=scale * weights) for scale in (1.0, 1e30))
    np.testing.assert_allclose(noise_cov(first), noise_cov(second), rtol=1e-6)


def test_weights_equal_repeated_predictions(rng):
    C = rng.normal(size=(3, 9))
    repeated = design_strategy(C[[0, 0, 0, 1, 2, 2]], gap=1e-8)
    weighted = design_strategy(C, weights=np.array([3.0, 1.0, 2.0]), gap=1e-8)
    np.testing.assert_allclose(
        noise_cov(repeated)[np.ix_([0, 3, 4], [0, 3, 4])], noise_cov(weighted), atol=3e-3
    )


def smooth(dimension, *, people=287, points=200):
    """The cloaking matrix of a squared-exponential kernel, as on the papers' !Kung women."""
    rng = np.random.default_rng(7)
    X = rng.uniform(0, 90, size=(people, dimension))
    X_query = (
        np.linspace(0, 90, points)[:, None]
        if dimension == 1
        else rng.uniform(0, 90, size=(points, dimension))
    )
    kernel = ConstantKernel(650.0) * RBF(15.0 if dimension == 1 else 25.0)
    prior = ExactPrior(kernel=kernel, noise_variance=45.0, mean=0.0)
    return prior.cloaking_matrix(X_query, X)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("dimension", [1, 2])
def test_smooth_kernels_reach_the_gap(criterion, gap, dimension):
    C = smooth(dimension)
    design = design_strategy(C, criterion=criterion, gap=gap)
    assert design.certificate.gap <= gap
    check_design(design, C, tolerance=100 * RANGE_TOLERANCE)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9])
def test_random_matrices_reach_the_gap(criterion, gap, rng):
    C = rng.normal(size=(20, 287))
    design = design_strategy(C, criterion=criterion, gap=gap)
    assert design.certificate.gap <= gap
    check_design(design, C)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("dimension", [1, 2])
def test_speed(criterion, dimension):
    """Well under a second. Counted in processor time: other work on the machine is no failure."""
    C = smooth(dimension)
    seconds = []
    for _ in range(3):
        started = time.process_time()
        design_strategy(C, criterion=criterion, gap=1e-3)
        seconds.append(time.process_time() - started)
    assert min(seconds) < 1.0


@pytest.mark.parametrize("criterion", CRITERIA)
def test_designs_repeat_to_the_last_bit(criterion, rng):
    C = rng.normal(size=(6, 40))
    first, second = (design_strategy(C, criterion=criterion) for _ in range(2))
    assert first.strategy.tobytes() == second.strategy.tobytes()
    assert first.reconstruction.tobytes() == second.reconstruction.tobytes()


def test_progress_is_told_the_gap(rng):
    seen = []
    design = design_strategy(rng.normal(size=(4, 30)), gap=1e-6, progress=seen.append)
    assert seen[-1] == pytest.approx(design.certificate.gap, abs=1e-15)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"criterion": "volume"}, "criterion must be one of .*, got 'volume'"),
        ({"gap": 0.0}, "gap must be positive"),
        ({"gap": -1.0}, "gap must be positive"),
        ({"gap": float("nan")}, "gap must be positive"),
        ({"weights": np.ones(2)}, r"weights must have shape \(3,\), got \(2,\)"),
        ({"weights": np.ones((3, 1))}, r"weights must have shape \(3,\)"),
        ({"weights": np.array([1.0, 0.0, 1.0])}, "weights must be positive and finite"),
        ({"weights": np.array([1.0, -1.0, 1.0])}, "weights must be positive and finite"),
        ({"weights": np.array([1.0, np.nan, 1.0])}, "weights must be positive and finite"),
        ({"weights": np.array([1.0, np.inf, 1.0])}, "weights must be positive and finite"),
        ({"weights": np.ones(3), "criterion": "logdet"}, "weights apply to criterion='trace'"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        design_strategy(np.eye(3), **arguments)


@pytest.mark.parametrize(
    ("C", "message"),
    [
        (np.ones(3), "C must have two dimensions"),
        (np.ones((2, 2, 2)), "C must have two dimensions"),
        (np.ones((0, 3)), "C needs at least one row and one column"),
        (np.ones((3, 0)), "C needs at least one row and one column"),
        (np.array([[1.0, np.nan]]), "C contains NaN or infinity"),
        (np.array([[1.0, -np.inf]]), "C contains NaN or infinity"),
    ],
)
def test_bad_matrices_are_named(C, message):
    with pytest.raises(ValueError, match=message):
        design_strategy(C)


def test_a_certificate_holds_in_weak_directions():
    # The least noise is known for orthogonal columns: their squared lengths.
    lengths = np.array([1.0, 1e-6, 1e-7])
    design = design_strategy(np.diag(lengths), gap=1e-9)
    least = float(np.square(lengths).sum())
    assert noise(design, "trace") <= least * (1 + design.certificate.gap) * (1 + 1e-12)


def test_predictions_of_little_weight_are_still_predictions():
    C = np.random.default_rng(0).normal(size=(4, 3))
    check_design(design_strategy(C, weights=np.array([1e-40, 1.0, 1.0, 1.0])), C, tolerance=1e-6)
