r"""Kernels between cells: covariances of rows that are known by mean and variance of their inputs.

Two rows of two cells, drawn apart, are taken to differ by Gaussian amounts: in input i by the
difference of the means μ, with the sum of the variances v of the inputs of the cells' rows. A
kernel is about a sum of Gaussian ones, Σ_q w_q exp(−t_q s²/2) (Matérn kernels are mixtures of
these), and of each

    E exp(−t s²/2) = Π_i (1 + t v_i/ℓ_i²)^(−1/2) exp(−t d_i²/(2 (ℓ_i² + t v_i))),    d = μ_c − μ_d,

with v = v_c + v_d. For all pairs at once v is twice the mean over cells in the exponent, and in
front stands the geometric mean of 1 + 2 t v_c/ℓ² and that of d: so the matrix between cells is a
covariance, and cells that vary alike, and two rows of one cell, are as above. What a single row has
beside, E k(x, x) less the diagonal, is its own.

Where lengthscales are shorter than cells are wide, most of what rows have in common comes of pairs
that lie near each other: the kernel at the mean squared distance leaves that out, and answers are
then explained by short lengthscales and large variances.

Linear kernels are exact. Products are taken part by part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.optimize import nnls
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern, Product, Sum

from cloakgp.models.kernels.adjoint import (
    blocks_of,
    by_lengthscale,
    smoothness_of,
    sums_by_input,
    values_and_factors,
)
from cloakgp.models.kernels.factored import FactoredKernel
from cloakgp.models.kernels.linear import LinearKernel
from cloakgp.models.kernels.rebuilding import count_free
from cloakgp.utils.arrays import Array

# Precisions t of the Gaussian kernels that stand for them, least, most and how many: the first is
# met within 0.016 (it has no slope at 0), the others within 0.002.
_PRECISIONS = {0.5: (0.2, 300.0, 8), 1.5: (0.5, 16.0, 4), 2.5: (0.5, 8.0, 4)}
# Distances at which they are fitted, in lengthscales.
_FITTED = np.linspace(0.0, 10.0, 401)
EVERY = slice(None)


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


class CellKernel(ABC):
    """A kernel between cells; each matrix is computed once, for values and for slopes.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    cells : InputCells
    rows, columns : slice
        Between which of them.
    """

    def __init__(self, kernel: Kernel, cells: InputCells, rows: slice, columns: slice) -> None:
        self.kernel = kernel
        self.cells = cells
        self.rows = rows
        self.columns = columns

    @property
    @abstractmethod
    def matrix(self) -> Array:
        """About E k(x, x') of rows of two cells, or of two rows of one, shape (n, m)."""

    @property
    @abstractmethod
    def variances(self) -> Array:
        """E k(x, x) of rows of each of the first cells, shape (n,)."""

    @abstractmethod
    def pull_back(self, weights: Array) -> Array:
        """Return Σ_cd b_cd ∂k_cd/∂θ of the matrix, shape (p,).

        Parameters
        ----------
        weights : array of shape (n, m)
            b.
        """

    @abstractmethod
    def pull_back_variances(self, weights: Array) -> Array:
        """Return Σ_c b_c ∂/∂θ of the variances, shape (p,).

        Parameters
        ----------
        weights : array of shape (n,)
            b.
        """

    def times(self, weights: Array) -> Array:
        """Return weights times the matrix, entry by entry."""
        return weights * self.matrix


def between_cells(
    kernel: Kernel, cells: InputCells, *, rows: slice = EVERY, columns: slice = EVERY
) -> CellKernel:
    """Return a kernel between cells.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        One that `cloakgp.models.kernels.adjoint.has_adjoint`.
    cells : InputCells
    rows, columns : slice
        Between which of them; all of them if not given.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> apart = InputCells(means=np.array([[0.0], [2.0]]), variances=np.full((2, 1), 1.5))
    >>> between_cells(RBF(), apart).matrix
    array([[0.5       , 0.30326533],
           [0.30326533, 0.5       ]])
    >>> one = InputCells(means=np.ones((1, 1)), variances=np.ones((1, 1)))
    >>> between_cells(LinearKernel([0.0], [1.0]), one).variances
    array([2.])
    """
    kind: type[CellKernel]
    if isinstance(kernel, Sum):
        kind = _Sum
    elif isinstance(kernel, Product):
        kind = _Product
    elif isinstance(kernel, FactoredKernel):
        kind = _Factored
    elif isinstance(kernel, ConstantKernel):
        kind = _Constant
    elif isinstance(kernel, LinearKernel):
        kind = _Linear
    else:
        kind = _Stationary if cells.variances.any() else _StationaryAtMeans
    return kind(kernel, cells, rows, columns)


class _OfTwo(CellKernel):
    def __init__(
        self, kernel: Sum | Product, cells: InputCells, rows: slice, columns: slice
    ) -> None:
        super().__init__(kernel, cells, rows, columns)
        first, second = (
            between_cells(part, cells, rows=rows, columns=columns)
            for part in (kernel.k1, kernel.k2)
        )
        self.parts = first, second


class _Sum(_OfTwo):
    @cached_property
    def matrix(self) -> Array:
        first, second = self.parts
        return first.matrix + second.matrix

    @cached_property
    def variances(self) -> Array:
        first, second = self.parts
        return first.variances + second.variances

    def pull_back(self, weights: Array) -> Array:
        return np.concatenate([part.pull_back(weights) for part in self.parts])

    def pull_back_variances(self, weights: Array) -> Array:
        return np.concatenate([part.pull_back_variances(weights) for part in self.parts])


class _Product(_OfTwo):
    @cached_property
    def matrix(self) -> Array:
        first, second = self.parts
        return first.times(second.matrix)

    @cached_property
    def variances(self) -> Array:
        first, second = self.parts
        return first.variances * second.variances

    def pull_back(self, weights: Array) -> Array:
        first, second = self.parts
        slopes = first.pull_back(second.times(weights)), second.pull_back(first.times(weights))
        return np.concatenate(slopes)

    def pull_back_variances(self, weights: Array) -> Array:
        first, second = self.parts
        return np.concatenate(
            [
                first.pull_back_variances(weights * second.variances),
                second.pull_back_variances(weights * first.variances),
            ]
        )


class _Factored(CellKernel):
    """Rows of a cell share the column that the factor goes by."""

    def __init__(
        self, kernel: FactoredKernel, cells: InputCells, rows: slice, columns: slice
    ) -> None:
        super().__init__(kernel, cells, rows, columns)
        means, column = kernel.split(cells.means)
        variances, _ = kernel.split(cells.variances)
        self.column, self.across = column[rows], column[columns]
        rest = InputCells(means=means, variances=variances)
        self.rest = between_cells(kernel.kernel, rest, rows=rows, columns=columns)

    @cached_property
    def factor(self) -> Array:
        """Shape (n, m)."""
        return np.asarray(self.kernel.factor(self.column, self.across))

    @cached_property
    def matrix(self) -> Array:
        return self.rest.times(self.factor)

    @cached_property
    def variances(self) -> Array:
        return np.asarray(self.rest.variances * self.kernel.own_factor(self.column))

    def pull_back(self, weights: Array) -> Array:
        return self.rest.pull_back(weights * self.factor)

    def pull_back_variances(self, weights: Array) -> Array:
        return self.rest.pull_back_variances(weights * self.kernel.own_factor(self.column))


class _Single(CellKernel):
    """A kernel without parts: no lengthscale matters to a variance, at distance 0."""

    @property
    def means(self) -> tuple[Array, Array]:
        """Means of the inputs of both."""
        # A copy, as kernels tell the same inputs by the same array.
        return self.cells.means[self.rows], self.cells.means[self.columns].copy()

    @cached_property
    def variances(self) -> Array:
        return np.asarray(self.kernel.diag(self.means[0]), dtype=np.float64)

    def pull_back_variances(self, weights: Array) -> Array:
        del weights
        return np.zeros(count_free(self.kernel))


class _AtMeans(_Single):
    """Rows of each cell are alike."""

    @cached_property
    def matrix(self) -> Array:
        return np.asarray(self.kernel(*self.means))


class _Constant(_AtMeans):
    def pull_back(self, weights: Array) -> Array:
        if not count_free(self.kernel):
            return np.zeros(0)
        return np.array([self.kernel.constant_value * float(weights.sum())])

    def pull_back_variances(self, weights: Array) -> Array:
        return self.pull_back(weights)

    def times(self, weights: Array) -> Array:
        return np.asarray(weights * self.kernel.constant_value)


class _Linear(_AtMeans):
    """Covariances are those of the means; variances are more."""

    @cached_property
    def variances(self) -> Array:
        spread = self.cells.variances[self.rows] / np.square(np.atleast_1d(self.kernel.scale))
        found: Array = self.kernel.diag(self.means[0]) + spread.mean(axis=1)
        return found

    def pull_back(self, weights: Array) -> Array:
        # Nothing of it is learned.
        del weights
        return np.zeros(0)


class _StationaryAtMeans(_Single):
    @cached_property
    def scaled(self) -> tuple[Array, Array]:
        """Means of the inputs of both, in lengthscales."""
        blocks, scales = blocks_of(self.kernel, inputs=self.cells.means.shape[1])
        scaled = self.cells.means / scales[blocks]
        return scaled[self.rows], scaled[self.columns]

    @cached_property
    def values_and_factors(self) -> tuple[Array, Array]:
        """The matrix, and by what slopes are more."""
        return values_and_factors(smoothness_of(self.kernel), cdist(*self.scaled))

    @property
    def matrix(self) -> Array:
        return self.values_and_factors[0]

    def pull_back(self, weights: Array) -> Array:
        if not count_free(self.kernel):
            return np.zeros(0)
        scaled = weights * self.values_and_factors[1]
        return by_lengthscale(self.kernel, sums_by_input(scaled, *self.scaled))


class _Stationary(_Single):
    """A sum of Gaussian kernels."""

    @cached_property
    def gaussians(self) -> list[_Gaussian]:
        """Those of which it consists."""
        return list(_gaussians(self.kernel, self.cells, self.rows, self.columns))

    @cached_property
    def matrix(self) -> Array:
        first, *others = self.gaussians
        found = first.matrix.copy()
        for part in others:
            found += part.matrix
        return found

    def pull_back(self, weights: Array) -> Array:
        if not count_free(self.kernel):
            return np.zeros(0)
        by_input = np.zeros(self.cells.means.shape[1])
        for part in self.gaussians:
            by_input += part.pull_back(weights)
        return by_lengthscale(self.kernel, by_input)


@lru_cache
def gaussian_mixture(smoothness: float) -> tuple[tuple[float, float], ...]:
    """Return precisions and weights of Gaussian kernels that are together about a Matérn kernel.

    Weights by least squares that are not negative, at distances of up to ten lengthscales, and
    that add up to 1.

    Parameters
    ----------
    smoothness : float
        1/2, 3/2 or 5/2; infinite for a Gaussian kernel, which is its own mixture.

    Examples
    --------
    >>> [(precision, round(weight, 2)) for precision, weight in gaussian_mixture(np.inf)]
    [(1.0, 1.0)]
    >>> [round(weight, 2) for _, weight in gaussian_mixture(1.5)]
    [0.32, 0.49, 0.13, 0.05]
    """
    if np.isinf(smoothness):
        return ((1.0, 1.0),)
    precisions = np.geomspace(*_PRECISIONS[smoothness])
    gaussians = np.exp(-np.square(_FITTED)[:, None] * precisions / 2.0)
    # As many rows as there are distances demand that they add up.
    demand = float(len(_FITTED))
    weights, _ = nnls(
        np.vstack([gaussians, np.full_like(precisions, demand)]),
        np.append(Matern(nu=smoothness)(_FITTED[:, None], [[0.0]]), demand),
    )
    shares = (weights / weights.sum()).tolist()
    pairs = zip(precisions.tolist(), shares, strict=True)
    return tuple((precision, share) for precision, share in pairs if share > 0.0)


@dataclass(frozen=True, eq=False)
class _Gaussian:
    """A Gaussian kernel between cells.

    Attributes
    ----------
    weight : float
        Its variance.
    means, others : arrays of shape (n, D) and (m, D)
        Of the inputs, from their middle, over the widths that the kernel has between cells.
    kept : array of shape (D,)
        ℓ²/(ℓ² + t v): how these widths move with the lengthscales.
    spread, across : arrays of shape (n, D) and (m, D)
        2 t v_c/ℓ².
    """

    weight: float
    means: Array
    others: Array
    kept: Array
    spread: Array
    across: Array

    @cached_property
    def matrix(self) -> Array:
        """Shape (n, m)."""
        # The logarithm, in products: far cheaper than distances, and in few steps over the matrix.
        own, other = (
            0.5 * (np.log(self.weight) - np.square(means).sum(axis=1))
            - 0.25 * np.log1p(spread).sum(axis=1)
            for means, spread in ((self.means, self.spread), (self.others, self.across))
        )
        found: Array = self.means @ self.others.T
        found += other
        found += own[:, None]
        return np.exp(found, out=found)

    def pull_back(self, weights: Array) -> Array:
        """Return Σ_cd b_cd ∂k_cd/∂log ℓ_i, shape (D,)."""
        scaled = weights * self.matrix
        each, other = scaled.sum(axis=1), scaled.sum(axis=0)
        found: Array = each @ np.square(self.means) + other @ np.square(self.others)
        found -= 2.0 * np.einsum("ni,ni->i", self.means, scaled @ self.others)
        found *= self.kept
        found += 0.5 * each @ (self.spread / (1.0 + self.spread))
        found += 0.5 * other @ (self.across / (1.0 + self.across))
        return found


def _gaussians(
    kernel: Kernel, cells: InputCells, rows: slice, columns: slice
) -> Iterator[_Gaussian]:
    """Return the Gaussian kernels of which one without parts consists."""
    blocks, scales = blocks_of(kernel, inputs=cells.means.shape[1])
    squares = np.square(scales[blocks])
    # Differences are the same from anywhere; from here, squares are not much larger.
    means = cells.means - cells.means.mean(axis=0)
    varying = 2.0 * cells.variances.mean(axis=0)
    for precision, weight in gaussian_mixture(smoothness_of(kernel)):
        widths = squares / precision + varying
        scaled, spread = means / np.sqrt(widths), 2.0 * precision * cells.variances / squares
        yield _Gaussian(
            weight=weight,
            means=scaled[rows],
            others=scaled[columns],
            kept=squares / precision / widths,
            spread=spread[rows],
            across=spread[columns],
        )
