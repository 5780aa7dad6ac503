"""Clipped normal variables against quadrature, finite differences, and closed forms."""

from __future__ import annotations

import itertools

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from cloakgp.models.clipping import linearise_clipped, offset_per_sd


def account(mean, variance, lower, upper):
    """Return expected value, slope and residual of one variable."""
    found = linearise_clipped(
        *(np.array([one], dtype=np.float64) for one in (mean, variance)),
        lower=np.array([lower], dtype=np.float64),
        upper=np.array([upper], dtype=np.float64),
    )
    return tuple(float(one[0]) for one in (found.expected, found.slope, found.residual))


def by_quadrature(mean, variance, lower, upper):
    """Return mean, regression coefficient and residual variance of clip(y), by integration."""
    sd = variance**0.5
    places = sorted(
        {-12.0, 12.0, *(float(np.clip((e - mean) / sd, -12, 12)) for e in (lower, upper))}
    )

    def expected(function):
        parts = [
            integrate.quad(
                lambda z: function(mean + sd * z) * stats.norm.pdf(z), one, two, epsabs=1e-13
            )[0]
            for one, two in itertools.pairwise(places)
        ]
        return sum(parts)

    def clipped(y):
        return min(max(y, lower), upper)

    first = expected(clipped)
    scatter = expected(lambda y: (clipped(y) - first) ** 2)
    covariance = expected(lambda y: (clipped(y) - first) * (y - mean))
    return first, covariance / variance, scatter - covariance**2 / variance


PLACES = st.floats(-4.0, 4.0)


@given(
    mean=st.floats(-100, 100),
    sd=st.floats(1e-3, 1e3),
    below=PLACES,
    width=st.floats(0.01, 8.0),
)
def test_moments_are_those_of_quadrature(mean, sd, below, width):
    lower, upper = mean + sd * below, mean + sd * (below + width)
    expected, slope, residual = account(mean, sd**2, lower, upper)
    oracle = by_quadrature(mean, sd**2, lower, upper)
    # As differences of the ends: what float64 has of them.
    slack = 1e-13 * (abs(mean) + sd * 8)
    assert expected == pytest.approx(oracle[0], abs=1e-9 * sd + slack)
    assert slope == pytest.approx(oracle[1], abs=1e-8 + slack / sd)
    assert residual == pytest.approx(oracle[2], abs=1e-8 * sd**2 + 8 * sd * slack)


@given(below=st.floats(-30, 30), width=st.floats(1e-3, 30.0))
def test_moments_are_those_of_many_digits(below, width):
    """The closed form with fifty digits: bands far out in the tails, too."""
    with mpmath.workdps(50):
        a, b = mpmath.mpf(below), mpmath.mpf(below + width)

        def excess(x):
            return mpmath.npdf(x) - x * mpmath.ncdf(-x)

        first = a + excess(a) - excess(b)
        slope = mpmath.ncdf(b) - mpmath.ncdf(a)
        second = a**2 * mpmath.ncdf(a) + b**2 * mpmath.ncdf(-b) + slope
        second += a * mpmath.npdf(a) - b * mpmath.npdf(b)
        exact = [float(one) for one in (first, slope, second - first**2 - slope**2)]
    found = account(0.0, 1.0, below, below + width)
    np.testing.assert_allclose(found[:2], exact[:2], rtol=1e-12, atol=1e-13)
    # A residual is a difference of squares of up to 30.
    assert found[2] == pytest.approx(exact[2], abs=1e-11)
    assert found[2] > 0


@given(mean=st.floats(-3, 3), sd=st.floats(0.1, 3.0), lower=PLACES, width=st.floats(0.1, 8.0))
def test_the_slope_is_that_of_the_expected_value(mean, sd, lower, width):
    """Stein's lemma: cov(clip y, y)/v is the derivative of E[clip y] in the mean."""
    step = 1e-4 * sd
    up, down = (account(mean + move, sd**2, lower, lower + width)[0] for move in (step, -step))
    _, slope, _ = account(mean, sd**2, lower, lower + width)
    assert slope == pytest.approx((up - down) / (2 * step), abs=1e-6)


@pytest.mark.parametrize("c", [0.3, 1.0, 1.5, 4.0])
def test_a_band_about_the_mean(c):
    expected, slope, residual = account(7.0, 4.0, 7.0 - 2 * c, 7.0 + 2 * c)
    kept = float(mpmath.erf(c / mpmath.sqrt(2)))
    share = kept - 2 * c * stats.norm.pdf(c) + 2 * c**2 * stats.norm.cdf(-c)
    assert expected == pytest.approx(7.0)
    assert slope == pytest.approx(kept)
    assert residual == pytest.approx(4.0 * (share - kept**2), abs=1e-12)


@pytest.mark.parametrize(("lower", "upper", "moved"), [(-1e6, 1.0, -1), (-0.5, 1e6, 1)])
def test_bands_with_one_end_far_away(lower, upper, moved):
    """Clipped at one end alone: moments of a censored normal variable."""
    end = min(abs(lower), abs(upper))
    expected, slope, residual = account(0.0, 1.0, lower, upper)
    excess = stats.norm.pdf(end) - end * stats.norm.sf(end)
    assert expected == pytest.approx(moved * excess, abs=1e-8)
    assert slope == pytest.approx(stats.norm.cdf(end), abs=1e-8)
    draws = np.clip(stats.norm.ppf((np.arange(200_000) + 0.5) / 200_000), lower, upper)
    assert residual == pytest.approx(draws.var() - slope**2, abs=1e-3)


def test_bands_far_wider_than_everything_leave_all_as_it_is():
    expected, slope, residual = account(3.0, 4.0, -1e4, 1e4)
    assert expected == pytest.approx(3.0, abs=1e-9)
    assert slope == 1.0
    assert 0 < residual < 1e-6


def test_bands_that_hold_nothing_say_nothing():
    """Far above the band: the upper end, whatever y is."""
    expected, slope, residual = account(100.0, 1.0, -1.0, 1.0)
    assert expected == pytest.approx(1.0, abs=1e-9)
    assert slope == 0.0
    assert 0 < residual < 1e-10


def test_rows_do_not_touch_each_other(rng):
    mean, variance = rng.normal(size=9), rng.uniform(0.1, 4, size=9)
    lower = rng.normal(size=9)
    upper = lower + rng.uniform(0.1, 3, size=9)
    together = linearise_clipped(mean, variance, lower=lower, upper=upper)
    for row in range(9):
        alone = account(mean[row], variance[row], lower[row], upper[row])
        found = together.expected[row], together.slope[row], together.residual[row]
        np.testing.assert_array_equal(found, alone)


def test_the_offset_is_one_sd_where_a_band_of_one_sd_clips():
    slope = np.array([1.0, 1 - 2 * stats.norm.sf(1.0), 1 - 2 * stats.norm.sf(2.0)])
    np.testing.assert_allclose(
        offset_per_sd(slope, np.full(3, 9.0)),
        [0.0, 3.0, 3.0 * stats.norm.sf(2.0) / stats.norm.sf(1.0)],
    )


@pytest.mark.parametrize(
    ("correlation", "covariance", "accounted"), [(0.9, 0.454, 0.419), (0.5, 0.238, 0.233)]
)
def test_what_is_left_out_of_two_clipped_rows_is_as_stated(correlation, covariance, accounted):
    """At the head of the module, and in the documents made from it."""
    grid = np.linspace(-8, 8, 2001)
    weight = stats.norm.pdf(grid) * (grid[1] - grid[0])
    left = np.sqrt(1 - correlation**2) * grid
    given = [np.clip(correlation * one + left, -1, 1) @ weight for one in grid]
    assert np.clip(grid, -1, 1) * given @ weight == pytest.approx(covariance, abs=6e-4)
    _, slope, _ = account(0.0, 1.0, -1.0, 1.0)
    assert slope**2 * correlation == pytest.approx(accounted, abs=6e-4)
