r"""The posterior of the latent function given answers about rows that nobody keeps.

As in `cloakgp.release.posterior.dense`, for a sparse prior and a strategy of which only the sums
over rows are known: A = R Vᵀ, B = R Λ Rᵀ and R 1, divided by the noise sd of the answers. With S =
I + A Aᵀ + B,

    E[f_* | a] = m + v_*ᵀ Aᵀ S⁻¹ (a − m R 1),    cov[f_* | a] = K_** − v_*ᵀ Aᵀ S⁻¹ A v_*.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from cloakgp.design.streaming.sums import AskedSums
from cloakgp.models import SparsePrior
from cloakgp.privacy import Answers
from cloakgp.release.posterior.dense import ConditionedProcess
from cloakgp.utils.arrays import Array


@dataclass(frozen=True, eq=False)
class AskedPosterior(ConditionedProcess):
    """A sparse Gaussian process conditioned on noisy answers.

    Attributes
    ----------
    prior : SparsePrior
    features : array of shape (k, M)
        A.
    factor : array of shape (k, k)
        Lower Cholesky factor of S.
    weights : array of shape (k,)
        S⁻¹ (a − m R 1).
    """

    prior: SparsePrior
    features: Array
    factor: Array
    weights: Array

    @classmethod
    def given(cls, prior: SparsePrior, sums: AskedSums, answers: Answers) -> AskedPosterior:
        """Condition a prior on answers, given what was asked of all rows under that prior."""
        if answers.noise_sd == 0:
            inducing = len(prior.inducing)
            return cls(prior, np.zeros((0, inducing)), np.zeros((0, 0)), np.zeros(0))
        features = sums.features / answers.noise_sd
        covariance = features @ features.T + sums.noise / answers.noise_sd**2
        covariance[np.diag_indices(len(covariance))] += 1.0
        factor = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
        residuals = answers.values + (answers.centre - prior.mean) * sums.totals
        weights = linalg.cho_solve((factor, True), residuals / answers.noise_sd)
        return cls(prior=prior, features=features, factor=factor, weights=np.asarray(weights))

    def answer_cross(self, X: Array) -> Array:
        """Return v_*ᵀ Aᵀ, shape (P, k)."""
        crossed: Array = (self.features @ self.prior.features(X)).T
        return crossed
