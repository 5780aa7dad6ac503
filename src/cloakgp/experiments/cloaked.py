"""One training set, cloaked: designed once, released as often as an average needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloakgp.arrays import Array
from cloakgp.design import CriterionName, Design, design_strategy
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.privacy import Calibration, OutputBounds, measure
from cloakgp.release import Measurement, Release

Prior = ExactPrior | SparsePrior


@dataclass(frozen=True)
class Budget:
    """What every release of an experiment may spend, and on what range of outputs."""

    bounds: OutputBounds
    epsilon: float
    delta: float


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


PAPERS_NOISE = Noise("papers' noise", criterion="logdet", calibration="papers")
LOGDET_NOISE = Noise("log det, exact", criterion="logdet", calibration="exact")
TRACE_NOISE = Noise("trace, exact", criterion="trace", calibration="exact")


@dataclass(frozen=True, eq=False)
class Cloaked:
    """Rows and query points with the design that cloaks them.

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
        prior : ExactPrior or SparsePrior
        noise : Noise
        gap : float
            Relative gap of the design to certify.
        """
        cloaking = prior.cloaking_matrix(X_query, X)
        design = design_strategy(cloaking, criterion=noise.criterion, gap=gap)
        return cls(prior=prior, X=X, X_query=X_query, cloaking=cloaking, noise=noise, design=design)

    def released(self, y: Array, *, budget: Budget, insecure_seed: int | None = None) -> Release:
        """Measure once: every call draws new noise.

        Parameters
        ----------
        y : array of shape (N,)
        budget : Budget
        insecure_seed : int, optional
            Makes the noise reproducible and the release not private.
        """
        answers = measure(
            self.design.strategy,
            y,
            bounds=(budget.bounds.lo, budget.bounds.hi),
            epsilon=budget.epsilon,
            delta=budget.delta,
            calibration=self.noise.calibration,
            insecure_seed=insecure_seed,
        )
        measurement = Measurement(
            X=self.X,
            strategy=self.design.strategy,
            answers=answers,
            X_query=self.X_query,
            reconstruction=self.design.reconstruction,
            certificate=self.design.certificate,
        )
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
