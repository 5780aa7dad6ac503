r"""What was asked of rows that nobody keeps: sums over them, under a sparse prior.

With V the rows' features and Λ their noise variances, A = R Vᵀ and B = R Λ Rᵀ, divided by the noise
sd of the answers, say all that conditioning needs of the rows: answers have the covariance
I + A Aᵀ + B, and covariance A v_* with the latent function at a point of features v_*.
"""

from __future__ import annotations

from dataclasses import dataclass

from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.release.posterior.tables import AnsweredTable
from cloakgp.utils.arrays import Array


@dataclass(frozen=True, eq=False)
class SummedTable(AnsweredTable):
    """Sums over the rows of one table.

    Attributes
    ----------
    number : int
    features : array of shape (k, M)
        A.
    noise : array of shape (k, k)
        B.
    """

    features: Array
    noise: Array

    @property
    def n_answers(self) -> int:
        """k, the number of questions."""
        return len(self.features)

    def cross(self, prior: ExactPrior | SparsePrior, X: Array) -> Array:
        """Return v_*ᵀ Aᵀ, shape (P, k)."""
        crossed: Array = (self.features @ _sparse(prior).features(X)).T
        return crossed

    def shared(self, prior: ExactPrior | SparsePrior, other: AnsweredTable) -> Array:
        """Return A A'ᵀ with another table's sums, or A V Rᵀ with another's questions."""
        if isinstance(other, SummedTable):
            return self.features @ other.features.T
        return other.shared(prior, self).T

    def own(self, prior: ExactPrior | SparsePrior) -> Array:
        """Return B."""
        del prior
        return self.noise

    def inducing_cross(self, prior: SparsePrior) -> Array:
        """Return A."""
        del prior
        return self.features

    def row_cross(self, prior: ExactPrior | SparsePrior, X: Array) -> Array:
        """Refuse: what was asked of every row is not kept."""
        del prior, X
        raise ValueError(
            "what was asked of every row of a large table is not kept, and so it cannot be asked "
            "again for what its answers leave open"
        )


def _sparse(prior: ExactPrior | SparsePrior) -> SparsePrior:
    if not isinstance(prior, SparsePrior):
        raise ValueError("sums over many rows go with a sparse prior")
    return prior
