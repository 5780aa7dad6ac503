"""The bound by diagonal dominance: brute force over changed rows, and where the paper's fails."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF

from cloakgp.privacy.varah import NotDominantError, diagonal_dominance, dominance_bound


def kernel(X, Z, *, signal_variance, lengthscale):
    return signal_variance * RBF(lengthscale)(X, Z)


def weights(X, y, Z, *, signal_variance, lengthscale, noise_variance):
    """α of the subset of regressors, by a plain solve."""
    k = {"signal_variance": signal_variance, "lengthscale": lengthscale}
    crossed = kernel(Z, X, **k)
    return np.linalg.solve(noise_variance * kernel(Z, Z, **k) + crossed @ crossed.T, crossed @ y)


@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
def test_varahs_bound(seed, size):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(size, size)) + np.diag(rng.choice([-1, 1], size) * 2.0 * size)
    least = diagonal_dominance(matrix).min()
    assume(least > 0)
    assert np.linalg.norm(np.linalg.inv(matrix), np.inf) <= (1 + 1e-12) / least


@given(st.integers(0, 2**32 - 1))
def test_no_changed_row_moves_predictions_beyond_the_bound(seed):
    rng = np.random.default_rng(seed)
    inputs, rows = int(rng.integers(1, 3)), int(rng.integers(1, 9))
    Z = np.array([[6.0 * n] * inputs for n in range(int(rng.integers(1, 5)))])
    prior = {
        "signal_variance": 10.0 ** rng.uniform(-1, 1),
        "lengthscale": rng.uniform(0.5, 1.3),
        "noise_variance": 10.0 ** rng.uniform(-1, 2),
    }
    try:
        bound = dominance_bound(Z, **prior, rows=rows, width=2.0)
    except NotDominantError:
        assume(False)
    # Rows at, and between, the inducing inputs, where they erode dominance most.
    places = np.vstack([Z, (Z[1:] + Z[:-1]) / 2, Z + rng.normal(size=Z.shape)])
    X = places[rng.integers(len(places), size=rows)]
    y = rng.choice([-1.0, 1.0], size=rows)
    queries = np.vstack([places, rng.uniform(-2, 20, size=(60, inputs))])
    k = {name: prior[name] for name in ("signal_variance", "lengthscale")}
    seen = kernel(queries, Z, **k)
    base = weights(X, y, Z, **prior)
    gram = prior["noise_variance"] * kernel(Z, Z, **k) + kernel(Z, X, **k) @ kernel(X, Z, **k)
    assert diagonal_dominance(gram).min() >= bound.dominance * (1 - 1e-9)
    assert np.abs(seen @ base).max() <= bound.largest_prediction * (1 + 1e-9)
    for place in places:
        for output in (-1.0, 1.0):
            moved_X, moved_y = X.copy(), y.copy()
            moved_X[0], moved_y[0] = place, output
            moved = weights(moved_X, moved_y, Z, **prior)
            assert np.abs(moved - base).max() <= bound.weight_move * (1 + 1e-9)
            assert np.abs(seen @ (moved - base)).max() <= bound.prediction_move * (1 + 1e-9)


def test_the_bound_is_within_a_small_factor_where_noise_is_large():
    """It is no vacuous one there: a brute force comes to more than a fifth of it."""
    prior = {"signal_variance": 1.0, "lengthscale": 1.0, "noise_variance": 1000.0}
    bound = dominance_bound([[0.0], [9.0]], **prior, rows=1, width=2.0)
    Z, at = np.array([[0.0], [9.0]]), np.array([[0.0]])
    here, there = (weights(np.array([[0.0]]), np.array([end]), Z, **prior) for end in (-1.0, 1.0))
    k = {"signal_variance": 1.0, "lengthscale": 1.0}
    moved = abs((kernel(at, Z, **k) @ (here - there)).item())
    assert 0.2 * bound.prediction_move < moved <= bound.prediction_move


def test_equation_11_holds_for_outputs_and_fails_for_inputs():
    """Supplement: Σ(α − α') ≤ Δ_y b(K⁻¹). One input moves, no output does: the right side is 0."""
    X, y, noise = np.array([[0.0], [5.0], [10.0]]), np.array([1.0, -1.0, 1.0]), 2.5
    K = RBF(1.0)(X) + noise * np.eye(3)
    assert (diagonal_dominance(K) > 0).all()
    b = 1 / diagonal_dominance(K).min()
    alpha = np.linalg.solve(K, y)

    changed_y = y.copy()
    changed_y[1] = 1.0
    moved = np.abs(alpha - np.linalg.solve(K, changed_y)).sum()
    assert moved <= 2.0 * b * (1 + 1e-12)

    changed_X = X.copy()
    changed_X[1] = 0.5
    K_changed = RBF(1.0)(changed_X) + noise * np.eye(3)
    assert (diagonal_dominance(K_changed) > 0).all()
    moved = np.abs(alpha - np.linalg.solve(K_changed, y)).sum()
    change_of_outputs = 0.0
    assert moved > 0.1 > change_of_outputs * b


def test_far_inducing_inputs_do_not_make_the_inverted_matrix_dominant():
    """Supplement: place Z so that the covariance is dominant. K_ZZ is; what is inverted is not."""
    prior = {"signal_variance": 1.0, "lengthscale": 1.0}
    Z, noise = np.array([[0.0], [2.0]]), 1.0
    assert (diagonal_dominance(kernel(Z, Z, **prior)) > 0.8).all()
    X = np.full((50, 1), 2.0)
    gram = noise * kernel(Z, Z, **prior) + kernel(Z, X, **prior) @ kernel(X, Z, **prior)
    assert diagonal_dominance(gram).min() < -4
    with pytest.raises(NotDominantError, match="50 rows"):
        dominance_bound(Z, **prior, noise_variance=noise, rows=50, width=2.0)


def test_more_rows_never_help_and_in_the_end_refuse():
    prior = {"signal_variance": 1.0, "lengthscale": 1.0, "noise_variance": 1.0, "width": 2.0}
    found = []
    for rows in (1, 10, 100, 1000, 10**7):
        try:
            found.append(dominance_bound([[0.0], [6.0]], **prior, rows=rows).prediction_move)
        except NotDominantError:
            found.append(math.inf)
    assert found == sorted(found)
    assert found[0] < math.inf
    assert found[-1] == math.inf


@pytest.mark.parametrize(
    "change",
    [
        {"signal_variance": 0.0},
        {"noise_variance": -1.0},
        {"rows": 0},
        {"width": math.inf},
        {"lengthscale": 0.0},
        {"lengthscale": math.nan},
    ],
)
def test_bad_settings(change):
    settings = {
        "signal_variance": 1.0,
        "lengthscale": 1.0,
        "noise_variance": 1.0,
        "rows": 2,
        "width": 2.0,
    } | change
    with pytest.raises(ValueError, match=next(iter(change))):
        dominance_bound([[0.0]], **settings)
