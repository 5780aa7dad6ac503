"""Latent covariances: any scikit-learn kernel without its white noise.

A `WhiteKernel` inside a kernel is observation noise, not latent function: scikit-learn adds it only
where a kernel is evaluated on one array with itself. Latent covariances are therefore always asked
for with two arrays, and the noise is the difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from inspect import signature

import numpy as np
from scipy import linalg
from sklearn.gaussian_process.kernels import Kernel, WhiteKernel

from cloakgp.models.evaluation import KernelBlocks, check_finite
from cloakgp.utils.arrays import Array

# Added to a covariance, relative to its largest variance, where a factorisation needs it. It is
# part of the model from then on: it enters C, its sensitivity and every prediction alike.
RELATIVE_JITTER = 1e-8
# A matrix whose smallest eigenvalue is below minus this share of its largest variance is no
# covariance. Below the jitter, so that what passes also factorises.
DEFINITENESS_TOLERANCE = 5e-9
DIAGONAL_BLOCK = 256
# Of a matrix that is evaluated at once.
BLOCK_ENTRIES = 2**17


class NotPositiveDefiniteError(ValueError):
    """The kernel is not a covariance function on these inputs."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(
            f"the kernel {kernel!r} is not positive definite on these inputs: use a valid "
            "covariance function (sums and products of scikit-learn's kernels are)"
        )


def latent_covariance(kernel: Kernel, X: Array, Z: Array) -> Array:
    """Return the covariances of the latent function between two sets of inputs.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    X : array of shape (n, D)
    Z : array of shape (m, D)

    Returns
    -------
    array of shape (n, m)
        In squared output units.

    Raises
    ------
    ValueError
        If the kernel gives NaN or infinite values.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> latent_covariance(RBF() + WhiteKernel(), np.zeros((1, 1)), np.zeros((1, 1)))
    array([[1.]])
    """
    rows = max(BLOCK_ENTRIES // max(len(Z), 1), 1)
    if len(X) <= rows:
        return check_finite(kernel, np.asarray(kernel(X, Z), dtype=np.float64))
    # In blocks that stay in the processor's cache: kernels of several parts are eight times as
    # fast.
    covariance, blocks = np.empty((len(X), len(Z))), KernelBlocks(kernel, Z)
    for start in range(0, len(X), rows):
        covariance[start : start + rows] = blocks(X[start : start + rows])
    return covariance


def latent_variance(kernel: Kernel, X: Array) -> Array:
    """Return the variances of the latent function, shape (n,), in squared output units."""
    if not has_white_noise(kernel):
        return np.asarray(kernel.diag(X), dtype=np.float64)
    blocks = range(0, len(X), DIAGONAL_BLOCK)
    return np.concatenate(
        [
            np.diag(latent_covariance(kernel, block, block.copy()))
            for block in (X[start : start + DIAGONAL_BLOCK] for start in blocks)
        ]
    )


def white_noise_variance(kernel: Kernel, X: Array) -> Array:
    """Return the variance that the kernel's own white noise adds to each output, shape (n,)."""
    if not has_white_noise(kernel):
        return np.zeros(len(X))
    total = np.asarray(kernel.diag(X), dtype=np.float64)
    noise: Array = np.maximum(total - latent_variance(kernel, X), 0.0)
    return noise


def check_positive_definite(kernel: Kernel, covariance: Array) -> None:
    """Raise `NotPositiveDefiniteError` unless a square covariance is one, up to rounding.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        For the message.
    covariance : array of shape (n, n)
    """
    scale = float(np.diag(covariance).max())
    symmetric = _asymmetry(covariance) <= DEFINITENESS_TOLERANCE * scale
    if scale <= 0:
        symmetric = not covariance.any()
        if symmetric:
            return
    if not symmetric:
        raise NotPositiveDefiniteError(kernel)
    shifted = covariance.copy()
    shifted[np.diag_indices(len(shifted))] += DEFINITENESS_TOLERANCE * scale
    try:
        # Symmetric, it is its transpose: in the order in which it can be factorised where it lies.
        linalg.cholesky(shifted.T, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        raise NotPositiveDefiniteError(kernel) from None


def _asymmetry(covariance: Array) -> float:
    """Return how far a matrix is from its transpose, entry by entry, at most."""
    most = 0.0
    for start in range(0, len(covariance), DIAGONAL_BLOCK):
        rows = slice(start, start + DIAGONAL_BLOCK)
        # Of a pair of blocks, one is enough.
        difference = covariance[rows, start:] - covariance[start:, rows].T
        most = max(most, float(np.abs(difference).max()))
    return most


def components(kernel: Kernel) -> Iterator[Kernel]:
    """Yield a kernel and every kernel that it is made of."""
    yield kernel
    kind: type = type(kernel)
    for name in _parameter_names(kind):
        value = getattr(kernel, name, None)
        if isinstance(value, Kernel):
            yield from components(value)


@cache
def _parameter_names(kind: type) -> tuple[str, ...]:
    """Return what a kernel is made with: scikit-learn reads it from the signature each time."""
    return tuple(signature(kind).parameters)


def has_white_noise(kernel: Kernel) -> bool:
    """Return whether a `WhiteKernel` is part of a kernel."""
    return any(isinstance(part, WhiteKernel) for part in components(kernel))
