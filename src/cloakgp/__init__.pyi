from . import baselines, models, rows
from .checks import PrivacyParameterWarning
from .classification import DPGPClassifier
from .multioutput import DPGPMultiOutputRegressor
from .opening import load
from .planning import SparseModelWarning
from .privacy import CloakedPredictions, Guarantee, cloak, compose
from .private_inputs import DPGPRegressorPrivateInputs
from .regression import DPGPRegressor
from .release import (
    LabelRelease,
    LatentPrediction,
    ManyRowsRelease,
    MultiOutputRelease,
    Published,
    Release,
    ReleaseFileError,
    StatisticsRelease,
)
from .remeasure import extend, refine
from .selection import DPGridSearchCV

__version__: str

__all__ = [
    "CloakedPredictions",
    "DPGPClassifier",
    "DPGPMultiOutputRegressor",
    "DPGPRegressor",
    "DPGPRegressorPrivateInputs",
    "DPGridSearchCV",
    "Guarantee",
    "LabelRelease",
    "LatentPrediction",
    "ManyRowsRelease",
    "MultiOutputRelease",
    "PrivacyParameterWarning",
    "Published",
    "Release",
    "ReleaseFileError",
    "SparseModelWarning",
    "StatisticsRelease",
    "baselines",
    "cloak",
    "compose",
    "extend",
    "load",
    "models",
    "refine",
    "rows",
]
