"""Public predictions of a model, as one more column of public inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cloakgp.utils.arrays import append_column
from cloakgp.utils.names import PUBLIC_PREDICTION


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
        If predictions are not one number for each row.

    Examples
    --------
    >>> from sklearn.dummy import DummyRegressor
    >>> with_prediction_of(DummyRegressor().fit([[0.0]], [5.0]), [[1.0], [2.0]])
    array([[1., 5.],
           [2., 5.]])
    """
    if not predicts(public_prediction):
        return X
    predicted = np.asarray(public_prediction.predict(X), dtype=np.float64)
    if predicted.ndim != 1:
        raise ValueError(
            f"a public prediction is one number for each row, got an array of {predicted.ndim} "
            "dimensions"
        )
    return append_column(X, predicted, name=PUBLIC_PREDICTION)


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
    if n_inputs < 2:
        raise ValueError("beside a public prediction there must be another input")
    if predicts(public_prediction):
        return names.index(PUBLIC_PREDICTION) if names else n_inputs - 1
    if isinstance(public_prediction, str):
        if public_prediction not in names:
            listed = ", ".join(names) or f"{n_inputs} without names"
            raise ValueError(
                f"public_prediction={public_prediction!r} is no input of numbers: they are {listed}"
            )
        return list(names).index(public_prediction)
    if not 0 <= public_prediction < n_inputs:
        raise ValueError(
            f"public_prediction={public_prediction} is no place of an input: there are {n_inputs}"
        )
    return int(public_prediction)
