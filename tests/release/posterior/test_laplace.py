"""The papers' Laplace iteration against regression, scikit-learn's classifier and inverses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp import DPGPClassifier
from cloakgp.design import Certificate
from cloakgp.fitting.defaults import choose_label_prior
from cloakgp.fitting.strategies import Budget, Query, choose_strategy
from cloakgp.models import APPROXIMATIONS
from cloakgp.privacy import Guarantee
from cloakgp.privacy.answers import Answers
from cloakgp.privacy.questions.classes import Classes
from cloakgp.release import DenseStrategy, Measurement
from cloakgp.release.posterior.laplace import NewtonState, iterate_newton
from cloakgp.release.posterior.mixture import Mixture, WeightedPrior

# Budgets here are as large, or tables as small, as each test needs.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

KERNEL = ConstantKernel(2.5) * RBF(1.2)
CLASSES = Classes((-1, 1))
NO_NOISE = 1e-12


@pytest.fixture
def table(rng):
    X = np.sort(rng.uniform(0, 6, size=(25, 1)), axis=0)
    return X, np.where(np.sin(1.3 * X[:, 0]) + 0.5 * rng.normal(size=25) > 0, 1.0, -1.0)


@pytest.fixture
def Z():
    return np.linspace(-0.5, 7, 11)[:, None]


def prior_of(X, *, mean_rate=0.5, **changes):
    return choose_label_prior(
        X,
        classes=CLASSES,
        kernel=KERNEL,
        link_name="logit",
        class_rates=[1 - mean_rate, mean_rate],
        **changes,
    )


def published(state, y, *, noise_sd=NO_NOISE, noise=None):
    """A step's C y, asked as it is, one question per training point."""
    C = state.cloaking_matrix()
    strategy = DenseStrategy(
        X=state.X,
        matrix=C,
        X_query=state.X,
        reconstruction=np.eye(len(C)),
        certificate=Certificate(criterion="trace", gap=0.0),
    )
    values = C @ y + (0 if noise is None else noise)
    answers = Answers(
        values=values[:, None],
        noise_sd=noise_sd,
        guarantee=Guarantee(epsilon=1.0, delta=0.1, mu=1.0, answers=len(C)),
    )
    return Measurement(strategy=strategy, question=CLASSES, answers=answers)


def steps_without_noise(prior, X, y, *, count):
    state, measurements = NewtonState.start(*prior, X), []
    for _ in range(count):
        measurements.append(published(state, y))
        state = state.step(measurements[-1])
    return state, measurements


@pytest.mark.parametrize("mean_rate", [0.5, 0.2])
def test_the_cloaking_matrix_against_the_direct_inverse(table, mean_rate):
    X, y = table
    prior = prior_of(X, mean_rate=mean_rate)
    K = KERNEL(X)
    state = NewtonState.start(*prior, X)
    for _ in range(3):
        w = expit(state.latent) * expit(-state.latent)
        # ½(K⁻¹ + W)⁻¹ = ½(I + K W)⁻¹ K, which needs no inverse of K.
        direct = np.linalg.solve(np.eye(25) + K * w, K) / 2
        np.testing.assert_allclose(state.cloaking_matrix(), direct, atol=1e-10)
        state = state.step(published(state, y))


def test_the_first_step_from_zero_is_regression_on_doubled_labels(table, Z):
    X, y = table
    oracle = GaussianProcessRegressor(KERNEL, alpha=4.0, optimizer=None).fit(X, 2 * y)
    state, _ = steps_without_noise(prior_of(X), X, y, count=1)
    np.testing.assert_allclose(state.latent, oracle.predict(X), atol=1e-8)
    mean, _, share = state.predicted(Z)
    np.testing.assert_allclose(mean, oracle.predict(Z), atol=1e-4)
    np.testing.assert_allclose(share, 0, atol=1e-12)


def test_cloaking_the_queries_is_that_step_too(table, Z):
    """Mechanism "trace" asks for C_* y, half of the regression on 2y of noise variance 4."""
    X, y = table
    oracle = GaussianProcessRegressor(KERNEL, alpha=4.0, optimizer=None).fit(X, 2 * y)
    prior, likelihood = prior_of(X)
    strategy = choose_strategy(
        X,
        prior=prior,
        likelihood=likelihood,
        query=Query(X=Z),
        question=CLASSES,
        budget=Budget(epsilon=1.0, delta=0.01),
        criterion="trace",
    )
    cloaked = strategy.reconstruction @ strategy.matrix @ (2 * y)
    np.testing.assert_allclose(cloaked, oracle.predict(Z), atol=1e-4)


def test_many_steps_without_noise_reach_scikit_learns_mode(table, Z):
    X, y = table
    oracle = GaussianProcessClassifier(KERNEL, optimizer=None, max_iter_predict=200).fit(X, y)
    state, measurements = steps_without_noise(prior_of(X), X, y, count=30)
    mode = KERNEL(X) @ (oracle.base_estimator_.y_train_ - oracle.base_estimator_.pi_)
    np.testing.assert_allclose(state.latent, mode, atol=1e-5)
    mean, variance, _ = state.predicted(Z)
    # Rasmussen and Williams 2006, equations 3.21 and 3.24, by direct inverses.
    pi, crossed = expit(state.latent), KERNEL(Z, X)
    np.testing.assert_allclose(mean, crossed @ ((y + 1) / 2 - pi), atol=1e-3)
    inverse = np.linalg.inv(KERNEL(X) + np.diag(1 / (pi * (1 - pi))))
    expected = 2.5 - np.einsum("pn,nm,pm->p", crossed, inverse, crossed)
    np.testing.assert_allclose(variance, expected, atol=1e-8)
    prior, likelihood = prior_of(X)
    weighted = WeightedPrior(prior=prior, likelihood=likelihood, weight=1.0)
    functions = Mixture.given([weighted], measurements, inference="newton")
    # scikit-learn averages the link by an approximation of its own.
    np.testing.assert_allclose(
        likelihood.probabilities(functions, Z), oracle.predict_proba(Z), atol=5e-3
    )


def test_the_mode_about_another_mean_solves_its_equation(table):
    X, y = table
    prior = prior_of(X, mean_rate=0.3)
    state, _ = steps_without_noise(prior, X, y, count=30)
    expected = prior[1].latent_means[0] + KERNEL(X) @ ((y + 1) / 2 - expit(state.latent))
    np.testing.assert_allclose(state.latent, expected, atol=1e-6)


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_sparse_priors_iterate_on_what_they_see(table, Z, approximation):
    X, y = table
    sparse = prior_of(X, inducing=np.linspace(0, 6, 9)[:, None], approximation=approximation)
    Q = sparse[0].row_covariance(X, X.copy())
    state, _ = steps_without_noise(sparse, X, y, count=30)
    np.testing.assert_allclose(state.latent, Q @ ((y + 1) / 2 - expit(state.latent)), atol=1e-5)
    dense, _ = steps_without_noise(prior_of(X), X, y, count=30)
    # Between the inducing inputs; beyond, SoR knows of no variance.
    inside = Z[(Z[:, 0] >= 0) & (Z[:, 0] <= 6)]
    for ours, theirs in zip(state.predicted(inside)[:2], dense.predicted(inside)[:2], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=0.02)


def test_the_noise_of_the_last_step_is_carried_to_predictions(table):
    """The variance that is stated, against the variance over draws of the noise."""
    X, y = table
    start = NewtonState.start(*prior_of(X), X)
    rng = np.random.default_rng(3)
    means = []
    for _ in range(2000):
        state = start.step(published(start, y, noise_sd=0.1, noise=0.1 * rng.normal(size=len(X))))
        to_query = state.noise_root
        means.append(state.latent)
    assert to_query.shape == (25, 25)
    # Where the training points are, the interpolation is the identity.
    np.testing.assert_allclose(np.std(means, axis=0), 0.1, rtol=4.5 / np.sqrt(4000))


def test_saturated_latent_values_stay_finite(table, Z):
    X, _ = table
    prior, _ = prior_of(X)
    state = NewtonState(
        prior=prior,
        prior_mean=0.0,
        X=X,
        latent=np.linspace(-800, 800, 25),
        noise_root=np.zeros((25, 0)),
    )
    assert np.isfinite(state.cloaking_matrix()).all()
    for part in state.predicted(Z):
        assert np.isfinite(part).all()


def test_bayes_answers_determine_no_step(table):
    X, y = table
    one = DPGPClassifier(
        KERNEL, classes=[-1, 1], epsilon=1.0, delta=0.01, learn=None, insecure_seed=0
    ).fit(X, y)
    with pytest.raises(ValueError, match="do not determine a step"):
        iterate_newton(one.release_.prior, one.release_.likelihood, one.release_.measurements)


@pytest.mark.parametrize("criterion", ["trace", "logdet"])
def test_the_estimator_takes_these_steps(table, Z, criterion):
    """With a budget beyond all reason, the estimator's steps are Newton's."""
    X, y = table
    model = DPGPClassifier(
        KERNEL,
        classes=[-1, 1],
        epsilon=1e9,
        delta=0.01,
        criterion="newton",
        link="logit",
        steps=8,
        step_criterion=criterion,
        insecure_seed=0,
    ).fit(X, y)
    assert len(model.release_.measurements) == 8
    oracle = GaussianProcessClassifier(KERNEL, optimizer=None, max_iter_predict=200).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(Z), oracle.predict_proba(Z), atol=0.01)


def test_the_link_of_its_predictions_is_the_one_it_iterates(table, Z):
    X, y = table
    oracle = GaussianProcessClassifier(KERNEL, optimizer=None, max_iter_predict=200).fit(X, y)
    model = DPGPClassifier(
        KERNEL,
        classes=[-1, 1],
        epsilon=1e9,
        delta=0.01,
        criterion="newton",
        steps=8,
        insecure_seed=0,
    ).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(Z), oracle.predict_proba(Z), atol=0.01)
