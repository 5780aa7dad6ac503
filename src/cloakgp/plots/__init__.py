"""Figures of releases, guarantees and plans, in scikit-learn's convention of displays.

A display computes its numbers once, from the public object alone, and draws them: `from_release`
and `from_estimator` make and draw one, `plot` draws it again, `to_frame` returns the numbers behind
the picture. `plot` finds the display that suits an object.

Public names are listed in `__init__.pyi`, and imported when they are first used.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
