"""Base classes of estimators: how they predict, what they cost, what scikit-learn is told.

None of it reads a private output: an estimator's own `fit` passes those on.
"""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from cloakgp.criteria import Criterion, Use, criteria_for, criterion_named
from cloakgp.fitting.defaults import choose_query
from cloakgp.fitting.strategies import Query
from cloakgp.fitting.streaming import INDUCING, Rows
from cloakgp.release import Hyperprior
from cloakgp.utils.arrays import Array, as_inputs, check_unmasked

LEARNING = ("map", "average", None)

Cost = TypeVar("Cost")


def check_learning(learn: object) -> None:
    """Refuse what `learn` cannot be.

    Raises
    ------
    ValueError
        Unless it is "map", "average" or None.

    Examples
    --------
    >>> check_learning("map")
    """
    if learn not in LEARNING:
        raise ValueError(f"learn must be 'map', 'average' or None, got {learn!r}")


def choose_hyperprior(
    learn: object, *, noise_variance: float | None, mean: float | None
) -> Hyperprior | None:
    """Return what an estimator's parameters leave to be learned.

    Raises
    ------
    ValueError
        Unless learn is "map", "average" or None.

    Examples
    --------
    >>> choose_hyperprior("map", noise_variance=1.0, mean=None)
    Hyperprior(noise_variance=False, mean=True)
    """
    check_learning(learn)
    if learn is None:
        return None
    return Hyperprior(noise_variance=noise_variance is None, mean=mean is None)


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


def count_queries(X_query: ArrayLike | None) -> int | None:
    """Return how many query points were given, or None: what has no rows is refused elsewhere.

    Examples
    --------
    >>> count_queries([[0.0], [1.0]])
    2
    """
    shape = () if X_query is None else np.shape(X_query)
    return shape[0] if shape else None


def tag_noisy(tags: Any, *, seeded: bool) -> Any:
    """Tell scikit-learn that no two fits are alike, and that scores suffer.

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
    check_unmasked(X, name="X")
    least = 2 if fitting else 1
    inputs = validate_data(estimator, X, dtype=np.float64, reset=fitting, ensure_min_samples=least)
    return np.asarray(inputs, dtype=np.float64)


class ReleaseMixin(BaseEstimator, Generic[Cost]):
    """An estimator that keeps a release, and nothing else of the private outputs.

    To be inherited from before scikit-learn's mixins, and with `BaseEstimator` after them.

    Attributes
    ----------
    release_ : object
        What may be published. It has a ``guarantee``, of type ``Cost``.
    insecure_seed : int or None
    """

    release_: Any
    insecure_seed: int | None

    @property
    def guarantee_(self) -> Cost:
        """What the release costs."""
        check_is_fitted(self)
        cost: Cost = self.release_.guarantee
        return cost

    def _points(self, X: ArrayLike) -> Array:
        """Return new inputs in the form of the release's."""
        check_is_fitted(self)
        return check_inputs(self, X, fitting=False)

    def _names(self) -> tuple[str, ...]:
        """Return the names of the inputs, none if they have none."""
        return feature_names(self)

    def __sklearn_tags__(self) -> Any:
        return tag_noisy(super().__sklearn_tags__(), seeded=self.insecure_seed is not None)


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


class DesignMixin(BaseEstimator):
    """An estimator that designs its questions for the points that matter most.

    Attributes
    ----------
    criterion : str
    inducing : int, array-like of shape (M, D) or None
    random_state : int
    """

    criterion: Any
    inducing: Any
    random_state: int
    n_features_in_: int
    feature_names_in_: Any
    _use: Use = "numbers"

    def _criterion(self) -> Criterion:
        """Return what the questions are chosen for, or say which criteria there are."""
        return criterion_named(self.criterion, use=self._use)

    def _look_at(self, rows: Rows) -> None:
        """Take names and number of inputs from a table in chunks."""
        self.n_features_in_ = rows.n_inputs
        if rows.input_names:
            self.feature_names_in_ = np.array(rows.input_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _inducing_of(self, rows: Rows) -> int | Array:
        """Return the inducing inputs for a table in chunks, or how many are to be placed."""
        if self.inducing is None:
            return INDUCING
        if isinstance(self.inducing, int | np.integer) and not isinstance(self.inducing, bool):
            return int(self.inducing)
        return as_inputs(
            self.inducing, input_names=rows.input_names, n_inputs=rows.n_inputs, name="inducing"
        )

    def _query_for(
        self, rows: Rows, X_query: ArrayLike | None, query_weight: ArrayLike | None
    ) -> Query | None:
        """Return what `fit_rows` was given of them: a table in chunks chooses its own."""
        if X_query is None and query_weight is None:
            return None
        return self._query(np.zeros((0, rows.n_inputs)), X_query, query_weight)

    def _query(
        self, inputs: Array, X_query: ArrayLike | None, query_weight: ArrayLike | None
    ) -> Query:
        """Return what `fit` was given of them, or choose from the inputs."""
        if X_query is None:
            if query_weight is not None:
                raise ValueError("query_weight goes with X_query: give both")
            return choose_query(inputs, random_state=self.random_state)
        points = as_inputs(
            X_query,
            input_names=feature_names(self),
            n_inputs=self.n_features_in_,
            name="X_query",
        )
        weights = None if query_weight is None else np.asarray(query_weight, dtype=np.float64)
        if weights is not None and not self._criterion().weighted:
            weighing = " and ".join(
                repr(criterion.name) for criterion in criteria_for(self._use) if criterion.weighted
            )
            raise ValueError(f"query_weight applies to criteria {weighing}")
        return Query(X=points, weights=weights)
