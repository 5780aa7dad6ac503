r"""Scatter: how far from their predicted means outputs lie, added up in each of several strata.

Mechanism
---------
Every row j has a public predicted mean m_j and sd s_j > 0 of its output, and belongs to one of B
public strata: to the cell of the nearest of B public centres. With v_j ∈ [−½, ½], the logarithm of
its distance from the mean as at `cloakgp.privacy.questions.spread`, publish a_b = Σ_{j in b} v_j +
s Z_b for every stratum b, with independent noise on a grid (Gaussian or Laplace): R v + s Z with
the matrix R whose column of a row is the unit vector of its stratum.

Sums of strata tell where outputs scatter more and where less
(`cloakgp.release.hyperparameters.scatter`), for what one sum over all rows costs.

Neighbours
    One output changes, to any number; everything else is equal. With groups, all outputs of one
    group change. Means, sds and strata are equal: they are functions of public inputs and of
    answers that were published before.
Sensitivity
    v_j lies in [−½, ½] whatever y_j is: that is brought about last, by a clip to two numbers that
    float64 holds, so that no rounding before it, nor overflow, matters. The stratum of a row does
    not depend on its output, and its column of R has norm 1, in ℓ1 as in ℓ2: one output moves one
    sum by at most 1, however many strata there are. A group of n rows moves them by its gauge, at
    most n.
Theorem
    As for `cloakgp.privacy.ask` with bounds (−½, ½), in B dimensions; it composes as one more
    stage: see `cloakgp.privacy.questions.bands`. Whether there are strata, and how many, public
    numbers decide (`cloakgp.fitting.scatter`).
Argument
    Given all earlier answers, means, sds and R are constants, and this is the mechanism of
    `cloakgp.privacy.ask` on numbers in [−½, ½], each a function of one output: μ_t-Gaussian DP or
    ε_t-DP for every value of the earlier answers, which is what adaptive composition asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cloakgp.privacy.questions.base import numbers
from cloakgp.privacy.questions.spread import COUNTED, SpreadQuestion
from cloakgp.utils.arrays import Array

DAMAGED = "its strata are damaged"


def check_strata(centres: Array, units: Array) -> None:
    """Refuse strata that are none.

    Parameters
    ----------
    centres : array of shape (B, D)
    units : array of shape (D,)

    Raises
    ------
    ValueError
        Unless there are several, at finite centres, and units are positive.
    """
    fit = centres.ndim == 2 and len(centres) > 1 and units.shape == centres.shape[1:]
    # Written so that NaN fails.
    if not (fit and np.isfinite(centres).all() and ((units > 0) & (units < np.inf)).all()):
        raise ValueError(DAMAGED)


@dataclass(frozen=True, eq=False)
class ScatterQuestion(SpreadQuestion):
    """How far from its predicted mean the output of every row lies, to be added up by strata.

    0 within an eighth of a predictive sd of its predicted mean, 1 beyond 2, and a quarter more for
    every doubling in between.

    Attributes
    ----------
    mean, sd : arrays of shape (N,)
        Predicted, in output units.
    centres : array of shape (B, D)
        Of strata: a row belongs to the nearest.
    units : array of shape (D,)
        In which distances of inputs are measured.

    Examples
    --------
    >>> question = ScatterQuestion(mean=np.zeros(3), sd=np.ones(3), units=np.ones(1),
    ...                            centres=np.array([[0.0], [1.0]]))
    >>> question.place(np.array([0.1, -0.5, 9.0]))
    array([-0.5,  0. ,  0.5])
    """

    name: ClassVar[str] = "scatter"

    centres: Array
    units: Array

    def validate(self) -> None:
        """Refuse predictions and strata that are none.

        Raises
        ------
        ValueError
            As `SpreadQuestion`, or if there are no several strata.
        """
        super().validate()
        check_strata(self.centres, self.units)

    def check_weights(self, weights: Array) -> None:
        """Refuse to count a row otherwise than once, in one stratum."""
        once = ((weights == 0.0) | (weights == 1.0)).all() and (weights.sum(axis=0) == 1.0).all()
        if len(weights) != len(self.centres) or not once:
            raise ValueError("its arrays do not fit each other")

    def describe_answers(self, count: int, *, noise: Callable[[str], str], output: str) -> str:
        """Say that distances from predicted means were added up by strata."""
        return describe_strata(count, noise=noise, output=output)


def describe_strata(count: int, *, noise: Callable[[str], str], output: str) -> str:
    """Say that distances of outputs from predicted means were added up by strata.

    Parameters
    ----------
    count : int
        B.
    noise, output
        As for `Question.describe_answers`.
    """
    return (
        f"{numbers(count)} about the rows of one of {count} parts of the table with like inputs: "
        f"how far values of {output} lie, in all, from what was predicted of them {COUNTED}, with "
        f"{noise(' rows')}."
    )
