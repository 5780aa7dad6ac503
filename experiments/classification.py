"""Classifiers side by side on the same draws: methods, accuracies and calibration.

A draw is a training set, the privacy noise on its labels, and a test set. Every method sees the
same draws, so that differences between methods are taken draw by draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.table import Table
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.design import CriterionName, design_strategy
from cloakgp.estimators.classification import DPGPClassifier
from cloakgp.fitting.defaults import choose_label_prior
from cloakgp.fitting.strategies import Budget
from cloakgp.privacy.accounting import Calibration
from cloakgp.privacy.ask import ask
from cloakgp.privacy.questions.classes import Classes
from cloakgp.release import DenseStrategy, Measurement, Release
from cloakgp.release.posterior.laplace import NewtonState
from cloakgp.utils.arrays import Array
from experiments.figures import BLUE, GREY, RED
from experiments.framework import Tick, no_tick, table_titled
from experiments.spread import standard_error

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
    """A mean over draws and its standard error, None where there are too few draws to tell."""

    value: float
    error: float | None

    @classmethod
    def of(cls, values: Array) -> Mean:
        """Average over draws.

        Parameters
        ----------
        values : array of shape (draws,)

        Examples
        --------
        >>> Mean.of(np.array([1.0, 3.0]))
        Mean(value=2.0, error=None)
        """
        return cls(value=float(values.mean()), error=standard_error(values))


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
    tasks: Iterable[Task], methods: Mapping[str, Method], *, tick: Tick = no_tick
) -> dict[str, Outcome]:
    """Put methods to the same draws.

    Parameters
    ----------
    tasks : iterable of Task
        With equally many test points each.
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
            integrated=np.array([forecast.integrated for forecast in forecasts]),
            plugged=np.array([forecast.plugged for forecast in forecasts]),
            truths=np.array(truths),
        )
        for name, forecasts in said.items()
    }


Places = Literal["rows", "test"]

# The papers' budget for all of section 6 (2021).
BUDGET = Budget(epsilon=1.0, delta=0.01)
# Seeds of the second step's noise lie this far from the first's.
STEP_SEED = 100_000


def without_privacy(kernel: Kernel) -> Method:
    """Return scikit-learn's classifier with the same fixed kernel: Laplace's, logistic link."""

    def method(task: Task, _number: int) -> Forecast:
        model = GaussianProcessClassifier(kernel, optimizer=None).fit(task.X, task.y)
        probabilities = np.asarray(model.predict_proba(task.X_test), dtype=np.float64)
        return Forecast(integrated=probabilities, plugged=probabilities)

    return method


def ours(
    kernel: Kernel | None = None,
    *,
    places: Places = "rows",
    budget: Budget = BUDGET,
    **parameters: Any,
) -> Method:
    """Return `DPGPClassifier` as a method.

    Parameters
    ----------
    places : {"rows", "test"}
        Where predictions matter most: at the training inputs, the default, or at the test inputs,
        where these are public too.
    **parameters
        Of `DPGPClassifier`.
    """

    def method(task: Task, number: int) -> Forecast:
        model = DPGPClassifier(
            kernel,
            classes=task.classes,
            epsilon=budget.epsilon,
            delta=budget.delta,
            # Every Newton step takes a seed of its own, from here on.
            insecure_seed=number * parameters.get("steps", 1),
            **parameters,
        )
        model.fit(task.X, task.y, X_query=task.X_test if places == "test" else None)
        return forecast(model.release_, task.X_test)

    return method


def varying(method: Method) -> Method:
    """Return a method that sees only those inputs that vary over the rows to learn from.

    The default prior takes its lengthscales from the inputs' ranges, and refuses a range of zero.
    """

    def narrowed(task: Task, number: int) -> Forecast:
        kept = np.ptp(task.X, axis=0) > 0
        return method(replace(task, X=task.X[:, kept], X_test=task.X_test[:, kept]), number)

    return narrowed


def forecast(release: Release, X: Array) -> Forecast:
    """Return what a release says at some points, with and without its noise integrated.

    Parameters
    ----------
    X : array of shape (P, D)
    """
    return Forecast(
        integrated=release.predict_proba(X), plugged=release.predict_proba(X, privacy_noise=False)
    )


def papers_method(
    kernel: Kernel,
    *,
    steps: int = 1,
    calibration: Calibration = "papers",
    inducing: int | None = None,
    budget: Budget = BUDGET,
) -> Method:
    """Return the papers' mechanism (2021 paper, section 4), from f̂ = 0.

    Parameters
    ----------
    steps : int
        Newton steps, each with an equal part of ε and of δ.
    calibration : {"papers", "exact"}
        Of the noise.
    inducing : int, optional
        Inducing inputs of the SoR approximation, by k-means.
    """
    each = Budget(epsilon=budget.epsilon / steps, delta=budget.delta / steps)

    def method(task: Task, number: int) -> Forecast:
        release = papers_release(
            task.X,
            task.y,
            kernel=kernel,
            budgets=(each,) * steps,
            calibration=calibration,
            inducing=inducing,
            insecure_seed=number,
        )
        return forecast(release, task.X_test)

    return method


def papers_release(
    X: Array,
    y: NDArray[Any],
    *,
    kernel: Kernel,
    budgets: Sequence[Budget],
    calibration: Calibration = "papers",
    inducing: int | None = None,
    criterion: CriterionName = "logdet",
    insecure_seed: int | None = None,
) -> Release:
    """Publish noisy Newton steps, with the papers' noise if wanted.

    As `DPGPClassifier(criterion="newton")`, which takes the exact calibration and splits budgets
    by μ². The design is the log-det optimum, which the authors' descent does not reach.

    Parameters
    ----------
    X : array of shape (N, D)
    y : array of shape (N,)
        Private labels, False or True; touched by `cloakgp.privacy.ask` alone.
    budgets : sequence of Budget
        One per step: ε and δ add up.
    """
    classes = Classes((False, True))
    prior, likelihood = choose_label_prior(
        X, classes=classes, kernel=kernel, link_name="logit", inducing=inducing, approximation="sor"
    )
    state, measurements = NewtonState.start(prior, likelihood, X), []
    for number, budget in enumerate(budgets):
        design = design_strategy(state.cloaking_matrix(), criterion=criterion)
        answers = ask(
            design.strategy,
            y,
            question=classes,
            epsilon=budget.epsilon,
            delta=budget.delta,
            calibration=calibration,
            insecure_seed=None if insecure_seed is None else insecure_seed + STEP_SEED * number,
        )
        strategy = DenseStrategy(
            X=X,
            matrix=design.strategy,
            X_query=X,
            reconstruction=design.reconstruction,
            certificate=design.certificate,
        )
        measurements.append(Measurement(strategy=strategy, question=classes, answers=answers))
        state = state.step(measurements[-1])
    return Release(
        prior=prior,
        likelihood=likelihood,
        measurements=tuple(measurements),
        inference="newton",
    )


def accuracy_report(
    found: Mapping[str, Outcome],
    *,
    title: str,
    published: Mapping[str, float] | None = None,
    against: str | None = None,
    calibration: Mapping[str, Outcome] | None = None,
) -> Table:
    """Lay out accuracies and calibration errors, published figures beside ours.

    Parameters
    ----------
    published : mapping of method to float, optional
        Accuracies in the paper.
    against : str, optional
        The papers' method, which others are compared with, draw by draw.
    calibration : mapping of method to Outcome, optional
        To judge the probabilities by, if not by what accuracies are judged by.
    """
    columns = ["published"] if published else []
    columns += ["accuracy, %"]
    columns += ["less papers'"] if against else []
    table = table_titled(title, "method", right=[*columns, "ECE, %", "left out, %"])
    for name, outcome in found.items():
        cells = []
        if published:
            cells.append(f"{100 * published[name]:.0f}" if name in published else "")
        cells.append(percent(Mean.of(outcome.hits)))
        if against:
            ahead = Mean.of(outcome.hits - found[against].hits)
            cells.append("" if name == against else percent(ahead, sign="+"))
        cells += [
            f"{100 * (calibration or found)[name].reliability(privacy_noise=integrated).error:.1f}"
            for integrated in (True, False)
        ]
        table.add_row(name, *cells)
    return table


def percent(mean: Mean, *, sign: str = "") -> str:
    """Return a share in per cent, with its standard error.

    Parameters
    ----------
    sign : {"", "+"}
        Whether a plus is shown.

    Examples
    --------
    >>> percent(Mean(value=0.5, error=0.01))
    '50.0 ± 1.0'
    """
    shown = f"{100 * mean.value:{sign}.1f}"
    return shown if mean.error is None else f"{shown} ± {100 * mean.error:.1f}"


def reliability_figure(found: Mapping[str, Outcome], *, title: str) -> Figure:
    """Draw how often each method was right by how sure it said it was."""
    figure = Figure(figsize=(4.4 * len(found), 4.9), layout="constrained")
    grid = figure.subplots(1, len(found), sharex=True, sharey=True, squeeze=False)[0]
    for axes, (name, outcome) in zip(grid, found.items(), strict=True):
        ways = ((True, BLUE, "o-", "privacy noise integrated"), (False, RED, "s--", "left out"))
        for integrated, colour, style, word in ways:
            curve = outcome.reliability(privacy_noise=integrated)
            axes.plot(
                curve.stated,
                curve.observed,
                style,
                color=colour,
                markersize=5,
                label=f"{word}: error {100 * curve.error:.1f} %",
            )
        axes.plot([0, 1], [0, 1], color=GREY, linewidth=1.0)
        axes.set_xlim(0.49, 1.01)
        axes.set_ylim(0.4, 1.02)
        axes.set_title(name, fontsize=10)
        axes.set_xlabel("probability given to the predicted class")
        axes.legend(fontsize=9, frameon=False, loc="lower right")
        axes.grid(alpha=0.25)
    grid[0].set_ylabel("share that was right")
    figure.suptitle(title, fontsize=12)
    return figure


ACCURACIES = (
    "± standard error over draws. ECE: expected calibration error, ten bins, with privacy noise "
    "integrated and left out."
)
