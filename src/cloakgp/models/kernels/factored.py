r"""Factored kernel: a kernel over inputs, times a public factor that one more column decides.

    cov[f(x, t), f(z, u)] = k(x, z) c(t, u),

with t the column beside the inputs x. A product of covariances is one. The hyperparameters are
those of k: the factor is declared.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

from cloakgp.utils.arrays import Array


class FactoredKernel(Kernel):  # type: ignore[misc]
    """Base of kernels over inputs times a factor.

    A subclass says how inputs and the column are told apart (`split`), what the factor is of pairs
    (`factor`) and of each with itself (`own_factor`), and the names of its own parameters.

    Attributes
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        k, over all columns but one; its hyperparameters are the only ones.
    declared : tuple of str
        The parameters of the factor.
    """

    declared: ClassVar[tuple[str, ...]]
    kernel: Kernel

    @abstractmethod
    def split(self, X: ArrayLike) -> tuple[Array, Any]:
        """Return inputs, shape (n, D), and the column that the factor goes by, shape (n,)."""

    @abstractmethod
    def factor(self, column: Any, other: Any) -> Array:
        """Return c of all pairs, shape (n, m)."""

    @abstractmethod
    def own_factor(self, column: Any) -> Array:
        """Return c of each with itself, shape (n,)."""

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """Return the parameters, and those of the kernel over inputs if asked for."""
        params: dict[str, object] = {"kernel": self.kernel}
        params.update((name, getattr(self, name)) for name in self.declared)
        if deep:
            inner = self.kernel.get_params().items()
            params.update((f"kernel__{name}", value) for name, value in inner)
        return params

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        """Those of the kernel over inputs."""
        return [
            Hyperparameter(
                f"kernel__{parameter.name}",
                parameter.value_type,
                parameter.bounds,
                parameter.n_elements,
            )
            for parameter in self.kernel.hyperparameters
        ]

    @property
    def theta(self) -> Array:
        """The logarithms of the free hyperparameters."""
        return np.asarray(self.kernel.theta, dtype=np.float64)

    @theta.setter
    def theta(self, theta: Array) -> None:
        """Set them."""
        self.kernel.theta = theta

    @property
    def bounds(self) -> Array:
        """The bounds of ``theta``, shape (p, 2)."""
        return np.asarray(self.kernel.bounds, dtype=np.float64)

    def __call__(
        self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False
    ) -> Array | tuple[Array, Array]:
        """Return the covariances, and their gradients in ``theta`` if asked for.

        Parameters
        ----------
        X : array of shape (n, D + 1)
        Y : array of shape (m, D + 1), optional
        eval_gradient : bool
            Only without Y.
        """
        rows, column = self.split(X)
        if Y is None:
            factor = self.factor(column, column)
            if not eval_gradient:
                return np.asarray(self.kernel(rows) * factor, dtype=np.float64)
            covariance, gradient = self.kernel(rows, eval_gradient=True)
            return covariance * factor, gradient * factor[:, :, None]
        if eval_gradient:
            raise ValueError("the gradient is for one set of inputs: leave Y out")
        others, across = self.split(Y)
        covariance = self.kernel(rows, others) * self.factor(column, across)
        return np.asarray(covariance, dtype=np.float64)

    def diag(self, X: ArrayLike) -> Array:
        """Return the variances, shape (n,)."""
        rows, column = self.split(X)
        return np.asarray(self.kernel.diag(rows) * self.own_factor(column), dtype=np.float64)
