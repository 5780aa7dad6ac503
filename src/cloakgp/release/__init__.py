"""What is published: predict, combine, save, load. Nothing here sees an output."""

from cloakgp.release.archive import ReleaseFileError
from cloakgp.release.choice import Choice
from cloakgp.release.learning import Hyperprior, WeightedPrior
from cloakgp.release.measurement import Measurement, Published
from cloakgp.release.questions import (
    MECHANISMS,
    Budget,
    Mechanism,
    Query,
    Questions,
    choose_questions,
)
from cloakgp.release.release import Release

__all__ = [
    "MECHANISMS",
    "Budget",
    "Choice",
    "Hyperprior",
    "Measurement",
    "Mechanism",
    "Published",
    "Query",
    "Questions",
    "Release",
    "ReleaseFileError",
    "WeightedPrior",
    "choose_questions",
]
