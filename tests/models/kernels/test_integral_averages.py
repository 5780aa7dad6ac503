"""Averages of the bell against 100-digit closed forms, and against quadrature."""

import itertools

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate

from cloakgp.models.kernels.integral import bell_average, bell_slope

DIGITS = 100


def second(z, *, slope):
    """An even second antiderivative of exp(−z²/2), or of z² exp(−z²/2)."""
    bell = mpmath.exp(-(z**2) / 2)
    value = z * mpmath.sqrt(mpmath.pi / 2) * mpmath.erf(z / mpmath.sqrt(2)) + bell
    return value + bell if slope else value


def exact(distance, width, other, *, slope=False):
    """The closed form with so many digits that cancellation does not matter; widths above 0."""
    with mpmath.workdps(DIGITS):
        c, w, v = (mpmath.mpf(float(number)) for number in (distance, width, other))
        signs = [((w + v) / 2, 1), (-(w + v) / 2, 1), ((w - v) / 2, -1), (-(w - v) / 2, -1)]
        return float(sum(sign * second(c + x, slope=slope) for x, sign in signs) / (w * v))


widths = st.floats(-12, 4).map(lambda power: 10.0**power)
distances = st.one_of(st.floats(0, 45), st.floats(0, 1e4))


@pytest.mark.parametrize("slope", [False, True])
@given(distance=distances, width=widths, other=widths)
def test_against_the_closed_form_at_any_width(slope, distance, width, other):
    found = (bell_slope if slope else bell_average)(
        *(np.array([number]) for number in (distance, width, other))
    )[0]
    expected = exact(distance, width, other, slope=slope)
    assert found == pytest.approx(expected, rel=0, abs=2e-15)


@pytest.mark.parametrize("slope", [False, True])
def test_small_values_keep_their_digits(slope):
    """At eight lengthscales the bell is 1e-14, and still has ten digits."""
    distances, first = [0.0, 0.7, 3.0, 6.0, 8.0], [1e-9, 0.3, 1.0, 1.0 + 1e-12, 4.0, 50.0]
    cases = np.array(list(itertools.product(distances, first, [1e-9, 0.999, 1.001, 7.0])))
    found = (bell_slope if slope else bell_average)(*cases.T)
    expected = [exact(*case, slope=slope) for case in cases]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize(("width", "other"), [(0.0, 0.4), (0.0, 3.0), (2.5, 0.0), (3.0, 2.0)])
@pytest.mark.parametrize("distance", [0.0, 0.9, 4.0])
def test_against_quadrature(distance, width, other):
    def inner(u):
        if other == 0:
            return np.exp(-((u - distance) ** 2) / 2)
        ends = distance - other / 2, distance + other / 2
        return integrate.quad(lambda v: np.exp(-((u - v) ** 2) / 2), *ends)[0] / other

    expected = integrate.quad(inner, -width / 2, width / 2)[0] / width if width else inner(0.0)
    found = bell_average(*(np.array([number]) for number in (distance, width, other)))[0]
    assert found == pytest.approx(expected, rel=1e-8)


def test_points():
    z = np.linspace(-9, 9, 50)
    zero = np.zeros(50)
    np.testing.assert_allclose(bell_average(z, zero, zero), np.exp(-(z**2) / 2), rtol=1e-14)
    np.testing.assert_allclose(bell_slope(z, zero, zero), z**2 * np.exp(-(z**2) / 2), rtol=1e-14)


@given(distance=st.floats(-20, 20), width=widths, other=widths)
def test_symmetries(distance, width, other):
    arguments = [np.array([number]) for number in (distance, width, other)]
    c, w, v = arguments
    for of in (bell_average, bell_slope):
        assert of(c, w, v) == of(c, v, w) == of(-c, w, v)
