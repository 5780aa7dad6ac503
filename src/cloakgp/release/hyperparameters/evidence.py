"""The log density of Gaussian answers, and its derivative in their covariance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from cloakgp.utils.arrays import Array


@dataclass(frozen=True, eq=False)
class Evidence:
    """Minus the log density of answers r ~ N(0, S), and what its derivatives need.

    Attributes
    ----------
    value : float
        ½ rᵀ S⁻¹ r + ½ log det S, in nats.
    solved : array of shape (k,)
        S⁻¹ r: the derivative in r.
    sensitivity : array of shape (k, k)
        S⁻¹ − S⁻¹ r rᵀ S⁻¹: twice the derivative in S (Rasmussen and Williams 2006, equation 5.9).
    """

    value: float
    solved: Array
    sensitivity: Array

    @classmethod
    def of(cls, residuals: Array, covariance: Array) -> Evidence:
        """Evaluate the density of answers.

        Parameters
        ----------
        residuals : array of shape (k,)
            r, answers less their expectations.
        covariance : array of shape (k, k)
            S.

        Raises
        ------
        numpy.linalg.LinAlgError
            If it is no covariance.

        Examples
        --------
        >>> found = Evidence.of(np.array([1.0, 0.0]), np.diag([2.0, 1.0]))
        >>> round(found.value, 4), found.solved, found.sensitivity
        (0.5966, array([0.5, 0. ]), array([[0.25, 0.  ],
               [0.  , 1.  ]]))
        """
        factor, lower = linalg.cho_factor(covariance, lower=True)
        solved = linalg.cho_solve((factor, lower), residuals)
        # In half the time of solving for the columns of the identity; of it, one triangle.
        triangle, _ = linalg.lapack.dpotri(factor, lower=True)
        sensitivity = np.tril(triangle)
        sensitivity += np.tril(triangle, -1).T
        sensitivity -= np.outer(solved, solved)
        return cls(
            value=0.5 * float(residuals @ solved) + float(np.log(np.diag(factor)).sum()),
            solved=solved,
            sensitivity=sensitivity,
        )
