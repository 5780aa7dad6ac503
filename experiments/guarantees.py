"""Guarantees in numbers, by closed forms: odds, guesses, and the noise of one question.

Bounds are rounded up, as those of `cloakgp show` are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rich.table import Table

from cloakgp import Guarantee
from cloakgp.privacy.accounting import exact_noise_multiplier, papers_noise_multiplier
from cloakgp.privacy.guesses import right_guess, right_guess_of_any
from cloakgp.utils.formatting import odds_factor, percent
from experiments.framework import Experiment, Progress, table_titled

EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
# Of the noise of one question.
NOISE_EPSILONS = (0.1, 0.3, 1.0, 3.0)
DELTAS = (1e-2, 1e-3, 1e-5, 1e-8)
GAUSSIAN_DELTA = 1e-3
# The budget of the papers' tables, and how its noise is calibrated there.
PAPERS = (1.0, 0.01)


def gaussian_guarantee(epsilon: float, delta: float) -> Guarantee:
    """Return the guarantee of Gaussian noise that is calibrated to (ε, δ) exactly."""
    mu = 1.0 / exact_noise_multiplier(epsilon, delta)
    return Guarantee(epsilon=epsilon, delta=delta, mu=mu)


def laplace_guarantee(epsilon: float) -> Guarantee:
    """Return the guarantee of one answer with Laplace noise."""
    return Guarantee(epsilon=epsilon, delta=0.0, mu=0.0, laplace=(epsilon,))


@dataclass(frozen=True)
class Guarantees(Experiment[None]):
    """Say what budgets mean: odds, right guesses, and the noise of one question."""

    name: ClassVar[str] = "guarantees"
    small: ClassVar[Mapping[str, Any]] = {}

    epsilons: Sequence[float] = EPSILONS

    def compute(self, progress: Progress) -> None:
        """Compute nothing beforehand: closed forms take no time."""
        del progress

    def tables(self, found: None) -> Iterable[Table | str]:
        """Lay out odds and guesses by ε, and noise by ε and δ."""
        del found
        laid = table_titled(
            "Odds of one person, and right guesses between two values held for equally likely",
            "ε",
            right=[
                "odds change by at most",
                "a guess is right at most",
                "of one answer with Laplace noise",
                f"with Gaussian noise at δ = {GAUSSIAN_DELTA:g}",
            ],
        )
        for epsilon in self.epsilons:
            laid.add_row(
                f"{epsilon:g}",
                odds_factor(epsilon),
                percent(right_guess_of_any(epsilon, 0.0)),
                percent(right_guess(laplace_guarantee(epsilon))),
                percent(right_guess(gaussian_guarantee(epsilon, GAUSSIAN_DELTA))),
            )
        yield laid
        laid = table_titled(
            "Noise of one question: its sd, in units of the largest change by one person",
            "ε",
            right=[*(f"δ = {delta:g}" for delta in DELTAS), "Laplace at δ = 0"],
        )
        for epsilon in NOISE_EPSILONS:
            sds = [exact_noise_multiplier(epsilon, delta) for delta in DELTAS]
            laid.add_row(f"{epsilon:g}", *(f"{sd:.1f}" for sd in [*sds, math.sqrt(2.0) / epsilon]))
        yield laid
        exact, theirs = exact_noise_multiplier(*PAPERS), papers_noise_multiplier(*PAPERS)
        laid = table_titled(
            f"The papers' noise at ({PAPERS[0]:g}, {PAPERS[1]:g})",
            "calibration",
            right=["sd", "over the least"],
        )
        laid.add_row("exact", f"{exact:.3f}", "1")
        laid.add_row("the papers'", f"{theirs:.3f}", f"{theirs / exact:.2f}")
        yield laid
