"""Limits of probabilities against simulation, closed forms and each other."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import kstest, norm

from cloakgp import LatentPrediction
from cloakgp.models.likelihoods.classes import ClassLikelihood, link
from cloakgp.release.posterior.intervals import normal_nodes, probability_limits


def _known(mean: np.ndarray, sd: np.ndarray, privacy_sd: np.ndarray, *, name: str = "probit"):
    """Something whose latent functions are known exactly so."""
    latent = LatentPrediction(mean=mean, sd=sd, privacy_sd=privacy_sd)
    likelihood = ClassLikelihood(link_name=name, latent_means=(0.0,))
    fitted = SimpleNamespace(likelihood=likelihood)
    return SimpleNamespace(predict_latent=lambda _: latent, fitted=fitted)


@pytest.mark.parametrize("name", ["probit", "logit"])
def test_two_classes_have_the_percentiles_of_a_monotone_function(rng, name):
    mean, sd = np.array([-1.0, 0.3, 2.0]), np.array([0.5, 1.5, 1.0])
    lower, upper = probability_limits(_known(mean, sd, 0.5 * sd, name=name), np.zeros((3, 1)))
    drawn = link(name).probability(mean + sd * rng.normal(size=(200_000, 3)))
    low, high = np.quantile(drawn, (0.025, 0.975), axis=0)
    np.testing.assert_allclose(lower[:, 1], low, atol=4e-3)
    np.testing.assert_allclose(upper[:, 1], high, atol=4e-3)
    np.testing.assert_allclose(lower[:, 0], 1 - upper[:, 1])
    np.testing.assert_allclose(upper[:, 0], 1 - lower[:, 1])


@pytest.mark.parametrize("classes", [3, 5])
def test_more_classes_have_the_percentiles_of_their_shares(rng, classes):
    mean, sd = rng.normal(size=(4, classes)), rng.uniform(0.2, 1.2, size=(4, classes))
    lower, upper = probability_limits(_known(mean, sd, 0 * sd), np.zeros((4, 1)))
    drawn = norm.cdf(mean + sd * rng.normal(size=(40_000, 4, classes)))
    drawn /= drawn.sum(axis=2, keepdims=True)
    low, high = np.quantile(drawn, (0.025, 0.975), axis=0)
    np.testing.assert_allclose(lower, low, atol=0.03)
    np.testing.assert_allclose(upper, high, atol=0.03)


def test_the_privacy_noise_can_be_left_out():
    mean, sd = np.array([0.4]), np.array([1.3])
    whole = probability_limits(_known(mean, sd, np.array([0.5])), np.zeros((1, 1)))
    part = probability_limits(
        _known(mean, sd, np.array([0.5])), np.zeros((1, 1)), privacy_noise=False
    )
    rest = np.sqrt(1.3**2 - 0.5**2)
    np.testing.assert_allclose(part[1][0, 1], norm.cdf(0.4 + norm.ppf(0.975) * rest))
    assert whole[0][0, 1] < part[0][0, 1] < part[1][0, 1] < whole[1][0, 1]


def test_blocks_change_nothing(rng, monkeypatch):
    mean, sd = rng.normal(size=(50, 3)), rng.uniform(0.2, 1.2, size=(50, 3))
    whole = probability_limits(_known(mean, sd, sd), np.zeros((50, 1)))
    monkeypatch.setattr("cloakgp.release.posterior.intervals.BLOCK_ROWS", 7)
    np.testing.assert_array_equal(
        whole, probability_limits(_known(mean, sd, sd), np.zeros((50, 1)))
    )


@pytest.mark.parametrize("dimensions", [3, 6, 10])
def test_nodes_stand_for_independent_normals(dimensions):
    nodes = normal_nodes(dimensions)
    np.testing.assert_array_equal(nodes, normal_nodes(dimensions))
    assert np.isfinite(nodes).all()
    np.testing.assert_allclose(nodes.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(nodes.T @ nodes / len(nodes), np.eye(dimensions), atol=1e-12)
    assert max(kstest(column, "norm").statistic for column in nodes.T) < 0.04
    # Squared distances are chi-squared, as they are of independent normals.
    assert kstest(np.square(nodes).sum(axis=1), "chi2", (dimensions,)).statistic < 0.06
