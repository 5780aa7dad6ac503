"""The linear priors that go with a prior over classes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from cloakgp.models import APPROXIMATIONS, ExactPrior, SparsePrior
from cloakgp.models.likelihoods import ClassLikelihood
from cloakgp.models.likelihoods.classes import link

X = np.linspace(0, 6, 9)[:, None]


def prior_of(*, means=(0.0,), link_name="probit", kernel=None, approximation=None):
    kernel = ConstantKernel(2.0) * RBF(1.5) if kernel is None else kernel
    if approximation is None:
        latent = ExactPrior(kernel=kernel, noise_variance=1e-6, mean=0.0)
    else:
        latent = SparsePrior(
            kernel=kernel,
            noise_variance=1e-6,
            mean=0.0,
            inducing=np.linspace(0, 6, 4)[:, None],
            approximation=approximation,
        )
    return latent, ClassLikelihood(link_name=link_name, latent_means=means)


def linearised(pair):
    prior, likelihood = pair
    return likelihood.linear_prior(prior, X)


def one_step(pair):
    prior, likelihood = pair
    return likelihood.cloaking_prior(prior, X)


@pytest.mark.parametrize("link_name", ["probit", "logit"])
@pytest.mark.parametrize("mean", [0.0, 1.2, -0.7])
def test_the_nearest_linear_prior_by_simulated_labels(mean, link_name):
    """Regress simulated labels on their latent values: that slope, and that remainder.

    The tolerances are above five standard errors of a million draws.
    """
    prior, likelihood = prior_of(means=(mean,), link_name=link_name)
    linear = likelihood.linear_prior(prior, X)
    rng = np.random.default_rng(5)
    draws = 1_000_000
    latent = rng.normal(mean, np.sqrt(2.0), size=draws)
    labels = np.where(rng.uniform(size=draws) < likelihood.link.probability(latent), 1.0, -1.0)
    slope = np.cov(latent, labels)[0, 1] / latent.var()
    left = labels - labels.mean() - slope * (latent - mean)
    assert linear.query_variance(X) == pytest.approx(np.full(9, 2.0 * slope**2), abs=0.02)
    assert linear.noise_variance == pytest.approx(left.var(), abs=0.01)


def test_channels_are_averaged_over():
    both = linearised(prior_of(means=(0.5, -1.5)))
    each = [linearised(prior_of(means=(mean,))) for mean in (0.5, -1.5)]
    np.testing.assert_allclose(
        both.query_variance(X), np.mean([one.query_variance(X) for one in each], axis=0)
    )
    assert both.noise_variance == pytest.approx(np.mean([one.noise_variance for one in each]))


@pytest.mark.parametrize("kernel", [ConstantKernel(1e4) * RBF(1.0), ConstantKernel(1e-4) * RBF()])
@pytest.mark.parametrize("mean", [0.0, 30.0])
def test_extreme_priors_have_a_linear_prior_too(kernel, mean):
    linear = linearised(prior_of(kernel=kernel, means=(mean,)))
    assert 0 < linear.noise_variance <= 1 + 1e-9
    assert 0 <= linear.query_variance(X).max() <= 1


def test_the_linear_prior_does_not_free_a_hyperparameter_of_its_own():
    prior, likelihood = prior_of()
    linear = likelihood.linear_prior(prior, X)
    assert len(linear.kernel.theta) == len(prior.kernel.theta)


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_sparse_priors_stay_sparse(approximation):
    prior = prior_of(approximation=approximation)
    for linear in (linearised(prior), one_step(prior)):
        assert isinstance(linear, SparsePrior)
        assert linear.approximation == approximation
        np.testing.assert_array_equal(linear.inducing, prior[0].inducing)


@pytest.mark.parametrize("mean", [0.0, 1.5])
def test_one_step_is_half_of_a_newton_step(mean):
    prior = prior_of(means=(mean,), link_name="logit")
    Z = np.array([[0.3], [7.0]])
    w = 1 / (1 + np.exp(-mean)) / (1 + np.exp(mean))
    K, cross = prior[0].kernel(X), prior[0].kernel(Z, X)
    # (2021 paper, equation 11) at the query points: ½ K_*f (I + W K)⁻¹.
    newton = cross @ np.linalg.inv(np.eye(9) + w * K) / 2
    # Regression with noise variance 1/w has the cloaking matrix w K_*f (I + W K)⁻¹.
    np.testing.assert_allclose(
        one_step(prior).cloaking_matrix(Z, X), newton * 2 * w, rtol=1e-9, atol=1e-12
    )


def test_one_step_from_zero_is_regression_with_noise_variance_four():
    assert one_step(prior_of()).noise_variance == pytest.approx(4.0, rel=1e-14)


def test_white_noise_of_the_kernel_counts_as_latent_variance():
    """A label's own latent noise flattens its slope as much as latent variance does."""
    white = prior_of(kernel=ConstantKernel(2.0) * RBF(1.5) + WhiteKernel(3.0))
    latent_slope = linearised(white).query_variance(X)[0] / 2.0
    _, half = white[1].link.moments(np.zeros(1), np.array([5.0]))
    assert latent_slope == pytest.approx(4 * half[0] ** 2)


@pytest.mark.parametrize("link_name", ["probit", "logit"])
@pytest.mark.parametrize("variance", [[0.0], [4.0, 4.0], [0.5, 2.0, 90.0]])
def test_a_latent_mean_gives_back_its_probability(link_name, variance):
    chosen, variance = link(link_name), np.array(variance)
    for probability in (1e-9, 0.1, 0.5, 0.93):
        mean = chosen.latent_mean(probability, variance=variance)
        found, _ = chosen.moments(np.full_like(variance, mean), variance)
        assert found.mean() == pytest.approx(probability, rel=1e-6)


@pytest.mark.parametrize("link_name", ["probit", "logit"])
def test_how_a_probability_changes_with_the_variance(link_name):
    chosen, mean, variance = link(link_name), np.array([-2.0, 0.3]), np.array([0.5, 3.0])
    step = 1e-5
    ends = [chosen.moments(mean, variance + sign * step)[0] for sign in (1, -1)]
    numeric = (ends[0] - ends[1]) / (2 * step)
    np.testing.assert_allclose(chosen.by_variance(mean, variance), numeric, rtol=1e-6)
