"""Matérn 3/2 kernel with one lengthscale for each block of inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

from cloakgp.models.evaluation import fill_matern
from cloakgp.utils.arrays import Array

Bounds = tuple[float, float] | str


class BlockMatern(Kernel):
    r"""k(x, z) = (1 + √3 r) exp(−√3 r), with r² = Σ_b |x_b − z_b|² / ℓ_b² over blocks b of inputs.

    Several numbers can stand for one thing: the corners of a simplex for a category, a point on a
    circle for an hour of the day, kilometres north and east for a place. They share a lengthscale.
    Of categories, where any two levels are at distance 1, this makes every two alike: equal, or
    different by one and the same correlation.

    Parameters
    ----------
    length_scale : array-like of shape (B,)
        ℓ, in the units of the inputs.
    blocks : array-like of int, shape (D,)
        Which block each input is in, from 0.
    length_scale_bounds : (float, float) or "fixed"

    Examples
    --------
    >>> kernel = BlockMatern([1.0, 2.0], blocks=[0, 1, 1])
    >>> kernel(np.array([[0.0, 0.0, 0.0]]), np.array([[1.0, 0.0, 2.0]])).round(4)
    array([[0.2978]])
    """

    def __init__(
        self,
        length_scale: ArrayLike,
        blocks: ArrayLike,
        length_scale_bounds: Bounds = (1e-5, 1e5),
    ) -> None:
        self.length_scale = length_scale
        self.blocks = blocks
        self.length_scale_bounds = length_scale_bounds

    @property
    def hyperparameter_length_scale(self) -> Hyperparameter:
        """One for each block."""
        # scikit-learn takes a lone one for a number.
        count = max(int(np.size(self.length_scale)), 1)
        return Hyperparameter("length_scale", "numeric", self.length_scale_bounds, count)

    def __call__(
        self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False
    ) -> Any:
        """Return the covariances, and their gradients in the logarithms of the lengthscales.

        Parameters
        ----------
        X : array of shape (n, D)
        Y : array of shape (m, D), optional
            X if not given.
        eval_gradient : bool
            Only without Y.

        Returns
        -------
        K : array of shape (n, m)
        gradient : array of shape (n, n, B)
            If asked for.

        Raises
        ------
        ValueError
            If shapes do not fit, a lengthscale is not positive, or for a gradient with Y.
        """
        if eval_gradient and Y is not None:
            raise ValueError("the gradient is for one set of inputs: leave Y out")
        rows = np.atleast_2d(np.asarray(X, dtype=np.float64))
        others = rows if Y is None else np.atleast_2d(np.asarray(Y, dtype=np.float64))
        scales, blocks = self._scales(rows.shape[1])
        left, right = rows / scales[blocks], others / scales[blocks]
        root = np.sqrt(3.0) * cdist(left, right)
        decay = np.exp(-root)
        K: Array = (1.0 + root) * decay
        if not eval_gradient:
            return K
        if self.hyperparameter_length_scale.fixed:
            return K, np.empty((*K.shape, 0))
        squares = [
            cdist(left[:, blocks == block], right[:, blocks == block], "sqeuclidean")
            for block in range(len(scales))
        ]
        return K, 3.0 * np.stack(squares, axis=-1) * decay[:, :, None]

    def fill(self, X: Array, Z: Array, *, out: Array, spare: Array) -> None:
        """Put covariances where the result lies, to the last bit those of a call.

        Parameters
        ----------
        X : array of shape (n, D)
        Z : array of shape (m, D)
        out, spare : arrays of shape (n, m)
            As for `cloakgp.models.evaluation.FillingKernel`.
        """
        scales, blocks = self._scales(X.shape[1])
        fill_matern(X / scales[blocks], Z / scales[blocks], out=out, spare=spare)

    def diag(self, X: ArrayLike) -> Array:
        """Return the variances, all 1, shape (n,)."""
        return np.ones(len(np.asarray(X)))

    def is_stationary(self) -> bool:
        """Return True."""
        return True

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BlockMatern)
            and np.array_equal(self.length_scale, other.length_scale)
            and np.array_equal(self.blocks, other.blocks)
            and self.length_scale_bounds == other.length_scale_bounds
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        scales = ", ".join(f"{scale:.3g}" for scale in np.atleast_1d(self.length_scale))
        return f"BlockMatern(length_scale=[{scales}])"

    def _scales(self, inputs: int) -> tuple[Array, NDArray[np.intp]]:
        scales = np.atleast_1d(np.asarray(self.length_scale, dtype=np.float64))
        blocks = np.asarray(self.blocks, dtype=np.intp)
        if blocks.shape != (inputs,) or set(blocks.tolist()) != set(range(len(scales))):
            raise ValueError(f"blocks must say of each of {inputs} inputs which scale is its own")
        if not (scales > 0).all():
            raise ValueError("length_scale must be positive")
        return scales, blocks
