"""Unit balls: the norms in which noise counts the columns of a strategy, ℓ1 and ℓ2."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from cloakgp.privacy.groups import (
    Groups,
    column_lengths,
    greatest_gauge,
    lengths_of_entries_together,
)
from cloakgp.privacy.noise.base import Noise
from cloakgp.privacy.questions.base import Question
from cloakgp.privacy.rounding import UNIT_ROUNDOFF, gamma
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import Ball


class EuclideanNoise(Noise):
    """Noise that counts columns by their Euclidean norm."""

    ball: ClassVar[Ball] = "l2"
    between_indicators: ClassVar[float] = math.sqrt(2.0)

    def lengths(self, columns: Array) -> Array:
        """Return ‖r_j‖₂, rounded up."""
        return column_lengths(columns)

    def lengths_together(self, columns: Array, *, together: int) -> Array:
        """Return (Σ_tu |r_t·r_u|)^½ of every row; see `cloakgp.privacy.groups`."""
        if together == 1:
            return self.lengths(columns)
        return lengths_of_entries_together(columns, together=together)

    def gauge(self, strategy: Array, *, groups: Groups | None, channels: int = 1) -> float:
        """Return the greatest ‖Σ_j ±r_j‖₂ over a group; see `cloakgp.privacy.groups`.

        Of several channels, which signs do not exhaust, the greatest Σ_j ‖r_j‖₂.
        """
        if channels > 1:
            return self.summed_lengths(strategy, groups=groups)
        return greatest_gauge(strategy, groups=groups)

    def norm(self, totals: Array) -> float:
        """Return the Euclidean norm, rounded up."""
        return float(np.linalg.norm(totals)) * (1 + 2 * gamma(totals.size + 2))

    def norm_of_ones(self, count: int) -> float:
        """Return √n, rounded up."""
        return math.sqrt(count) * (1 + 4 * UNIT_ROUNDOFF)

    def distance(self, question: Question) -> float:
        """Return the largest change of a row, in Euclidean norm."""
        return question.distance


class AbsoluteNoise(Noise):
    """Noise that counts columns by the sum of their absolute entries."""

    ball: ClassVar[Ball] = "l1"
    between_indicators: ClassVar[float] = 2.0

    def lengths(self, columns: Array) -> Array:
        """Return ‖r_j‖₁, rounded up."""
        sums = np.abs(columns).sum(axis=0)
        return np.asarray(sums * (1 + 2 * gamma(len(columns))), dtype=np.float64)

    def lengths_together(self, columns: Array, *, together: int) -> Array:
        """Return Σ_t ‖r_t‖₁ of every row, rounded up."""
        if together == 1:
            return self.lengths(columns)
        sums = self.lengths(columns).reshape(-1, together).sum(axis=1)
        return np.asarray(sums * (1 + 2 * gamma(together)), dtype=np.float64)

    def gauge(self, strategy: Array, *, groups: Groups | None, channels: int = 1) -> float:
        """Return the greatest Σ_j ‖r_j‖₁ over a group, which bounds ‖Σ_j ±r_j‖₁.

        It is equal to it where every row is in one answer alone, as in a partition.
        """
        del channels
        return self.summed_lengths(strategy, groups=groups)

    def norm(self, totals: Array) -> float:
        """Return the sum of absolute entries, rounded up."""
        return float(np.abs(totals).sum()) * (1 + 2 * gamma(totals.size))

    def norm_of_ones(self, count: int) -> float:
        """Return n."""
        return float(count)

    def distance(self, question: Question) -> float:
        """Return the largest change of a row, in ℓ1 norm."""
        return question.absolute_distance
