r"""Likelihoods: how encoded outputs depend on latent functions.

A release asks linear questions about encoded outputs v: numbers as they are, classes as ±1 per
channel. Under a likelihood every v depends on the latent value f of its row alone, and statistical
linearisation replaces it by its best linear account under f ~ N(μ, s²),

    v ≈ h + A (f − μ) + e,    h = E[v],  A = cov(v, f)/s²,  var e = var v − A² s²,

which has the exact first two moments of v. That is all that conditioning on answers, and designs,
need to know of a likelihood; what it predicts is for it to say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from cloakgp.models.exact import ExactPrior
from cloakgp.models.sparse import SparsePrior
from cloakgp.utils.arrays import Array

LatentPrior = ExactPrior | SparsePrior


@dataclass(frozen=True, eq=False)
class Linearisation:
    """The best linear account of encoded outputs by latent values, each array of shape (n,).

    Attributes
    ----------
    expected : array
        h.
    slope : array
        A.
    residual : array
        var e; not negative.
    """

    expected: Array
    slope: Array
    residual: Array


@dataclass(frozen=True, eq=False)
class Window:
    """Where encoded outputs are clipped, row by row, and in which units they are asked.

    Attributes
    ----------
    lower, upper : float or arrays of shape (n,)
    origin, width : float or arrays of shape (n,)
        What is asked is (clip(v; lower, upper) − origin) / width.
    """

    lower: Array | float
    upper: Array | float
    origin: Array | float = 0.0
    width: Array | float = 1.0

    def of_rows(self, rows: slice) -> Window:
        """Return the window of some rows."""
        return Window(*(_of_rows(each, rows) for each in self._ends))

    def place(self, values: Array) -> Array:
        """Return the numbers of K values in every row's question, shape (n, K) or (1, K)."""
        lower, upper, origin, width = (np.reshape(each, (-1, 1)) for each in self._ends)
        placed: Array = (np.clip(values, lower, upper) - origin) / width
        return placed

    @property
    def _ends(self) -> tuple[Array | float, ...]:
        return self.lower, self.upper, self.origin, self.width


def _of_rows(values: Array | float, rows: slice) -> Array | float:
    return values[rows] if isinstance(values, np.ndarray) else values


@dataclass(frozen=True, eq=False)
class Accounts:
    """Linear accounts of the asked values of several stages of the same rows.

    Attributes
    ----------
    expected, slope : arrays of shape (S, n)
    residual : array of shape (S, S, n)
        Covariances of what linear accounts leave out, between stages.
    """

    expected: Array
    slope: Array
    residual: Array


@dataclass(frozen=True, eq=False)
class LatentMarginals:
    """Marginals of the latent functions at P points, under one prior of a mixture.

    Attributes
    ----------
    weight : float
        Of this prior.
    prior : ExactPrior or SparsePrior
    likelihood : Likelihood
    mean, variance : arrays of shape (P, channels)
    noise_share : array of shape (P, channels)
        The variance of the mean that is due to the privacy noise.
    """

    weight: float
    prior: LatentPrior
    likelihood: Likelihood
    mean: Array
    variance: Array
    noise_share: Array


@dataclass(frozen=True, eq=False)
class LatentJoint:
    """Mean and covariance of the latent function of one channel, under one prior of a mixture.

    Attributes
    ----------
    weight : float
    prior : ExactPrior or SparsePrior
    mean : array of shape (P,)
    covariance : array of shape (P, P)
    """

    weight: float
    prior: LatentPrior
    mean: Array
    covariance: Array


class LatentFunctions(Protocol):
    """Something that knows the latent functions, averaged over a few priors."""

    def mean(self, X: Array) -> Array:
        """Return the mean at P points, shape (P, channels)."""

    def marginals(self, X: Array) -> Sequence[LatentMarginals]:
        """Return means and variances at P points, under each prior."""

    def joint(self, X: Array) -> Sequence[LatentJoint]:
        """Return means and covariances at P points, under each prior; of one channel."""


class Likelihood(ABC):
    """How encoded outputs depend on latent functions; public mathematics.

    A new likelihood is a subclass in a module of this folder and a line in the registry
    ``LIKELIHOODS``; how outputs are encoded, and how far one can move, `cloakgp.privacy` says.

    Attributes
    ----------
    name : str
        As files spell it.
    outputs : {"numbers", "classes"}
        What answers are about: numbers within bounds, or declared classes.
    linear : bool
        Whether v = f but for the noise that the prior gives every row: conditioning on answers is
        then exact, and the latent functions are in output units.
    in_stages : bool
        Whether later stages ask otherwise than the first, by what was predicted: in bands, or
        about thresholds.
    windowed : bool
        Whether it has accounts of encoded outputs that are clipped to windows: to an interval that
        was found, and to bands.
    """

    name: ClassVar[str]
    outputs: ClassVar[Literal["numbers", "classes"]]
    linear: ClassVar[bool] = False
    windowed: ClassVar[bool] = False

    @property
    def in_stages(self) -> bool:
        """Whether later stages ask otherwise than the first, by what was predicted."""
        return self.linear or self.windowed

    @property
    def channels(self) -> int:
        """The number of latent functions."""
        return 1

    def means(self, prior: LatentPrior) -> tuple[float, ...]:
        """Return the prior mean of every latent function."""
        return (prior.mean,) * self.channels

    @abstractmethod
    def linearise(self, mean: Array, variance: Array) -> Linearisation:
        """Return the best linear account of encoded outputs by latent values N(mean, variance).

        Parameters
        ----------
        mean, variance : arrays of shape (n,)
        """

    def accounts(self, mean: Array, variance: Array, windows: Sequence[Window | None]) -> Accounts:
        """Return linear accounts of the asked values of several stages of the same rows.

        Parameters
        ----------
        mean, variance : arrays of shape (n,)
            Of latent values.
        windows : sequence of Window or None
            Of each stage; without windows all stages ask the same.
        """
        one, count = self.linearise(mean, variance), len(windows)
        return Accounts(
            expected=np.broadcast_to(one.expected, (count, len(mean))),
            slope=np.broadcast_to(one.slope, (count, len(mean))),
            residual=np.broadcast_to(one.residual, (count, count, len(mean))),
        )

    @abstractmethod
    def linear_prior(self, prior: LatentPrior, X: Array) -> LatentPrior:
        """Return the Gaussian prior over encoded outputs that is nearest at the prior.

        Designs for the sharpest predictions are made under it.

        Parameters
        ----------
        prior : ExactPrior or SparsePrior
            Of the latent functions.
        X : array of shape (N, D)
        """

    def cloaking_prior(self, prior: LatentPrior, X: Array) -> LatentPrior:
        """Return the Gaussian prior whose cloaking matrix gives raw predictions.

        Designs for the least noise on raw predictions are made under it.

        Parameters
        ----------
        prior : ExactPrior or SparsePrior
        X : array of shape (N, D)
        """
        return self.linear_prior(prior, X)

    @abstractmethod
    def predict(
        self,
        functions: LatentFunctions,
        X: Array,
        *,
        return_std: bool,
        return_cov: bool,
        new_output: bool,
    ) -> Any:
        """Predict outputs at P points.

        Parameters
        ----------
        functions : LatentFunctions
        X : array of shape (P, D)
        return_std, return_cov, new_output : bool
            As for `cloakgp.Release.predict`.

        Raises
        ------
        ValueError
            If what is asked for makes no sense for such outputs.
        """

    def probabilities(
        self, functions: LatentFunctions, X: Array, *, privacy_noise: bool = True
    ) -> Array:
        """Return the probability of every class at P points, shape (P, C).

        Raises
        ------
        TypeError
            If outputs are no classes.
        """
        del functions, X, privacy_noise
        raise TypeError(f"outputs are {self.outputs}, and only classes have probabilities")
