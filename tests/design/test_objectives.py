"""Values, gradients and curvatures of the two duals against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import linalg

from cloakgp.design import objectives as criteria
from cloakgp.design.objectives import PRODUCT_CONDITION, ROOT_FLOOR, TraceIterate, factorise

CRITERIA = ["logdet", "trace"]


def dual(criterion, columns, weights):
    """The function minimised, straight from its definition in the module's head."""
    gram = (columns * weights) @ columns.T
    if criterion == "logdet":
        return -np.linalg.slogdet(gram)[1] / len(gram)
    return -2 * np.log(np.sqrt(np.linalg.eigvalsh(gram)).sum())


def problem(seed, dimension, count):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.5, 1.5, size=count)
    return rng.normal(size=(dimension, count)), weights / weights.sum()


def central_difference(function, point, step):
    directions = np.eye(len(point))
    return np.array(
        [(function(point + step * e) - function(point - step * e)) / (2 * step) for e in directions]
    )


@pytest.mark.parametrize("criterion", CRITERIA)
@given(seed=st.integers(0, 2**32 - 1), dimension=st.integers(1, 6), extra=st.integers(2, 12))
def test_gains_are_minus_the_gradient_of_the_dual(criterion, seed, dimension, extra):
    columns, weights = problem(seed, dimension, dimension + extra)
    expected = -central_difference(lambda u: dual(criterion, columns, u), weights, 1e-6)
    gains = factorise(criterion, columns, weights).gains(columns)
    np.testing.assert_allclose(gains, expected, rtol=1e-5, atol=1e-6 * gains.max())


@pytest.mark.parametrize("criterion", CRITERIA)
@given(seed=st.integers(0, 2**32 - 1), dimension=st.integers(1, 6), extra=st.integers(2, 12))
def test_curvature_is_the_derivative_of_the_gradient(criterion, seed, dimension, extra):
    columns, weights = problem(seed, dimension, dimension + extra)
    expected = -central_difference(
        lambda u: factorise(criterion, columns, u).gains(columns), weights, 1e-6
    )
    curvature = factorise(criterion, columns, weights).curvature(columns)
    # For trace by a quadrature, whose error is 2e-2 of each of its terms.
    tolerance = {"logdet": 1e-6, "trace": 3e-2}[criterion]
    np.testing.assert_allclose(curvature, expected, rtol=0, atol=tolerance * curvature.max())


@pytest.mark.parametrize(
    ("step", "below", "above", "tolerance"),
    [(None, None, None, 3e-2), (0.8, 1e-6, 12.0, 3e-4), (0.4, 1e-9, 20.0, 1e-8)],
)
def test_curvature_of_trace_is_that_of_the_divided_differences(
    step, below, above, tolerance, monkeypatch
):
    """Also over eight decades of eigenvalues, where finite differences have no digits.

    With finer and longer quadratures the same to ever more of them.
    """
    if step is not None:
        monkeypatch.setattr(criteria, "QUADRATURE_STEP", step)
        monkeypatch.setattr(criteria, "QUADRATURE_BELOW", below)
        monkeypatch.setattr(criteria, "QUADRATURE_ABOVE", above)
    rng = np.random.default_rng(0)
    roots = np.logspace(-4, 0, 9)
    columns = rng.normal(size=(9, 30)) * roots[:, None]
    iterate = TraceIterate(roots=roots, directions=np.eye(9))
    pairs = 1 / (roots[:, None] * roots * (roots[:, None] + roots))
    products = np.einsum("ai,aj->aij", columns, columns)
    gains = iterate.gains(columns)
    expected = (
        np.einsum("aij,bij,ab->ij", products, products, pairs) / roots.sum()
        + np.outer(gains, gains) / 2
    )
    np.testing.assert_allclose(
        iterate.curvature(columns), expected, rtol=0, atol=tolerance * expected.max()
    )


@pytest.mark.parametrize("criterion", CRITERIA)
@given(seed=st.integers(0, 2**32 - 1), dimension=st.integers(1, 6))
def test_values_are_those_of_the_dual(criterion, seed, dimension):
    columns, weights = problem(seed, dimension, dimension + 5)
    assert factorise(criterion, columns, weights).value() == pytest.approx(
        dual(criterion, columns, weights), abs=1e-9
    )


@pytest.mark.parametrize("criterion", CRITERIA)
def test_curvature_of_repeated_eigenvalues_is_the_limit_of_divided_differences(criterion):
    columns = np.hstack([np.eye(3), 0.3 * np.ones((3, 2))])
    weights = np.array([1 / 3, 1 / 3, 1 / 3, 1e-9, 1e-9])
    expected = -central_difference(
        lambda u: factorise(criterion, columns, u).gains(columns), weights, 1e-10
    )
    curvature = factorise(criterion, columns, weights).curvature(columns)
    np.testing.assert_allclose(curvature, expected, rtol=3e-2, atol=1e-3)


@pytest.mark.parametrize("criterion", CRITERIA)
@given(seed=st.integers(0, 2**32 - 1), dimension=st.integers(1, 8))
def test_gains_average_to_one_on_the_simplex(criterion, seed, dimension):
    columns, weights = problem(seed, dimension, dimension + 5)
    gains = factorise(criterion, columns, weights).gains(columns)
    assert weights @ gains == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("criterion", CRITERIA)
@given(seed=st.integers(0, 2**32 - 1), dimension=st.integers(1, 8))
def test_gains_are_the_quadratic_forms_of_the_noise_root(criterion, seed, dimension):
    columns, weights = problem(seed, dimension, dimension + 5)
    iterate = factorise(criterion, columns, weights)
    whitened = np.linalg.solve(iterate.noise_root(), columns)
    np.testing.assert_allclose(np.square(whitened).sum(axis=0), iterate.gains(columns), rtol=1e-10)


def test_noise_roots_are_those_of_the_design_page():
    columns, weights = problem(3, 4, 9)
    gram = (columns * weights) @ columns.T
    root = np.real(linalg.sqrtm(gram))
    expected = {"logdet": 4 * gram, "trace": np.trace(root) * root}
    for criterion in CRITERIA:
        factor = factorise(criterion, columns, weights).noise_root()
        np.testing.assert_allclose(factor @ factor.T, expected[criterion], rtol=1e-10)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_singular_designs_are_raised_to_the_floor(criterion):
    columns = np.array([[1.0, 0.0, 1.0], [0.0, 1e-30, 0.0]])
    iterate = factorise(criterion, columns, np.array([0.5, 0.25, 0.25]))
    root = iterate.noise_root()
    assert np.isfinite(iterate.gains(columns)).all()
    # L goes with ρ = √λ for logdet and with √ρ for trace.
    power = {"logdet": 1.0, "trace": 0.5}[criterion]
    singular = np.linalg.svd(root, compute_uv=False)
    assert singular[1] == pytest.approx(ROOT_FLOOR**power * singular[0], rel=1e-6)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("share", [0.1, 10.0])
def test_both_ways_to_factorise_agree(criterion, share, monkeypatch):
    """On either side of the condition at which the product is no longer formed."""
    rng = np.random.default_rng(1)
    scales = np.array([1.0, 0.3, np.sqrt(share * PRODUCT_CONDITION)])
    columns, weights = scales[:, None] * rng.normal(size=(3, 40)), np.full(40, 1 / 40)
    quick = factorise(criterion, columns, weights, rough=True).gains(columns)
    monkeypatch.setattr(criteria, "PRODUCT_CONDITION", 1.0)
    slow = factorise(criterion, columns, weights)
    assert not slow.raised
    np.testing.assert_allclose(quick, slow.gains(columns), rtol=1e-8)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_rough_iterates_say_that_they_raised_a_direction(criterion):
    columns = np.diag([1.0, 1e-20])
    weights = np.array([0.5, 0.5])
    assert factorise(criterion, columns, weights, rough=True).raised
    assert not factorise(criterion, np.eye(2), weights, rough=True).raised


@pytest.mark.parametrize("criterion", CRITERIA)
def test_whitened_columns_and_condition_are_those_of_the_product(criterion):
    columns, weights = problem(5, 4, 11)
    gram = (columns * weights) @ columns.T
    iterate = factorise(criterion, columns, weights)
    whitened = iterate.whiten(columns)
    np.testing.assert_allclose(
        whitened.T @ whitened, columns.T @ np.linalg.solve(gram, columns), rtol=1e-9, atol=1e-9
    )
    assert iterate.condition() == pytest.approx(np.linalg.cond(gram), rel=1e-9)
