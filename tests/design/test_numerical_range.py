"""The cut-off decomposition against numpy's rank and against the matrix itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.design import numerical_range as numerical_range_module
from cloakgp.design.numerical_range import RANGE_TOLERANCE, numerical_range


@given(
    seed=st.integers(0, 2**32 - 1),
    rank=st.integers(1, 5),
    rows=st.integers(5, 12),
    columns=st.integers(5, 12),
    exponent=st.integers(-150, 150),
)
def test_it_holds_the_whole_of_a_low_rank_matrix(seed, rank, rows, columns, exponent):
    rng = np.random.default_rng(seed)
    left, _ = np.linalg.qr(rng.normal(size=(rows, rank)))
    right, _ = np.linalg.qr(rng.normal(size=(columns, rank)))
    scales = 10.0**exponent * np.sort(rng.uniform(0.1, 1.0, size=rank))[::-1]
    span = numerical_range((left * scales) @ right.T)
    np.testing.assert_allclose(span.scales, scales, rtol=1e-12)
    np.testing.assert_allclose(span.left.T @ span.left, np.eye(rank), atol=1e-13)
    np.testing.assert_allclose(span.right @ span.right.T, np.eye(rank), atol=1e-13)
    np.testing.assert_allclose(
        (span.left * span.scales) @ span.right, (left * scales) @ right.T, atol=1e-14 * scales[0]
    )


def test_rank_agrees_with_numpy_at_the_same_tolerance(rng):
    matrix = rng.normal(size=(30, 20)) * np.logspace(0, -14, 20)
    expected = np.linalg.matrix_rank(matrix, rtol=RANGE_TOLERANCE)
    assert 0 < expected < 20
    assert len(numerical_range(matrix).scales) == expected


@pytest.mark.parametrize(("share", "rank"), [(0.9, 1), (1.1, 2)])
def test_directions_are_kept_above_the_tolerance_only(share, rank):
    matrix = np.diag([3.0, 3.0 * share * RANGE_TOLERANCE])
    assert len(numerical_range(matrix).scales) == rank
    assert len(numerical_range(matrix, tolerance=share * RANGE_TOLERANCE / 10).scales) == 2


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (5, 3)])
def test_zeros_have_rank_zero(shape):
    span = numerical_range(np.zeros(shape))
    assert span.left.shape == (shape[0], 0)
    assert span.scales.shape == (0,)
    assert span.right.shape == (0, shape[1])


@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(1, 12),
    spread=st.floats(0, 16),
    exponent=st.sampled_from([-150, 0, 150]),
)
def test_wide_matrices_are_decomposed_as_by_a_library(seed, rows, spread, exponent):
    """On both sides of the condition at which products alone no longer do."""
    rng = np.random.default_rng(seed)
    left, _ = np.linalg.qr(rng.normal(size=(rows, rows)))
    matrix = 10.0**exponent * (left * np.logspace(0, -spread, rows)) @ rng.normal(size=(rows, 100))
    span = numerical_range(matrix)
    expected = np.linalg.svd(matrix, compute_uv=False)
    rank = len(span.scales)
    near = np.abs(np.log(expected / expected[0] / RANGE_TOLERANCE)) < 1e-3
    if not near.any():
        assert rank == np.count_nonzero(expected > RANGE_TOLERANCE * expected[0])
    np.testing.assert_allclose(span.scales, expected[:rank], rtol=0, atol=1e-13 * expected[0])
    np.testing.assert_allclose(span.right @ span.right.T, np.eye(rank), atol=1e-12)
    np.testing.assert_allclose(
        (span.left * span.scales) @ span.right,
        matrix,
        rtol=0,
        atol=(1e-13 + 10 * RANGE_TOLERANCE * (rank < rows)) * expected[0],
    )


def test_wide_well_conditioned_matrices_take_the_short_way(rng):
    matrix = rng.normal(size=(6, 400))
    assert numerical_range_module._well_conditioned(matrix) is not None
    assert numerical_range_module._well_conditioned(matrix[:, :6]) is None
    assert numerical_range_module._well_conditioned(np.zeros((2, 400))) is None
    matrix[-1] = matrix[0]
    assert numerical_range_module._well_conditioned(matrix) is None
