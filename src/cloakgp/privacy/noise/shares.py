"""Shares of a budget for the parts of a release, tuned on tables for each kind of composition."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shares:
    """Shares of the parts of a release: of μ², or of ε.

    Attributes
    ----------
    stages : tuple of float
        Of the default stages, in order, adding up to 1.
    spread : float
        Of the question how noisy outputs are.
    calibration : float
        Of counts in cells of predicted distributions, at most. The question how noisy outputs are
        leaves up to half of its share to these.
    cheap_round : float
        What a round of the search for an interval takes to count finely.
    largest_round, all_rounds : float
        What one round, and all of them, may take.
    check : float
        What it may take at most to ask who lies outside of an interval, by strata.
    """

    stages: tuple[float, ...]
    spread: float
    calibration: float
    cheap_round: float
    largest_round: float
    all_rounds: float
    check: float


OF_SQUARED_MU = Shares(
    stages=(0.2, 0.3, 0.5),
    spread=0.05,
    calibration=0.03,
    cheap_round=0.02,
    largest_round=0.15,
    all_rounds=0.3,
    check=0.05,
)
OF_EPSILON = Shares(
    stages=(0.25, 0.3, 0.45),
    spread=0.1,
    calibration=0.05,
    cheap_round=0.05,
    largest_round=0.27,
    all_rounds=0.55,
    check=0.1,
)
