"""Sliders in notebooks: predictions over public inputs, and budgets of a plan.

Public names are listed in `__init__.pyi`, and imported when they are first used.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
