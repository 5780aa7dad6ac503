from .bands import BandsDisplay
from .classification import ClassificationDisplay
from .display import Display
from .guarantee import GuaranteeDisplay
from .plans import PlanDisplay
from .plotting import display_of, plot
from .prediction import PredictionDisplay

__all__ = [
    "BandsDisplay",
    "ClassificationDisplay",
    "Display",
    "GuaranteeDisplay",
    "PlanDisplay",
    "PredictionDisplay",
    "display_of",
    "plot",
]
