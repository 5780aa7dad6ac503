"""How every release of numbers predicts, whatever it was made from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal, overload

from numpy.typing import ArrayLike

from cloakgp.utils.arrays import Array, as_inputs


def check_spread(*, return_std: bool, return_cov: bool) -> None:
    """Refuse to return both sd and covariance.

    Raises
    ------
    ValueError
        If both are asked for.

    Examples
    --------
    >>> check_spread(return_std=True, return_cov=False)
    """
    if return_std and return_cov:
        raise ValueError("ask for return_std or return_cov, not both")


class LatentRelease(ABC):
    """A public object that knows a latent function of one output.

    Attributes
    ----------
    input_names : tuple of str
        Names of the inputs, in order; empty if they have none.
    """

    input_names: tuple[str, ...]

    @property
    @abstractmethod
    def n_inputs(self) -> int:
        """D, the number of public inputs."""

    @abstractmethod
    def _predicted(
        self, points: Array, *, return_std: bool, return_cov: bool, new_output: bool
    ) -> Array | tuple[Array, Array]:
        """Return the mean at points of shape (P, D), with sd or covariance if asked for.

        Raises
        ------
        ValueError
            If both are: see `check_spread`.
        """

    @overload
    def predict(self, X: ArrayLike, *, new_output: bool = ...) -> Array: ...

    @overload
    def predict(
        self, X: ArrayLike, *, return_std: Literal[True], new_output: bool = ...
    ) -> tuple[Array, Array]: ...

    @overload
    def predict(
        self, X: ArrayLike, *, return_cov: Literal[True], new_output: bool = ...
    ) -> tuple[Array, Array]: ...

    def predict(
        self,
        X: ArrayLike,
        *,
        return_std: bool = False,
        return_cov: bool = False,
        new_output: bool = False,
    ) -> Array | tuple[Array, Array]:
        """Predict at any inputs, at no further cost in privacy.

        Parameters
        ----------
        X : array-like or table of shape (P, D)
            Columns of a table are found by the inputs' names, if these have any; others are
            ignored.
        return_std : bool
            Also return the posterior sd, shape (P,), in output units.
        return_cov : bool
            Also return the posterior covariance, shape (P, P), in squared output units.
        new_output : bool
            Uncertainty of a new output at X, rather than of the latent function: adds the
            observation noise.

        Returns
        -------
        mean : array of shape (P,)
            In output units.
        std or cov : array
            If asked for. Both include what is due to the privacy noise.

        Raises
        ------
        ValueError
            If X lacks an input or has another number of columns than the release, or sd and
            covariance are both asked for.
        """
        return self._predicted(
            as_inputs(X, input_names=self.input_names, n_inputs=self.n_inputs),
            return_std=return_std,
            return_cov=return_cov,
            new_output=new_output,
        )
