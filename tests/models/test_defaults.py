"""The prior of somebody who has seen no output."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import Matern, Product

from cloakgp.models import default_kernel, default_noise_variance, matern_kernel
from cloakgp.models.defaults import (
    default_latent_kernel,
    find_varying,
    input_scales,
    scales_by_block,
)


def three_parts(X, Z, *, width):
    """The covariance of level, line and curve, from their definitions."""
    centre, scale = X.mean(axis=0), X.std(axis=0)
    D = X.shape[1]
    left, right = (X - centre) / scale, (Z - centre) / scale
    distance = np.sqrt(np.square(left[:, None] - right[None]).sum(axis=2)) / (2 * np.sqrt(D))
    curve = (1 + np.sqrt(3) * distance) * np.exp(-np.sqrt(3) * distance)
    return width**2 * (0.25**2 + 0.1**2 * left @ right.T / D + 0.15**2 * curve)


@given(seed=st.integers(0, 2**32 - 1), inputs=st.integers(1, 3))
def test_the_default_is_a_level_a_line_and_a_curve(seed, inputs):
    rng = np.random.default_rng(seed)
    units = 10.0 ** rng.integers(-4, 5, size=inputs)
    X = (rng.standard_t(3, size=(12, inputs)) + 3) * units
    Z = X[:4] + rng.normal(size=(4, inputs)) * units
    kernel = default_kernel(X, width=40.0)
    np.testing.assert_allclose(kernel(X, Z), three_parts(X, Z, width=40.0), rtol=1e-9, atol=1e-6)
    # Over the rows themselves, each part varies as it says.
    variance = 40.0**2 * (0.25**2 + 0.1**2 + 0.15**2)
    assert kernel.diag(X).mean() == pytest.approx(variance)


def test_units_do_not_matter(rng):
    X = rng.uniform(size=(30, 2))
    units, origin = np.array([1e-3, 1e6]), np.array([5.0, -2e6])
    plain, other = default_kernel(X, width=2.0), default_kernel(X * units + origin, width=2e3)
    np.testing.assert_allclose(other(X * units + origin), 1e6 * plain(X), rtol=1e-6)


def test_the_order_of_rows_does_not_matter(rng):
    X = rng.uniform(size=(50, 2))
    one, other = (default_kernel(rows, width=2.0) for rows in (X, X[rng.permutation(50)]))
    np.testing.assert_allclose(one(X), other(X), rtol=1e-12)


@given(
    values=st.tuples(*[st.floats(-1e6, 1e6)] * 2),
    counts=st.tuples(st.integers(1, 50), st.integers(1, 50)),
)
def test_two_values_lie_half_their_distance_off(values, counts):
    column = np.repeat(values, counts)[:, None]
    [scale] = input_scales(column)
    if abs(values[1] - values[0]) <= 1e-10 * max(map(abs, values)):
        assert scale == pytest.approx(1e9 * max(abs(values[0]), 1.0))
    else:
        assert scale == pytest.approx(abs(values[1] - values[0]) / 2)


def test_more_values_have_their_standard_deviation(rng):
    X = rng.normal(size=(40, 3)) * [1.0, 1e-5, 1e7] + [0.0, 1.0, -1e8]
    np.testing.assert_allclose(input_scales(X), X.std(axis=0), rtol=1e-9)


@pytest.mark.parametrize("unit", [1e-250, 1e-200, 1e160, 1e250])
def test_scales_of_any_unit_are_neither_zero_nor_infinite(unit):
    column = np.array([[0.0], [1.0], [5.0], [2.0]])
    [scale] = input_scales(unit * column)
    assert scale == pytest.approx(unit * column.std(), rel=1e-9)


def test_many_inputs_of_one_unit_have_one_scale(rng):
    """That of all of them together: rarely lit pixels count little, and distances are Euclidean."""
    X = rng.normal(size=(60, 20)) * np.linspace(0.3, 1.0, 20)
    together = np.sqrt(X.var(axis=0).sum())
    np.testing.assert_allclose(input_scales(X), together / np.sqrt(20))
    kernel = default_kernel(X, width=1.0)
    np.testing.assert_allclose(np.exp(kernel.theta[-20:]), 2 * together)
    np.testing.assert_allclose(np.exp(default_latent_kernel(X).theta[-20:]), together)
    with_age = np.column_stack([X, 40 * rng.normal(size=60)])
    np.testing.assert_allclose(input_scales(with_age), with_age.std(axis=0))
    np.testing.assert_allclose(input_scales(X[:, :15]), X[:, :15].std(axis=0))


def test_a_vector_counts_as_one_input_at_its_distance_from_the_mean(rng):
    X = np.column_stack([rng.normal(size=(60, 5)) * [1, 2, 3, 4, 5], rng.normal(size=60)])
    together = np.sqrt(X[:, :5].var(axis=0).sum())
    scales = scales_by_block(X, blocks=[0] * 5 + [1])
    np.testing.assert_allclose(scales, [together] * 5 + [X[:, 5].std()])
    kernel = default_latent_kernel(X, blocks=[0] * 5 + [1])
    lengthscale, other = np.exp(kernel.theta[-2:])
    assert lengthscale == pytest.approx(np.sqrt(2) * together)
    assert other == pytest.approx(2 * np.sqrt(2) * X[:, 5].std())


def test_an_input_that_never_varies_tells_nothing(rng):
    """Predictions where it is otherwise are nearly those where it is what it always was."""
    X = np.column_stack([rng.normal(size=20), np.full(20, 7.0)])
    kernel = default_kernel(X, width=1.0)
    elsewhere = X + np.array([0.0, 700.0])
    np.testing.assert_allclose(kernel(X, elsewhere), kernel(X), atol=1e-6)
    assert np.isfinite(kernel(elsewhere)).all()


@pytest.mark.parametrize("X", [np.ones((4, 1)), np.full((1, 2), -3.0), np.zeros((3, 2))])
def test_tables_that_never_vary_have_a_default(X):
    kernel = default_kernel(X, width=2.0)
    # The level and the curve, which are one number there.
    np.testing.assert_allclose(kernel(X), 4.0 * (0.25**2 + 0.15**2))


# --- what varies by rounding alone ---


@given(value=st.floats(1e-3, 1e6), ulps=st.integers(0, 50), negative=st.booleans())
def test_numbers_equal_but_for_rounding_count_as_one(value, ulps, negative):
    value = -value if negative else value
    X = np.array([[value], [value + ulps * np.spacing(value)], [value]])
    assert not find_varying(X).any()
    np.testing.assert_allclose(input_scales(X), input_scales(np.full((3, 1), value)), rtol=1e-12)


def test_an_input_varies_if_its_range_is_more_than_rounding():
    """In units of its largest number: seconds and nanoseconds since 1970, and tiny numbers."""
    X = np.array([[1.7e9, 1.7e18, 1e-200, 0.0, 1.0, 5.0], [1.7e9 + 1, 1.7e18 + 1e9, 0, 0, -1, 5.0]])
    assert find_varying(X).tolist() == [True, True, True, False, True, False]


@given(seed=st.integers(0, 2**32 - 1))
def test_what_varies_by_rounding_changes_no_kernel(seed):
    """Beside an input that never varies at all, in every kernel, alone and in a block."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(9, 2)), np.full(9, 0.3)])
    rounded = X.copy()
    rounded[::2, 2] = 0.1 + 0.2
    new = X + np.array([0.1, 0.2, 0.01])
    for make in (default_kernel, matern_kernel):
        for blocks in (None, [0, 1, 1], [0, 0, 1]):
            exact = make(X, width=1.0, blocks=blocks)(X, new)
            found = make(rounded, width=1.0, blocks=blocks)(X, new)
            np.testing.assert_allclose(found, exact, rtol=1e-9)


# --- points on circles ---


def on_circle(turns):
    return np.column_stack([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)])


@given(
    turns=st.lists(st.floats(0, 1), min_size=1, max_size=9), arc=st.sampled_from([1, 1e-3, 1e-9])
)
def test_opposite_of_all_rows_nothing_is_less_sure_than_the_bounds(turns, arc):
    """Of a level, a line of at most the width, and a curve: the sd, before any answer."""
    turns = 0.3 + arc * np.array(turns)
    X = on_circle(turns)
    width = 40.0
    kernel = default_kernel(X, width=width, blocks=[0, 0])
    sds = np.sqrt(kernel.diag(on_circle(np.linspace(0, 1, 50))))
    assert (sds <= width * np.sqrt(1 + 0.25**2 + 0.15**2) * (1 + 1e-9)).all()
    assert (matern_kernel(X, width=width, blocks=[0, 0]).diag(X) <= (0.3 * width) ** 2 + 1e-9).all()


def test_a_circle_is_measured_by_its_rows_where_they_cover_a_good_part(rng):
    """From 9 to 12 hours of a day, and all around: as other blocks of two inputs are."""
    for turns in (rng.uniform(9 / 24, 12 / 24, 500), rng.uniform(0, 1, 500)):
        X = on_circle(turns)
        scale, _ = scales_by_block(X, blocks=[0, 0])
        assert scale == pytest.approx(scales_by_block(2 * X, blocks=[0, 0])[0] / 2, rel=1e-12)
        assert scale == pytest.approx(np.sqrt(X.var(axis=0).sum()), rel=1e-12)
        [mine], [other] = (
            np.exp(matern_kernel(size * X, width=1.0, blocks=[0, 0]).theta[1:]) / size
            for size in (1.0, 2.0)
        )
        assert mine == pytest.approx(other, rel=1e-12)


def test_other_blocks_of_two_inputs_have_no_least_scale(rng):
    X = 1e-3 * rng.normal(size=(50, 2))
    assert scales_by_block(X, blocks=[0, 0])[0] < 2e-3


# --- the Matérn kernel alone ---


def test_the_rule_in_one_dimension():
    X = np.array([[3.0], [43.0], [10.0]])
    kernel = matern_kernel(X, width=100.0)
    assert isinstance(kernel, Product)
    assert isinstance(kernel.k2, Matern)
    assert kernel.k2.nu == 1.5
    assert kernel.k1.constant_value == pytest.approx(30.0**2)
    assert kernel.k2.length_scale == pytest.approx(0.5 * 40.0)
    assert kernel.diag(X) == pytest.approx(900.0)


def test_one_lengthscale_for_each_input():
    X = np.array([[0.0, 5.0, -1.0], [8.0, 6.0, 1.0]])
    np.testing.assert_allclose(
        matern_kernel(X, width=1.0).k2.length_scale, 0.5 * np.sqrt(3) * np.array([8.0, 1.0, 2.0])
    )


def test_it_sees_ranges_alone(rng):
    X = rng.uniform(size=(50, 2))
    assert matern_kernel(X, width=2.0) == matern_kernel(X[rng.permutation(50)], width=2.0)


def test_a_latent_function_is_the_default_of_numbers_without_its_level(rng):
    X = rng.uniform(size=(9, 2))
    level, linear, curve = 0.25**2, 0.1**2, 0.15**2
    of_numbers = default_kernel(X, width=1.0)
    shares = of_numbers.k1.k2(X) * (1.5**2 / linear) + of_numbers.k2(X) * (1.5**2 / curve)
    np.testing.assert_allclose(default_latent_kernel(X)(X), shares, rtol=1e-12)
    assert of_numbers.k1.k1.constant_value == pytest.approx(level)
    assert default_latent_kernel(X).diag(X).mean() == pytest.approx(2 * 1.5**2)


def test_noise_is_a_tenth_of_the_width():
    assert default_noise_variance(width=30.0) == 9.0


@pytest.mark.parametrize("value", [0.0, -3e7])
def test_inputs_that_never_vary_do_not_matter(value):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(5, 2))
    still = np.column_stack([X, np.full(5, value)])
    for kernel in (matern_kernel, default_kernel):
        with_it, without = kernel(still, width=1.0), kernel(X, width=1.0)
        np.testing.assert_allclose(with_it(still), without(X), rtol=1e-6)


def test_without_any_input_that_varies_functions_are_level():
    X = np.ones((4, 1))
    np.testing.assert_array_equal(matern_kernel(X, width=1.0)(X), np.full((4, 4), 0.3**2))
