from . import baselines
from .classification import DPGPClassifier
from .grid_search import DPGridSearchCV
from .multioutput import DPGPMultiOutputRegressor
from .private_inputs import DPGPClassifierPrivateInputs, DPGPRegressorPrivateInputs
from .quantiles import DPGPQuantileRegressor
from .regression import DPGPRegressor

__all__ = [
    "DPGPClassifier",
    "DPGPClassifierPrivateInputs",
    "DPGPMultiOutputRegressor",
    "DPGPQuantileRegressor",
    "DPGPRegressor",
    "DPGPRegressorPrivateInputs",
    "DPGridSearchCV",
    "baselines",
]
