"""cloakgp: Gaussian-process predictions of a private column, under differential privacy.

The main door is `DPGPRegressor`; `cloak` is the papers' mechanism for any linear smoother; a
`Release` is what may be published.
"""

from cloakgp.privacy import CloakedPredictions, Guarantee, cloak, compose
from cloakgp.regression import DPGPRegressor
from cloakgp.release import Published, Release, ReleaseFileError
from cloakgp.selection import DPGridSearchCV

__version__ = "0.1.0"

__all__ = [
    "CloakedPredictions",
    "DPGPRegressor",
    "DPGridSearchCV",
    "Guarantee",
    "Published",
    "Release",
    "ReleaseFileError",
    "cloak",
    "compose",
]
