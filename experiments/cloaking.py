"""Cloaked releases of one training set: designed once, released as often as an average needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from cloakgp.design import CriterionName, Design, design_strategy
from cloakgp.fitting import strategies
from cloakgp.fitting.defaults import choose_query
from cloakgp.fitting.strategies import Query, choose_strategy
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.privacy import Answers, Calibration, OutputBounds, ask
from cloakgp.privacy.accounting import exact_noise_multiplier, papers_noise_multiplier
from cloakgp.release import DenseStrategy, Measurement, Release
from cloakgp.utils.arrays import Array

Prior = ExactPrior | SparsePrior


@dataclass(frozen=True)
class Budget:
    """What every release of an experiment may spend, and on what range of outputs."""

    bounds: OutputBounds
    epsilon: float
    delta: float

    def measured(
        self,
        strategy: Array,
        y: Array,
        *,
        calibration: Calibration = "exact",
        insecure_seed: int | None = None,
    ) -> Answers:
        """Answer the rows of a strategy, shape (m, N), once: every call draws new noise.

        Parameters
        ----------
        strategy : array of shape (m, N)
        y : array of shape (N,)
        calibration : {"exact", "papers"}
        insecure_seed : int, optional
            Makes the noise reproducible and the release not private.
        """
        return ask(
            strategy,
            y,
            question=self.bounds,
            epsilon=self.epsilon,
            delta=self.delta,
            calibration=calibration,
            insecure_seed=insecure_seed,
        )


@dataclass(frozen=True)
class Noise:
    """A way to shape and to scale the noise.

    Attributes
    ----------
    name : str
        For tables and legends.
    criterion : {"trace", "logdet"}
    calibration : {"exact", "papers"}
    """

    name: str
    criterion: CriterionName
    calibration: Calibration

    def answer_sd(self, budget: Budget) -> float:
        """Return the sd of an answer that one output moves by at most its own change."""
        papers = self.calibration == "papers"
        multiplier = papers_noise_multiplier if papers else exact_noise_multiplier
        return budget.bounds.width * multiplier(budget.epsilon, budget.delta)


PAPERS_NOISE = Noise("papers' noise", criterion="logdet", calibration="papers")
LOGDET_NOISE = Noise("log det, exact", criterion="logdet", calibration="exact")
TRACE_NOISE = Noise("trace, exact", criterion="trace", calibration="exact")
SHOWN_NOISES = (PAPERS_NOISE, TRACE_NOISE)


@dataclass(frozen=True, eq=False)
class Cloaked:
    """Rows and query points with the design that cloaks them: raw predictions.

    Attributes
    ----------
    prior : ExactPrior or SparsePrior
    X : array of shape (N, D)
    X_query : array of shape (P, D)
    cloaking : array of shape (P, N)
        C, from outputs to predictions.
    noise : Noise
    design : Design
    """

    prior: Prior
    X: Array
    X_query: Array
    cloaking: Array
    noise: Noise
    design: Design

    @classmethod
    def designed(
        cls, X: Array, X_query: Array, *, prior: Prior, noise: Noise, gap: float = 1e-3
    ) -> Cloaked:
        """Design the questions for one prior, some rows and some query points.

        Parameters
        ----------
        X : array of shape (N, D)
        X_query : array of shape (P, D)
        gap : float
            Relative gap of the design to certify.
        """
        cloaking = prior.cloaking_matrix(X_query, X)
        design = design_strategy(cloaking, criterion=noise.criterion, gap=gap)
        return cls(prior=prior, X=X, X_query=X_query, cloaking=cloaking, noise=noise, design=design)

    def noise_sd(self, budget: Budget) -> Array:
        """Return the sd of the noise that a release would have in each prediction, shape (P,).

        No output is needed: questions are put so that one output moves the answers by at most its
        own change.
        """
        lengths = np.linalg.norm(self.design.reconstruction, axis=1)
        longest = np.linalg.norm(self.design.strategy, axis=0).max()
        return np.asarray(self.noise.answer_sd(budget) * longest * lengths, dtype=np.float64)

    def released(self, y: Array, *, budget: Budget, insecure_seed: int | None = None) -> Release:
        """Measure once: every call draws new noise."""
        answers = budget.measured(
            self.design.strategy, y, calibration=self.noise.calibration, insecure_seed=insecure_seed
        )
        strategy = DenseStrategy(
            X=self.X,
            matrix=self.design.strategy,
            X_query=self.X_query,
            reconstruction=self.design.reconstruction,
            certificate=self.design.certificate,
        )
        measurement = Measurement(strategy=strategy, question=budget.bounds, answers=answers)
        return Release(prior=self.prior, measurements=(measurement,))


def noise_sd(release: Release) -> Array:
    """Return the sd of the privacy noise in the raw predictions of a release, shape (P,)."""
    return np.asarray(np.sqrt(np.diag(release.published().noise_cov)), dtype=np.float64)


def mean_without_privacy(
    X: Array, y: Array, *, X_query: Array, prior: Prior, bounds: OutputBounds
) -> Array:
    """Return m + C (clip(y) − m), the posterior mean that an owner of y would have, shape (P,).

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> prior = ExactPrior(kernel=RBF(), noise_variance=1.0, mean=0.0)
    >>> one = np.zeros((1, 1))
    >>> mean_without_privacy(one, np.ones(1), X_query=one, prior=prior, bounds=OutputBounds(0, 1))
    array([0.5])
    """
    residuals = bounds.clip(y) - prior.mean
    mean: Array = prior.mean + prior.cloaking_matrix(X_query, X) @ residuals
    return mean


def sd_without_privacy(X: Array, *, X_query: Array, prior: Prior) -> Array:
    """Return the posterior sd of the latent function given y itself, shape (P,)."""
    explained = np.einsum(
        "ij,ij->i", prior.cloaking_matrix(X_query, X), prior.cross_covariance(X_query, X)
    )
    sd: Array = np.sqrt(np.maximum(prior.query_variance(X_query) - explained, 0.0))
    return sd


Learning = Literal["map", "average"] | None
LEARNINGS: tuple[Learning, ...] = (None, "map", "average")


@dataclass(frozen=True, eq=False)
class Asked:
    """Questions that fit a prior and a budget, to be answered with new noise every time.

    Attributes
    ----------
    prior : ExactPrior or SparsePrior
    strategy : DenseStrategy
    budget : Budget
    """

    prior: Prior
    strategy: DenseStrategy
    budget: Budget

    @classmethod
    def designed(
        cls, X: Array, *, prior: Prior, budget: Budget, X_query: Array | None = None
    ) -> Asked:
        """Design the questions, for the rows of X if no query points are given.

        Parameters
        ----------
        X : array of shape (N, D)
        X_query : array of shape (P, D), optional
        """
        strategy = choose_strategy(
            X,
            prior=prior,
            query=choose_query(X) if X_query is None else Query(X=X_query),
            question=budget.bounds,
            budget=strategies.Budget(epsilon=budget.epsilon, delta=budget.delta),
        )
        return cls(prior=prior, strategy=strategy, budget=budget)

    def released(self, y: Array, *, insecure_seed: int | None = None) -> Release:
        """Measure once, and learn nothing: every call draws new noise."""
        answers = self.budget.measured(self.strategy.matrix, y, insecure_seed=insecure_seed)
        measurement = Measurement(
            strategy=self.strategy, question=self.budget.bounds, answers=answers
        )
        return Release(prior=self.prior, measurements=(measurement,))


def learned(release: Release, learning: Learning) -> Release:
    """Return the same answers with hyperparameters learned from them, or as they are for None."""
    return release if learning is None else release.learn(average=learning == "average")
