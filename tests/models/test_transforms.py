"""Transformed Gaussian processes: moments against simulation, closed forms and brute quadrature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit

from cloakgp.models.transforms import OutputTransform

LOG = OutputTransform(name="log", bounds=(1.0, 1000.0))
LOGIT = OutputTransform(name="logit", bounds=(0.01, 0.99))
MEAN, SD = np.array([-1.0, 0.3, 2.0]), np.array([0.05, 0.8, 1.5])


@pytest.mark.parametrize("transform", [LOG, LOGIT], ids=lambda each: each.name)
def test_there_and_back(transform):
    inside = np.linspace(*transform.bounds, 50)
    np.testing.assert_allclose(transform.inverse(transform.forward(inside)), inside, rtol=1e-12)
    assert (np.diff(transform.forward(inside)) > 0).all()


def test_logarithms_have_the_moments_of_the_lognormal_distribution():
    law = stats.lognorm(s=SD, scale=np.exp(MEAN))
    wide = OutputTransform(name="log", bounds=(1e-90, 1e90))
    np.testing.assert_allclose(wide.mean(MEAN, SD), law.mean(), rtol=1e-12)
    np.testing.assert_allclose(LOG.covariance(MEAN, SD, SD**2), law.var(), rtol=1e-12)


@pytest.mark.parametrize("spread", [1e-9, 0.05, 0.8, 3.0, 40.0])
def test_means_are_of_outputs_within_the_bounds(spread):
    """However long the tail: E y is the lower bound and ∫ P(y > t) dt from there to the upper."""
    lo, hi = LOG.bounds
    for m in (-30.0, -1.0, 0.3, 2.0, 6.5, 300.0):
        z = (np.linspace(np.log(lo), np.log(hi), 200_001) - m) / spread
        beyond = stats.norm.sf(z) * np.exp(np.linspace(np.log(lo), np.log(hi), 200_001))
        expected = lo + integrate.simpson(beyond, dx=np.log(hi / lo) / 200_000)
        found = LOG.mean(np.array([m]), np.array([spread]))[0]
        assert found == pytest.approx(expected, rel=1e-5)
        assert lo <= found <= hi


def test_log_odds_have_the_moments_of_brute_quadrature():
    for m, s in zip(MEAN, SD, strict=True):

        def moment(power, m=m, s=s):
            def density(z):
                return expit(m + s * z) ** power * stats.norm.pdf(z)

            return integrate.quad(density, -12, 12, epsabs=1e-13)[0]

        first, second = moment(1), moment(2)
        at = np.array([m]), np.array([s])
        assert LOGIT.mean(*at)[0] == pytest.approx(first, rel=1e-8)
        variance = LOGIT.covariance(*at, np.array([s**2]))[0]
        assert variance == pytest.approx(second - first**2, rel=1e-4)


@pytest.mark.parametrize("transform", [LOG, LOGIT], ids=lambda each: each.name)
def test_covariances_are_those_of_draws(transform):
    """Also where every one has noise of its own: what they share is less than their variance."""
    root = np.random.default_rng(0).normal(size=(3, 3)) * 0.4
    shared, noise = root @ root.T, 0.3
    sd = np.sqrt(np.diag(shared) + noise)
    rng = np.random.default_rng(1)
    latent = MEAN + rng.normal(size=(400_000, 3)) @ root.T
    one, other = (
        transform.inverse(latent + np.sqrt(noise) * rng.normal(size=latent.shape)) for _ in "ab"
    )
    drawn = (one - one.mean(axis=0)).T @ (other - other.mean(axis=0)) / len(one)
    found = transform.covariance(MEAN, sd, shared)
    np.testing.assert_allclose(found, drawn, rtol=0.05, atol=0.02 * np.abs(drawn).max())
    np.testing.assert_allclose(
        transform.covariance(MEAN, sd, np.diag(shared)), np.diag(found), rtol=1e-9
    )
    assert np.linalg.eigvalsh(found).min() > 0


@pytest.mark.parametrize(
    ("name", "bounds", "advice"),
    [
        ("log", (0.0, 10.0), "least amount"),
        ("log", (-1.0, 10.0), "above 0"),
        ("logit", (0.0, 0.9), "share"),
        ("logit", (0.1, 1.0), "share"),
        ("sqrt", (1.0, 2.0), "'log' or 'logit'"),
    ],
)
def test_bounds_where_it_is_not_defined_are_refused_with_advice(name, bounds, advice):
    with pytest.raises(ValueError, match=advice):
        OutputTransform.checked(name, bounds)


def test_nothing_is_no_transform():
    assert OutputTransform.checked(None, (0.0, 1.0)) is None


def test_declared_numbers_outside_of_the_bounds_are_refused():
    assert LOG.forward_number(10.0, name="mean") == pytest.approx(np.log(10))
    with pytest.raises(ValueError, match="mean"):
        LOG.forward_number(0.5, name="mean")
