"""Cloaking matrices on which solvers are compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp.design.numerical_range import NumericalRange, numerical_range
from cloakgp.models import ExactPrior
from cloakgp.utils.arrays import Array
from experiments import kung
from experiments.datasets import load_kung

AGES = (0.0, 90.0)
# Of the !Kung women: signal to noise variance, and lengthscale as a share of the inputs' range.
SIGNAL_VARIANCE, NOISE_VARIANCE = 10.0, 25.0
LENGTHSCALES = {1: 0.17, 4: 0.5}
PREDICTIONS = (100, 200)
SIZES = (1000, 3000, 5000)
SEED = 20210401


@dataclass(frozen=True)
class Problem:
    """A cloaking matrix with a name.

    Attributes
    ----------
    family : str
        Problems of one family differ in size alone.
    C : array of shape (P, N)
    papers : bool
        Whether it is one of the papers' own, or synthetic.
    """

    family: str
    C: Array
    papers: bool = False

    @property
    def name(self) -> str:
        """Family and size."""
        predictions, rows = self.C.shape
        return f"{self.family}, N={rows}, P={predictions}"

    @cached_property
    def span(self) -> NumericalRange:
        """The directions in which C acts."""
        return numerical_range(self.C)


def kung_problem(predictions: int) -> Problem:
    """Return C of heights by age of the 287 !Kung women, at equally spaced ages.

    Parameters
    ----------
    predictions : int
        P.
    """
    setting = kung.TABLE_1[0]
    X = setting.rows(load_kung(male=False))
    points = np.linspace(*AGES, predictions)[:, None]
    C = setting.prior_for(X).cloaking_matrix(points, X)
    return Problem(family="!Kung age", C=C, papers=True)


def synthetic_problem(rows: int, predictions: int, *, inputs: int) -> Problem:
    """Return C of rows and query points drawn uniformly from the unit cube.

    Parameters
    ----------
    rows, predictions : int
        N and P.
    inputs : int
        D, 1 or 4.

    Examples
    --------
    >>> synthetic_problem(30, 5, inputs=4).C.shape
    (5, 30)
    """
    rng = np.random.default_rng(SEED)
    X, points = rng.uniform(size=(rows, inputs)), rng.uniform(size=(predictions, inputs))
    prior = ExactPrior(
        kernel=ConstantKernel(SIGNAL_VARIANCE) * RBF(LENGTHSCALES[inputs]),
        noise_variance=NOISE_VARIANCE,
        mean=0.0,
    )
    C = prior.cloaking_matrix(points, X)
    return Problem(family=f"{inputs}-d", C=C)


def all_problems(*, small: bool = False) -> Iterator[Problem]:
    """Yield the problems, one at a time.

    Parameters
    ----------
    small : bool
        Two tiny ones that need no table.
    """
    if small:
        for inputs in (1, 4):
            yield synthetic_problem(60, 10, inputs=inputs)
        return
    for predictions in PREDICTIONS:
        yield kung_problem(predictions)
    for inputs in (1, 4):
        for rows in SIZES:
            for predictions in PREDICTIONS:
                yield synthetic_problem(rows, predictions, inputs=inputs)
