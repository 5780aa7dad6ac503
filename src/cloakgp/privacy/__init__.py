"""Privacy: the mechanisms in which y meets noise, and what they cost."""

from cloakgp.privacy.accounting import Calibration, Guarantee, compose
from cloakgp.privacy.bounds import OutputBounds
from cloakgp.privacy.cloaking import CloakedPredictions, cloak
from cloakgp.privacy.queries import Answers, measure

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
