"""Privacy: the mechanisms in which y meets noise, and their costs."""

from cloakgp.privacy.accounting import Calibration, Guarantee, compose
from cloakgp.privacy.answers import Answers
from cloakgp.privacy.ask import ask
from cloakgp.privacy.cloaking import CloakedPredictions, cloak
from cloakgp.privacy.questions.bounds import OutputBounds

__all__ = [
    "Answers",
    "Calibration",
    "CloakedPredictions",
    "Guarantee",
    "OutputBounds",
    "ask",
    "cloak",
    "compose",
]
