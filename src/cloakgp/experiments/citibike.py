"""Citi Bike: how long a trip takes, from where it starts and ends; table 1 of the 2018 paper.

Stated: 5000 trips drawn for each of 30 folds, 4900 to train and 100 to test; latitude and longitude
of both stations in degrees; durations thresholded at 2000 s, also where errors are measured; δ =
0.01; an RBF kernel with variance 1581² s² and noise variance 1605² s². A duration cannot be below
zero, so d = 2000 s. Not stated: the prior mean (here the middle of the bounds, in place of the mean
of the durations, which leaks), the grid of the bins (here the box of all stations), and the kernel
behind the integral binning (here the lengthscale of 0.05° that stands beside the variances).

The paper's trips are of June 2016. Here they are of four days in June 2017, so that its column
without privacy is not ours either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel

from cloakgp.arrays import Array
from cloakgp.experiments.cloaked import Budget
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.integral import IntegralRBF
from cloakgp.privacy import OutputBounds

INPUTS = ["start_lat", "start_lon", "end_lat", "end_lon"]
BOUNDS = OutputBounds(0.0, 2000.0)
EPSILONS = (1.0, 0.5, 0.2)
DELTA = 0.01
LENGTHSCALES = (0.781, 0.312, 0.125, 0.05, 0.02)
BINS = (10, 6, 3)
SIGNAL_VARIANCE, NOISE_VARIANCE = 1581.0**2, 1605.0**2
INTEGRAL_LENGTHSCALE = 0.05
FOLDS = 30
TRAINING, HELD_OUT = 4900, 100


@dataclass(frozen=True, eq=False)
class Fold:
    """Trips to learn from, and trips to predict.

    Attributes
    ----------
    X : array of shape (N, 4)
        Degrees.
    y : array of shape (N,)
        Durations in seconds, as recorded.
    X_query : array of shape (P, 4)
    truth : array of shape (P,)
        Durations of those, clipped to the bounds.
    """

    X: Array
    y: Array
    X_query: Array
    truth: Array


@dataclass(frozen=True, eq=False)
class Trips:
    """All trips, to draw folds from.

    Attributes
    ----------
    X : array of shape (N, 4)
    durations : array of shape (N,)
        In seconds.
    """

    X: Array
    durations: Array

    @classmethod
    def of(cls, table: pd.DataFrame) -> Trips:
        """Take the columns that are needed from ``load_citibike()``."""
        return cls(
            X=table[INPUTS].to_numpy(dtype=float),
            durations=table["tripduration"].to_numpy(dtype=float),
        )

    @property
    def box(self) -> list[tuple[float, float]]:
        """The range of each input over all trips."""
        lowest, highest = self.X.min(axis=0).tolist(), self.X.max(axis=0).tolist()
        return list(zip(lowest, highest, strict=True))

    def folds(
        self, count: int, *, training: int = TRAINING, held_out: int = HELD_OUT
    ) -> Iterator[Fold]:
        """Draw Monte-Carlo folds; the same ones every time.

        Parameters
        ----------
        count : int
        training, held_out : int
            Trips of each fold, drawn without replacement.

        Examples
        --------
        >>> trips = Trips(X=np.zeros((9, 4)), durations=np.arange(9.0))
        >>> [len(fold.y) for fold in trips.folds(2, training=6, held_out=2)]
        [6, 6]
        """
        for number in range(count):
            dealt = np.random.default_rng(number).permutation(len(self.X))
            train, test = dealt[:training], dealt[training : training + held_out]
            yield Fold(
                X=self.X[train],
                y=self.durations[train],
                X_query=self.X[test],
                truth=BOUNDS.clip(self.durations[test]),
            )


def budget(epsilon: float) -> Budget:
    """Return what a release may spend."""
    return Budget(bounds=BOUNDS, epsilon=epsilon, delta=DELTA)


def exact_prior(lengthscale: float) -> ExactPrior:
    """Return the paper's prior.

    Examples
    --------
    >>> exact_prior(0.125).kernel
    1.58e+03**2 * RBF(length_scale=0.125)
    """
    return ExactPrior(
        kernel=_kernel(lengthscale), noise_variance=NOISE_VARIANCE, mean=BOUNDS.middle
    )


def sparse_prior(lengthscale: float, *, inducing: Array) -> SparsePrior:
    """Return the same prior seen through inducing inputs (FITC).

    Parameters
    ----------
    lengthscale : float
        In degrees.
    inducing : array of shape (M, 4)
        Chosen from public inputs.
    """
    return SparsePrior(
        kernel=_kernel(lengthscale),
        noise_variance=NOISE_VARIANCE,
        mean=BOUNDS.middle,
        inducing=inducing,
    )


def integral_prior() -> ExactPrior:
    """Return the prior over boxes that is fitted to bins."""
    return ExactPrior(
        kernel=ConstantKernel(SIGNAL_VARIANCE) * IntegralRBF(INTEGRAL_LENGTHSCALE),
        noise_variance=NOISE_VARIANCE,
        mean=BOUNDS.middle,
    )


def _kernel(lengthscale: float) -> Kernel:
    return ConstantKernel(SIGNAL_VARIANCE) * RBF(lengthscale)
