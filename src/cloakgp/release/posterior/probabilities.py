"""Latent functions and probabilities of classes, from published answers about labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np

from cloakgp.models.likelihoods.classes import LabelPrior
from cloakgp.release.label_measurement import LabelMeasurement, sign_answers
from cloakgp.release.posterior.classification import label_posterior
from cloakgp.release.posterior.dense import ConditionedProcess
from cloakgp.release.posterior.laplace import NewtonState, iterated
from cloakgp.utils.arrays import Array

Rule = Literal["posterior", "laplace"]
RULES: tuple[Rule, ...] = ("posterior", "laplace")


@dataclass(frozen=True, eq=False)
class LatentPrediction:
    """What is known of the latent functions at some inputs.

    Arrays have shape (P,) for two classes, and (P, C) for more.

    Attributes
    ----------
    mean : array
    sd : array
        In all: what the prior and the answers leave open.
    privacy_sd : array
        The part of it that the privacy noise makes: the sd of the mean over draws of that noise.
    """

    mean: Array
    sd: Array
    privacy_sd: Array


class LatentFunctions(Protocol):
    """Something that knows the latent functions, each array of shape (P, channels)."""

    def latent(self, X: Array) -> tuple[Array, Array, Array]:
        """Return means, variances, and the parts of the variances due to privacy noise."""


@dataclass(frozen=True, eq=False)
class PosteriorFunctions:
    """Latent functions given the answers, one posterior per channel."""

    posteriors: tuple[ConditionedProcess, ...]

    @classmethod
    def given(
        cls, prior: LabelPrior, measurements: Sequence[LabelMeasurement]
    ) -> PosteriorFunctions:
        """Condition every channel on its answers."""
        channels = zip(prior.means, sign_answers(measurements), strict=True)
        return cls(
            posteriors=tuple(
                label_posterior(replace(prior.latent, mean=mean), answers, link=prior.link)
                for mean, answers in channels
            )
        )

    def latent(self, X: Array) -> tuple[Array, Array, Array]:
        """Return means, variances, and the parts of the variances due to privacy noise."""
        channels = [one.marginals(X) for one in self.posteriors]
        return (
            np.stack([one.mean for one in channels], axis=1),
            np.stack([one.variance for one in channels], axis=1),
            np.stack([one.noise_share for one in channels], axis=1),
        )


@dataclass(frozen=True, eq=False)
class NewtonFunctions:
    """The papers' latent function after their noisy Newton steps."""

    state: NewtonState

    def latent(self, X: Array) -> tuple[Array, Array, Array]:
        """Return means, variances, and the parts of the variances due to privacy noise."""
        mean, variance, share = self.state.predicted(X)
        return mean[:, None], (variance + share)[:, None], share[:, None]


@dataclass(frozen=True, eq=False)
class LabelPredictor:
    """Latent functions under a prior, and the probabilities that follow.

    Attributes
    ----------
    prior : LabelPrior
    functions : LatentFunctions
    """

    prior: LabelPrior
    functions: LatentFunctions

    @classmethod
    def given(
        cls, prior: LabelPrior, measurements: Sequence[LabelMeasurement], *, rule: Rule
    ) -> LabelPredictor:
        """Read measurements by a rule.

        Parameters
        ----------
        prior : LabelPrior
        measurements : sequence of LabelMeasurement
        rule : {"posterior", "laplace"}
        """
        if rule == "laplace":
            functions: LatentFunctions = NewtonFunctions(iterated(prior, measurements))
        else:
            functions = PosteriorFunctions.given(prior, measurements)
        return cls(prior=prior, functions=functions)

    def probabilities(self, X: Array, *, privacy_noise: bool) -> Array:
        """Return the probability of every class, shape (P, C), each row adding up to 1.

        Averages the link over what is not known of the latent functions. With more than two
        classes, the probabilities of "this class or another" are divided by their sum.

        Parameters
        ----------
        X : array of shape (P, D)
        privacy_noise : bool
            Whether what the privacy noise makes unknown is averaged over too.
        """
        mean, variance, share = self.functions.latent(X)
        if not privacy_noise:
            variance = np.maximum(variance - share, 0.0)
        variance = variance + self.prior.latent.observation_noise(X)[:, None]
        probability, _ = self.prior.link.moments(mean, variance)
        if probability.shape[1] == 1:
            return np.hstack([1.0 - probability, probability])
        shares: Array = probability / probability.sum(axis=1, keepdims=True)
        return shares
