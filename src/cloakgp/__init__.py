"""cloakgp: Gaussian-process predictions of a private column, under differential privacy.

The main classes are `DPGPRegressor` and `DPGPClassifier`; `cloak` is the papers' mechanism for any
linear smoother; a `Release` or `LabelRelease` is what may be published, and `load` opens any kind
of release. Where inputs are private too, there is `DPGPRegressorPrivateInputs`; what one would do
without designs is in `cloakgp.baselines`.

Public names are listed in `__init__.pyi`, and imported when they are first used.
"""

from lazy_loader import attach_stub

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
