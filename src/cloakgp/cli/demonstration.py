"""Demonstration on scikit-learn's diabetes data: disease progression from public inputs.

The release that is kept spends its budget once. Besides it, the noise is drawn again and again on
the same people, to show how far results scatter: a demonstration on data that is no secret. Do not
do that with private data, where every draw would have to be paid for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process import GaussianProcessRegressor

from cloakgp.estimators.regression import DPGPRegressor
from cloakgp.plots.figures import new_figure, write_title
from cloakgp.plots.prediction import PredictionDisplay
from cloakgp.plots.themes import LIGHT
from cloakgp.privacy import OutputBounds, ask
from cloakgp.release import DenseStrategy, Release
from cloakgp.report.describe import headline
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra

with extra("plots"):
    from matplotlib.figure import Figure

COLUMNS = {"age (years)": "age", "body mass index (kg/m²)": "bmi", "blood pressure (mmHg)": "bp"}
INPUTS = tuple(COLUMNS)
OUTPUT = "progression"
# Decided before looking: the score cannot be negative, and 350 is a round ceiling. The range of the
# data would be tighter, and a leak.
BOUNDS = OutputBounds(lo=0.0, hi=350.0)
EPSILON, DELTA = 1.0, 1e-3
TEST_SHARE = 0.2
SPLIT_SEED = 0
REPETITIONS = 12

OnStep = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class People:
    """Patients, split at random into those released about and those predicted.

    Attributes
    ----------
    X, X_test : arrays of shape (n, 3)
        Age in years, body mass index in kg/m², mean blood pressure in mmHg.
    y, y_test : arrays of shape (n,)
        The score, as if it were private; never shown.
    """

    X: Array
    X_test: Array
    y: Array = field(repr=False)
    y_test: Array = field(repr=False)


@dataclass(frozen=True, eq=False)
class Trial:
    """One way to release, with and without privacy.

    Attributes
    ----------
    name : str
    release : Release
        Drawn once, with secret noise.
    private_rmse : array of shape (REPETITIONS,)
        On the test patients, in output units; one for each draw of the noise.
    rmse : float
        Of the same Gaussian process without noise.
    """

    name: str
    release: Release
    private_rmse: Array
    rmse: float


@dataclass(frozen=True, eq=False)
class Demonstration:
    """The results of the demonstration.

    Attributes
    ----------
    people : People
    trials : tuple of Trial
        The last one is kept.
    middle_rmse : float
        Of predicting the middle of the bounds, which needs no data.
    output_sd : float
        Of the test patients' scores: the error of a prediction by their mean.
    """

    people: People
    trials: tuple[Trial, ...]
    middle_rmse: float
    output_sd: float

    @property
    def kept(self) -> Trial:
        """The trial whose release is written."""
        return self.trials[-1]


def load_people() -> People:
    """Return the patients of scikit-learn's diabetes table, split by a public seed.

    Examples
    --------
    >>> people = load_people()
    >>> people.X.shape, people.X_test.shape
    ((354, 3), (88, 3))
    """
    table = load_diabetes(scaled=False)
    columns = [table.feature_names.index(name) for name in COLUMNS.values()]
    X = np.asarray(table.data[:, columns], dtype=np.float64)
    y = np.asarray(table.target, dtype=np.float64)
    order = np.random.default_rng(SPLIT_SEED).permutation(len(X))
    held_out = round(TEST_SHARE * len(X))
    test, train = order[:held_out], order[held_out:]
    return People(X=X[train], X_test=X[test], y=y[train], y_test=y[test])


def demonstrate(
    people: People, *, repetitions: int = REPETITIONS, on_step: OnStep | None = None
) -> Demonstration:
    """Release about some patients, and predict the others.

    Parameters
    ----------
    people : People
    repetitions : int
        Draws of the noise to compare.
    on_step : callable, optional
        Called with what happens next.
    """
    fitted = partial(_fitted, people)
    ways: dict[str, Callable[[], Release]] = {
        "least noise on raw predictions": partial(
            fitted, criterion="trace", learn=None, noise="gaussian"
        ),
        "sharpest predictions, at once": partial(
            fitted, stages=None, interval=False, noise="gaussian"
        ),
        "untouched defaults": fitted,
    }
    trials = []
    for name, release in ways.items():
        if on_step is not None:
            on_step(name)
        trials.append(_trial(people, name=name, fitted=release, repetitions=repetitions))
    middle = np.full(len(people.y_test), BOUNDS.middle)
    return Demonstration(
        people=people,
        trials=tuple(trials),
        middle_rmse=_rmse(middle, people),
        output_sd=float(people.y_test.std()),
    )


def draw(demonstration: Demonstration) -> Figure:
    """Draw the kept release: a map over BMI and blood pressure, and a curve over BMI.

    The curve without privacy is added for comparison. It could not be published.
    """
    release = demonstration.kept.release
    figure = new_figure(width=13.0, height=5.4)
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1.0))
    _, across, up = INPUTS
    PredictionDisplay.from_release(release, vary=(across, up), ax=left)
    display = PredictionDisplay.of(release, vary=(across,))
    piece = display.parts[0].piece
    right.plot(
        piece.grids[0],
        _without_privacy(release, demonstration.people, piece.rows),
        color=LIGHT.ink,
        linewidth=1.6,
        linestyle=":",
        zorder=3,
        label="without privacy",
    )
    display.plot(right)
    write_title(figure, f"Diabetes progression, {headline(release)}")
    return figure


def _fitted(people: People, **chosen: Any) -> Release:
    columns = pd.DataFrame(people.X, columns=INPUTS)
    outputs = pd.Series(people.y, name=OUTPUT)
    model = DPGPRegressor(bounds=(BOUNDS.lo, BOUNDS.hi), epsilon=EPSILON, delta=DELTA, **chosen)
    return model.fit(columns, outputs).release_


def _trial(people: People, *, name: str, fitted: Callable[[], Release], repetitions: int) -> Trial:
    release = fitted()
    errors = []
    for _ in range(repetitions):
        # Later stages depend on the answers to earlier ones: only one stage can be asked again.
        several = len(release.measurements) > 1
        again = fitted() if several else _ask_again(release, people)
        errors.append(_rmse(again.predict(people.X_test), people))
    return Trial(
        name=name,
        release=release,
        private_rmse=np.array(errors),
        rmse=_rmse(_without_privacy(release, people, people.X_test), people),
    )


def _ask_again(release: Release, people: People) -> Release:
    """Ask the same questions of the same people with fresh noise: the design is reused."""
    (measurement,) = release.measurements
    assert isinstance(measurement.strategy, DenseStrategy)
    answers = ask(
        measurement.strategy.matrix, people.y, question=BOUNDS, epsilon=EPSILON, delta=DELTA
    )
    again = replace(release, measurements=(replace(measurement, answers=answers),))
    return again if release.hyperprior is None else again.learn(release.hyperprior)


def _without_privacy(release: Release, people: People, X: Array) -> Array:
    """Return the predictions of scikit-learn's Gaussian process with the same prior."""
    prior = release.prior
    model = GaussianProcessRegressor(prior.kernel, alpha=prior.noise_variance, optimizer=None)
    predictions: Array = prior.mean + model.fit(people.X, people.y - prior.mean).predict(X)
    return predictions


def _rmse(predictions: Array, people: People) -> float:
    return float(np.sqrt(np.mean(np.square(predictions - people.y_test))))
