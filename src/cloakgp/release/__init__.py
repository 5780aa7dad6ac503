"""What is published: predict, combine, save, load. Nothing here sees an output."""

from cloakgp.release.choice import Choice
from cloakgp.release.functional import ReleasedFunction
from cloakgp.release.hyperparameters.regression import Hyperprior, WeightedPrior
from cloakgp.release.io.bundle import ReleaseFileError
from cloakgp.release.label_release import LabelRelease
from cloakgp.release.many_rows import ManyRowsRelease
from cloakgp.release.measurement import Measurement, Published
from cloakgp.release.posterior.probabilities import LatentPrediction
from cloakgp.release.questions import (
    Budget,
    Query,
    Questions,
    choose_questions,
)
from cloakgp.release.release import Release
from cloakgp.release.several_outputs import MultiOutputRelease
from cloakgp.release.statistics import StatisticsRelease

__all__ = [
    "Budget",
    "Choice",
    "Hyperprior",
    "LabelRelease",
    "LatentPrediction",
    "ManyRowsRelease",
    "Measurement",
    "MultiOutputRelease",
    "Published",
    "Query",
    "Questions",
    "Release",
    "ReleaseFileError",
    "ReleasedFunction",
    "StatisticsRelease",
    "WeightedPrior",
    "choose_questions",
]
