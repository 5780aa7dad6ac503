"""The posterior behind labels against quadrature of the true one, limits and invariances."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtr
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from cloakgp.models import APPROXIMATIONS, ExactPrior, SparsePrior
from cloakgp.models.likelihoods import ClassLikelihood
from cloakgp.models.likelihoods.classes import link
from cloakgp.release.posterior import classification as module
from cloakgp.release.posterior.classification import SignAnswers, label_posterior
from cloakgp.release.tables import DenseTable
from cloakgp.utils.names import LINKS

NUGGET = 1e-6


def of_link(name):
    return ClassLikelihood(link_name=name, latent_means=(0.0,))


Z = np.array([[1.0], [2.5]])


def prior_of(variance, *, mean=0.0, approximation=None, scale=1.0):
    kernel = ConstantKernel(variance) * RBF(scale)
    if approximation is None:
        return ExactPrior(kernel=kernel, noise_variance=NUGGET * variance, mean=mean)
    return SparsePrior(
        kernel=kernel,
        noise_variance=NUGGET * variance,
        mean=mean,
        inducing=np.linspace(0, 3, 5)[:, None],
        approximation=approximation,
    )


def answers_of(X, questions, values, *, number=0):
    table = DenseTable(number=number, X=X, questions=questions)
    return SignAnswers(tables=(table,), values=values)


def covariance_of(prior, X):
    return prior.row_covariance(X, X.copy()) + np.diag(prior.row_noise(X))


def true_posterior(prior, X, questions, values, *, found_link, nodes=40):
    """Mean and variance of f at Z, integrating over latent values and over all labellings."""
    covariance = covariance_of(prior, X)
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    standard = np.array(list(itertools.product(points, repeat=len(X))))
    density = np.prod(list(itertools.product(weights, repeat=len(X))), axis=1)
    latent = prior.mean + standard @ np.linalg.cholesky(covariance).T
    chance = found_link.probability(latent)
    likelihood = np.zeros(len(latent))
    for labels in itertools.product((-1.0, 1.0), repeat=len(X)):
        each = np.prod(np.where(np.array(labels) > 0, chance, 1 - chance), axis=1)
        likelihood += each * np.exp(-np.square(values - questions @ labels).sum() / 2)
    density *= likelihood
    density /= density.sum()
    mean = density @ latent
    spread = (latent - mean).T @ ((latent - mean) * density[:, None])
    gain = prior.cross_covariance(Z, X) @ np.linalg.inv(covariance)
    variance = prior.query_covariance(Z) - gain @ (covariance - spread) @ gain.T
    return prior.mean + gain @ (mean - prior.mean), np.diag(variance)


# Noise sd of an answer about one label → how far posterior linearisation may be off, in prior sds
# of the mean and in probability. It is worst where answers tell single labels apart but not
# surely, which sums over many rows never do; and it vanishes with stronger noise.
REACHED = {
    0.1: (0.25, 0.08),
    0.5: (0.6, 0.2),
    2.0: (0.2, 0.06),
    6.0: (0.02, 0.01),
    20.0: (4e-3, 2e-3),
}


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("variance", [0.05, 1.0, 4.0])
@pytest.mark.parametrize("noise_sd", REACHED)
def test_a_few_rows_against_the_true_posterior(noise_sd, variance, name):
    rng = np.random.default_rng(7)
    found_link = link(name)
    for rows in (1, 2, 3):
        X = rng.uniform(0, 3, size=(rows, 1))
        prior = prior_of(variance, mean=0.4)
        questions = np.eye(rows) / noise_sd
        labels = np.where(rng.uniform(size=rows) < 0.5, 1.0, -1.0)
        values = questions @ labels + rng.normal(size=rows)
        mean, spread = true_posterior(prior, X, questions, values, found_link=found_link)
        ours = label_posterior(prior, answers_of(X, questions, values), likelihood=of_link(name))
        by_mean, by_probability = REACHED[noise_sd]
        assert np.abs(ours.mean(Z) - mean).max() <= by_mean * np.sqrt(variance)
        np.testing.assert_allclose(
            found_link.moments(ours.mean(Z), ours.variance(Z))[0],
            found_link.moments(mean, spread)[0],
            atol=by_probability,
        )
        # It knows which way the answers point.
        assert (np.sign(ours.mean(Z) - 0.4) == np.sign(mean - 0.4))[
            np.abs(mean - 0.4) > by_mean * np.sqrt(variance)
        ].all()


@pytest.mark.parametrize("rows", [30, 300])
@pytest.mark.parametrize("share", [0.5, 0.8, 0.97])
@pytest.mark.parametrize("noise_sd", [0.5, 5.0])
def test_the_share_of_many_rows_alike_against_the_true_posterior(rows, share, noise_sd):
    """All rows at one place and one question about their sum: one integral, exactly known."""
    prior = prior_of(2.0, mean=-0.3)
    X = np.ones((rows, 1))
    count = round(share * rows)
    questions = np.full((1, rows), 1 / (noise_sd * np.sqrt(rows)))
    values = questions[0, :1] * (2 * count - rows) + 0.3
    latent = -0.3 + np.sqrt(2.0) * np.linspace(-7, 7, 4001)
    density = stats.norm.pdf(latent, -0.3, np.sqrt(2.0))
    counts = np.arange(rows + 1)
    seen = np.exp(-np.square(values - questions[0, 0] * (2 * counts - rows)) / 2)
    density *= stats.binom.pmf(counts, rows, ndtr(latent)[:, None]) @ seen
    density /= density.sum()
    mean = density @ latent
    spread = density @ np.square(latent - mean)
    ours = label_posterior(prior, answers_of(X, questions, values), likelihood=of_link("probit"))
    found = ours.mean(X[:1])[0], ours.variance(X[:1])[0]
    # What a Gaussian can do for a skewed posterior: a fifth of the prior's sd, and in probability:
    assert found[0] == pytest.approx(mean, abs=0.2 * np.sqrt(2.0))
    assert np.sqrt(found[1]) == pytest.approx(np.sqrt(spread), abs=0.2 * np.sqrt(2.0))
    predicted, expected = (ndtr(m / np.sqrt(1 + v)) for m, v in (found, (mean, spread)))
    assert predicted == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("approximation", [None, *APPROXIMATIONS])
def test_the_gaussian_limit(approximation, rng):
    """Where the link is a straight line over the prior, this is regression on the labels."""
    variance = 1e-4
    prior = prior_of(variance, mean=0.3, approximation=approximation)
    X = rng.uniform(0, 3, size=(12, 1))
    questions, values = rng.normal(size=(4, 12)), 3 * rng.normal(size=4)
    ours = label_posterior(prior, answers_of(X, questions, values), likelihood=of_link("probit"))
    expected, slope = 2 * stats.norm.cdf(0.3) - 1, 2 * stats.norm.pdf(0.3)
    K = covariance_of(prior, X)
    asked = questions * slope
    S = asked @ K @ asked.T + (1 - expected**2) * questions @ questions.T + np.eye(4)
    gain = prior.cross_covariance(Z, X) @ asked.T @ np.linalg.inv(S)
    mean = 0.3 + gain @ (values - questions @ np.full(12, expected))
    covariance = prior.query_covariance(Z) - gain @ asked @ prior.cross_covariance(Z, X).T
    # The link's curvature enters with the variance.
    np.testing.assert_allclose(ours.mean(Z), mean, atol=0.02 * np.sqrt(variance))
    np.testing.assert_allclose(ours.variance(Z), np.diag(covariance), rtol=1e-3)


def problem(rng, *, rows=12, answers=5, scale=1.0):
    X = rng.uniform(0, 3, size=(rows, 1))
    questions = scale * rng.normal(size=(answers, rows))
    labels = np.where(np.sin(2 * X[:, 0]) > 0, 1.0, -1.0)
    return X, questions, questions @ labels + rng.normal(size=answers)


@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([0.05, 0.3, 2.0]))
def test_the_order_of_rows_and_of_answers_does_not_matter(seed, scale):
    rng = np.random.default_rng(seed)
    X, questions, values = problem(rng, scale=scale)
    prior, probit = prior_of(2.0, mean=0.2), of_link("probit")
    first = label_posterior(prior, answers_of(X, questions, values), likelihood=probit)
    rows, order = rng.permutation(12), rng.permutation(5)
    moved = answers_of(X[rows], questions[order][:, rows], values[order])
    second = label_posterior(prior, moved, likelihood=probit)
    np.testing.assert_allclose(second.mean(Z), first.mean(Z), atol=1e-4)
    np.testing.assert_allclose(second.variance(Z), first.variance(Z), atol=1e-4)


def test_one_table_in_two_is_one_table(rng):
    X, questions, values = problem(rng)
    questions[:2, 7:], questions[2:, :7] = 0, 0
    prior, probit = prior_of(2.0), of_link("probit")
    whole = label_posterior(prior, answers_of(X, questions, values), likelihood=probit)
    parts = SignAnswers(
        tables=(
            DenseTable(number=0, X=X[:7], questions=questions[:2, :7]),
            DenseTable(number=1, X=X[7:], questions=questions[2:, 7:]),
        ),
        values=values,
    )
    split = label_posterior(prior, parts, likelihood=probit)
    assert [table.questions.shape for table in split.tables] == [(2, 7), (3, 5)]
    np.testing.assert_allclose(split.mean(Z), whole.mean(Z), atol=1e-9)
    np.testing.assert_allclose(split.variance(Z), whole.variance(Z), atol=1e-9)
    np.testing.assert_allclose(split.noise_share(Z), whole.noise_share(Z), atol=1e-9)


def test_rows_that_nobody_asked_about_do_not_matter(rng):
    X, questions, values = problem(rng)
    prior, probit = prior_of(2.0), of_link("probit")
    first = label_posterior(prior, answers_of(X, questions, values), likelihood=probit)
    more, silent = np.vstack([X, X[:3]]), np.hstack([questions, np.zeros((5, 3))])
    second = label_posterior(prior, answers_of(more, silent, values), likelihood=probit)
    np.testing.assert_allclose(second.mean(Z), first.mean(Z), atol=1e-5)
    np.testing.assert_allclose(second.variance(Z), first.variance(Z), atol=1e-5)


@pytest.mark.parametrize("name", LINKS)
def test_turning_all_labels_turns_the_latent_function(rng, name):
    X, questions, values = problem(rng)
    one, other = (
        label_posterior(
            prior_of(2.0, mean=sign * 0.5),
            answers_of(X, questions, sign * values),
            likelihood=of_link(name),
        )
        for sign in (1, -1)
    )
    np.testing.assert_allclose(one.mean(Z), -other.mean(Z), atol=1e-8)
    np.testing.assert_allclose(one.variance(Z), other.variance(Z), atol=1e-8)


@pytest.mark.parametrize("approximation", [None, *APPROXIMATIONS])
def test_nothing_asked_is_the_prior(approximation):
    prior = prior_of(2.0, mean=0.7, approximation=approximation)
    ours = label_posterior(
        prior, SignAnswers(tables=(), values=np.zeros(0)), likelihood=of_link("probit")
    )
    np.testing.assert_array_equal(ours.mean(Z), [0.7, 0.7])
    np.testing.assert_array_equal(ours.variance(Z), prior.query_variance(Z))
    np.testing.assert_array_equal(ours.noise_share(Z), [0, 0])


def test_answers_drowned_in_noise_leave_the_prior(rng):
    X, questions, _ = problem(rng)
    prior = prior_of(2.0, mean=0.7)
    ours = label_posterior(
        prior, answers_of(X, 1e-9 * questions, rng.normal(size=5)), likelihood=of_link("probit")
    )
    np.testing.assert_allclose(ours.mean(Z), 0.7, atol=1e-6)
    np.testing.assert_allclose(ours.variance(Z), 2.0, atol=1e-6)


HARD = {
    "large latent variance": (1e4, 1.0, None),
    "huge latent variance": (1e8, 1.0, None),
    "all labels alike": (4.0, 1.0, 1.0),
    "all labels alike, hardly any noise": (4.0, 100.0, -1.0),
    "hardly any noise": (4.0, 100.0, None),
    "no noise to speak of": (4.0, 1e5, None),
    "strong noise": (4.0, 1e-3, None),
    "large variance, hardly any noise": (1e4, 1e3, None),
}


@pytest.mark.parametrize(
    ("name", "approximation"), [("probit", None), ("logit", None), ("probit", "fitc")]
)
@pytest.mark.parametrize("case", HARD)
def test_it_converges_in_hard_cases_too(case, name, approximation, monkeypatch):
    """Twice the steps change nothing."""
    variance, scale, sign = HARD[case]
    rng = np.random.default_rng(4)
    X = rng.uniform(0, 3, size=(20, 1))
    questions = scale * rng.normal(size=(8, 20)) / np.sqrt(8)
    labels = np.where(np.sin(2 * X[:, 0]) > 0, 1.0, -1.0) if sign is None else np.full(20, sign)
    values = questions @ labels + rng.normal(size=8)
    prior = prior_of(variance, mean=0.1, approximation=approximation)
    arguments = {"answers": answers_of(X, questions, values), "likelihood": of_link(name)}
    ours = label_posterior(prior, **arguments)
    monkeypatch.setattr(module, "STEPS", 2 * module.STEPS)
    longer = label_posterior(prior, **arguments)
    found, expected = (
        link(name).moments(one.mean(Z), one.variance(Z))[0] for one in (ours, longer)
    )
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, expected, atol=1e-3)
    assert (ours.variance(Z) <= prior.query_variance(Z) * (1 + 1e-9)).all()
    assert (ours.noise_share(Z) <= ours.variance(Z) + 1e-6 * variance).all()


@given(seed=st.integers(0, 2**32 - 1), approximation=st.sampled_from([None, *APPROXIMATIONS]))
def test_the_noises_part_of_the_variance_is_a_part(seed, approximation):
    rng = np.random.default_rng(seed)
    X, questions, values = problem(rng, scale=10.0 ** rng.uniform(-2, 1))
    prior = prior_of(2.0, mean=0.2, approximation=approximation)
    ours = label_posterior(prior, answers_of(X, questions, values), likelihood=of_link("probit"))
    share, variance = ours.noise_share(Z), ours.variance(Z)
    assert ((share >= 0) & (share <= variance * (1 + 1e-6) + 1e-9)).all()
    # It is the variance of the mean under repeated noise, with the linearisation held.
    noisy = replace(ours, weights=np.zeros(5))
    gains = []
    for axis in np.eye(5):
        moved = replace(noisy, weights=np.linalg.solve(ours.factor @ ours.factor.T, axis))
        gains.append(moved.mean(Z) - 0.2)
    np.testing.assert_allclose(np.square(gains).sum(axis=0), share, rtol=1e-6, atol=1e-12)


def test_sparse_priors_with_all_inducing_inputs_are_exact(rng):
    X, questions, values = problem(rng, rows=6)
    kernel = ConstantKernel(2.0) * Matern(1.0, nu=0.5)
    exact = ExactPrior(kernel=kernel, noise_variance=2e-6, mean=0.1)
    sparse = SparsePrior(kernel=kernel, noise_variance=2e-6, mean=0.1, inducing=np.vstack([X, Z]))
    one, other = (
        label_posterior(prior, answers_of(X, questions, values), likelihood=of_link("logit"))
        for prior in (exact, sparse)
    )
    np.testing.assert_allclose(one.mean(Z), other.mean(Z), atol=1e-4)
    np.testing.assert_allclose(one.variance(Z), other.variance(Z), atol=1e-4)


def test_what_is_left_out_between_channels_is_as_stated():
    """At the head of the module: −4 p_a p_b, and noise of correlation −1/(C − 1)."""
    chances = np.array([0.2, 0.3, 0.5])
    for p in (chances, np.full(3, 1 / 3)):
        signs = 2 * np.eye(3) - 1
        mean = p @ signs
        covariance = (signs * p[:, None]).T @ signs - np.outer(mean, mean)
        np.testing.assert_allclose(covariance[0, 1], -4 * p[0] * p[1])
    np.testing.assert_allclose(covariance[0, 1], -4 / 9)
    noise = np.eye(3) - 1 / 3
    np.testing.assert_allclose(noise[0, 1] / noise[0, 0], -1 / 2)
