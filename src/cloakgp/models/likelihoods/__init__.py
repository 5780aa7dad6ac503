"""Likelihoods: how encoded outputs depend on latent functions. One registry.

A new likelihood is a module of this folder and a line below: files, fits and predictions follow.
"""

from cloakgp.models.likelihoods.base import (
    Accounts,
    LatentFunctions,
    LatentJoint,
    LatentMarginals,
    LatentPrior,
    Likelihood,
    Linearisation,
    Window,
)
from cloakgp.models.likelihoods.classes import ClassLikelihood
from cloakgp.models.likelihoods.counts import CountLikelihood
from cloakgp.models.likelihoods.numbers import NUMBERS, Numbers
from cloakgp.models.likelihoods.quantiles import QuantileLikelihood

LIKELIHOODS: dict[str, type[Likelihood]] = {
    each.name: each for each in (Numbers, ClassLikelihood, CountLikelihood, QuantileLikelihood)
}

__all__ = [
    "LIKELIHOODS",
    "NUMBERS",
    "Accounts",
    "ClassLikelihood",
    "CountLikelihood",
    "LatentFunctions",
    "LatentJoint",
    "LatentMarginals",
    "LatentPrior",
    "Likelihood",
    "Linearisation",
    "Numbers",
    "QuantileLikelihood",
    "Window",
]
