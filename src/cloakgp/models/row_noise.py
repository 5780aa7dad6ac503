r"""Prior with more noise on some rows: a lever on outliers (2018 paper, section 5).

An outlier's output moves predictions far, and the noise that hides it is large. A predictor that
believes some rows less, C = K_*f (K_ff + diag(ν))⁻¹ with ν above the model's noise there, follows
them less. It is another linear question about the outputs, not another model of them: what the
answers mean is still said by the model that was declared. `cloakgp.design.row_noise` chooses ν.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from cloakgp.models.covariance import OutputCovariance
from cloakgp.models.prior import Prior
from cloakgp.utils.arrays import Array


@dataclass(frozen=True, eq=False)
class RowNoisePrior:
    """A prior whose cloaking matrix uses given noise variances for the rows of one table.

    Everything else is the model's: predictions from the answers stay honest about the outputs.

    Attributes
    ----------
    model : Prior
        As declared.
    rows : array of shape (N, D)
        The public inputs that the noise is for.
    variance : array of shape (N,)
        ν, in squared output units; positive.

    Raises
    ------
    ValueError
        If the variances are not one positive, finite number for each row.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cloakgp.models import ExactPrior
    >>> model = ExactPrior(kernel=RBF(), noise_variance=1.0, mean=0.0)
    >>> rows = np.array([[0.0], [50.0]])
    >>> believed_less = RowNoisePrior(model=model, rows=rows, variance=np.array([1.0, 3.0]))
    >>> believed_less.cloaking_matrix(rows, rows)
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """

    model: Prior
    rows: Array
    variance: Array

    def __post_init__(self) -> None:
        if self.variance.shape != (len(self.rows),):
            raise ValueError(
                f"variance must have shape ({len(self.rows)},), got {self.variance.shape}"
            )
        if not (np.isfinite(self.variance) & (self.variance > 0)).all():
            raise ValueError("variance must be positive and finite")

    @property
    def mean(self) -> float:
        """The model's."""
        return self.model.mean

    def means(self, X: Array) -> Array:
        """Return the model's prior mean of the latent function, shape (N,)."""
        return self.model.means(X)

    def cross_covariance(self, X_query: Array, X: Array) -> Array:
        """Return the model's K_*f, shape (P, N)."""
        return self.model.cross_covariance(X_query, X)

    def row_covariance(self, X: Array, Z: Array) -> Array:
        """Return the model's latent covariance between rows, shape (N, M)."""
        return self.model.row_covariance(X, Z)

    def row_noise(self, X: Array) -> Array:
        """Return the model's noise variance of each output, shape (N,)."""
        return self.model.row_noise(X)

    def query_covariance(self, X_query: Array) -> Array:
        """Return the model's K_**, shape (P, P)."""
        return self.model.query_covariance(X_query)

    def query_variance(self, X_query: Array) -> Array:
        """Return the diagonal of the model's K_**, shape (P,)."""
        return self.model.query_variance(X_query)

    def observation_noise(self, X_query: Array) -> Array:
        """Return the model's noise variance of a new output, shape (P,)."""
        return self.model.observation_noise(X_query)

    def output_covariance(self, X: Array) -> OutputCovariance:
        """Return the model's K_y over rows."""
        return self.model.output_covariance(X)

    def cloaking_matrix(self, X_query: Array, X: Array) -> Array:
        """Return C = K_*f (K_ff + diag(ν))⁻¹, shape (P, N).

        Raises
        ------
        ValueError
            If X is not the table that the variances are for.
        """
        if not np.array_equal(X, self.rows):
            raise ValueError("the noise variances are for other rows than these")
        covariance = self.model.row_covariance(X, X.copy())
        covariance[np.diag_indices(len(X))] += self.variance
        factor = linalg.cho_factor(covariance, lower=True, overwrite_a=True)
        solved: Array = linalg.cho_solve(factor, self.model.cross_covariance(X_query, X).T)
        return solved.T
