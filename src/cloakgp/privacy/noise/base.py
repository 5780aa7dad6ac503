"""Noise: the law of what is added to answers, the norm in which it counts, what it guarantees."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cloakgp.privacy.accounting import Calibration, Guarantee
from cloakgp.privacy.encoding import Encoding
from cloakgp.privacy.groups import Groups
from cloakgp.privacy.rounding import gamma
from cloakgp.privacy.sampler import Integers
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import NoiseName

# A sensitivity in steps for which rounding does not matter.
WHOLE_STEPS = 2**40
# What noise may seem to be less than its guarantee needs by: float64 in another order of summation.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Noise(ABC):
    """A law of privacy noise.

    A new one is a module of this folder and a line in its registry: mechanisms take the norm in
    which their questions count, the scale and the draw from here.

    Attributes
    ----------
    name : str
        As parameters, options and files spell it.
    law : str
        In words.
    """

    name: ClassVar[NoiseName]
    law: ClassVar[str]

    @abstractmethod
    def lengths(self, columns: Array) -> Array:
        """Return the norm in which every column counts, rounded up.

        Parameters
        ----------
        columns : array of shape (k, n)
        """

    @abstractmethod
    def gauge(self, strategy: Array, *, groups: Groups | None, channels: int = 1) -> float:
        """Return how far answers move at most if all rows of a group move by one, rounded up.

        Parameters
        ----------
        strategy : array of shape (k, N)
        groups : array of shape (N,) or None
            None: every row is a group of its own.
        channels : int
            C, the columns of V. Of one column, rows move one way or the other. Of several they move
            in C dimensions.
        """

    def summed_lengths(self, strategy: Array, *, groups: Groups | None) -> float:
        """Return the greatest Σ_j ‖r_j‖ over a group, rounded up.

        By the triangle inequality rows that each move by one, whichever ways, move answers no
        further.

        Parameters
        ----------
        strategy : array of shape (k, N)
        groups : array of shape (N,) or None
        """
        lengths = self.lengths(strategy)
        if groups is None:
            return float(lengths.max())
        together = np.bincount(groups, weights=lengths)
        return float(together.max()) * (1 + 2 * gamma(len(groups)))

    @abstractmethod
    def norm(self, totals: Array) -> float:
        """Return the norm of a vector, rounded up; of a matrix, over all its entries."""

    @abstractmethod
    def norm_of_ones(self, count: int) -> float:
        """Return the norm of a vector of ones, rounded up."""

    @abstractmethod
    def distance(self, encoding: Encoding) -> float:
        """Return how far a row moves when its private entry changes to any other, rounded up."""

    @abstractmethod
    def unit_sd(self, epsilon: float, delta: float) -> float:
        """Return the sd of the noise that answers of sensitivity 1 need."""

    @abstractmethod
    def check(
        self, epsilon: float, delta: float, *, calibration: Calibration = "exact"
    ) -> tuple[float, float]:
        """Return a budget as float64, after checking it.

        Raises
        ------
        ValueError
            If there is no such noise of this budget.
        """

    @abstractmethod
    def scale(
        self,
        sensitivity: int,
        *,
        answers: int,
        epsilon: float,
        delta: float,
        calibration: Calibration = "exact",
    ) -> tuple[float, Guarantee]:
        """Return the noise parameter τ for rounded answers, in steps, and what it guarantees.

        Parameters
        ----------
        sensitivity : int
            Of the rounded answers, in steps, in this noise's norm.
        answers : int
            How many numbers are published.
        epsilon, delta : float
        calibration : {"exact", "papers"}

        Raises
        ------
        ValueError
            If the grid is too coarse for this budget.
        """

    def unasked(
        self, epsilon: float, delta: float, *, answers: int, after_answers: bool
    ) -> Guarantee:
        """Return the guarantee of a budget with which nothing was asked.

        Where earlier answers decided that, it counts as spent: what a guarantee adds up must not
        depend on answers.

        Parameters
        ----------
        epsilon, delta : float
        answers : int
            How many zeros are published.
        after_answers : bool
        """
        if not after_answers:
            return Guarantee(epsilon=epsilon, delta=delta, mu=0.0)
        return self.scale(WHOLE_STEPS, answers=answers, epsilon=epsilon, delta=delta)[1]

    @abstractmethod
    def sd(self, scale: float) -> float:
        """Return the standard deviation of noise of parameter τ."""

    @abstractmethod
    def add(
        self, integers: Integers, *, scale: float, sensitivity: int, insecure_seed: int | None
    ) -> Integers:
        """Add independent noise to a vector of integers.

        Parameters
        ----------
        integers : array of shape (k,)
            Private.
        scale : float
        sensitivity : int
        insecure_seed : int or None
            Makes the noise reproducible and the result **not private**.
        """

    @abstractmethod
    def keeps(self, guarantee: Guarantee, *, moved: float) -> bool:
        """Return whether noise keeps a guarantee.

        Parameters
        ----------
        guarantee : Guarantee
        moved : float
            Sensitivity in this noise's norm, over the noise's sd.
        """
