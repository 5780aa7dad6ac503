"""Noise: its law, the norm in which sensitivity counts, and its guarantee.

Whatever depends on a law is a method here, so that nothing outside of this folder knows a law by
its name. A law states its guarantee by what composes (`cloakgp.privacy.accounting.Guarantee`): a μ
of Gaussian differential privacy, or an ε that holds with δ = 0.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cloakgp.privacy.accounting import Calibration, Guarantee
from cloakgp.privacy.budgets import Pair
from cloakgp.privacy.groups import Groups
from cloakgp.privacy.questions.base import Question
from cloakgp.privacy.rounding import gamma
from cloakgp.privacy.sampler import Hide, Integers
from cloakgp.privacy.spending import Cost
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import Ball, NoiseName


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


# A sensitivity in steps for which rounding does not matter.
WHOLE_STEPS = 2**40
# What noise may seem to be less than its guarantee needs by: float64 in another order of summation.
TOLERANCE = 1e-9
# Kept back from each part of a budget, so that rounding in two calibrations cannot add up beyond
# the whole.
SPLIT_MARGIN = 1e-6


@dataclass(frozen=True)
class Noise(ABC):
    """A law of privacy noise.

    A new one is a module of this folder and a line in its registry: mechanisms take the norm in
    which their questions count, the scale and the draw from here, designs take the ball, schedules
    the shares and the split of a budget, accounts the cost.

    Attributes
    ----------
    name : str
        As parameters, options and files spell it.
    law : str
        In words.
    needs_delta : bool
        Whether there is no such noise at δ = 0.
    ball : {"l1", "l2"}
        The unit ball in which columns of a strategy are to lie.
    between_indicators : float
        How far two indicators of different intervals lie apart, in that norm.
    power : int
        Shares of a budget are of the power of 1/sd that adds up: of μ², 2; of ε, 1.
    shares : Shares
        What each part of a release takes of the whole.
    """

    name: ClassVar[NoiseName]
    law: ClassVar[str]
    needs_delta: ClassVar[bool]
    ball: ClassVar[Ball]
    between_indicators: ClassVar[float]
    power: ClassVar[int]
    shares: ClassVar[Shares]

    @abstractmethod
    def lengths(self, columns: Array) -> Array:
        """Return the norm in which every column counts, rounded up.

        Parameters
        ----------
        columns : array of shape (k, n)
        """

    @abstractmethod
    def lengths_together(self, columns: Array, *, together: int) -> Array:
        """Return the largest change of answers if all entries of a row move by one, rounded up.

        Parameters
        ----------
        columns : array of shape (k, n)
        together : int
            T: so many columns next to each other are those of one row; n is a multiple of it.

        Returns
        -------
        array of shape (n / T,)
            Of one entry a row, the lengths of the columns.
        """

    @abstractmethod
    def gauge(self, strategy: Array, *, groups: Groups | None, channels: int = 1) -> float:
        """Return the largest change of answers if all rows of a group move by one, rounded up.

        Parameters
        ----------
        strategy : array of shape (k, N)
        groups : array of shape (N,) or None
            None: every row is a group of its own.
        channels : int
            C, the columns of V. Of one column, rows move one way or the other. Of several they move
            in C dimensions.
        """

    @property
    def of_sums(self) -> str:
        """The name of noise on sums of answers, in words."""
        return f"sums of {self.law} noise"

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
    def distance(self, question: Question) -> float:
        """Return the largest change of a row of V by a change of its private entry, rounded up."""

    @abstractmethod
    def unit_sd(self, epsilon: float, delta: float) -> float:
        """Return the sd of the noise that answers of sensitivity 1 need."""

    def sd_of_share(self, epsilon: float, delta: float, *, share: float) -> float:
        """Return the sd of the noise that answers of sensitivity 1 need for a share of a budget."""
        return self.unit_sd(epsilon, delta) / (math.sqrt(share) if self.power == 2 else share)

    @abstractmethod
    def split(self, epsilon: float, delta: float, *, shares: Sequence[float]) -> tuple[Pair, ...]:
        """Split a budget so that its parts compose to it.

        Parameters
        ----------
        epsilon, delta : float
            The whole.
        shares : sequence of float
            Positive, adding up to 1 at most.

        Raises
        ------
        ValueError
            If every part would have ε = 0 at this δ.
        """

    @abstractmethod
    def scale_budget(self, epsilon: float, delta: float, *, factor: float) -> Pair:
        """Return the budget for a fraction of the noise."""

    @abstractmethod
    def adaptive_budget(self, epsilon: float, delta: float) -> Pair:
        """Return the budget for parts whose sizes depend on earlier answers.

        All parts of one path then keep the whole on every path.
        """

    @abstractmethod
    def whole(self, epsilon: float, delta: float) -> Guarantee:
        """Return the guarantee of one measurement with a whole budget, without its grid's cost."""

    @abstractmethod
    def whole_of_parts(
        self, epsilon: float, delta: float, *, parts: Sequence[Pair], fixed: bool = True
    ) -> Guarantee:
        """Return the joint guarantee of parts of a budget, without the cost of their grids.

        Parameters
        ----------
        epsilon, delta : float
            The whole, which was split.
        parts : sequence of (float, float)
        fixed : bool
            Whether it is these parts; else others of the same sum, of which the guarantee holds
            too.
        """

    @abstractmethod
    def budget_to_hold(self, epsilon: float, delta: float, *, parts: Sequence[Pair]) -> Cost | Pair:
        """Return the hold in an account before the first of several parts is drawn.

        Parameters
        ----------
        epsilon, delta : float
            The whole, which was split.
        parts : sequence of (float, float)
        """

    @abstractmethod
    def cost(self, epsilon: float, delta: float) -> Cost:
        """Return the largest cost of a measurement with a budget, without its grid."""

    @abstractmethod
    def spent(self, guarantee: Guarantee) -> float:
        """Return the spending of a measurement, in the additive units of shares."""

    @abstractmethod
    def check(self, epsilon: float, delta: float, *, calibration: Calibration = "exact") -> Pair:
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
        """Return the noise parameter τ for rounded answers, in steps, and its guarantee.

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

    def guarantee_without_answers(
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

    def quantile_of_sum(self, draws: int, probability: float) -> float:
        """Return what a sum of independent draws exceeds with 1 − p at most, in sds of one.

        For any law by Cantelli's inequality; a law that knows more says less.

        Parameters
        ----------
        draws : int
        probability : float
            p, above a half.
        """
        return math.sqrt(draws * probability / (1.0 - probability))

    @abstractmethod
    def fit_amounts(
        self, questions: Array, answers: Array, *, sums: Array, totals: Array
    ) -> tuple[Array, float] | None:
        """Return the most likely amounts, none below zero, behind noisy answers about them.

        Parameters
        ----------
        questions : array of shape (k, n)
            A, over the sd of the noise.
        answers : array of shape (k,)
            A m plus noise, over its sd.
        sums : array of shape (s, n)
        totals : array of shape (s,)
            What these sums of the amounts are.

        Returns
        -------
        array of shape (n,)
            m.
        float
            The negative log likelihood of the answers, but for what does not depend on m.

        None if the solver gives it up.
        """

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

    def add_share(
        self, integers: Integers, *, scale: float, sensitivity: int, sharers: int, hide: Hide
    ) -> Integers:
        """Add one of n shares of independent noise to a vector of integers, and hide the sum.

        Any n shares are the noise that `add` would add, or more.

        Parameters
        ----------
        integers : array of shape (k,)
            Private.
        scale : float
        sensitivity : int
        sharers : int
            n.
        hide : callable
            Makes of the sum what may leave its custodian.

        Raises
        ------
        ValueError
            If such noise does not come in shares.
        """
        del integers, scale, sensitivity, sharers, hide
        raise ValueError(f"{self.law} noise does not come in shares of several custodians")

    @abstractmethod
    def keeps(self, guarantee: Guarantee, *, sensitivity_over_noise: float) -> bool:
        """Return whether noise keeps a guarantee.

        Parameters
        ----------
        guarantee : Guarantee
        sensitivity_over_noise : float
            Sensitivity in this noise's norm, over the noise's sd.
        """
