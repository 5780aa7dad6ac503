"""Mixtures of posteriors against sampling and against one posterior."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conditioning import posterior_of, streamed, weighted
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from cloakgp.data import ArrayRows
from cloakgp.design.streaming.rules import LinearRule
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.likelihoods import NUMBERS
from cloakgp.release.posterior.clipped_sums import sum_stage
from cloakgp.release.posterior.mixture import Mixture
from cloakgp.release.streamed_strategy import RuleColumns

DRAWS = 200_000


def prior(scale, noise, mean):
    return ExactPrior(kernel=2.0 * RBF(scale) + WhiteKernel(0.1), noise_variance=noise, mean=mean)


PRIORS = [prior(0.5, 0.1, 0.0), prior(1.5, 0.4, 1.0), prior(4.0, 0.9, -2.0)]
WEIGHTS = [0.2, 0.5, 0.3]


@pytest.fixture
def measurements(make_release, rng):
    X = rng.uniform(0, 4, size=(12, 1))
    return make_release(
        PRIORS[0], X, np.sin(2 * X[:, 0]), strategy=rng.normal(size=(5, 12)), noise_sd=0.8
    ).measurements


@pytest.fixture
def mixture(measurements):
    priors = [weighted(p, w) for p, w in zip(PRIORS, WEIGHTS, strict=True)]
    return Mixture.given(priors, measurements)


def predicted(mixture, X, *, return_std=False, return_cov=False, new_output=False):
    asked = {"return_std": return_std, "return_cov": return_cov, "new_output": new_output}
    return NUMBERS.predict(mixture, X, **asked)


def variance(mixture, X, *, new_output):
    return np.square(predicted(mixture, X, return_std=True, new_output=new_output)[1])


def covariance(mixture, X, *, new_output):
    return predicted(mixture, X, return_cov=True, new_output=new_output)[1]


@pytest.mark.parametrize("new_output", [False, True])
def test_moments_are_those_of_samples(mixture, measurements, new_output):
    rng, X = np.random.default_rng(1), np.array([[0.3], [1.9], [2.2], [7.0]])
    chosen = rng.choice(3, size=DRAWS, p=WEIGHTS)
    samples = np.empty((DRAWS, 4))
    for index, one in enumerate(PRIORS):
        posterior = posterior_of(one, measurements)
        spread = posterior.covariance(X)
        if new_output:
            spread = spread + (one.noise_variance + 0.1) * np.eye(4)
        rows = chosen == index
        root = np.linalg.cholesky(spread + 1e-10 * np.eye(4))
        samples[rows] = posterior.mean(X) + rng.normal(size=(rows.sum(), 4)) @ root.T
    expected = np.cov(samples.T)
    tolerance = 6 * np.diag(expected).max() / np.sqrt(DRAWS)
    np.testing.assert_allclose(
        predicted(mixture, X),
        samples.mean(axis=0),
        atol=5 * samples.std(axis=0).max() / np.sqrt(DRAWS),
    )
    found = covariance(mixture, X, new_output=new_output)
    np.testing.assert_allclose(found, expected, atol=2 * tolerance)
    np.testing.assert_allclose(
        variance(mixture, X, new_output=new_output), np.diag(found), rtol=1e-9
    )
    assert np.linalg.eigvalsh(found)[0] > 0


def test_disagreement_is_uncertainty(mixture):
    X = np.array([[0.5], [9.0]])
    within = sum(
        weight * one.posteriors[0].variance(X)
        for one, weight in zip(mixture.functions, WEIGHTS, strict=True)
    )
    assert (variance(mixture, X, new_output=False) > within + 1e-3).all()


def test_the_main_posterior_has_most_weight(mixture):
    assert mixture.main.prior is PRIORS[1]
    assert mixture.posteriors[0].prior is PRIORS[1]


def test_one_posterior_is_itself(measurements):
    X = np.array([[0.5], [1.0]])
    alone = Mixture.given([weighted(PRIORS[0])], measurements)
    posterior = posterior_of(PRIORS[0], measurements)
    np.testing.assert_array_equal(predicted(alone, X), posterior.mean(X))
    np.testing.assert_allclose(
        covariance(alone, X, new_output=False), posterior.covariance(X), atol=1e-14
    )


def test_equal_priors_are_one(measurements):
    X = np.array([[0.5], [1.0]])
    several = Mixture.given([weighted(PRIORS[0], w) for w in (0.25, 0.5, 0.25)], measurements)
    posterior = posterior_of(PRIORS[0], measurements)
    np.testing.assert_allclose(predicted(several, X), posterior.mean(X))
    np.testing.assert_allclose(variance(several, X, new_output=False), posterior.variance(X))


@pytest.fixture
def both_mixtures(make_release, rng):
    """Mixtures of sparse priors about one table: from sums over rows, and from every row."""
    priors = [
        SparsePrior(
            kernel=one.kernel,
            noise_variance=one.noise_variance,
            mean=one.mean,
            inducing=np.linspace(0, 4, 5)[:, None],
        )
        for one in PRIORS
    ]
    X = rng.uniform(0, 4, size=(20, 1))
    rule = LinearRule(matrix=rng.normal(size=(3, 5)))
    measurements = make_release(
        priors[1],
        X,
        np.sin(2 * X[:, 0]),
        strategy=rule.columns(*priors[1].features_and_noise(X)),
        noise_sd=0.8,
    ).measurements
    rows = ArrayRows(X, np.zeros(20), chunk_rows=6, jobs=1)
    columns = RuleColumns(model=priors[1], rule=rule)
    sums = sum_stage(rows, priors, columns=columns, bands=None, known=(), table=0)
    others = tuple(zip(priors[1:], sums[1:], strict=True))
    strategy = streamed(priors[0], rule, sums[0], others=others)
    summed = replace(measurements[0], strategy=strategy)
    mixed = [weighted(p, w) for p, w in zip(priors, WEIGHTS, strict=True)]
    return Mixture.given(mixed, [summed]), Mixture.given(mixed, measurements)


@pytest.mark.parametrize("new_output", [False, True])
def test_sums_over_rows_mix_as_rows_do(both_mixtures, new_output):
    found, expected = both_mixtures
    X = np.array([[0.3], [1.9], [2.2], [7.0]])
    np.testing.assert_allclose(predicted(found, X), predicted(expected, X), rtol=1e-9)
    for moment in (variance, covariance):
        np.testing.assert_allclose(
            moment(found, X, new_output=new_output),
            moment(expected, X, new_output=new_output),
            rtol=1e-8,
            atol=1e-10,
        )


def test_what_is_asked_for_comes_back(both_mixtures):
    found, _ = both_mixtures
    X = np.array([[0.3], [1.9]])
    alone = predicted(found, X)
    for new_output in (False, True):
        mean, sd = predicted(found, X, return_std=True, new_output=new_output)
        again, spread = predicted(found, X, return_cov=True, new_output=new_output)
        np.testing.assert_array_equal(mean, again)
        np.testing.assert_array_equal(mean, alone)
        np.testing.assert_allclose(np.square(sd), np.diag(spread), rtol=1e-9)
    with pytest.raises(ValueError, match="not both"):
        predicted(found, X, return_std=True, return_cov=True)
