"""A new likelihood is one class and one entry of the registry; all else takes it from there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from fits import release_held
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp import Release, ReleaseFileError, load
from cloakgp.fitting.strategies import Query
from cloakgp.models import ExactPrior
from cloakgp.models.likelihoods import LIKELIHOODS, Likelihood, Linearisation
from cloakgp.plots import display_of
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.questions.classes import Classes
from cloakgp.release import Hyperprior
from cloakgp.report.describe import describe

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
SHARES = WEIGHTS / WEIGHTS.sum()
PRIOR = ExactPrior(kernel=2.0 * RBF(1.5), noise_variance=1e-4, mean=0.0)
BOUNDS, LABELS = OutputBounds(-1.0, 1.0), Classes(("ill", "well"))


def expected(function, mean, variance):
    """E[function(f)] for f ~ N(mean, variance), by quadrature; of arrays of one shape."""
    values = function(mean[..., None] + np.sqrt(variance)[..., None] * NODES)
    return values @ SHARES


def linearised(function, second_moment, mean, variance):
    """The best linear account of v with E[v|f] = function(f), by Stein's lemma."""
    first = expected(function, mean, variance)
    crossed = expected(lambda f: function(f) * (f - mean[..., None]), mean, variance)
    slope = crossed / variance
    spread = expected(second_moment, mean, variance) - first**2
    return Linearisation(
        expected=first, slope=slope, residual=np.maximum(spread - slope**2 * variance, 0.0)
    )


@dataclass(frozen=True)
class Toy(Likelihood):
    """What both likelihoods of this file share."""

    scale: float = 1.0

    def linear_prior(self, prior, X):
        variance = prior.query_variance(X)
        account = self.linearise(np.full(len(X), prior.mean), variance)
        return replace(
            prior,
            kernel=ConstantKernel(float(np.mean(account.slope**2))) * prior.kernel,
            noise_variance=float(account.residual.mean()) + 1e-6,
            mean=float(account.expected.mean()),
        )


@dataclass(frozen=True)
class Squashed(Toy):
    """Outputs are tanh(f/scale), numbers within −1 and 1."""

    name: ClassVar = "squashed"
    outputs: ClassVar = "numbers"

    def _squash(self, f):
        return np.tanh(f / self.scale)

    def linearise(self, mean, variance):
        return linearised(self._squash, lambda f: self._squash(f) ** 2, mean, variance)

    def predict(self, functions, X, *, return_std, return_cov, new_output):
        if return_cov:
            raise ValueError("squashed numbers have no covariance here")
        first = second = 0.0
        for part in functions.marginals(X):
            variance = part.variance[:, 0] + new_output * part.prior.observation_noise(X)
            moments = (
                expected(lambda f, power=power: self._squash(f) ** power, part.mean[:, 0], variance)
                for power in (1, 2)
            )
            first, second = (
                total + part.weight * moment
                for total, moment in zip((first, second), moments, strict=True)
            )
        return (first, np.sqrt(second - first**2)) if return_std else first


@dataclass(frozen=True)
class Slipping(Toy):
    """Labels are a probit's, and one in so many is put down wrongly."""

    slip: float = 0.1

    name: ClassVar = "slipping probit"
    outputs: ClassVar = "classes"

    def _probability(self, f):
        return self.slip + (1.0 - 2.0 * self.slip) * norm.cdf(f / self.scale)

    def linearise(self, mean, variance):
        return linearised(lambda f: 2.0 * self._probability(f) - 1.0, np.ones_like, mean, variance)

    def predict(self, functions, X, **_):
        return self.probabilities(functions, X).argmax(axis=1)

    def probabilities(self, functions, X, **_):
        second = sum(
            part.weight * expected(self._probability, part.mean[:, 0], part.variance[:, 0])
            for part in functions.marginals(X)
        )
        return np.stack([1.0 - second, second], axis=1)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    for toy in (Squashed, Slipping):
        monkeypatch.setitem(LIKELIHOODS, toy.name, toy)


def fitted(likelihood, X, y, *, encoding, epsilon=1.0, criterion="bayes"):
    return release_held(
        X,
        y,
        prior=PRIOR,
        likelihood=likelihood,
        question=encoding,
        query=Query(X),
        epsilon=epsilon,
        delta=1e-3,
        criterion=criterion,
        hyperprior=Hyperprior(),
        insecure_seed=3,
    )


@pytest.fixture
def table():
    X = np.linspace(0.0, 6.0, 25)[:, None]
    return X, np.sin(X[:, 0])


@pytest.mark.parametrize("criterion", ["bayes", "trace", "logdet"])
def test_numbers_are_fit_saved_loaded_described_and_drawn(table, tmp_path, criterion):
    X, latent = table
    y = np.tanh(2 * latent)
    release = fitted(Squashed(0.5), X, y, encoding=BOUNDS, epsilon=200.0, criterion=criterion)
    mean, sd = release.predict(X, return_std=True)
    assert np.sqrt(np.mean((mean - y) ** 2)) < 0.12
    assert (np.abs(mean) < 1).all()
    assert (sd > 0).all()
    release.save(tmp_path / "numbers.cloak")
    loaded = load(tmp_path / "numbers.cloak")
    assert loaded.likelihood == Squashed(0.5)
    np.testing.assert_array_equal(loaded.predict(X), mean)
    (protection,) = (section for section in describe(loaded) if section.title == "Protection")
    assert "from -1 to 1" in protection.facts[0].text
    assert display_of(loaded).draw().axes[0].get_ylabel() == "y"
    with pytest.raises(ValueError, match="raw predictions"):
        loaded.published()


@pytest.mark.parametrize("criterion", ["bayes", "trace", "logdet"])
def test_classes_are_fit_saved_and_loaded(table, tmp_path, criterion):
    X, latent = table
    y = np.where(latent > 0, "well", "ill")
    release = fitted(Slipping(0.3), X, y, encoding=LABELS, epsilon=200.0, criterion=criterion)
    clear = np.abs(latent) > 0.4
    assert np.array_equal(np.array(release.predict(X))[clear], y[clear])
    probability = release.predict_proba(X)
    assert probability.min() > 0.1
    release.save(tmp_path / "classes.cloak")
    loaded = Release.load(tmp_path / "classes.cloak")
    assert loaded.likelihood == Slipping(0.3)
    np.testing.assert_array_equal(loaded.predict_proba(X), probability)
    again = fitted(Slipping(0.3), X, y, encoding=LABELS)
    with pytest.raises(ValueError, match="different priors"):
        release.combine(replace(again, likelihood=Slipping(0.4)))
    assert len(release.combine(again).measurements) == 2


ROW = np.zeros((1, 1))


def settled(likelihood, *, answer, column, noise_sd):
    """Posterior linearisation of one row, written out in scalars: mean and variance of f."""
    prior_variance = 2.0 + PRIOR.noise_variance
    mean, variance = 0.0, prior_variance
    for _ in range(2000):
        account = likelihood.linearise(np.array([mean]), np.array([variance]))
        h, slope, residual = account.expected[0], account.slope[0], account.residual[0]
        spread = column**2 * (slope**2 * prior_variance + residual) + noise_sd**2
        gain = prior_variance * column * slope / spread
        moved = gain * (answer - column * (h - slope * mean))
        mean, variance = (
            mean + 0.1 * (moved - mean),
            variance + 0.1 * (prior_variance - gain**2 * spread - variance),
        )
    return mean, variance


@pytest.mark.parametrize(
    ("likelihood", "output", "encoding"),
    [
        (Squashed(1.0), -0.9, BOUNDS),
        (Squashed(3.0), 0.4, BOUNDS),
        (Slipping(1.0, slip=0.0), "ill", LABELS),
        (Slipping(0.5, slip=0.2), "well", LABELS),
    ],
    ids=repr,
)
@pytest.mark.parametrize("epsilon", [1.0, 4.0, 20.0])
def test_latent_functions_are_those_of_posterior_linearisation(
    likelihood, output, encoding, epsilon
):
    release = fitted(likelihood, ROW, [output], encoding=encoding, epsilon=epsilon)
    (measurement,) = release.measurements
    mean, variance = settled(
        likelihood,
        answer=measurement.residuals()[0, 0],
        column=measurement.strategy.matrix[0, 0],
        noise_sd=measurement.noise_sd,
    )
    latent = release.predict_latent(ROW)
    assert latent.mean[0] == pytest.approx(mean, abs=1e-3)
    assert latent.sd[0] ** 2 == pytest.approx(variance, abs=1e-3)


def given_answer(likelihood_of_answer):
    """Latent values of one row, and how probable they are given the answer about it."""
    latent = np.linspace(-8.0, 8.0, 4001)
    density = norm.pdf(latent, scale=np.sqrt(2.0)) * likelihood_of_answer(latent)
    return latent, density / density.sum()


@pytest.mark.parametrize("output", [-0.9, 0.2, 0.7])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_squashed_numbers_are_near_what_quadrature_says(output, epsilon):
    release = fitted(Squashed(2.0), ROW, [output], encoding=BOUNDS, epsilon=epsilon)
    (measurement,) = release.measurements
    answer, noise_sd = measurement.answers.values[0, 0], measurement.noise_sd
    column = measurement.strategy.matrix[0, 0]
    latent, density = given_answer(
        lambda f: norm.pdf(answer, loc=column * np.tanh(f / 2.0), scale=noise_sd)
    )
    mean, sd = release.predict(ROW, return_std=True)
    exact = density @ np.tanh(latent / 2.0)
    exact_sd = np.sqrt(density @ np.tanh(latent / 2.0) ** 2 - exact**2)
    assert mean[0] == pytest.approx(exact, abs=0.1 * exact_sd)
    assert sd[0] == pytest.approx(exact_sd, rel=0.1)


@pytest.mark.parametrize("label", ["ill", "well"])
@pytest.mark.parametrize("slip", [0.0, 0.2])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_slipping_labels_are_near_what_quadrature_says(label, slip, epsilon):
    release = fitted(Slipping(1.0, slip=slip), ROW, [label], encoding=LABELS, epsilon=epsilon)
    (measurement,) = release.measurements
    answer, noise_sd = measurement.residuals()[0, 0], measurement.noise_sd
    column = measurement.strategy.matrix[0, 0]

    def of_answer(f):
        share = slip + (1 - 2 * slip) * norm.cdf(f)
        return share * norm.pdf(answer, loc=column, scale=noise_sd) + (1 - share) * norm.pdf(
            answer, loc=-column, scale=noise_sd
        )

    latent, density = given_answer(of_answer)
    exact = density @ (slip + (1 - 2 * slip) * norm.cdf(latent))
    assert release.predict_proba(ROW)[0, 1] == pytest.approx(exact, abs=0.03)


def test_whoever_does_not_know_it_refuses_its_files(table, tmp_path, monkeypatch):
    X, latent = table
    fitted(Squashed(), X, np.tanh(latent), encoding=BOUNDS).save(tmp_path / "squashed.cloak")
    monkeypatch.delitem(LIKELIHOODS, "squashed")
    with pytest.raises(ReleaseFileError, match="unknown kind"):
        load(tmp_path / "squashed.cloak")


def test_answers_about_something_else_are_refused(table, tmp_path):
    X, latent = table
    release = fitted(Squashed(), X, np.tanh(latent), encoding=BOUNDS)
    replace(release, likelihood=Slipping(), learned=()).save(tmp_path / "odd.cloak")
    with pytest.raises(ReleaseFileError, match="about something else"):
        load(tmp_path / "odd.cloak")
