"""The Gibbs kernel against its closed forms, scikit-learn's RBF and finite differences."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import approx_fprime
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from cloakgp.models import ExactPrior
from cloakgp.models.kernels.gibbs import MOST_CENTRES, GibbsKernel, gibbs_kernel
from cloakgp.models.latent import check_positive_definite
from cloakgp.release import Release
from cloakgp.release.io.kernel_tree import kernel_from_tree, kernel_to_tree

FREE = {
    "length_scale_bounds": (1e-3, 1e3),
    "longest_bounds": (1e-3, 1e3),
    "crowd_bounds": (1e-3, 1e3),
}


@pytest.fixture
def rows(rng):
    """Two inputs; many rows near the origin, few elsewhere."""
    return np.vstack([rng.normal(size=(30, 2)), rng.uniform(-8, 8, size=(6, 2))])


def of_rows(rows, **changed):
    parameters = {"bandwidth": 1.0, "longest": 9.0, "crowd": 3.0, "radius": 1.5}
    return GibbsKernel(rows, **parameters | changed)


@pytest.mark.parametrize("inputs", [1, 2, 5])
def test_where_the_lengthscale_is_constant_it_is_the_rbf(rng, inputs):
    X, Z = rng.normal(size=(9, inputs)), rng.normal(size=(4, inputs))
    scales = rng.uniform(0.5, 2.0, size=inputs)
    nobody = GibbsKernel(np.full((1, inputs), 1e6), longest=3.0, length_scale=scales)
    np.testing.assert_allclose(nobody(X, Z), RBF(3.0 * scales)(X, Z), rtol=1e-12)
    np.testing.assert_allclose(nobody(X), RBF(3.0 * scales)(X), rtol=1e-12)


def test_of_one_input_it_is_gibbs_s_formula(rng):
    X, Z = rng.uniform(-3, 3, size=(8, 1)), rng.uniform(-3, 3, size=(5, 1))
    kernel = GibbsKernel(rng.normal(size=(20, 1)), longest=4.0, crowd=7.0, length_scale=1.3)
    expected = np.empty((8, 5))
    for i, j in np.ndindex(8, 5):
        one, other = (1.3 * kernel.lengthscale(x[None])[0] for x in (X[i], Z[j]))
        total = one**2 + other**2
        apart = X[i, 0] - Z[j, 0]
        expected[i, j] = np.sqrt(2 * one * other / total) * np.exp(-(apart**2) / total)
    np.testing.assert_allclose(kernel(X, Z), expected, rtol=1e-12)


def test_of_several_inputs_it_is_paciorek_and_schervish_s_formula(rows):
    """With the matrices themselves: determinants and a quadratic form."""
    kernel = of_rows(rows, length_scale=(0.6, 2.5))
    X = rows[::5]
    matrices = [np.diag((r * np.array([0.6, 2.5])) ** 2) for r in kernel.lengthscale(X)]
    expected = np.empty((len(X), len(X)))
    for i, j in np.ndindex(expected.shape):
        middle, apart = (matrices[i] + matrices[j]) / 2, X[i] - X[j]
        dets = [np.linalg.det(one) for one in (matrices[i], matrices[j], middle)]
        expected[i, j] = (dets[0] * dets[1]) ** 0.25 * dets[2] ** -0.5
        # Theirs is exp(−Q) with Q = dᵀ Σ⁻¹ d; Gibbs's and the RBF's lengthscales make it Q/2.
        expected[i, j] *= np.exp(-apart @ np.linalg.solve(middle, apart) / 2)
    np.testing.assert_allclose(kernel(X), expected, rtol=1e-10)


def test_the_lengthscale_is_the_papers_formula(rng):
    rows = rng.normal(size=(25, 1))
    kernel = GibbsKernel(rows, bandwidth=0.4, longest=50.0, crowd=6.0)
    x = 0.3
    density = np.sum(np.exp(-((x - rows) ** 2) / (2 * 0.4**2)) / (0.4 * np.sqrt(2 * np.pi)))
    assert kernel.lengthscale(np.array([[x]]))[0] == pytest.approx(1 / (1 / 50 + density / 6))


def test_near_outliers_the_amended_lengthscale_is_longer(rows):
    plain, amended = of_rows(rows, radius=0.0), of_rows(rows, radius=2.0)
    assert (amended.lengthscale(rows) >= plain.lengthscale(rows)).all()
    assert (amended.lengthscale(rows) > 1.5 * plain.lengthscale(rows)).any()


@given(
    arrays(np.float64, (12, 2), elements=st.floats(-20, 20)),
    st.floats(0.05, 50),
    st.floats(0.05, 50),
    st.floats(0.0, 5.0),
)
def test_it_is_positive_definite(X, longest, crowd, radius):
    kernel = GibbsKernel(X[:8], bandwidth=2.0, longest=longest, crowd=crowd, radius=radius)
    covariance = kernel(X, X.copy())
    check_positive_definite(kernel, covariance)
    np.testing.assert_allclose(covariance, covariance.T, rtol=1e-12)
    np.testing.assert_allclose(np.diag(covariance), kernel.diag(X), rtol=1e-12)
    assert np.linalg.eigvalsh(covariance).min() > -1e-12
    assert (covariance <= 1 + 1e-12).all()


@pytest.mark.parametrize("length_scale", [1.7, (0.6, 2.5)])
@pytest.mark.parametrize("wrap", ["alone", "composed"])
def test_gradients_are_finite_differences(rows, length_scale, wrap):
    kernel = of_rows(rows, length_scale=length_scale, **FREE)
    if wrap == "composed":
        kernel = ConstantKernel(3.0) * kernel + WhiteKernel(0.2)
    X = rows[::4]
    _, gradient = kernel(X, eval_gradient=True)
    numeric = approx_fprime(
        kernel.theta, lambda theta: kernel.clone_with_theta(theta)(X).ravel(), 1e-6
    )
    assert gradient.shape == (len(X), len(X), len(kernel.theta))
    np.testing.assert_allclose(gradient.reshape(numeric.shape), numeric, atol=5e-5)
    assert (np.abs(numeric).max(axis=0) > 1e-2).all()


def test_only_free_hyperparameters_have_gradients(rows):
    X = rows[:6]
    assert of_rows(rows)(X, eval_gradient=True)[1].shape == (6, 6, 1)
    assert of_rows(rows, length_scale=(1.0, 2.0))(X, eval_gradient=True)[1].shape == (6, 6, 2)
    fixed = of_rows(rows, length_scale_bounds="fixed")
    assert fixed(X, eval_gradient=True)[1].shape == (6, 6, 0)
    with pytest.raises(ValueError, match="leave Y out"):
        fixed(X, X, eval_gradient=True)


def test_scaling_the_factor_is_scaling_both_others(rows):
    """Why crowd and longest are fixed by default."""
    scaled = of_rows(rows, longest=18.0, crowd=6.0)
    np.testing.assert_allclose(of_rows(rows, length_scale=2.0)(rows), scaled(rows), rtol=1e-12)


def test_it_clones_compares_and_shows_itself(rows):
    kernel = of_rows(rows, length_scale=(1.0, 2.0), **FREE)
    assert clone(kernel) == kernel
    assert kernel != of_rows(rows)
    assert kernel != of_rows(rows[:-1], length_scale=(1.0, 2.0), **FREE)
    assert kernel != RBF()
    moved = kernel.clone_with_theta(kernel.theta + 0.1)
    np.testing.assert_allclose(moved.theta, kernel.theta + 0.1)
    assert kernel.crowd == 3.0
    assert moved.crowd == pytest.approx(3.0 * np.exp(0.1))
    assert len(kernel.bounds) == len(kernel.theta) == 4
    assert "36 centres" in repr(kernel)
    assert len(repr(kernel)) < 150
    assert not kernel.is_stationary()


def test_scikit_learn_fits_it(rows, rng):
    kernel = ConstantKernel(1.0) * of_rows(rows) + WhiteKernel(0.1)
    y = np.sin(rows).sum(axis=1) + 0.1 * rng.normal(size=len(rows))
    fitted = GaussianProcessRegressor(kernel).fit(rows, y)
    before = GaussianProcessRegressor(kernel, optimizer=None).fit(rows, y)
    assert fitted.log_marginal_likelihood_value_ > before.log_marginal_likelihood_value_


def test_a_prior_with_it_is_scikit_learns_regression(rows, rng):
    kernel = ConstantKernel(2.0) * of_rows(rows)
    y, X_query = rng.normal(size=len(rows)), rng.normal(size=(5, 2))
    oracle = GaussianProcessRegressor(kernel, alpha=0.3, optimizer=None).fit(rows, y)
    prior = ExactPrior(kernel=kernel, noise_variance=0.3, mean=0.0)
    np.testing.assert_allclose(
        prior.cloaking_matrix(X_query, rows) @ y, oracle.predict(X_query), atol=1e-9
    )


@pytest.mark.parametrize("inputs", [1, 2, 3])
def test_it_becomes_a_tree_and_comes_back(rng, inputs):
    X = rng.normal(size=(14, inputs))
    kernel = ConstantKernel(2.0) * GibbsKernel(
        X,
        bandwidth=rng.uniform(1, 2, size=inputs),
        longest=9.0,
        crowd=3.0,
        radius=rng.uniform(0, 2, size=inputs),
        weights=np.arange(14.0),
        length_scale=rng.uniform(1, 2, size=inputs),
    )
    tree = json.loads(json.dumps(kernel_to_tree(kernel)))
    back = kernel_from_tree(tree, classes=(GibbsKernel,))
    assert back(X).tobytes() == kernel(X).tobytes()
    assert json.dumps(kernel_to_tree(back)) == json.dumps(tree)
    assert back.k2 == kernel.k2
    np.testing.assert_array_equal(back.theta, kernel.theta)


def test_a_release_with_it_is_saved_loaded_and_learned_from(rows, rng, make_release, tmp_path):
    kernel = ConstantKernel(1.0) * of_rows(rows)
    prior = ExactPrior(kernel=kernel, noise_variance=0.2, mean=0.0)
    release = make_release(prior, rows, np.sin(rows[:, 0]), noise_sd=0.05)
    release.save(tmp_path / "gibbs.cloak")
    loaded = Release.load(tmp_path / "gibbs.cloak", kernels=(GibbsKernel,))
    X_query = rng.normal(size=(7, 2))
    np.testing.assert_array_equal(loaded.predict(X_query), release.predict(X_query))
    learned = loaded.learn()
    assert np.isfinite(learned.predict(X_query)).all()
    assert not np.array_equal(learned.predict(X_query), loaded.predict(X_query))


@pytest.mark.parametrize(
    "changed",
    [
        {"length_scale": -1.0},
        {"length_scale": (1.0, 2.0, 3.0)},
        {"length_scale": np.nan},
        {"longest": 0.0},
        {"bandwidth": -1.0},
    ],
)
def test_parameters_that_make_no_sense_are_refused_when_used(rows, changed):
    with pytest.raises(ValueError, match=r"positive"):
        of_rows(rows, **changed)(rows)


def test_many_rows_are_stood_for_by_centres(rng):
    X = rng.normal(size=(3 * MOST_CENTRES, 1))
    kernel = gibbs_kernel(X, longest=10.0, crowd=300.0, bandwidth=0.5)
    assert len(kernel.centres) == MOST_CENTRES
    assert kernel.weights.sum() == len(X)
    every = GibbsKernel(X, longest=10.0, crowd=300.0, bandwidth=0.5)
    places = np.linspace(-3.0, 3.0, 30)[:, None]
    np.testing.assert_allclose(kernel.lengthscale(places), every.lengthscale(places), rtol=0.02)
