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
class LatentMarginals:
    """What is known of the latent functions at P points, under one prior of a mixture.

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
    """

    name: ClassVar[str]
    outputs: ClassVar[Literal["numbers", "classes"]]
    linear: ClassVar[bool] = False

    @property
    def channels(self) -> int:
        """How many latent functions there are."""
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
