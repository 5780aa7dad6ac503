"""Gaussian noise: it counts columns by their Euclidean norm, and needs a δ."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from cloakgp.privacy.accounting import (
    Calibration,
    Guarantee,
    check_budget,
    discretisation_delta,
    exact_noise_multiplier,
    papers_noise_multiplier,
)
from cloakgp.privacy.encoding import Encoding
from cloakgp.privacy.groups import Groups, column_lengths, greatest_gauge
from cloakgp.privacy.noise.base import TOLERANCE, Noise
from cloakgp.privacy.rounding import UNIT_ROUNDOFF, gamma
from cloakgp.privacy.sampler import Integers, add_discrete_gaussian, add_insecure_gaussian
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import NoiseName


class GaussianNoise(Noise):
    """Discrete Gaussian noise (Canonne, Kamath and Steinke 2020), of Balle and Wang's calibration.

    Its theorem and what discretisation costs stand at `cloakgp.privacy.accounting`.
    """

    name: ClassVar[NoiseName] = "gaussian"
    law: ClassVar[str] = "normal"

    def lengths(self, columns: Array) -> Array:
        """Return ‖r_j‖₂, rounded up."""
        return column_lengths(columns)

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

    def distance(self, encoding: Encoding) -> float:
        """Return how far a row moves, in Euclidean norm."""
        return encoding.distance

    def unit_sd(self, epsilon: float, delta: float) -> float:
        """Return σ(ε, δ)."""
        return exact_noise_multiplier(epsilon, delta)

    def check(
        self, epsilon: float, delta: float, *, calibration: Calibration = "exact"
    ) -> tuple[float, float]:
        """Return a budget as float64, after checking that δ is above zero."""
        if calibration not in ("exact", "papers"):
            raise ValueError(f"calibration must be 'exact' or 'papers', got {calibration!r}")
        if delta == 0:
            raise ValueError("Gaussian noise needs a delta above 0: without one, noise='laplace'")
        check_budget(epsilon, delta)
        return float(epsilon), float(delta)

    def scale(
        self,
        sensitivity: int,
        *,
        answers: int,
        epsilon: float,
        delta: float,
        calibration: Calibration = "exact",
    ) -> tuple[float, Guarantee]:
        """Return τ and the guarantee.

        What discretisation costs is taken from δ before σ is calibrated. τ only grows by that, so
        the cost computed with the first τ is an upper bound for the last.

        Examples
        --------
        >>> scale, guarantee = GaussianNoise().scale(2**40, answers=1, epsilon=1.0, delta=0.01)
        >>> round(scale / 2**40, 3), guarantee.answers
        (1.878, 1)
        """
        multiplier = exact_noise_multiplier if calibration == "exact" else papers_noise_multiplier
        sigma = multiplier(epsilon, delta)
        first_scale = sigma * sensitivity
        cost = discretisation_delta(epsilon, answers=answers, coarseness=answers / first_scale**2)
        if cost >= delta / 2:
            raise ValueError(
                f"delta = {delta} is too small: drawing noise on a grid costs {cost:.1e} of it"
            )
        if calibration == "exact":
            sigma = exact_noise_multiplier(epsilon, delta - cost)
        # The margin covers the few roundings on the way from σ to τ to the μ that is stated.
        scale = sigma * sensitivity * (1 + 16 * UNIT_ROUNDOFF)
        guarantee = Guarantee(
            epsilon=epsilon,
            delta=delta,
            mu=math.nextafter(sensitivity / scale, math.inf),
            answers=answers,
            coarseness=answers / scale**2 * (1 + 4 * UNIT_ROUNDOFF),
        )
        if guarantee.delta_at(epsilon) > delta:
            raise RuntimeError("the calibration does not hold its guarantee; nothing released")
        return scale, guarantee

    def sd(self, scale: float) -> float:
        """Return τ."""
        return scale

    def add(
        self, integers: Integers, *, scale: float, sensitivity: int, insecure_seed: int | None
    ) -> Integers:
        """Add discrete Gaussian noise."""
        if insecure_seed is not None:
            return add_insecure_gaussian(integers, scale=scale, seed=insecure_seed)
        return add_discrete_gaussian(integers, scale=scale, sensitivity=sensitivity)

    def keeps(self, guarantee: Guarantee, *, moved: float) -> bool:
        """Return whether μ is at most what is stated."""
        return not guarantee.laplace and moved <= guarantee.mu * (1 + TOLERANCE)
