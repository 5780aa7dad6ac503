from .bands import BandsDisplay
from .calibration import CalibrationDisplay
from .classification import ClassificationDisplay
from .display import Display
from .fan import FanDisplay
from .guarantee import GuaranteeDisplay
from .plans import PlanDisplay
from .plotting import display_of, plot
from .prediction import PredictionDisplay
from .quantiles import QuantileDisplay

__all__ = [
    "BandsDisplay",
    "CalibrationDisplay",
    "ClassificationDisplay",
    "Display",
    "FanDisplay",
    "GuaranteeDisplay",
    "PlanDisplay",
    "PredictionDisplay",
    "QuantileDisplay",
    "display_of",
    "plot",
]
