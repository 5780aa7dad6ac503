"""Learning from answers about labels: value, gradient, recovery, and what stays as declared."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from cloakgp.models import APPROXIMATIONS, ExactPrior, SparsePrior
from cloakgp.models.likelihoods import ClassLikelihood
from cloakgp.release import WeightedPrior
from cloakgp.release.hyperparameters.classification import LabelObjective
from cloakgp.release.hyperparameters.covariance import LearningQuestions
from cloakgp.release.hyperparameters.hyperprior import LOG_SD
from cloakgp.release.hyperparameters.learning import minimise
from cloakgp.release.hyperparameters.quadrature import posterior_maximum
from cloakgp.release.posterior.classification import SignAnswers
from cloakgp.release.tables import DenseTable

KERNELS = [
    RBF(1.3),
    ConstantKernel(2.0) * Matern(0.9, nu=1.5) + WhiteKernel(0.3),
    ConstantKernel(2.0, "fixed") * RationalQuadratic(1.2, 0.7) + DotProduct(0.5),
    ConstantKernel(3.0) * RBF([1.0, 2.5]),
    ConstantKernel(1.5) * RBF(1.0) + DotProduct(0.0),
]
FREE = [1, 3, 3, 3, 2]


def prior_of(kernel, *, means=(0.4,), link_name="probit", approximation=None, columns=2):
    if approximation is None:
        latent = ExactPrior(kernel=kernel, noise_variance=1e-6, mean=0.0)
    else:
        latent = SparsePrior(
            kernel=kernel,
            noise_variance=1e-6,
            mean=0.0,
            inducing=np.linspace(0, 3, 4 * columns).reshape(4, columns),
            approximation=approximation,
        )
    likelihood = ClassLikelihood(link_name=link_name, latent_means=means)
    return WeightedPrior(prior=latent, likelihood=likelihood, weight=1.0)


def answers_of(rng, *, channels=1, columns=2):
    """Answers about two tables; rows 2 and 5 of the second are alike."""
    X, Z = rng.uniform(0, 3, size=(9, columns)), rng.uniform(0, 3, size=(6, columns))
    Z[2] = Z[5]
    tables = (
        DenseTable(number=0, X=X, questions=rng.normal(size=(4, 9))),
        DenseTable(number=1, X=Z, questions=2 * rng.normal(size=(3, 6))),
    )
    return tuple(SignAnswers(tables=tables, values=3 * rng.normal(size=7)) for _ in range(channels))


def objective_of(prior, answers, *, means=True):
    return LabelObjective(
        prior=prior.prior,
        likelihood=prior.likelihood,
        questions=LearningQuestions.of(answers[0].tables),
        values=np.array([answer.values for answer in answers]),
        means=means,
    )


def learn_labels(prior, answers, *, means=True, average=False):
    objective = objective_of(prior, answers, means=means)
    return minimise(objective, declared=prior, average=average)


def log_posterior(prior, answers, position):
    """By scipy's bivariate normal, row by row."""
    X = np.vstack([table.X for table in answers[0].tables])
    first = answers[0].tables[0]
    questions = np.zeros((7, len(X)))
    questions[:4, : len(first.X)] = first.questions
    questions[4:, len(first.X) :] = answers[0].tables[1].questions
    kernel = prior.prior.kernel
    # Between different rows there is no white noise.
    latent, own = kernel(X, X.copy()), np.diag(kernel(X))
    spread = np.sqrt(prior.likelihood.link.probit_variance + own)
    total = float(stats.norm.logpdf(position).sum())
    for mean, one in zip(prior.likelihood.latent_means, answers, strict=True):
        a = mean / spread
        expected = 2 * stats.norm.cdf(a) - 1
        covariance = np.diag(1 - expected**2)
        for i in range(len(X)):
            for j in range(i):
                rho = latent[i, j] / spread[i] / spread[j]
                both = stats.multivariate_normal(np.zeros(2), [[1, rho], [rho, 1]]).cdf(
                    [a[i], a[j]]
                )
                covariance[i, j] = covariance[j, i] = 4 * (
                    both - stats.norm.cdf(a[i]) * stats.norm.cdf(a[j])
                )
        total += stats.multivariate_normal(
            questions @ expected, questions @ covariance @ questions.T + np.eye(7)
        ).logpdf(one.values)
    return total


@pytest.mark.parametrize("link_name", ["probit", "logit"])
@pytest.mark.parametrize("index", [1, 2])
def test_the_objective_against_scipy(index, link_name, rng):
    prior = prior_of(KERNELS[index], link_name=link_name, means=(0.4, -0.8, -0.2))
    answers = answers_of(rng, channels=3)
    objective = objective_of(prior, answers)
    one, other = 0.5 * rng.normal(size=(2, objective.size))
    expected = [log_posterior(objective.at(at), answers, at) for at in (one, other)]
    # Up to a constant.
    assert objective(other)[0] - objective(one)[0] == pytest.approx(
        expected[0] - expected[1], abs=1e-3
    )


@pytest.mark.parametrize("approximation", [None, "fitc"])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("means", [True, False])
@pytest.mark.parametrize("index", range(len(KERNELS)))
def test_the_gradient_against_finite_differences(index, means, channels, approximation, rng):
    prior = prior_of(KERNELS[index], means=(0.4, -0.8, 0.1)[:channels], approximation=approximation)
    objective = objective_of(prior, answers_of(rng, channels=channels), means=means)
    assert objective.size == FREE[index] + means * channels
    at = rng.normal(size=objective.size)
    value, gradient = objective(at)
    assert np.isfinite(value)
    step = 1e-5
    differences = [
        (objective(at + step * axis)[0] - objective(at - step * axis)[0]) / (2 * step)
        for axis in np.eye(objective.size)
    ]
    np.testing.assert_allclose(gradient, differences, atol=1e-5 * max(1, np.abs(gradient).max()))


def test_hyperparameters_of_zero_and_fixed_ones_stay(rng):
    prior = prior_of(ConstantKernel(1.5) * RBF(1.0, "fixed") + DotProduct(0.0))
    objective = objective_of(prior, answers_of(rng))
    moved = objective.at(np.array([1.0, 0.5]))
    theta = moved.prior.kernel.get_params()
    assert theta["k2__sigma_0"] == 0.0
    assert theta["k1__k2__length_scale"] == 1.0
    assert theta["k1__k1__constant_value"] == pytest.approx(1.5 * np.exp(LOG_SD))


@pytest.mark.parametrize("approximation", [None, *APPROXIMATIONS])
def test_the_declared_prior_lies_at_the_origin(approximation, rng):
    prior = prior_of(KERNELS[1], approximation=approximation)
    objective = objective_of(prior, answers_of(rng))
    back = objective.at(np.zeros(objective.size))
    np.testing.assert_allclose(back.prior.kernel.theta, prior.prior.kernel.theta, rtol=1e-12)
    assert back.likelihood == prior.likelihood
    assert type(back.prior) is type(prior.prior)


def simulated(rng, *, rows, scale, lengthscale, means):
    """Signs under latent functions of known hyperparameters, asked nearly without noise."""
    X = np.linspace(0, rows / 5, rows)[:, None]
    K = scale * np.exp(-np.square(X - X.T) / (2 * lengthscale**2)) + 1e-8 * np.eye(rows)
    tables = (DenseTable(number=0, X=X, questions=100 * np.eye(rows)),)
    answers = []
    for mean in means:
        latent = mean + np.linalg.cholesky(K) @ rng.normal(size=rows)
        signs = np.where(latent + rng.normal(size=rows) > 0, 1.0, -1.0)
        answers.append(SignAnswers(tables=tables, values=100 * signs + rng.normal(size=rows)))
    return tuple(answers)


@pytest.mark.parametrize("means", [(0.8,), (0.8, -0.6, -1.0)])
def test_many_nearly_noiseless_answers_give_hyperparameters_back(means):
    rng = np.random.default_rng(0)
    answers = simulated(rng, rows=120, scale=4.0, lengthscale=1.0, means=means)
    declared = prior_of(ConstantKernel(1.0) * RBF(3.0), means=tuple(0.0 for _ in means), columns=1)
    [learned] = learn_labels(declared, answers)
    assert learned.weight == 1.0
    theta = np.exp(learned.prior.kernel.theta)
    # A few dozen lengthscales, and a prior of a factor of 1.4: the scale is known to a factor.
    assert 1.4 < theta[0] < 9.0
    assert theta[1] == pytest.approx(1.0, rel=0.35)
    np.testing.assert_allclose(learned.likelihood.latent_means, means, atol=0.9)
    # Nearer than what was declared, in every respect.
    assert abs(np.log(theta[1])) < abs(np.log(3.0))
    assert (np.sign(learned.likelihood.latent_means) == np.sign(means)).all()


def test_declared_values_stay_where_nothing_is_free(rng):
    prior = prior_of(ConstantKernel(1.0, "fixed") * RBF(1.0, "fixed"))
    [found] = learn_labels(prior, answers_of(rng), means=False, average=True)
    assert found is prior


def test_answers_drowned_in_noise_leave_the_declared_values(rng):
    answers = answers_of(rng)
    drowned = tuple(
        SignAnswers(
            tables=tuple(
                DenseTable(number=table.number, X=table.X, questions=1e-8 * table.questions)
                for table in answers[0].tables
            ),
            values=rng.normal(size=7),
        )
        for _ in range(1)
    )
    prior = prior_of(KERNELS[0])
    objective = objective_of(prior, drowned)
    best = posterior_maximum(objective, size=objective.size)
    np.testing.assert_allclose(best, 0, atol=1e-4)
    [found] = learn_labels(prior, drowned)
    np.testing.assert_allclose(found.prior.kernel.theta, prior.prior.kernel.theta)


def test_an_average_is_of_shares(rng):
    prior = prior_of(KERNELS[0])
    found = learn_labels(prior, answers_of(rng), average=True)
    assert len(found) > 1
    assert sum(one.weight for one in found) == pytest.approx(1.0)
    assert all(one.weight > 0 for one in found)


@pytest.mark.parametrize(("link_name", "atol"), [("probit", 1e-6), ("logit", 0.01)])
@pytest.mark.parametrize("means", [(0.4,), (-1.9, 0.8, -0.1)])
def test_declared_rates_are_kept_whatever_kernel_is_learned(link_name, atol, means, rng):
    prior = prior_of(ConstantKernel(2.0) * RBF(1.0), means=means, link_name=link_name)
    answers = answers_of(rng, channels=len(means))
    objective = objective_of(prior, answers, means=False)
    for position in ([2.0, -1.0], [-1.5, 0.5]):
        tried = objective.at(np.array(position))
        rates = [
            one.likelihood.prior_rates(one.prior, answers[0].tables[0].X) for one in (tried, prior)
        ]
        np.testing.assert_allclose(*rates, rtol=0, atol=atol)


def test_no_covariance_is_impossible_and_not_an_error(rng):
    """Far out, the kernel overflows: the search goes round it."""
    prior = prior_of(ConstantKernel(1e300) * RBF(1.0))
    objective = objective_of(prior, answers_of(rng))
    with pytest.raises(np.linalg.LinAlgError), np.errstate(all="ignore"):
        objective(np.full(objective.size, 60.0))


def test_channels_add_up(rng):
    """Two channels of the same answers are worth their sum, and one weak prior."""
    answers = answers_of(rng)
    one = objective_of(prior_of(KERNELS[0]), answers, means=False)
    two = objective_of(prior_of(KERNELS[0], means=(0.4, 0.4)), answers * 2, means=False)
    at = rng.normal(size=1)
    weak = 0.5 * float(at @ at)
    assert two(at)[0] - weak == pytest.approx(2 * (one(at)[0] - weak))
    np.testing.assert_allclose(two(at)[1] - at, 2 * (one(at)[1] - at))
