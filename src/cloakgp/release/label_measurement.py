"""One visit to private labels: what was asked, and the noisy answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloakgp.privacy.labels import LabelAnswers, signed_centre
from cloakgp.release.posterior.classification import SignAnswers
from cloakgp.release.posterior.dense import AskedTable
from cloakgp.release.questions import Questions
from cloakgp.utils.arrays import Array


@dataclass(frozen=True, eq=False)
class LabelMeasurement:
    """Questions about the labels of one table, and their noisy answers.

    Attributes
    ----------
    questions : Questions
    answers : LabelAnswers
    """

    questions: Questions
    answers: LabelAnswers

    @property
    def attained_mu(self) -> float:
        """How far one label moves the answers, over the noise sd, recomputed."""
        if self.answers.noise_sd == 0:
            return 0.0
        longest = float(np.sqrt(np.square(self.questions.strategy).sum(axis=0).max()))
        return self.answers.classes.distance * longest / self.answers.noise_sd


def sign_answers(measurements: Sequence[LabelMeasurement]) -> tuple[SignAnswers, ...]:
    """Return what is known about the signs of every channel.

    Parameters
    ----------
    measurements : sequence of LabelMeasurement
        At least one; those that asked nothing are passed over.

    Returns
    -------
    tuple of SignAnswers
        One per channel, all with the same tables.
    """
    classes = measurements[0].answers.classes
    asked = sorted(
        (one for one in measurements if one.answers.noise_sd > 0),
        key=lambda one: one.questions.table,
    )
    tables: list[AskedTable] = []
    values: list[Array] = []
    for number in dict.fromkeys(one.questions.table for one in asked):
        scaled = []
        for one in asked:
            if one.questions.table == number:
                answers, noise_sd = one.answers.signed()
                strategy = one.questions.strategy
                shift = signed_centre(classes) * strategy.sum(axis=1)
                scaled.append(strategy / noise_sd)
                values.append((answers + shift[:, None]) / noise_sd)
                X = one.questions.X
        tables.append(AskedTable(number=number, X=X, questions=np.vstack(scaled)))
    if not tables:
        return tuple(SignAnswers(tables=(), values=np.zeros(0)) for _ in range(classes.channels))
    together = np.vstack(values)
    return tuple(SignAnswers(tables=tuple(tables), values=column) for column in together.T)
