"""Regression and classification that protect inputs too."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.gaussian_process.kernels import CompoundKernel, Kernel
from sklearn.utils.validation import check_is_fitted, validate_data

from cloakgp.estimators.base import (
    DistributionMixin,
    PosteriorMixin,
    ReleaseMixin,
    column_name,
    warn_of_repetition,
)
from cloakgp.estimators.sample_weight import without_sample_weight
from cloakgp.fitting.rows_plan import RowsPlan, plan_rows
from cloakgp.fitting.whole_rows import default_features, release_whole_rows
from cloakgp.models import default_noise_variance
from cloakgp.models.cosines import MOST_FEATURES as MOST_COSINES
from cloakgp.models.cosines import CosineBasis
from cloakgp.models.features import EigenBasis, InputBox
from cloakgp.privacy import Guarantee, OutputBounds
from cloakgp.privacy.budgets import check_budget
from cloakgp.privacy.checks import warn_of_parameters
from cloakgp.privacy.inputs import checked_private_inputs
from cloakgp.privacy.questions.classes import Classes
from cloakgp.privacy.statistics import Neighbours, check_neighbours, measure_statistics
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release.provenance import Provenance
from cloakgp.release.statistics import StatisticsRelease
from cloakgp.utils.arrays import Array

FEATURES_PER_INPUT, MOST_FEATURES = 12, 36


class PrivateInputsMixin(ReleaseMixin[Guarantee], BaseEstimator):
    """An estimator of whole rows: it checks what no message may quote, and asks them once."""

    input_bounds: object
    epsilon: float
    delta: float
    neighbours: Neighbours
    release_: StatisticsRelease

    @forget_on_failure
    @without_sample_weight
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Spend the budget once. Every call spends (ε, δ) anew about the same people.

        Parameters
        ----------
        X : array-like of shape (N, D)
            Private inputs.
        y : array-like of shape (N,)
            Private outputs, or labels.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For invalid arguments; no message quotes an input or an output.
        """
        warn_of_repetition()
        inputs = self._checked(X, reset=True)
        check_budget(self.epsilon, self.delta)
        release = self._ask(inputs, y)
        self.release_ = replace(
            release,
            input_names=self._names(),
            output_name=column_name(y),
            provenance=Provenance.of_values(release.statistics.moments),
        )
        return self

    def plan(
        self,
        n_rows: int,
        *,
        n_inputs: int | None = None,
        epsilons: Sequence[float] | None = None,
    ) -> RowsPlan:
        """Plan a release: questions, noise, and the error to expect; nothing is read or spent.

        Parameters
        ----------
        n_rows : int
            How many there are. Where ``neighbours="add-remove"`` that is private: give a round
            number that is known without the table.
        n_inputs : int, optional
            D, where `input_bounds` is a single pair for all inputs.
        epsilons : sequence of float, optional
            Other budgets to forecast, at the declared δ; some around the declared ε if not given.

        Returns
        -------
        RowsPlan
            Print it.

        Raises
        ------
        ValueError
            For what `fit` would refuse without looking at rows, or a declared kernel, of which
            there is no forecast.

        Examples
        --------
        >>> from cloakgp import DPGPRegressorPrivateInputs
        >>> model = DPGPRegressorPrivateInputs(
        ...     input_bounds=[(0, 100), (0, 1)], bounds=(40, 200), epsilon=1.0, delta=1e-6
        ... )
        >>> print(model.plan(1000, epsilons=[3.0]))  # doctest: +ELLIPSIS
        expected error: predictions of the average of people with the same inputs are typically ...
        """
        if isinstance(n_rows, bool) or not isinstance(n_rows, int | np.integer) or n_rows < 1:
            raise ValueError(f"n_rows must be a whole number of at least 1, got {n_rows!r}")
        for epsilon in (self.epsilon, *(epsilons or ())):
            check_budget(epsilon, self.delta)
        check_neighbours(self.neighbours)
        box = InputBox.checked(self.input_bounds, n_inputs=n_inputs)
        features, classes = self._planned(box)
        return plan_rows(
            rows=int(n_rows),
            inputs=box.n_inputs,
            features=features,
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            neighbours=self.neighbours,
            classes=classes,
            epsilons=epsilons,
        )

    @abstractmethod
    def _planned(self, box: InputBox) -> tuple[int, int | None]:
        """Check what is declared; return how many features there are, and how many classes."""

    @abstractmethod
    def _ask(self, X: Array, y: ArrayLike) -> StatisticsRelease:
        """Ask the rows, and return what is published."""

    def _box(self, X: Array) -> InputBox:
        return InputBox.checked(self.input_bounds, n_inputs=X.shape[1])

    def _warn(self, X: Array, box: InputBox, *, bounds: tuple[tuple[float, float], ...]) -> None:
        warn_of_parameters(
            epsilon=self.epsilon,
            delta=self.delta,
            rows=len(X) if self.neighbours == "replace" else None,
            bounds=bounds,
            input_bounds=list(zip(box.lo, box.hi, strict=True)),
        )

    def _points(self, X: ArrayLike) -> Array:
        check_is_fitted(self)
        return self._checked(X, reset=False)

    def _checked(self, X: ArrayLike, *, reset: bool) -> Array:
        # scikit-learn's own check of the values would quote them; its check of names and number of
        # columns does not.
        inputs = checked_private_inputs(X)
        validate_data(self, X, reset=reset, skip_check_array=True)
        return inputs


class DPGPRegressorPrivateInputs(
    PrivateInputsMixin,
    PosteriorMixin[Guarantee],
    DistributionMixin[Guarantee],
    RegressorMixin,
    BaseEstimator,
):
    r"""Gaussian-process regression that protects each row: inputs and output together.

    `fit` publishes noisy counts of every column, then noisy sums over features that these counts
    chose, of outputs first and then of what is left of them, in ever narrower bands: together under
    (ε, δ)-differential privacy of a whole row. `predict` is free. Where inputs are public,
    `DPGPRegressor` is more accurate.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel, optional
        Covariance of the latent function, in squared output units: then sums over its
        eigenfunctions on the box are published, once. If not given, effects of single inputs and
        of pairs of them are thought to be smooth over the share of rows below an input
        (`cloakgp.models.cosines`), and asked in rounds, which is more accurate.
    noise_variance : float, optional
        Of each output, in squared output units. If not given: from the residuals that are left;
        of a declared kernel, the square of a tenth of the width.
    input_bounds : sequence of (float, float)
        Public range of each input; or a single pair, for all of them. Inputs outside are clipped,
        silently, in `fit` and `predict`.
    bounds : (float, float)
        Public range of one output. Outputs outside are clipped, silently.
    epsilon, delta : float
        The budget of one `fit`.
    neighbours : {"replace", "add-remove"}
        What is protected: any change of one row, with the number of rows public; or the presence of
        one row, with the number of rows private. The same (ε, δ) is up to twice as strong a promise
        under "replace".
    n_features : int, optional
        M, the most features; more say more and cost more noise. If not given: 40, or one for each
        input and the mean, at most 200; of a declared kernel 12 eigenfunctions per input, at most
        36.
    insecure_seed : int, optional
        Makes the noise reproducible and the release **not private**. For experiments only.

    Attributes
    ----------
    release_ : StatisticsRelease
        The public result: save it, predict from it.
    guarantee_ : Guarantee
        What it cost: of one row, input and output, for the stated neighbours.
    n_features_in_ : int
    feature_names_in_ : array of str
        If X had column names, which are taken to be public.

    Notes
    -----
    Mechanisms: `cloakgp.privacy.column_counts`, `cloakgp.privacy.statistics` and
    `cloakgp.privacy.residuals`, where neighbours, sensitivity, proof and theorem are stated. The
    questions are chosen from the box, the bounds, the parameters and earlier noisy answers: never
    from X or y. Posterior and its limits: `cloakgp.release.residual_rounds`, of a declared kernel
    `cloakgp.release.statistics`. No message quotes a value of X or y.

    Examples
    --------
    >>> X = np.linspace(0, 10, 400)[:, None]
    >>> y = 100 + 20 * np.sin(X).ravel()
    >>> model = DPGPRegressorPrivateInputs(
    ...     input_bounds=[(0, 10)], bounds=(70, 130), epsilon=1.0, delta=1e-4
    ... ).fit(X, y)
    >>> mean, sd = model.predict([[2.0], [5.0]], return_std=True)
    >>> mean.shape, sd.shape
    ((2,), (2,))
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        noise_variance: float | None = None,
        *,
        input_bounds: object,
        bounds: tuple[float, float],
        epsilon: float,
        delta: float,
        neighbours: Neighbours = "replace",
        n_features: int | None = None,
        insecure_seed: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.noise_variance = noise_variance
        self.input_bounds = input_bounds
        self.bounds = bounds
        self.epsilon = epsilon
        self.delta = delta
        self.neighbours = neighbours
        self.n_features = n_features
        self.insecure_seed = insecure_seed

    def _ask(self, X: Array, y: ArrayLike) -> StatisticsRelease:
        limits = OutputBounds.checked(self.bounds)
        box = self._box(X)
        noise_variance = self.noise_variance
        if noise_variance is None and self.kernel is not None:
            noise_variance = default_noise_variance(width=limits.width)
        if noise_variance is not None and not (np.isfinite(noise_variance) and noise_variance >= 0):
            raise ValueError(f"noise_variance must be at least 0 and finite, got {noise_variance}")
        self._warn(X, box, bounds=((limits.lo, limits.hi),))
        if self.kernel is not None:
            return self._of_kernel(X, y, box=box, noise_variance=noise_variance)
        return release_whole_rows(
            X,
            y,
            box=box,
            bounds=limits,
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            neighbours=self.neighbours,
            features=self._count(box),
            noise_variance=None if noise_variance is None else float(noise_variance),
            insecure_seed=self.insecure_seed,
        )

    def _planned(self, box: InputBox) -> tuple[int, int | None]:
        OutputBounds.checked(self.bounds)
        if self.kernel is not None:
            raise ValueError("a declared kernel has no forecast: leave it out, or fit without plan")
        return features_of(self.n_features, box=box), None

    def _of_kernel(
        self, X: Array, y: ArrayLike, *, box: InputBox, noise_variance: float | None
    ) -> StatisticsRelease:
        """Publish sums over a kernel's eigenfunctions, at once."""
        assert noise_variance is not None
        basis = EigenBasis(kernel=self._kernel(), box=box, wanted=self._count(box))
        limits = OutputBounds.checked(self.bounds)
        statistics = measure_statistics(
            X,
            y,
            basis=basis,
            bounds=(limits.lo, limits.hi),
            epsilon=self.epsilon,
            delta=self.delta,
            neighbours=self.neighbours,
            insecure_seed=self.insecure_seed,
        )
        return StatisticsRelease(
            basis=basis, statistics=statistics, noise_variance=float(noise_variance)
        )

    def _kernel(self) -> Kernel:
        if not isinstance(self.kernel, Kernel) or isinstance(self.kernel, CompoundKernel):
            raise ValueError("kernel must be one of scikit-learn's kernels, or a sum or product")
        return clone(self.kernel)

    def _count(self, box: InputBox) -> int:
        if self.kernel is None:
            return count_cosines(self.n_features, box=box)
        if self.n_features is None:
            return min(FEATURES_PER_INPUT * box.n_inputs, MOST_FEATURES)
        return checked_count(self.n_features)


def features_of(n_features: int | None, *, box: InputBox) -> int:
    """Return how many cosines there will be: fewer than there may be, if inputs are few.

    Examples
    --------
    >>> features_of(None, box=InputBox((0.0,), (1.0,)))
    7
    """
    wanted = count_cosines(n_features, box=box)
    shares = np.ones((box.n_inputs, 1))
    return CosineBasis(
        box=box, shares=shares, signal_variance=1.0, mean_variance=1.0, wanted=wanted
    ).count


def checked_count(n_features: object) -> int:
    """Return a number of features, or raise an error that says what it must be."""
    if isinstance(n_features, bool) or not isinstance(n_features, int | np.integer):
        raise ValueError(f"n_features must be a whole number, got {n_features!r}")
    if n_features < 1:
        raise ValueError(f"n_features must be at least 1, got {n_features}")
    return int(n_features)


def count_cosines(n_features: int | None, *, box: InputBox) -> int:
    """Return how many cosines there may be at most, or raise an error that says how many.

    Examples
    --------
    >>> count_cosines(None, box=InputBox((0.0,), (1.0,)))
    40
    """
    if n_features is None:
        return default_features(box.n_inputs)
    count = checked_count(n_features)
    if count > MOST_COSINES:
        raise ValueError(
            f"n_features must be at most {MOST_COSINES:,} without a kernel, got {n_features}"
        )
    return count


class DPGPClassifierPrivateInputs(PrivateInputsMixin, ClassifierMixin, BaseEstimator):
    r"""Classification that protects each row: inputs and label together.

    As `DPGPRegressorPrivateInputs` in rounds, of −1 and 1 for two classes, and of the corners of a
    simplex for more (`cloakgp.models.simplex`): the mean of a label is a linear model of smooth
    effects of inputs and of their pairs. All classes are asked together, and noise does not grow
    with their number. Nothing is clipped, so that bands do not narrow; later rounds correct what is
    not known of products of features.

    Parameters
    ----------
    classes : sequence of labels
        Public: every label that can occur, two at least.
    input_bounds : sequence of (float, float)
        Public range of each input; or a single pair, for all of them. Inputs outside are clipped,
        silently, in `fit` and `predict`.
    epsilon, delta : float
        The budget of one `fit`.
    neighbours : {"replace", "add-remove"}
        As for `DPGPRegressorPrivateInputs`.
    n_features : int, optional
        M, the most features. If not given: 40, or one for each input and the mean, at most 200.
    insecure_seed : int, optional
        Makes the noise reproducible and the release **not private**. For experiments only.

    Attributes
    ----------
    release_ : StatisticsRelease
        The public result: save it, predict from it.
    guarantee_ : Guarantee
        What it cost: of one row, inputs and label, for the stated neighbours.
    classes_ : array of shape (C,)
        Labels in the order of the columns of `predict_proba`.
    n_features_in_ : int
    feature_names_in_ : array of str
        If X had column names, which are taken to be public.

    Notes
    -----
    Mechanisms: as for `DPGPRegressorPrivateInputs`, on the corner of a label's class, which depends
    on that label alone. No message quotes a value of X or a label.

    Examples
    --------
    >>> X = np.linspace(0, 10, 600)[:, None]
    >>> y = np.where(X.ravel() > 5, "ill", "well")
    >>> model = DPGPClassifierPrivateInputs(
    ...     classes=["ill", "well"], input_bounds=[(0, 10)], epsilon=2.0, delta=1e-5
    ... ).fit(X, y)
    >>> model.predict([[1.0], [9.0]]).tolist()
    ['well', 'ill']
    """

    def __init__(
        self,
        *,
        classes: object,
        input_bounds: object,
        epsilon: float,
        delta: float,
        neighbours: Neighbours = "replace",
        n_features: int | None = None,
        insecure_seed: int | None = None,
    ) -> None:
        self.classes = classes
        self.input_bounds = input_bounds
        self.epsilon = epsilon
        self.delta = delta
        self.neighbours = neighbours
        self.n_features = n_features
        self.insecure_seed = insecure_seed

    def _ask(self, X: Array, y: ArrayLike) -> StatisticsRelease:
        classes = Classes.checked(self.classes)
        box = self._box(X)
        self._warn(X, box, bounds=())
        release = release_whole_rows(
            X,
            y,
            box=box,
            bounds=None,
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            neighbours=self.neighbours,
            features=count_cosines(self.n_features, box=box),
            classes=classes,
            insecure_seed=self.insecure_seed,
        )
        self.classes_ = np.array(classes.labels)
        return release

    def _planned(self, box: InputBox) -> tuple[int, int | None]:
        classes = Classes.checked(self.classes)
        return features_of(self.n_features, box=box), len(classes.labels)

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probability of each class, shape (P, C), at no further cost in privacy.

        Parameters
        ----------
        X : array-like of shape (P, D)
        """
        return self.release_.predict_proba(self._points(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the more probable class, shape (P,), at no further cost in privacy.

        Parameters
        ----------
        X : array-like of shape (P, D)
        """
        points = self._points(X)
        predicted: NDArray[Any] = self.classes_[self.release_.predict_proba(points).argmax(axis=1)]
        return predicted
