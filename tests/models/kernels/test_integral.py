"""The integral kernel against quadrature, finite differences, scikit-learn's RBF, and samples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import integrate
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from cloakgp.models import ExactPrior
from cloakgp.models.kernels.integral import IntegralRBF, points_as_boxes
from cloakgp.release.io.kernel_tree import kernel_from_tree, kernel_to_tree


def boxes_of(rng, count, dimensions, *, spread=4.0):
    """Boxes of all sizes, some of them points, some of them flat."""
    lower = rng.uniform(-spread, spread, size=(count, dimensions))
    widths = 10.0 ** rng.uniform(-6, 1, size=(count, dimensions))
    widths[rng.uniform(size=widths.shape) < 0.2] = 0.0
    return np.hstack([lower, lower + widths])


def test_integrals_of_the_papers_in_two_dimensions():
    """k_FF and k_Ff are volumes times averages: against four- and two-fold quadrature."""
    scales = np.array([0.8, 2.0])
    one, other, point = np.array([0.0, -1.0, 1.5, 2.0]), np.array([1.0, 0.5, 3.0, 1.0]), [2.0, 0.3]

    def bell(*z):
        return np.exp(-np.square(np.array(z) / scales).sum() / 2)

    sides = [[one[0], one[2]], [one[1], one[3]], [other[0], other[2]], [other[1], other[3]]]
    k_FF, _ = integrate.nquad(
        lambda u, v, s, t: bell(u - s, v - t), sides, opts={"epsabs": 1e-7, "epsrel": 1e-7}
    )
    k_Ff, _ = integrate.nquad(lambda u, v: bell(u - point[0], v - point[1]), sides[:2])
    kernel = IntegralRBF(scales)
    volumes = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    found = kernel(one[None], np.vstack([other, points_as_boxes(np.array([point]))]))
    assert found[0, 0] * volumes[0] * volumes[1] == pytest.approx(k_FF, rel=1e-6)
    assert found[0, 1] * volumes[0] == pytest.approx(k_Ff, rel=1e-8)


@pytest.mark.parametrize("scales", [0.7, [0.7], [0.5, 2.0, 3.0]])
def test_points_have_scikit_learns_rbf(rng, scales):
    X, Y = rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
    ours, theirs = IntegralRBF(scales), RBF(scales)
    np.testing.assert_allclose(
        ours(points_as_boxes(X), points_as_boxes(Y)), theirs(X, Y), rtol=1e-13
    )
    found, slopes = ours(points_as_boxes(X), eval_gradient=True)
    expected, expected_slopes = theirs(X, eval_gradient=True)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    np.testing.assert_allclose(slopes, expected_slopes, rtol=1e-12, atol=1e-16)
    np.testing.assert_array_equal(ours.theta, theirs.theta)
    np.testing.assert_array_equal(ours.bounds, theirs.bounds)


@given(seed=st.integers(0, 2**32 - 1), dimensions=st.integers(1, 3), power=st.floats(-8, -3))
def test_boxes_shrink_to_points(seed, dimensions, power):
    """The difference is of the order of the width: the limit is continuous."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(5, dimensions))
    width = 10.0**power
    boxes = np.hstack([X - width / 2, X + width / 2])
    np.testing.assert_allclose(IntegralRBF()(boxes), RBF()(X), atol=dimensions * width)


@pytest.mark.parametrize(
    "kernel",
    [
        IntegralRBF(1.3),
        IntegralRBF([0.4, 2.5]),
        ConstantKernel(3.0) * IntegralRBF([0.4, 2.5]) + WhiteKernel(0.1),
    ],
)
def test_gradients_against_finite_differences(rng, kernel):
    boxes = boxes_of(rng, 12, 2)
    _, slopes = kernel(boxes, eval_gradient=True)
    assert slopes.shape == (12, 12, kernel.n_dims)
    for index in range(kernel.n_dims):
        step = np.zeros(kernel.n_dims)
        step[index] = 1e-6
        ends = [kernel.clone_with_theta(kernel.theta + sign * step)(boxes) for sign in (1, -1)]
        np.testing.assert_allclose(slopes[..., index], (ends[0] - ends[1]) / 2e-6, atol=1e-8)


def test_fixed_lengthscales_have_no_gradient(rng):
    kernel = IntegralRBF(1.3, length_scale_bounds="fixed")
    _, slopes = kernel(boxes_of(rng, 3, 2), eval_gradient=True)
    assert slopes.shape == (3, 3, 0)
    assert kernel.theta.size == 0


@given(
    seed=st.integers(0, 2**32 - 1),
    dimensions=st.integers(1, 4),
    scale=st.floats(-2, 3).map(lambda power: 10.0**power),
)
def test_positive_semidefinite_with_the_right_diagonal(seed, dimensions, scale):
    boxes = boxes_of(np.random.default_rng(seed), 25, dimensions)
    kernel = IntegralRBF(scale)
    covariance = kernel(boxes)
    np.testing.assert_array_equal(covariance, covariance.T)
    np.testing.assert_allclose(kernel.diag(boxes), np.diag(covariance), rtol=1e-13)
    assert np.linalg.eigvalsh(covariance).min() > -1e-13 * len(boxes)
    assert (covariance >= 0).all()
    assert (covariance <= 1 + 1e-15).all()


@given(
    lower=arrays(np.float64, 2, elements=st.floats(-50, 50)),
    widths=arrays(np.float64, 2, elements=st.floats(1e-3, 50)),
    share=st.floats(0.01, 0.99),
)
def test_the_average_over_a_box_is_that_over_its_parts(lower, widths, share):
    """Cut a box in two: its average is the weighted one of theirs, so covariances add up too."""
    upper, cut = lower + widths, lower + share * widths
    whole = np.concatenate([lower, upper])
    parts = [
        np.array([lower[0], lower[1], cut[0], upper[1]]),
        np.array([cut[0], lower[1], upper[0], upper[1]]),
    ]
    others = np.array([[0.0, 0.0, 0.0, 0.0], [-1.0, 2.0, 4.0, 2.5], whole])
    kernel = IntegralRBF([1.5, 0.7])
    weight = (cut[0] - lower[0]) / widths[0]
    left, right = kernel(np.array(parts), others)
    np.testing.assert_allclose(
        weight * left + (1 - weight) * right, kernel(whole[None], others)[0], rtol=1e-7, atol=1e-14
    )


def test_integrating_a_sample_gives_the_covariance(rng):
    """Averages of many drawn functions over two intervals and at a point."""
    grid = np.linspace(0, 6, 121)
    root = np.linalg.cholesky(RBF(1.2)(grid[:, None]) + 1e-10 * np.eye(121))
    draws = root @ rng.normal(size=(121, 20_000))
    means = np.array(
        [
            integrate.simpson(draws[:41], x=grid[:41], axis=0) / 2,
            integrate.simpson(draws[60:], x=grid[60:], axis=0) / 3,
            draws[50],
        ]
    )
    boxes = np.array([[0.0, 2.0], [3.0, 6.0], [2.5, 2.5]])
    # Sds of sample covariances of variances of at most 1 are at most √(2/20000) = 0.01.
    np.testing.assert_allclose(means @ means.T / 20_000, IntegralRBF(1.2)(boxes), atol=0.045)


def test_in_a_prior_and_in_a_file(rng):
    kernel = ConstantKernel(2.0) * IntegralRBF([0.4, 2.5])
    boxes = boxes_of(rng, 6, 2)
    prior = ExactPrior(kernel=kernel, noise_variance=0.5, mean=0.0)
    expected = 2.0 * IntegralRBF([0.4, 2.5])(boxes)
    np.testing.assert_allclose(
        prior.cloaking_matrix(boxes, boxes), np.linalg.solve(expected + 0.5 * np.eye(6), expected).T
    )
    again = kernel_from_tree(kernel_to_tree(kernel), classes=(IntegralRBF,))
    np.testing.assert_array_equal(again(boxes), kernel(boxes))
    assert repr(clone(kernel)) == "1.41**2 * IntegralRBF(length_scale=[0.4, 2.5])"
    assert kernel.is_stationary()
    assert repr(IntegralRBF(2.0)) == "IntegralRBF(length_scale=2)"


@pytest.mark.parametrize(
    ("X", "Y", "scale", "complaint"),
    [
        ([[0.0, 1.0, 2.0]], None, 1.0, "even number"),
        ([[1.0, 0.0]], None, 1.0, "upper corner"),
        ([[np.nan, 0.0]], None, 1.0, "NaN or infinity"),
        ([[0.0, np.inf]], None, 1.0, "NaN or infinity"),
        ([[0.0, 0.0, 1.0, 1.0]], [[0.0, 1.0]], 1.0, "2 dimensions in X and 1 in Y"),
        ([[0.0, 1.0]], None, [1.0, 2.0], "length_scale"),
    ],
)
def test_what_is_no_box_is_refused(X, Y, scale, complaint):
    with pytest.raises(ValueError, match=complaint):
        IntegralRBF(scale)(np.array(X), None if Y is None else np.array(Y))
    if Y is None:
        with pytest.raises(ValueError, match=complaint):
            IntegralRBF(scale).diag(np.array(X))


def test_points_are_boxes_of_no_width():
    assert points_as_boxes([[1, 5], [2, 6]]).tolist() == [
        [1.0, 5.0, 1.0, 5.0],
        [2.0, 6.0, 2.0, 6.0],
    ]
    for X, complaint in (
        ([1.0, 2.0], "X must have two dimensions"),
        ([["a"]], "X has entries that are no numbers"),
        ([[np.nan]], "X contains NaN"),
    ):
        with pytest.raises(ValueError, match=complaint):
            points_as_boxes(X)


def test_gradients_go_without_other_boxes():
    with pytest.raises(ValueError, match="Gradient"):
        IntegralRBF()(np.zeros((1, 2)), np.zeros((1, 2)), eval_gradient=True)


def test_no_boxes_have_covariances_of_no_rows():
    kernel = IntegralRBF(1.0)
    assert kernel(np.empty((0, 2)), np.array([[0.0, 1.0]])).shape == (0, 1)
