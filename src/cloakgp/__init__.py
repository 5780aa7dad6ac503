"""cloakgp: Gaussian-process predictions of a private column, under differential privacy.

The main doors are `DPGPRegressor` and `DPGPClassifier`; `cloak` is the papers' mechanism for any
linear smoother; a `Release` or `LabelRelease` is what may be published. Where inputs are private
too, there is `DPGPRegressorPrivateInputs`; what one would do without designs is in
`cloakgp.baselines`.
"""

from cloakgp.classification import DPGPClassifier
from cloakgp.multioutput import DPGPMultiOutputRegressor
from cloakgp.privacy import CloakedPredictions, Guarantee, cloak, compose
from cloakgp.private_inputs import DPGPRegressorPrivateInputs
from cloakgp.regression import DPGPRegressor
from cloakgp.release import (
    LabelRelease,
    LatentPrediction,
    ManyRowsRelease,
    MultiOutputRelease,
    Published,
    Release,
    ReleaseFileError,
    StatisticsRelease,
)
from cloakgp.selection import DPGridSearchCV

__version__ = "0.1.0"

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
    "Published",
    "Release",
    "ReleaseFileError",
    "StatisticsRelease",
    "cloak",
    "compose",
]
