r"""Rows as a sparse model knows them after earlier answers, for designs of later questions.

A sparse model knows rows by features v and noise variances λ: y = Vᵀu + e with u ~ N(0, I). After
earlier answers about other rows, u has a covariance Σ = G Gᵀ. New rows then have features Gᵀv and
the same noise, and query points have features GᵀF: the same problem again, for which the same
designs serve. A rule asks a row by a matrix times its features, T Gᵀv = (T Gᵀ) v, and so what is
found is a rule of the features as they were before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from scipy import linalg
from scipy.linalg import blas

from cloakgp.design.streaming.row_model import RowModel
from cloakgp.design.streaming.rules import Rule
from cloakgp.utils.arrays import Array


@dataclass(frozen=True, eq=False)
class ConditionedModel:
    """A sparse model after earlier answers.

    Attributes
    ----------
    model : RowModel
        Before them.
    root : array of shape (M, M)
        G, with G Gᵀ the covariance of u given the answers.
    """

    model: RowModel
    root: Array

    def features_and_noise(self, X: Array) -> tuple[Array, Array]:
        """Return GᵀV, shape (M, n), and λ, shape (n,)."""
        features, noise = self.model.features_and_noise(X)
        return turned_by(self.root, features), noise

    def unconditioned(self, rule: Rule) -> Rule:
        """Return the rule over features before the answers that asks the same of every row.

        Parameters
        ----------
        rule : Rule
            Over features after them.
        """
        return replace(rule, matrix=rule.matrix @ self.root.T)


def turned_by(root: Array, features: Array) -> Array:
    """Return GᵀV, where G is lower triangular in half the time.

    Parameters
    ----------
    root : array of shape (M, M)
        G.
    features : array of shape (M, n)
        V.

    Examples
    --------
    >>> import numpy as np
    >>> turned_by(np.array([[2.0, 0.0], [1.0, 3.0]]), np.array([[1.0], [1.0]]))
    array([[3.],
           [3.]])
    """
    _, above = linalg.bandwidth(root)
    turned: Array = root.T @ features if above else blas.dtrmm(1.0, root.T, features)
    return turned
