"""Regression and classification that protect inputs too."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.gaussian_process.kernels import CompoundKernel, Kernel
from sklearn.utils.validation import check_is_fitted, validate_data

from cloakgp.columns.private import axes_of, box_of, encode_private, private_schema
from cloakgp.columns.schema import Schema
from cloakgp.estimators.base import (
    ClassScoreMixin,
    DistributionMixin,
    PosteriorMixin,
    ReleaseMixin,
    column_name,
)
from cloakgp.estimators.sample_weight import without_sample_weight
from cloakgp.estimators.sent import charged_as_sent
from cloakgp.estimators.surroundings import check_surroundings, warn_of_use
from cloakgp.fitting.rows_forecast import even_basis
from cloakgp.fitting.rows_plan import RowsPlan, plan_rows
from cloakgp.fitting.whole_rows import default_features, release_whole_rows
from cloakgp.models import default_noise_variance
from cloakgp.models.axes import Axis, lines
from cloakgp.models.cosines import MOST_FEATURES as MOST_COSINES
from cloakgp.models.features import EigenBasis, InputBox
from cloakgp.privacy import Guarantee, OutputBounds
from cloakgp.privacy.budgets import check_budget
from cloakgp.privacy.checks import warn_of_parameters
from cloakgp.privacy.entries import check_same_order
from cloakgp.privacy.inputs import checked_private_inputs
from cloakgp.privacy.questions.classes import Classes
from cloakgp.privacy.statistics import Neighbours, check_neighbours, measure_statistics
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release.provenance import Provenance
from cloakgp.release.statistics import StatisticsRelease
from cloakgp.utils.arrays import Array, check_writable, column_names

FEATURES_PER_INPUT, MOST_FEATURES = 12, 36


@dataclass(frozen=True)
class InputSpace:
    """Where private inputs lie: public.

    Attributes
    ----------
    box : InputBox
    axes : tuple of Axis
        What inputs say; if there are none, each is a number on a line of its own.
    """

    box: InputBox
    axes: tuple[Axis, ...] = ()

    @property
    def along(self) -> tuple[Axis, ...]:
        """The axes, one for each number where none is named."""
        return self.axes or lines(self.box.n_inputs)


class PrivateInputsMixin(ReleaseMixin[Guarantee], BaseEstimator):
    """An estimator of whole rows: it checks what no message may quote, and asks them once."""

    input_bounds: object
    schema: Schema | None
    n_features: int | None
    epsilon: float
    delta: float
    neighbours: Neighbours
    release_: StatisticsRelease

    @forget_on_failure
    @charged_as_sent
    @without_sample_weight
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Spend the budget once. Every call spends (ε, δ) anew about the same people.

        Parameters
        ----------
        X : array-like of shape (N, D)
            Private inputs; with a schema, a table of the columns that it names.
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
        check_surroundings(self)
        check_same_order(X, y)
        schema = self._declared()
        inputs = self._checked(X, reset=True) if schema is None else self._encoded(X, schema=schema)
        names = self._names() if schema is None else schema.names
        check_writable((*names, column_name(y)))
        check_budget(self.epsilon, self.delta)
        space = self._space(schema, n_inputs=inputs.shape[1])
        release = self._ask(inputs, y, space=space)
        self.release_ = replace(
            release,
            input_names=names,
            output_name=column_name(y),
            provenance=Provenance.of_values(release.statistics.moments),
            schema=schema,
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
            D, where `input_bounds` is a single pair for all inputs; a schema says how many.
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
        schema = self._declared()
        space = self._space(schema, n_inputs=n_inputs)
        classes = self._planned()
        return plan_rows(
            rows=int(n_rows),
            inputs=space.box.n_inputs if schema is None else len(schema.used),
            axes=space.axes,
            features=even_basis(space.along, features=self._count_cosines(space)).count,
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            neighbours=self.neighbours,
            classes=classes,
            epsilons=epsilons,
        )

    @abstractmethod
    def _planned(self) -> int | None:
        """Check what is declared of the output; return how many classes there are, if any."""

    @abstractmethod
    def _ask(self, X: Array, y: ArrayLike, *, space: InputSpace) -> StatisticsRelease:
        """Ask the rows, and return what is published."""

    def _declared(self) -> Schema | None:
        """Return the schema, closed by what it declares; None where inputs are numbers."""
        if self.schema is None:
            return None
        if self.input_bounds is not None:
            raise ValueError(
                "input_bounds and a schema are both given: let the schema declare all ranges"
            )
        return private_schema(self.schema)

    def _space(self, schema: Schema | None, *, n_inputs: int | None) -> InputSpace:
        """Return where inputs lie, as declared."""
        if schema is None:
            return InputSpace(InputBox.checked(self.input_bounds, n_inputs=n_inputs))
        return InputSpace(box_of(schema), axes_of(schema))

    def _count_cosines(self, space: InputSpace) -> int:
        """Return how many features there may be at most in rounds."""
        if self.n_features is None:
            return default_features(len(space.along))
        count = checked_count(self.n_features)
        if count > MOST_COSINES:
            raise ValueError(
                f"n_features must be at most {MOST_COSINES:,} without a kernel, got {count}"
            )
        return count

    def _encoded(self, X: Any, *, schema: Schema) -> Array:
        """Return the numbers of a table's private columns."""
        names = [name for name in column_names(X) if isinstance(name, str)]
        if not names:
            raise ValueError("a schema goes with a table whose columns have names")
        inputs = encode_private(schema, X)
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.array(names, dtype=object)
        return inputs

    def _ranges(self, box: InputBox) -> list[tuple[float, float]]:
        """Return the ranges that were declared in numbers, as they were."""
        if self.schema is None:
            return list(zip(box.lo, box.hi, strict=True))
        columns = [column for column in self.schema.used if column.round_ranges]
        return [pair for column in columns for pair in column.ranges]

    def _warn(self, X: Array, box: InputBox, *, bounds: tuple[tuple[float, float], ...]) -> None:
        warn_of_parameters(
            epsilon=self.epsilon,
            delta=self.delta,
            rows=len(X) if self.neighbours == "replace" else None,
            bounds=bounds,
            input_bounds=self._ranges(box),
        )

    def _points(self, X: ArrayLike) -> Any:
        check_is_fitted(self)
        warn_of_use()
        return X if self.release_.schema is not None else self._checked(X, reset=False)

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
    input_bounds : sequence of (float, float), optional
        Public range of each input; or a single pair, for all of them. Inputs outside are clipped,
        silently, in `fit` and `predict`. Needed where there is no schema.
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
    schema : Schema, optional
        What private columns are, where some are no numbers: categories with all their levels,
        dates, places and numbers with their ranges, known without the table. Then `fit` takes a
        table of these columns, and there are no `input_bounds`.
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
        input_bounds: object = None,
        bounds: tuple[float, float],
        epsilon: float,
        delta: float,
        neighbours: Neighbours = "replace",
        n_features: int | None = None,
        schema: Schema | None = None,
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
        self.schema = schema
        self.insecure_seed = insecure_seed

    def _ask(self, X: Array, y: ArrayLike, *, space: InputSpace) -> StatisticsRelease:
        limits = OutputBounds.checked(self.bounds)
        box = space.box
        noise_variance = self.noise_variance
        if noise_variance is None and self.kernel is not None:
            noise_variance = default_noise_variance(width=limits.width)
        if noise_variance is not None and not (np.isfinite(noise_variance) and noise_variance >= 0):
            raise ValueError(f"noise_variance must be at least 0 and finite, got {noise_variance}")
        self._warn(X, box, bounds=((limits.lo, limits.hi),))
        if self.kernel is not None:
            if self.schema is not None:
                raise ValueError("a declared kernel takes numbers: leave it or the schema out")
            return self._of_kernel(X, y, box=box, noise_variance=noise_variance)
        return release_whole_rows(
            X,
            y,
            box=box,
            axes=space.axes,
            bounds=limits,
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            neighbours=self.neighbours,
            features=self._count_cosines(space),
            noise_variance=None if noise_variance is None else float(noise_variance),
            insecure_seed=self.insecure_seed,
        )

    def _planned(self) -> None:
        OutputBounds.checked(self.bounds)
        if self.kernel is not None:
            raise ValueError("a declared kernel has no forecast: leave it out, or fit without plan")

    def _of_kernel(
        self, X: Array, y: ArrayLike, *, box: InputBox, noise_variance: float | None
    ) -> StatisticsRelease:
        """Publish sums over a kernel's eigenfunctions, at once."""
        assert noise_variance is not None
        basis = EigenBasis(kernel=self._kernel(), box=box, wanted=self._count_eigenfunctions(box))
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

    def _count_eigenfunctions(self, box: InputBox) -> int:
        if self.n_features is None:
            return min(FEATURES_PER_INPUT * box.n_inputs, MOST_FEATURES)
        return checked_count(self.n_features)


def checked_count(n_features: object) -> int:
    """Return a number of features, or raise an error that says what it must be."""
    if isinstance(n_features, bool) or not isinstance(n_features, int | np.integer):
        raise ValueError(f"n_features must be a whole number, got {n_features!r}")
    if n_features < 1:
        raise ValueError(f"n_features must be at least 1, got {n_features}")
    return int(n_features)


class DPGPClassifierPrivateInputs(
    ClassScoreMixin, PrivateInputsMixin, ClassifierMixin, BaseEstimator
):
    r"""Classification that protects each row: inputs and label together.

    As `DPGPRegressorPrivateInputs` in rounds, of −1 and 1 for two classes, and of the corners of a
    simplex for more (`cloakgp.models.simplex`): the mean of a label is a linear model of smooth
    effects of inputs and of their pairs. All classes are asked together, and noise does not grow
    with their number. Bands do not narrow: the first round clips no label. Later ones correct what
    is not known of products of features, and shorten what is left of a label where its prediction
    is further from it than the furthest corner is from the mean of labels.

    Parameters
    ----------
    classes : sequence of labels
        Public: every label that can occur, two at least. They are sorted, unless they come as
        `cloakgp.privacy.questions.classes.Classes`, which keep their order.
    input_bounds : sequence of (float, float), optional
        Public range of each input; or a single pair, for all of them. Inputs outside are clipped,
        silently, in `fit` and `predict`. Needed where there is no schema.
    epsilon, delta : float
        The budget of one `fit`.
    neighbours : {"replace", "add-remove"}
        As for `DPGPRegressorPrivateInputs`.
    n_features : int, optional
        M, the most features. If not given: 40, or one for each input and the mean, at most 200.
    schema : Schema, optional
        What private columns are, where some are no numbers: categories with all their levels,
        dates, places and numbers with their ranges, known without the table. Then `fit` takes a
        table of these columns, and there are no `input_bounds`.
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
        input_bounds: object = None,
        epsilon: float,
        delta: float,
        neighbours: Neighbours = "replace",
        n_features: int | None = None,
        schema: Schema | None = None,
        insecure_seed: int | None = None,
    ) -> None:
        self.classes = classes
        self.input_bounds = input_bounds
        self.epsilon = epsilon
        self.delta = delta
        self.neighbours = neighbours
        self.n_features = n_features
        self.schema = schema
        self.insecure_seed = insecure_seed

    def _ask(self, X: Array, y: ArrayLike, *, space: InputSpace) -> StatisticsRelease:
        classes = Classes.ordered(self.classes)
        self._warn(X, space.box, bounds=())
        release = release_whole_rows(
            X,
            y,
            box=space.box,
            axes=space.axes,
            bounds=None,
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            neighbours=self.neighbours,
            features=self._count_cosines(space),
            classes=classes,
            insecure_seed=self.insecure_seed,
        )
        self.classes_ = classes.as_array()
        return release

    def _planned(self) -> int:
        return len(Classes.checked(self.classes).labels)

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probability of each class, shape (P, C), at no further cost in privacy.

        Parameters
        ----------
        X : array-like of shape (P, D)
        """
        points = self._points(X)
        return self.release_.predict_proba(points)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the more probable class, shape (P,), at no further cost in privacy.

        Parameters
        ----------
        X : array-like of shape (P, D)
        """
        shares = np.nan_to_num(self.predict_proba(X))
        predicted: NDArray[Any] = self.classes_[shares.argmax(axis=1)]
        return predicted
