r"""The posterior of a latent function given noisy answers.

Divide each measurement's answers and questions by its own noise sd and put them under each other:
a = R y + z with z ~ N(0, I). With y ~ N(m, K_y) under the prior, a is Gaussian, and with
S = I + R K_y Rᵀ (Rasmussen and Williams 2006, equations 2.22 to 2.24, with R y for y)

    E[f_* | a] = m + K_*f Rᵀ S⁻¹ (a − R m),    cov[f_* | a] = K_** − K_*f Rᵀ S⁻¹ R K_f*.

Tables share the latent function and nothing else; their observation noise is independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy import linalg

from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.release.tables import AnsweredTable, DenseTable
from cloakgp.utils.arrays import Array
from cloakgp.utils.threads import over_blocks

# Of the noise of an output: what answers leave of its variance is not taken for less.
SMALLEST_SHARE = 1e-3
# Points that are predicted at a time.
BLOCK_ROWS = 2048


# Relative to the trace: what sums over many rows may be wrong by.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Marginals:
    """Marginals of the latent function at P points.

    Attributes
    ----------
    mean : array of shape (P,)
    variance : array of shape (P,)
        In all; never below zero.
    noise_share : array of shape (P,)
        The variance of the mean that is due to the noise on the answers.
    """

    mean: Array
    variance: Array
    noise_share: Array


@dataclass(frozen=True, eq=False)
class Posterior:
    """A Gaussian process conditioned on noisy answers.

    Attributes
    ----------
    prior : ExactPrior or SparsePrior
    tables : tuple of AnsweredTable
        What was asked of each table, in units of the noise.
    factor : array of shape (k, k)
        Lower Cholesky factor of S.
    weights : array of shape (k,)
        S⁻¹ (a − R m).
    """

    prior: ExactPrior | SparsePrior
    tables: tuple[AnsweredTable, ...]
    factor: Array
    weights: Array

    @classmethod
    def given(
        cls,
        prior: ExactPrior | SparsePrior,
        tables: Sequence[AnsweredTable],
        residuals: Array,
    ) -> Posterior:
        """Condition a prior on answers.

        Parameters
        ----------
        prior : ExactPrior or SparsePrior
        tables : sequence of AnsweredTable
        residuals : array of shape (k,)
            a − R m, in the order of the tables.
        """
        covariance = _answer_covariance(prior, tables)
        factor = factor_covariance(covariance)
        weights = linalg.cho_solve((factor, True), residuals) if len(residuals) else residuals
        return cls(prior=prior, tables=tuple(tables), factor=factor, weights=np.asarray(weights))

    def answer_cross(self, X: Array) -> Array:
        """Return K_*f Rᵀ, the covariance of f_* with the answers, shape (P, k)."""
        if not self.tables:
            return np.zeros((len(X), 0))
        return np.hstack([table.cross(self.prior, X) for table in self.tables])

    def mean(self, X: Array) -> Array:
        """Return E[f_* | a], shape (P,)."""
        if isinstance(self.prior, SparsePrior):
            prior, weights = self.prior, self.inducing_mean()
            means = over_blocks(lambda block: weights @ prior.features(block), X, rows=BLOCK_ROWS)
            return self.prior.mean + np.concatenate(means)
        return self._mean(X, self.answer_cross(X))

    def marginals(self, X: Array) -> Marginals:
        """Return mean and variances, going over the rows once, in blocks of the points."""
        of_block = self._marginals
        if isinstance(self.prior, SparsePrior):
            of_block = partial(self._sparse_marginals, self.prior, *self._inducing_maps)
        parts = over_blocks(of_block, X, rows=BLOCK_ROWS)
        return Marginals(
            mean=np.concatenate([one.mean for one in parts]),
            variance=np.concatenate([one.variance for one in parts]),
            noise_share=np.concatenate([one.noise_share for one in parts]),
        )

    @cached_property
    def _inducing_maps(self) -> tuple[Array, Array, Array]:
        """Return maps from the features of points to means, and to roots of both variances.

        Shapes (M,), (k, M) and (k, M), or with M in place of k where there are more answers.
        """
        asked = self._inducing_cross()
        maps = [asked, asked]
        if self.tables:
            explained = linalg.solve_triangular(self.factor, asked, lower=True)
            gain = linalg.solve_triangular(self.factor, explained, lower=True, trans="T")
            maps = [explained, gain]
        if len(asked) > asked.shape[1]:
            # Lengths of what they map to are all that is asked for.
            maps = [np.asarray(np.linalg.qr(one, mode="r")) for one in maps]
        return self.inducing_mean(), maps[0], maps[1]

    def _sparse_marginals(
        self, prior: SparsePrior, weights: Array, explained: Array, gain: Array, X: Array
    ) -> Marginals:
        features = prior.features(X)
        variance = prior.query_variance(X) - _squared_lengths(explained @ features)
        return Marginals(
            mean=prior.mean + weights @ features,
            variance=np.maximum(variance, 0.0),
            noise_share=_squared_lengths(gain @ features),
        )

    def _marginals(self, X: Array) -> Marginals:
        crossed = self.answer_cross(X)
        explained = self._root(crossed)
        variance: Array = self.prior.query_variance(X) - np.square(explained).sum(axis=0)
        gain = explained
        if len(gain):
            gain = linalg.solve_triangular(self.factor, explained, lower=True, trans="T")
        return Marginals(
            mean=self._mean(X, crossed),
            variance=np.maximum(variance, 0.0),
            noise_share=np.square(gain).sum(axis=0),
        )

    def variance(self, X: Array) -> Array:
        """Return var[f_* | a], shape (P,); never below zero."""
        return self.marginals(X).variance

    def noise_share(self, X: Array) -> Array:
        """Return the variance of the mean that is due to the noise on the answers, shape (P,)."""
        return self.marginals(X).noise_share

    def joint(self, X: Array) -> tuple[Array, Array]:
        """Return E[f_* | a] and cov[f_* | a], shapes (P,) and (P, P), going over the rows once."""
        if isinstance(self.prior, SparsePrior):
            mean, features = self.mean(X), self.prior.features(X)
            explained = self._inducing_maps[1] @ features
        else:
            crossed = self.answer_cross(X)
            mean, explained = self._mean(X, crossed), self._root(crossed)
        covariance = self.prior.query_covariance(X) - explained.T @ explained
        return mean, (covariance + covariance.T) / 2

    def covariance(self, X: Array) -> Array:
        """Return cov[f_* | a], shape (P, P)."""
        return self.joint(X)[1]

    def explained_root(self, X: Array) -> Array:
        """Return G⁻¹ R K_f* for S = G Gᵀ, shape (k, P)."""
        return self._root(self.answer_cross(X))

    def _mean(self, X: Array, crossed: Array) -> Array:
        mean: Array = self.prior.means(X) + crossed @ self.weights
        return mean

    def _root(self, crossed: Array) -> Array:
        if crossed.shape[1] == 0:
            return crossed.T
        root: Array = linalg.solve_triangular(self.factor, crossed.T, lower=True)
        return root

    def query_root(self, X: Array) -> Array:
        """Return A with A Aᵀ the covariance of f_* that the answers explain, shape (P, k)."""
        return self.explained_root(X).T

    def row_root(self, X: Array, *, table: int) -> Array:
        """Return A with A Aᵀ the covariance of the outputs y that the answers explain.

        Shape (N, k). Rows of a table that was asked before share their observation noise with its
        answers; others share the latent function only.
        """
        crossed = self.answer_cross(X)
        start = 0
        for known in self.tables:
            stop = start + known.n_answers
            if known.number == table:
                crossed[:, start:stop] += known.row_cross(self.prior, X)
            start = stop
        root = linalg.solve_triangular(self.factor, crossed.T, lower=True)
        return np.asarray(root.T, dtype=np.float64)

    def outputs(self, X: Array, *, table: int) -> tuple[Array, Array]:
        """Return mean and variance of the outputs of the rows of a table, shapes (N,).

        Parameters
        ----------
        X : array of shape (N, D)
            Its rows.
        table : int
        """
        root = self.row_root(X, table=table)
        latent = self.prior.query_variance(X)
        noise = self.prior.row_noise(X)
        if isinstance(self.prior, SparsePrior):
            latent = np.square(self.prior.features(X)).sum(axis=0)
        variance: Array = latent + noise - np.square(root).sum(axis=1)
        whitened = self.factor.T @ self.weights
        mean = self.prior.means(X) + root @ whitened
        return mean, np.maximum(variance, noise * SMALLEST_SHARE)

    def inducing_mean(self) -> Array:
        """Return E[u | a] of a sparse prior's inducing variables, f = m + Vᵀu, shape (M,).

        Raises
        ------
        TypeError
            If the prior has no inducing inputs.
        """
        asked = self._inducing_cross()
        sparse = self.prior
        assert isinstance(sparse, SparsePrior)
        mean: Array = sparse.inducing_trend + asked.T @ self.weights
        return mean

    def _inducing_cross(self) -> Array:
        """Return R Vᵀ of all tables, shape (k, M)."""
        if not isinstance(self.prior, SparsePrior):
            raise TypeError("rows that are read in passes need a prior with inducing inputs")
        nothing = np.zeros((0, len(self.prior.inducing)))
        return np.vstack([nothing, *(table.inducing_cross(self.prior) for table in self.tables)])

    def inducing_root(self) -> Array:
        """Return G with G Gᵀ the covariance of a sparse prior's inducing variables, shape (M, M).

        Of u with f = m + Vᵀu, which has the covariance I before any answer, and
        I − (R Vᵀ)ᵀ S⁻¹ R Vᵀ after them.

        Raises
        ------
        TypeError
            If the prior has no inducing inputs.
        """
        asked = self._inducing_cross()
        covariance = np.eye(asked.shape[1])
        if self.tables:
            explained = linalg.solve_triangular(self.factor, asked, lower=True)
            covariance = covariance - explained.T @ explained
        try:
            # A triangle: products with it are half the work.
            return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
        except np.linalg.LinAlgError:
            values, vectors = linalg.eigh(covariance)
            root: Array = vectors * np.sqrt(np.maximum(values, 0.0))
            return root

    def precision_of(self, table: int) -> float:
        """Return the largest eigenvalue of RᵀR of a table's noise-scaled questions."""
        asked = [
            known.questions
            for known in self.tables
            if known.number == table and isinstance(known, DenseTable)
        ]
        return float(np.linalg.norm(asked[0], 2)) ** 2 if asked else 0.0


def _squared_lengths(columns: Array) -> Array:
    lengths: Array = np.einsum("kn,kn->n", columns, columns)
    return lengths


def _answer_covariance(prior: ExactPrior | SparsePrior, tables: Sequence[AnsweredTable]) -> Array:
    """Return S = I + R K_y Rᵀ over all tables, shape (k, k)."""
    blocks = [[one.shared_covariance(prior, other) for other in tables] for one in tables]
    for index, table in enumerate(tables):
        blocks[index][index] = blocks[index][index] + table.own_covariance(prior)
    covariance = np.block(blocks) if blocks else np.zeros((0, 0))
    covariance = (covariance + covariance.T) / 2
    covariance[np.diag_indices(len(covariance))] += 1.0
    return covariance


def factor_covariance(covariance: Array) -> Array:
    """Return the lower Cholesky factor of a covariance of answers, shape (k, k).

    Its eigenvalues are at least the least variance of the noise; where that is below the rounding
    of sums over many rows, answers count as if they had noise of that size, too: never as surer.

    Parameters
    ----------
    covariance : array of shape (k, k)

    Raises
    ------
    numpy.linalg.LinAlgError
        If it is no covariance.

    Examples
    --------
    >>> factor_covariance(np.ones((2, 2))).round(3)
    array([[1., 0.],
           [1., 0.]])
    """
    try:
        return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
    except np.linalg.LinAlgError:
        rounding = ROUNDING * float(np.trace(covariance))
        return np.asarray(np.linalg.cholesky(covariance + rounding * np.eye(len(covariance))))
