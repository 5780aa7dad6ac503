"""Likelihoods: how encoded outputs depend on latent functions. One registry.

A new likelihood is a module of this folder and a line below: files, fits and predictions follow.
"""

from cloakgp.models.likelihoods.base import (
    LatentFunctions,
    LatentJoint,
    LatentMarginals,
    LatentPrior,
    Likelihood,
    Linearisation,
)
from cloakgp.models.likelihoods.classes import ClassLikelihood
from cloakgp.models.likelihoods.numbers import NUMBERS, Numbers

LIKELIHOODS: dict[str, type[Likelihood]] = {each.name: each for each in (Numbers, ClassLikelihood)}

__all__ = [
    "LIKELIHOODS",
    "NUMBERS",
    "ClassLikelihood",
    "LatentFunctions",
    "LatentJoint",
    "LatentMarginals",
    "LatentPrior",
    "Likelihood",
    "Linearisation",
    "Numbers",
]
