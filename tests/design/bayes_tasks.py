"""Problems for `bayes` in dense matrices, with a conic solver's answer."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from cloakgp.design import bayes, design_bayes
from cloakgp.models import ExactPrior
from cloakgp.models.covariance import DenseCovariance


@dataclass(frozen=True)
class Task:
    """A design problem in dense matrices."""

    latent: np.ndarray
    noise: np.ndarray
    crossed: np.ndarray
    prior_variance: float
    noise_sd: float

    @classmethod
    def of(cls, kernel, X, X_query, *, noise=0.1, noise_sd=1.0, weights=None):
        prior = ExactPrior(kernel=kernel, noise_variance=noise, mean=0.0)
        weights = np.ones(len(X_query)) if weights is None else weights
        return cls(
            latent=kernel(X, X.copy()),
            noise=np.full(len(X), noise),
            crossed=prior.cross_covariance(X_query, X).T * np.sqrt(weights),
            prior_variance=float(weights @ prior.query_variance(X_query)),
            noise_sd=noise_sd,
        )

    @classmethod
    def drawn(cls, seed, *, rows=6, points=4, noise_sd=None):
        """A joint covariance with no structure at all, of rows and query points."""
        rng = np.random.default_rng(seed)
        root = rng.normal(size=(rows + points, rng.integers(2, rows + points + 1)))
        joint = root @ root.T
        return cls(
            latent=joint[:rows, :rows],
            noise=np.exp(rng.normal(size=rows) - 1),
            crossed=joint[:rows, rows:],
            prior_variance=float(np.trace(joint[rows:, rows:])),
            noise_sd=float(np.exp(rng.normal())) if noise_sd is None else noise_sd,
        )

    @property
    def outputs(self):
        """K_y."""
        return self.latent + np.diag(self.noise)

    def design(self, **settings):
        return design_bayes(
            DenseCovariance(latent=self.latent, noise=self.noise),
            self.crossed,
            prior_variance=self.prior_variance,
            noise_sd=self.noise_sd,
            **settings,
        )

    def unexplained(self, strategy):
        """Posterior variance by dense inverses."""
        answers = strategy @ self.outputs @ strategy.T + self.noise_sd**2 * np.eye(len(strategy))
        crossed = strategy @ self.crossed
        return self.prior_variance - float(np.vdot(crossed, np.linalg.inv(answers) @ crossed))

    def least(self):
        """The least posterior variance, by cvxpy and Clarabel."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import cvxpy as cp

            precision = np.linalg.inv(self.outputs)
            precision = (precision + precision.T) / 2
            explained = precision @ self.crossed
            # Only F Fᵀ matters: take as few columns as there are rows.
            left, singular, _ = np.linalg.svd(explained, full_matrices=False)
            columns = (left * singular)[:, singular > 1e-12 * singular[0]]
            size = np.abs(columns).max()
            gram = cp.Variable((len(self.noise), len(self.noise)), PSD=True)
            total = sum(
                cp.matrix_frac(column / size, precision + gram / self.noise_sd**2)
                for column in columns.T
            )
            remaining = cp.Problem(cp.Minimize(total), [cp.diag(gram) <= 1]).solve(
                solver=cp.CLARABEL
            )
            known = float(np.vdot(self.crossed, explained))
            return self.prior_variance - known + float(remaining) * size**2

    def problem(self):
        """The object that the algorithm works on."""
        return bayes._Problem(
            covariance=DenseCovariance(latent=self.latent, noise=self.noise),
            directions=self.crossed,
            noise_sd=self.noise_sd,
            prior_variance=self.prior_variance,
            lost=0.0,
        )


def unit_columns(strategy):
    return strategy / np.sqrt(np.square(strategy).sum(axis=0))


def random_questions(rng, rows, *, answers=None):
    """Any feasible strategy: columns at most 1 long, most of them exactly 1."""
    questions = unit_columns(
        rng.normal(size=(rng.integers(1, 2 * rows) if answers is None else answers, rows))
    )
    return questions * np.where(rng.uniform(size=rows) < 0.2, rng.uniform(size=rows), 1.0)
