"""Measurements in stages with any noise, for tests that condition on them by other means."""

from __future__ import annotations

import numpy as np
from conditioning import dense

from cloakgp.privacy import Answers, Guarantee, OutputBounds
from cloakgp.privacy.accounting import gaussian_epsilon
from cloakgp.privacy.questions.bands import Bands
from cloakgp.release import Measurement

BOUNDS = OutputBounds(-8.0, 10.0)


def band(middle, width, *, rows):
    """The same band for all rows."""
    lower = np.full(rows, middle - width / 2)
    return Bands(lower=lower, upper=lower + width)


def stage(X, matrix, y, *, question=BOUNDS, noise_sd=0.5, seed=0, **others):
    """Measure outputs, as a question sees them, with seeded noise."""
    matrix = np.asarray(matrix, dtype=np.float64)
    noise = noise_sd * np.random.default_rng(seed).normal(size=len(matrix))
    longest = np.linalg.norm(matrix, axis=0).max()
    mu = question.distance * longest / noise_sd * (1 + 1e-12)
    answers = Answers(
        values=matrix @ question.encode(y) + noise[:, None],
        noise_sd=noise_sd,
        guarantee=Guarantee(
            epsilon=gaussian_epsilon(mu, 1e-3), delta=1e-3, mu=mu, answers=len(matrix)
        ),
    )
    return Measurement(strategy=dense(X, matrix, **others), answers=answers, question=question)
