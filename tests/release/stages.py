"""Measurements in stages with any noise, for tests that condition on them by other means."""

from __future__ import annotations

import numpy as np
from conditioning import dense

from cloakgp.privacy import Answers, Guarantee
from cloakgp.privacy.accounting import gaussian_epsilon
from cloakgp.privacy.bands import UNIT_BAND, Bands
from cloakgp.release import Measurement

BOUNDS = (-8.0, 10.0)


def band(middle, width, *, rows):
    """The same band for all rows."""
    lower = np.full(rows, middle - width / 2)
    return Bands(lower=lower, upper=lower + width)


def stage(X, matrix, y, *, encoding=None, noise_sd=0.5, seed=0, **others):
    """Measure outputs as they are, or as an encoding places them, with seeded noise."""
    matrix = np.asarray(matrix, dtype=np.float64)
    bounds = BOUNDS if encoding is None else UNIT_BAND
    centre = (bounds[0] + bounds[1]) / 2
    asked = y - centre if encoding is None else encoding.encoded(y)
    noise = noise_sd * np.random.default_rng(seed).normal(size=len(matrix))
    longest = np.linalg.norm(matrix, axis=0).max()
    mu = (bounds[1] - bounds[0]) * longest / noise_sd * (1 + 1e-12)
    answers = Answers(
        values=matrix @ asked + noise,
        noise_sd=noise_sd,
        centre=centre,
        bounds=bounds,
        guarantee=Guarantee(
            epsilon=gaussian_epsilon(mu, 1e-3), delta=1e-3, mu=mu, answers=len(matrix)
        ),
    )
    return Measurement(strategy=dense(X, matrix, **others), answers=answers, encoding=encoding)
