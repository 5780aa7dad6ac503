"""Noise learned from an answer about spread: brute force, and what it is when outputs are noisy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conditioning import weighted
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from stages import band, stage

from cloakgp.models import ExactPrior
from cloakgp.privacy.questions.spread import SpreadQuestion
from cloakgp.release import Hyperprior, Release
from cloakgp.release.hyperparameters.noise import (
    LOG_NOISE_SD,
    NOISE_REACH,
    AnswersByNoise,
    scaled_noise,
    with_learned_noise,
)
from cloakgp.release.posterior.clipped import FREEDOM, clipped_posterior, log_evidence

ROWS = 60
X = np.linspace(0, 6, ROWS)[:, None]
PRIOR = ExactPrior(kernel=ConstantKernel(0.5) * RBF(2.0), noise_variance=0.25, mean=0.0)


def asked(true_noise_sd, *, seed=0, noise_sd=0.5):
    """A first stage about sums, and an answer about the spread under the declared prior."""
    rng = np.random.default_rng(seed)
    y = np.sin(X[:, 0]) / 2 + true_noise_sd * rng.normal(size=ROWS)
    first = stage(X, np.kron(np.eye(6), np.ones((1, 10))), y, noise_sd=1.0, seed=seed)
    mean, variance = clipped_posterior(PRIOR, [first]).outputs(X, table=0)
    question = SpreadQuestion(mean=mean, sd=np.sqrt(variance))
    ones = np.ones((1, ROWS))
    return first, stage(X, ones, y, question=question, noise_sd=noise_sd, seed=seed + 1)


def learned(measurements, prior=PRIOR):
    [found] = with_learned_noise([weighted(prior)], measurements)
    return found.prior.noise_variance


def log_posterior(position, first, spread):
    """Of the noise, with the density of both answers by other means: normal laws and draws."""
    prior = replace(PRIOR, noise_variance=PRIOR.noise_variance * np.exp(1.4 * position))
    K_y = prior.row_covariance(X, X.copy()) + prior.noise_variance * np.eye(ROWS)
    R, noise = first.strategy.matrix, first.noise_sd**2 * np.eye(first.strategy.n_answers)
    S = R @ K_y @ R.T + noise
    surprise = first.residuals()[:, 0]
    density = stats.multivariate_normal(np.zeros(len(S)), S).logpdf(surprise)
    gain = K_y @ R.T @ np.linalg.inv(S)
    mean, covariance = gain @ surprise, K_y - gain @ R @ K_y
    draws = np.random.default_rng(3).standard_t(FREEDOM, size=(4000, ROWS))
    draws *= np.sqrt((FREEDOM - 2) / FREEDOM)
    y = mean + draws * np.sqrt(np.diag(covariance))
    question = spread.question
    octaves = np.log2(8 * np.abs(y - question.mean) / question.sd)
    share = np.clip(octaves / 4, 0, 1) - 0.5
    law = stats.norm(
        share.sum(axis=1).mean(), np.sqrt(share.var(axis=0).sum() + spread.noise_sd**2)
    )
    return density + law.logpdf(spread.answers.values[0, 0]) - 0.5 * position**2


@pytest.mark.parametrize("true_noise_sd", [0.2, 0.5, 1.2])
def test_it_is_the_mean_over_a_grid(true_noise_sd):
    made = asked(true_noise_sd)
    grid = np.linspace(-NOISE_REACH, NOISE_REACH, 101)
    heights = np.array([log_posterior(position, *made) for position in grid])
    variances = PRIOR.noise_variance * np.exp(2 * LOG_NOISE_SD * grid)
    mean = np.average(variances, weights=np.exp(heights - heights.max()))
    assert np.log(learned(made)) == pytest.approx(np.log(mean), abs=0.12)


def answers_at(value, *, factor=1.0):
    """One answer about spread, expected to be e^position times a factor, with sd 0.1."""
    positions = np.linspace(-2.0, 2.0, 41)
    return AnswersByNoise.at_all(
        -np.square(positions),
        positions=positions,
        values=np.array([value]),
        expected=factor * np.exp(positions)[:, None],
        variance=np.full((len(positions), 1), 0.01),
    )


def test_the_density_of_all_answers_is_an_integral_over_the_noise():
    """Oracle: quadrature of evidence, prior and normal density, at other places."""
    differences = []
    for factor in (1.0, 3.0):
        known = answers_at(1.5, factor=factor)

        def density(position, factor=factor):
            law = stats.norm(factor * np.exp(position), 0.1)
            return np.exp(-(position**2)) * law.pdf(1.5) * stats.norm.pdf(position)

        expected = integrate.quad(density, -2.0, 2.0, points=[np.log(1.5 / factor)])[0]
        differences.append(known.log_density - np.log(expected))
    # Up to a constant that all have.
    assert differences[0] == pytest.approx(differences[1], abs=0.01)


def test_excess_is_what_is_expected_over_what_is_told_in_sds():
    known = answers_at(1.5)
    assert known.excess(0.0) == pytest.approx((1.0 - 1.5) / 0.1, rel=1e-6)
    assert known.excess(1.0) == pytest.approx((np.e - 1.5) / 0.1, rel=1e-6)
    # Beyond the noises that were tried it is that of the last.
    assert known.excess(9.0) == known.excess(2.0)


def test_noisy_outputs_are_told_from_calm_ones():
    """On the average of some tables: nearer to the truth than what was declared."""
    for truth in (0.2, 1.2):
        found = np.mean([np.log(learned(asked(truth, seed=s))) / 2 for s in range(8)])
        declared = np.log(PRIOR.noise_variance) / 2
        assert abs(found - np.log(truth)) < 0.6 * abs(declared - np.log(truth))


@given(value=st.floats(-40.0, 40.0))
def test_it_stays_within_reach(value):
    first, spread = asked(0.5)
    far = replace(spread, answers=replace(spread.answers, values=np.array([[value]])))
    position = np.log(learned([first, far]) / PRIOR.noise_variance) / (2 * LOG_NOISE_SD)
    assert -NOISE_REACH <= position <= NOISE_REACH


def test_an_answer_that_is_all_noise_leaves_what_was_expected_before():
    """The mean under the prior: what sums alone tell with this much noise is nothing."""
    first, _ = asked(0.5, noise_sd=1.0)
    first = replace(first, answers=replace(first.answers, noise_sd=1e4))
    question = SpreadQuestion(mean=np.zeros(ROWS), sd=np.ones(ROWS))
    blurred = stage(X, np.ones((1, ROWS)), np.zeros(ROWS), question=question, noise_sd=1e5)
    position = stats.truncnorm(-NOISE_REACH, NOISE_REACH)
    factor = position.expect(lambda z: np.exp(2 * LOG_NOISE_SD * z))
    assert learned([first, blurred]) == pytest.approx(factor * PRIOR.noise_variance, rel=0.03)


def test_all_priors_change_by_the_factor_of_the_weightiest():
    made = asked(1.2)
    other = replace(PRIOR, noise_variance=0.5, kernel=ConstantKernel(2.0) * RBF(1.0))
    found = with_learned_noise([weighted(other, 0.3), weighted(PRIOR, 0.7)], made)
    factors = [
        after.prior.noise_variance / before.noise_variance
        for after, before in zip(found, (other, PRIOR), strict=True)
    ]
    assert factors[0] == pytest.approx(factors[1])
    assert found[1].prior.noise_variance == learned(made)
    assert [one.weight for one in found] == [0.3, 0.7]
    assert found[0].prior.kernel == other.kernel


def test_one_sd_of_its_prior_is_a_factor_of_two():
    assert scaled_noise(PRIOR, 1.0).noise_variance == pytest.approx(0.25 * np.exp(1.4))
    assert scaled_noise(PRIOR, 0.0) == PRIOR


def test_learning_hands_the_noise_to_the_answer_about_spread():
    """With it, the noise is where the evidence of all answers says; sums alone do not tell."""
    made = asked(1.2)
    release = Release(prior=PRIOR, measurements=made)
    taught = release.learn(Hyperprior(mean=False)).fitted_prior
    assert taught.noise_variance > 1.5 * PRIOR.noise_variance
    kept = release.learn(Hyperprior(noise_variance=False, mean=False)).fitted_prior
    assert kept.noise_variance == PRIOR.noise_variance
    # Nothing nearby is more probable, its weak prior included.
    main = replace(taught, noise_variance=kept.noise_variance)
    heights = [
        log_evidence(scaled_noise(main, position), made) - 0.5 * position**2
        for position in np.linspace(-2, 2, 41)
    ]
    best = np.linspace(-2, 2, 41)[int(np.argmax(heights))]
    found = np.log(taught.noise_variance / main.noise_variance) / (2 * LOG_NOISE_SD)
    assert found == pytest.approx(best, abs=0.1)


def test_bands_count_in_it():
    """A later stage moves the marginals that the answer about spread is held against."""
    first, spread = asked(0.8)
    bands = band(0.0, 1.5, rows=ROWS)
    later = stage(X, np.eye(6).repeat(10, axis=1), np.sin(X[:, 0]), question=bands, noise_sd=0.2)
    assert learned([first, spread]) != pytest.approx(learned([first, later, spread]), rel=1e-3)
