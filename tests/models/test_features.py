"""Bases: norms, eigenfunctions in closed form, and the Gaussian process that they stand for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

from cloakgp.models.features import MOST_DIMENSIONS, BinBasis, EigenBasis, InputBox
from cloakgp.models.latent import NotPositiveDefiniteError

LINE = InputBox((-2.0,), (6.0,))
BOX = InputBox((0.0, 10.0), (1.0, 40.0))


@pytest.mark.parametrize("wanted", [1, 12])
@pytest.mark.parametrize(
    ("kernel", "box"),
    [
        (ConstantKernel(9.0) * RBF(1.5), LINE),
        (Matern(3.0, nu=1.5) + WhiteKernel(5.0), LINE),
        (DotProduct(), LINE),
        (RBF([0.4, 12.0]), BOX),
    ],
)
def test_features_are_never_longer_than_one(kernel, box, wanted):
    basis = EigenBasis(kernel=kernel, box=box, wanted=wanted)
    lo, hi = np.asarray(box.lo), np.asarray(box.hi)
    X = lo + np.random.default_rng(0).uniform(-1, 2, size=(500, len(lo))) * (hi - lo)
    features = basis.features(X)
    assert features.shape == (500, basis.count)
    assert basis.count <= wanted
    lengths = np.linalg.norm(features, axis=1)
    assert lengths.max() <= 1 + 1e-14
    assert lengths.max() > 0.95


@pytest.mark.parametrize(("kernel", "box"), [(RBF(1.5), LINE), (RBF([0.5, 15.0]), BOX)])
def test_all_eigenfunctions_together_are_the_kernel(kernel, box):
    basis = EigenBasis(kernel=ConstantKernel(7.0) * kernel, box=box, wanted=300)
    lo, hi = np.asarray(box.lo), np.asarray(box.hi)
    X = lo + np.random.default_rng(1).uniform(size=(40, len(lo))) * (hi - lo)
    features = basis.features(X)
    rebuilt = features @ basis.weight_covariance @ features.T
    np.testing.assert_allclose(rebuilt, basis.kernel(X), atol=7e-3)
    assert basis.residual_variance(X).max() < 7e-3
    np.testing.assert_allclose(basis.residual_covariance(X), basis.kernel(X) - rebuilt, atol=1e-9)


def test_eigenvalues_of_a_linear_kernel_in_closed_form():
    """1 + x x' on [−1, 1] has the eigenfunctions 1 and x, with E 1 = 1 and E x² = 1/3."""
    basis = EigenBasis(kernel=DotProduct(1.0), box=InputBox((-1.0,), (1.0,)), wanted=5)
    assert basis.count == 2
    prior = np.diag(basis.weight_covariance)
    # P = diag(c² √λ): its ratio is that of the roots, up to the quadrature's 1/n.
    assert prior[1] / prior[0] == pytest.approx(np.sqrt(1 / 3), rel=1e-2)
    X = np.linspace(-1, 1, 5)[:, None]
    first, second = basis.features(X).T
    assert np.ptp(first) < 1e-9
    np.testing.assert_allclose(second / second[-1], X[:, 0], atol=1e-9)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=6)
def test_what_is_left_out_is_what_conditioning_leaves(seed):
    """Prior variance splits into that of the features and the rest, everywhere."""
    rng = np.random.default_rng(seed)
    basis = EigenBasis(kernel=Matern(1.0, nu=1.5), box=LINE, wanted=int(rng.integers(1, 20)))
    X = rng.uniform(-3, 7, size=(20, 1))
    features = basis.features(X)
    explained = np.einsum("ni,ij,nj->n", features, basis.weight_covariance, features)
    np.testing.assert_allclose(
        explained + basis.residual_variance(X), 1.0, atol=1e-9 + 1e-2 / basis.count
    )
    np.testing.assert_allclose(
        np.maximum(np.diag(basis.residual_covariance(X)), 0), basis.residual_variance(X), atol=1e-9
    )


def test_inputs_outside_are_clipped():
    for basis in (
        EigenBasis(kernel=RBF(), box=LINE, wanted=4),
        BinBasis(kernel=RBF(), box=LINE, bins=(4,)),
    ):
        outside, ends = np.array([[-99.0], [99.0]]), np.array([[-2.0], [6.0]])
        assert np.array_equal(basis.features(outside), basis.features(ends))
        assert np.array_equal(basis.residual_variance(outside), basis.residual_variance(ends))


def test_bins_are_numpys():
    basis = BinBasis(kernel=RBF([1.0, 9.0]), box=BOX, bins=(3, 5))
    X = np.array(BOX.lo) + np.random.default_rng(2).uniform(size=(500, 2)) * [1.0, 30.0]
    features = basis.features(X)
    assert set(np.unique(features)) == {0.0, 1.0}
    assert (features.sum(axis=1) == 1).all()
    expected, _, _ = np.histogram2d(*X.T, bins=(3, 5), range=((0, 1), (10, 40)))
    assert np.array_equal(features.sum(axis=0), expected.ravel())
    near = basis.middles[features.argmax(axis=1)]
    assert (np.abs(X - near) <= np.array([1 / 6, 3]) + 1e-12).all()


def test_bins_spread_as_the_kernel_says():
    basis = BinBasis(kernel=ConstantKernel(4.0) * RBF(1.0), box=LINE, bins=(4,))
    X = np.array([[-1.0], [0.0]])
    expected = 4.0 * (1 - np.exp(-(np.array([0.0, 1.0]) ** 2)))
    np.testing.assert_allclose(basis.residual_variance(X), expected, atol=1e-12)
    np.testing.assert_allclose(basis.residual_covariance(X), np.diag(expected), atol=1e-12)
    np.testing.assert_allclose(basis.weight_covariance, basis.kernel(basis.middles))


def test_points_of_reference_fill_the_box():
    assert np.array_equal(LINE.reference, InputBox((-2.0,), (6.0,)).reference)
    assert LINE.reference[[0, -1]].ravel().tolist() == [-2.0, 6.0]
    points = BOX.reference
    assert (points >= BOX.lo).all()
    assert (points <= BOX.hi).all()
    assert {(0.0, 10.0), (0.0, 40.0), (1.0, 10.0), (1.0, 40.0)} <= set(map(tuple, points))
    np.testing.assert_allclose(points.mean(axis=0), [0.5, 25.0], rtol=0.02)
    assert len(InputBox((0.0,) * 8, (1.0,) * 8).reference) == 512


@pytest.mark.parametrize(
    "bounds",
    [
        None,
        "ages",
        [],
        [(1.0, 0.0)],
        [(0.0, np.inf)],
        [(0.0, np.nan)],
        [(-1e308, 1e308)],
        [(0, 1, 2)],
        [("a", "b")],
        [(0, 1), (2,)],
        3,
    ],
)
def test_boxes_that_make_no_sense(bounds):
    with pytest.raises(ValueError, match="input_bounds"):
        InputBox.checked(bounds)


def test_boxes_for_a_table():
    assert InputBox.checked((0, 1), n_inputs=3).hi == (1.0, 1.0, 1.0)
    assert InputBox.checked(np.array([[0, 1]]), n_inputs=1).n_inputs == 1
    with pytest.raises(ValueError, match="3 columns"):
        InputBox.checked([(0, 1)], n_inputs=3)
    with pytest.raises(ValueError, match="pairs"):
        InputBox.checked((0, 1))


def test_boxes_have_no_more_dimensions_than_files_may():
    assert InputBox.checked((0, 1), n_inputs=MOST_DIMENSIONS).n_inputs == MOST_DIMENSIONS
    for bounds, inputs in (((0, 1), MOST_DIMENSIONS + 1), ([(0, 1)] * (MOST_DIMENSIONS + 1), None)):
        with pytest.raises(ValueError, match="2048 inputs at most"):
            InputBox.checked(bounds, n_inputs=inputs)


class Negative(RBF):
    """No covariance at all."""

    def __call__(self, X, Y=None, eval_gradient=False):
        return -2.0 * np.asarray(super().__call__(X, Y, eval_gradient))


def test_kernels_that_are_none():
    with pytest.raises(NotPositiveDefiniteError):
        _ = EigenBasis(kernel=Negative(), box=LINE, wanted=2).count
    with pytest.raises(ValueError, match="vanishes"):
        _ = EigenBasis(kernel=ConstantKernel(0.0) * RBF(), box=LINE, wanted=2).count
