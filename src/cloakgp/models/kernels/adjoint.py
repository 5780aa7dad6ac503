r"""Adjoint derivatives of kernels: Σ_ij b_ij ∂k(x_i, z_j)/∂θ for all of θ at once.

Where a number depends on a kernel matrix by derivatives b_ij, its gradient in the logarithms θ of
the hyperparameters is a sum over the matrix, and no derivative matrix need be formed. Sums and
products of the usual kernels are gone through part by part. With s² = Σ_d (x_d − z_d)²/ℓ_d²,
derivatives in log ℓ_d are h(s) (x_d − z_d)²/ℓ_d², and the sum over pairs is one of squares and
products: three small matrix products for all inputs together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern, Product, Sum

from cloakgp.models.kernels.blocks import BlockMatern
from cloakgp.models.kernels.factored import FactoredKernel
from cloakgp.models.kernels.linear import LinearKernel
from cloakgp.models.kernels.rebuilding import count_free
from cloakgp.models.latent import components
from cloakgp.utils.arrays import Array

# Of stationary kernels; RBF is infinitely smooth.
SMOOTHNESSES = (0.5, 1.5, 2.5, np.inf)
_KNOWN = (
    Sum,
    Product,
    ConstantKernel,
    LinearKernel,
    BlockMatern,
    RBF,
    Matern,
)


def has_adjoint(kernel: Kernel) -> bool:
    """Return whether all parts of a kernel are known here.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel

    Examples
    --------
    >>> has_adjoint(2.0 * RBF() + Matern(nu=1.5)), has_adjoint(RBF() ** 2)
    (True, False)
    """
    return all(
        isinstance(part, FactoredKernel)
        or (type(part) in _KNOWN and (type(part) is not Matern or part.nu in SMOOTHNESSES))
        for part in components(kernel)
    )


def pull_back(kernel: Kernel, X: Array, Z: Array, weights: Array) -> Array:
    """Return Σ_ij b_ij ∂k(x_i, z_j)/∂θ, shape (p,), in the order of ``kernel.theta``.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        One that `has_adjoint`.
    X : array of shape (n, D)
    Z : array of shape (m, D)
    weights : array of shape (n, m)
        b.

    Examples
    --------
    >>> pull_back(ConstantKernel(3.0) * RBF(), np.zeros((1, 1)), np.ones((1, 1)), np.ones((1, 1)))
    array([1.81959198, 1.81959198])
    """
    if isinstance(kernel, Sum):
        parts = (pull_back(part, X, Z, weights) for part in (kernel.k1, kernel.k2))
        return np.concatenate(list(parts))
    if isinstance(kernel, Product):
        first, second = kernel.k1, kernel.k2
        return np.concatenate(
            [
                pull_back(first, X, Z, _times(second, X, Z, weights)),
                pull_back(second, X, Z, _times(first, X, Z, weights)),
            ]
        )
    if not count_free(kernel):
        return np.zeros(0)
    if isinstance(kernel, FactoredKernel):
        (rows, column), (others, across) = kernel.split(X), kernel.split(Z)
        return pull_back(kernel.kernel, rows, others, weights * kernel.factor(column, across))
    if isinstance(kernel, ConstantKernel):
        return np.array([kernel.constant_value * float(weights.sum())])
    blocks, scales = blocks_of(kernel, inputs=X.shape[1])
    X, Z = X / scales[blocks], Z / scales[blocks]
    _, factors = values_and_factors(smoothness_of(kernel), cdist(X, Z))
    scaled = weights * factors
    return by_lengthscale(kernel, sums_by_input(scaled, X, Z))


def pull_back_diagonal(kernel: Kernel, X: Array, weights: Array) -> Array:
    """Return Σ_i b_i ∂k(x_i, x_i)/∂θ, shape (p,).

    Parameters
    ----------
    kernel, X
        As for `pull_back`.
    weights : array of shape (n,)

    Examples
    --------
    >>> pull_back_diagonal(ConstantKernel(3.0) * RBF(), np.zeros((2, 1)), np.ones(2))
    array([6., 0.])
    """
    if isinstance(kernel, Sum):
        parts = (pull_back_diagonal(part, X, weights) for part in (kernel.k1, kernel.k2))
        return np.concatenate(list(parts))
    if isinstance(kernel, Product):
        first, second = kernel.k1, kernel.k2
        return np.concatenate(
            [
                pull_back_diagonal(first, X, weights * second.diag(X)),
                pull_back_diagonal(second, X, weights * first.diag(X)),
            ]
        )
    if isinstance(kernel, FactoredKernel):
        rows, column = kernel.split(X)
        return pull_back_diagonal(kernel.kernel, rows, weights * kernel.own_factor(column))
    if isinstance(kernel, ConstantKernel) and count_free(kernel):
        return np.array([kernel.constant_value * float(weights.sum())])
    # The others have no hyperparameter, or one that does not matter at distance 0.
    return np.zeros(count_free(kernel))


def blocks_of(kernel: Kernel, *, inputs: int) -> tuple[NDArray[np.intp], Array]:
    """Return which block each input is in, shape (D,), and the lengthscale of each block.

    Parameters
    ----------
    kernel : RBF, Matern or BlockMatern
    inputs : int
        D. Without blocks, every input is one.
    """
    many = isinstance(kernel, BlockMatern)
    blocks = np.asarray(kernel.blocks, np.intp) if many else np.arange(inputs)
    count = int(np.max(blocks)) + 1
    return blocks, np.broadcast_to(np.atleast_1d(kernel.length_scale), (count,))


def _times(kernel: Kernel, X: Array, Z: Array, weights: Array) -> Array:
    product: Array = (
        weights * kernel.constant_value
        if isinstance(kernel, ConstantKernel)
        else weights * kernel(X, Z)
    )
    return product


def smoothness_of(kernel: RBF | Matern | BlockMatern) -> float:
    """Return ν: 1/2, 3/2 or 5/2 of Matérn kernels, infinite of a Gaussian kernel."""
    return {RBF: np.inf, BlockMatern: 1.5}.get(type(kernel)) or float(kernel.nu)


def values_and_factors(smoothness: float, s: Array) -> tuple[Array, Array]:
    """Return a kernel of variance 1 at distances s, and h(s), with one exponential for both.

    Parameters
    ----------
    smoothness : float
        One of `SMOOTHNESSES`.
    s : array
        In lengthscales.

    Examples
    --------
    >>> values_and_factors(1.5, np.zeros(1))
    (array([1.]), array([3.]))
    """
    if smoothness == 0.5:
        # h has no limit at s = 0, where no lengthscale matters.
        decay = np.exp(-s)
        return decay, np.divide(decay, s, out=np.zeros_like(s), where=s > 0)
    if np.isinf(smoothness):
        decay = np.exp(-np.square(s) / 2.0)
        return decay, decay
    scaled = np.sqrt(2.0 * smoothness) * s
    decay = np.exp(-scaled)
    scaled += 1.0
    if smoothness == 1.5:
        return scaled * decay, 3.0 * decay
    factor = scaled * decay
    return factor + 5.0 / 3.0 * np.square(s) * decay, 5.0 / 3.0 * factor


def sums_by_input(scaled: Array, X: Array, Z: Array) -> Array:
    """Return Σ_ij w_ij (x_id − z_jd)², shape (D,).

    Parameters
    ----------
    scaled : array of shape (n, m)
        w.
    X : array of shape (n, D)
    Z : array of shape (m, D)
    """
    # Differences are the same from anywhere; from here, squares of inputs are not much larger.
    centre = Z.mean(axis=0)
    X, Z = X - centre, Z - centre
    found: Array = (
        scaled.sum(axis=1) @ np.square(X)
        + scaled.sum(axis=0) @ np.square(Z)
        - 2.0 * np.einsum("nd,nd->d", X, scaled @ Z)
    )
    return found


def by_lengthscale(kernel: RBF | Matern | BlockMatern, by_input: Array) -> Array:
    """Return the sums over the inputs of each lengthscale, shape (p,).

    Parameters
    ----------
    kernel : RBF, Matern or BlockMatern
        Whose lengthscales are free.
    by_input : array of shape (D,)
    """
    if count_free(kernel) == 1:
        return np.array([by_input.sum()])
    blocks, scales = blocks_of(kernel, inputs=len(by_input))
    return np.bincount(blocks, weights=by_input, minlength=len(scales)).astype(np.float64)
