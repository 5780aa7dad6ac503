"""Releases, the published objects: predict, combine, save, load. Nothing here sees an output."""

from cloakgp.release.choice import Choice
from cloakgp.release.functional import ReleasedFunction
from cloakgp.release.hyperparameters.hyperprior import Hyperprior
from cloakgp.release.io.bundle import ReleaseFileError
from cloakgp.release.measurement import Measurement, Published
from cloakgp.release.one_output import OneOutputRelease
from cloakgp.release.posterior.mixture import LatentPrediction, WeightedPrior
from cloakgp.release.release import Release
from cloakgp.release.several_outputs import MultiOutputRelease
from cloakgp.release.statistics import StatisticsRelease
from cloakgp.release.strategy import DenseStrategy, Strategy
from cloakgp.release.streamed_strategy import StreamedStrategy

__all__ = [
    "Choice",
    "DenseStrategy",
    "Hyperprior",
    "LatentPrediction",
    "Measurement",
    "MultiOutputRelease",
    "OneOutputRelease",
    "Published",
    "Release",
    "ReleaseFileError",
    "ReleasedFunction",
    "StatisticsRelease",
    "Strategy",
    "StreamedStrategy",
    "WeightedPrior",
]
