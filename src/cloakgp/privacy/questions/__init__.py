"""Registry of questions: how entries become numbers. A new one is a module and a line below."""

from __future__ import annotations

from cloakgp.privacy.questions.bands import Bands
from cloakgp.privacy.questions.base import Question
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.privacy.questions.calibration import CalibrationQuestion
from cloakgp.privacy.questions.classes import Classes
from cloakgp.privacy.questions.counts import CountQuestion
from cloakgp.privacy.questions.margins import MarginQuestion
from cloakgp.privacy.questions.outside import OutsideQuestion
from cloakgp.privacy.questions.quantiles import QuantileQuestion
from cloakgp.privacy.questions.scatter import ScatterQuestion
from cloakgp.privacy.questions.spread import SpreadQuestion

QUESTIONS: dict[str, type[Question]] = {
    each.name: each
    for each in (
        OutputBounds,
        Bands,
        SpreadQuestion,
        ScatterQuestion,
        CountQuestion,
        OutsideQuestion,
        CalibrationQuestion,
        MarginQuestion,
        QuantileQuestion,
        Classes,
    )
}

__all__ = [
    "QUESTIONS",
    "Bands",
    "CalibrationQuestion",
    "Classes",
    "CountQuestion",
    "MarginQuestion",
    "OutputBounds",
    "OutsideQuestion",
    "QuantileQuestion",
    "Question",
    "ScatterQuestion",
    "SpreadQuestion",
]
