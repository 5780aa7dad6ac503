"""Base classes of estimators: predictions, costs, and tags for scikit-learn.

None of it reads a private output: an estimator's own `fit` passes those on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, Self, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from cloakgp.columns import Schema, infer_schema
from cloakgp.columns.cells import cells_of
from cloakgp.columns.problems import FROM_ZERO
from cloakgp.criteria import Criterion, criteria_for
from cloakgp.data.entries import ExposedRows
from cloakgp.design import Progress
from cloakgp.estimators.sent import SentMixin
from cloakgp.estimators.surroundings import warn_of_use
from cloakgp.fitting.defaults import INDUCING, LARGEST_DEFAULT_QUERY, choose_query
from cloakgp.fitting.fit import ModelWithin, Plan, fit
from cloakgp.fitting.gathered import GatheredTable
from cloakgp.fitting.passes import Rows, inducing_inputs
from cloakgp.fitting.planning import resolves_inducing
from cloakgp.fitting.refusals import WrongKindError
from cloakgp.fitting.request import (
    Classification,
    FitRequest,
    QuantileRegression,
    Regression,
    Task,
)
from cloakgp.fitting.strategies import Query
from cloakgp.fitting.table import Table
from cloakgp.models import default_kernel, default_latent_kernel
from cloakgp.privacy.checks import warn_caller, warn_of_parameters
from cloakgp.privacy.entries import check_apart, check_same_order, read_labels, read_numbers
from cloakgp.privacy.questions.classes import Classes
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release import Release
from cloakgp.release.provenance import Provenance
from cloakgp.utils.arrays import Array, as_inputs, check_unmasked, column_names
from cloakgp.utils.formatting import pair_in_words
from cloakgp.utils.markup import html_table
from cloakgp.utils.names import NoiseName
from cloakgp.utils.passes import OnStep
from cloakgp.utils.warned import CloakWarning

TableLike = ArrayLike | Mapping[str, Any]
"""A matrix, or columns by name."""

Cost = TypeVar("Cost")


def feature_names(estimator: BaseEstimator) -> tuple[str, ...]:
    """Return the names of the inputs that an estimator was fitted to, none if they have none.

    Examples
    --------
    >>> feature_names(BaseEstimator())
    ()
    """
    return tuple(map(str, getattr(estimator, "feature_names_in_", ())))


def column_name(column: object) -> str:
    """Return the name of a column that has one, of a pandas table say, or else "y".

    Examples
    --------
    >>> import pandas as pd
    >>> column_name(pd.Series([1.0], name="height")), column_name([1.0])
    ('height', 'y')
    """
    name = getattr(column, "name", None)
    return name if isinstance(name, str) and name else "y"


def count_queries(X_query: TableLike | None) -> int | None:
    """Return the number of given query points, or None: others are refused elsewhere.

    Examples
    --------
    >>> count_queries([[0.0], [1.0]])
    2
    """
    shape = () if X_query is None else np.shape(X_query)  # type: ignore[arg-type]
    return shape[0] if shape else None


def tag_noisy(tags: Any, *, seeded: bool) -> Any:
    """Tag an estimator for scikit-learn: fits are random, and scores poor.

    Parameters
    ----------
    tags : sklearn.utils.Tags
        Changed and returned.
    seeded : bool
        Whether the noise comes from a fixed seed.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> tag_noisy(LinearRegression().__sklearn_tags__(), seeded=False).non_deterministic
    True
    """
    tags.non_deterministic = not seeded
    for task in (tags.regressor_tags, tags.classifier_tags):
        if task is not None:
            task.poor_score = True
    return tags


def check_inputs(estimator: BaseEstimator, X: ArrayLike, *, fitting: bool = True) -> Array:
    """Return public inputs as scikit-learn checks them, if none is masked.

    Parameters
    ----------
    estimator : BaseEstimator
        When fitting, its ``n_features_in_`` and ``feature_names_in_`` are set; else X must agree
        with them.
    X : array-like of shape (N, D)
    fitting : bool
        Whether X is to be learned from: then there must be two rows at least.

    Raises
    ------
    ValueError, TypeError
        If X is no matrix of finite numbers, or has entries that are masked.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> check_inputs(LinearRegression(), [[1], [2]])
    array([[1.],
           [2.]])
    """
    X = _computed(X)
    names = column_names(X)
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise ValueError(f"X has more than one column {', '.join(map(str, repeated))}")
    check_unmasked(X, name="X")
    # A sparse matrix may be a mapping, and has no names.
    by_name = isinstance(X, Mapping) and bool(names)
    if by_name:
        X = _in_order(X, names, fitted=names if fitting else feature_names(estimator))
    least = 2 if fitting else 1
    how: Any = {"dtype": np.float64, "ensure_min_samples": least}
    try:
        if by_name and not fitting:
            inputs = check_array(X, input_name="X", **how)
        else:
            inputs = validate_data(estimator, X, reset=fitting, **how)
    except ValueError:
        if _holds_numbers(X):
            raise
        # The error of numpy quotes a cell.
        raise ValueError(
            "X has entries that are no numbers: where columns are of words or dates, give a table "
            "whose columns all have texts for names, which X.columns.map(str) makes of other names"
        ) from None
    if by_name and fitting:
        present: Any = estimator
        present.feature_names_in_ = np.array(names, dtype=object)
    # In one order in memory: sums in another differ by rounding, which choices of inputs magnify.
    return np.ascontiguousarray(inputs, dtype=np.float64)


def _computed(X: Any) -> Any:
    """Return what a table or an array of Dask holds, and others as they are."""
    # Columns of pandas are attributes, too, but not of the type.
    return X.compute() if hasattr(type(X), "compute") else X


def _in_order(X: Any, names: Sequence[object], *, fitted: Sequence[object]) -> NDArray[Any]:
    """Return columns by name as a matrix; scikit-learn checks the names of tables alone."""
    if not all(isinstance(name, str) for name in names):
        raise TypeError("X is columns by name, and their names must be texts")
    if not fitted:
        raise TypeError("X is columns by name, and a matrix of numbers is needed here")
    if list(names) != list(fitted):
        raise ValueError(
            f"X must have the columns of the fit, in their order: {', '.join(map(str, fitted))}"
        )
    return np.column_stack([np.asarray(X[name]) for name in names])


def _holds_numbers(X: ArrayLike) -> bool:
    """Return whether numpy reads an array as numbers."""
    try:
        entries = np.asarray(X)
        # Of complex numbers, and of what is no array, scikit-learn's error is the better one.
        if entries.dtype.kind != "c":
            entries.astype(np.float64)
    except ValueError:
        return False
    except TypeError:
        return True
    return True


def check_inputs_of(estimator: BaseEstimator, X: ArrayLike, y: object) -> Array:
    """Return public inputs of a fit as `check_inputs` does, if y is none of them by its name.

    Parameters
    ----------
    estimator : BaseEstimator
    X : array-like of shape (N, D)
    y : array-like
        Private. Nothing but the name and the labels of a pandas column is looked at.

    Raises
    ------
    ValueError, TypeError
        As `check_inputs`; if y is among them, or has the labels of their rows in another order.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> check_inputs_of(LinearRegression(), [[1], [2]], [0.1, 0.2])
    array([[1.],
           [2.]])
    """
    inputs = check_inputs(estimator, X)
    check_apart(feature_names(estimator), y)
    check_same_order(X, y)
    return inputs


@dataclass(frozen=True, eq=False)
class Inputs:
    """Public inputs of a fit.

    Attributes
    ----------
    X : array of shape (N, D)
    schema : Schema or None
        What the raw columns were, if they were encoded.
    kept : array of bool or None
        Which rows of the table these are; None for all of them.
    """

    X: Array
    schema: Schema | None = None
    kept: NDArray[np.bool_] | None = None

    def of_rows(self, values: Any) -> Any:
        """Return values for the kept rows of the table, from one for each row.

        Raises
        ------
        ValueError
            If it is not said of as many rows. Nothing of it is shown.
        """
        if self.kept is None or values is None:
            return values
        values = values if hasattr(values, "__len__") else list(values)
        if len(values) != len(self.kept):
            raise ValueError(
                f"X has {len(self.kept)} rows and there are {len(values)} others: they must agree"
            )
        places = np.flatnonzero(self.kept)
        if hasattr(values, "iloc"):
            return values.iloc[places]
        return values[places] if hasattr(values, "shape") else [values[place] for place in places]


def read_inputs(estimator: BaseEstimator, X: Any, *, schema: Schema | None) -> Inputs:
    """Return public inputs as numbers; a table of more than numbers is encoded.

    Parameters
    ----------
    estimator : BaseEstimator
        Its ``n_features_in_`` and ``feature_names_in_`` are set.
    X : array-like or table of shape (N, D)
    schema : Schema, optional
        What the columns are; inferred where a table holds more than numbers, or has gaps.

    Raises
    ------
    ValueError, TypeError
        As `check_inputs`; if cells do not fit the schema, one error names all of them.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import LinearRegression
    >>> people = pd.DataFrame({"age": [30, 40], "job": ["clerk", "cook"]})
    >>> read_inputs(LinearRegression(), people, schema=None).schema.names
    ('age', 'job: clerk', 'job: cook', 'job: (other)')
    """
    X = X if schema is not None else _computed(X)
    columns = column_names(X)
    names = [name for name in columns if isinstance(name, str)]
    if schema is None and (len(names) < max(len(columns), 1) or _all_numbers(X, names)):
        return Inputs(X=check_inputs(estimator, X))
    if not names:
        raise ValueError("a schema goes with a table whose columns have names")
    schema = infer_schema(X, names) if schema is None else schema.complete(X)
    schema.validate()
    encoded = schema.encode(X, row=FROM_ZERO)
    if len(encoded.X) < 2:
        raise ValueError(f"there are {len(encoded.X)} rows that lack nothing: two are needed")
    present: Any = estimator
    present.n_features_in_ = len(names)
    present.feature_names_in_ = np.array(names, dtype=object)
    kept = None if encoded.kept.all() else encoded.kept
    return Inputs(X=encoded.X, schema=schema, kept=kept)


class UnusedColumnWarning(CloakWarning):
    """Nothing is predicted from a column of X: by its cells it is taken for an id, or it is empty.

    It is raised before outputs are read. Leave such columns out of X, or say what they are by
    ``schema``.

    Examples
    --------
    >>> issubclass(UnusedColumnWarning, CloakWarning)
    True
    """


def warn_of_unused(schema: Schema, names: Sequence[str]) -> None:
    """Warn of columns that nothing is predicted from, of which nobody said so.

    Parameters
    ----------
    schema : Schema
        Inferred.
    names : sequence of str
        The columns of X.

    Warns
    -----
    UnusedColumnWarning
        Once for all of them.

    Examples
    --------
    >>> from cloakgp.columns import Number
    >>> warn_of_unused(Schema((Number("age"),)), ["age"])
    """
    if told := schema.unused_in_words(names):
        warn_caller(told, UnusedColumnWarning)


def _all_numbers(X: Any, names: Sequence[str]) -> bool:
    """Return whether every column of any table is of numbers or truth values, without gaps.

    It goes by the cells, so that a table is read alike whichever library holds it.
    """
    if len(set(names)) < len(names):
        return False
    rows = None
    for name in names:
        cells = cells_of(X[name])
        # Levels in an order are more than numbers.
        if cells.typed not in ("numbers", "truths") or cells.levels:
            return False
        if np.isnan(cells.numbers().values).any() or cells.count != (rows or cells.count):
            return False
        rows = cells.count
    return True


class ReleaseMixin(SentMixin, Generic[Cost]):
    """An estimator that keeps a release, and nothing else of the private outputs.

    To be inherited from before scikit-learn's mixins, and with `BaseEstimator` after them.

    Attributes
    ----------
    release_ : object
        The public result. It has a ``guarantee``, of type ``Cost``.
    insecure_seed : int or None
    """

    release_: Any
    insecure_seed: int | None

    @property
    def guarantee_(self) -> Cost:
        """The guarantee of the release."""
        check_is_fitted(self)
        cost: Cost = self.release_.guarantee
        return cost

    @forget_on_failure
    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return R², or the share of right classes, on outputs that are given: private as these.

        As in scikit-learn, but no message quotes an output.

        Parameters
        ----------
        X : array-like of shape (P, D)
        y : array-like of shape (P,), or (P, T) of T outputs
        sample_weight : array-like of shape (P,), optional

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If outputs are no finite numbers, or classes that were not declared.
        """
        model: Any = self
        return self._score_of(model.predict(X), y, sample_weight=sample_weight)

    def _score_of(self, predicted: Any, y: ArrayLike, *, sample_weight: ArrayLike | None) -> float:
        """Return the score of predictions of some outputs: of numbers, R²."""
        from sklearn.metrics import r2_score

        return float(r2_score(read_numbers(y), predicted, sample_weight=sample_weight))

    def _points(self, X: ArrayLike) -> Any:
        """Return new inputs in the form of the release's, or raw ones if it has a schema."""
        check_is_fitted(self)
        warn_of_use()
        if getattr(self.release_, "schema", None) is not None:
            return X
        return check_inputs(self, X, fitting=False)

    def _names(self) -> tuple[str, ...]:
        """Return the names of the inputs, none if they have none."""
        return feature_names(self)

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + self._spending_html()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Return what notebooks show: scikit-learn's diagram, and what is spent, or will be."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._spending_html()
        return bundle

    def _spending_html(self) -> str:
        if hasattr(self, "release_"):
            shown = getattr(self.release_, "_repr_html_", None)
            return shown() if shown else html_table("Spent", [("guarantee", str(self.guarantee_))])
        epsilon, delta = (getattr(self, name, None) or 0.0 for name in ("epsilon", "delta"))
        budget = pair_in_words(epsilon, delta, pure=np.inf if delta else epsilon)
        return html_table("Nothing has been asked yet", [("each fit spends", budget)])

    def __sklearn_tags__(self) -> Any:
        return tag_noisy(super().__sklearn_tags__(), seeded=self.insecure_seed is not None)


class ClassScoreMixin:
    """The score of predicted classes; goes before `ReleaseMixin`."""

    classes_: Any

    def _score_of(self, predicted: Any, y: ArrayLike, *, sample_weight: ArrayLike | None) -> float:
        """Return the share of right classes."""
        from sklearn.metrics import accuracy_score

        classes = Classes.checked(self.classes_)
        places = classes.read(y, rows=len(predicted))
        found = read_labels(predicted, classes.labels)
        return float(accuracy_score(places, found, sample_weight=sample_weight))


class PosteriorMixin(ReleaseMixin[Cost]):
    """An estimator whose release predicts a latent function of one output."""

    @overload
    def predict(self, X: ArrayLike) -> Array: ...

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[True]) -> tuple[Array, Array]: ...

    @overload
    def predict(
        self, X: ArrayLike, return_std: Literal[False] = ..., *, return_cov: Literal[True]
    ) -> tuple[Array, Array]: ...

    def predict(
        self, X: ArrayLike, return_std: bool = False, return_cov: bool = False
    ) -> Array | tuple[Array, Array]:
        """Predict the latent function, at no further cost in privacy.

        Parameters
        ----------
        X : array-like of shape (P, D)
        return_std : bool
            Also return the posterior sd, shape (P,), in output units.
        return_cov : bool
            Also return the posterior covariance, shape (P, P), in squared output units.

        Returns
        -------
        mean : array of shape (P,)
        std or cov : array
            If asked for. Both include what is due to the privacy noise. For those of a new output,
            see ``release_.predict``.

        Raises
        ------
        ValueError
            If both are asked for, or X does not fit.
        """
        points = self._points(X)
        predicted: Array | tuple[Array, Array] = self.release_.predict(
            points, return_std=return_std, return_cov=return_cov
        )
        return predicted


class DistributionMixin(ReleaseMixin[Cost]):
    """An estimator whose release predicts distributions of new numbers, of no exposure."""

    def predict_interval(self, X: ArrayLike, coverage: float = 0.9) -> tuple[Array, Array]:
        """Return intervals that hold new outputs with a given probability, each for itself.

        Parameters
        ----------
        X : array-like of shape (P, D)
        coverage : float
            Between 0 and 1. What intervals rest on stands at the release's own method.

        Returns
        -------
        lower, upper : arrays of shape (P,), or (P, T) of T outputs
        """
        points = self._points(X)
        ends: tuple[Array, Array] = self.release_.predict_interval(points, coverage)
        return ends

    def predict_quantile(self, X: ArrayLike, quantiles: ArrayLike) -> Array:
        """Return quantiles of new outputs.

        Parameters
        ----------
        X : array-like of shape (P, D)
        quantiles : float, or array-like of shape (Q,)
            Each between 0 and 1.

        Returns
        -------
        array of shape (P,) or (P, Q); of T outputs (P, T) or (P, T, Q)
        """
        points = self._points(X)
        found: Array = self.release_.predict_quantile(points, quantiles)
        return found

    def probability_above(self, X: ArrayLike, threshold: ArrayLike) -> Array:
        """Return how probable it is that new outputs are above a threshold.

        Parameters
        ----------
        X : array-like of shape (P, D)
        threshold : float, or of T outputs array-like of shape (T,)
            In output units.

        Returns
        -------
        array of shape (P,), or (P, T)
        """
        points = self._points(X)
        found: Array = self.release_.probability_above(points, threshold)
        return found


class DesignMixin(BaseEstimator):
    """An estimator that designs its questions for the points that matter most.

    Attributes
    ----------
    criterion : str
    inducing : int, array-like of shape (M, D) or None
    random_state : int
    schema : Schema or None
    """

    criterion: Any
    inducing: Any
    epsilon: float
    delta: float
    random_state: int
    schema: Schema | None
    n_features_in_: int
    feature_names_in_: Any
    release_: Any
    schema_: Schema | None = None
    _task: type[Task] = Regression

    def _request(self) -> FitRequest:
        """Return the parameters as a request."""
        return FitRequest.of(self._task, self.get_params(deep=False))

    def _criterion(self) -> Criterion:
        """Return the criterion of the questions, or raise an error that lists all."""
        return self._request().chosen_criterion()

    def _read(self, X: Any) -> Inputs:
        """Return public inputs as numbers, and keep their schema."""
        declared = self._declared_schema()
        given = read_inputs(self, X, schema=declared)
        self._keep_schema(given.schema)
        if declared is None and given.schema is not None:
            warn_of_unused(given.schema, feature_names(self))
        return given

    def _check_private(self, X: Any, y: Any, *others: Any) -> None:
        """Refuse a private column among the inputs that were read, and rows in another order."""
        check_apart(feature_names(self) if self.schema_ is None else self.schema_.sources, y)
        check_same_order(X, y, *others)

    def _declared_schema(self) -> Schema | None:
        """Return the kinds of columns that were declared; None if they are to be inferred."""
        return self.schema

    def _keep_schema(self, schema: Schema | None) -> None:
        if schema is not None:
            self.schema_ = schema
        else:
            self.__dict__.pop("schema_", None)

    def _names(self) -> tuple[str, ...]:
        """Return the names of the numbers, none if they have none."""
        return feature_names(self) if self.schema_ is None else self.schema_.names

    def _blocks(self) -> tuple[int, ...] | None:
        """Return which numbers stand for one column, None if each stands for its own."""
        return None if self.schema_ is None or self.schema_.plain else self.schema_.groups

    def base_kernel(self, X: Array, *, blocks: Sequence[int] | None = None) -> Kernel:
        """Return the kernel over inputs: the parameter, or the default for them and the bounds.

        Parameters
        ----------
        X : array of shape (N, D)
            Public inputs.
        blocks : sequence of int, optional
            As for `cloakgp.models.default_kernel`.

        Returns
        -------
        sklearn.gaussian_process.kernels.Kernel
        """
        if self.kernel is not None:
            return clone(self.kernel)
        task = self._request().task
        if isinstance(task, Classification):
            return default_latent_kernel(X, blocks=blocks)
        assert isinstance(task, Regression | QuantileRegression)
        width = task.limits.width
        if isinstance(task, Regression) and task.of_counts:
            width = task.log_rates
        return default_kernel(X, width=width, blocks=blocks)

    def _fit_table(
        self,
        table: Table,
        y: Any,
        model: ModelWithin,
        *,
        query: Query,
        noise: NoiseName,
        progress: Progress | None,
        on_step: OnStep,
    ) -> Self:
        """Fit a table, held or read in passes, and keep the release."""
        plan = Plan.of(
            self._request(), model, query=query, noise=noise, progress=progress, on_step=on_step
        )
        return self._keep(fit(table, y, plan))

    def _keep(self, release: Release) -> Self:
        """Keep the release, with its schema and its provenance."""
        provenance = Provenance.of(release.measurements).allow(self.delta, noise=self.noise)
        self.release_ = replace(release, schema=self.schema_, provenance=provenance)
        return self

    def _gather(
        self,
        rows: Rows | ExposedRows,
        X_query: TableLike | None,
        query_weight: ArrayLike | None,
        *,
        task: Regression | QuantileRegression,
        on_step: OnStep,
    ) -> tuple[GatheredTable, int | Array, Query]:
        """Return the cells of a table in chunks, inducing inputs and query points for it."""
        on_step("gathering rows in cells")
        table = GatheredTable.gather(rows, transform=task.transform)
        self._check_several(table.rows)
        warn_of_parameters(
            epsilon=self.epsilon,
            delta=self.delta,
            rows=table.rows,
            bounds=[(task.declared.lo, task.declared.hi)],
            mean=task.mean,
        )
        on_step("choosing the prior")
        inducing = inducing_inputs(
            table.summary, self._inducing_of(rows), random_state=self.random_state
        )
        on_step("choosing the query points")
        given = self._query_for(rows, X_query, query_weight)
        return table, inducing, given or Query(*table.summary.centres(LARGEST_DEFAULT_QUERY))

    def _look_at(self, rows: Rows | ExposedRows) -> None:
        """Take names and number of inputs from a table in chunks; refuse what is none."""
        if not hasattr(rows, "over_inputs"):
            raise WrongKindError(
                f"fit_rows takes rows in chunks (ArrayRows, FileRows or DaskRows of cloakgp.data), "
                f"not {type(rows).__name__}: give a table with its outputs to fit, or "
                "ArrayRows(X, y)"
            )
        self._keep_schema(getattr(rows, "schema", None))
        self.n_features_in_ = rows.n_inputs
        if rows.input_names:
            self.feature_names_in_ = np.array(rows.input_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _check_several(self, rows: int) -> None:
        """Refuse a table in chunks that `fit` would refuse: of less than two rows."""
        if rows < 2:
            raise ValueError(
                f"Found array with {rows} sample(s) while a minimum of 2 is required by "
                f"{type(self).__name__}."
            )

    @property
    def _resolves(self) -> bool:
        """Whether inducing inputs are chosen anew for the kernel that is learned."""
        return resolves_inducing(self.inducing)

    def _inducing_of(self, rows: Rows | ExposedRows) -> int | Array:
        """Return the inducing inputs for a table in chunks, or their number."""
        if self.inducing is None or self._resolves:
            return INDUCING
        if isinstance(self.inducing, int | np.integer) and not isinstance(self.inducing, bool):
            return int(self.inducing)
        return as_inputs(
            self.inducing, input_names=rows.input_names, n_inputs=rows.n_inputs, name="inducing"
        )

    def _query_for(
        self,
        rows: Rows | ExposedRows,
        X_query: TableLike | None,
        query_weight: ArrayLike | None,
    ) -> Query | None:
        """Return the query points given to `fit_rows`, or None: tables in chunks choose."""
        if X_query is None and query_weight is None:
            return None
        return self._query(np.zeros((0, rows.n_inputs)), X_query, query_weight)

    def _query(
        self, inputs: Array, X_query: TableLike | None, query_weight: ArrayLike | None
    ) -> Query:
        """Return the query points given to `fit`, or choose them from the inputs."""
        if X_query is None:
            if query_weight is not None:
                raise ValueError("query_weight goes with X_query: give both")
            return choose_query(inputs, blocks=self._blocks(), random_state=self.random_state)
        if self.schema_ is not None:
            points = self.schema_.encode(X_query, row=FROM_ZERO).X
        else:
            points = as_inputs(
                X_query,  # type: ignore[arg-type]
                input_names=feature_names(self),
                n_inputs=self.n_features_in_,
                name="X_query",
            )
        weights = None if query_weight is None else np.asarray(query_weight, dtype=np.float64)
        if weights is not None and not self._criterion().weighted:
            weighing = " and ".join(
                repr(each.name) for each in criteria_for(self._task.use) if each.weighted
            )
            raise ValueError(f"query_weight applies to criteria {weighing}")
        return Query(X=points, weights=weights)
