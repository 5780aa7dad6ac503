from . import baselines, data, models, plots
from .estimators import (
    DPGPClassifier,
    DPGPClassifierPrivateInputs,
    DPGPMultiOutputRegressor,
    DPGPQuantileRegressor,
    DPGPRegressor,
    DPGPRegressorPrivateInputs,
    DPGridSearchCV,
)
from .estimators.base import UnusedColumnWarning
from .estimators.surroundings import RepeatedSpendingWarning
from .fitting.planning import SparseModelWarning
from .fitting.visits import extend, refine
from .privacy import CloakedPredictions, Guarantee, cloak, compose
from .privacy.checks import PrivacyParameterWarning
from .release import (
    DenseStrategy,
    LatentPrediction,
    Measurement,
    MultiOutputRelease,
    Published,
    Release,
    ReleaseFileError,
    StatisticsRelease,
    Strategy,
    StreamedStrategy,
)
from .release.open import load
from .streams.stream import Stream

__version__: str

__all__ = [
    "CloakedPredictions",
    "DPGPClassifier",
    "DPGPClassifierPrivateInputs",
    "DPGPMultiOutputRegressor",
    "DPGPQuantileRegressor",
    "DPGPRegressor",
    "DPGPRegressorPrivateInputs",
    "DPGridSearchCV",
    "DenseStrategy",
    "Guarantee",
    "LatentPrediction",
    "Measurement",
    "MultiOutputRelease",
    "PrivacyParameterWarning",
    "Published",
    "Release",
    "ReleaseFileError",
    "RepeatedSpendingWarning",
    "SparseModelWarning",
    "StatisticsRelease",
    "Strategy",
    "Stream",
    "StreamedStrategy",
    "UnusedColumnWarning",
    "baselines",
    "cloak",
    "compose",
    "data",
    "extend",
    "load",
    "models",
    "plots",
    "refine",
]
