"""Classifiers to compare: without privacy, the papers' noisy Newton steps, and this package's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.arrays import Array
from cloakgp.choices import choose_label_prior
from cloakgp.classification import DPGPClassifier
from cloakgp.design import CriterionName, design_strategy
from cloakgp.experiments.classes import Forecast, Method, Task
from cloakgp.privacy.guarantee import Calibration
from cloakgp.privacy.labels import Classes, measure_labels
from cloakgp.release import Budget, Questions
from cloakgp.release.label_measurement import LabelMeasurement
from cloakgp.release.label_release import LabelRelease
from cloakgp.release.papers_laplace import NewtonState

Places = Literal["rows", "test"]

# The papers' budget for all of section 6 (2021).
BUDGET = Budget(epsilon=1.0, delta=0.01)
# Seeds of the second step's noise lie this far from the first's.
STEP_SEED = 100_000


def without_privacy(kernel: Kernel) -> Method:
    """Return scikit-learn's classifier with the same fixed kernel: Laplace's, logistic link.

    Parameters
    ----------
    kernel : Kernel
    """

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
    kernel : Kernel, optional
    places : {"rows", "test"}
        Where predictions matter most: at the training inputs, the default, or at the test inputs,
        where these are public too.
    budget : Budget
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

    Parameters
    ----------
    method : Method
    """

    def narrowed(task: Task, number: int) -> Forecast:
        kept = np.ptp(task.X, axis=0) > 0
        return method(replace(task, X=task.X[:, kept], X_test=task.X_test[:, kept]), number)

    return narrowed


def forecast(release: LabelRelease, X: Array) -> Forecast:
    """Return what a release says at some points, with and without its noise integrated.

    Parameters
    ----------
    release : LabelRelease
    X : array of shape (P, D)
    """
    return Forecast(
        integrated=release.predict_proba(X),
        plugged=release.predict_proba(X, privacy_noise=False),
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
    kernel : Kernel
    steps : int
        Newton steps, each with an equal part of ε and of δ.
    calibration : {"papers", "exact"}
        Of the noise.
    inducing : int, optional
        Inducing inputs of the SoR approximation, by k-means.
    budget : Budget
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
) -> LabelRelease:
    """Publish noisy Newton steps, with the papers' noise if wanted.

    As `DPGPClassifier(mechanism="laplace")`, which takes the exact calibration and splits budgets
    by μ². The design is the log-det optimum, which the authors' descent does not reach.

    Parameters
    ----------
    X : array of shape (N, D)
    y : array of shape (N,)
        Private labels, False or True; touched by `cloakgp.privacy.labels.measure_labels` alone.
    kernel : Kernel
    budgets : sequence of Budget
        One per step: ε and δ add up.
    calibration : {"papers", "exact"}
    inducing : int, optional
    criterion : {"logdet", "trace"}
    insecure_seed : int, optional
    """
    classes = Classes((False, True))
    prior = choose_label_prior(
        X, classes=classes, kernel=kernel, link_name="logit", inducing=inducing, approximation="sor"
    )
    state, measurements = NewtonState.start(prior, X), []
    for number, budget in enumerate(budgets):
        design = design_strategy(state.cloaking_matrix(), criterion=criterion)
        answers = measure_labels(
            design.strategy,
            y,
            classes=classes,
            epsilon=budget.epsilon,
            delta=budget.delta,
            calibration=calibration,
            insecure_seed=None if insecure_seed is None else insecure_seed + STEP_SEED * number,
        )
        questions = Questions(
            X=X,
            strategy=design.strategy,
            X_query=X,
            reconstruction=design.reconstruction,
            certificate=design.certificate,
        )
        measurements.append(LabelMeasurement(questions=questions, answers=answers))
        state = state.stepped(measurements[-1])
    return LabelRelease(prior=prior, measurements=tuple(measurements), rule="laplace")
