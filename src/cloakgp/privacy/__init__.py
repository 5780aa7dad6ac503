"""The only rooms that y enters, and what a release costs."""

from cloakgp.privacy.cloaking import CloakedPredictions, cloak
from cloakgp.privacy.guarantee import Calibration, Guarantee, compose
from cloakgp.privacy.measure import Answers, measure
from cloakgp.privacy.outputs import OutputBounds

__all__ = [
    "Answers",
    "Calibration",
    "CloakedPredictions",
    "Guarantee",
    "OutputBounds",
    "cloak",
    "compose",
    "measure",
]
