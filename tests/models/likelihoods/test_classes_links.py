"""Links against their closed forms, quadrature and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import expit

from cloakgp.models.likelihoods.classes import link
from cloakgp.utils.names import LINKS

MEANS = [0.0, 0.3, -1.7, 5.0]
VARIANCES = [0.0, 1e-6, 0.2, 4.0, 100.0]


def averaged(function, mean, variance):
    """Return E[function(f)] for f ~ N(mean, variance), by adaptive quadrature."""
    if variance == 0:
        return float(function(mean))
    sd = np.sqrt(variance)
    value, _ = integrate.quad(
        lambda z: function(mean + sd * z) * stats.norm.pdf(z),
        -12,
        12,
        # Where the link is steep, for integrands that are narrow there.
        points=sorted({-12.0, 12.0, float(np.clip(-mean / sd, -12, 12))}),
        limit=400,
        epsabs=1e-12,
    )
    return value


def logistic_slope(latent):
    return expit(latent) * expit(-latent)


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize(
    ("name", "probability", "slope"),
    [("logit", expit, logistic_slope), ("probit", stats.norm.cdf, stats.norm.pdf)],
)
def test_moments_against_quadrature(name, probability, slope, mean, variance):
    found = link(name).moments(np.array([mean]), np.array([variance]))
    # The mixture for the logistic link has 24 nodes.
    tolerance = 1e-9 if name == "probit" else 3e-5
    assert found[0][0] == pytest.approx(averaged(probability, mean, variance), abs=tolerance)
    assert found[1][0] == pytest.approx(averaged(slope, mean, variance), abs=tolerance)


def test_the_probit_has_rasmussen_and_williams_closed_form():
    mean, variance = np.array([0.7, -2.0]), np.array([3.0, 0.5])
    probability, slope = link("probit").moments(mean, variance)
    spread = np.sqrt(1 + variance)
    np.testing.assert_allclose(probability, stats.norm.cdf(mean / spread), rtol=1e-14)
    np.testing.assert_allclose(slope, stats.norm.pdf(mean / spread) / spread, rtol=1e-14)


@given(
    name=st.sampled_from(LINKS),
    mean=st.floats(-8, 8),
    variance=st.floats(0, 50),
)
def test_the_slope_is_the_derivative_of_the_probability_in_the_mean(name, mean, variance):
    step = 1e-5
    (above, below), (_, _) = link(name).moments(
        np.array([mean + step, mean - step]), np.full(2, variance)
    )
    (_,), (slope,) = link(name).moments(np.array([mean]), np.array([variance]))
    assert slope == pytest.approx((above - below) / (2 * step), abs=1e-8)


@given(name=st.sampled_from(LINKS), mean=st.floats(-1e6, 1e6), variance=st.floats(0, 1e8))
def test_moments_are_moments_of_something_between_0_and_1(name, mean, variance):
    means, variances = np.array([mean, -mean]), np.full(2, variance)
    probability, slope = link(name).moments(means, variances)
    assert ((probability >= 0) & (probability <= 1 + 1e-12)).all()
    assert (slope >= 0).all()
    # Both links are symmetric.
    assert probability.sum() == pytest.approx(1.0, abs=1e-12)
    assert slope[0] == slope[1]
    # What is left of a label's variance after its linear part is no less than nothing.
    signs, doubled = 2 * probability - 1, 2 * slope
    assert (1 - signs**2 - doubled**2 * variance >= -1e-9).all()


@pytest.mark.parametrize("name", LINKS)
def test_without_variance_the_moments_are_the_link(name):
    latent = np.linspace(-6, 6, 25)
    probability, _ = link(name).moments(latent, np.zeros_like(latent))
    np.testing.assert_allclose(probability, link(name).probability(latent), atol=3e-5)


@pytest.mark.parametrize("name", LINKS)
def test_extremes_are_certain_and_finite(name):
    found = link(name)
    latent = np.array([-1e150, -800.0, 800.0, 1e150])
    np.testing.assert_array_equal(found.probability(latent), [0, 0, 1, 1])
    probability, slope = found.moments(latent, np.ones(4))
    np.testing.assert_allclose(probability, [0, 0, 1, 1], atol=1e-12)
    np.testing.assert_allclose(slope, 0, atol=1e-12)
    probability, slope = found.moments(np.ones(1), np.array([1e300]))
    np.testing.assert_allclose(probability, 0.5)
    np.testing.assert_allclose(slope, 0, atol=1e-12)


@pytest.mark.parametrize("name", LINKS)
def test_weights_are_shares(name):
    found = link(name)
    assert found.weights.sum() == pytest.approx(1.0, abs=1e-14)
    assert (found.weights > 0).all()
    assert (found.scales > 0).all()


def test_the_nearest_probit_has_the_same_slope_at_zero():
    scale = np.sqrt(link("logit").probit_variance)
    assert stats.norm.pdf(0) / scale == pytest.approx(0.25, rel=1e-12)


@pytest.mark.parametrize("name", ["probit", "logit"])
@given(rate=st.floats(0.001, 0.999), variance=st.lists(st.floats(0, 30), min_size=1, max_size=3))
def test_the_latent_mean_gives_the_marginal_probability(name, rate, variance):
    chosen, variances = link(name), np.array(variance)
    mean = chosen.latent_mean(rate, variance=variances)
    found, _ = chosen.moments(np.full_like(variances, mean), variances)
    assert found.mean() == pytest.approx(rate, rel=1e-9)


@pytest.mark.parametrize("name", ["cloglog", "", None, 1, "Probit"])
def test_other_links_are_refused(name):
    with pytest.raises(ValueError, match="link must be 'probit' or 'logit'"):
        link(name)
