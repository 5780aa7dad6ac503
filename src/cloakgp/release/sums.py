"""Sums over rows of a streamed strategy's questions about latent functions, under each prior."""

from __future__ import annotations

from dataclasses import dataclass

from cloakgp.models import SparsePrior
from cloakgp.models.likelihoods import Likelihood
from cloakgp.utils.arrays import Array


@dataclass(frozen=True, eq=False)
class ChannelSums:
    """Sums over all rows of a strategy's questions about one latent function f = m + Vᵀu.

    Answers are offset + features u, and noise of this covariance from the rows, beside their own.
    Of numbers features are R Vᵀ and noise is R Λ Rᵀ; of numbers in bands the same of the best
    linear account of clipped numbers (`cloakgp.release.posterior.clipped_sums`), with what that
    leaves out in the noise; of classes, labels are linearised where the
    answers say that latent values are (`cloakgp.release.posterior.label_sums`).

    Attributes
    ----------
    features : array of shape (k, M)
    noise : array of shape (k, k)
    offset : array of shape (k,) or None
        None for numbers within the declared bounds: m R 1.
    shared : tuple of arrays of shape (k, k')
        R Λ R'ᵀ with what the same rows were asked earlier: their own noise is in both answers.
    skew : array of shape (k,) or None
        R o: how answers in bands move with the offset that all of a table's share, in predictive
        sds. None where there is none.
    """

    features: Array
    noise: Array
    offset: Array | None = None
    shared: tuple[Array, ...] = ()
    skew: Array | None = None


@dataclass(frozen=True, eq=False)
class PriorSums:
    """Sums of a strategy over all rows under one prior.

    Attributes
    ----------
    prior : SparsePrior
    likelihood : Likelihood
    channels : tuple of ChannelSums
        One for each latent function.
    """

    prior: SparsePrior
    likelihood: Likelihood
    channels: tuple[ChannelSums, ...]
