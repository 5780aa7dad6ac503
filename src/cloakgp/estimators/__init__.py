"""Estimators in the manner of scikit-learn: they fit, and keep a release.

Public names are listed in `__init__.pyi`, and imported when they are first used.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
