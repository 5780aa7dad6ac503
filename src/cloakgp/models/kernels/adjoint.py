r"""Adjoint derivatives of kernels: Σ_ij b_ij ∂k(x_i, z_j)/∂θ for all of θ at once.

Where a number depends on a kernel matrix by derivatives b_ij, its gradient in the logarithms θ of
the hyperparameters is a sum over the matrix, and no derivative matrix need be formed. Sums and
products of the usual kernels are gone through part by part (`cloakgp.models.kernels.cells`). With
s² = Σ_d (x_d − z_d)²/ℓ_d², derivatives in log ℓ_d are h(s) (x_d − z_d)²/ℓ_d², and the sum over
pairs is one of squares and products: three small matrix products for all inputs together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
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
