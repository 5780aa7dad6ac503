"""Classifiers side by side on the same draws: accuracy and calibration.

A draw is a training set, the privacy noise on its labels, and a test set. Every method sees the
same draws, so that differences between methods are taken draw by draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakgp.arrays import Array
from cloakgp.experiments.crossvalidation import Tick

CONFIDENCE_BINS = 10


@dataclass(frozen=True, eq=False)
class Task:
    """One draw of labelled rows to learn from and to be judged on.

    Attributes
    ----------
    X : array of shape (N, D)
    y : array of shape (N,)
    X_test : array of shape (P, D)
    y_test : array of shape (P,)
    classes : tuple
        Sorted.
    """

    X: Array
    y: NDArray[Any]
    X_test: Array
    y_test: NDArray[Any]
    classes: tuple[Any, ...] = (False, True)

    @property
    def truths(self) -> NDArray[np.intp]:
        """Positions of the test labels among the classes, shape (P,)."""
        return np.asarray(np.searchsorted(np.array(self.classes), self.y_test), dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Forecast:
    """Probabilities of the classes at the test points, each array of shape (P, C).

    Attributes
    ----------
    integrated : array
        Averaged over what the privacy noise leaves open.
    plugged : array
        With that part of the uncertainty left out.
    """

    integrated: Array
    plugged: Array


# From a draw and its number, which seeds the noise.
Method = Callable[[Task, int], Forecast]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one method said of every draw.

    Attributes
    ----------
    integrated, plugged : array of shape (draws, P, C)
        As in `Forecast`.
    truths : array of shape (draws, P)
        Positions of the true classes.
    """

    integrated: Array
    plugged: Array
    truths: NDArray[np.intp]

    @property
    def hits(self) -> Array:
        """Share of the test points whose most probable class is the true one, shape (draws,)."""
        return np.asarray((self.integrated.argmax(axis=2) == self.truths).mean(axis=1), dtype=float)

    def reliability(self, *, privacy_noise: bool = True) -> Reliability:
        """Return how often the method was right, by how sure it said it was.

        Parameters
        ----------
        privacy_noise : bool
            Whether the probabilities integrate over the privacy noise.
        """
        probabilities = self.integrated if privacy_noise else self.plugged
        right = probabilities.argmax(axis=2) == self.truths
        return Reliability.of(probabilities.max(axis=2), right, classes=probabilities.shape[2])


@dataclass(frozen=True, eq=False)
class Mean:
    """A mean over draws and its standard error."""

    value: float
    error: float

    @classmethod
    def of(cls, values: Array) -> Mean:
        """Average over draws.

        Parameters
        ----------
        values : array of shape (draws,)

        Examples
        --------
        >>> Mean.of(np.array([1.0, 3.0]))
        Mean(value=2.0, error=1.0)
        """
        error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan
        return cls(value=float(values.mean()), error=error)


@dataclass(frozen=True, eq=False)
class Reliability:
    """Stated against observed frequency of being right, in bins of the stated one.

    Attributes
    ----------
    stated, observed : array of shape (bins,)
        Means within each bin that is not empty.
    shares : array of shape (bins,)
        Of all predictions.
    """

    stated: Array
    observed: Array
    shares: Array

    @classmethod
    def of(cls, confidence: Array, right: NDArray[np.bool_], *, classes: int) -> Reliability:
        """Bin predictions by the probability given to the predicted class.

        Parameters
        ----------
        confidence : array
        right : array of bool, of the same shape
        classes : int
            C: no confidence is below 1/C.

        Examples
        --------
        >>> found = Reliability.of(np.array([0.9, 0.9]), np.array([True, False]), classes=2)
        >>> found.stated, found.observed
        (array([0.9]), array([0.5]))
        """
        confidence, right = confidence.ravel(), right.ravel()
        edges = np.linspace(1.0 / classes, 1.0, CONFIDENCE_BINS + 1)
        places = np.clip(np.searchsorted(edges, confidence) - 1, 0, CONFIDENCE_BINS - 1)
        counts = np.bincount(places, minlength=CONFIDENCE_BINS)
        filled = counts > 0
        return cls(
            stated=np.bincount(places, confidence, CONFIDENCE_BINS)[filled] / counts[filled],
            observed=np.bincount(places, right, CONFIDENCE_BINS)[filled] / counts[filled],
            shares=counts[filled] / len(places),
        )

    @property
    def error(self) -> float:
        """Expected calibration error (Guo, Pleiss, Sun and Weinberger 2017, equation 3)."""
        return float(self.shares @ np.abs(self.observed - self.stated))


def compare(
    tasks: Iterable[Task], methods: Mapping[str, Method], *, tick: Tick = lambda: None
) -> dict[str, Outcome]:
    """Put methods to the same draws.

    Parameters
    ----------
    tasks : iterable of Task
        With equally many test points each.
    methods : mapping of name to Method
    tick : callable, optional
        Called after every draw.
    """
    said: dict[str, list[Forecast]] = {name: [] for name in methods}
    truths = []
    for number, task in enumerate(tasks):
        truths.append(task.truths)
        for name, method in methods.items():
            said[name].append(method(task, number))
        tick()
    return {
        name: Outcome(
            integrated=np.array([one.integrated for one in forecasts]),
            plugged=np.array([one.plugged for one in forecasts]),
            truths=np.array(truths),
        )
        for name, forecasts in said.items()
    }
