"""Bayesian A-optimal questions given what is known, about outputs in bands: dense oracles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from stages import stage

from cloakgp.criteria import Problem, criterion_named
from cloakgp.design import design_bayes
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.covariance import DenseCovariance
from cloakgp.privacy import OutputBounds
from cloakgp.release.bands import account_in_bands, choose_bands
from cloakgp.release.posterior import clipped as clipped_module
from cloakgp.release.posterior.clipped import clipped_posterior

GAP = 1e-4
POINTS = np.linspace(-2, 2, 5)[:, None]
WEIGHTS = np.array([1.0, 2.0, 1.0, 0.5, 1.0])
SETTINGS = {"kernel": ConstantKernel(2.0) * RBF(1.1), "noise_variance": 0.3, "mean": 0.4}
PRIORS = {
    "exact": ExactPrior(**SETTINGS),
    "fitc": SparsePrior(**SETTINGS, inducing=np.linspace(-2, 2, 4)[:, None], approximation="fitc"),
}


class Asked:
    """A table that was asked once, and bands around what is known of it since."""

    def __init__(self, prior, rng):
        self.prior, self.X = prior, rng.uniform(-2, 2, size=(9, 1))
        self.y = rng.normal(size=9)
        self.first = stage(self.X, rng.normal(size=(3, 9)), self.y, noise_sd=2.0)
        self.known = clipped_posterior(prior, [self.first])
        mean, variance = self.known.outputs(self.X, table=0)
        self.bands = choose_bands(mean, variance, width=1.0, bounds=OutputBounds(-1.0, 1.5))
        self.account = account_in_bands(mean, variance, bands=self.bands)
        self.problem = Problem(
            prior=prior,
            X=self.X,
            X_query=POINTS,
            weights=WEIGHTS,
            noise_sd=0.6,
            gap=GAP,
            known=self.known,
            account=self.account,
        )

    def dense(self):
        """Covariances of what is asked, of it with f_*, and of f_*, by dense inverses."""
        K_y = self.prior.row_covariance(self.X, self.X.copy())
        K_y += np.diag(self.prior.row_noise(self.X))
        crossed = self.prior.cross_covariance(POINTS, self.X).T
        R = self.first.strategy.matrix
        S = R @ K_y @ R.T + self.first.noise_sd**2 * np.eye(len(R))
        gain = K_y @ R.T @ np.linalg.inv(S)
        points = crossed.T @ R.T @ np.linalg.inv(S) @ R @ crossed
        A, outside = np.diag(self.account.slope), np.diag(self.account.residual)
        return (
            A @ (K_y - gain @ R @ K_y) @ A + outside,
            A @ (crossed - gain @ R @ crossed),
            self.prior.query_covariance(POINTS) - points,
        )

    def left_open(self, strategy):
        """Weighted variance of f_* after these questions about outputs in bands."""
        covariance, crossed, points = self.dense()
        S = strategy @ covariance @ strategy.T + 0.36 * np.eye(len(strategy))
        explained = crossed.T @ strategy.T @ np.linalg.solve(S, strategy @ crossed)
        return float(WEIGHTS @ np.diag(points - explained))


@pytest.fixture(params=PRIORS.values(), ids=PRIORS)
def asked(request, rng):
    return Asked(request.param, rng)


def chosen(problem):
    return criterion_named("bayes", use="numbers").choose(problem).strategy


def test_it_is_the_design_for_the_dense_covariance(asked):
    covariance, crossed, points = asked.dense()
    least = np.linalg.eigvalsh(covariance)[0] / 2
    dense = design_bayes(
        DenseCovariance(latent=covariance - least * np.eye(9), noise=np.full(9, least)),
        crossed * np.sqrt(WEIGHTS),
        prior_variance=float(WEIGHTS @ np.diag(points)),
        noise_sd=0.6,
        gap=GAP,
    )
    ours = asked.left_open(chosen(asked.problem))
    assert ours == pytest.approx(asked.left_open(dense.strategy), rel=2 * GAP)


def test_no_other_questions_are_better(asked, rng):
    ours = chosen(asked.problem)
    assert np.linalg.norm(ours, axis=0).max() <= 1 + 1e-9
    bound = asked.left_open(ours) / (1 + GAP)
    for _ in range(200):
        others = rng.normal(size=(rng.integers(1, 10), 9))
        others /= np.linalg.norm(others, axis=0)
        assert asked.left_open(others) >= bound


def test_questions_for_outputs_as_they_are_would_be_worse(asked):
    """Mutation: a design that forgets that outputs are clipped, and how narrow bands are."""
    forgets = chosen(replace(asked.problem, account=None, noise_sd=0.6))
    assert asked.left_open(forgets) > asked.left_open(chosen(asked.problem)) * (1 + 10 * GAP)


def test_what_is_left_open_is_the_posterior_variance(asked, monkeypatch):
    """But for the unknown offset, which no design counts on."""
    monkeypatch.setattr(clipped_module, "OFFSET_SD", 0.0)
    strategy = chosen(asked.problem)
    second = stage(asked.X, strategy, asked.y, question=asked.bands, noise_sd=0.6)
    after = clipped_posterior(asked.prior, [asked.first, second])
    assert WEIGHTS @ after.variance(POINTS) == pytest.approx(asked.left_open(strategy), rel=1e-8)
