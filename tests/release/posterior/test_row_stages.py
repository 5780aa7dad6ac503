"""What earlier answers say of rows that are not kept: computed once for priors that share it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from cloakgp.models import SparsePrior
from cloakgp.release.bands import RowPrediction
from cloakgp.release.posterior.row_stages import CrossedFeatures, RowKnowledge


@pytest.fixture
def priors(rng):
    prior = SparsePrior(
        kernel=RBF(1.5), noise_variance=0.3, mean=0.2, inducing=rng.normal(size=(6, 2))
    )
    return [prior, replace(prior, noise_variance=0.6), replace(prior, kernel=RBF(0.7))]


def knowledge_of(prior, asked, rng):
    """What four answers say, of which the last two asked of the rows themselves."""
    factor = np.linalg.cholesky(np.eye(4) * (1.0 + prior.noise_variance) + asked @ asked.T)
    return RowKnowledge(
        prior=prior,
        asked=asked,
        known=np.linalg.solve(factor, asked),
        inverse=np.linalg.inv(factor),
        whitened=rng.normal(size=4),
        own=(slice(2, 4),),
    )


def test_products_that_are_there_give_the_same_moments(priors, rng):
    prior, asked, X = priors[0], rng.normal(size=(4, 6)), rng.normal(size=(9, 2))
    known, questions = knowledge_of(prior, asked, rng), rng.normal(size=(2, 9))
    features, noise = prior.features_and_noise(X)
    expected = known.outputs(features, noise, [questions])
    found = known.outputs(features, noise, [questions], crossed=asked @ features)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    # They are those of the joint normal distribution.
    crossed = features.T @ asked.T
    crossed[:, 2:] += (noise * questions).T
    covariance = np.linalg.inv(known.inverse) @ np.linalg.inv(known.inverse).T
    explained = np.einsum("nk,nk->n", crossed @ np.linalg.inv(covariance), crossed)
    variance = np.square(features).sum(axis=0) + noise - explained
    np.testing.assert_allclose(expected[1], np.maximum(variance, 1e-12), rtol=1e-9)


def test_products_are_computed_once_for_priors_that_share_them(priors, rng):
    asked, X = rng.normal(size=(4, 6)), rng.normal(size=(9, 2))
    first, second = (knowledge_of(one, asked.copy(), rng) for one in priors[:2])
    second, other = second.sharing(first), knowledge_of(priors[2], 2 * asked, rng).sharing(first)
    assert second.asked is first.asked
    assert other.asked is not first.asked
    products = CrossedFeatures([(None, first), (None, second), (None, other)])
    features = priors[0].features(X)
    found = products.of(first, features)
    np.testing.assert_array_equal(found, asked @ features)
    assert products.of(second, features) is found
    # No other prior needs what is asked under the third.
    assert products.of(other, features) is None
    other_rows = priors[0].features(X + 1.0)
    np.testing.assert_array_equal(products.of(second, other_rows), asked @ other_rows)


def test_any_root_of_a_covariance_predicts_the_same(priors, rng):
    """That of an older file is no triangle."""
    triangle = np.tril(rng.normal(size=(6, 6)))
    rotation, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    X = rng.normal(size=(9, 2))
    new, old = (
        RowPrediction(prior=priors[0], mean=np.arange(6.0), root=root)
        for root in (triangle, triangle @ rotation)
    )
    features, noise = new.known(X)
    known, mean, variance = new.given_answers(features, noise)
    np.testing.assert_allclose(known, triangle.T @ features, rtol=1e-12)
    np.testing.assert_allclose(old.given_answers(features, noise)[1:], (mean, variance), rtol=1e-9)
