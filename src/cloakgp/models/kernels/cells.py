r"""Kernels between cells: covariances of rows that are known by mean and variance of their inputs.

For two rows of cells c and d, drawn apart, the squared distance in lengthscales is on average

    E s² = Σ_i ((μ_ci − μ_di)² + v_ci + v_di) / ℓ_i²,

μ the means and v the variances of the inputs of a cell's rows, and E k(x, x') is about k at the
root of that. A Matérn kernel is a mixture of Gaussian ones over scales, and of each of these that
is exp(−t v_c) exp(−t v_d) exp(−t |μ_c − μ_d|²): so the matrix between cells is a covariance, with
E k(x, x') of two rows of one cell on its diagonal. It is less than the mean, as such kernels are
convex in s², and the less so the more inputs there are, as distances then vary less. What a single
row has beside, E k(x, x) less the diagonal, is its own.

Linear kernels are exact. Products are taken part by part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Product, Sum

from cloakgp.models.kernels.adjoint import FACTORS, blocks_of, pull_back_diagonal
from cloakgp.models.kernels.blocks import BlockMatern
from cloakgp.models.kernels.factored import FactoredKernel
from cloakgp.models.kernels.linear import LinearKernel
from cloakgp.utils.arrays import Array

# k(s) of variance 1, by smoothness.
_VALUES = {
    0.5: lambda s: np.exp(-s),
    1.5: lambda s: (1.0 + np.sqrt(3.0) * s) * np.exp(-np.sqrt(3.0) * s),
    2.5: lambda s: (1.0 + np.sqrt(5.0) * s + 5.0 / 3.0 * s**2) * np.exp(-np.sqrt(5.0) * s),
    np.inf: lambda s: np.exp(-np.square(s) / 2.0),
}


@dataclass(frozen=True, eq=False)
class InputCells:
    """Inputs of the rows of cells.

    Attributes
    ----------
    means : array of shape (n, D)
    variances : array of shape (n, D)
        Over the rows of each cell; zero for rows that are alike.
    """

    means: Array
    variances: Array


def between_cells(kernel: Kernel, cells: InputCells) -> Array:
    """Return about E k(x, x') of rows of two cells, or of two rows of one, shape (n, n).

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        One that `cloakgp.models.kernels.adjoint.has_adjoint`.
    cells : InputCells

    Examples
    --------
    >>> apart = InputCells(means=np.array([[0.0], [3.0]]), variances=np.array([[0.0], [16.0]]))
    >>> between_cells(RBF(), apart).round(6).tolist() == np.exp(
    ...     [[0.0, -12.5], [-12.5, -16.0]]).round(6).tolist()
    True
    """
    if isinstance(kernel, Sum):
        return between_cells(kernel.k1, cells) + between_cells(kernel.k2, cells)
    if isinstance(kernel, Product):
        return _times(kernel.k1, cells, between_cells(kernel.k2, cells))
    if isinstance(kernel, FactoredKernel):
        rows, column = _split(kernel, cells)
        return between_cells(kernel.kernel, rows) * kernel.factor(column, column)
    if isinstance(kernel, ConstantKernel):
        return np.full((len(cells.means),) * 2, float(kernel.constant_value))
    if isinstance(kernel, LinearKernel):
        return np.asarray(kernel(cells.means, cells.means.copy()))
    return np.asarray(_VALUES[_smoothness(kernel)](_distances(kernel, cells)))


def variances_in_cells(kernel: Kernel, cells: InputCells) -> Array:
    """Return E k(x, x) of rows of each cell, shape (n,).

    Parameters
    ----------
    kernel, cells
        As for `between_cells`.

    Examples
    --------
    >>> kernel = LinearKernel([0.0], [1.0])
    >>> variances_in_cells(kernel, InputCells(means=np.ones((1, 1)), variances=np.ones((1, 1))))
    array([2.])
    """
    if isinstance(kernel, Sum):
        return variances_in_cells(kernel.k1, cells) + variances_in_cells(kernel.k2, cells)
    if isinstance(kernel, Product):
        return variances_in_cells(kernel.k1, cells) * variances_in_cells(kernel.k2, cells)
    if isinstance(kernel, FactoredKernel):
        rows, column = _split(kernel, cells)
        return variances_in_cells(kernel.kernel, rows) * kernel.own_factor(column)
    found: Array = np.asarray(kernel.diag(cells.means), dtype=np.float64)
    if isinstance(kernel, LinearKernel):
        found = found + (cells.variances / np.square(np.atleast_1d(kernel.scale))).mean(axis=1)
    return found


def pull_back_cells(kernel: Kernel, cells: InputCells, weights: Array) -> Array:
    """Return Σ_cd b_cd ∂k_cd/∂θ for the matrix of `between_cells`, shape (p,).

    Parameters
    ----------
    kernel, cells
        As for `between_cells`.
    weights : array of shape (n, n)
        b.
    """
    if isinstance(kernel, Sum):
        parts = (pull_back_cells(part, cells, weights) for part in (kernel.k1, kernel.k2))
        return np.concatenate(list(parts))
    if isinstance(kernel, Product):
        first, second = kernel.k1, kernel.k2
        return np.concatenate(
            [
                pull_back_cells(first, cells, _times(second, cells, weights)),
                pull_back_cells(second, cells, _times(first, cells, weights)),
            ]
        )
    if not kernel.n_dims:
        return np.zeros(0)
    if isinstance(kernel, FactoredKernel):
        rows, column = _split(kernel, cells)
        return pull_back_cells(kernel.kernel, rows, weights * kernel.factor(column, column))
    if isinstance(kernel, ConstantKernel):
        return np.array([kernel.constant_value * float(weights.sum())])
    blocks, scales = blocks_of(kernel, inputs=cells.means.shape[1])
    scaled = weights * FACTORS[_smoothness(kernel)](_distances(kernel, cells))
    # ∂k/∂log ℓ_i = h(s) E (x_i − x'_i)²/ℓ_i²; differences are the same from anywhere.
    means = (cells.means - cells.means.mean(axis=0)) / scales[blocks]
    squares = np.square(means) + cells.variances / np.square(scales[blocks])
    by_input = (scaled.sum(axis=0) + scaled.sum(axis=1)) @ squares
    by_input -= 2.0 * np.einsum("ni,ni->i", means, scaled @ means)
    if kernel.n_dims == 1:
        return np.array([by_input.sum()])
    return np.bincount(blocks, weights=by_input, minlength=len(scales)).astype(np.float64)


def pull_back_variances(kernel: Kernel, cells: InputCells, weights: Array) -> Array:
    """Return Σ_c b_c ∂/∂θ of `variances_in_cells`, shape (p,).

    Parameters
    ----------
    kernel, cells
        As for `between_cells`.
    weights : array of shape (n,)
        b.
    """
    if isinstance(kernel, Sum):
        parts = (pull_back_variances(part, cells, weights) for part in (kernel.k1, kernel.k2))
        return np.concatenate(list(parts))
    if isinstance(kernel, Product):
        first, second = kernel.k1, kernel.k2
        return np.concatenate(
            [
                pull_back_variances(first, cells, weights * variances_in_cells(second, cells)),
                pull_back_variances(second, cells, weights * variances_in_cells(first, cells)),
            ]
        )
    if isinstance(kernel, FactoredKernel):
        rows, column = _split(kernel, cells)
        return pull_back_variances(kernel.kernel, rows, weights * kernel.own_factor(column))
    # Of a single part, it moves with hyperparameters as at the means.
    return pull_back_diagonal(kernel, cells.means, weights)


def _times(kernel: Kernel, cells: InputCells, weights: Array) -> Array:
    """Return weights times the matrix of a factor."""
    if isinstance(kernel, ConstantKernel):
        return np.asarray(weights * kernel.constant_value)
    return weights * between_cells(kernel, cells)


def _split(kernel: FactoredKernel, cells: InputCells) -> tuple[InputCells, Array]:
    """Return cells without the column that a factor goes by, which all rows of a cell share."""
    means, column = kernel.split(cells.means)
    variances, _ = kernel.split(cells.variances)
    return InputCells(means=means, variances=variances), column


def _smoothness(kernel: Kernel) -> float:
    return {RBF: np.inf, BlockMatern: 1.5}.get(type(kernel)) or float(kernel.nu)


def _distances(kernel: Kernel, cells: InputCells) -> Array:
    """Return the root of E s² of rows of each two cells, or of one, shape (n, n)."""
    blocks, scales = blocks_of(kernel, inputs=cells.means.shape[1])
    means = cells.means / scales[blocks]
    within = (cells.variances / np.square(scales[blocks])).sum(axis=1)
    squares = cdist(means, means, "sqeuclidean")
    squares += within[:, None] + within
    return np.sqrt(squares, out=squares)
