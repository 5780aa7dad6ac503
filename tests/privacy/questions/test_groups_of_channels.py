"""All entries of a person change together, whatever the question makes of each: all are tried."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cloakgp.privacy.ask import ask
from cloakgp.privacy.grid import Sensitivity
from cloakgp.privacy.noise import NOISES
from cloakgp.privacy.questions import Classes, CountQuestion, OutputBounds, QuantileQuestion

WHOSE = np.array([0, 0, 0, 1, 1, 2], dtype=np.intp)
RNG = np.random.default_rng(3)
QUESTIONS = {
    "bounds": (OutputBounds(-1.0, 2.0), (-1.0, 2.0), RNG.normal(size=(3, 6))),
    "two classes": (Classes(("a", "b")), ("a", "b"), RNG.normal(size=(3, 6))),
    "three classes": (Classes(("a", "b", "c")), ("a", "b", "c"), RNG.uniform(size=(3, 6))),
    "one quantile": (
        QuantileQuestion(np.zeros((6, 1)), bounds=(-1.0, 1.0)),
        (-1.0, 1.0),
        RNG.normal(size=(3, 6)),
    ),
    "two quantiles": (
        QuantileQuestion(np.tile([0.0, 1.0], (6, 1)), bounds=(-1.0, 2.0)),
        (-1.0, 0.5, 2.0),
        RNG.uniform(size=(3, 6)),
    ),
    "counts": (CountQuestion(np.arange(4.0)), (0.5, 1.5, 2.5), np.ones((1, 6))),
}


def farthest(question, values, strategy, *, noise):
    """How far answers move at most when all entries of the first person change, by trying all."""
    together = np.flatnonzero(WHOSE == 0)
    rest = [values[0]] * (len(WHOSE) - len(together))
    answers = []
    for chosen in itertools.product(values, repeat=len(together)):
        entries = question.read(np.array([*chosen, *rest]), rows=len(WHOSE))
        answers.append(strategy @ question.encode(entries))
    return max(noise.norm(one - other) for one, other in itertools.combinations(answers, 2))


@pytest.mark.parametrize("noise", NOISES.values(), ids=list(NOISES))
@pytest.mark.parametrize("kind", QUESTIONS)
def test_no_person_moves_answers_farther_than_is_calibrated_for(kind, noise):
    question, values, strategy = QUESTIONS[kind]
    moved = farthest(question, values, strategy, noise=noise)
    stated = Sensitivity.of_strategy(strategy, question=question, groups=WHOSE, noise=noise)
    assert moved <= stated.distance
    alone = Sensitivity.of_strategy(strategy, question=question, noise=noise)
    # Else a mechanism that forgot the groups would pass.
    assert moved > 1.2 * alone.distance


@pytest.mark.parametrize("noise", NOISES.values(), ids=list(NOISES))
@pytest.mark.parametrize("kind", QUESTIONS)
def test_the_noise_of_answers_covers_a_person(kind, noise):
    question, values, strategy = QUESTIONS[kind]
    y = np.array([values[0]] * len(WHOSE))
    settings = {"question": question, "epsilon": 1.0, "noise": noise.name}
    delta = 1e-3 if noise.needs_delta else 0.0
    answers = ask(strategy, y, groups=WHOSE.tolist(), delta=delta, **settings)
    moved = farthest(question, values, strategy, noise=noise) / answers.noise_sd
    assert noise.keeps(answers.guarantee, sensitivity_over_noise=moved)
    forgetful = ask(strategy, y, delta=delta, **settings)
    moved = farthest(question, values, strategy, noise=noise) / forgetful.noise_sd
    assert not noise.keeps(forgetful.guarantee, sensitivity_over_noise=moved)


def test_a_law_that_forgets_groups_of_several_channels_is_caught(monkeypatch):
    noise = NOISES["gaussian"]
    question, values, strategy = QUESTIONS["three classes"]
    whole = type(noise).gauge

    def forgetting(self, strategy, *, groups, channels=1):
        return whole(self, strategy, groups=None if channels > 1 else groups, channels=channels)

    monkeypatch.setattr(type(noise), "gauge", forgetting)
    stated = Sensitivity.of_strategy(strategy, question=question, groups=WHOSE, noise=noise)
    assert farthest(question, values, strategy, noise=noise) > stated.distance
