"""Public predictions of a model, as one more column of public inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cloakgp.privacy import OutputBounds
from cloakgp.utils.arrays import Array, append_column, as_matrix, column_names
from cloakgp.utils.formatting import amount
from cloakgp.utils.names import PUBLIC_PREDICTION

# Beyond the bounds, in their widths: of what lies farther, float64 has no digits left for the rest.
FARTHEST_PREDICTION = 1e6


def predicts(public_prediction: object) -> bool:
    """Return whether a public prediction is a model, and no column.

    Examples
    --------
    >>> predicts("census"), predicts(None)
    (False, False)
    """
    return not (public_prediction is None or isinstance(public_prediction, str | int))


def with_prediction_of(public_prediction: Any, X: Any) -> Any:
    """Return public inputs with what a model predicts there as their last column.

    Parameters
    ----------
    public_prediction : str, int, object with a method predict, or None
        Of columns, and without one, inputs are returned as they are.
    X : array-like or table of shape (N, D)

    Raises
    ------
    ValueError
        If predictions are not one number for each row, or any is infinite, or NaN in an array. In a
        table NaN is a gap, as in any other column of numbers.

    Examples
    --------
    >>> from sklearn.dummy import DummyRegressor
    >>> with_prediction_of(DummyRegressor().fit([[0.0]], [5.0]), [[1.0], [2.0]])
    array([[1., 5.],
           [2., 5.]])
    """
    if not predicts(public_prediction):
        return X
    given = public_prediction.predict(X)
    try:
        predicted = np.asarray(given, dtype=np.float64)
    except (ValueError, TypeError):
        raise ValueError("a public prediction is one number for each row, got others") from None
    if predicted.ndim != 1:
        raise ValueError(
            f"a public prediction is one number for each row, got an array of {predicted.ndim} "
            "dimensions"
        )
    rows = len(next(iter(X.values()))) if isinstance(X, Mapping) else len(X)
    if len(predicted) != rows:
        raise ValueError(
            f"a public prediction is one number for each row, got {len(predicted)} of {rows} rows"
        )
    bad = np.isinf(predicted) if _has_names(X) else ~np.isfinite(predicted)
    if bad.any():
        raise ValueError(
            f"the public model predicts NaN or infinity for {bad.sum()} of {rows} rows: leave "
            "these out, or give another model"
        )
    return append_column(X, predicted, name=PUBLIC_PREDICTION)


def check_public_rows(X: Any) -> None:
    """Refuse an array of public rows that is none of numbers, or too short.

    Tables are looked at where they are encoded.

    Parameters
    ----------
    X : array-like or table of shape (N, D)

    Raises
    ------
    ValueError

    Examples
    --------
    >>> check_public_rows([[1.0], [2.0]])
    """
    if not _has_names(X) and len(as_matrix(X, name="X of public rows")) < 2:
        raise ValueError("there is 1 public row: two are needed at least")


def _has_names(X: Any) -> bool:
    """Return whether columns have names, so that rows may lack numbers."""
    return any(isinstance(name, str) for name in column_names(X))


def check_near(predicted: Array, *, bounds: OutputBounds) -> None:
    """Refuse public predictions that lie too far beyond the bounds of outputs.

    Parameters
    ----------
    predicted : array of shape (N,)
        In output units.
    bounds : OutputBounds

    Raises
    ------
    ValueError

    Examples
    --------
    >>> check_near(np.array([-3.0, 500.0]), bounds=OutputBounds(0.0, 200.0))
    """
    beyond = max(bounds.lo - predicted.min(), predicted.max() - bounds.hi)
    if beyond > FARTHEST_PREDICTION * bounds.width:
        raise ValueError(
            f"public predictions lie by {amount(beyond, 3)} beyond the bounds "
            f"({amount(bounds.lo, 12)}, {amount(bounds.hi, 12)}): give them in the units of outputs"
        )


def place_of(public_prediction: Any, *, names: Sequence[str], n_inputs: int) -> int | None:
    """Return the place of a public prediction among the inputs, from 0; None without one.

    Parameters
    ----------
    public_prediction : str, int, object with a method predict, or None
    names : sequence of str
        Of the inputs, none if they have none.
    n_inputs : int

    Raises
    ------
    ValueError
        If there is no such input, or it is the only one.

    Examples
    --------
    >>> place_of("census", names=("age", "census"), n_inputs=2)
    1
    """
    if public_prediction is None:
        return None
    if predicts(public_prediction):
        place = names.index(PUBLIC_PREDICTION) if names else n_inputs - 1
    elif isinstance(public_prediction, str):
        if public_prediction not in names:
            listed = ", ".join(names) or f"{n_inputs} without names"
            raise ValueError(
                f"public_prediction={public_prediction!r} is no input of numbers: they are {listed}"
            )
        place = list(names).index(public_prediction)
    elif not 0 <= public_prediction < n_inputs:
        raise ValueError(
            f"public_prediction={public_prediction} is no place of an input: there are {n_inputs}"
        )
    else:
        place = int(public_prediction)
    if n_inputs < 2:
        raise ValueError("beside a public prediction there must be another input")
    return place
