"""Newton steps against closed forms of small convex problems."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp.design.interior_point import newton_step


@pytest.mark.parametrize("start", [1e-3, 0.3, 1.0])
def test_a_separable_problem_is_solved_in_closed_form(start):
    """min Σ −a_j log u_j + b_j u_j + u_j has u_j = a_j / (1 + b_j), and 0 where a_j = 0."""
    a, b = np.array([0.5, 2.0, 0.0, 1e-3]), np.array([0.0, 1.0, 0.5, 0.0])
    weights, slack = np.full(4, start), np.full(4, 0.5)
    for _ in range(40):
        weights, slack = newton_step(
            weights, slack, gains=a / weights - b, curvature=np.diag(a / weights**2)
        )
        assert (weights > 0).all()
        assert (slack > 0).all()
    np.testing.assert_allclose(weights, a / (1 + b), atol=1e-9)
    np.testing.assert_allclose(slack[2], 1.5, rtol=1e-6)


def test_curvature_that_rounding_made_indefinite_is_borne():
    curvature = np.array([[1.0, 1.0], [1.0, 1.0 - 1e-9]])
    weights, slack = newton_step(
        np.full(2, 0.5), np.full(2, 1e-14), gains=np.ones(2), curvature=curvature
    )
    assert np.isfinite(weights).all()
    assert (weights > 0).all()
    assert (slack > 0).all()
